"""Groups of runs: what every executor is given and gives back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.records.config import run_key
from benchmarks.shapes import Record, RunConfig


@dataclass(frozen=True)
class RunGroup:
    """Runs that one process trains together. Plain data: it can be pickled, or written as JSON.

    attempts[i] counts the failures of run i that were known when the group was planned; execute, metrics and measure
    say where the function that trains, the versions of metrics and what measures a stale record again without
    training are ("module:name"; measure may be "": there is no such thing); results and state are
    folders; asked[i] are the metrics that the record of run i must know of.
    """

    configs: tuple[RunConfig, ...]
    attempts: tuple[int, ...]
    execute: str
    metrics: str
    results: str
    state: str
    threads: int = 1
    asked: tuple[tuple[str, ...], ...] = ()
    measure: str = ""

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The keys of the runs."""
        return tuple(run_key(config) for config in self.configs)

    def asked_of(self, key: str) -> set[str]:
        """The metrics that the record of a run must know of."""
        return set(dict(zip(self.keys, self.asked)).get(key, ()))

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


Report = Callable[[RunGroup, float, str], None]  # group, fraction of it that is done, what it does now


class Executor(ABC):
    """A place where run groups are trained. The process that trains one writes its records; outcomes tell of them.

    outlives: what was submitted goes on when this process has ended; a sweep hands them over and need not wait for outcomes.
    """

    outlives: bool = False

    @abstractmethod
    def submit(self, groups: Sequence[RunGroup]) -> None:
        """Take over groups, to be trained in about this order. May be called again while outcomes are read."""

    @abstractmethod
    def outcomes(self, report: Report) -> Iterator[tuple[RunGroup, list[RunOutcome]]]:
        """Every submitted group, once, as it ends, with one outcome per run, whatever became of the group."""

    @abstractmethod
    def close(self) -> None:
        """Stop what is still being done, give up its claims, and leave no process behind."""

    def pending(self, state: Path, held: bool = False) -> dict[str, str]:
        """The runs that were submitted before and wait or run, with a note on each; ``held``: within :meth:`turn`."""
        return {}

    def turn(self, state: Path) -> AbstractContextManager[None]:
        """Between looking at what is pending and submitting, nobody else submits."""
        return nullcontext()

    def receipt(self, state: Path) -> list[str]:
        """What was submitted, and how to follow, cancel and collect it, in lines."""
        return []

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
