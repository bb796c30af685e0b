"""Selection of hyper-parameters on validation subsets: from records of a selection table to a file of choices.

For each method and data set it is the candidate with the best validation score, averaged over folds, stored with all
scores. Tables read it by :mod:`benchmarks.tables.choices`.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import files, tables
from benchmarks.errors import UnknownName, unknown
from benchmarks.metrics.registry import metric
from benchmarks.records.config import run_key
from benchmarks.records.store import Store
from benchmarks.shapes import RunConfig
from benchmarks.state.failures import Failures
from benchmarks.tables import Cell, choices
from benchmarks.tables.spec import Table
from fvi_core.telling import plural

SUFFIX = "-selection"
"""End of the name of a table of candidates."""


def select(table: str, results: Path, state: Path, protocol: str | None = None) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the candidates with the best mean validation score, by method and data set, where every candidate has been
    tried.

    Uses one protocol (default: the selection's). A candidate with a failed run counts as tried and cannot be chosen;
    "failed" says why. Stored choices stay where a candidate has not been tried, and stored failures stay unless a
    record contradicts them.
    """
    selection, store, failures = _candidates(table), Store(results), Failures(state)
    before = choices.choices(table, selection.check_protocol(protocol))
    tried: dict[tuple[str, str], dict[str, Any]] = {}
    untried: set[tuple[str, str]] = set()
    lowest: set[tuple[str, str]] = set()
    for column in selection.columns:
        for row in selection.rows:
            runs = selection.cell_runs(row, column, protocol)
            if row.method is None or not runs:
                continue
            place, cell = (row.method, column.cell.dataset), column.cell_of(row)
            if metric(cell.metric).direction == "lower":
                lowest.add(place)
            entry = tried.setdefault(place, {"scores": {}, "failed": {}})
            scores = _scores(store, runs, cell)
            known = before.get(row.method, {}).get(column.cell.dataset, {}).get("failed", {}).get(row.variant)
            if len(scores) == len(runs):
                entry["scores"][row.variant] = mean(scores)
            elif reason := _failed(failures, runs) or known:
                entry["failed"][row.variant] = reason
            else:
                untried.add(place)
    selected: dict[str, dict[str, dict[str, Any]]] = {}
    for (method, dataset), entry in tried.items():
        old = before.get(method, {}).get(dataset)
        if (method, dataset) in untried or not entry["scores"]:
            new = old
        else:
            best = min if (method, dataset) in lowest else max
            new = {"chosen": best(entry["scores"], key=entry["scores"].get)} | {k: v for k, v in entry.items() if v}
        if new:
            selected.setdefault(method, {})[dataset] = new
    return selected


def _scores(store: Store, runs: list[RunConfig], cell: Cell) -> list[float]:
    """Return the cell's value for every run that has a record."""
    return [
        m["value"]
        for config in runs
        if (record := store.get(config)) is not None
        for m in record["metrics"]
        if (m["metric"], m["condition"]) == (cell.metric, cell.condition)
    ]


def _failed(failures: Failures, runs: list[RunConfig]) -> str:
    """Return how many runs failed and why the first did, or nothing. A killed process does not count."""
    failed = [failure for config in runs if (failure := failures.get(run_key(config)))]
    reasons = [failure["reason"] for failure in failed if not failure["guess"]]
    return f"{len(reasons)} of {plural(len(runs), 'run')}: {reasons[0]}" if reasons else ""


def _candidates(table: str) -> Table:
    """Return the table of a table's candidates. Raises UnknownName."""
    try:
        return tables.get(f"{table}{SUFFIX}")
    except UnknownName:
        known = [name.removesuffix(SUFFIX) for name in tables.names() if name.endswith(SUFFIX)]
        raise unknown("table with candidates to choose from", table, known) from None


def write(table: str, results: Path, state: Path, protocol: str | None = None) -> str:
    """Write the choices of one protocol of a table; return them in words. Raises OSError."""
    protocol = _candidates(table).check_protocol(protocol)
    selected = select(table, results, state, protocol)
    path = choices.path_of(table, protocol)
    files.write(path, json.dumps(selected, indent=1, sort_keys=True) + "\n")
    choices.choices.cache_clear()
    chosen = ((method, dataset, entry) for method, sets in selected.items() for dataset, entry in sets.items())
    lines = [f"{method}, {dataset}: {e['chosen']} ({e['scores'][e['chosen']]:.3f})" for method, dataset, e in chosen]
    lines += [
        f"{method}, {dataset}: {label} cannot be chosen, {reason}"
        for method, sets in selected.items()
        for dataset, entry in sets.items()
        for label, reason in entry.get("failed", {}).items()
    ]
    note = f"wrote {path}; commit it before making runs that use it, since records say whether their code was committed"
    return "\n".join([*lines, note])
