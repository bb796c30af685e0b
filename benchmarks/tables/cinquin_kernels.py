"""Kernels of the processes in cinquin2024's tables 1, 6 and 4: every candidate's numbers on test folds."""

from __future__ import annotations

from collections.abc import Callable
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
from benchmarks.tables.spec import Cell, Column, Recipe, Row, Table

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


_NOTES = (
    "All candidates of table 1, each beside the published number of its method: those that were not chosen too, and a "
    "length-scale for each input (ard), which the paper does not mention and which cannot be chosen. The choice is by "
    "validation subsets (tables cinquin2024-1-selection and -1-evidence) and does not look at these numbers.",
    "The published numbers of both processes on energy and yacht, and of the sparse one on concrete and power, are "
    "those of a linear kernel, some to the printed digits; those of the exact process on concrete are nearest to "
    "Matern 1/2. Of the paper's six the evidence of validation subsets, by which it chooses, prefers just these for "
    "the exact process, and for the sparse one on yacht; for the sparse one on concrete, energy and power it prefers "
    "others.",
    "Songs (table 4): on yacht the linear kernel gives the exact process .83, every other one .96 to 1.00, and .787 is "
    "published; for the sparse one on concrete .795, but Matern 1/2 and a length-scale for each input fit the "
    "published .776 as well; on energy the exact process has .99 to 1.00 with every kernel. On boston and on concrete "
    "its published .952 and .933 are those of other kernels (linear: .78 and .79).",
)

TABLES = varied(
    "kernels",
    "GP and sparse GP by kernel",
    ROWS,
    SMALL + LARGE,
    recipe,
    _NOTES,
)
_EVIDENCE_NOTES = (
    'App. C.3 chooses the kernels of both processes by the "mean log-marginal likelihood of the validation data". '
    "Taken by the word it is this: the density of the validation targets under the fitted prior, not conditioned on "
    "the training data. Table 1 chooses by it, among the six kernels that the paper names.",
    "For the exact process the linear kernel comes first on energy and yacht and Matern 1/2 on concrete: those whose "
    "numbers are the published ones, where the predictive density given the training data (table "
    "cinquin2024-1-density) prefers others. On boston six kernels are within .07, and the linear one, .003 ahead of "
    "the next, is not the published one. For the sparse process it tells less: linear is ahead on yacht, but Matern "
    "3/2 on energy, by .05, and on concrete, by .16, and Matern 5/2 on power, by .07, where the published numbers are "
    "the linear kernel's. RBF with a length-scale for each input (ard), which the paper does not mention, is ahead of "
    "all wherever its fits succeed.",
    "Wine, exact process: the fits fail with every kernel but the linear one (table 1).",
)
_BOUND_NOTES = (
    "Another reading of the paper's criterion for the sparse process: minus its training objective on the validation "
    "subset, as in the code of the authors' next paper, where that line is commented out. It is the collapsed bound of "
    "Titsias (2009) at the trained kernel, noise and inducing points. Nothing is chosen by it.",
)
_DENSITY_NOTES = (
    "Another reading of the paper's criterion (table cinquin2024-1-evidence): the density of each validation target "
    "given the training data, by which processes predict. Nothing is chosen by it.",
)


def _validation(
    suffix: str,
    title: str,
    metric: str,
    make: Callable[[Row, str, str], Recipe | None],
    notes: tuple[str, ...],
    methods: tuple[str, ...] = PROCESSES,
) -> Table:
    return Table(
        f"{NAME}-{suffix}",
        f"{' and '.join(methods)} by kernel: {title}",
        tuple(replace(row, published=None) for row in ROWS if row.made_by in methods),
        tuple(Column(Cell(d, "part=validation", metric), d) for d in (*SMALL, *LARGE)),
        make,
        protocols=("paper", "smoke"),
        notes={"paper": notes},
        reductions={"smoke": "5 steps, 2 folds"},
    )


TABLES += (
    _validation(
        "evidence",
        "log marginal likelihood of the validation subsets alone",
        "log_marginal_likelihood",
        evidence_recipe,
        _EVIDENCE_NOTES,
    ),
    _validation(
        "bound",
        "its bound on the log marginal likelihood of the validation subsets alone",
        "collapsed_bound",
        bound_recipe,
        _BOUND_NOTES,
        ("Sparse GP",),
    ),
    _validation(
        "density",
        "log predictive density of the validation subsets given the training data (standardised units)",
        "log_posterior_predictive_standardised",
        recipe,
        _DENSITY_NOTES,
    ),
)
