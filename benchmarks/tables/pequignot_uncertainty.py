"""pequignot2020, figures 2 to 5: epistemic uncertainty on training, test and uniform inputs, experiments 1 and 2."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from benchmarks.tables import pequignot, pequignot_posteriors
from benchmarks.tables.pequignot import PAPER, SMALL
from benchmarks.tables.pequignot_posteriors import COMPARED, REFERENCE
from benchmarks.tables.recipes import Recipe
from benchmarks.tables.spec import Cell, Column, Row, Table

SETS = ("test", "train", "ood-uniform")
CONDITIONS = {"": "test", "inputs=train": "train", "ood=uniform": "uniform"}
PRIOR = Row("Prior", None, "MFVI", "prior")
ALONE = {"family": {"mean_init": 0.0, "log_var_init": [math.log(0.25)] * 2}, "training": {"epochs": 0}}
"""Mean-field weights fixed at the prior."""
SPLITS = 3


def _first(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return the trainings of tables 1, 2 and 4; the prior is drawn from mean-field weights without training."""
    found = pequignot_posteriors.recipe(row, dataset, protocol)
    if row.variant == PRIOR.variant:
        found = replace(found.with_parts(ALONE), replicates=found.replicates[:1])
    return replace(found, sets=SETS, posterior=None)


def _second(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the trainings of table 5 on the first splits."""
    found = pequignot.recipe(row, dataset, protocol)
    return found and replace(found, sets=SETS, replicates=found.replicates[:SPLITS])


def _table(
    number: str,
    title: str,
    rows: tuple[Row, ...],
    make: Callable[[Row, str, str], Recipe | None],
) -> Table:
    columns = tuple(
        Column(Cell(dataset, condition, "epistemic_entropy"), f"{dataset} {label}")
        for dataset in SMALL
        for condition, label in CONDITIONS.items()
    )
    return Table(
        f"{PAPER}-figure-{number}",
        title,
        rows,
        columns,
        make,
        reductions=pequignot.REDUCTIONS,
    )


TABLES = (
    _table(
        "4",
        "Epistemic uncertainty on train, test and uniform inputs, experiment 1 (figures 2 and 4)",
        (REFERENCE, *COMPARED, PRIOR),
        _first,
    ),
    _table(
        "5",
        "Epistemic uncertainty on train, test and uniform inputs, experiment 2 (figures 3 and 5)",
        pequignot.ROWS[:6],
        _second,
    ),
)
