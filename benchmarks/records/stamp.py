"""Stamps: digests of what a result depends on, so that what is unchanged is not made again.

A digest names everything that the result depends on. It is taken before that is read, so that no stamp is newer than
its result. :class:`Checked` keeps the heads of records that were checked before.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import files
from benchmarks.records.provenance import ROOT
from fvi_core import plugins

PASSED_OVER = {"__pycache__", "output"}


def digest(parts: Iterable[Any]) -> str:
    """Return the SHA-256 of parts in plain JSON."""
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()


@cache
def code(*rooms: str, root: Path = ROOT) -> str:
    """Return the digest of the files of some rooms (code, published numbers, notes, templates), and of the names and
    versions of Python and all installed packages."""
    paths = (path for room in rooms for path in (root / room).rglob("*") if path.is_file())
    counted = sorted(path for path in paths if not PASSED_OVER & set(path.relative_to(root).parts))
    packages = {each.name for place in sys.path for each in Path(place).glob("*.dist-info")}
    content = [(path.relative_to(root).as_posix(), files.digest_or_reason(path)) for path in counted]
    return digest([sys.version, sorted(packages), content])


def read(path: Path, digest: str) -> Any:
    """Return the value in a file that :func:`write` wrote under this digest; None where there is none, the digest was
    another or empty, or the file is damaged."""
    with suppress(OSError, ValueError):
        head, _, text = path.read_text(encoding="utf-8").partition("\n")
        if digest and head == _sum(digest, text):
            return json.loads(text)
    return None


def write(path: Path, digest: str, value: Any) -> None:
    """Write a value, in plain JSON, under a digest of all that it depends on; nothing under an empty one, which no
    :func:`read` finds. Raises OSError."""
    if digest:
        text = json.dumps(value)
        files.write(path, f"{_sum(digest, text)}\n{text}")


def _sum(digest: str, text: str) -> str:
    return hashlib.sha256(f"{digest}\n{text}".encode()).hexdigest()


def plugged() -> bool:
    """Return whether there are plug-ins, whose dependencies nobody knows."""
    return any(True for _ in plugins.find())


ROOMS = ("fvi_core", "datasets", "benchmarks")
"""Rooms whose code decides whether a record is valid."""
TICK = 2_000_000_000  # nanoseconds: the coarsest clock of a file system


class Checked:
    """Keys and metric versions of valid records, by file name and either the SHA-256 of the whole file or its place.

    They count for the same code only, and not with plug-ins, whose metrics may have bounds of their own. metrics: name
    of the suite's metrics. A damaged file is ignored.
    """

    def __init__(self, path: Path, metrics: str) -> None:
        self._path, self._stamp = path, "" if plugged() else digest([code(*ROOMS), metrics])
        self._began = time.time_ns()
        self._heads: dict[str, list[Any]]
        self._versions: list[dict[str, int]]
        self._heads, self._versions = read(path, self._stamp) or ({}, [])
        self._new = False

    def get(self, file: str, mark: str) -> dict[str, Any] | None:
        """Return key and metric versions of a record that is known to be valid; None for another SHA-256 or place."""
        sha256, place, key, versions = self._heads.get(file, ("", "", "", 0))
        known = mark and mark in (sha256, place)
        return {"key": key, "metric_versions": self._versions[versions]} if known else None

    def add(self, file: str, sha256: str, head: dict[str, Any], place: str = "") -> None:
        """Note a valid record; place: of the file before it was read."""
        if head["metric_versions"] not in self._versions:
            self._versions.append(head["metric_versions"])
        self._heads[file] = [sha256, place, head["key"], self._versions.index(head["metric_versions"])]
        self._new = True

    def save(self) -> None:
        """Write what is new, where the folder exists; raises nothing."""
        if self._new and self._path.parent.is_dir():
            heads = {
                file: [sha256, self._lasting(place), *more] for file, (sha256, place, *more) in self._heads.items()
            }
            with suppress(OSError):
                write(self._path, self._stamp, [heads, self._versions])

    def _lasting(self, place: str) -> str:
        """Return a place, empty for a file so new that a change in the same tick of its clock would not show."""
        changed = max(map(int, place.split()[:2]), default=0)
        return place if changed < self._began - TICK else ""


def place(path: str) -> str:
    """Return the times, size and place on disk of a file, which differ once it has changed; empty without the file."""
    with suppress(OSError, ValueError):
        about = os.stat(path)
        return f"{about.st_mtime_ns} {about.st_ctime_ns} {about.st_size} {about.st_ino} {about.st_dev}"
    return ""
