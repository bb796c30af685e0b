"""Settings that decide the numbers of TFSVI: points and jitter of its divergence, features of its prior (the sine)."""

from __future__ import annotations

from benchmarks.tables import cinquin, toys
from benchmarks.tables.cinquin_candidates import SMALL, candidate, made
from benchmarks.tables.recipes import Parts, Recipe, ReferenceRequest, merge, seeds
from benchmarks.tables.spec import Cell, Column, Row, Table

POINTS, JITTERS = (10, 20, 40, 100), (1e-6, 1e-4, 1e-2)
DIVERGENCE = {
    f"{points} points, {jitter:g}": {"context": {"points": points}, "divergence": {"jitter": jitter}}
    for jitter in JITTERS
    for points in POINTS
}
JITTERED = (1e-6, 1e-4, 1e-3, 1e-2)
_CHOSEN = "last layer"
_SLOW: Parts = {"training": {"optimiser": {"lr": 0.001}}}
_CHOICES: dict[str, Parts] = {
    "boston": {"network": {"activation": "relu"}},
    "concrete": _SLOW,
    "energy": _SLOW,
    "yacht": _SLOW,
}
"""Choices of the first fold's validation subset for the last layer, besides a prior variance of 10 in place of 1."""
_FOLLOWS = {"prior": {"features": "current"}}
_LAST_LAYER: Parts = {
    "prior": {"features": "initial", "jacobian": "last_layer"},
    "divergence": {"jacobian": "last_layer"},
    "context": {"points": 100},
}
"""TFSVI by its last layer, at 100 points: what the rows of table ``toys-tfsvi`` change."""
PRIORS: dict[str, Parts] = {
    "initial network": {},
    "one draw of the prior": {"prior": {"features": "draw"}},
    "initial network, variance 1": {"prior": {"variance": 1.0}},
    "initial network, variance 1000": {"prior": {"variance": 1000.0}},
    "all layers, initial network": {"prior": {"jacobian": "full"}, "divergence": {"jacobian": "full"}},
    "current mean": _FOLLOWS,
    "current mean, variance 1": merge(_FOLLOWS, {"prior": {"variance": 1.0}}),
    "all layers, current mean": merge(_FOLLOWS, {"prior": {"jacobian": "full"}, "divergence": {"jacobian": "full"}}),
}


def divergence_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the first candidate of table 1, with other points and jitter."""
    first = candidate("FSVI", "variance 1", dataset, protocol)
    return first and first.with_parts(DIVERGENCE.get(row.variant, {}))


def last_layer_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the last layer of the initial network: as validation chose it, or with a prior of variance 1 and
    a jitter.
    """
    if row.variant == _CHOSEN:
        return made("FSVI", merge({"prior": {"variance": 10.0}}, _CHOICES.get(dataset, {})), dataset, protocol)
    last = made("FSVI", {"prior": {"variance": 1.0}}, dataset, protocol)
    return last and last.with_parts({"divergence": {"jitter": float(row.variant)}})


def prior_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """TFSVI of table ``toys`` with another prior, beside the exact posterior of that prior where it stays the same."""
    parts = toys.parts_of(Row("TFSVI", method="FSVI"), dataset, protocol)
    if parts is None:
        return None
    parts = merge(parts, _LAST_LAYER)
    changes = PRIORS.get(row.variant, {})
    follows = changes.get("prior", {}).get("features") == "current"
    reference = None if follows else ReferenceRequest(exact=True)
    count, samples = 5 if protocol == "paper" else 1, 50 if protocol == "smoke" else 200
    return Recipe(merge(parts, changes), seeds(count), samples=samples, sets=("test", "grid"), reference=reference)


def _rows(labels: dict[str, Parts], published: str | None = None) -> tuple[Row, ...]:
    return tuple(Row(f"TFSVI, {label}", published, "FSVI", label) for label in labels)


def _columns(dataset: str) -> tuple[Column, ...]:
    return tuple(
        Column(Cell(dataset, "", metric), label)
        for metric, label in ((cinquin.METRIC, "expected LL"), ("mse_standardised", "MSE"))
    )


DIVERGENCES = Table(
    "cinquin2024-1-tfsvi",
    "TFSVI on Boston by the number of points of its divergence and its jitter",
    _rows(DIVERGENCE),
    _columns("boston"),
    divergence_recipe,
    protocols=("short", "smoke"),
    reductions=cinquin.REDUCTIONS,
)
FEATURES = Table(
    "toys-tfsvi",
    "TFSVI on the sine by the features of its prior",
    _rows(PRIORS),
    (
        Column(Cell("cinquin_1d", "", "rmse"), "RMSE"),
        Column(Cell("cinquin_1d", "", "log_posterior_predictive"), "LPP"),
        Column(Cell("cinquin_1d", "reference=exact_gp", "mean_distance"), "mean to its exact posterior"),
        Column(Cell("cinquin_1d", "reference=exact_gp", "std_distance"), "sd to its exact posterior"),
    ),
    prior_recipe,
    protocols=("paper", "smoke"),
    reductions={"smoke": "3 epochs, one seed"},
)
TABLES = (
    DIVERGENCES,
    *cinquin.varied(
        "jitter",
        "TFSVI with the last layer alone, by the jitter of its divergence",
        (
            Row(f"TFSVI, {_CHOSEN}", "TFSVI", "FSVI", _CHOSEN),
            *(Row(f"TFSVI, jitter {jitter:g}", "TFSVI", "FSVI", f"{jitter:g}") for jitter in JITTERED),
        ),
        SMALL,
        last_layer_recipe,
    ),
    FEATURES,
)
