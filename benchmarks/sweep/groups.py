"""Run groups and the outcomes of their runs."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property

from benchmarks.records.config import run_key
from benchmarks.shapes import Record, RunConfig


@dataclass(frozen=True)
class PendingRun:
    """Run of a group. attempts: known failures when the group was planned; asked: metrics that its record must have."""

    config: RunConfig
    attempts: int = 0
    asked: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        return run_key(self.config)


@dataclass(frozen=True)
class RunGroup:
    """Runs that one process trains together. Plain data: it can be pickled, or written as JSON.

    execute, metrics and measure name functions as "module:name": the one that trains, the one that returns the versions
    of metrics, and the one that measures stale records without training ("": none). results and state are folders.
    """

    runs: tuple[PendingRun, ...]
    execute: str
    metrics: str
    results: str
    state: str
    measure: str = ""

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
        of = (
            f"split {first['dataset']['split']} seed {first['seed']}"
            if len(self.configs) == 1
            else f"{len(self.configs)} runs"
        )
        return f"{first['method']}, {first['dataset']['name']}, {of}"


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
