"""rudner2022, table 2: CIFAR-10 with a ResNet-18, also named ``cifar10``. Made for a GPU."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import cifar_short
from benchmarks.tables.recipes import Parts, Recipe, layered, seeds
from benchmarks.tables.spec import Row, Table, column

PAPER, DATASET = "rudner2022", "cifar10"
ROWS = (
    Row("MAP", "MAP", "MAP"),
    Row("MFVI", "MFVI [Blundell et al., 2015]", "MFVI"),
    Row("MFVI (tempered)", "MFVI (tempered)", "MFVI (tempered)"),
    Row("MC Dropout", "MC DROPOUT [Gal and Ghahramani, 2016]", "MC Dropout"),
    Row("SWAG", "SWAG [Maddox et al., 2019]", "SWAG"),
    Row("VOGN", "VOGN [Osawa et al., 2019]", "VOGN"),
    Row("DUQ", "DUQ [van Amersfoort et al., 2020]", "DUQ"),
    Row("DUQ, its own settings", "DUQ [van Amersfoort et al., 2020]", "DUQ", "own"),
    Row("SPG", "SPG [Ma and Hernández-Lobato, 2021]"),
    Row("FSVI (monochrome)", "FSVI (pXC = random monochrome)", "FSVI", "monochrome"),
    Row("FSVI (CIFAR-100)", "FSVI (pXC = CIFAR-100)", "FSVI", "cifar100"),
    Row("Deep Ensemble", "Deep Ensemble", "Deep Ensemble"),
    Row("Deep Ensemble of MAP", "Deep Ensemble", "MAP Ensemble"),
    Row("FSVI Ensemble (monochrome)", "FSVI Ensemble (pXC = random monochrome)", "FSVI Ensemble", "monochrome"),
)
_FURTHER: dict[str, Parts] = {
    "monochrome": {"name": "random_monochrome"},
    "cifar100": {"name": "images", "pool": "cifar100"},
}


def context(variant: str, share: int = 1) -> Parts:
    """Return the training batch and 32 further images, or a part of both."""
    batch: Parts = {"name": "training_batch"} | ({"points": 128 // share} if share > 1 else {})
    return {"name": "mixture", "parts": [batch, {**_FURTHER[variant], "points": 32 // share}]}


DUQ_FAMILY = {"size": 512, "count": 13.0, "weight_std": (2 / (10 * 512)) ** 0.5, "centroid_std": 0.05}
DUQ_OWN: Parts = {
    "training.epochs": 100,
    "training.clip": None,
    "training.optimiser": {"lr": 0.05, "weight_decay": 5e-4},
    "training.schedule": {"name": "multistep", "at": [0.25, 0.5, 0.75], "factor": 0.2},
}
VOGN: Parts = {
    "name": "vogn", "epochs": 161, "batch_size": 256, "lr": 1e-4, "momentum": 0.9, "damping": 1e-3, "newest": 0.999,
    "data_factor": 10.0, "samples": 5, "augment": {"crop": 4, "flip": True},
    "schedule": {"name": "multistep", "at": [80 / 161, 120 / 161], "factor": 0.1},
}  # fmt: skip
_COMMON = {
    "network": {"name": "resnet18", "norm": "batch", "context_statistics": "shared"},
    "likelihood.name": "categorical",
    "training": {"epochs": 200, "batch_size": 128, "clip": 1.0, "augment": {"crop": 4, "flip": True}},
    "training.optimiser": {"name": "sgd", "lr": 0.005, "momentum": 0.9},
    "training.schedule": {"name": "cosine", "final": 0.05},
}
_NARROW = [-20.0, -18.0]
_OWN: dict[str, Parts] = {
    "MFVI": {"family.log_var_init": _NARROW},
    "MFVI (tempered)": {"family.log_var_init": _NARROW},
    "MC Dropout": {"family.rate": 0.1},
    "SWAG": {
        "family": {"rank": 20, "start": 0.8, "scale": 0.0},
        "training": {"clip": None, "optimiser": {"lr": 0.01, "weight_decay": 1e-4}},
        "training.schedule": {"name": "linear", "final": 2.0},
    },
    "VOGN": {"training": VOGN, "prior.variance": 0.02},
    "DUQ": {"family": DUQ_FAMILY, "weight.factor": 0.5},
    "FSVI": {"family.log_var_init": _NARROW, "prior.variance": 0.1},
    "FSVI Ensemble": {"family.base.log_var_init": _NARROW, "prior.variance": 0.1},
}
_SEEDS = {"paper": 10, "short": cifar_short.SEEDS, "smoke": 1}
_MEMBERS = {"paper": 5, "short": cifar_short.MEMBERS, "smoke": 2}


def _parts(row: Row, protocol: str) -> Parts:
    """Return the ResNet-18 configuration of the authors' code of 2023; see the notes."""
    parts = layered(_COMMON, _OWN.get(row.made_by, {}), DUQ_OWN if row.variant == "own" else {})
    if row.made_by in ("FSVI", "FSVI Ensemble"):
        share = cifar_short.NARROWED if protocol == "short" else 1
        parts["context"] = context(row.variant, share) if row.variant in _FURTHER else None
    if protocol == "short":
        parts = _shortened(row, parts)
    if protocol == "smoke":
        swag = row.made_by == "SWAG"
        fewer = {"network.width": 2, "training.epochs": 2 if swag else 1, "training.samples": 1}
        parts = layered(parts, fewer, {"family.start": 0.0} if swag else {})
    return layered(parts, {"family.size": _MEMBERS[protocol]}) if "Ensemble" in row.made_by else parts


