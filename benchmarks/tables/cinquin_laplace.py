"""Settings that decide the numbers of Laplace in cinquin2024's tables 1, 6 and 4: choice of the prior precision, its
correlations, end of training."""

from __future__ import annotations

from benchmarks.tables.cinquin import varied
from benchmarks.tables.cinquin_candidates import CANDIDATES, LARGE, SMALL, candidate
from benchmarks.tables.recipes import Parts, Recipe
from benchmarks.tables.spec import Row

_PREDICTIVE = "validation, predictive log-likelihood"
READINGS: dict[str, Parts] = {
    "validation, expected log-likelihood": {},
    _PREDICTIVE: {"fit": {"criterion": "predictive"}},
    "evidence": {"fit": {"precision": "evidence", "criterion": "predictive"}},
    f"relu, {_PREDICTIVE}": {"network": {"activation": "relu"}, "fit": {"criterion": "predictive"}},
    "Kronecker factors": {"fit": {"structure": "kronecker"}},
    "all correlations": {"fit": {"structure": "full"}},
}
PATIENT: dict[str, Parts] = {
    "ten times the patience": {},
    "lr .001, ten times the patience": CANDIDATES["paper"]["Laplace"]["tanh, lr .001"],
}

ANNEALED = "50,000 steps, rate to 0"  # on naval, the one set whose validation loss falls to the last step


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the first candidate of table 1, with another choice of its prior precision, more of its correlations, or
    longer training."""
    first = candidate("Laplace", "tanh" if protocol == "paper" else None, dataset, protocol)
    if first is None:
        return None
    if row.variant in PATIENT:
        training = first.parts["training"]
        patience = 10 * training["early_stopping"]["patience"]
        longer = training["epochs"] * (1 if protocol == "smoke" else 10)
        end = first.with_parts({"training": {"epochs": longer, "early_stopping": {"patience": patience}}})
        return end.with_parts(PATIENT[row.variant])
    if row.variant == ANNEALED:
        cooled = {
            "epochs": 5 if protocol == "smoke" else 10_000,
            "schedule": {"name": "cosine"},
            "early_stopping": None,
        }
        return first.with_parts({"training": cooled}) if dataset == "naval" else None
    return first.with_parts(READINGS[row.variant]) if row.variant in READINGS else None


TABLES = varied(
    "laplace",
    "Laplace by what chooses its prior precision, by its correlations, and by when training stops",
    tuple(Row(f"Laplace, {label}", "Laplace", "Laplace", label) for label in (*READINGS, *PATIENT, ANNEALED)),
    SMALL + LARGE,
    recipe,
)
