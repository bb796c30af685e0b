"""Trained parameters and predictions in the state folder, and their size limit.

    <state>/parameters/<training key>.npz    trained parameters
    <state>/artifacts/<run key>.npz          predictions on the evaluation sets

Together they take at most $FVI_STATE_GB gigabytes (default 20); the least recently used files are removed first.
"""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import files
from benchmarks.errors import setting

PARAMETERS, PREDICTIONS = "parameters", "artifacts"
FOLDERS = (PARAMETERS, PREDICTIONS)
VARIABLE, GIGABYTES = "FVI_STATE_GB", 20.0
DAMAGE = (OSError, ValueError, KeyError, TypeError, EOFError, MemoryError, NotImplementedError, RuntimeError,
          zipfile.BadZipFile, zlib.error)  # fmt: skip
"""Errors that reading a damaged file may raise."""


def parameters_path(state: Path | str, key: str) -> Path:
    """Path of a training's parameters, existing or not; the key of one of its runs also does."""
    return Path(state) / PARAMETERS / f"{key.partition('-')[0]}.npz"


def predictions_path(state: Path | str, key: str) -> Path:
    """Path of a run's predictions, existing or not."""
    return Path(state) / PREDICTIONS / f"{key}.npz"


def made_with(state: Path | str, key: str) -> dict[str, Any]:
    """Return the conditions under which a training's parameters were made, without loading these; none without usable
    parameters."""
    try:
        with open(parameters_path(state, key), "rb", opener=files.regular) as opened, np.load(opened) as file:
            return dict(json.loads(file["about"].tobytes())["made"])
    except DAMAGE:
        return {}


def use(path: Path) -> None:
    """Note that a file was used; raises nothing."""
    with contextlib.suppress(OSError):
        os.utime(path)


def sizes(state: Path | str) -> dict[str, tuple[int, int]]:
    """Return files and bytes of each folder under the limit."""
    totals = {}
    for name in FOLDERS:
        in_folder = [stat.st_size for _, stat in _files(Path(state) / name)]
        totals[name] = len(in_folder), sum(in_folder)
    return totals


def limit() -> float:
    """Return the limit in bytes. Raises :class:`UsageError`."""
    return setting(VARIABLE, GIGABYTES, "gigabytes") * 1e9


def bound(state: Path | str) -> int:
    """Remove the least recently used files until the rest is within the limit; return how many."""
    held = [(path, stat) for name in FOLDERS for path, stat in _files(Path(state) / name)]
    over, removed = sum(stat.st_size for _, stat in held) - limit(), 0
    for path, stat in sorted(held, key=lambda pair: pair[1].st_mtime):
        if over <= 0:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        over, removed = over - stat.st_size, removed + 1
    return removed


def _files(folder: Path) -> list[tuple[Path, os.stat_result]]:
    listed = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.is_file(follow_symlinks=False) and not entry.name.startswith("."):
                    listed.append((Path(entry.path), entry.stat(follow_symlinks=False)))
    return listed
