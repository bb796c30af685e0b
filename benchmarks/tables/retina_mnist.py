"""Table ``retina-mnist``: sight-threatening retinopathy in photographs of 28x28 pixels, in minutes. No paper."""

from __future__ import annotations

from benchmarks.tables import retina
from benchmarks.tables.recipes import Parts, Recipe, merge, seeds
from benchmarks.tables.spec import OWN, Row, Table, column

MASK_ONLY = "mask"
ROWS = (
    Row("mask only (linear)", None, "MAP", MASK_ONLY),
    Row("MAP", None, "MAP"),
    Row("MFVI", None, "MFVI"),
    Row("MC Dropout", None, "MC Dropout"),
    Row("MFVI (radial)", None, "MFVI (radial)"),
    Row("Rank1", None, "Rank1"),
    Row("FSVI", None, "FSVI"),
    *(
        Row(name, None, name)
        for name in (
            "MAP Ensemble",
            "MFVI Ensemble",
            "MC Dropout Ensemble",
            "MFVI (radial) Ensemble",
            "Rank1 Ensemble",
            "FSVI Ensemble",
        )
    ),
)
RECORDED = {OWN: "paper"}  # what the protocol was called when records were made
_FSVI = retina.own("FSVI", retina.COUNTRY)
_OWN: dict[str, Parts] = {"FSVI": _FSVI, "FSVI Ensemble": _FSVI | {"family": {"size": 3, "base": _FSVI["family"]}}}
_MASK: Parts = {"network": {"name": "mlp", "hidden": []}, "training": {"augment": {"crop": 0, "flip": False}}}


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Use one network and one optimiser for all rows; nothing was chosen by looking at test data."""
    return common(row, protocol).with_parts(_OWN.get(row.made_by, {}))


def common(row: Row, protocol: str) -> Recipe:
    """Return the recipe without a method's further parts."""
    parts: Parts = {
        "network": {"name": "cnn", "channels": [8, 16, 32], "pool": [1, 1, 1], "dense": [32]},
        "likelihood": {"name": "categorical"},
        "training": {
            "epochs": 30,
            "batch_size": 64,
            "optimiser": {"name": "adam", "lr": 0.002},
            "augment": {"crop": 2, "flip": True},
        },
    }
    if row.variant == MASK_ONLY:
        parts = merge(parts, _MASK)
    if protocol == "smoke":
        parts = merge(parts, {"training": {"epochs": 1}})
    scheme = "outline" if row.variant == MASK_ONLY else "moderate"
    count, samples = (2, 12) if protocol == "smoke" else (10, 60)
    return Recipe(parts, seeds(count), scheme, samples=samples)


TABLE = Table(
    "retina-mnist",
    "RetinaMNIST: sight-threatening retinopathy, calibration, referral of uncertain cases",
    ROWS,
    (
        column("retina_mnist", "auroc", "AUROC %", "", 100, 1),
        column("retina_mnist", "balanced_accuracy", "balanced accuracy %", "", 100, 1),
        column("retina_mnist", "nll", "NLL"),
        column("retina_mnist", "ece", "ECE"),
        column("retina_mnist", "sensitivity_at_80_specificity", "sensitivity %", "", 100, 1),
        column("retina_mnist", "referral_accuracy_area", "referral accuracy %", "", 100, 1),
        column("retina_mnist", "referral_auroc_area", "referral AUROC %", "", 100, 1),
        column("retina_mnist", "referral_nll_area", "referral NLL"),
        column("retina_mnist", "training_seconds", "seconds", digits=1, compared=False),
    ),
    recipe,
    protocols=(OWN, "smoke"),
    recorded=RECORDED,
    reductions={"smoke": "1 epoch, 2 seeds, 12 samples: a test of the way, not of the methods"},
)
TABLES = (TABLE,)
