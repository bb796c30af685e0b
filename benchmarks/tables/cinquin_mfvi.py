"""What decides the numbers of MFVI in cinquin2024's tables 1 and 6: where it starts, and when it stops."""

from __future__ import annotations

from benchmarks.tables.cinquin import METRIC
from benchmarks.tables.cinquin_candidates import PAPER, SMALL, candidate
from benchmarks.tables.spec import Cell, Column, Parts, Recipe, Row, Table, merge

_WIDE: Parts = {"family": {"log_var_init": [-2.0, -2.0]}}
_LONG: Parts = {"training": {"epochs": 3000, "early_stopping": None}}
READINGS: dict[str, Parts] = {
    "early stopping": {},
    "3,000 steps": _LONG,
    "wide start, early stopping": _WIDE,
    "wide start, 3,000 steps": merge(_WIDE, _LONG),
}


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """The first candidate of table 1, with another start or end."""
    first = candidate("MFVI", "variance 1", dataset, protocol)
    if first is None or row.variant not in READINGS:
        return None
    parts = merge(first.parts, READINGS[row.variant])
    if protocol == "smoke":
        parts = merge(parts, {"training": {"epochs": first.parts["training"]["epochs"]}})
    return Recipe(parts, first.replicates, first.scheme, first.samples, first.sets)


_NOTES = (
    "Network, prior N(0, 1) and learning rate are those of the first candidate of table 1. Early stopping: patience "
    "200 of at most 10,000 steps; the others keep the last parameters. A narrow start has log-variances between -10 "
    "and -8, a wide one -2.",
    "From a narrow start early stopping keeps a narrow posterior, and the fit of a plain network. From a wide start "
    "the fit is worse, as published: start and end, of which the paper says nothing, decide these cells.",
)


def _table(number: str, what: str, metric: str, published: str) -> Table:
    return Table(
        f"{PAPER}-{number}-mfvi",
        f"MFVI by where its training starts and ends: {what}",
        tuple(Row(f"MFVI, {label}", "MFVI", "MFVI", label) for label in READINGS),
        tuple(Column(Cell(d, "", metric), d, Cell(d, "", published)) for d in SMALL),
        recipe,
        protocols=("paper", "smoke"),
        paper=PAPER,
        deviations=True,
        number=number,
        notes={"paper": _NOTES},
        reductions={"smoke": "5 steps, 2 folds"},
    )


TABLES = (
    _table("1", "expected log-likelihood", METRIC, "expected_log_likelihood"),
    _table("6", "mean square error", "mse_standardised", "mse"),
)
