"""Runs beside a reference: another training, or the exact posterior of their own prior and noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import datasets
from benchmarks.experiment import reference
from benchmarks.experiment.assembly import FittedRun, build_data, build_model, run_streams
from benchmarks.experiment.execute import execute
from benchmarks.experiment.measure import EVALUATED, UNCHANGED, measure
from benchmarks.metrics.registry import METRICS
from benchmarks.records.config import run_key, validate_config
from benchmarks.records.store import Store
from benchmarks.tables import Recipe
from benchmarks.tables.recipes import ReferenceRequest, make_configs
from fvi_core.families.base import NotSupported
from fvi_core.gaussian_process import posterior
from fvi_core.kernels import RBF
from fvi_core.training import Trainer
from tests.benchmarks.experiment.test_execute import CURVE, MOONS, numbers
from tests.configs import make_config

TRAINING = {"epochs": 3, "batch_size": 100, "optimiser": {"name": "adam", "lr": 0.01}, "dtype": "float64"}
PARTS = {
    "network": {"name": "mlp", "hidden": [4], "activation": "tanh"},
    "likelihood": {"name": "gaussian", "init_std": 0.3, "learned": False},
    "training": TRAINING,
}
FITTED = {"fit_steps": 3, "fit_batch": 20}
POINTS = {"name": "uniform_box", "points": 5}
PROCESS = {"GFSVI": {"prior": FITTED, "context": POINTS}, "FSVI": {"context": POINTS}}


def runs(method, own=None, exact=False, against=None, replicates=((0, 0),), data=CURVE, samples=50, at="test"):
    request = ReferenceRequest(at, exact, against or {})
    recipe = Recipe(PARTS | (own or {}), replicates, samples=samples, sets=("test", "grid"), reference=request)
    return make_configs(method, data, "smoke", recipe)


def of(outcome, label, inputs=""):
    where = ";".join(filter(None, (f"reference={label}", inputs)))
    found = numbers(outcome)
    return {metric: found[metric, where][0] for metric, condition in found if condition == where}


def test_a_run_is_not_compared_with_itself():
    seeds = ((0, 0), (0, 1))
    others = runs("MFVI", replicates=seeds)
    found = []
    for run in runs("MFVI", against={"a": others, "b": others[:1]}, replicates=seeds):
        against = run["evaluation"]["reference"]["against"]
        found.append({label: [each["seed"] for each in own] for label, own in against.items()})
    assert found == [{"a": [1]}, {"a": [0], "b": [0]}]
    (alone,) = runs("MFVI", against={"b": others[:1]})
    assert "reference" not in alone["evaluation"]


def test_equal_runs_are_at_no_distance_and_moments_are_another_runs(tmp_path):
    same = runs("GP", {"training": {**TRAINING, "epochs": 2}}, samples=50, replicates=((0, 1),))
    other = runs("GP", {"training": {**TRAINING, "epochs": 30, "optimiser": {"name": "adam", "lr": 0.1}}})
    against = {"equal": same, "gp": other, "both": [*same, *other]}
    (outcome,) = execute(
        runs("GP", {"training": {**TRAINING, "epochs": 2}}, against=against, at="grid"), state=tmp_path
    )
    equal, found = of(outcome, "equal", "inputs=grid"), of(outcome, "gp", "inputs=grid")
    assert equal["mean_distance"] == equal["std_distance"] == 0 and equal["wasserstein2"] < found["wasserstein2"] / 2
    both = of(outcome, "both", "inputs=grid")
    assert both == {metric: pytest.approx((equal[metric] + found[metric]) / 2) for metric in found}
    x = torch.from_numpy(datasets.load(CURVE).evaluation("grid").x)[None].double()
    moments = []
    for config in (same[0], other[0]):
        model, kept = fitted(config, tmp_path)
        mean, variance = model.marginals(kept, x)
        moments.append((mean[0, :, 0], variance[0, :, 0].sqrt()))
    (mean, std), (its_mean, its_std) = moments
    assert found["mean_distance"] == pytest.approx((mean - its_mean).square().mean().sqrt().item())
    assert found["std_distance"] == pytest.approx((std - its_std).square().mean().sqrt().item())
    assert found["mean_distance"] > 0 and found["wasserstein2"] > 0


def test_a_state_folder_without_room_still_serves_the_training_that_a_run_is_compared_with(tmp_path, monkeypatch):
    monkeypatch.setenv("FVI_STATE_GB", "0")
    same = runs("GP", {"training": {**TRAINING, "epochs": 2}}, samples=50)
    other = runs("GP", {"training": {**TRAINING, "epochs": 3}}, against={"gp": same})
    (outcome,) = execute(other, state=tmp_path)
    assert outcome.status == "done" and of(outcome, "gp")["mean_distance"] > 0


def fitted(config, state):
    from benchmarks.experiment import parameters
    from benchmarks.records.config import training_key

    kept = parameters.load(state, training_key(config))
    return build_model(config["parts"], datasets.load(CURVE)), kept.parameters


@pytest.mark.parametrize("method", ["GFSVI", "FSVI"])
def test_the_prior_is_the_one_that_training_fitted(method, tmp_path, monkeypatch):
    made = {}
    start = Trainer._fit_prior
    monkeypatch.setattr(Trainer, "_fit_prior", lambda *given: made.setdefault("first", start(*given)))
    (config,) = runs(method, PROCESS[method], exact=True)
    used = []
    init = type(build_model(config["parts"], datasets.load(CURVE)).prior).init
    monkeypatch.setattr(
        type(build_model(config["parts"], datasets.load(CURVE)).prior),
        "init",
        lambda *given: used.append(init(*given)) or used[-1],
    )
    (outcome,) = execute([config], state=tmp_path)
    assert len(used) == 2 and set(used[1]) == set(made["first"])
    assert all(torch.equal(used[1][name], made["first"][name]) for name in used[1])
    assert of(outcome, "exact_gp")["wasserstein2"] > 0


def test_the_exact_posterior_is_that_of_the_process(tmp_path):
    (config,) = runs("GFSVI", {"prior": {"parameters": {"log_lengthscale": -1.0}}, "context": POINTS}, exact=True)
    split = datasets.load(CURVE)
    model, streams = build_model(config["parts"], split), run_streams([config], torch.device("cpu"), torch.float64)
    data = build_data(model, [split], torch.device("cpu"), torch.float64)
    own = FittedRun(config, split, data, model, {"noise": torch.zeros(1)}, streams)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model), "noise_std", lambda self, parameters: torch.tensor([0.3]).double())
        found = reference.exact(own, split.test.x[:20], 4000)
    kernel = {"log_variance": torch.zeros(1).double(), "log_lengthscale": torch.full((1, 1), -1.0).double()}
    x = torch.from_numpy(split.test.x[:20])[None].double()
    mean, variance = posterior(RBF(ard=False), kernel, torch.tensor([0.09]).double(), data.x, data.y, x)
    assert np.allclose(found.mean, mean[0], atol=1e-9) and np.allclose(found.variance, variance[0], atol=1e-9)
    assert np.allclose(found.samples.mean(0), mean[0], atol=5 * variance.max().sqrt().item() / 4000**0.5)
    assert np.allclose(found.samples.std(0), variance[0].sqrt(), rtol=0.1, atol=1e-3)


def test_a_sparse_process_with_a_point_at_every_input_is_the_exact_one_once_it_has_converged(tmp_path):
    """Whitened m and C of N points have their optimum at the exact posterior; the kernel is its own."""
    own = {
        "family": {"points": 100, "kernel": {"name": "rbf", "ard": False}},
        "training": {**TRAINING, "epochs": 1, "optimiser": {"name": "adam", "lr": 0.03}},
    }
    near, far = ({**own, "training": {**own["training"], "epochs": n}} for n in (250, 1))
    outcomes = [execute(runs("Sparse GP", each, exact=True), state=tmp_path)[0] for each in (near, far)]
    distances = [of(outcome, "exact_gp")["wasserstein2"] for outcome in outcomes]
    assert distances[0] < 0.1 < 0.5 < distances[1]


def test_replicates_are_compared_with_the_reference_of_their_split_and_each_has_its_entry():
    against = runs("GP", replicates=((0, 0), (1, 1)))
    made = runs("MFVI", against={"gp": against}, replicates=((0, 0), (0, 3), (1, 1)))
    entries = [run["evaluation"]["reference"]["against"]["gp"] for run in made]
    assert [[each["dataset"]["split"] for each in entry] for entry in entries] == [[0], [0], [1]]
    assert all("evaluation" not in each for entry in entries for each in entry)
    for run in made:
        validate_config(run)
    plain = make_config("MFVI", CURVE, "smoke", Recipe(PARTS, ()), 0, 0)
    assert set(plain["evaluation"]) == {"samples", "sets", "content"}
    assert len({run_key(run) for run in made}) == 3


def test_a_classifier_beside_another(tmp_path):
    own = {"likelihood": {"name": "categorical"}}
    (outcome,) = execute(
        runs("MAP", own, against={"hmc": runs("MFVI", own, data=MOONS, samples=7)}, data=MOONS, samples=7, at="grid"),
        state=tmp_path,
    )
    found = of(outcome, "hmc", "inputs=grid")
    assert 0 < found["mean_distance"] < 1 and 0 < found["std_distance"] < 1


def test_what_has_no_exact_posterior_says_so(tmp_path):
    with pytest.raises(NotSupported, match="one output with Gaussian noise"):
        execute(runs("MAP", {"likelihood": {"name": "categorical"}}, exact=True, data=MOONS), state=tmp_path)
    with pytest.raises(NotSupported, match="has no|not a Gaussian process"):
        execute(runs("MC Dropout", exact=True), state=tmp_path)


def test_measuring_again_keeps_distances_until_they_have_a_newer_version(tmp_path, monkeypatch):
    store, (config,) = Store(tmp_path / "results"), runs("GFSVI", PROCESS["GFSVI"], exact=True)
    (outcome,) = execute([config], state=tmp_path / "state")
    store.write(store.make(config, outcome.metrics, outcome.curves, outcome.provenance))
    before = store.get(config)["metrics"]
    assert measure([config], store, tmp_path / "state").counts[UNCHANGED] == 1
    changed = METRICS["wasserstein2"].__class__("wasserstein2", "lower", "", "another", version=2, entry="reference")
    monkeypatch.setitem(METRICS, "wasserstein2", changed)
    assert measure([config], store, tmp_path / "state").counts[EVALUATED] == 1
    assert store.get(config)["metrics"] == before


def test_a_distance_that_is_new_is_measured_from_draws(tmp_path, monkeypatch):
    store, (config,) = Store(tmp_path / "results"), runs("GFSVI", PROCESS["GFSVI"], exact=True)
    (outcome,) = execute([config], state=tmp_path / "state")
    with monkeypatch.context() as earlier:
        earlier.delitem(METRICS, "wasserstein2_squared")
        known = [row for row in outcome.metrics if row["metric"] != "wasserstein2_squared"]
        store.write(store.make(config, known, outcome.curves, outcome.provenance))
    assert store.status(config, {"wasserstein2_squared"})[0] == "stale"
    assert measure([config], store, tmp_path / "state").counts[EVALUATED] == 1
    assert store.get(config)["metrics"] == outcome.metrics
