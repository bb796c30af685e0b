"""MAP on FashionMNIST by the penalty on its weights, whose size neither rudner2022 nor its code gives."""

from __future__ import annotations

from dataclasses import replace

import datasets
from benchmarks.tables import fashion_mnist
from benchmarks.tables.recipes import Recipe
from benchmarks.tables.spec import Row, Table

DECAYS = {"decay 1e-4": 1e-4, "decay 1e-3": 1e-3}
"""Weight decay by variant, for the mean loss over images: as in the authors' script for SWAG, and ten times as much."""


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return MAP of table rudner2022-1 with a prior of variance 1 / (images x decay) in place of 1."""
    found = fashion_mnist.recipe(replace(row, variant=""), dataset, protocol)
    if not row.variant:
        return found
    images = datasets.describe(dataset, fashion_mnist.PAPER).n_train
    return found.with_parts({"prior": {"variance": 1 / (images * DECAYS[row.variant])}})


TABLES = (
    Table(
        f"{fashion_mnist.PAPER}-1-penalty",
        "FashionMNIST: MAP by the penalty on its weights",
        tuple(
            replace(fashion_mnist.ROWS[0], label=", ".join(filter(None, ("MAP", variant))), variant=variant)
            for variant in ("", *DECAYS)
        ),
        fashion_mnist.TABLES[0].columns,
        recipe,
        paper=fashion_mnist.PAPER,
        reductions=fashion_mnist.REDUCTIONS,
    ),
)
