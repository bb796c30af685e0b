"""cinquin2024, tables 2 and 8: MNIST and FashionMNIST, each with the other as out-of-distribution inputs.

The runs also have the histograms of figure 12 (predictive entropy) and, at protocol paper, the means by angle of figure
13, whose own table has them at the reduced protocols too, from fewer runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.tables.cinquin_candidates import MARGIN, mixture
from benchmarks.tables.recipes import Parts, Recipe, folds, layered
from benchmarks.tables.spec import Cell, Column, Make, Row, Table, column

PAPER, SCHEME = "cinquin2024", "cinquin2024-pixelwise"
PARTNERS = {"mnist": "fashion_mnist", "fashion_mnist": "mnist"}
CONTEXTS = {
    "random": mixture(12, 13, margin=MARGIN),
    "random_pixel": {"name": "random_pixel", "points": 25},
    "kmnist": {"name": "images", "points": 20, "pool": "kmnist"},
}
LABELS = {"random": "random", "random_pixel": "random pixel", "kmnist": "KMNIST"}
METHODS = {"GFSVI": "GFSVI", "FVI": "FBNN", "TFSVI": "FSVI"}
ANGLES = tuple(range(0, 181, 20))
PATIENCE = {"mnist": 20, "fashion_mnist": 5}
"""Epochs without a better validation loss, as in the code of the first author's next paper."""
_ROTATIONS = tuple(f"rotation-{angle}" for angle in ANGLES)
_SEEDS = {"paper": 5, "short": 3, "smoke": 1}
_DRAWS = {"paper": 100, "short": 20, "smoke": 3}
"""Draws of functions from which FVI estimates its divergence; 100 in the code of the first author's next
paper."""
_SAMPLES = {"paper": 100, "short": 10, "smoke": 2}


def _rows(contexts: tuple[str, ...], others: Mapping[str, str | None]) -> tuple[Row, ...]:
    with_context = (
        Row(f"{label} ({LABELS[context]})", label, method, context, f"context={context}")
        for label, method in METHODS.items()
        for context in contexts
    )
    return (*with_context, *(Row(label, label, method) for label, method in others.items()))


_COMMON = {
    "network": {"name": "cnn", "channels": [16, 32, 64], "pool": [1, 1, 0], "dense": [128], "activation": "tanh"},
    "likelihood.name": "categorical",
    "training": {"epochs": 100, "batch_size": 100, "samples": 1, "optimiser": {"name": "adam", "lr": 1e-3}},
}
_OWN: dict[str, Parts] = {
    "FBNN": {"divergence.outputs": "independent", "family.log_var_init": [-10.0, -10.0]},
    "FSVI": {"divergence.jacobian": "full", "prior": {"features": "current", "jacobian": "full"}},
    "MFVI": {"prior.variance": 0.1},
    "VIP": {"training.samples": 10},  # the alpha-energy of a single draw is the ELBO
    "Laplace": {"fit": {"precision": "validation", "criterion": "expected", "steps": 9, "samples": 10}},
    "GWI": {
        "family": {"kernel": {"name": "rbf", "ard": False}, "draws": "marginal"},
        "divergence.prior_mean": 0.1,
        "likelihood.name": "robust_max",
        "context.points": 50,
    },
}
_FEWER: dict[str, dict[str, Parts]] = {
    "paper": {},
    "short": {"": {"training.epochs": 1}, "Laplace": {"fit.steps": 5, "fit.samples": 5}},
    "smoke": {
        "": {
            "training": {"epochs": 1, "batch_size": 2000},
            "network": {"channels": [2, 4, 4], "dense": [8]},
        },
        "GFSVI": {"prior.fit_steps": 5},
        "FBNN": {"prior.fit_steps": 5},
        "Laplace": {"fit.steps": 2, "fit.samples": 2},
        "GWI": {"family.points": 10, "family.fit_steps": 5, "context.points": 10},
    },
}


def _parts(row: Row, dataset: str, protocol: str) -> Parts:
    """Return the settings of App. C.4; the table's notes say what replaces the paper's Bayesian optimisation."""
    stopping = {"patience": PATIENCE[dataset], "every": 1, "objective": True}
    in_function_space = row.made_by in METHODS.values()
    return layered(
        _COMMON,
        {"training.early_stopping": stopping},
        {"context": CONTEXTS.get(row.variant)} if in_function_space else {},
        _OWN.get(row.made_by, {}),
        {"divergence.draws": _DRAWS[protocol]} if row.made_by == "FBNN" else {},
        *(_FEWER[protocol].get(name, {}) for name in ("", row.made_by)),
    )


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Hold out a tenth of the training images, another for every seed, for early stopping; score the
    partner's images.
    """
    sets = ("test", f"ood-{PARTNERS[dataset]}", *(_ROTATIONS if protocol == "paper" else ()))
    return Recipe(
        _parts(row, dataset, protocol), folds(_SEEDS[protocol]), SCHEME, samples=_SAMPLES[protocol], sets=sets
    )


def rotated_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return the runs of tables 2 and 8 at protocol paper; elsewhere the first of their trainings alone, on turned
    images.
    """
    base = recipe(row, dataset, protocol)
    if protocol == "paper":
        return base
    return replace(base, replicates=base.replicates[:1], sets=("test", *_ROTATIONS))


