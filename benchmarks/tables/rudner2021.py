"""rudner2021, table 1: FashionMNIST against MNIST, CIFAR-10 against SVHN; convolutions without batch normalisation.

Figure 2: predictive entropies of the same runs. Figure 8: the same on FashionMNIST by the number of inducing points.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import cifar
from benchmarks.tables.fashion_mnist import MEMBERS, SEEDS
from benchmarks.tables.recipes import Recipe, layered, seeds
from benchmarks.tables.spec import Column, Row, Table, column

PAPER = "rudner2021"
ROWS = (
    Row("FSVI (rudner2021)", "FSVI", "FSVI (rudner2021)"),
    Row("MFVI", "MFVI", "MFVI"),
    Row("MAP", "MAP", "MAP"),
    Row("Deep Ensemble", "Ensemble", "Deep Ensemble"),
)
OOD = {"fashion_mnist": "mnist", "cifar10": "svhn"}
NETWORKS = {
    "fashion_mnist": {"name": "cnn", "channels": [32, 64], "pool": [1, 1], "dense": [128]},
    "cifar10": {"name": "cnn", "channels": [32, 32, 64, 64, 128, 128], "pool": [0, 1, 0, 1, 0, 1], "dense": [128]},
}
_TINY = {
    "fashion_mnist": {"channels": [4, 8], "dense": [16]},
    "cifar10": {"channels": [2, 2, 4, 4, 8, 8], "dense": [16]},
}
_STOPPED = 3
"""MFVI stops after the epochs divided by this number."""
_COMMON = {"likelihood.name": "categorical", "training.batch_size": 128, "training.optimiser.name": "adam"}
_FEW = {"training.epochs": 1, "training.samples": 1, "training.optimiser.lr": 1e-3}
_PROTOCOLS = {
    "paper": {"training.epochs": 30, "training.samples": 5, "training.optimiser.lr": 5e-4},
    "short": _FEW | {"training.epochs": 5},
    "smoke": _FEW,
}
_CIFAR = {"training.augment": {"crop": 4, "flip": True}}
_CIFAR_SHORT = cifar.IN_BFLOAT16 | {"training.epochs": 10}
_DECAY = {"divergence.name": "weight_penalty", "prior.name": "gaussian_weights", "prior.variance": 10.0}
_OWN = {
    "FSVI (rudner2021)": {
        "prior.variance": 1e6,
        "weight.scaling": "batch",
        "context": {"name": "uniform_noise", "points": 4, "margin": 0.0},
    },
    "MAP": _DECAY,
    "Deep Ensemble": _DECAY,
}


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Supplement, section 3: Adam, diagonal KL over all layers, prior variance 1e6, inducing points uniform over
    pixels.
    """
    cifar, smoke = dataset == "cifar10", protocol == "smoke"
    parts = layered(_COMMON, {"network": NETWORKS[dataset]}, _PROTOCOLS[protocol], _CIFAR if cifar else {})
    parts = layered(parts, _CIFAR_SHORT if cifar and protocol == "short" else {}, _OWN.get(row.made_by, {}))
    if row.made_by == "MFVI":
        parts = layered(parts, {"training.epochs": max(1, round(parts["training"]["epochs"] / _STOPPED))})
    if row.made_by == "Deep Ensemble":
        parts = layered(parts, {"family.size": MEMBERS[protocol]})
    parts = layered(parts, {"network": _TINY[dataset]} if smoke else {})
    return Recipe(
        parts, seeds(SEEDS[protocol]), PAPER, samples=2 if smoke else 10, sets=("test", f"ood-{OOD[dataset]}")
    )


POINTS = (1, 2, 4, 8, 16, 32)
_POINTS_SEEDS = 3


def points_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return table 1's setting with the row's number of inducing points."""
    base = recipe(row, dataset, protocol)
    base = replace(base, replicates=base.replicates[:_POINTS_SEEDS])
    return base.with_parts({"context": {"points": int(row.variant)}}) if row.variant else base


REDUCTIONS = {
    "short": (
        "5 epochs, on CIFAR-10 10 with products and convolutions in bfloat16, at learning rate 0.001 and one draw in "
        "training, 3 seeds, ensembles of 3"
    ),
    "smoke": (
        "an eighth of the channels or less, 1 epoch, 1 seed, ensembles of 2, 2 samples: the numbers mean nothing"
    ),
}


NAMES = {"fashion_mnist": "FashionMNIST", "mnist": "MNIST", "cifar10": "CIFAR-10", "svhn": "SVHN"}


def _columns(dataset: str) -> tuple[Column, ...]:
    name, ood = NAMES[dataset], f"ood={OOD[dataset]}"
    return (
        column(dataset, "accuracy", f"{name} accuracy %", "", 100.0, 1),
        column(dataset, "ece_10", f"{name} ECE", published="ece"),
        column(dataset, "ood_auroc", f"{name} AUROC % by information", f"{ood};score=mutual_information", 100.0, 1),
        column(dataset, "ood_auroc", f"{name} AUROC % by entropy", f"{ood};score=predictive_entropy", 100.0, 1),
    )


TABLES = (
    Table(
        f"{PAPER}-1",
        "FashionMNIST with MNIST, and CIFAR-10 with SVHN, as out-of-distribution inputs",
        ROWS,
        (*_columns("fashion_mnist"), *_columns("cifar10")),
        recipe,
        paper=PAPER,
        number="1",
        reductions=REDUCTIONS,
    ),
    Table(
        f"{PAPER}-figure-2",
        "Predictive entropy on test and on out-of-distribution inputs (figure 2)",
        ROWS,
        tuple(
            column(dataset, "predictive_entropy", f"{NAMES[dataset]}, on {NAMES[inputs]}", condition)
            for dataset, other in OOD.items()
            for inputs, condition in ((dataset, ""), (other, f"ood={other}"))
        ),
        recipe,
        reductions=REDUCTIONS,
    ),
    Table(
        f"{PAPER}-figure-8",
        "FashionMNIST by the number of inducing points (figure 8)",
        tuple(Row(f"FSVI, {n} points", None, "FSVI (rudner2021)", f"{n}") for n in POINTS),
        (
            column("fashion_mnist", "accuracy", "accuracy %", "", 100.0),
            column("fashion_mnist", "ece_10", "ECE"),
            column("fashion_mnist", "predictive_entropy", "predictive entropy on MNIST", "ood=mnist"),
            column("fashion_mnist", "ood_auroc", "AUROC % by entropy", "ood=mnist;score=predictive_entropy", 100.0),
        ),
        points_recipe,
        reductions=REDUCTIONS,
    ),
)
