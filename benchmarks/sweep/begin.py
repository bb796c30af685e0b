"""What was asked for, before it begins: runs of tables, what is known of each, what they lack and what they cost."""

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
    """A sweep that does not begin by itself, as it would take more than a day here; ``planned`` says what it needs."""

    def __init__(self, planned: Planned) -> None:
        super().__init__("\n".join(planned.refusal))
        self.planned = planned


@dataclass(frozen=True)
class Selection:
    """Runs of tables under a protocol (None: each table's own); metrics: those that the tables show of each run."""

    tables: list[Any]
    protocol: str | None
    configs: list[RunConfig]
    metrics: Mapping[str, set[str]]


@dataclass(frozen=True)
class Planned:
    """What tables need: the status of every run, the groups that are left to train, missing data, and the cost.

    estimate is None where the cost was not asked for.
    """

    asked: Selection
    plan: Plan
    groups: list[RunGroup]
    executor: Place = field(repr=False)
    suite: Suite = field(repr=False)
    missing: data.Missing = field(default_factory=data.Missing)
    estimate: Estimate | None = None

    @property
    def counts(self) -> dict[str, int]:
        """How many runs have each status: done, running, queued, failed, stale, missing, waiting for data."""
        return self.plan.counts

    @property
    def core_seconds(self) -> float | None:
        """Seconds on one core, of all runs whose cost is known; None where that was not asked for."""
        return None if self.estimate is None else self.estimate.seconds

    @property
    def seconds(self) -> float | None:
        """Seconds that it takes here at least; None where the cost was not asked for, or where others train."""
        return None if self.estimate is None or self.executor.outlives else self.estimate.wall(self.executor.size)

    @property
    def runs(self) -> pandas.DataFrame:
        """A row for every run: its key, what it is, its status, and why it is not done."""
        import pandas  # here, since the command line does without it

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
        """The cost in sentences, and what it rests on."""
        return words.estimate_lines(self.estimate, self.executor) if self.estimate else []

    @property
    def too_long(self) -> bool:
        """Whether it would take longer here than what begins by itself."""
        return (self.seconds or 0.0) > LONGEST

    @property
    def refusal(self) -> list[str]:
        """Why it does not begin by itself, and the ways on; empty where it does."""
        if self.estimate is None or not self.groups:
            return []
        if self.executor.options:
            return words.without_gpu(self.estimate, self.executor.options, self.asked.tables, self.asked.protocol)
        if not self.too_long:
            return []
        return words.refusal(self.estimate, self.executor, self.groups, self.asked.tables, self.asked.protocol)

    @cached_property
    def misfits(self) -> list[str]:
        """A sentence for every method whose parts do not fit together; those with records or a checkpoint do."""
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
    """The runs of tables: all, or those of some replicates, methods and data sets; also: methods that get a row more.

    Says where a table has fewer replicates than asked for, and which rows lack their data. Raises UsageError for seeds
    that choose nothing.
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
    """What is known of the runs that were asked for; see :func:`plan`. fetch: download data that they lack first.

    Raises StoreError and ClaimError if it fetches and the folders cannot be written.
    """
    results, state = Path(results).resolve(), Path(state).resolve()
    # What waits in a cluster's queue belongs to an overview; a sweep on this machine makes it.
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
    """Tables by name, each with a row more for every method. Raises UnknownName and NoRecipe."""
    more = names(also)
    return [planning.also(suite.table(name), more, suite.catalogue() if more else {}) for name in names(tables)]


def names(given: Names | None) -> list[str]:
    """One name, or several, as a list."""
    return [given] if isinstance(given, str) else list(given or ())


def seeds_text(seeds: Seeds) -> str | None:
    """Seeds as the command line writes them: how many (5), positions ([0, 3]), or such a text ("0-4")."""
    if seeds is None or isinstance(seeds, str):
        return seeds
    return ",".join(map(str, [*seeds, ""])) if isinstance(seeds, Iterable) else str(seeds)
