"""Where runs are trained: here, in a pool of processes, on a SLURM cluster."""

from __future__ import annotations

from typing import Any

from benchmarks.errors import UsageError, unknown
from benchmarks.executors.base import Executor, Job, RunOutcome
from benchmarks.executors.in_process import InProcess
from benchmarks.executors.pool import Pool

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
        from benchmarks.slurm.executor import Slurm  # here, since it needs plans, which need this module

        return Slurm(options, keep=True)
    return InProcess() if name == "inprocess" else Pool(workers)


__all__ = ["NAMES", "Executor", "InProcess", "Job", "Pool", "RunOutcome", "make"]
