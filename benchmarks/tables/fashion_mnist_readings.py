"""Readings of rudner2022's table 1 (FashionMNIST): FSVI by each code's combination of estimator, prior and weight, and
the baselines by settings that the paper does not print: MAP's penalty, the rate of dropout, MFVI's prior and its
weight, BNN-Laplace's prior precision, training as in the notebook or in the later code, and its length; and the same
trainings with more draws in prediction, and by another score of uncertainty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from benchmarks.records.rows import with_score
from benchmarks.tables import fashion_mnist
from benchmarks.tables.fashion_mnist import PAPER
from benchmarks.tables.recipes import Parts, Recipe
from benchmarks.tables.spec import Column, Row, Table, column

MEAN_FIELD: Parts = {"name": "mean_field", "log_var_init": [-10.0, -8.0]}
ALL_LAYERS: Parts = {"family": MEAN_FIELD, "divergence": {"jacobian": "full", "stop_gradient": True}}
FULL_COVARIANCE: Parts = {
    "family": MEAN_FIELD,
    "divergence": {"jacobian": "full", "covariance": "full", "jitter": 1e-3},
    "prior": {"name": "gaussian_weights", "variance": 0.005, "features": "draw", "jacobian": "full"},
}
LAST_LAYER: Parts = {
    "family": MEAN_FIELD,
    "divergence": {"covariance": "full", "jitter": 1e-6},
    "prior": {"name": "gaussian_weights", "variance": 1.0, "features": "initial", "jacobian": "last_layer"},
}
CODE_2023: Parts = {
    "family": {
        "name": "mean_field",
        "log_var_init": [-20.0, -20.0],
        "log_var_init_of": {"head.weight": [-50.0, -49.9], "head.bias": [-8.0, -7.9]},
    },
    "divergence": {"covariance": "full", "jitter": 1e-6},
    "prior": LAST_LAYER["prior"] | {"centred": False},
    "weight": {"scaling": "elbo"},
}
TRAINING_2023: Parts = {
    "samples": 1,
    "clip": 1.0,
    "optimiser": {"name": "sgd", "lr": 0.005, "momentum": 0.9},
    "schedule": {"name": "cosine", "final": 0.005},
}
EPOCHS_2023: Parts = {"training": {"epochs": 200}}
CONTEXTS_2023: dict[str, Parts] = {
    "monochrome": {"name": "random_monochrome", "points": 32},
    "kmnist": {"name": "images", "points": 32, "pool": "kmnist"},
}
MONOCHROME_ALONE, WHOLE_CODE_2023, TRAINING_OF_2023 = "monochrome images alone", "code of 2023", "training of 2023"
READINGS: dict[str, Parts] = {
    "": {},
    MONOCHROME_ALONE: {"context": {"name": "random_monochrome", "points": 4}},
    "all layers (code of 2022)": ALL_LAYERS,
    "all layers, full covariance (code of 2022)": FULL_COVARIANCE,
    WHOLE_CODE_2023: CODE_2023 | {"training": TRAINING_2023},
    "code of 2023, training of 2022": CODE_2023,
    "training of 2023": {"training": TRAINING_2023},
    "last layer's weights, KL of 2022": LAST_LAYER,
}
_PUBLISHED = {row.variant: row for row in fashion_mnist.ROWS if row.made_by == "FSVI"}
ROWS = tuple(
    replace(row, label=", ".join(filter(None, (row.label, reading))), variant=f"{variant};{reading}")
    for variant, row in _PUBLISHED.items()
    for reading in READINGS
    if (variant, reading) != ("kmnist", MONOCHROME_ALONE)
)


def fsvi_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return FSVI of table rudner2022-1 with other estimators, priors, weights and, for the code of 2023, contexts."""
    context, _, reading = row.variant.partition(";")
    base = fashion_mnist.recipe(replace(row, variant=context), dataset, protocol).with_parts(READINGS[reading])
    if WHOLE_CODE_2023 in reading:
        base = base.with_parts({"context": CONTEXTS_2023[context]})
    return base.with_parts(EPOCHS_2023) if reading == WHOLE_CODE_2023 and protocol == "paper" else base


_TABLE = replace(fashion_mnist.TABLES[0], number=None)
IMAGES = 60_000
"""Training images of FashionMNIST, all of which rudner2022 uses."""


def _prior(variance: float) -> Parts:
    return {"prior": {"variance": variance}}


