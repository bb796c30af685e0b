"""Plan of a sweep: the runs of tables, their statuses, and the run groups left to train."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.errors import UsageError, unknown
from benchmarks.records.config import by_training, method_of, run_key, stack_key
from benchmarks.records.form import NewerRecord, RecordError
from benchmarks.records.store import Store
from benchmarks.shapes import RunConfig
from benchmarks.suite import Suite
from benchmarks.sweep.groups import Placed, PlannedRun, RunGroup
from benchmarks.sweep.similar import draws, passes
from fvi_core import plugins

STATUSES = ("done", "running", "queued", "failed", "stale", "missing")
TO_TRAIN = ("missing", "failed", "stale")
MEANINGLESS = "smoke"  # the protocol whose numbers are not shown
WAITING = "waiting for data"  # set only by commands that have looked for the data
NONE: Mapping[str, Any] = MappingProxyType({})
Seeds = str | int | Iterable[int] | None  # "0-4" as on the command line, how many (5), or which ([0, 3])


def counts_text(counts: Mapping[str, int]) -> str:
    """Return counts of statuses, without those that are zero."""
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count) or "none"


@dataclass(frozen=True)
class Plan(Placed):
    runs: tuple[PlannedRun, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Number of runs by status."""
        found = Counter(run.status for run in self.runs)
        return {status: found[status] for status in (*STATUSES, WAITING) if status != WAITING or found[WAITING]}

    @property
    def problems(self) -> list[str]:
        """Descriptions of records that cannot be read."""
        return [run.note for run in self.runs if run.status == "missing" and run.note]

    def select(self, *statuses: str) -> list[PlannedRun]:
        """Return the runs with any of these statuses."""
        return [run for run in self.runs if run.status in statuses]

    def waiting(self, lacking: Mapping[str, str]) -> Plan:
        """Return the plan with runs marked as waiting where data are missing. lacking: missing data by key."""
        wait = {run.key for run in self.select(*TO_TRAIN)}.intersection(lacking)
        runs = (replace(run, status=WAITING, note=lacking[run.key]) if run.key in wait else run for run in self.runs)
        return replace(self, runs=tuple(runs))

    def look(self, queued: Mapping[str, str] = NONE, strict: bool = True, store: Store | None = None) -> Plan:
        """Return the plan with the present status of every run; those that wait for data still do.

        queued: notes of runs in a cluster's queue, by key. Raises :class:`NewerRecord` if strict, because such a record
        must not be overwritten.
        """
        store, failures, live = store or self.store, self.failures, self.claims.live()
        failed = set(failures.keys())

        def status(run: PlannedRun) -> PlannedRun:
            failure = failures.get(run.key) if run.key in failed else None  # it may have been removed since
            try:
                recorded, note = store.status(run.config, run.asked)
            except RecordError as error:
                if strict and isinstance(error, NewerRecord):
                    raise
                recorded, note = None, str(error)
            if recorded == "done":
                found = "done", ""
            elif run.key in live:
                found = "running", str(live[run.key])
            elif run.key in queued:
                found = "queued", queued[run.key]
            elif run.status == WAITING:
                return run
            else:
                found = ("failed", failure["reason"]) if failure else (recorded or "missing", note)
            return PlannedRun(run.key, run.config, *found, failure["attempt"] if failure else 0, run.asked)

        return replace(self, runs=tuple(map(status, self.runs)))

    @cached_property
    def groups(self) -> list[RunGroup]:
        """Missing, stale and failed runs as run groups, those with most passes over their data first."""
        stacks: dict[str, dict[str, PlannedRun]] = {}
        for run in self.select(*TO_TRAIN):
            stacks.setdefault(stack_key(run.config), {})[run.key] = run
        groups = []
        for stacked in stacks.values():
            configs = [run.config for run in stacked.values()]
            limit, trainings = max(1, self.suite.stack_limit(configs[0])), list(by_training(configs).values())
            for start in range(0, len(trainings), limit):
                runs = (stacked[run_key(config)] for same in trainings[start : start + limit] for config in same)
                groups.append(RunGroup(self.results, self.state, self.suite, tuple(runs)))
        return sorted(groups, key=lambda group: -passes(group.configs[0]) * draws(group.configs[0]))

    def check_writable(self) -> None:
        """Raise StoreError or ClaimError if records or claims could not be written."""
        self.store.check_writable()
        with self.claims as claims:
            claims.acquire(".probe")


