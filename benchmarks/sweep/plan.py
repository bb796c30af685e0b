"""Plan of a sweep: its runs with their statuses, the data that they wait for, the run groups left, and outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.records.config import by_training, run_key, stack_key
from benchmarks.records.form import NewerRecord, RecordError
from benchmarks.records.hyperparameters import context_pools
from benchmarks.records.store import Store
from benchmarks.shapes import Record, RunConfig
from benchmarks.state import checkpoints, kept
from benchmarks.state.claims import Claims
from benchmarks.state.failures import Failures
from benchmarks.suite import Suite
from benchmarks.sweep import hints
from benchmarks.sweep.similar import draws, passes
from datasets import BadData, UnknownDataset, UnknownSplit
from datasets.fetch import OFFLINE_VARIABLE
from datasets.needs import Lack, get, lacking
from fvi_core import plugins
from fvi_core.telling import plural

STATUSES = ("done", "running", "queued", "failed", "stale", "missing")
TO_TRAIN = ("missing", "failed", "stale")
MEANINGLESS = "smoke"  # the protocol whose numbers are not shown
WAITING = "waiting for data"  # set only by commands that have looked for the data
NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class PlannedRun:
    """Run with its status; note: who makes it, where it waits, why it failed or is stale, or what its record has wrong.

    attempts: known failures when it was planned; asked: the metrics that its tables show; problem: what its record has
    wrong, whatever its status.
    """

    key: str
    config: RunConfig
    status: str = "missing"
    note: str = ""
    attempts: int = 0
    asked: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Placed:
    """Base of plans and run groups: the folders of records and state, and the suite. Plain data."""

    results: str
    state: str
    suite: Suite

    @property
    def store(self) -> Store:
        return Store(self.results, self.suite.metrics)

    @property
    def claims(self) -> Claims:
        return Claims(Path(self.state) / "claims")

    @property
    def failures(self) -> Failures:
        return Failures(self.state)

    def recorded(self, run: PlannedRun) -> bool:
        """Whether a run has a whole record with current versions of all its metrics, or a record of newer code, which
        must not be overwritten."""
        try:
            return self.store.status(run.config, run.asked)[0] == "done"
        except RecordError as error:
            return isinstance(error, NewerRecord)


@dataclass(frozen=True)
class RunGroup(Placed):
    """Runs that one process trains together. Plain data: it can be pickled, or written as JSON."""

    runs: tuple[PlannedRun, ...]

    @cached_property
    def keys(self) -> tuple[str, ...]:
        return tuple(run.key for run in self.runs)

    @cached_property
    def configs(self) -> tuple[RunConfig, ...]:
        return tuple(run.config for run in self.runs)

    @property
    def title(self) -> str:
        """Describe the group in a few words."""
        first, data = self.configs[0], self.configs[0]["dataset"]
        runs = f"split {data['split']} seed {first['seed']}" if len(self.runs) == 1 else f"{len(self.runs)} runs"
        return f"{first['method']}, {data['name']}, {runs}"


@dataclass(frozen=True)
class RunOutcome:
    """Outcome of one run.

    status: done; failed (reason); elsewhere (another process is making it or has made it); unsaved (trained, but its
    record, kept in ``record``, could not be written; see reason).
    """

    key: str
    status: str
    reason: str = ""
    record: Record | None = None


Outcomes = Generator[tuple[RunGroup, list[RunOutcome]], None, None]  # closing it stops training
Report = Callable[[RunGroup, float, str], None]  # arguments: group, finished fraction, present activity


def counts_text(counts: Mapping[str, int]) -> str:
    """Return counts of statuses, without those that are zero."""
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count) or "none"


@dataclass(frozen=True)
class Plan(Placed):
    runs: tuple[PlannedRun, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Number of runs by status."""
        counts = Counter(run.status for run in self.runs)
        return {status: counts[status] for status in (*STATUSES, WAITING) if status != WAITING or counts[WAITING]}

    @property
    def problems(self) -> list[str]:
        """Descriptions of records that cannot be read."""
        return [run.problem for run in self.runs if run.problem]

    def select(self, *statuses: str) -> list[PlannedRun]:
        """Return the runs with any of these statuses."""
        return [run for run in self.runs if run.status in statuses]

    def waiting(self, missing: Missing) -> Plan:
        """Return the plan with runs marked as waiting where data are missing."""
        waits = {run.key: ", ".join(missing.runs[run.key]) for run in self.select(*TO_TRAIN) if run.key in missing.runs}
        runs = (replace(run, status=WAITING, note=waits[run.key]) if run.key in waits else run for run in self.runs)
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
            problem = ""
            try:
                recorded, note = store.status(run.config, run.asked)
            except RecordError as error:
                if strict and isinstance(error, NewerRecord):
                    raise
                recorded, note = None, (problem := str(error))
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
            return PlannedRun(run.key, run.config, *found, failure["attempt"] if failure else 0, run.asked, problem)

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
        """Raise StoreError or ClaimError if records or claims could not be written, UsageError if a setting by which
        they are is invalid."""
        checkpoints.interval()
        kept.limit()
        self.store.check_writable()
        with self.claims as claims:
            claims.acquire(".probe")


