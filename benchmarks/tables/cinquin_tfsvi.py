"""Settings that decide the numbers of TFSVI: points and jitter of its divergence, features of its prior (the sine)."""

from __future__ import annotations

from benchmarks.tables import cinquin, toys
from benchmarks.tables.cinquin_candidates import SMALL, candidate, made
from benchmarks.tables.spec import Cell, Column, Parts, Recipe, ReferenceRequest, Row, Table, merge

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
    seeds = tuple((0, seed) for seed in range(5 if protocol == "paper" else 1))
    samples = 50 if protocol == "smoke" else 200
    return Recipe(merge(parts, changes), seeds, samples=samples, sets=("test", "grid"), reference=reference)


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
    default_protocol="short",
    notes={
        "short": (
            "Published on Boston: expected log-likelihood -1.416 +- .046, MSE .995 +- .092, with 500 points and a "
            "jitter that is not said. Table 1 has 1e-6 (the catalogue's) and at protocol short 100 points; at protocol "
            "paper 500 and another estimator.",
            "The last layer has 51 features, so covariances at more than 51 points are singular but for the jitter: "
            "what the features of posterior and prior differ in is divided by it, and the prior's scale hardly counts.",
            "So 100 points and 1e-6 are the reading that fits the published row on Boston; on concrete and energy it "
            "does not (table cinquin2024-1-jitter). Nothing is chosen by these numbers.",
        )
    },
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
    notes={
        "paper": (
            "TFSVI on the sine of table toys, but by the last layer and with 100 points: 2x30 tanh, 2,000 epochs, "
            "prior standard deviation .2. Table toys has all layers at the current mean and 500 points. The prior over "
            "functions is that of a random last layer (or of all layers) on features of the initial network, of one "
            "draw of the prior, or of the family's mean at each step.",
            "Exact posterior: of the same prior over functions, with the noise that was learned. Where TFSVI is near "
            "it and does not fit, it is the prior that does not; a prior that follows the mean has no such posterior.",
        )
    },
    reductions={"smoke": "3 epochs, one seed"},
)
_JITTER_NOTES = (
    "No one jitter fits the published numbers. Expected log-likelihood and MSE are near them with 1e-6 on Boston (the "
    "first fold: -1.40, .96; published -1.416, .995), with 1e-4 on concrete (all folds: -1.02, .44; -.983, .389; "
    "t-tests tell neither apart), with 1e-2 on energy (all folds: 1.25 +- .19, .0032; .797, .003). On yacht, first "
    "fold, both come near, but not with one jitter: the MSE with 1e-3 and 1e-4 (.23, .26; .221), the log-likelihood "
    "with 1e-6 (-1.17; -1.187); on wine, published -2.138 and 1.297, nothing does.",
    "TFSVI as rudner2022 has it, in place of table 1's pushforward of all weights: the last layer on features of the "
    "initial network, 500 points on the box of the inputs, early stopping by the validation log-likelihood. The first "
    "row: prior variance 10 (of 1 and 10), and of tanh at rates 0.005 and 0.001 and relu what the first fold's "
    "validation subset prefers, jitter 1e-6. The others: prior variance 1, tanh, 0.005, and another jitter on the "
    "diagonals of both covariances. The paper says that TFSVI has one, and not how large.",
    "The last layer has 51 features, fewer than points: the divergence acts on directions in which both distributions "
    "are degenerate but for the jitter. The published numbers on boston are those of this estimator with 1e-6.",
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
        _JITTER_NOTES,
    ),
    FEATURES,
)