BY_VALIDATION = "precision by validation"
UNPRINTED: dict[str, tuple[str, tuple[str, ...], dict[str, Parts]]] = {
    "penalty": (
        "MAP by the penalty on its weights",
        ("MAP",),
        {f"decay {label}": _prior(1 / (IMAGES * decay)) for label, decay in (("1e-4", 1e-4), ("1e-3", 1e-3))},
    ),
    "dropout": (
        "MC Dropout by its rate",
        ("MC Dropout",),
        {f"rate {label}": {"family": {"rate": rate}} for label, rate in ((".25", 0.25), (".5", 0.5))},
    ),
    "prior": (
        "MFVI by the variance of its prior",
        ("MFVI",),
        {f"variance {variance:g}": _prior(variance) for variance in (0.1, 0.01, 0.005)},
    ),
    "weight": (
        "MFVI by the weight of its KL divergence",
        ("MFVI",),
        {f"{factor:g} times the weight": {"weight": {"factor": factor}} for factor in (3.0, 5.0, 10.0)},
    ),
    "laplace": (
        "BNN-Laplace by its prior precision",
        ("BNN-Laplace",),
        {
            BY_VALIDATION: {"fit.precision": "validation"},
            **{
                f"precision {delta}, in training too": {"fit.precision": "prior", "prior.variance": 1 / delta}
                for delta in (10, 100)
            },
        },
    ),
    "training": (
        "baselines by the training of the authors' two codes",
        ("MAP", "MFVI", "MC Dropout", "Deep Ensemble"),
        {TRAINING_OF_2023: READINGS[TRAINING_OF_2023]},
    ),
}
"""Tables by suffix: title, rows of table rudner2022-1, and changed parts by variant. A weight decay, for the mean loss
over images, is a prior of variance 1 / (images x decay)."""
CHANGES: dict[str, Parts] = {"": {}} | {name: parts for *_, own in UNPRINTED.values() for name, parts in own.items()}


def baseline_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return the row of table rudner2022-1 with the variant's changes."""
    base = fashion_mnist.recipe(replace(row, variant=""), dataset, protocol).with_parts(CHANGES[row.variant])
    # a tenth of the training images held out
    return replace(base, scheme=f"{PAPER}-validation") if row.variant == BY_VALIDATION else base


def _varied(labels: tuple[str, ...], variants: Iterable[str]) -> tuple[Row, ...]:
    return tuple(each for row in fashion_mnist.ROWS if row.label in labels for each in row.varied("", *variants))


def _baselines(suffix: str, title: str, labels: tuple[str, ...], variants: dict[str, Parts]) -> Table:
    return _TABLE.beside(suffix, f"FashionMNIST: {title}", rows=_varied(labels, variants), recipe=baseline_recipe)


LENGTHS = {f"{epochs} epochs": epochs for epochs in (10, 20)}


def shorter_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return the row of table rudner2022-1 after fewer epochs; those of protocol smoke are few already."""
    base = fashion_mnist.recipe(replace(row, variant=""), dataset, protocol)
    fewer: Parts = {"training": {"epochs": LENGTHS[row.variant]}} if row.variant and protocol == "paper" else {}
    return base.with_parts(fewer)


ONE_FUNCTION = ("MAP", "SWAG", "DUQ")
"""Methods that predict with one function, however many draws there are; its mutual information is 0 at every input."""
BY_INFORMATION, MORE_DRAWS = "by information", "100 draws"
SEVERAL = tuple(row for row in fashion_mnist.ROWS if row.method and row.method not in ONE_FUNCTION)
DRAWN = tuple(row for row in SEVERAL if "Ensemble" not in row.made_by)


def _changed(rows: tuple[Row, ...], change: str) -> tuple[Row, ...]:
    return tuple(replace(row, label=f"{row.label}, {change}") for row in rows)


def draws_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return the row of table rudner2022-1, with ten times as many draws in prediction where its label names them."""
    base = fashion_mnist.recipe(row, dataset, protocol)
    return replace(base, samples=10 * base.samples) if MORE_DRAWS in row.label else base


def _by_information(column: Column) -> Column:
    cell = replace(column.cell, condition=with_score(column.cell.condition, "mutual_information"))
    return replace(column, cell=cell, published=column.cell)


TABLES = (
    _TABLE.beside(
        "readings",
        "FashionMNIST: FSVI by what is read of paper and codes",
        rows=ROWS,
        columns=(*_TABLE.columns, column("fashion_mnist", "nll", "NLL")),
        recipe=fsvi_recipe,
    ),
    *(_baselines(suffix, *setting) for suffix, setting in UNPRINTED.items()),
    _TABLE.beside(
        "epochs",
        "FashionMNIST: baselines by the length of their training",
        rows=_varied(("MAP", "MC Dropout", "Deep Ensemble"), LENGTHS),
        recipe=shorter_recipe,
        protocols=("paper", "smoke"),
        reductions={"smoke": fashion_mnist.REDUCTIONS["smoke"]},
    ),
    _TABLE.beside(
        "draws", "FashionMNIST: predictions with 100 draws", rows=_changed(DRAWN, MORE_DRAWS), recipe=draws_recipe
    ),
    _TABLE.beside(
        "scores",
        "FashionMNIST: out-of-distribution detection by mutual information",
        rows=_changed((*SEVERAL, *_changed(DRAWN, MORE_DRAWS)), BY_INFORMATION),
        columns=tuple(map(_by_information, _TABLE.columns[2:])),
        recipe=draws_recipe,
    ),
)