def make_plan(
    configs: Iterable[RunConfig],
    results: Path | str,
    state: Path | str,
    suite: Suite,
    metrics: Mapping[str, Iterable[str]] = NONE,
    **how: Any,
) -> Plan:
    """Look up every run as :meth:`Plan.look` does. metrics: those that the tables show, by the run's key."""
    plugins.load()
    unique = {run_key(config): config for config in configs}
    runs = (PlannedRun(key, config, asked=tuple(sorted(metrics.get(key, ())))) for key, config in unique.items())
    return Plan(str(Path(results).resolve()), str(Path(state).resolve()), suite, tuple(runs)).look(**how)


@dataclass
class Missing:
    """Missing data. runs: the data sets that a run waits for, by its key; lacks: missing files, by data set."""

    runs: dict[str, list[str]] = field(default_factory=dict)
    lacks: dict[str, Lack] = field(default_factory=dict)

    def lines(self, tried: bool) -> list[str]:
        """Name every data set that runs wait for, the reason, and the command that fetches it.

        tried: a download failed.
        """
        waiting, lines = Counter(name for names in self.runs.values() for name in names), []
        for name, lack in self.lacks.items():
            files = f"{plural(len(lack.files), 'file')} of {lack.megabytes:.3g} MB"
            why = f"could not be fetched ({lack.reason})" if tried else "not fetched yet"
            runs = "1 run waits" if waiting[name] == 1 else f"{waiting[name]} runs wait"
            lines.append(f"{runs} for data set {name}: {f'{files}, {why}' if lack.files else lack.reason}")
        if names := [name for name, lack in self.lacks.items() if lack.files]:
            before = "" if tried else f"the sweep tries to fetch them, unless {OFFLINE_VARIABLE} is set; "
            command = hints.module("datasets", "fetch", *names)
            lines.append(f"{before}to fetch them, where there is a network: {command}")
        return lines


def missing_data(plan: Plan, fetch: bool = False, say: Callable[[str], None] = print) -> Missing:
    """Find the data missing for the runs left to train; with ``fetch``, try to download them first."""
    missing = _missing(plan)
    if fetch and missing.lacks:
        reasons = {name: left.reason for name, lack in missing.lacks.items() if (left := get(lack, say))}
        missing = _missing(plan)
        missing.lacks = {name: replace(lack, reason=reasons.get(name, "")) for name, lack in missing.lacks.items()}
    return missing


def _missing(plan: Plan) -> Missing:
    missing, known = Missing(), {}
    for run in plan.select(*TO_TRAIN):
        data, pools = run.config["dataset"], context_pools(run.config["parts"].get("context"))
        needs = data["name"], data["scheme"] or None, tuple(run.config["evaluation"]["sets"]), tuple(sorted(pools))
        if needs not in known:
            try:
                known[needs] = lacking(*needs)
            except (UnknownDataset, UnknownSplit, BadData):  # the run itself reports this
                known[needs] = []
        for lack in known[needs]:
            before = missing.lacks.get(lack.dataset, lack)
            files = tuple(dict.fromkeys((*before.files, *lack.files)))
            missing.lacks[lack.dataset] = Lack(lack.dataset, files, before.reason or lack.reason)
        if known[needs]:
            missing.runs[run.key] = list(dict.fromkeys(lack.dataset for lack in known[needs]))
    return missing


def recorded_protocol(table: Any, protocol: str | None, is_recorded: Callable[[RunConfig], bool]) -> str:
    """Return the protocol, or else the most faithful one with records, except smoke. Raises UnknownName."""
    wanted = table.check_protocol(protocol)
    meant = (name for name in (wanted, *table.protocols) if name != MEANINGLESS)
    return next((name for name in meant if recorded_datasets(table, name, is_recorded)), wanted)


def recorded_datasets(table: Any, protocol: str, is_recorded: Callable[[RunConfig], bool]) -> set[str]:
    """Return the data sets on which any run of a table is recorded; is_recorded: whether a run is."""
    names: set[str] = set()
    for _, name, runs in table.plans(protocol):
        if name not in names and any(map(is_recorded, runs)):
            names.add(name)
    return names
