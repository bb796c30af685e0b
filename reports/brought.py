"""Rows of predictions that were made elsewhere, in every report of a table."""

from __future__ import annotations

from typing import Any

from benchmarks.suite import Suite
from benchmarks.tables.brought import recorded, with_brought
from reports.records import Records


def with_rows_brought(tables: list[Any], suite: Suite, records: Records) -> list[Any]:
    """The tables with a row more for every method that predictions were brought of."""
    configs = recorded(records.store, suite.catalogue())
    return [with_brought(table, configs) for table in tables] if configs else tables