def _shortened(row: Row, parts: Parts) -> Parts:
    """Shorten training; SWAG, DUQ with its own settings and VOGN keep their schedules over fewer epochs, VOGN also its
    training part."""
    if row.made_by == "VOGN":
        fewer = {"training.epochs": cifar_short.EPOCHS, "training.samples": 1}
        return layered(parts, fewer, {"network.width": cifar_short.WIDTH})
    return cifar_short.shortened(parts, cycle=row.made_by != "SWAG" and row.variant != "own")


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Train on all training images, cropped and flipped; evaluate on SVHN's test images and CIFAR-10-C at
    severity 2.
    """
    samples = 2 if protocol == "smoke" else 20 if row.made_by == "VOGN" else 10
    corrupted = f"{DATASET}_c-2"
    sets = ("test", "ood-svhn", cifar_short.some(corrupted) if protocol == "short" else corrupted)
    return Recipe(_parts(row, protocol), seeds(_SEEDS[protocol]), PAPER, samples=samples, sets=sets)


REDUCTIONS = {
    "short": (
        f"{cifar_short.REDUCTION}; SWAG with its own learning rate, averaged over the last 3 epochs; DUQ with its own "
        "settings, and VOGN, with their own learning rates, lowered at the same parts of the training; VOGN in float32"
    ),
    "smoke": (
        "a ResNet-18 of 2 to 16 channels, 1 epoch (SWAG 2), 1 seed, ensembles of 2, 2 samples: a test of the way, not "
        "of the methods"
    ),
}


_COLUMNS = (
    column(DATASET, "accuracy", "accuracy %", "", 100, 2),
    column(DATASET, "ece_10", "ECE", published="ece"),
    column(DATASET, "ood_auroc", "AUROC % SVHN", "ood=svhn", 100, 2),
    column(DATASET, "accuracy", "accuracy % CIFAR-10-C", f"shift={DATASET}_c;severity=2", 100, 2),
)
POINTS = {"40": 4, "160": 1}
"""Numbers of context points, and the divisor of the paper's."""


def points_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """FSVI of the table, with other numbers of context points."""
    first = recipe(replace(row, variant="monochrome"), dataset, protocol)
    return replace(first, parts=first.parts | {"context": context("monochrome", POINTS[row.variant])})


TABLES = (
    Table(
        f"{PAPER}-2",
        "CIFAR-10: accuracy, calibration, SVHN as out-of-distribution inputs, corrupted images",
        ROWS,
        _COLUMNS,
        recipe,
        paper=PAPER,
        number="2",
        aliases=("cifar10",),
        reductions=REDUCTIONS,
        gpu=("paper",),
    ),
    Table(
        "cifar10-fsvi",
        "CIFAR-10: FSVI by the number of its context points",
        tuple(Row(f"FSVI (monochrome), {points} points", None, "FSVI", points) for points in POINTS),
        _COLUMNS,
        points_recipe,
        protocols=("short", "smoke"),
        reductions=REDUCTIONS,
    ),
)
