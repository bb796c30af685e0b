"""Hyper-parameters chosen on validation parts: from the records of a selection table to a file of choices.

    python -m benchmarks run cinquin2024-1-selection
    python -m benchmarks.selection cinquin2024-1

The second command averages each candidate's validation score over folds and writes ``benchmarks/selected/<table>.json``: the best
candidate of each method and data set, with all the scores that it won against.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import files

FOLDER = Path(__file__).parent / "selected"


@cache
def choices(table: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Method -> data set -> {"chosen", "scores"}; empty where nothing has been selected."""
    path = FOLDER / f"{table}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def chosen(table: str, method: str, dataset: str) -> str | None:
    """The selected candidate's label, or None."""
    return choices(table).get(method, {}).get(dataset, {}).get("chosen")


def select(table: str, results: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """The candidates with the best mean validation score, among data sets whose every candidate has all its folds."""
    from benchmarks import tables
    from benchmarks.store import Store

    selection, store = tables.get(f"{table}-selection"), Store(results)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for column in selection.columns:
        for row in selection.rows:
            records = [store.get(config) for config in selection.cell_runs(row, column)]
            scores = [m["value"] for record in records if record is not None for m in record["metrics"]
                      if (m["metric"], m["condition"]) == (column.cell.metric, column.cell.condition)]
            if len(scores) == len(records):
                found.setdefault(row.method, {}).setdefault(column.cell.dataset, {"scores": {}})["scores"][row.variant] = mean(scores)
    for method, sets in found.items():
        candidates = {row.variant for row in selection.rows if row.method == method}
        for dataset in [d for d, entry in sets.items() if set(entry["scores"]) != candidates]:
            del sets[dataset]
        for entry in sets.values():
            entry["chosen"] = max(entry["scores"], key=entry["scores"].get)
    return found


def main(arguments: list[str]) -> int:
    """Write the choices of one table."""
    if len(arguments) not in (1, 2):
        print("usage: python -m benchmarks.selection TABLE [RESULTS]", file=sys.stderr)
        return 2
    table, results = arguments[0], Path(arguments[1] if len(arguments) == 2 else Path(__file__).parent.parent / "results")
    found = select(table, results)
    path = FOLDER / f"{table}.json"
    files.write(path, json.dumps(found, indent=1, sort_keys=True) + "\n")
    for method, sets in found.items():
        for dataset, entry in sets.items():
            print(f"{method}, {dataset}: {entry['chosen']} ({entry['scores'][entry['chosen']]:.3f})")
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
