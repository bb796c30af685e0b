"""Sparse GP of cinquin2024's tables 1, 6 and 4 by its number of inducing points, which the paper does not print."""

from __future__ import annotations

from benchmarks.tables.cinquin import METHODS, varied
from benchmarks.tables.cinquin import recipe as chosen
from benchmarks.tables.recipes import Recipe
from benchmarks.tables.spec import Row

POINTS = {f"{points:,} inducing points": points for points in (250, 500)}
ROWS = tuple(Row(f"Sparse GP, {label}", "Sparse GP", METHODS["Sparse GP"], label) for label in POINTS)


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the row of table 1 with more inducing points."""
    found = chosen(row, dataset, protocol)
    return found and found.with_parts({"family": {"points": POINTS[row.variant]}})


TABLES = varied("inducing", "Sparse GP by its number of inducing points", ROWS, ("wine", "kin8nm"), recipe)
