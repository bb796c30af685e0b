"""Runs, run groups and the outcomes of their runs."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.records.form import RecordError
from benchmarks.records.store import Store
from benchmarks.shapes import Record, RunConfig
from benchmarks.state.claims import Claims
from benchmarks.state.failures import Failures
from benchmarks.suite import Suite


@dataclass(frozen=True)
class PlannedRun:
    """Run with its status; note: who makes it, where it waits, why it failed or is stale, or what its record has wrong.

    attempts: known failures when it was planned; asked: the metrics that its tables show.
    """

    key: str
    config: RunConfig
    status: str = "missing"
    note: str = ""
    attempts: int = 0
    asked: tuple[str, ...] = ()


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
        """Whether a run has a whole record with current versions of all its metrics."""
        try:
            return self.store.status(run.config, run.asked)[0] == "done"
        except RecordError:
            return False


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
        first = self.configs[0]
        one = f"split {first['dataset']['split']} seed {first['seed']}"
        return f"{first['method']}, {first['dataset']['name']}, " + (
            one if len(self.runs) == 1 else f"{len(self.runs)} runs"
        )


@dataclass(frozen=True)
class RunOutcome:
    """Outcome of one run.

    status: done; failed (reason); elsewhere (another sweep is making it); found (another sweep has made it); unsaved
    (trained, but its record, kept in ``record``, could not be written; see reason).
    """

    key: str
    status: str
    reason: str = ""
    record: Record | None = None


Outcomes = Generator[tuple[RunGroup, list[RunOutcome]], None, None]  # closing it stops training
Report = Callable[[RunGroup, float, str], None]  # arguments: group, finished fraction, present activity
