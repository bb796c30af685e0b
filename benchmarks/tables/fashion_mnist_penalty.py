"""MAP on FashionMNIST by the penalty on its weights, whose size neither rudner2022 nor its code gives."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import fashion_mnist
from benchmarks.tables.recipes import Recipe
from benchmarks.tables.spec import Row, Table

IMAGES = 60_000
DECAYS = {f"decay {text}": decay for text, decay in (("1e-4", 1e-4), ("1e-3", 1e-3))}
"""Weight decays of an image's loss: those of the authors' script for SWAG, and ten times as much."""


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return MAP of table rudner2022-1 with a prior of variance 1 / (images x decay) in place of 1."""
    found = fashion_mnist.recipe(replace(row, variant=""), dataset, protocol)
    return found.with_parts({"prior": {"variance": 1 / (IMAGES * DECAYS[row.variant])}}) if row.variant else found


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
