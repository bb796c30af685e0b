"""Tables whose runs differ in split or seed alone, and a suite of them: small enough to compute by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.records.config import ALWAYS, PARTS, SCHEMA
from benchmarks.records.store import Store
from benchmarks.tables import Cell, Column, Row, Table

__all__ = ["Cell", "Column", "FakeSuite", "FakeTable", "Row", "config", "fake_table", "on_own_files"]


@dataclass(frozen=True)
class FakeTable(Table):
    """Table with n_runs splits of every method, or with n_runs seeds on one split.

    planned: the methods by data set; without it all methods on all.
    """

    n_runs: int = 3
    one_split: bool = False
    planned: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def row_runs(self, row: Row, dataset: str, protocol: str, seeds: Any = None) -> list[dict[str, Any]]:
        if row.method is None or row.method not in self.planned.get(dataset, (row.method,)):
            return []
        chosen = [run for run in range(self.n_runs) if seeds is None or run in seeds]
        return [config(row.method, dataset, protocol, 0 if self.one_split else run, run) for run in chosen]

    def replicates(self, protocol: str | None = None) -> int:
        return self.n_runs


def fake_table(name: str, rows: tuple[Row, ...], columns: tuple[Column, ...], **changes: Any) -> FakeTable:
    """Return a table with two protocols, paper and short."""
    given = {"title": "A table for tests", "protocols": ("paper", "short"), **changes}
    return FakeTable(name=name, rows=rows, columns=columns, recipe=lambda *_: None, **given)


def config(
    method: str, dataset: str, protocol: str = "paper", split: int = 0, seed: int | None = None
) -> dict[str, Any]:
    """A configuration with as little as possible in its parts; the seed is the split's number without one."""
    return {
        "schema": SCHEMA, "method": method, "protocol": protocol, "seed": split if seed is None else seed,
        "dataset": {"name": dataset, "version": "fake", "scheme": "", "split": split, "content": {}},
        "parts": dict.fromkeys(PARTS) | {name: {"name": "a"} for name in ALWAYS},
        "sources": {}, "evaluation": {"samples": 10, "sets": ["test"], "content": {}},
    }  # fmt: skip


def on_own_files(results: Path, subset: str, more: float = 0.0) -> list[Path]:
    """Write a copy of every record as of a user's own file of a subset, with ``more`` added to every metric. Return the
    files of the first records, which stay.
    """
    store, paths = Store(results), list(results.rglob("*.json"))
    for record in map(store.read, paths):
        record["config"]["dataset"]["content"] = {subset: "a" * 16}
        metrics = [row | {"value": row["value"] + more} for row in record["metrics"]]
        store.write(store.make(record["config"], metrics, record["curves"], record["provenance"]))
    return paths


class FakeSuite:
    """Suite of given tables."""

    def __init__(self, *tables: Table) -> None:
        self.tables = {table.name: table for table in tables}

    def table(self, name: str) -> Table:
        return self.tables[name]

    extended = table

    def table_names(self) -> list[str]:
        return list(self.tables)

    def catalogue(self) -> dict[str, Any]:
        return {}
