"""FashionMNIST by what rudner2022 does not print: MAP's penalty, the rate of dropout, MFVI's prior and its weight, and
whether the baselines were trained as its notebook or as its later code does."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import fashion_mnist
from benchmarks.tables.fashion_mnist_fsvi import TRAINING_2023
from benchmarks.tables.recipes import Parts, Recipe
from benchmarks.tables.spec import Row, Table

IMAGES = 60_000
"""Training images of FashionMNIST, all of which rudner2022 uses."""


def _prior(variance: float) -> Parts:
    return {"prior": {"variance": variance}}


SETTINGS: dict[str, tuple[str, tuple[str, ...], dict[str, Parts]]] = {
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
        {f"variance {variance:g}": _prior(variance) for variance in (0.1, 0.01)},
    ),
    "weight": (
        "MFVI by the weight of its KL divergence",
        ("MFVI",),
        {f"{factor:g} times the weight": {"weight": {"factor": factor}} for factor in (3.0, 10.0)},
    ),
    "training": (
        "baselines by the training of the authors' two codes",
        ("MAP", "MFVI", "MC Dropout", "Deep Ensemble"),
        {"training of 2023": {"training": TRAINING_2023}},
    ),
}
"""Tables by suffix: title, rows of table rudner2022-1, and changed parts by variant. A weight decay, for the mean loss
over images, is a prior of variance 1 / (images x decay)."""
CHANGES: dict[str, Parts] = {"": {}} | {name: parts for *_, own in SETTINGS.values() for name, parts in own.items()}


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return the row of table rudner2022-1 with the variant's changes."""
    found = fashion_mnist.recipe(replace(row, variant=""), dataset, protocol)
    return found.with_parts(CHANGES[row.variant])


def _table(suffix: str, title: str, labels: tuple[str, ...], variants: dict[str, Parts]) -> Table:
    return Table(
        f"{fashion_mnist.PAPER}-1-{suffix}",
        f"FashionMNIST: {title}",
        tuple(
            replace(row, label=", ".join(filter(None, (row.label, variant))), variant=variant)
            for row in fashion_mnist.ROWS
            if row.label in labels
            for variant in ("", *variants)
        ),
        fashion_mnist.TABLES[0].columns,
        recipe,
        paper=fashion_mnist.PAPER,
        reductions=fashion_mnist.REDUCTIONS,
    )


TABLES = tuple(_table(suffix, *setting) for suffix, setting in SETTINGS.items())