def make_plan(
    configs: Iterable[RunConfig],
    results: Path | str,
    state: Path | str,
    suite: Suite,
    asked: Mapping[str, Iterable[str]] = NONE,
    **how: Any,
) -> Plan:
    """Look up every run as :meth:`Plan.look` does. asked: metrics by key."""
    plugins.load()
    unique = {run_key(config): config for config in configs}
    runs = (PlannedRun(key, config, asked=tuple(sorted(asked.get(key, ())))) for key, config in unique.items())
    return Plan(str(Path(results).resolve()), str(Path(state).resolve()), suite, tuple(runs)).look(**how)


def asked_metrics(tables: Sequence[Any], protocol: str | None, seeds: list[int] | None = None) -> dict[str, set[str]]:
    """Return the metrics that tables show of each run, by its key."""
    return merged(table.asked(protocol, seeds) for table in tables)


def merged(sets: Iterable[Mapping[str, set[str]]]) -> dict[str, set[str]]:
    """Return the union of sets under the same name."""
    found: dict[str, set[str]] = {}
    for each in sets:
        for name, content in each.items():
            found.setdefault(name, set()).update(content)
    return found


def beyond(tables: Iterable[Any], protocol: str | None, seeds: Seeds) -> list[str]:
    """Return a sentence for every table with fewer replicates than requested."""
    asked, told = parse_seeds(seeds) or [], []
    for table in tables:
        chosen = table.check_protocol(protocol)
        count = table.replicates(chosen)
        used = sum(seed < count for seed in asked)
        if count > 0 and used < len(asked):
            has = f"table {table.name} has {count} replicate{'s' * (count > 1)} at protocol {chosen}"
            some = f"{used or 'none'} of {len(asked)} requested are used"
            told.append(f"--seeds {seeds_text(seeds)}: {has}, {some if used < count else f'all {count} are used'}")
    return told


def lacking(tables: Iterable[Any], protocol: str | None) -> list[str]:
    """Return a sentence for every row whose plug-in or data are absent, so that its runs cannot be planned."""
    places = ((table, row, dataset) for table in tables for row in table.rows for dataset in table.datasets)
    told = (
        f"table {table.name}, row {row.label}: {reason}"
        for table, row, dataset in places
        if (reason := table.lacks(row, dataset, protocol))
    )
    return list(dict.fromkeys(told))


def only(
    configs: list[RunConfig],
    methods: Collection[str],
    datasets: Collection[str],
    rows: Mapping[str, Collection[str]] = NONE,
) -> list[RunConfig]:
    """Select the runs of these methods and data sets (none named: all). Raises UnknownName.

    rows: keys of the runs of a row, by its label, which may stand in place of a method.
    """
    sets = {config["dataset"]["name"] for config in configs}
    chosen = (("method or row", methods, {*map(method_of, configs), *rows}), ("data set", datasets, sets))
    for kind, names, known in chosen:
        for name in names:
            if name not in known:
                raise unknown(f"{kind} of this table", name, known)
    keys = {key for name in methods for key in rows.get(name, ())}
    return [
        config
        for config in configs
        if (not methods or method_of(config) in methods or run_key(config) in keys)
        and (not datasets or config["dataset"]["name"] in datasets)
    ]


def recorded_protocol(table: Any, protocol: str | None, has: Callable[[RunConfig], bool]) -> str:
    """Return the protocol, or else the most faithful one with records, except smoke. Raises UnknownName."""
    wanted = table.check_protocol(protocol)
    meant = (name for name in (wanted, *table.protocols) if name != MEANINGLESS)
    return next((name for name in meant if recorded_datasets(table, name, has)), wanted)


def recorded_datasets(table: Any, protocol: str, has: Callable[[RunConfig], bool]) -> set[str]:
    """Return the data sets on which any run of a table is recorded; has: whether a run is."""
    found: set[str] = set()
    for config in table.runs(protocol):
        name = config["dataset"]["name"]
        if name not in found and has(config):
            found.add(name)
    return found


def parse_seeds(seeds: Seeds) -> list[int] | None:
    """Parse seeds: '5' (how many: 0 to 4), '0-4', '0,3', '2-2' (2 alone), or as numbers. Raises UsageError."""
    text = seeds_text(seeds)
    if not text:
        return None
    found: set[int] = set()
    try:
        for part in [f"0-{int(text) - 1}"] if text.isdecimal() else filter(None, text.split(",")):
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    except ValueError:
        found.clear()
    if not found:
        raise UsageError(f"--seeds is {text!r}, expected how many (5), a range (0-4) or a list (0,3)")
    return sorted(found)


def seeds_text(seeds: Seeds) -> str:
    """Convert seeds to the command line's notation; empty for all."""
    if seeds is None or isinstance(seeds, str):
        return seeds or ""
    return ",".join(map(str, [*seeds, ""])) if isinstance(seeds, Iterable) else str(seeds)
