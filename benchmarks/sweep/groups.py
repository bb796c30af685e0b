"""Groups of runs, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property

from benchmarks.records.config import run_key
from benchmarks.shapes import Record, RunConfig


@dataclass(frozen=True)
class PendingRun:
    """A run of a group. attempts: its failures that were known when the group was planned; asked: the metrics that its
    record must know of.
    """

    config: RunConfig
    attempts: int = 0
    asked: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        """The key of the run."""
        return run_key(self.config)


@dataclass(frozen=True)
class RunGroup:
    """Runs that one process trains together. Plain data: it can be pickled, or written as JSON.

    execute, metrics and measure say where the function that trains, the versions of metrics, and what measures a stale
    record again without training are ("module:name"; the last may be "": there is no such thing); results and state are
    folders.
    """

    runs: tuple[PendingRun, ...]
    execute: str
    metrics: str
    results: str
    state: str
    measure: str = ""

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The keys of the runs."""
        return tuple(run.key for run in self.runs)

    @cached_property
    def configs(self) -> tuple[RunConfig, ...]:
        """The configurations of the runs."""
        return tuple(run.config for run in self.runs)

    @property
    def title(self) -> str:
        """The group in a few words."""
        first = self.configs[0]
        of = (
            f"split {first['dataset']['split']} seed {first['seed']}"
            if len(self.configs) == 1
            else f"{len(self.configs)} runs"
        )
        return f"{first['method']}, {first['dataset']['name']}, {of}"


@dataclass(frozen=True)
class RunOutcome:
    """What became of one run.

    status: done; failed (reason); elsewhere (another sweep is making it); found (another sweep has made it);
    unsaved (made, but its record could not be written: it is in record, and reason says why).
    """

    key: str
    status: str
    reason: str = ""
    record: Record | None = None


Outcomes = Generator[tuple[RunGroup, list[RunOutcome]], None, None]  # closed, it stops what is trained
Report = Callable[[RunGroup, float, str], None]  # group, fraction of it that is done, what it does now
