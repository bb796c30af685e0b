"""Hyper-parameters chosen on validation subsets: from the records of a selection table to a file of choices.

The best candidate of each method and data set by its validation score, averaged over folds, with all the scores that it
won against. Tables read it by :mod:`benchmarks.tables.choices`.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import files, tables
from benchmarks.records.store import Store
from benchmarks.tables import choices


def select(table: str, results: Path, protocol: str | None = None) -> dict[str, dict[str, dict[str, Any]]]:
    """The candidates with the best mean validation score, among data sets whose every candidate has all its folds.

    Those of one protocol; without it of the selection's default.
    """
    selection, store = tables.get(f"{table}-selection"), Store(results)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    tried: dict[tuple[str, str], set[str]] = {}
    for column in selection.columns:
        for row in selection.rows:
            runs = selection.cell_runs(row, column, protocol)
            cell, records = column.cell_of(row), [store.get(config) for config in runs]
            scores = [
                m["value"]
                for record in records
                if record is not None
                for m in record["metrics"]
                if (m["metric"], m["condition"]) == (cell.metric, cell.condition)
            ]
            if row.method is not None and records:
                tried.setdefault((row.method, column.cell.dataset), set()).add(row.variant)
            if row.method is not None and records and len(scores) == len(records):
                entry = found.setdefault(row.method, {}).setdefault(column.cell.dataset, {"scores": {}})
                entry["scores"][row.variant] = mean(scores)
    for method, sets in found.items():
        for dataset in [d for d, entry in sets.items() if set(entry["scores"]) != tried[method, d]]:
            del sets[dataset]
        for entry in sets.values():
            entry["chosen"] = max(entry["scores"], key=entry["scores"].get)
    return found


def write(table: str, results: Path, protocol: str | None = None) -> str:
    """Write the choices of one protocol of a table; what was chosen, in words. Raises OSError."""
    protocol = tables.get(f"{table}-selection").check_protocol(protocol)
    found = select(table, results, protocol)
    path = choices.path_of(table, protocol)
    files.write(path, json.dumps(found, indent=1, sort_keys=True) + "\n")
    chosen = ((method, dataset, entry) for method, sets in found.items() for dataset, entry in sets.items())
    lines = [f"{method}, {dataset}: {e['chosen']} ({e['scores'][e['chosen']]:.3f})" for method, dataset, e in chosen]
    told = f"wrote {path}; commit it before the runs that it leads to: a record says whether its tree was committed"
    return "\n".join([*lines, told])
