"""A small run of every method of the catalogue has the numbers that it had: no formula changes unseen.

Runs are in double precision, so that processors agree to nine digits (``numbers.json`` holds six, and the tolerance is
1e-5), while a wrong sign, a lost factor N/B or a lost 1/2 moves every number by more than that: the last test breaks the
code so. A change that is meant renews the file:

    FVI_RENEW_NUMBERS=1 .venv/bin/python -m pytest tests/benchmarks/experiment/test_numbers.py
"""

import json
import os
from pathlib import Path

import pytest

from benchmarks.experiment.execute import execute
from benchmarks.tables import Recipe
from benchmarks.tables.spec import merge
from fvi_core import methods
from fvi_core.divergences import gaussian
from fvi_core.divergences import weight as weights
from fvi_core.objective import Weight
from tests.configs import make_config

FILE = Path(__file__).with_name("numbers.json")
RENEW = "FVI_RENEW_NUMBERS"
TOLERANCE = 1e-5
UNSTEADY = {"training_seconds"}
CURVE, MOONS, IMAGES = "cinquin_1d", "two_moons_cinquin", "digits"
QUICK = {"epochs": 3, "batch_size": 50, "samples": 3, "dtype": "float64", "optimiser": {"name": "adam", "lr": 0.02}}
FEW = {"context": {"points": 8}}
FITTED = {"prior": {"fit_steps": 3}}
OWN = {
    "GFSVI": FEW | FITTED,
    "FBNN": FITTED | {"training": {"samples": 10}},
    "GWI": {"family": {"fit_steps": 3, "points": 10}},
    "HMC": {
        "training": {"samples": 3, "thinning": 1, "warmup": 2, "leapfrogs": 3, "map_steps": 5},
        "family": {"size": 3},
    },
    "NN-HyVI": {"divergence": {"samples": 10}},
    "FuNN-HyVI": {"divergence": {"samples": 10}},
    "FuNN-MFVI": {"divergence": {"samples": 10}},
    "Subnetwork Laplace": {"fit": {"size": 5}},
}
"""What makes a run of a method quick."""
NOISE_FIXED = ("HMC", "VOGN")  # they move weights alone
ON_CURVES_ONLY = ("GP",)


def places():
    """Every method on each kind of problem that it is for: a curve, classes of the moons."""
    for name, row in methods.catalogue().items():
        of_classes = (
            row.fit and row.fit["name"] == "temperature" or (row.likelihood or {}).get("name") == "kernel_scores"
        )
        of_classes = of_classes or (row.prior or {}).get("name") == "dirichlet"
        yield from ((name, CURVE),) * (not of_classes) + ((name, MOONS),) * (name not in ON_CURVES_ONLY)


def config(method, dataset):
    """A run of a method with a network of ten units."""
    row, scheme = methods.get(method), ""
    noise = {"learned": False} if method in NOISE_FIXED else {}
    parts = {
        "network": {"name": "mlp", "hidden": [10], "activation": "tanh"},
        "likelihood": {"name": "gaussian", **noise} if dataset == CURVE else {"name": "categorical"},
        "training": {} if method == "HMC" else QUICK,
    }
    if method == "VOGN":
        parts["training"] = {"name": "vogn", "epochs": 3, "batch_size": 50, "dtype": "float64"}
    if row.fit and row.fit["name"] == "temperature":
        dataset, scheme = "digits", "validation"
    parts = merge(parts, OWN.get(method, {}))
    return make_config(method, dataset, "smoke", Recipe(parts, (), scheme, 20, ("test",)), 0, 0)


def numbers(case, folder):
    """All metrics but those of time."""
    (outcome,) = execute([case], state=folder)
    assert outcome.status == "done", outcome.reason
    return {row["metric"]: float(f"{row['value']:.6g}") for row in outcome.metrics if row["metric"] not in UNSTEADY}
