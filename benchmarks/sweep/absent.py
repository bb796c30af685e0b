"""Rows and columns of tables whose plug-in or data are absent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.metrics.registry import METRICS
from fvi_core.spelling import meant


def lacking(tables: Sequence[Any], protocol: str | None) -> list[str]:
    """Return a sentence for every row whose plug-in or data are absent, so that its runs cannot be planned, and for
    every column whose metric is not known."""
    rows = (
        f"table {table.name}, row {row.label}: {reason}"
        for table in tables
        for row in table.rows
        for dataset in table.datasets
        if (reason := table.lacks(row, dataset, protocol))
    )
    columns = (sentence for table in tables for sentence in _unknown_metrics(table))
    return list(dict.fromkeys([*rows, *columns]))


def _unknown_metrics(table: Any) -> Iterator[str]:
    if not any(row.method for row in table.rows):
        return
    for column in table.columns:
        if (name := column.cell.metric) not in METRICS:
            reason = "; ".join(filter(None, (f"no metric {name!r}", meant(name, METRICS))))
            yield f"table {table.name}, column {column.label}: plug-in absent: {reason}"
