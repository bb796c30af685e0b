"""Rows and columns of tables whose plug-in or data are absent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.metrics.registry import METRICS
from fvi_core.spelling import meant


def lacking(tables: Iterable[Any], protocol: str | None) -> list[str]:
    """Return a sentence for every row whose plug-in or data are absent, so that its runs cannot be planned, and for
    every column whose metric is not known."""
    tables = list(tables)
    places = ((table, row, dataset) for table in tables for row in table.rows for dataset in table.datasets)
    sentences = (
        f"table {table.name}, row {row.label}: {reason}"
        for table, row, dataset in places
        if (reason := table.lacks(row, dataset, protocol))
    )
    return [*dict.fromkeys(sentences), *dict.fromkeys(line for table in tables for line in _unknown_metrics(table))]


def _unknown_metrics(table: Any) -> Iterator[str]:
    if not any(row.method for row in table.rows):
        return
    for column in table.columns:
        if (name := column.cell.metric) not in METRICS:
            reason = "; ".join(filter(None, (f"no metric {name!r}", meant(name, METRICS))))
            yield f"table {table.name}, column {column.label}: plug-in absent: {reason}"
