"""Photographs of the retina: settings of RETINA (Band et al. 2021), and table ``retina-mnist``, sight-threatening
retinopathy in photographs of 28x28 pixels, in minutes.

The settings are from RETINA's code: google/uncertainty-baselines, baselines/diabetic_retinopathy_detection,
experiments/top_config, those tuned in domain on EyePACS. The table is after no paper.
"""

from __future__ import annotations

import math

from benchmarks.tables.recipes import Parts, Recipe, layered, seeds
from benchmarks.tables.spec import OWN, Row, Table, column

COUNTRY, SEVERITY = "country", "severity"
_STEPS = {"name": "multistep", "at": [1 / 3, 2 / 3], "factor": 0.2}
_LINEAR = {"name": "linear", "start": 0.0, "end": 1.0, "final": 0.01}
# Learning rate, and one minus the momentum.
TUNED = {
    COUNTRY: {
        "MAP": (0.023072, 0.0098467),
        "MC Dropout": (0.027250, 0.035193),
        "MFVI": (0.48065, 0.076935),
        "MFVI (radial)": (0.18958, 0.016700),
        "Rank1": (0.032299, 0.066501),
        "FSVI": (0.021451, 0.019218),
    },
    SEVERITY: {
        "MAP": (0.058737, 0.015731),
        "MC Dropout": (0.026561, 0.023244),
        "MFVI": (0.042732, 0.038292),
        "MFVI (radial)": (0.20617, 0.027963),
        "Rank1": (0.028553, 0.077592),
        "FSVI": (0.029950, 0.021384),
    },
}
BATCHES = {"MAP": 256, "MC Dropout": 128, "MFVI": 256, "MFVI (radial)": 128, "Rank1": 128, "FSVI": 256}
CORES = 4  # cores of FSVI: each compares functions at images of its own quarter of a batch
DROPOUT = {COUNTRY: 0.17798, SEVERITY: 0.18813}
# Initial standard deviations are softplus(z), z of a normal distribution cut off at two deviations: the value at the
# mean of z, and the deviation.
DEVIATIONS = {
    "MFVI": {COUNTRY: (9.7618e-4, 0.41994), SEVERITY: (1.0821e-3, 0.012984)},
    "MFVI (radial)": {COUNTRY: (1.4498e-4, 0.062825), SEVERITY: (0.012607, 0.037535)},
}
_CUT = 0.87963  # standard deviation of a standard normal number cut off at +-2
FSVI_LOG_VARIANCES = [-20.0, -18.0]
FUNCTIONS = {COUNTRY: (15.3595, 10), SEVERITY: (5.6301, 20)}  # prior variance of a value, images on each core
FACTOR_DEVIATION = math.sqrt(0.001 / 0.999)  # deviation of rank-1 factors at the start: dropout_rate 0.001
_ANNEALED = {"factor": 0.45, "rise": 1.0}  # 90 of the 200 epochs over which the KL divergence is annealed


def before_softplus(deviation: float) -> float:
    """Return the number whose softplus is a standard deviation."""
    return math.log(math.expm1(deviation))


def log_variances(task: str) -> list[float]:
    """Bounds of uniform log-variances with the mean and standard deviation of MFVI's initial ones."""
    deviation, spread = DEVIATIONS["MFVI"][task]
    centre, half = 2 * math.log(deviation), 2 * math.sqrt(3) * _CUT * spread
    return [round(centre - half, 2), round(centre + half, 2)]


def function_space(task: str, cores: int = 1) -> Parts:
    """Diagonal KL of both outputs at images of the training batch, divided by their number and by a core's batch."""
    variance, points = FUNCTIONS[task]
    return {
        "divergence": {"name": "gaussian_kl", "jacobian": "last_layer", "covariance": "diagonal"},
        "prior": {"name": "gaussian_functions", "variance": variance},
        "context": {"name": "training_batch", "points": cores * points},
        "weight": {"scaling": "context", "factor": float(cores)},
    }


def own(member: str, task: str, cores: int = 1) -> Parts:
    """Return a method's parts besides network, likelihood and training; none for a method that is not in RETINA."""
    tied: Parts = {"divergence": {"name": "tied_weight_kl"}, "prior": None, "weight": _ANNEALED}
    if member == "MAP":
        return {"divergence": None, "prior": None}
    if member == "MC Dropout":
        return {"family": {"rate": DROPOUT[task]}}
    if member == "MFVI":
        return {"family": {"layers": "weighted", "log_var_init": log_variances(task)}, **tied}
    if member == "MFVI (radial)":
        rho = before_softplus(DEVIATIONS[member][task][0])
        return {"family": {"layers": "weighted", "rho_init": round(rho, 4)}, **tied}
    if member == "Rank1":
        rho = round(before_softplus(FACTOR_DEVIATION), 4)
        family = {"size": 1, "rho_init": rho, "layers": "all", "positive": 0.75}
        return {"family": family, "prior": {"variance": 0.05**2}, "weight": _ANNEALED}
    if member == "FSVI":
        return {"family": {"layers": "last", "log_var_init": FSVI_LOG_VARIANCES}, **function_space(task, cores)}
    return {}


def training(member: str, task: str) -> Parts:
    """Optimiser, schedule and batches; MAP's for a method that is not in RETINA."""
    known = member if member in BATCHES else "MAP"
    rate, slowness = TUNED[task][known]
    return {
        "epochs": 90,
        "batch_size": BATCHES[known],
        "samples": 5 if member == "FSVI" else 1,
        "optimiser": {"name": "sgd", "lr": rate, "momentum": 1 - slowness, "nesterov": True},
        "schedule": _LINEAR if member == "MAP" else _STEPS,
    }


def network(member: str) -> Parts:
    """ResNet-50 with the initial weights and the dropout sites of a method."""
    sites = {"dropout": "convolutions"} if member == "MC Dropout" else {}
    return {"name": "resnet50", "init": "zero_residual" if member == "FSVI" else "he", **sites}


MASK_ONLY = "mask"
ROWS = (
    Row("mask only (linear)", None, "MAP", MASK_ONLY),
    *(
        Row(f"{name}{suffix}", None, f"{name}{suffix}")
        for suffix in ("", " Ensemble")
        for name in ("MAP", "MFVI", "MC Dropout", "MFVI (radial)", "Rank1", "FSVI")
    ),
)
RECORDED = {OWN: "paper"}  # what the protocol was called when records were made
_FSVI = own("FSVI", COUNTRY)
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
        parts = layered(parts, _MASK)
    if protocol == "smoke":
        parts = layered(parts, {"training": {"epochs": 1}})
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
    reductions={"smoke": "1 epoch, 2 seeds, 12 samples: the numbers mean nothing"},
)
TABLES = (TABLE,)
