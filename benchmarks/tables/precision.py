"""Table ``precision``: effect of products in bfloat16 on accuracy, for a narrow ResNet-18 on 8x8 digits. No paper."""

from __future__ import annotations

from benchmarks.tables.recipes import Recipe, layered, seeds
from benchmarks.tables.spec import Row, Table, column

METHODS, PRECISIONS = ("MAP", "FSVI"), ("float32", "bfloat16")
ROWS = tuple(Row(f"{method} ({precision})", None, method, precision) for method in METHODS for precision in PRECISIONS)
_SEEDS = {"paper": 5, "smoke": 2}
_EPOCHS = {"paper": 20, "smoke": 1}
_WIDTH = {"paper": 8, "smoke": 2}


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return one network, seeds and optimiser for all rows; rows of one method differ in precision only."""
    parts = {
        "network": {"name": "resnet18", "width": _WIDTH[protocol], "context_statistics": "shared"},
        "likelihood": {"name": "categorical"},
        "training": {
            "epochs": _EPOCHS[protocol],
            "batch_size": 128,
            "precision": row.variant,
            "optimiser": {"name": "sgd", "lr": 0.05, "momentum": 0.9},
            "schedule": {"name": "one_cycle"},
        },
    }
    if row.made_by == "FSVI":
        parts = layered(parts, {"context": {"name": "random_monochrome", "points": 32}})
    return Recipe(parts, seeds(_SEEDS[protocol]), samples=10, sets=("test", "ood-photos"))


TABLE = Table(
    "precision",
    "A narrow residual network on 8x8 digits, products and convolutions in float32 or in bfloat16",
    ROWS,
    (
        column("digits", "accuracy", "accuracy %", scale=100, digits=2),
        column("digits", "nll", "NLL"),
        column("digits", "ece", "ECE"),
        column("digits", "ood_auroc", "AUROC % photographs", "ood=photos", 100, 1),
        column("digits", "training_seconds", "seconds", digits=1),
    ),
    recipe,
    protocols=("paper", "smoke"),
    reductions={"smoke": "a ResNet-18 of 2 to 16 channels, 1 epoch, 2 seeds: the numbers mean nothing"},
)
TABLES = (TABLE,)
