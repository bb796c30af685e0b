"""Table ``digits``: classification methods of the catalogue on scikit-learn's 8x8 digits. No download, no paper. And
``digits-ensembles``: the effect of a prior on the members' weights; ``digits-temperature``: the effect of a temperature
fitted on validation data.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables.recipes import Parts, Recipe, layered, seeds
from benchmarks.tables.spec import Row, Table, column

METHODS = (
    "MAP",
    "MFVI",
    "MFVI (tempered)",
    "MC Dropout",
    "Deep Ensemble",
    "FSVI (rudner2021)",
    "FSVI",
    "FSVI Ensemble",
    "GFSVI",
    "MAP fVI",
    "MC Dropout fVI",
    "Ensemble fVI",
)
ROWS = tuple(Row(name, None, name) for name in METHODS)
ENSEMBLES = tuple(Row(name, None, name) for name in ("MAP", "Deep Ensemble", "MAP Ensemble"))
TEMPERED = tuple(
    Row(name, None, name)
    for base in ("MAP", "MFVI", "MC Dropout", "Deep Ensemble")
    for name in (base, f"{base} (temperature)")
)
ANGLES = tuple(range(15, 181, 15))
_MONOCHROME = {"name": "random_monochrome", "points": 32}
_RANDOM = {
    "name": "mixture",
    "parts": [{"name": "training_batch", "points": 10}, {"name": "uniform_noise", "points": 10}],
}
_COMMON = {
    "network": {"name": "mlp", "hidden": [50, 50], "activation": "relu"},
    "likelihood.name": "categorical",
    "training": {"epochs": 100, "batch_size": 128, "optimiser": {"name": "adam", "lr": 0.003}},
}
_OWN: dict[str, Parts] = {
    "MFVI": {"training.epochs": 200},
    "MFVI (tempered)": {"training.epochs": 200},
    "FSVI (rudner2021)": {"context": _MONOCHROME},
    "FSVI": {"context": _MONOCHROME},
    "FSVI Ensemble": {"context": _MONOCHROME},
    "MAP Ensemble": {"family.size": 5},
    "GFSVI": {"context": _RANDOM, "training.dtype": "float64", "prior": {"fit_steps": 100, "fit_batch": 100}},
}


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Use one network and one optimiser for all rows; nothing was chosen by looking at test data."""
    parts = layered(_COMMON, _OWN.get(row.made_by, {}))
    if protocol == "smoke":
        parts = layered(parts, {"training.epochs": 2}, {"prior.fit_steps": 5} if row.made_by == "GFSVI" else {})
    count, samples = (2, 10) if protocol == "smoke" else (5, 50)
    sets = ("test", "ood-photos", *(f"rotation-{angle}" for angle in ANGLES))
    return Recipe(parts, seeds(count), samples=samples, sets=sets)


def temperature_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return the recipe of table ``digits`` with a fifth of the training images held out."""
    sets = ("test", "ood-photos", "rotation-45")
    return replace(recipe(row, dataset, protocol), scheme="validation", sets=sets)


COLUMNS = (
    column("digits", "accuracy", "accuracy %", scale=100, digits=1),
    column("digits", "nll", "NLL"),
    column("digits", "ece", "ECE"),
    column("digits", "aurc", "AURC"),
    column("digits", "accuracy", "accuracy % at 45°", "shift=rotation;angle=45", 100, 1),
    column("digits", "nll", "NLL at 45°", "shift=rotation;angle=45"),
    column("digits", "ood_auroc", "AUROC % photographs", "ood=photos", 100, 1),
    column("digits", "training_seconds", "seconds", digits=1),
)
TABLE = Table(
    "digits",
    "Handwritten digits 8x8: calibration, rotation, photographs as out-of-distribution inputs",
    ROWS,
    COLUMNS,
    recipe,
    protocols=("paper", "smoke"),
    reductions={"smoke": "2 epochs, 2 seeds, 10 samples: the numbers mean nothing"},
)
TABLES = (
    TABLE,
    TABLE.beside(
        "ensembles",
        "Handwritten digits 8x8: ensembles with and without a prior of their members' weights",
        rows=ENSEMBLES,
        columns=COLUMNS[:-1],
    ),
    TABLE.beside(
        "temperature",
        "Handwritten digits 8x8: temperatures fitted on validation images, calibration and scores for photographs",
        rows=TEMPERED,
        recipe=temperature_recipe,
        columns=(
            *COLUMNS[:3],
            column("digits", "classwise_ece", "classwise ECE", digits=4),
            column("digits", "top_label_ece", "top-label ECE"),
            column("digits", "nll", "NLL at 45°", "shift=rotation;angle=45"),
            column("digits", "ece", "ECE at 45°", "shift=rotation;angle=45"),
            column("digits", "ood_auroc", "AUROC % by entropy", "ood=photos;score=predictive_entropy", 100, 1),
            column("digits", "ood_auroc", "AUROC % by MSP", "ood=photos;score=msp", 100, 1),
            column("digits", "ood_auroc", "AUROC % by energy", "ood=photos;score=energy", 100, 1),
        ),
    ),
)
