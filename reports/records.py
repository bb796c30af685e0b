"""The records that reports read: each file at most once, and nothing written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.config import run_key
from benchmarks.failures import Failures
from benchmarks.store import RecordError, Store


class Records:
    """The records under a results folder, by configuration.

    A folder that is not there holds no records. A file that cannot be used is a problem of its cells, not an error.
    With a state folder, runs that failed are told from runs that were not made.
    """

    def __init__(self, folder: Path | str, state: Path | str | None = None) -> None:
        self.store = Store(folder)
        self.failed = set(Failures(state).keys()) if state else set()
        self._read: dict[str, dict[str, Any] | str | None] = {}

    def get(self, config: dict[str, Any]) -> dict[str, Any] | str | None:
        """The record of a run, None where there is none, or a few words on why it cannot be used."""
        key = run_key(config)
        if key not in self._read:
            try:
                self._read[key] = self.store.get(config) or ("failed run" if key in self.failed else None)
            except RecordError:
                self._read[key] = "unreadable record"
        return self._read[key]

    def value(self, config: dict[str, Any], dataset: str, condition: str, metric: str) -> float | str | None:
        """One metric of one run, as in the record; None without a record, or why the record does not give it."""
        record = self.get(config)
        if not isinstance(record, dict):
            return record
        for row in record["metrics"]:
            if (row["dataset"], row["condition"], row["metric"]) == (dataset, condition, metric):
                stale = record["metric_versions"].get(metric, 1) < self.store.version(metric)
                return "stale record" if stale else float(row["value"])
        return "not in the record"
