"""Table ``digits-temperature``: effect of a temperature fitted on validation data on calibration. No download, no
paper."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import digits
from benchmarks.tables.digits import column
from benchmarks.tables.recipes import Recipe
from benchmarks.tables.spec import Row, Table

METHODS = ("MAP", "MFVI", "MC Dropout", "Deep Ensemble")
ROWS = tuple(Row(name, None, name) for base in METHODS for name in (base, f"{base} (temperature)"))
SETS = ("test", "ood-photos", "rotation-45")


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return the recipe of table ``digits`` with a fifth of the training images held out."""
    return replace(digits.recipe(row, dataset, protocol), scheme="validation", sets=SETS)


TABLE = Table(
    "digits-temperature",
    "Handwritten digits 8x8: temperatures fitted on validation images, calibration and scores for photographs",
    ROWS,
    (
        column("accuracy", "accuracy %", scale=100, digits=1),
        column("nll", "NLL"),
        column("ece", "ECE"),
        column("classwise_ece", "classwise ECE", digits=4),
        column("top_label_ece", "top-label ECE"),
        column("nll", "NLL at 45°", "shift=rotation;angle=45"),
        column("ece", "ECE at 45°", "shift=rotation;angle=45"),
        column("ood_auroc", "AUROC % by entropy", "ood=photos;score=predictive_entropy", 100, 1),
        column("ood_auroc", "AUROC % by MSP", "ood=photos;score=msp", 100, 1),
        column("ood_auroc", "AUROC % by energy", "ood=photos;score=energy", 100, 1),
    ),
    recipe,
    protocols=("paper", "smoke"),
    reductions={"smoke": "2 epochs, 2 seeds, 10 samples: a test of the way, not of the methods"},
)
TABLES = (TABLE,)
