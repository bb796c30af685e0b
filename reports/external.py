"""Rows of external predictions, in every report of a table."""

from __future__ import annotations

from typing import Any

from benchmarks.suite import Suite
from benchmarks.tables.external import recorded, with_brought
from reports.records import Records


def with_rows_brought(tables: list[Any], suite: Suite, records: Records) -> list[Any]:
    """Return the tables with an extra row for every method with external predictions."""
    every = map(suite.table, suite.table_names())  # the catalogue of methods would load torch
    own = {row.method for table in every for row in table.rows if row.method}
    configs = recorded(records.store, own)
    return [with_brought(table, configs) for table in tables] if configs else tables
