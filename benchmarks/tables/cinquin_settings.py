"""Settings that decide numbers of cinquin2024's tables.

TFSVI: points and jitter of its divergence, features of its prior (the sine). GFSVI on the songs of Boston and wine:
length of training, measurement points. Processes: every candidate's kernel, on test folds.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import cinquin, toys
from benchmarks.tables.cinquin_candidates import (
    BESIDE,
    CANDIDATES,
    LARGE,
    PROCESSES,
    SMALL,
    candidate,
    recipe_with,
    settings,
    with_evidence,
)
from benchmarks.tables.recipes import Parts, Recipe, ReferenceRequest, layered, seeds
from benchmarks.tables.spec import Cell, Column, Make, Row, Table, changed, column

POINTS, JITTERS = (10, 20, 40, 100), (1e-6, 1e-4, 1e-2)
DIVERGENCE = {
    f"{points} points, {jitter:g}": {"context": {"points": points}, "divergence": {"jitter": jitter}}
    for jitter in JITTERS
    for points in POINTS
}
"""Changes of the first candidate of table 1."""
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
    "current mean, variance 1": layered(_FOLLOWS, {"prior": {"variance": 1.0}}),
    "all layers, current mean": layered(_FOLLOWS, {"prior": {"jacobian": "full"}, "divergence": {"jacobian": "full"}}),
}


def last_layer_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the last layer of the initial network: as validation chose it, or with a prior of variance 1 and
    a jitter.
    """
    if row.variant == _CHOSEN:
        return recipe_with("FSVI", layered({"prior": {"variance": 10.0}}, _CHOICES.get(dataset, {})), dataset, protocol)
    last = recipe_with("FSVI", {"prior": {"variance": 1.0}}, dataset, protocol)
    return last and last.with_parts({"divergence": {"jitter": float(row.variant)}})


def prior_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """TFSVI of table ``toys`` with another prior, beside the exact posterior of that prior where it stays the same."""
    parts = toys.parts_of(_TFSVI, dataset, protocol)
    if parts is None:
        return None
    changes = PRIORS.get(row.variant, {})
    follows = changes.get("prior", {}).get("features") == "current"
    reference = None if follows else ReferenceRequest(exact=True)
    count, samples = 5 if protocol == "paper" else 1, 50 if protocol == "smoke" else 200
    return Recipe(
        layered(parts, _LAST_LAYER, changes), seeds(count), samples=samples, sets=("test", "grid"), reference=reference
    )


_TFSVI = Row("TFSVI", None, "FSVI")
DIVERGENCES = Table(
    "cinquin2024-1-tfsvi",
    "TFSVI on Boston by the number of points of its divergence and its jitter",
    _TFSVI.varied(*DIVERGENCE),
    (column("boston", cinquin.METRIC, "expected LL"), column("boston", "mse_standardised", "MSE")),
    changed(lambda row, dataset, protocol: candidate("FSVI", "variance 1", dataset, protocol), DIVERGENCE | {"": {}}),
    protocols=("short", "smoke"),
    reductions=cinquin.REDUCTIONS,
)
FEATURES = Table(
    "toys-tfsvi",
    "TFSVI on the sine by the features of its prior",
    _TFSVI.varied(*PRIORS),
    (
        column("cinquin_1d", "rmse", "RMSE"),
        column("cinquin_1d", "log_posterior_predictive", "LPP"),
        column("cinquin_1d", "mean_distance", "mean to its exact posterior", "reference=exact_gp"),
        column("cinquin_1d", "std_distance", "sd to its exact posterior", "reference=exact_gp"),
    ),
    prior_recipe,
    protocols=("paper", "smoke"),
    reductions={"smoke": "3 epochs, one seed"},
)


EPOCHS = 2000
_LONG: Parts = {"training": {"epochs": EPOCHS, "early_stopping": None}}
_LAST = f"{EPOCHS:,} epochs"
_STOPS = {"lowest validation loss": {}, _LAST: _LONG}
_CANDIDATE = "chosen candidate, "
_VARIANTS = [f"{points}, {stop}" for points in ("box", "box and batch") for stop in _STOPS]
_SONGS_ROWS = cinquin.variants("GFSVI", *_VARIANTS, f"{_CANDIDATE}box and batch, {_LAST}")


def songs_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the first candidate of table 1, or the chosen one, with the measurement points of FVI or as long as the
    row says."""
    chosen = row.variant.startswith(_CANDIDATE)
    base = cinquin.recipe(row, dataset, protocol) if chosen else candidate("GFSVI", "rbf", dataset, protocol)
    if base is None:
        return None
    points, stop = row.variant.removeprefix(_CANDIDATE).split(", ", 1)
    parts = layered(base.parts, _STOPS[stop] if protocol == "paper" else {})
    if points == "box and batch":
        parts["context"] = settings("FBNN", protocol)["context"]
    return replace(base, parts=parts)


_KERNELS = tuple(row for name in PROCESSES for row in Row(name, name, name).varied(*CANDIDATES["paper"][name], *BESIDE))


def kernel_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the trainings of the selection, evaluated on test folds too; nothing is chosen here."""
    if row.variant in BESIDE:
        return recipe_with(row.made_by, BESIDE[row.variant], dataset, protocol)
    return candidate(row.made_by, row.variant, dataset, protocol)


def bound_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the trainings of a sparse process, with the bound on the evidence of validation subsets as only
    evaluation."""
    base = kernel_recipe(row, dataset, protocol)
    return base and replace(base, sets=("validation",), bound="validation")


def evidence_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the recipe with the log marginal likelihood of its validation subsets as its only evaluation."""
    base = kernel_recipe(row, dataset, protocol)
    return base and with_evidence(base)


def _validation(suffix: str, title: str, metric: str, make: Make, methods: tuple[str, ...] = PROCESSES) -> Table:
    return Table(
        f"{cinquin.NAME}-{suffix}",
        f"{' and '.join(methods)} by kernel: {title}",
        tuple(replace(row, published=None) for row in _KERNELS if row.made_by in methods),
        tuple(Column(Cell(d, "part=validation", metric), d) for d in (*SMALL, *LARGE)),
        make,
        protocols=("paper", "smoke"),
        reductions={"smoke": "5 steps, 2 folds"},
    )


TABLES = (
    DIVERGENCES,
    *cinquin.varied(
        "jitter",
        "TFSVI with the last layer alone, by the jitter of its divergence",
        (
            *cinquin.variants("TFSVI", _CHOSEN),
            *(Row(f"TFSVI, jitter {jitter:g}", "TFSVI", "FSVI", f"{jitter:g}") for jitter in JITTERED),
        ),
        SMALL,
        last_layer_recipe,
    ),
    FEATURES,
    cinquin.beside(
        "4",
        "epochs",
        "GFSVI: telling songs from test points by the number of epochs and the measurement points",
        _SONGS_ROWS,
        tuple(
            Column(Cell(name, condition, metric), f"{label} ({name})", Cell(name, "", published) if published else None)
            for name in SMALL
            for condition, metric, label, published in (
                ("ood=song", "ood_accuracy", "OOD accuracy", "ood_accuracy"),
                ("ood=song", "ood_auroc", "OOD AUROC", ""),
                ("", cinquin.METRIC, "expected LL", ""),
                ("", "mse_standardised", "MSE", ""),
            )
        ),
        cinquin.on_songs(songs_recipe),
    ),
    *cinquin.varied("kernels", "GP and sparse GP by kernel", _KERNELS, SMALL + LARGE, kernel_recipe),
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
        kernel_recipe,
    ),
)
