"""A small run of every method of the catalogue has the numbers that it had: no formula changes unseen.

Runs are in double precision, where processors differ by rounding alone, far less than TOLERANCE; a wrong sign, a lost
factor N/B or a lost 1/2 moves the numbers by far more, which the last test shows by breaking the code so. A change that
is meant renews ``numbers.json``: FVI_RENEW_NUMBERS=1 before the command of the test.
"""

import json
import os
from pathlib import Path

import pytest

from benchmarks.experiment.execute import execute
from benchmarks.tables import Recipe
from benchmarks.tables.recipes import merge
from fvi_core import methods
from fvi_core.divergences import gaussian as gaussian_divergences
from fvi_core.families import base as families
from fvi_core.objective import Weight
from tests.configs import make_config

FILE = Path(__file__).with_name("numbers.json")
RENEW = "FVI_RENEW_NUMBERS"
TOLERANCE = 1e-5
UNSTEADY = {"training_seconds"}
CURVE, MOONS = "cinquin_1d", "two_moons_cinquin"
QUICK = {"epochs": 3, "batch_size": 50, "samples": 3, "dtype": "float64", "optimiser": {"name": "adam", "lr": 0.02}}
FEW = {"context": {"points": 8}}
FITTED = {"prior": {"fit_steps": 3}}
OWN = {
    "GFSVI": FEW | FITTED,
    "FBNN": FITTED | {"training": {"samples": 10}},
    "GP": {"training": {"batch_size": 100}},
    "GWI": {"family": {"fit_steps": 3, "points": 10}},
    "HMC": {
        "training": {
            "name": "hmc",
            "dtype": "float64",
            "samples": 3,
            "thinning": 2,
            "warmup": 2,
            "leapfrogs": 3,
            "map_steps": 5,
        },
        "family": {"size": 3},
    },
    "NN-HyVI": {"divergence": {"samples": 10}},
    "FuNN-HyVI": {"divergence": {"samples": 10}},
    "FuNN-MFVI": {"divergence": {"samples": 10}},
    "Subnetwork Laplace": {"fit": {"size": 5}},
}
"""Parts that make a run of a method quick."""
NOISE_FIXED = ("HMC", "VOGN")  # they move weights alone
ON_CURVES_ONLY = ("GP",)


def places():
    """Return every method with its problems: regression on a curve, classes of the moons."""
    for name, row in methods.catalogue().items():
        scores = (row.likelihood or {}).get("name") == "kernel_scores"
        temperature = (row.fit or {}).get("name") == "temperature"
        of_classes = scores or temperature or (row.prior or {}).get("name") == "dirichlet"
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
    """Return all metrics except those of time."""
    (outcome,) = execute([case], state=folder)
    assert outcome.status == "done", outcome.reason
    return {row["metric"]: float(f"{row['value']:.6g}") for row in outcome.metrics if row["metric"] not in UNSTEADY}


def differences(found, expected):
    """Return the largest difference from the stored numbers, relative to the number (or to 1, if that is larger)."""
    assert found.keys() == expected.keys()
    return max(abs(found[name] - value) / max(1.0, abs(value)) for name, value in expected.items())


@pytest.fixture(scope="module")
def kept():
    return json.loads(FILE.read_text())


def test_every_method_has_its_numbers(kept):
    if not os.environ.get(RENEW):
        assert list(kept) == [f"{name}, {dataset}" for name, dataset in places()]


def test_every_run_is_in_double_precision():
    assert {config(*place)["parts"]["training"]["dtype"] for place in places()} == {"float64"}


@pytest.mark.parametrize(("method", "dataset"), list(places()))
def test_the_numbers_are_those_that_they_were(method, dataset, tmp_path, request):
    found = numbers(config(method, dataset), tmp_path)
    if os.environ.get(RENEW):
        kept = json.loads(FILE.read_text()) if FILE.exists() else {}
        kept[f"{method}, {dataset}"] = found
        ordered = {f"{name}, {place}": kept.get(f"{name}, {place}") for name, place in places()}
        FILE.write_text(json.dumps({name: own for name, own in ordered.items() if own}, indent=1) + "\n")
        return
    expected = request.getfixturevalue("kept")[f"{method}, {dataset}"]
    assert differences(found, expected) <= TOLERANCE


def of_weight(change):
    """Return a weight of the divergence that is changed by a function."""

    def broken(self, n_train, batch, context, progress=1.0):
        return change(self.factor / {"elbo": n_train, "batch": batch}[self.scaling], n_train, batch)

    return lambda patch: patch.setattr(Weight, "__call__", broken)


def doubled(module, name):
    """A KL divergence without its 1/2."""
    own = getattr(module, name)
    return lambda patch: patch.setattr(module, name, lambda *given, **more: 2 * own(*given, **more))


FAULTS = {
    "the divergence's sign": (of_weight(lambda weight, n, b: -weight), ("MFVI", "FSVI", "GFSVI", "MAP fVI")),
    "the factor N/B": (of_weight(lambda weight, n, b: weight * n / b), ("MFVI", "FSVI", "GFSVI")),
    "the factor B/N": (of_weight(lambda weight, n, b: weight * b / n), ("FSVI", "MAP fVI")),
    "1/2 of the KL of weights": (doubled(families, "gaussian_kl_weights"), ("MFVI",)),
    "1/2 of the KL of diagonal Gaussians": (
        doubled(gaussian_divergences, "gaussian_kl_diagonal"),
        ("FSVI (rudner2021)",),
    ),
    "1/2 of the KL of full Gaussians": (doubled(gaussian_divergences, "gaussian_kl_full"), ("FSVI",)),
    "1/2 of the regularised KL": (doubled(gaussian_divergences, "regularised_gaussian_kl"), ("GFSVI",)),
}


@pytest.mark.parametrize(("fault", "method"), [(fault, method) for fault, (_, own) in FAULTS.items() for method in own])
def test_a_fault_of_the_objective_moves_the_numbers(fault, method, kept, tmp_path, monkeypatch):
    FAULTS[fault][0](monkeypatch)
    assert differences(numbers(config(method, MOONS), tmp_path), kept[f"{method}, {MOONS}"]) > 10 * TOLERANCE
