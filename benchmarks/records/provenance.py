"""Provenance of a record: code, versions, machine.

``lost_commits.csv`` lists commits that records name and the repository's history lacks.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CODE = ("fvi_core", "datasets", "benchmarks")
CPUINFO = Path("/proc/cpuinfo")
CPU_NUMBERS = {"family": "cpu family", "model": "model", "stepping": "stepping"}
GPUS = Path("/proc/driver/nvidia/gpus")
GPU_DEVICES = (Path("/dev/nvidiactl"), Path("/dev/kfd"))
SNAPSHOT = "snapshot.json"  # lies beside the packages in a copy of the code that jobs use
PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "numba")  # numba: corrupted images


def git(*arguments: str, root: Path = ROOT) -> str | None:
    """Return the output of a git command at the checkout, or None where there is no git or no checkout."""
    try:
        # Without locks: a process that is killed in `git status` would leave its lock in the checkout.
        done = subprocess.run(
            ["git", "--no-optional-locks", *arguments], cwd=root, capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def code(root: Path = ROOT) -> tuple[str, bool | None]:
    """Return (commit, dirty) of the code, looked up once per process, at the first call.

    Dirty: a tracked file of the folders that determine results differs from the commit; results and untracked files do
    not count. Outside a checkout the commit is $FVI_COMMIT or 'unknown', and dirty is None; a snapshot has both stored.
    """
    with contextlib.suppress(OSError, ValueError, KeyError):
        snapshot = json.loads((root / SNAPSHOT).read_text())
        return snapshot["commit"], snapshot["dirty"]
    # An exported copy may lie inside a checkout of something else, whose commit says nothing about this code.
    if git("ls-files", "--error-unmatch", "benchmarks/records/provenance.py", root=root) is None:
        return os.environ.get("FVI_COMMIT") or "unknown", None
    commit = git("rev-parse", "HEAD", root=root)
    changed = git("status", "--porcelain", "--untracked-files=no", "--", *CODE, root=root)
    return commit or os.environ.get("FVI_COMMIT") or "unknown", None if changed is None else bool(changed)


@cache
def versions() -> dict[str, str]:
    """Return versions of Python and of the packages that determine results, from metadata, without imports."""
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


@cache
def cpu() -> str:
    """Return the processor's model, as precisely as the system reports it: virtual machines hide the marketing name's
    number."""
    first = ""
    with contextlib.suppress(OSError):
        first = CPUINFO.read_text().partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    facts = {name.strip(): value.strip() for name, colon, value in pairs if colon}
    name = facts.get("model name") or platform.processor() or platform.machine()
    numbers = [f"{what} {facts[key]}" for what, key in CPU_NUMBERS.items() if key in facts]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def expected_device() -> str:
    """Return the device that a process here would train on, without loading torch; "a GPU" for a nameless one."""
    if "torch" in sys.modules:
        return device()
    gpus = sorted(GPUS.glob("*/information"))
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1") or not (gpus or any(path.exists() for path in GPU_DEVICES)):
        return "cpu"
    with contextlib.suppress(OSError, IndexError):
        model = [line for line in gpus[0].read_text().splitlines() if line.startswith("Model:")]
        return model[0].partition(":")[2].strip()
    return "a GPU"


def device() -> str:
    """Return the device that this process trains on."""
    torch = sys.modules.get("torch")
    return torch.cuda.get_device_name() if torch and torch.cuda.is_available() else "cpu"


def collect() -> dict[str, Any]:
    """Return the provenance that all runs of this process share."""
    commit, dirty = code()
    torch = sys.modules.get("torch")
    return {
        "commit": commit,
        "dirty": dirty,
        "versions": versions(),
        "device": device(),
        "platform": f"{platform.system()} {platform.release().partition('-')[0]} {platform.machine()}",
        "cpu": cpu(),
        "threads": torch.get_num_threads() if torch else int(os.environ.get("OMP_NUM_THREADS") or 1),
    }


def stamp() -> dict[str, Any]:
    """Return commit, state and time of the code that runs now."""
    commit, dirty = code()
    return {"commit": commit, "dirty": dirty, "time": now()}


def now() -> str:
    """Return the time in UTC, ISO 8601 to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def digests(about: Mapping[str, Any]) -> dict[str, str]:
    """Return the digests of a run's data that its provenance has, by part: "" for its split."""
    named = {"": "fingerprint", "training and contexts": "training_fingerprint"}
    found = {part: about[name] for part, name in named.items() if name in about}
    return found | {f"set {name}": digest for name, digest in sorted(about.get("data", {}).items())}


LOST = Path(__file__).parent / "lost_commits.csv"


@cache
def lost_commits() -> dict[str, str]:
    """Return, by lost commit, the commit of the history that brought its code and later changes."""
    with LOST.open(encoding="utf-8", newline="") as stream:
        return {row["commit"]: row["code"] for row in csv.DictReader(stream)}


def lost_remark(commit: str) -> str:
    """Return the remark that follows a record's commit; empty if the history has the commit."""
    instead = lost_commits().get(commit)
    return f" (not in this history; its code came with {instead[:7]})" if instead else ""
