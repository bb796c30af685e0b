"""Reading of many records: the common part of their metric rows is parsed once, then only values."""

from __future__ import annotations

from array import array
from pathlib import Path

from benchmarks.records.form import HEAD_ONLY, RecordError, parse
from benchmarks.records.rows import Cell, RowReader, Rows
from benchmarks.records.store import Store, read_bytes
from benchmarks.shapes import Record

__all__ = ["Cell", "RecordReader", "Rows"]


class RecordReader:
    """Reader of records with metric rows as columns. store: gives the metrics' bounds."""

    def __init__(self, store: Store | None = None) -> None:
        self._rows = RowReader() if store is None else store.rows

    def read(self, path: Path) -> tuple[Record, Rows, array]:
        """Return a record without curves and metric rows; its rows; their values. Raises RecordError."""
        data = read_bytes(path)
        if data is None:
            raise RecordError(f"{path}: there is no such file")
        record, rows, values = parse(data, path, HEAD_ONLY, self._rows)
        record["metrics"] = []
        return record, rows, values
