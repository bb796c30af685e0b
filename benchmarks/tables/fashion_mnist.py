"""rudner2022: table 1 (FashionMNIST), also named ``fashion-mnist``; and the runs behind its figure 2, rotated MNIST."""

from __future__ import annotations

from benchmarks.tables.recipes import Parts, Recipe, layered, seeds
from benchmarks.tables.spec import Column, Row, Table, column

PAPER = "rudner2022"
ROWS = (
    Row("MAP", "MAP", "MAP"),
    Row("MFVI", "MFVI [Blundell et al., 2015]", "MFVI"),
    Row("MFVI (tempered)", "MFVI (tempered)", "MFVI (tempered)"),
    Row("MFVI (radial)", "MFVI (radial) [Farquhar et al., 2020a]", "MFVI (radial)"),
    Row("MC Dropout", "MC DROPOUT [Gal and Ghahramani, 2016]", "MC Dropout"),
    Row("SWAG", "SWAG [Maddox et al., 2019]", "SWAG"),
    Row("DUQ", "DUQ [van Amersfoort et al., 2020]", "DUQ"),
    Row("DUQ, its own settings", "DUQ [van Amersfoort et al., 2020]", "DUQ", "own"),
    Row("BNN-Laplace", "BNN-LAPLACE [Immer et al., 2020]", "Laplace (Kronecker)"),
    Row("SPG", "SPG [Ma and Hernández-Lobato, 2021]"),
    Row("FSVI (monochrome)", "FSVI (pXC = random monochrome)", "FSVI", "monochrome"),
    Row("FSVI (KMNIST)", "FSVI (pXC = KMNIST)", "FSVI", "kmnist"),
    Row("Deep Ensemble", "Deep Ensemble", "Deep Ensemble"),
    Row("Deep Ensemble of MAP", "Deep Ensemble", "MAP Ensemble"),
    Row("FSVI Ensemble (monochrome)", "FSVI Ensemble (pXC = random monochrome)", "FSVI Ensemble", "monochrome"),
)
FIGURE_ROWS = tuple(
    Row(label, None, method, variant)
    for label, method, variant in (
        ("MAP", "MAP", ""),
        ("MFVI", "MFVI", ""),
        ("Deep Ensemble", "Deep Ensemble", ""),
        ("Deep Ensemble of MAP", "MAP Ensemble", ""),
        ("FSVI", "FSVI", "monochrome"),
    )
)
ANGLES = tuple(range(0, 181, 15))
CONTEXTS = {
    "monochrome": {
        "name": "mixture",
        "parts": [{"name": "training_batch", "points": 2}, {"name": "random_monochrome", "points": 2}],
    },
    "kmnist": {"name": "images", "points": 4, "pool": "kmnist"},
}
_HEAD: Parts = {"name": "gaussian_head", "rate": 0.1, "log_var_init": [-10.0, -8.0]}
FUNCTION_SPACE: Parts = {
    "divergence": {"jacobian": "last_layer", "covariance": "diagonal", "jitter": 1e-10},
    "prior": {"name": "gaussian_functions", "variance": 10.0},
    "weight.scaling": "batch",
}
"""FSVI in runs 3.3 (KMNIST) and 3.4 (monochrome) of the FashionMNIST notebook in the authors' code of 2022."""
_DUQ_OWN: Parts = {
    "network.channels": [64, 128, 128],
    "network.pool": [1, 1, 1],
    "network.padding": [1, 1, 0],
    "network.norm": "batch",
    "training.samples": 1,
    "training.optimiser": {"name": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 1e-4},
    "training.schedule": {"name": "multistep", "at": [1 / 3, 2 / 3], "factor": 0.2},
}
_COMMON = {
    "network": {"name": "cnn", "channels": [32, 64], "pool": [1, 1], "dense": [256]},
    "likelihood.name": "categorical",
    "training": {"epochs": 30, "batch_size": 128, "samples": 5, "optimiser": {"name": "adam", "lr": 5e-4}},
}
_OWN: dict[str, Parts] = {
    "MFVI (radial)": {
        "family.rho_init": -4.0,
        "training": {"epochs": 100, "batch_size": 200, "samples": 1, "optimiser": {"lr": 1e-3}},
    },
    "MC Dropout": {"family.rate": 0.1},
    "SWAG": {
        "family": {"rank": 20, "start": 0.8, "scale": 0.0},
        "training.epochs": 200,
        "training.optimiser": {"name": "sgd", "lr": 0.01, "momentum": 0.9, "weight_decay": 1e-4},
        "training.schedule": {"name": "linear", "final": 2.0},
    },
    "Laplace (Kronecker)": {"fit.precision": "evidence"},
    "FSVI": FUNCTION_SPACE | {"family": _HEAD},
    "FSVI Ensemble": FUNCTION_SPACE | {"family.base": _HEAD},
}
SEEDS = {"paper": 10, "short": 3, "smoke": 1}
MEMBERS = {"paper": 5, "short": 3, "smoke": 2}
"""Seeds, and members of ensembles, of the tables on images of both papers of Rudner et al. and of CIFAR."""
_SHORT: Parts = {"training.epochs": 5}
_FEWER: dict[str, dict[str, Parts]] = {
    "paper": {"": {}, "SWAG": {}, "own": {}},
    "short": {
        "": _SHORT | {"training.samples": 1, "training.optimiser.lr": 1e-3},
        "SWAG": _SHORT | {"family.start": 0.6},
        "own": _SHORT,
    },
    "smoke": {
        "": {"network.channels": [4, 8], "network.dense": [16], "training.epochs": 1, "training.samples": 1},
        "SWAG": {"training.epochs": 2, "family.start": 0.0},
        "own": {"network.channels": [4, 8, 8]},
    },
}


