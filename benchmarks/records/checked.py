"""Heads of records that were checked before, kept in a file from one process to the next."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.records import stamp

ROOMS = ("fvi_core", "datasets", "benchmarks")
"""Rooms whose code decides whether a record is valid."""


class Checked:
    """Keys and metric versions of valid records, by file name and SHA-256 of the whole file.

    They count for the same code only, and not with plug-ins, whose metrics may have bounds of their own. metrics: name
    of the suite's metrics. A damaged file is ignored.
    """

    def __init__(self, path: Path, metrics: str) -> None:
        self._path, self._stamp = path, "" if stamp.plugged() else stamp.digest([stamp.code(*ROOMS), metrics])
        self._heads: dict[str, list[Any]]
        self._versions: list[dict[str, int]]
        self._heads, self._versions = stamp.read(path, self._stamp) or ({}, [])
        self._new = False

    def get(self, file: str, sha256: str) -> dict[str, Any] | None:
        """Return key and metric versions of a record that is known to be valid; None for another file or content."""
        known, key, versions = self._heads.get(file, ("", "", 0))
        return {"key": key, "metric_versions": self._versions[versions]} if known == sha256 else None

    def add(self, file: str, sha256: str, head: dict[str, Any]) -> None:
        """Note a valid record."""
        if head["metric_versions"] not in self._versions:
            self._versions.append(head["metric_versions"])
        self._heads[file] = [sha256, head["key"], self._versions.index(head["metric_versions"])]
        self._new = True

    def save(self) -> None:
        """Write what is new, where the folder exists; raises nothing."""
        if self._new and self._path.parent.is_dir():
            with suppress(OSError):
                stamp.write(self._path, self._stamp, [self._heads, self._versions])
