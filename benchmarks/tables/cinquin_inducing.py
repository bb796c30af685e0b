"""Sparse GP of cinquin2024's tables 1, 6 and 4 by its inducing points, whose number the paper does not print, and by
their values, trained or in closed form.
"""

from __future__ import annotations

from dataclasses import replace

import datasets
from benchmarks.tables.cinquin import METHODS, PAPER, SMALL, varied
from benchmarks.tables.cinquin import recipe as chosen
from benchmarks.tables.recipes import Recipe
from benchmarks.tables.spec import Row

STEPS = 2000
POINTS = {f"{points:,} inducing points": points for points in (250, 500)}


def _row(label: str) -> Row:
    return Row(f"Sparse GP, {label}", "Sparse GP", METHODS["Sparse GP"], label)


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the row of table 1 with more inducing points."""
    found = chosen(row, dataset, protocol)
    return found and found.with_parts({"family": {"points": POINTS[row.variant]}})


def collapsed_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the row of table 1 with inducing values in closed form, as many steps, each on all training data."""
    found = chosen(row, dataset, protocol)
    return found and collapsed(found, dataset, protocol)


def collapsed(found: Recipe, dataset: str, protocol: str) -> Recipe:
    """Return the recipe of a sparse process with inducing values in closed form."""
    family = {**found.parts.get("family", {}), "name": "collapsed_gp"}
    steps = {"epochs": 5 if protocol == "smoke" else STEPS, "batch_size": datasets.describe(dataset, PAPER).n_train}
    parts = found.parts | {"family": family, "divergence": None}
    return replace(found, parts=parts).with_parts({"training": {**steps, "schedule": {"name": "cosine"}}})


TABLES = varied(
    "inducing", "Sparse GP by its number of inducing points", tuple(map(_row, POINTS)), ("wine", "kin8nm"), recipe
) + varied(
    "collapsed",
    "Sparse GP by the collapsed bound",
    (_row("collapsed bound"),),
    (*SMALL, "naval"),
    collapsed_recipe,
)
