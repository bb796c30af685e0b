"""Which figures there are: their names, the runs that each shows, and what draws it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One figure: the runs of a table on one data set, and "module:function" that draws them.

    paper and number say which published figure it follows.
    """

    name: str
    title: str
    table: str
    dataset: str
    draw: str
    paper: str | None = None
    number: str | None = None


DIGITS = [
    ("reliability", "Reliability on digits"),
    ("roc", "Photographs against digits, by predictive entropy"),
    ("entropy", "Predictive entropy: digits and photographs"),
    ("retention", "Accuracy on the most certain digits"),
    ("rotation", "Rotated digits"),
]
# Paper and number, title, table, data set, what draws it; the name follows.
_CURVE = "mean, samples and 2 standard deviations"
PUBLISHED = [
    (
        "pequignot2020",
        "1",
        "y = cos(4(x + 0.2)): mean and 1, 2, 3 standard deviations",
        "toys",
        "pequignot_1d",
        "toys:shades",
    ),
    ("cinquin2024", "1", f"y = sin(2πx): {_CURVE}", "toys", "cinquin_1d", "toys:samples"),
    ("rudner2021", "1", f"Snelson: {_CURVE}", "toys", "snelson", "toys:samples"),
    ("rudner2021", "4", "Two moons", "toys", "two_moons_rudner", "toys:moons"),
    ("dirichlet2022", "3", "Two moons", "toys", "two_moons_dirichlet", "toys:moons"),
    *(
        (
            "cinquin2024",
            number,
            f"y = sin(2πx) by {what}: {_CURVE}",
            f"cinquin2024-figure-{number}",
            "cinquin_1d",
            "toys:samples",
        )
        for number, what in (
            ("6", "length-scale"),
            ("7", "points of the divergence"),
            ("8", "points of the divergence"),
            ("11", "network and prior"),
            ("18", "gamma"),
        )
    ),
    ("cinquin2024", "3", "Ocean currents", "cinquin2024-3", "gulf_drifters", "ocean:currents"),
    ("cinquin2024", "9", "Two moons", "toys", "two_moons_cinquin", "toys:moons"),
    ("rudner2022", "4", "Diabetic retinopathy", "retinopathy", "eyepacs", "screening:screening"),
    ("rudner2022", "2", "Rotated MNIST", "rudner2022-figure-2", "mnist", "shifts:brier_and_entropy"),
    ("dirichlet2022", "1", "Digits as they turn", "rotated-mnist", "mnist", "shifts:examples"),
    ("dirichlet2022", "4", "Rotated MNIST by index set", "rotated-mnist-index-sets", "mnist", "shifts:index_sets"),
    ("dirichlet2022", "8", "Rotated MNIST", "rotated-mnist", "mnist", "shifts:rotation"),
]
# The same for several data sets, whose names end the figures' names.
_RUDNER, _CINQUIN = ("fashion_mnist", "cifar10"), ("mnist", "fashion_mnist")
BY_SET = [
    ("rudner2021", "2", "Calibration and out-of-distribution inputs", "rudner2021-1", "ood:summary", _RUDNER),
    ("rudner2021", "5", "Reliability", "rudner2021-1", "ood:reliability", _RUDNER),
    ("rudner2021", "6", "ROC by predictive entropy", "rudner2021-1", "ood:roc", _RUDNER),
    ("rudner2021", "7", "Confidence out of distribution", "rudner2021-1", "ood:confidence", _RUDNER),
    ("cinquin2024", "12", "Predictive entropy", "cinquin2024-2", "ood:histograms", _CINQUIN),
    ("cinquin2024", "13", "Rotated images", "cinquin2024-2", "shifts:entropy", _CINQUIN),
    ("dirichlet2022", "5", "Corrupted images", "dirichlet2022-11", "shifts:corruption", ("cifar10",)),
    ("dirichlet2022", "6", "Attacked images", "dirichlet2022-14", "shifts:attack", ("cifar10",)),
    ("dirichlet2022", "7", "What function-space priors gain", "dirichlet2022-11", "shifts:gains", ("cifar10",)),
    ("dirichlet2022", "5", "Corrupted images", "dirichlet2022-17", "shifts:corruption", ("cifar100",)),
    ("dirichlet2022", "6", "Attacked images", "dirichlet2022-20", "shifts:attack", ("cifar100",)),
    ("dirichlet2022", "7", "What function-space priors gain", "dirichlet2022-17", "shifts:gains", ("cifar100",)),
]
NAMES = {
    "mnist": "MNIST", "fashion_mnist": "FashionMNIST", "notmnist": "NotMNIST", "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100", "svhn": "SVHN", "eyepacs": "EyePACS", "aptos": "APTOS", "idrid": "IDRiD",
    "retina_mnist": "RetinaMNIST",
}  # fmt: skip
SCREENING = [
    ("retinopathy-aptos", "Diabetic retinopathy, trained on APTOS", "retinopathy", "aptos", "screening:screening"),
    (
        "retinopathy-aptos-accuracy",
        "Diabetic retinopathy, trained on APTOS",
        "retinopathy",
        "aptos",
        "screening:accuracy",
    ),
    (
        "retina-mnist",
        "Sight-threatening retinopathy, RetinaMNIST",
        "retina-mnist",
        "retina_mnist",
        "screening:screening",
    ),
    (
        "retina-mnist-accuracy",
        "Sight-threatening retinopathy, RetinaMNIST",
        "retina-mnist",
        "retina_mnist",
        "screening:accuracy",
    ),
]
PIT = ("boston", "concrete", "energy", "wine", "yacht")
_EVERY = [
    *(Figure(*each) for each in SCREENING),
    Figure(
        "cinquin2024-tfsvi-points-and-jitter",
        "TFSVI on Boston by points and jitter of its divergence",
        "cinquin2024-1-tfsvi",
        "boston",
        "choices:points_and_jitter",
    ),
    Figure(
        "toys-tfsvi-features",
        f"TFSVI on y = sin(2πx) by its prior: {_CURVE}",
        "toys-tfsvi",
        "cinquin_1d",
        "toys:samples",
    ),
    *(Figure(f"uci-pit-{name}", f"PIT values, {name}", "uci", name, "pit:histograms") for name in PIT),
    *(Figure(f"digits-{name}", title, "digits", "digits", f"digits:{name}") for name, title in DIGITS),
    *(
        Figure(f"{paper}-figure-{number}", title, table, dataset, draw, paper, number)
        for paper, number, title, table, dataset, draw in PUBLISHED
    ),
    *(
        Figure(f"{paper}-figure-{number}-{dataset}", f"{title}, {NAMES[dataset]}", table, dataset, draw, paper, number)
        for paper, number, title, table, draw, sets in BY_SET
        for dataset in sets
    ),
]
FIGURES: dict[str, Figure] = {figure.name: figure for figure in _EVERY}
