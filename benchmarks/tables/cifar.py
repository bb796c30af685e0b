"""rudner2022, table 2: CIFAR-10 with a ResNet-18, also named ``cifar10``. Made for a GPU.

Protocol short, for the other papers' tables on CIFAR-10 too: a paper's settings reduced to hours without a GPU.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import fashion_mnist
from benchmarks.tables.fashion_mnist import MEMBERS, SEEDS
from benchmarks.tables.recipes import Parts, Recipe, layered, seeds
from benchmarks.tables.spec import Row, Table, column

EPOCHS, WIDTH, IMAGES = 15, 16, 1000
NARROWED = 64 // WIDTH
"""Divisor of the numbers of channels, and so of features."""
PEAK = 0.1
"""Learning rate at the top of the cycle."""
IN_BFLOAT16 = {"training.precision": "bfloat16"}


def shortened(parts: Parts, cycle: bool = True) -> Parts:
    """Return a row's parts with a narrow ResNet-18, few epochs and, unless ``cycle`` is off, one learning
    rate cycle.
    """
    own = {"training.optimiser.lr": PEAK, "training.schedule": {"name": "one_cycle"}}
    return layered(parts, IN_BFLOAT16, {"network.width": WIDTH, "training.epochs": EPOCHS}, own if cycle else {})


def some(evaluation_set: str, images: int = IMAGES) -> str:
    """Return a corrupted or attacked set of so many images."""
    return f"{evaluation_set}-of-{images}"


def reduction(epochs: int = EPOCHS, more: str = "products and convolutions in bfloat16, ") -> str:
    """Return in words what shortened trainings have in place of the papers' settings."""
    return (
        f"a ResNet-18 of {WIDTH} to {8 * WIDTH} channels in place of 64 to 512, {epochs} epochs in place of 200 or "
        f"250, SGD in one cycle of the learning rate up to {PEAK:g} and down, {more}"
        f"{SEEDS['short']} seeds, ensembles of {MEMBERS['short']}"
    )


PAPER, DATASET = "rudner2022", "cifar10"


def _shared(*labels: str) -> tuple[Row, ...]:
    return tuple(row for row in fashion_mnist.ROWS if row.label in labels)


ROWS = (
    *_shared("MAP", "MFVI", "MFVI (tempered)", "MC Dropout", "SWAG"),
    Row("VOGN", "VOGN [Osawa et al., 2019]", "VOGN"),
    *_shared("DUQ", "DUQ, its own settings", "SPG", "FSVI (monochrome)"),
    Row("FSVI (CIFAR-100)", "FSVI (pXC = CIFAR-100)", "FSVI", "cifar100"),
    *_shared("Deep Ensemble", "Deep Ensemble of MAP", "FSVI Ensemble (monochrome)"),
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


def _parts(row: Row, protocol: str) -> Parts:
    """Return the ResNet-18 configuration of the authors' code of 2023; see the notes."""
    parts = layered(_COMMON, _OWN.get(row.made_by, {}), DUQ_OWN if row.variant == "own" else {})
    if row.made_by in ("FSVI", "FSVI Ensemble"):
        share = NARROWED if protocol == "short" else 1
        parts["context"] = context(row.variant, share) if row.variant in _FURTHER else None
    if protocol == "short":
        parts = _shortened(row, parts)
    if protocol == "smoke":
        swag = row.made_by == "SWAG"
        fewer = {"network.width": 2, "training.epochs": 2 if swag else 1, "training.samples": 1}
        parts = layered(parts, fewer, {"family.start": 0.0} if swag else {})
    return layered(parts, {"family.size": MEMBERS[protocol]}) if "Ensemble" in row.made_by else parts


def _shortened(row: Row, parts: Parts) -> Parts:
    """Shorten training; SWAG, DUQ with its own settings and VOGN keep their schedules over fewer epochs, VOGN also its
    training part."""
    if row.made_by == "VOGN":
        return layered(parts, {"training.epochs": EPOCHS, "training.samples": 1, "network.width": WIDTH})
    return shortened(parts, cycle=row.made_by != "SWAG" and row.variant != "own")


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Train on all training images, cropped and flipped; evaluate on SVHN's test images and CIFAR-10-C at
    severity 2.
    """
    samples = 2 if protocol == "smoke" else 20 if row.made_by == "VOGN" else 10
    corrupted = f"{DATASET}_c-2"
    sets = ("test", "ood-svhn", some(corrupted) if protocol == "short" else corrupted)
    return Recipe(_parts(row, protocol), seeds(SEEDS[protocol]), PAPER, samples=samples, sets=sets)


REDUCTIONS = {
    "short": (
        f"{reduction()}; SWAG with its own learning rate, averaged over the last 3 epochs; DUQ with its own "
        "settings, and VOGN, with their own learning rates, lowered at the same parts of the training; VOGN in float32"
    ),
    "smoke": (
        "a ResNet-18 of 2 to 16 channels, 1 epoch (SWAG 2), 1 seed, ensembles of 2, 2 samples: the numbers mean nothing"
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


TABLE = Table(
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
)
TABLES = (
    TABLE,
    TABLE.beside(
        "nll",
        "CIFAR-10: negative log-likelihood, which the paper does not print, of the runs of table 2",
        rows=tuple(row for row in ROWS if row.method),
        columns=(column(DATASET, "nll", "NLL"),),
        paper=None,
        number=None,
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
