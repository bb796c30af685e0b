"""cinquin2024, tables 1, 4 and 6: UCI in 5-fold cross-validation.

Hyper-parameters are chosen on validation folds: table ``cinquin2024-1-selection`` holds every candidate's validation
score, and ``python -m benchmarks select`` writes the choices that table ``cinquin2024-1`` uses.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables.choices import chosen
from benchmarks.tables.cinquin_candidates import (
    CANDIDATES,
    COMPARED,
    LARGE,
    PAPER,
    PROCESSES,
    SMALL,
    candidate,
    compared,
    covered,
    labels,
)
from benchmarks.tables.recipes import Recipe
from benchmarks.tables.spec import Cell, Column, Make, Row, Table

NAME, SELECTION = "cinquin2024-1", "cinquin2024-1-selection"
SETS = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht", "wave", "denmark")
METHODS = {"FVI": "FBNN", "TFSVI": "FSVI"} | {
    name: name for name in ("GFSVI", "MFVI", "VIP", "Laplace", "GWI", "Sparse GP", "GP")
}
ROWS = tuple(
    Row(label, label, METHODS.get(label))
    for label in ("GFSVI", "FVI", "TFSVI", "MFVI", "VIP", "Laplace", "GWI", "Sparse GP", "GP")
)


def variants(label: str, *names: str) -> tuple[Row, ...]:
    """Return rows of variants of a row of the paper."""
    return Row(label, label, METHODS[label]).varied(*names)


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the candidate with the best validation score; None where nothing has been selected. A method without
    candidates has one recipe.
    """
    candidates = CANDIDATES[protocol].get(row.made_by)
    if candidates is None:
        return candidate(row.made_by, None, dataset, protocol)
    label = next(iter(candidates)) if protocol == "smoke" else chosen(NAME, protocol, row.made_by, dataset)
    return candidate(row.made_by, label, dataset, protocol) if label else None


def on_songs(make: Make) -> Make:
    """Return recipes with songs among the evaluation sets; none on large sets, with more test rows than songs."""

    def with_songs(row: Row, dataset: str, protocol: str) -> Recipe | None:
        base = make(row, dataset, protocol)
        return replace(base, sets=("test", "ood-song")) if base and dataset in SMALL else None

    return with_songs


def selection_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the candidate that the row names, on the folds that choose."""
    return compared(row.made_by, row.variant, dataset, protocol)


METRIC = "expected_log_likelihood_standardised"
OF_PROCESSES = ((METRIC, "log_marginal_likelihood"),)
REDUCTIONS = {
    "short": "100 context points instead of 500, one to six candidates each, learning rate 0.005, tanh, at most 3,000 "
    "steps; FVI starts with standard deviations of 0.135, TFSVI has the last layer alone, boxes have no margin",
    "smoke": "5 steps, 2 folds, the first candidate",
}
ON_ONE_FOLD = ", ".join(label for label, method in METHODS.items() if method in COMPARED["paper"])


def _not_chosen(protocol: str) -> str:
    """Return the rows that have no choice yet, and so no runs, with their data sets."""
    lacking = {
        label: [d for d in SMALL + LARGE if covered(method, d, protocol) and not chosen(NAME, protocol, method, d)]
        for label, method in METHODS.items()
        if method in CANDIDATES[protocol]
    }
    return "; ".join(f"{label} on {', '.join(sets)}" for label, sets in lacking.items() if sets)


NOT_CHOSEN = {protocol: _not_chosen(protocol) for protocol in ("paper", "short")}
"""Sentence on untried candidates by protocol, for the tables' notes; a note with an empty one is left out."""


def _table(
    number: str,
    title: str,
    metric: str,
    published: str,
    condition: str = "",
    make: Make = recipe,
) -> Table:
    columns = tuple(Column(Cell(d, condition, metric), d, Cell(d, "", published)) for d in SETS)
    return Table(
        f"{PAPER}-{number}",
        title,
        ROWS,
        columns,
        make,
        paper=PAPER,
        deviations=True,
        number=number,
        ranked=("GFSVI", "FVI", "TFSVI", "MFVI", "VIP", "Laplace"),
        reductions=REDUCTIONS,
    )


def beside(
    number: str,
    suffix: str,
    title: str,
    rows: tuple[Row, ...],
    columns: tuple[Column, ...],
    make: Make,
    smoke: str = "5 steps, 2 folds",
) -> Table:
    """Return table ``-<number>-<suffix>``, whose rows stand beside the numbers of the paper's table ``number``."""
    return Table(
        f"{PAPER}-{number}-{suffix}",
        title,
        rows,
        columns,
        make,
        protocols=("paper", "smoke"),
        paper=PAPER,
        deviations=True,
        number=number,
        reductions={"smoke": smoke},
    )


def varied(
    suffix: str,
    title: str,
    rows: tuple[Row, ...],
    sets: tuple[str, ...],
    make: Make,
) -> tuple[Table, ...]:
    """Tables ``-1-<suffix>``, ``-6-<suffix>`` and ``-4-<suffix>`` of rows that vary rows of tables 1, 6 and 4, beside
    the same numbers; the last of the small sets."""
    return tuple(
        beside(
            number,
            suffix,
            f"{title}: {what}",
            rows,
            tuple(Column(Cell(d, condition, metric), d, Cell(d, "", published)) for d in sets if d in covers),
            recipe,
        )
        for number, what, condition, metric, published, covers, recipe in (
            ("1", "expected log-likelihood", "", METRIC, "expected_log_likelihood", sets, make),
            ("6", "mean square error", "", "mse_standardised", "mse", sets, make),
            ("4", "telling songs from test points", "ood=song", "ood_accuracy", "ood_accuracy", SMALL, on_songs(make)),
        )
    )


INTERVALS = {
    "crps_standardised": "CRPS",
    "coverage_90": "90 % covered",
    "interval_width_90": "width of 90 %",
    "quantile_calibration_error": "quantile error",
}
TABLES = (
    _table("1", "Test expected log-likelihood on UCI (standardised units)", METRIC, "expected_log_likelihood"),
    _table(
        "6", "Test mean square error on UCI (standardised units), of the runs of table 1", "mse_standardised", "mse"
    ),
    _table(
        "4",
        "Accuracy of telling test inputs from songs by the variance of the function, of the runs of table 1",
        "ood_accuracy",
        "ood_accuracy",
        "ood=song",
        on_songs(recipe),
    ),
    Table(
        f"{NAME}-intervals",
        "CRPS, 90 % intervals and calibration of quantiles of the runs of table 1",
        ROWS,
        tuple(
            Column(Cell(d, "", metric), f"{d} {label}", digits=2 if metric == "interval_width_90" else 3)
            for metric, label in INTERVALS.items()
            for d in SMALL
        ),
        recipe,
        reductions=REDUCTIONS,
    ),
    Table(
        SELECTION,
        "Validation score of every candidate of table cinquin2024-1",
        tuple(
            replace(row, metrics=OF_PROCESSES if method in PROCESSES else ())
            for method in METHODS.values()
            for row in Row(method, None, method).varied(*labels(method))
        ),
        tuple(Column(Cell(d, "part=validation", METRIC), d, compared=False) for d in SMALL + LARGE),
        selection_recipe,
        reductions=REDUCTIONS,
    ),
)
