"""cinquin2024 table 9 and pequignot2020 table 7: seconds of training, from the records of other tables."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import cinquin, pequignot, pequignot_posteriors
from benchmarks.tables.recipes import Recipe
from benchmarks.tables.spec import Cell, Column, Row, Table

SECONDS = "training_seconds"


def _hmc_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the recipe of experiment 2; for HMC the recipe of experiment 1, which has the small sets only."""
    if row.made_by != "HMC":
        return pequignot.recipe(row, dataset, protocol)
    return pequignot_posteriors.recipe(row, dataset, protocol) if dataset in pequignot.SMALL else None


def _boston_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the recipe of table 1 with 100 points."""
    recipe = cinquin.recipe(row, dataset, protocol)
    if recipe is None or row.label == "MFVI":
        return recipe
    return recipe.with_parts({"context": {"points": 100}})


def _columns(sets: tuple[str, ...], condition: str) -> tuple[Column, ...]:
    return tuple(Column(Cell(d, "", SECONDS), d, Cell(d, condition, SECONDS), digits=0) for d in sets)


_TRAINED = tuple(replace(row, metrics=()) for row in pequignot.ROWS if row.label != "FBNN")
TABLES = (
    Table(
        f"{cinquin.PAPER}-9",
        "Seconds of training on Boston at 100 context points",
        tuple(row for row in cinquin.ROWS if row.label in ("GFSVI", "TFSVI", "MFVI")),
        (Column(Cell("boston", "", SECONDS), "boston", Cell("boston", "hardware=rtx2080ti", SECONDS), digits=1),),
        _boston_recipe,
        paper=cinquin.PAPER,
        deviations=True,
        number="9",
        reductions=cinquin.REDUCTIONS,
    ),
    Table(
        f"{pequignot.PAPER}-7",
        "Seconds of training, experiment 2; HMC: experiment 1",
        (*_TRAINED[:4], pequignot_posteriors.REFERENCE, *_TRAINED[4:]),
        _columns(pequignot.SMALL + pequignot.LARGE, "experiment=2;hardware=rtx2080ti"),
        _hmc_recipe,
        paper=pequignot.PAPER,
        number="7",
        reductions=pequignot.REDUCTIONS,
    ),
)
