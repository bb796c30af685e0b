"""dirichlet2022, tables 11 to 22 and figure 9: CIFAR-10 and CIFAR-100 under corruption and attack, with a ResNet-18.
Meant for a GPU.

One run of a method gives its row in all six tables of a data set, and in figure 9.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.records import published
from benchmarks.tables import cifar, rotated_mnist
from benchmarks.tables.fashion_mnist import MEMBERS, SEEDS
from benchmarks.tables.recipes import Parts, Recipe, layered, seeds
from benchmarks.tables.rotated_mnist import TITLES, shifted
from benchmarks.tables.spec import Column, Row, Table
from datasets.image_schemes import SCHEMES

PAPER = "dirichlet2022"
METHODS = {
    **rotated_mnist.METHODS,
    "Radial": "Radial",
    "Radial fVI": "Radial fVI",
    "Rank1": "Rank1",
    "Rank1 fVI": "Rank1 fVI",
    "Subnetwork": None,
}
RANK1_MEMBERS = 4
SEVERITIES = tuple(range(6))
EPSILONS = ("0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3")
_NAMES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
DRAWS = 5
"""Draws in training of the row that figure 9 adds, which has three seeds."""
PART: Parts = {"training.epochs": 30, "training.precision": "float32"}
"""Settings of the short trainings on a part of CIFAR-100, which has a tenth of the images."""
PART_SCHEME = f"{PAPER}-part"
PART_IMAGES = 500
"""Test images there that are corrupted and attacked."""


_COMMON = {
    "network": {"name": "resnet18", "norm": "batch"},
    "likelihood.name": "categorical",
    "training.epochs": 200,
    "training.batch_size": 128,
    "training.augment": {"crop": 4, "flip": True},
    "training.optimiser": {"name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.0},
    "training.schedule": {"name": "multistep", "at": [0.5, 0.75], "factor": 0.1},
}
_DECAY = {"training.optimiser.weight_decay": 5e-4}
_RANK1 = {"training.epochs": 250, "training.schedule.at": [0.6, 0.8]}
_OWN: dict[str, Parts] = {
    "MAP": _DECAY | {"divergence": None, "prior": None},
    "MC Dropout": _DECAY | {"family.rate": 0.2},
    "MC Dropout fVI": {"family.rate": 0.1},
    "Deep Ensemble": _DECAY,
    "Rank1": _RANK1 | {"training.optimiser.weight_decay": 1e-4},
    "Rank1 fVI": _RANK1,
    "Rank1 Ensemble": _RANK1,
}


def _parts(row: Row, dataset: str) -> Parts:
    """App. F: SGD as He et al. (2016), 200 epochs (Rank1 250), weight decay for weight-space rows; see the notes."""
    tenth = dataset == "cifar100" and "fVI" in row.made_by
    return layered(_COMMON, _OWN.get(row.made_by, {}), {"weight.factor": 0.1} if tenth else {})


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Train on all training images, cropped and flipped. Prediction: 10 draws, or the members."""
    parts, count = _parts(row, dataset), SEEDS[protocol]
    if row.variant:
        parts, count = layered(parts, {"training.samples": DRAWS}), min(count, 3)
    part = protocol == "short" and dataset == "cifar100"
    if protocol == "short":
        parts = layered(cifar.shortened(parts), PART if part else {})
    if protocol == "smoke":
        parts = layered(parts, {"network.width": 2, "training.epochs": 1})
    members = MEMBERS[protocol] if "Ensemble" in row.made_by else RANK1_MEMBERS * row.made_by.startswith("Rank1")
    parts, samples = layered(parts, {"family.size": members} if members else {}), members or 10
    corrupted = (f"{dataset}_c-{severity}" for severity in SEVERITIES)
    shifted_sets = (*corrupted, *(f"fgsm-{epsilon}" for epsilon in EPSILONS))
    if protocol == "short":
        shifted_sets = tuple(cifar.some(each, PART_IMAGES if part else cifar.IMAGES) for each in shifted_sets)
    samples = min(samples, 4) if protocol == "smoke" else samples
    return Recipe(parts, seeds(count), PART_SCHEME if part else PAPER, samples=samples, sets=("test", *shifted_sets))


def _reductions(dataset: str) -> dict[str, str]:
    """Return in words what each reduced protocol has in place of the paper's settings."""
    trained, tested = SCHEMES["cifar100"][PART_SCHEME].part or (0, 0)
    part = f"{trained:,} training and {tested:,} test images, all from CIFAR-100's training images; "
    part += cifar.reduction(PART["training.epochs"], "")
    smoke = "a ResNet-18 of 2 to 16 channels, 1 epoch, 1 seed, ensembles of 2, at most 4 samples"
    return {
        "short": part if dataset == "cifar100" else cifar.reduction(),
        "smoke": f"{smoke}: the numbers mean nothing",
    }


def _rows(number: str) -> tuple[Row, ...]:
    known = {cell.method for cell in published.table(PAPER, number).values()}
    return tuple(Row(label, label, method) for label, method in METHODS.items() if label in known)


def _columns(dataset: str, shift: str, metric: str) -> tuple[Column, ...]:
    key, name, levels = ("severity", "severity ", SEVERITIES) if shift.endswith("_c") else ("epsilon", "ε = ", EPSILONS)
    return tuple(shifted(dataset, f"shift={shift};{key}={level}", metric, f"{name}{level}") for level in levels)


def _table(number: int, dataset: str, shift: str, metric: str) -> Table:
    how = "corrupted" if shift.endswith("_c") else "attacked"
    return Table(
        f"{PAPER}-{number}",
        f"{TITLES[metric]} on {how} {_NAMES[dataset]}",
        _rows(str(number)),
        _columns(dataset, shift, metric),
        recipe,
        paper=PAPER,
        number=str(number),
        reductions=_reductions(dataset),
        gpu=("paper",),
    )


_ORDER = tuple((name, shift, metric) for name in _NAMES for shift in (f"{name}_c", "fgsm") for metric in TITLES)
_TABLES = tuple(_table(number, *which) for number, which in enumerate(_ORDER, start=11))
_CORRUPTED = _TABLES[: len(TITLES)]
FIGURE_9 = replace(
    _CORRUPTED[0],
    name=f"{PAPER}-figure-9",
    title="Corrupted CIFAR-10 with five draws of MC Dropout in training (figure 9)",
    rows=(
        *(replace(row, published=None) for row in _CORRUPTED[0].rows if row.method),
        Row(f"MC Dropout fVI, {DRAWS} draws", method="MC Dropout fVI", variant=f"{DRAWS} draws"),
    ),
    columns=tuple(
        replace(column, label=f"{title}, {column.label}", published=None)
        for title, table in zip(TITLES.values(), _CORRUPTED)
        for column in table.columns
    ),
    paper=None,
    number=None,
)
TABLES = (*_TABLES, FIGURE_9)
