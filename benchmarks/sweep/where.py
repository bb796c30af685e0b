"""Where runs are trained, by name: here, in a pool of processes, on a SLURM cluster."""

from __future__ import annotations

from typing import Any

from benchmarks.errors import UsageError, unknown
from benchmarks.sweep.executors.in_process import InProcess
from benchmarks.sweep.executors.pool import Pool
from benchmarks.sweep.groups import Executor

NAMES = ("inprocess", "pool", "slurm")


def make(name: str, workers: int | None = None, options: Any = None) -> Executor:
    """The executor of a name; options: those of SLURM, whose jobs outlive this process.

    Raises UnknownName, and UsageError for a number of workers that cannot be.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"--workers is {workers}, expected 1 or more")
    if name not in NAMES:
        raise unknown("executor", name, NAMES)
    if name == "slurm":
        from benchmarks.sweep.slurm.executor import Slurm  # here, since only those who have a cluster need it

        return Slurm(options, keep=True)
    return InProcess() if name == "inprocess" else Pool(workers)
