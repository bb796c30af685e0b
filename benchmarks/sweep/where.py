"""Where runs are trained, by name: in this process, by a pool of workers on this machine, on a SLURM cluster."""

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
    """Where runs are trained. workers: None in this process and on a cluster; options: of a cluster."""

    name: str = "inprocess"
    workers: Workers | None = None
    options: Options | None = None

    @property
    def size(self) -> int:
        """How many run groups are trained at once, where that is this process's to say."""
        return self.workers.count if self.workers else 1

    @property
    def outlives(self) -> bool:
        """Whether runs go on elsewhere when this process has ended."""
        return self.name == "slurm"


def make(name: str, workers: int | None = None, options: Options | None = None) -> Place:
    """Return the place of a name. Raises UnknownName, and UsageError for a number of workers that cannot be."""
    if workers is not None and workers < 1:
        raise UsageError(f"--workers is {workers}, expected 1 or more")
    if name not in NAMES:
        raise unknown("executor", name, NAMES)
    return Place(name, Workers(workers) if name == "pool" else None, options)
