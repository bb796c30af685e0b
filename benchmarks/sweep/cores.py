"""How many processes can compute at once: cores and GPUs that this process may use."""

from __future__ import annotations

import os
from pathlib import Path

VISIBLE = "CUDA_VISIBLE_DEVICES"


def available_devices(nodes: Path = Path("/dev")) -> list[str]:
    """Return the names by which $CUDA_VISIBLE_DEVICES chooses each NVIDIA GPU that this process may use."""
    found = list(nodes.glob("nvidia[0-9]*"))
    told = os.environ.get(VISIBLE)
    if told is None:
        return [str(index) for index in range(len(found))]
    return [name for name in map(str.strip, told.split(",")) if name not in ("", "-1")] if found else []


def available_cores(
    topology: Path = Path("/sys/devices/system/cpu"), quota: Path = Path("/sys/fs/cgroup/cpu.max")
) -> int:
    """Physical cores this process may use: those of its CPU set, within a container's quota; at least 1."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    # Two hyper-threads of one core share its arithmetic units, so they count once.
    cores = len({_core(topology / f"cpu{cpu}" / "topology", cpu) for cpu in allowed})
    try:
        limit, period = quota.read_text().split()
        cores = min(cores, int(limit) // int(period))
    except (OSError, ValueError):
        pass  # no quota: the file is missing or says "max"
    return max(1, cores)


def _core(folder: Path, cpu: int) -> tuple[str, str]:
    try:
        return (folder / "physical_package_id").read_text().strip(), (folder / "core_id").read_text().strip()
    except OSError:
        return "cpu", str(cpu)
