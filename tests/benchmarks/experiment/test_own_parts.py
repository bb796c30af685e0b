"""Samplers, fits and likelihoods of one's own, from configuration to metrics: no room knows them by name."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

import datasets
from benchmarks.experiment import parameters
from benchmarks.experiment.execute import execute
from benchmarks.experiment.measure import measure_run
from benchmarks.experiment.prediction import Predicted, measured
from benchmarks.metrics import SetInfo
from benchmarks.records import predictions
from benchmarks.records.config import run_key
from benchmarks.records.predictions import RegressionPredictions
from benchmarks.records.store import Store
from benchmarks.sweep import similar
from benchmarks.tables import Recipe
from fvi_core import methods
from fvi_core.methods import Method
from fvi_core.networks import ModuleNetwork
from fvi_core.registry import NETWORKS
from tests.benchmarks.experiment.test_execute import CURVE, MOONS, config, numbers
from tests.benchmarks.experiment.test_resuming import assert_stops_change_nothing, sibling, stopped_often
from tests.configs import make_config
from tests.fvi_core.own_parts import AlphaEnergy, Shift, registered

CHAIN = {"name": "metropolis", "samples": 4, "thinning": 2, "warmup": 1}
FIXED = {"name": "gaussian", "learned": False}


@pytest.fixture(autouse=True)
def own():
    with registered():
        yield


def test_a_sampler_runs_stops_and_goes_on_as_the_loop_does(tmp_path, monkeypatch):
    def chain(dataset, likelihood):
        return config(
            "MAP",
            dataset=dataset,
            sets=("test", "grid"),
            parts={"family": {"name": "samples"}, "training": CHAIN, "likelihood": likelihood},
        )

    for dataset, likelihood in ((CURVE, FIXED), (MOONS, {"name": "categorical"})):
        case = chain(dataset, likelihood)
        assert case["sources"].keys() == {"training metropolis"}
        whole = assert_stops_change_nothing([sibling(case, 1), case], tmp_path / dataset, monkeypatch)
        alone, _ = stopped_often([case], tmp_path / dataset / "alone", monkeypatch)
        assert numbers(alone[0]) == numbers(whole[1]) != numbers(whole[0])
        assert whole[1].provenance["epochs"] == 5 and whole[1].provenance["stack"] == 2
        saved = predictions.load(tmp_path / dataset / "whole" / "artifacts" / f"{run_key(case)}.npz")["test"]
        values = saved.samples if dataset == CURVE else saved.logits
        assert len(values) == 4, "one function for each position that is kept"


def test_a_likelihood_brings_its_data_term_its_head_and_its_score(tmp_path):
    """In a regression: two outputs for one target."""
    case = config("MFVI", samples=6, sets=("test",), parts={"likelihood": {"name": "alpha_energy"}})
    assert case["parts"]["likelihood"]["alpha"] == 0.5
    (outcome,) = execute([case], state=tmp_path)
    assert outcome.status == "done" and outcome.provenance["noise_std"] == pytest.approx(0.1)
    found = parameters.load(tmp_path, run_key(case)).parameters
    assert found["mean/head.bias"].shape == (1, 2)
    assert predictions.load(tmp_path / "artifacts" / f"{run_key(case)}.npz")["test"].samples.shape[0] == 6


def module(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(input_shape[0], 4), nn.Tanh(), nn.Linear(4, outputs))


UNFIT = {
    "more outputs than classes": (
        lambda self, shape, outputs: ModuleNetwork(lambda: module(shape, outputs + 3), torch.randn(3, *shape)),
        "network 'unfit': expected as many outputs as n_outputs of build.., here 2, found 5",
    ),
    "a module": (
        lambda self, shape, outputs: module(shape, outputs),
        "network 'unfit': expected build.. to return a Network, found Sequential; return ModuleNetwork.make, example",
    ),
}


@pytest.mark.parametrize("what", UNFIT)
def test_a_network_that_does_not_fit_the_data_is_named(what, monkeypatch, tmp_path):
    build, message = UNFIT[what]
    monkeypatch.setattr(NETWORKS, "classes", dict(NETWORKS.classes))
    NETWORKS.register("unfit")(dataclass(frozen=True)(type("Unfit", (), {"__doc__": "A network.", "build": build})))
    case = config("MAP", dataset=MOONS, parts={"network": {"name": "unfit"}})
    with pytest.raises((TypeError, ValueError), match=message):
        execute([case], state=tmp_path)
    assert similar._size(case) is None, "no estimate, and no error before the run"


def test_a_likelihood_for_other_targets_is_named(tmp_path):
    for name, dataset, found in (
        ("categorical", CURVE, "classification, data set .* for regression"),
        ("gaussian", MOONS, "regression, data set .* for classification"),
    ):
        with pytest.raises(ValueError, match=f"likelihood '{name}' is for {found}"):
            execute([config("MAP", dataset=dataset, parts={"likelihood": {"name": name}})], state=tmp_path)


def test_scores_of_a_likelihood_come_to_the_metrics():
    split, far = datasets.load(CURVE), np.array([[0.0, 9.0], [1.0, 2.0]])
    sets = {
        name: RegressionPredictions(samples, 0.1, y, split.y_mean, split.y_std)
        for name, samples, y in (("test", far / 10, np.zeros(2)), ("far", far, None))
    }
    predicted = Predicted(sets, [SetInfo("test", "id"), SetInfo("far", "ood", "ood=far")])
    rows, _ = measured(split, predicted, AlphaEnergy().scores)
    found = {(row["condition"], row["metric"]): row["value"] for row in rows}
    assert found["ood=far;score=range", "ood_auroc"] == found["ood=far", "ood_auroc"] == 1
    assert ("ood=far;score=epistemic_variance", "ood_auroc") in found


def test_a_method_may_bring_its_likelihood_and_its_training(monkeypatch):
    monkeypatch.setattr(methods, "_ROWS", dict(methods.catalogue()))
    methods.add(Method("Chain", "", "none", {"name": "samples"}, likelihood=FIXED, training=CHAIN))
    table = {
        "network": {"name": "mlp", "hidden": [3]},
        "likelihood": {"name": "gaussian", "init_std": 0.2},
        "training": {"epochs": 3, "batch_size": 5, "optimiser": {"name": "adam"}},
    }
    made = make_config("Chain", CURVE, "smoke", Recipe(table, ()), 0, 0)["parts"]
    assert made["training"] == {**CHAIN, "dtype": "float32", "batch_size": None, "step": 0.3}
    assert made["likelihood"] == {**FIXED, "init_std": 0.2, "min_std": 0.0}, "the table names the same part"
    others = make_config("MAP", CURVE, "smoke", Recipe(table, ()), 0, 0)["parts"]
    assert others["training"]["name"] == "gradient" and others["likelihood"]["init_std"] == 0.2


def test_what_is_fitted_is_fitted_once_kept_and_predicted_with(tmp_path, monkeypatch):
    fits, call = [], Shift.__call__
    monkeypatch.setattr(Shift, "__call__", lambda *a: fits.append(a) or call(*a))
    more = {"samples": 5, "sets": ("test", "grid")}
    case, later = (config("MFVI", parts={"fit": {"name": "shift"}}, **options) for options in ({}, more))
    plain = config("MFVI")
    (first,) = execute([case], state=tmp_path)
    held = parameters.load(tmp_path, run_key(case))
    assert len(fits) == 1 and held.provenance["fit_seconds"] == first.provenance["fit_seconds"] >= 0
    (again,) = execute([later], state=tmp_path)
    assert len(fits) == 1 and "evaluated" in again.provenance
    execute([plain], state=tmp_path)
    f, g = (predictions.load(tmp_path / "artifacts" / f"{run_key(c)}.npz")["test"].samples for c in (case, plain))
    mean = float(held.parameters["fit/mean"])
    np.testing.assert_allclose(f, g + np.float32(mean), rtol=1e-5, atol=1e-6)
    with monkeypatch.context() as patch:
        patch.setattr("fvi_core.training.Trainer", None)
        store = Store(tmp_path / "results")
        assert measure_run(later, store, tmp_path) == "evaluated from stored parameters" and len(fits) == 1


def test_a_temperature_goes_through_classification(tmp_path):
    case = config("MAP", dataset=MOONS, parts={"fit": {"name": "temperature"}})
    plain = config("MAP", dataset=MOONS)
    scaled, raw = (execute([c], state=tmp_path)[0] for c in (case, plain))
    temperature = float(parameters.load(tmp_path, run_key(case)).parameters["fit/log_temperature"].exp())
    f, g = (
        predictions.load(tmp_path / "artifacts" / f"{run_key(c)}.npz")["test"].logits.astype(float)
        for c in (case, plain)
    )
    np.testing.assert_allclose(f * temperature, g, rtol=0.01, atol=0.01)
    assert numbers(scaled)["accuracy", ""] == numbers(raw)["accuracy", ""] and abs(temperature - 1) > 1e-3


@pytest.mark.parametrize("error", [ZeroDivisionError, RuntimeError])
def test_a_network_that_fails_stops_no_estimate(error, monkeypatch):
    class Failing:
        def build(self, input_shape, n_outputs):
            raise error("in a plug-in")

    name = f"failing with {error.__name__}"  # networks are built once for each name
    monkeypatch.setitem(NETWORKS.classes, name, dataclass(frozen=True)(Failing))
    case = config("MAP", dataset=MOONS)
    case["parts"]["network"] = {"name": name}
    assert similar._size(case) is None
