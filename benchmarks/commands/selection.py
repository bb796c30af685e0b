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


def select(table: str, results: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """The candidates with the best mean validation score, among data sets whose every candidate has all its folds."""
    selection, store = tables.get(f"{table}-selection"), Store(results)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for column in selection.columns:
        for row in selection.rows:
            cell, records = column.cell_of(row), [store.get(config) for config in selection.cell_runs(row, column)]
            scores = [
                m["value"]
                for record in records
                if record is not None
                for m in record["metrics"]
                if (m["metric"], m["condition"]) == (cell.metric, cell.condition)
            ]
            if row.method is not None and len(scores) == len(records):
                entry = found.setdefault(row.method, {}).setdefault(column.cell.dataset, {"scores": {}})
                entry["scores"][row.variant] = mean(scores)
    for method, sets in found.items():
        candidates = {row.variant for row in selection.rows if row.method == method}
        for dataset in [d for d, entry in sets.items() if set(entry["scores"]) != candidates]:
            del sets[dataset]
        for entry in sets.values():
            entry["chosen"] = max(entry["scores"], key=entry["scores"].get)
    return found


def write(table: str, results: Path) -> str:
    """Write the choices of one table; what was chosen, in words. Raises OSError."""
    found = select(table, results)
    path = choices.FOLDER / f"{table}.json"
    files.write(path, json.dumps(found, indent=1, sort_keys=True) + "\n")
    chosen = ((method, dataset, entry) for method, sets in found.items() for dataset, entry in sets.items())
    lines = [f"{method}, {dataset}: {e['chosen']} ({e['scores'][e['chosen']]:.3f})" for method, dataset, e in chosen]
    return "\n".join([*lines, f"wrote {path}"])
