"""What decides the numbers of TFSVI: points and jitter of its divergence, features of its prior (the sine)."""

from __future__ import annotations

from benchmarks.tables import cinquin, toys
from benchmarks.tables.cinquin_candidates import SMALL, candidate
from benchmarks.tables.spec import Cell, Column, Parts, Recipe, Reference, Row, Table, merge

POINTS, JITTERS = (10, 20, 40, 100), (1e-6, 1e-4, 1e-2)
DIVERGENCE = {
    f"{points} points, {jitter:g}": {"context": {"points": points}, "divergence": {"jitter": jitter}}
    for jitter in JITTERS
    for points in POINTS
}
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
    """The first candidate of table 1, with other points and jitter."""
    first = candidate("FSVI", "variance 1", dataset, protocol)
    return first and first.with_parts(DIVERGENCE.get(row.variant, {}))


def jitter_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """The first candidate of table 1, with another jitter."""
    first = candidate("FSVI", "variance 1", dataset, protocol)
    return first and first.with_parts({"divergence": {"jitter": float(row.variant)}})


def prior_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """TFSVI of table ``toys`` with another prior, beside the exact posterior of that prior where it stays the same."""
    parts = toys.parts_of(Row("TFSVI", method="FSVI"), dataset, protocol)
    if parts is None:
        return None
    parts = merge(parts, _LAST_LAYER)
    changes = PRIORS.get(row.variant, {})
    follows = changes.get("prior", {}).get("features") == "current"
    reference = None if follows else Reference(exact=True)
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
            "jitter that is not said. Table 1 has 1e-6 (the catalogue's) and at protocol short 100 points, at protocol "
            "paper 500.",
            "The last layer has 51 features, so covariances at more than 51 points are singular but for the jitter: "
            "what the features of posterior and prior differ in is divided by it, and the prior's scale hardly counts.",
            "So 100 points and 1e-6 are the reading that fits the published row on Boston (on concrete and energy it "
            "does not, see table cinquin2024-1). They were table 1's before: points and jitter are not chosen by these "
            "numbers.",
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
    "The candidate of table 1 with prior variance 1 (500 points of a last layer with 51 features), with another "
    "jitter on the diagonal of both covariances of its divergence. The paper says that TFSVI has one, and not how "
    "large.",
)
TABLES = (
    DIVERGENCES,
    *cinquin.varied(
        "jitter",
        "TFSVI by the jitter of its divergence",
        tuple(Row(f"TFSVI, jitter {jitter:g}", "TFSVI", "FSVI", f"{jitter:g}") for jitter in (1e-6, 1e-4, 1e-3, 1e-2)),
        SMALL,
        jitter_recipe,
        _JITTER_NOTES,
    ),
    FEATURES,
)
