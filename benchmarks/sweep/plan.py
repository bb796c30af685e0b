"""Plan of a sweep: the runs of tables, their statuses, and the run groups left to train."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.errors import UsageError, unknown
from benchmarks.records.config import by_training, method_of, run_key, stack_key
from benchmarks.records.form import NewerRecord, RecordError
from benchmarks.records.store import Store
from benchmarks.shapes import RunConfig
from benchmarks.state.claims import Claims
from benchmarks.state.failures import Failures
from benchmarks.suite import Suite
from benchmarks.sweep.groups import PendingRun, RunGroup
from benchmarks.sweep.similar import draws, passes
from fvi_core import plugins

STATUSES = ("done", "running", "queued", "failed", "stale", "missing")
TO_TRAIN = ("missing", "failed", "stale")
MEANINGLESS = "smoke"  # the protocol whose numbers are not shown
WAITING = "waiting for data"  # set only by commands that have looked for the data


@dataclass(frozen=True)
class PlannedRun:
    """Run with its status; note: who makes it, where it waits, why it failed or is stale, or what its record has wrong.

    asked: the metrics that its tables show.
    """

    key: str
    config: RunConfig
    status: str
    note: str = ""
    attempts: int = 0
    asked: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Plan:
    runs: tuple[PlannedRun, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Number of runs by status."""
        found = Counter(run.status for run in self.runs)
        return {status: found[status] for status in self.statuses}

    @property
    def statuses(self) -> tuple[str, ...]:
        """Statuses that runs may have here."""
        return (*STATUSES, WAITING) if any(run.status == WAITING for run in self.runs) else STATUSES

    @property
    def problems(self) -> list[str]:
        """Descriptions of records that cannot be read."""
        return [run.note for run in self.runs if run.status == "missing" and run.note]

    def select(self, *statuses: str) -> list[PlannedRun]:
        """Return the runs with any of these statuses."""
        return [run for run in self.runs if run.status in statuses]

    def waiting(self, lacking: Mapping[str, str]) -> Plan:
        """Return the plan with runs marked as waiting where data are missing. lacking: missing data by key."""
        return Plan(
            tuple(
                replace(run, status=WAITING, note=lacking[run.key])
                if run.status in TO_TRAIN and run.key in lacking
                else run
                for run in self.runs
            )
        )

    def groups(self, results: Path, state: Path, suite: Suite) -> list[RunGroup]:
        """Return missing, stale and failed runs as run groups, those with most passes over their data first."""
        stacks: dict[str, list[PlannedRun]] = {}
        for run in self.select(*TO_TRAIN):
            stacks.setdefault(stack_key(run.config), []).append(run)
        groups = []
        for stacked in stacks.values():
            limit = max(1, suite.stack_limit(stacked[0].config))
            by_key = {run.key: run for run in stacked}
            trainings = list(by_training(run.config for run in stacked).values())
            for start in range(0, len(trainings), limit):
                chosen = [config for training in trainings[start : start + limit] for config in training]
                runs = [by_key[run_key(config)] for config in chosen]
                groups.append(
                    RunGroup(
                        runs=tuple(PendingRun(run.config, run.attempts, tuple(sorted(run.asked))) for run in runs),
                        execute=suite.execute,
                        metrics=suite.metrics,
                        results=str(results),
                        state=str(state),
                        measure=suite.measure,
                    )
                )
        return sorted(groups, key=lambda group: -passes(group.configs[0]) * draws(group.configs[0]))


def make_plan(
    configs: Iterable[RunConfig],
    results: Path,
    state: Path,
    suite: Suite,
    strict: bool = True,
    queued: Mapping[str, str] = MappingProxyType({}),
    asked: Mapping[str, Iterable[str]] = MappingProxyType({}),
    store: Store | None = None,
) -> Plan:
    """Look up every run. queued: notes of runs in a cluster's queue, by key; asked: metrics by key.

    Raises :class:`NewerRecord` if strict, because such a record must not be overwritten.
    """
    plugins.load()
    store = store or Store(results, suite.metrics)
    failures, claims = Failures(state), Claims(Path(state) / "claims")
    failed, live = set(failures.keys()), claims.live()
    unique = {run_key(config): config for config in configs}
    return Plan(
        tuple(
            _look_up(key, config, frozenset(asked.get(key, ())), store, failures, failed, live, queued, strict)
            for key, config in unique.items()
        )
    )


def table_runs(tables: Sequence[Any], protocol: str | None, seeds: list[int] | None) -> list[RunConfig]:
    """Return the configurations of tables' runs, in each table's default protocol unless one is given."""
    return [config for table in tables for config in table.runs(protocol, seeds)]


def asked_metrics(tables: Sequence[Any], protocol: str | None, seeds: list[int] | None = None) -> dict[str, set[str]]:
    """Return the metrics that tables show of each run, by its key."""
    found: dict[str, set[str]] = {}
    for table in tables:
        for key, metrics in table.asked(protocol, seeds).items():
            found.setdefault(key, set()).update(metrics)
    return found