OTHER_READINGS: dict[str, tuple[Parts, dict[str, Any]]] = {
    "KL / batch": ({"weight.scaling": "batch"}, {}),
    "one scale": ({}, {"scheme": "rudner2022-validation"}),
}
"""Parts and other fields of a recipe that a reading changes, by its name."""


def other_reading(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return the runs of table 2, and those of other readings without turned images."""
    context, _, name = row.variant.partition(", ")
    base = recipe(replace(row, variant=context), dataset, protocol)
    if not name:
        return base
    parts, fields = OTHER_READINGS[name]
    return replace(base.with_parts(parts), sets=base.sets[:2], **fields)


_SMOKE = "channels 2, 4, 4 and 8 dense units, 1 epoch of batches of 2,000, 1 seed, 2 samples: the numbers mean nothing"


def _short(seeds: str, but: str, rows: tuple[Row, ...]) -> str:
    """Return the reductions of protocol short."""
    laplace = " (Laplace: 5 prior precisions, 5 draws)" if "Laplace" in [row.made_by for row in rows] else ""
    return f"{seeds}, 1 epoch instead of at most 100, 10 samples in prediction{but}{laplace}: far from converged"


def _columns(dataset: str, name: str) -> tuple[Column, ...]:
    ood = Cell(dataset, f"ood={PARTNERS[dataset]}", "ood_accuracy")
    return (
        column(dataset, "expected_log_likelihood", f"{name} expected LL"),
        column(dataset, "accuracy", f"{name} accuracy"),
        column(dataset, "ece_10", f"{name} ECE", published="ece"),
        Column(ood, f"{name} OOD accuracy", Cell(dataset, "", "ood_accuracy")),
    )


_COLUMNS = (*_columns("mnist", "MNIST"), *_columns("fashion_mnist", "FashionMNIST"))


def _table(
    number: str,
    title: str,
    rows: tuple[Row, ...],
    reading: str = "",
    columns: tuple[Column, ...] = _COLUMNS,
    make: Make = recipe,
) -> Table:
    return Table(
        f"{PAPER}-{number}{reading}",
        title,
        rows,
        columns,
        make,
        paper=PAPER,
        deviations=True,
        number=number,
        reductions={"short": _short(f"{_SEEDS['short']} seeds", ", no rotated images", rows), "smoke": _SMOKE},
    )


_OTHERS = {"MFVI": "MFVI", "VIP": "VIP", "Laplace": "Laplace", "GWI": "GWI"}
_RANDOM, _KMNIST = (
    Row(f"GFSVI ({shown})", "GFSVI", "GFSVI", context, f"context={context}")
    for context, shown in (("random", "random"), ("kmnist", "KMNIST"))
)
_READINGS = tuple(
    replace(row, label=f"{row.label}{ending}", variant=f"{row.variant}{ending}")
    for row, names in ((_KMNIST, OTHER_READINGS), (_RANDOM, ("KL / batch",)))
    for ending in ("", *(f", {name}" for name in names))
)
_TURNED_ROWS = tuple(replace(row, published=None) for row in _rows(("kmnist",), _OTHERS))
TABLES = (
    _table("2", "MNIST and FashionMNIST", _rows(("random", "kmnist"), _OTHERS)),
    _table("8", "MNIST and FashionMNIST, by measurement points", _rows(("random", "random_pixel", "kmnist"), {})),
    _table(
        "2",
        "GFSVI on FashionMNIST under several readings of the paper",
        _READINGS,
        "-readings",
        _columns("fashion_mnist", "FashionMNIST"),
        other_reading,
    ),
    Table(
        f"{PAPER}-figure-13",
        "Predictive entropy of turned images (figure 13)",
        _TURNED_ROWS,
        tuple(
            column(dataset, "predictive_entropy", f"{name} {angle}°", f"shift=rotation;angle={angle}")
            for dataset, name in (("mnist", "MNIST"), ("fashion_mnist", "FashionMNIST"))
            for angle in ANGLES
        ),
        rotated_recipe,
        reductions={"short": _short("1 seed", "", _TURNED_ROWS), "smoke": _SMOKE},
    ),
)
