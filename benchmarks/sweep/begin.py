"""Selection and planning of a sweep: the chosen runs, their statuses, missing data and cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.errors import BenchmarkError, UsageError
from benchmarks.records.config import method_of
from benchmarks.records.store import Store
from benchmarks.shapes import RunConfig
from benchmarks.suite import Suite
from benchmarks.sweep import data, runner, words
from benchmarks.sweep import plan as planning
from benchmarks.sweep.estimate import LONGEST, Estimate, estimate
from benchmarks.sweep.groups import RunGroup
from benchmarks.sweep.known import Known
from benchmarks.sweep.plan import Plan
from benchmarks.sweep.runner import RESULTS, STATE
from benchmarks.sweep.slurm import jobs
from benchmarks.sweep.where import Place

if TYPE_CHECKING:
    import pandas

Say = Callable[[str], None]
Names = str | Sequence[str]
Seeds = str | int | Iterable[int] | None
SUITE = Suite()


class TooLong(BenchmarkError):
    """Error for a sweep that would take more than a day on this machine; ``planned`` holds its plan."""

    def __init__(self, planned: Planned) -> None:
        super().__init__("\n".join(planned.refusal))
        self.planned = planned


@dataclass(frozen=True)
class Selection:
    """Runs of tables under a protocol (None: each table's default); metrics: those that the tables show of each run."""

    tables: list[Any]
    protocol: str | None
    configs: list[RunConfig]
    metrics: Mapping[str, set[str]]


@dataclass(frozen=True)
class Planned:
    """Status of every run, run groups left to train, missing data, and cost (estimate: None unless requested)."""

    asked: Selection
    plan: Plan
    groups: list[RunGroup]
    executor: Place = field(repr=False)
    suite: Suite = field(repr=False)
    missing: data.Missing = field(default_factory=data.Missing)
    estimate: Estimate | None = None

    @property
    def counts(self) -> dict[str, int]:
        """Number of runs by status: done, running, queued, failed, stale, missing, waiting for data."""
        return self.plan.counts

    @property
    def core_seconds(self) -> float | None:
        """Seconds on one core of all runs whose cost is known; None without an estimate."""
        return None if self.estimate is None else self.estimate.seconds

    @property
    def seconds(self) -> float | None:
        """Least seconds on this machine; None without an estimate, or where runs are trained elsewhere."""
        return None if self.estimate is None or self.executor.outlives else self.estimate.wall(self.executor.size)

    @property
    def runs(self) -> pandas.DataFrame:
        """Table of all runs: key, configuration in words, status, note."""
        import pandas

        rows = [
            {
                "key": run.key,
                "method": method_of(run.config),
                "dataset": run.config["dataset"]["name"],
                "split": run.config["dataset"]["split"],
                "seed": run.config["seed"],
                "protocol": run.config["protocol"],
                "status": run.status,
                "note": run.note,
            }
            for run in self.plan.runs
        ]
        columns = ("key", "method", "dataset", "split", "seed", "protocol", "status", "note")
        return pandas.DataFrame(rows, columns=list(columns))

    @property
    def costs(self) -> list[str]:
        """Describe the cost and its sources, in sentences."""
        return words.estimate_lines(self.estimate, self.executor) if self.estimate else []

    @property
    def too_long(self) -> bool:
        """Whether the sweep would take longer on this machine than the limit for starting without confirmation."""
        return (self.seconds or 0.0) > LONGEST

    @property
    def refusal(self) -> list[str]:
        """Explain why the sweep does not start and what to do instead; empty where it starts."""
        if self.estimate is None or not self.groups:
            return []
        if self.executor.options:
            return words.without_gpu(self.estimate, self.executor.options, self.asked.tables, self.asked.protocol)
        if not self.too_long:
            return []
        return words.refusal(self.estimate, self.executor, self.groups, self.asked.tables, self.asked.protocol)

    @cached_property
    def misfits(self) -> list[str]:
        """Return a sentence for every method whose parts do not fit together, except methods with records or
        checkpoints."""
        found = self.estimate
        return self.suite.misfits(found.untried) if found else []

    def __str__(self) -> str:
        told = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count)
        lines = [f"{len(self.plan.runs)} runs: {told or 'none'}", *words.data_lines(self.missing, False)]
        return "\n".join([*lines, *self.costs, *self.refusal])


def choose(
    tables: Names,
    protocol: str | None = None,
    seeds: Seeds = None,
    *,
    methods: Names = (),
    datasets: Names = (),
    also: Names = (),
    suite: Suite = SUITE,
    say: Say = print,
) -> Selection:
    """Choose runs of tables: all, or some replicates, methods and data sets; also: methods that get an extra row.

    Says where a table has fewer replicates than requested, and which rows lack their data. Raises UsageError for seeds
    that select nothing.
    """
    named, text = names(tables), seeds_text(seeds)
    found = with_rows(named, also, suite)
    numbers = planning.parse_seeds(text)
    configs = planning.table_runs(found, protocol, numbers)
    if text and not configs:
        raise UsageError(f"--seeds {text} chooses none of the runs of {', '.join(named)}: they are counted from 0")
    for line in (*planning.beyond(found, protocol, text), *planning.lacking(found, protocol)):
        say(line)
    metrics = planning.asked_metrics(found, protocol, numbers)
    return Selection(found, protocol, planning.only(configs, names(methods), names(datasets)), metrics)


def look(
    asked: Selection,
    executor: Place,
    results: Path | str = RESULTS,
    state: Path | str = STATE,
    suite: Suite = SUITE,
    *,
    cost: bool = True,
    fetch: bool = False,
    say: Say = print,
) -> Planned:
    """Look up the status of the selected runs; see :func:`plan`. fetch: download missing data first.

    Raises StoreError and ClaimError if it fetches and the folders cannot be written.
    """
    results, state = Path(results).resolve(), Path(state).resolve()
    # A sweep on this machine makes the runs that wait in a cluster's queue; an overview lists them as queued.
    queued = jobs.pending(state) if executor.outlives or not cost else {}
    found = planning.make_plan(asked.configs, results, state, suite, queued=queued, asked=asked.metrics)
    if not cost:
        return Planned(asked, found, found.groups(results, state, suite), executor, suite)
    missing = data.look(found, fetch, say)
    for line in words.data_lines(missing, fetch):
        say(line)
    found = found.waiting(missing.notes)
    groups = found.groups(results, state, suite)
    if fetch and groups:
        runner.check_folders(results, state)
    known = Known(Store(results, suite.metrics), state)
    return Planned(asked, found, groups, executor, suite, missing, estimate(groups, known))


def with_rows(tables: Names, also: Names | None, suite: Suite) -> list[Any]:
    """Return tables by name, each with an extra row for every method of ``also``. Raises UnknownName and NoRecipe."""
    more = names(also)
    return [planning.also(suite.table(name), more, suite.catalogue() if more else {}) for name in names(tables)]


def names(given: Names | None) -> list[str]:
    """Return one name or several as a list."""
    return [given] if isinstance(given, str) else list(given or ())


def seeds_text(seeds: Seeds) -> str | None:
    """Convert a number of seeds (5), positions ([0, 3]) or text ("0-4") to the command line's notation."""
    if seeds is None or isinstance(seeds, str):
        return seeds
    return ",".join(map(str, [*seeds, ""])) if isinstance(seeds, Iterable) else str(seeds)
