"""Where runs are trained: here, in a pool of processes, on a SLURM cluster."""

from __future__ import annotations

from benchmarks.errors import UsageError, unknown
from benchmarks.executors.base import Executor, Job, RunOutcome
from benchmarks.executors.in_process import InProcess
from benchmarks.executors.pool import Pool

NAMES = ("inprocess", "pool", "slurm")


def make(name: str, workers: int | None = None) -> Executor:
    """The executor of a name; that of SLURM is made from its options instead. Raises UnknownName, and UsageError for a number of workers that cannot be."""
    if workers is not None and workers < 1:
        raise UsageError(f"--workers is {workers}, expected 1 or more")
    if name not in NAMES:
        raise unknown("executor", name, NAMES)
    if name == "slurm":
        from benchmarks.slurm.executor import Slurm  # here, since it needs plans, which need this module

        return Slurm()
    return InProcess() if name == "inprocess" else Pool(workers)


__all__ = ["NAMES", "Executor", "InProcess", "Job", "Pool", "RunOutcome", "make"]
