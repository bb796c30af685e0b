"""Status of each published cell, for the site and the coverage."""

from __future__ import annotations

from collections.abc import Container, Mapping

from reports.aggregate import CellResult, TableResult

STATUSES = {
    "reproduced": "reproduced: a test tells no difference",
    "shown": "differs, cause shown by an experiment here",
    "differs": "differs",
    "uninformative": "uninformative: the test would agree with any published row",
    "undecided": "no verdict: one run, splits missing, no published error, or a time of another machine",
    "reduced": "recorded under a reduced protocol only",
    "missing": "missing",
}


def statuses(
    results: Mapping[str, TableResult], causes: Container[tuple[str, ...]]
) -> dict[tuple[str, ...], tuple[str, CellResult]]:
    """Return the status of every published cell with records, by key, and the cell behind it.

    results: the table by protocol, without protocol smoke; causes: keys of cells whose difference is explained if there
    is one. Protocol paper precedes the reduced ones.
    """
    found: dict[tuple[str, ...], tuple[str, CellResult]] = {}
    for protocol in sorted(results, key=lambda name: name == "paper"):
        for cell in results[protocol].flat:
            if cell.published and cell.values:
                status = cell.status if protocol == "paper" else "reduced"
                explained = status == "differs" and cell.published.key in causes
                found[cell.published.key] = "shown" if explained else status, cell
    return found
