"""Sweeps on a SLURM cluster."""

from __future__ import annotations

from benchmarks.errors import BenchmarkError


class SlurmError(BenchmarkError):
    """Error: SLURM's commands do not answer or refuse, or what jobs need cannot be written or read."""

    exit_code = 2  # nothing was started
