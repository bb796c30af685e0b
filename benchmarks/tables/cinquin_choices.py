"""Activation, learning rate, kernel and prior of cinquin2024's networks in tables 1, 6 and 4: every candidate's numbers
on test folds."""

from __future__ import annotations

from benchmarks.tables.cinquin import METHODS, varied
from benchmarks.tables.cinquin_candidates import CANDIDATES, SMALL, candidate
from benchmarks.tables.recipes import Recipe
from benchmarks.tables.spec import Row

LABELS = ("MFVI", "VIP", "Laplace", "GWI")


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the trainings of the selection on all folds, evaluated on test folds too; nothing is chosen here."""
    return candidate(row.made_by, row.variant if protocol == "paper" else None, dataset, protocol)


TABLES = varied(
    "candidates",
    "Networks by activation, learning rate, kernel and prior",
    tuple(
        Row(f"{label}, {name}", label, METHODS[label], name)
        for label in LABELS
        for name in CANDIDATES["paper"][METHODS[label]]
    ),
    SMALL,
    recipe,
)
