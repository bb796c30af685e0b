"""dirichlet2022, tables 11 to 22 and figure 9: CIFAR-10 and CIFAR-100 under corruption and attack, with a ResNet-18.
Meant for a GPU.

One run of a method gives its row in all six tables of a data set, and in figure 9.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.records import published
from benchmarks.tables import cifar_short, rotated_mnist
from benchmarks.tables.rotated_mnist import TITLES, shifted
from benchmarks.tables.spec import Column, Parts, Recipe, Row, Table, merge

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
_SEEDS = {"paper": 10, "short": cifar_short.SEEDS, "smoke": 1}
DRAWS = 5
"""Draws in training of the row that figure 9 adds, which has three seeds."""
_MEMBERS = {"paper": 5, "short": cifar_short.MEMBERS, "smoke": 2}


def _parts(row: Row, dataset: str) -> Parts:
    """App. F: SGD as He et al. (2016), 200 epochs (Rank1 250), weight decay for weight-space rows; see the notes."""
    decay = {"MAP": 5e-4, "MC Dropout": 5e-4, "Deep Ensemble": 5e-4, "Rank1": 1e-4}.get(row.made_by, 0.0)
    slow = row.made_by.startswith("Rank1")
    common = {
        "network": {"name": "resnet18", "norm": "batch"},
        "likelihood": {"name": "categorical"},
        "training": {
            "epochs": 250 if slow else 200,
            "batch_size": 128,
            "augment": {"crop": 4, "flip": True},
            "optimiser": {"name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": decay},
            "schedule": {"name": "multistep", "at": [0.6, 0.8] if slow else [0.5, 0.75], "factor": 0.1},
        },
    }
    own: dict[str, Parts] = {
        "MAP": {"divergence": None, "prior": None},
        "MC Dropout": {"family": {"rate": 0.2}},
        "MC Dropout fVI": {"family": {"rate": 0.1}},
    }
    parts = merge(common, own.get(row.made_by, {}))
    return merge(parts, {"weight": {"factor": 0.1}}) if dataset == "cifar100" and "fVI" in row.made_by else parts


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Train on all training images, cropped and flipped. Prediction: 10 draws, or the members."""
    if protocol == "short" and dataset != "cifar10":
        return None
    parts, seeds = _parts(row, dataset), _SEEDS[protocol]
    if row.variant:
        parts, seeds = merge(parts, {"training": {"samples": DRAWS}}), min(seeds, 3)
    if protocol == "short":
        parts = cifar_short.shortened(parts)
    if protocol == "smoke":
        parts = merge(parts, {"network": {"width": 2}, "training": {"epochs": 1}})
    samples = 10
    if "Ensemble" in row.made_by:
        samples = _MEMBERS[protocol]
        parts = merge(parts, {"family": {"size": samples}})
    elif row.made_by.startswith("Rank1"):
        samples = RANK1_MEMBERS
        parts = merge(parts, {"family": {"size": RANK1_MEMBERS}})
    corrupted = (f"{dataset}_c-{severity}" for severity in SEVERITIES)
    shifted_sets = (*corrupted, *(f"fgsm-{epsilon}" for epsilon in EPSILONS))
    sets = ("test", *(map(cifar_short.some, shifted_sets) if protocol == "short" else shifted_sets))
    replicates = tuple((0, seed) for seed in range(seeds))
    return Recipe(parts, replicates, PAPER, samples=min(samples, 4) if protocol == "smoke" else samples, sets=sets)


