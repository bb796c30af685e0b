"""What decides the numbers of Laplace in cinquin2024's tables 1, 6 and 4: by what its prior precision is chosen."""

from __future__ import annotations

from benchmarks.tables.cinquin import varied
from benchmarks.tables.cinquin_candidates import LARGE, SMALL, candidate
from benchmarks.tables.spec import Parts, Recipe, Row

READINGS: dict[str, Parts] = {
    "validation, expected log-likelihood": {},
    "validation, predictive log-likelihood": {"fit": {"criterion": "predictive"}},
    "evidence": {"fit": {"precision": "evidence", "criterion": "predictive"}},
}


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """The first candidate of table 1, with its prior precision chosen by something else."""
    first = candidate("Laplace", "tanh" if protocol == "paper" else None, dataset, protocol)
    if first is None or row.variant not in READINGS:
        return None
    return first.with_parts(READINGS[row.variant])


_NOTES = (
    "tanh, learning rate .005 (the first candidate of table 1), prior variance 1 in training. Validation: the best of "
    "21 precisions from 1e-4 to 1e4 by the validation part of each fold; evidence: the largest Laplace evidence.",
    "The predictive log-likelihood integrates the function out, so a wide posterior can make up for too "
    "little noise; the expected one, which the table shows and by which the paper says that it chooses (App. "
    "C.3), charges that width to the noise.",
)

TABLES = varied(
    "laplace",
    "Laplace by what chooses its prior precision",
    tuple(Row(f"Laplace, {label}", "Laplace", "Laplace", label) for label in READINGS),
    SMALL + LARGE,
    recipe,
    _NOTES,
)