def _parts(row: Row, protocol: str) -> Parts:
    """Return the four-layer network and the training of the authors' FashionMNIST notebook of 2022; see the notes."""
    fewer, kind = _FEWER[protocol], "SWAG" if row.made_by == "SWAG" else "own" if row.variant == "own" else ""
    parts = layered(
        _COMMON,
        _DUQ_OWN if kind == "own" else {},
        _OWN.get(row.made_by, {}),
        {"context": CONTEXTS.get(row.variant)} if row.made_by in ("FSVI", "FSVI Ensemble") else {},
        fewer[""] if protocol == "smoke" or not kind else {},
        fewer[kind],
    )
    return layered(parts, {"family.size": MEMBERS[protocol]}) if "Ensemble" in row.made_by else parts


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Train on all training images; runs on MNIST differ only in data and evaluation sets."""
    others = ("ood-mnist", "ood-notmnist") if dataset == "fashion_mnist" else (f"rotation-{angle}" for angle in ANGLES)
    samples = 2 if protocol == "smoke" else 10
    return Recipe(_parts(row, protocol), seeds(SEEDS[protocol]), PAPER, samples=samples, sets=("test", *others))


REDUCTIONS = {
    "short": (
        "5 epochs at learning rate 0.001 and one draw in training (SWAG: its own rates, averaging from epoch 4; DUQ "
        "with its own settings: its own rates), 3 seeds, ensembles of 3"
    ),
    "smoke": (
        "4 and 8 channels, 16 units, 1 epoch (SWAG 2), 1 seed, ensembles of 2, 2 samples: the numbers mean nothing"
    ),
}


def _by_angle(metric: str) -> tuple[Column, ...]:
    return tuple(column("mnist", metric, f"{angle}°", f"shift=rotation;angle={angle}") for angle in ANGLES)


TABLES = (
    Table(
        f"{PAPER}-1",
        "FashionMNIST: accuracy, calibration, out-of-distribution detection",
        ROWS,
        (
            column("fashion_mnist", "accuracy", "accuracy %", "", 100, 2),
            column("fashion_mnist", "ece_10", "ECE", published="ece"),
            column("fashion_mnist", "ood_auroc", "AUROC % MNIST", "ood=mnist", 100, 2),
            column("fashion_mnist", "ood_auroc", "AUROC % NotMNIST", "ood=not_mnist", 100, 2),
        ),
        recipe,
        paper=PAPER,
        number="1",
        aliases=("fashion-mnist",),
        reductions=REDUCTIONS,
    ),
    Table(
        f"{PAPER}-1-nll",
        "FashionMNIST: negative log-likelihood, which the paper does not print, of the runs of table 1",
        tuple(row for row in ROWS if row.method),
        (column("fashion_mnist", "nll", "NLL"),),
        recipe,
        reductions=REDUCTIONS,
    ),
    Table(
        f"{PAPER}-figure-2",
        "Rotated MNIST: Brier score and predictive entropy by angle (rudner2022, figure 2)",
        FIGURE_ROWS,
        (*_by_angle("brier"), *_by_angle("predictive_entropy")),
        recipe,
        reductions=REDUCTIONS,
    ),
)
