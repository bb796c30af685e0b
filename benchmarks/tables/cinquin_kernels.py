"""Kernels of the processes in cinquin2024's tables 1, 6 and 4: every candidate's numbers on test folds."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables.cinquin import NAME, varied
from benchmarks.tables.cinquin_candidates import (
    BESIDE,
    CANDIDATES,
    LARGE,
    PROCESSES,
    SMALL,
    candidate,
    made,
    with_evidence,
)
from benchmarks.tables.recipes import Recipe
from benchmarks.tables.spec import Cell, Column, Make, Row, Table

ROWS = tuple(
    Row(f"{name}, {label}", name, name, label) for name in PROCESSES for label in (*CANDIDATES["paper"][name], *BESIDE)
)


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the trainings of the selection, evaluated on test folds too; nothing is chosen here."""
    if row.variant in BESIDE:
        return made(row.made_by, BESIDE[row.variant], dataset, protocol)
    return candidate(row.made_by, row.variant, dataset, protocol)


def bound_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the trainings of a sparse process, with the bound on the evidence of validation subsets as only
    evaluation."""
    found = recipe(row, dataset, protocol)
    return found and replace(found, sets=("validation",), bound="validation")


def evidence_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the recipe with the log marginal likelihood of its validation subsets as its only evaluation."""
    found = recipe(row, dataset, protocol)
    return found and with_evidence(found)


TABLES = varied(
    "kernels",
    "GP and sparse GP by kernel",
    ROWS,
    SMALL + LARGE,
    recipe,
)


def _validation(
    suffix: str,
    title: str,
    metric: str,
    make: Make,
    methods: tuple[str, ...] = PROCESSES,
) -> Table:
    return Table(
        f"{NAME}-{suffix}",
        f"{' and '.join(methods)} by kernel: {title}",
        tuple(replace(row, published=None) for row in ROWS if row.made_by in methods),
        tuple(Column(Cell(d, "part=validation", metric), d) for d in (*SMALL, *LARGE)),
        make,
        protocols=("paper", "smoke"),
        reductions={"smoke": "5 steps, 2 folds"},
    )


TABLES += (
    _validation(
        "evidence",
        "log marginal likelihood of the validation subsets alone",
        "log_marginal_likelihood",
        evidence_recipe,
    ),
    _validation(
        "bound",
        "its bound on the log marginal likelihood of the validation subsets alone",
        "collapsed_bound",
        bound_recipe,
        ("Sparse GP",),
    ),
    _validation(
        "density",
        "log predictive density of the validation subsets given the training data (standardised units)",
        "log_posterior_predictive_standardised",
        recipe,
    ),
)
