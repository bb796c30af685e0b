"""Many records at once: what their metric rows have in common is parsed once, and of the others only the values."""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from dataclasses import dataclass
from pathlib import Path

from benchmarks.records.store import HEAD_ONLY, RecordError, parse, read_bytes, section
from benchmarks.shapes import Record

Cell = tuple[str, str, str]  # data set, condition, metric
VALUE = re.compile(rb'"value": (-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?), "n": ')


@dataclass(frozen=True, eq=False)
class Rows:
    """What the metric rows of a record say but for their values, in order; records with the same rows share one."""

    cells: tuple[Cell, ...]
    n: tuple[int, ...]


class Columns:
    """Reads records, their metric rows as columns."""

    def __init__(self) -> None:
        self._known: dict[bytes, Rows] = {}  # by what stands around the values, which is long

    def read(self, path: Path) -> tuple[Record, Rows, array]:
        """A record without curves and metric rows; what those rows are of; their values. Raises RecordError."""
        data = read_bytes(path)
        if data is None:
            raise RecordError(f"{path}: there is no such file")
        around, values = _apart(data[section(data, "metrics")])
        rows = self._known.get(around)
        if rows is not None and all(map(math.isfinite, values)):
            return parse(data, path, HEAD_ONLY), rows, values
        record = parse(data, path, ("curves",))  # the first record with these rows: all that they say is checked
        found, record["metrics"] = record["metrics"], []
        rows = Rows(
            tuple((row["dataset"], row["condition"], row["metric"]) for row in found), tuple(row["n"] for row in found)
        )
        parsed = array("d", (row["value"] for row in found))
        if parsed == values:
            rows = self._known.setdefault(around, rows)
        return record, rows, parsed


def _apart(text: bytes) -> tuple[bytes, array]:
    """A digest of what stands around the values of metric rows, and the values."""
    parts = VALUE.split(text)
    return hashlib.sha256(b"?".join(parts[::2])).digest(), array("d", map(float, parts[1::2]))