NOTES = (
    "Where the paper is silent. Initial learning rate: .1, as He et al. (2016), whom it follows. Weight decay of "
    "Radial, and of every row with fVI: none. Initial weights: uniform within 1 / sqrt(fan-in), PyTorch's default. "
    "ECE: 15 bins. Log-likelihood: of the mean over samples, smoothed by 1e-4, as its values for rotated MNIST tell "
    "(see there).",
    "Dropout: after each of the network's 17 ReLUs, a mask for every channel's every pixel. The paper gives the rates "
    "(.2, with fVI .1) and not the places; fewer of them would be less dropout.",
    "Rank1: 4 predictions, one draw of each of the 4 members, as the paper replicates the input M times for M distinct "
    "predictions (App. F). Its weight decay, 1e-4, is on all that is trained, so that it pulls the means of the "
    "factors, which start at 1, and rho to 0; the paper does not say whether the shared weights alone have it. With "
    "fVI: none.",
    "Batch normalisation: the index set is the training batch, so both terms share one forward pass and its "
    "statistics.",
    "KL: the mean over the index set, divided by the batch size (eq. 4, App. B.1); on CIFAR-100 a tenth of it (App. "
    "B.2).",
    "Ensemble fVI: members share one objective, the mean over members, so each has a fifth of the gradient that it "
    "would have alone (protocol short: a third), and under SGD a fifth of the step; the paper does not say whether it "
    "sums or averages.",
    "Epsilon 0 and severity 0 are the clean test images; the paper's two values differ in the last digit for random "
    "methods.",
)
SHIFTED = {
    "corrupted": (
        "Corruptions: 19, all images of a severity together; from the upstream arrays where they are at hand, else "
        "made by this project's generator."
    ),
    "attacked": (
        "Attacks: fast gradient sign, against the mean predictive, on the test images; epsilon is in units of the "
        "normalised images, and pixels stay between black and white. The paper does not say which units."
    ),
}
DRAWS_NOTE = (
    f"Five draws: of the row with {DRAWS} draws alone, in the log-likelihood and in the fitted Dirichlet (appendix "
    "H.1); 3 seeds as in the paper. The other rows are those of table dirichlet2022-11, with one draw."
)
SUBNETWORK = (
    "Subnetwork: Daxberger et al. (2021) have a full covariance over 42,438 weights of a ResNet-18, which is 14 GB of "
    "double numbers and was not run; the catalogue's Subnetwork Laplace takes any number of them."
)
REDUCTIONS = {
    "short": cifar_short.REDUCTION,
    "smoke": (
        "a ResNet-18 of 2 to 16 channels, 1 epoch, 1 seed, ensembles of 2, at most 4 samples: a test of the way, not "
        "of the methods"
    ),
}


def _rows(number: str) -> tuple[Row, ...]:
    known = {cell.method for cell in published.table(PAPER, number).values()}
    return tuple(Row(label, label, method) for label, method in METHODS.items() if label in known)


def _columns(dataset: str, shift: str, metric: str) -> tuple[Column, ...]:
    key, name, levels = ("severity", "severity ", SEVERITIES) if shift.endswith("_c") else ("epsilon", "ε = ", EPSILONS)
    return tuple(shifted(dataset, f"shift={shift};{key}={level}", metric, f"{name}{level}") for level in levels)


def _table(number: int, dataset: str, shift: str, metric: str) -> Table:
    protocols = ("paper", "short", "smoke") if dataset == "cifar10" else ("paper", "smoke")
    how = "corrupted" if shift.endswith("_c") else "attacked"
    rows = _rows(str(number))
    notes = (*NOTES, SHIFTED[how], *[SUBNETWORK] * ("Subnetwork" in [row.label for row in rows]))
    of_protocols = {"paper": (*notes, cifar_short.PAPER_COST), "short": (*notes, *cifar_short.NOTES)}
    return Table(
        f"{PAPER}-{number}",
        f"{TITLES[metric]} on {how} {_NAMES[dataset]}",
        rows,
        _columns(dataset, shift, metric),
        recipe,
        protocols=protocols,
        paper=PAPER,
        number=str(number),
        notes={name: said for name, said in of_protocols.items() if name in protocols},
        reductions={name: text for name, text in REDUCTIONS.items() if name in protocols},
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
    notes={name: (DRAWS_NOTE, *said) for name, said in _CORRUPTED[0].notes.items()},
)
TABLES = (*_TABLES, FIGURE_9)