def beyond(tables: Iterable[Any], protocol: str | None, text: str | None) -> list[str]:
    """Return a sentence for every table with fewer replicates than requested."""
    seeds, told = parse_seeds(text) or [], []
    for table in tables:
        chosen = table.check_protocol(protocol)
        count = table.replicates(chosen)
        used = sum(seed < count for seed in seeds)
        if count > 0 and used < len(seeds):
            has = f"table {table.name} has {count} replicate{'s' * (count > 1)} at protocol {chosen}"
            some = f"{used or 'none'} of {len(seeds)} requested are used"
            told.append(f"--seeds {text}: {has}, {some if used < count else f'all {count} are used'}")
    return told


def lacking(tables: Iterable[Any], protocol: str | None) -> list[str]:
    """Return a sentence for every row whose plug-in or data are absent, so that its runs cannot be planned."""
    told: dict[str, None] = {}
    for table in tables:
        for row in table.rows:
            for dataset in table.datasets:
                reason = table.lacks(row, dataset, protocol)
                if reason:
                    told[f"table {table.name}, row {row.label}: {reason}"] = None
    return list(told)


def also(table: Any, names: Iterable[str] | None, catalogue: Mapping[str, Any]) -> Any:
    """Return the table with rows for more methods of the catalogue (case ignored). Raises UnknownName, NoRecipe."""
    known = {alias.lower(): name for name, method in catalogue.items() for alias in getattr(method, "aliases", ())}
    known |= {name.lower(): name for name in catalogue}
    for name in names or ():
        if name.lower() not in known:
            raise unknown("method", name, catalogue, "`python -m benchmarks methods` lists them")
        table = table.also(known[name.lower()])
    return table


def only(configs: list[RunConfig], methods: list[str], datasets: list[str]) -> list[RunConfig]:
    """Select the runs of these methods and data sets (none named: all). Raises UnknownName."""
    for kind, names, known in (
        ("method", methods, {method_of(config) for config in configs}),
        ("data set", datasets, {config["dataset"]["name"] for config in configs}),
    ):
        for name in names:
            if name not in known:
                raise unknown(f"{kind} of this table", name, known)
    return [
        config
        for config in configs
        if (not methods or method_of(config) in methods) and (not datasets or config["dataset"]["name"] in datasets)
    ]


def recorded_protocol(table: Any, protocol: str | None, has: Callable[[RunConfig], bool]) -> str:
    """Return the protocol, or else the most faithful one with records, except smoke. Raises UnknownName."""
    wanted = table.check_protocol(protocol)
    for name in (wanted, *table.protocols):
        if name != MEANINGLESS and recorded_datasets(table, name, has):
            return name
    return wanted


def recorded_datasets(table: Any, protocol: str, has: Callable[[RunConfig], bool]) -> set[str]:
    """Return the data sets on which any run of a table is recorded; has: whether a run is."""
    found: set[str] = set()
    for config in table.runs(protocol):
        name = config["dataset"]["name"]
        if name not in found and has(config):
            found.add(name)
    return found


def parse_seeds(text: str | None) -> list[int] | None:
    """Parse seeds: '5' (how many: 0 to 4), '0-4', '0,3', '2-2' (2 alone). Raises UsageError."""
    if not text:
        return None
    seeds: list[int] = []
    try:
        if text.isdecimal():
            seeds = list(range(int(text)))
        else:
            for part in filter(None, text.split(",")):
                first, _, last = part.partition("-")
                seeds += range(int(first), int(last or first) + 1)
    except ValueError:
        seeds = []
    if not seeds:
        raise UsageError(f"--seeds is {text!r}, expected how many (5), a range (0-4) or a list (0,3)")
    return sorted(set(seeds))


def _look_up(
    key: str,
    config: RunConfig,
    asked: frozenset[str],
    store: Store,
    failures: Failures,
    failed: set[str],
    live: dict,
    queued: Mapping[str, str],
    strict: bool,
) -> PlannedRun:
    failure = failures.get(key) if key in failed else None  # it may have been removed since
    attempts = failure["attempt"] if failure else 0
    try:
        recorded, note = store.status(config, asked)
    except RecordError as error:
        if strict and isinstance(error, NewerRecord):
            raise
        recorded, note = None, str(error)
    if recorded == "done":
        return PlannedRun(key, config, "done", asked=asked)
    if key in live:
        return PlannedRun(key, config, "running", str(live[key]), attempts, asked)
    if key in queued:
        return PlannedRun(key, config, "queued", queued[key], attempts, asked)
    if failure:
        return PlannedRun(key, config, "failed", failure["reason"], attempts, asked)
    return PlannedRun(key, config, recorded or "missing", note, attempts, asked)
