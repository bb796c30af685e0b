"""Places of training, by name: this process, a pool of workers on this machine, a SLURM cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.errors import UsageError, unknown
from benchmarks.sweep.workers import Workers

if TYPE_CHECKING:
    from benchmarks.sweep.slurm.options import Options

NAMES = ("inprocess", "pool", "slurm")


@dataclass(frozen=True)
class Place:
    """Place of training. workers: None in this process and on a cluster; options: of a cluster."""

    name: str = "inprocess"
    workers: Workers | None = None
    options: Options | None = None

    @property
    def size(self) -> int:
        """Number of run groups trained at once, where this process decides it."""
        return self.workers.count if self.workers else 1

    @property
    def outlives(self) -> bool:
        """Whether runs continue after this process has ended."""
        return self.name == "slurm"


def make(name: str, workers: int | None = None, options: Options | None = None) -> Place:
    """Return the place of this name. Raises UnknownName, and UsageError for an invalid number of workers."""
    if workers is not None and workers < 1:
        raise UsageError(f"--workers is {workers}, expected 1 or more")
    if name not in NAMES:
        raise unknown("executor", name, NAMES)
    return Place(name, Workers(workers) if name == "pool" else None, options)
