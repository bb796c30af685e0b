"""The log marginal likelihood of a set under a run's own prior, against scipy's joint Gaussian density."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

import datasets
from benchmarks.experiment.execute import execute
from benchmarks.experiment.measure import EVALUATED, UNCHANGED, measure
from benchmarks.metrics.registry import METRICS
from benchmarks.records.config import training_key, validate_config
from benchmarks.records.store import Store
from benchmarks.state.kept import parameters_path
from benchmarks.tables import Recipe
from benchmarks.tables.recipes import make_configs
from fvi_core.families.base import NotSupported
from fvi_core.families.exact_gp import ExactGP
from fvi_core.gaussian_process import posterior
from fvi_core.kernels import RBF
from tests.benchmarks.experiment.test_execute import CURVE, MOONS, numbers
from tests.benchmarks.experiment.test_reference import PARTS, PROCESS, fitted

KERNEL = {"name": "rbf", "ard": False}
OWN = {"GP": {"family": {"kernel": KERNEL}}, "Sparse GP": {"family": {"kernel": KERNEL, "points": 5}}}


def run(method, own=None, evidence="test", data=CURVE):
    recipe = Recipe(PARTS | (own or {}), ((0, 0),), samples=5, evidence=evidence)
    return make_configs(method, data, "smoke", recipe)[0]


@pytest.mark.parametrize("method", OWN)
def test_it_is_the_joint_density_of_targets_under_the_trained_prior(method, tmp_path):
    config = run(method, OWN[method])
    (outcome,) = execute([config], state=tmp_path)
    (_, kept), test = fitted(config, tmp_path), datasets.load(CURVE).test
    variance, scale = (kept[name].double().exp().item() for name in ("log_variance", "log_lengthscale"))
    x = test.x.astype(np.float64)
    distances = ((x[:, None] - x) ** 2).sum(-1)
    noise = np.eye(len(test.y)) * PARTS["likelihood"]["init_std"] ** 2
    covariance = variance * np.exp(-0.5 * distances / scale**2) + noise
    expected = stats.multivariate_normal.logpdf(test.y, np.zeros(len(test.y)), covariance) / len(test.y)
    value, n = numbers(outcome)["log_marginal_likelihood", ""]
    assert value == pytest.approx(expected, rel=1e-6) and n == len(test.y)


def test_the_bound_of_a_sparse_process_is_that_of_titsias(tmp_path):
    config = make_configs("Sparse GP", CURVE, "smoke", Recipe(PARTS | OWN["Sparse GP"], ((0, 0),), bound="test"))[0]
    validate_config(config)
    (outcome,) = execute([config], state=tmp_path)
    (_, kept), test = fitted(config, tmp_path), datasets.load(CURVE).test
    variance, scale = (kept[name].double().exp().item() for name in ("log_variance", "log_lengthscale"))
    x, z = test.x.astype(np.float64), kept["inducing/x"][0].double().numpy()
    gram = lambda a, b: variance * np.exp(-0.5 * ((a[:, None] - b) ** 2).sum(-1) / scale**2)
    q = gram(x, z) @ np.linalg.solve(gram(z, z) + 1e-6 * np.eye(5), gram(z, x))
    noise, n = PARTS["likelihood"]["init_std"] ** 2, len(test.y)
    expected = stats.multivariate_normal.logpdf(test.y, np.zeros(n), q + noise * np.eye(n))
    expected -= np.trace(gram(x, x) - q) / (2 * noise)
    value, _ = numbers(outcome)["collapsed_bound", ""]
    assert value == pytest.approx(expected / n, rel=1e-6)
    exact = stats.multivariate_normal.logpdf(test.y, np.zeros(n), gram(x, x) + noise * np.eye(n)) / n
    assert value < exact


def test_only_a_sparse_process_has_a_bound(tmp_path):
    (config,) = make_configs("GP", CURVE, "smoke", Recipe(PARTS | OWN["GP"], ((0, 0),), bound="test"))
    with pytest.raises(NotSupported, match="wanted family 'sparse_gp', found 'exact_gp'"):
        execute([config], state=tmp_path)


def test_a_prior_that_is_fitted_before_training_has_one_too(tmp_path):
    (outcome,) = execute([run("GFSVI", PROCESS["GFSVI"])], state=tmp_path)
    assert np.isfinite(numbers(outcome)["log_marginal_likelihood", ""][0])


def test_evidence_can_be_measured_after_an_earlier_training(tmp_path):
    with_evidence, plain = run("GP", OWN["GP"]), run("GP", OWN["GP"], evidence="")
    validate_config(with_evidence)
    assert training_key(with_evidence) == training_key(plain) and "evidence" not in plain["evaluation"]
    execute([plain], state=tmp_path / "state")
    assert parameters_path(tmp_path / "state", training_key(plain)).exists()
    assert measure([with_evidence], Store(tmp_path / "results"), tmp_path / "state").counts[EVALUATED] == 1


def test_a_newer_version_of_it_is_computed_from_the_parameters(tmp_path, monkeypatch):
    config, store, state = run("GP", OWN["GP"]), Store(tmp_path / "results"), tmp_path / "state"
    (outcome,) = execute([config], state=state)
    store.write(store.make(config, outcome.metrics, outcome.curves, outcome.provenance))
    name = "log_marginal_likelihood"
    assert measure([config], store, state).counts[UNCHANGED] == 1
    monkeypatch.setitem(METRICS, name, replace(METRICS[name], version=2))
    assert measure([config], store, state).counts[EVALUATED] == 1
    assert store.get(config)["metric_versions"][name] == 2


def test_what_has_no_prior_process_says_so(tmp_path):
    with pytest.raises(NotSupported, match="wanted one output with targets and Gaussian noise"):
        execute([run("MAP", {"likelihood": {"name": "categorical"}}, data=MOONS)], state=tmp_path)
    with pytest.raises(NotSupported, match="not a Gaussian process"):
        execute([run("MC Dropout")], state=tmp_path)


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_process_of_an_exact_one_has_its_covariances(outputs):
    draw = torch.randn(2, 12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x, y = draw[:, :, :1], draw[:, :, 1] if outputs == 1 else draw[:, :, 1:]
    hyper = RBF(ard=False).init(2, 1)
    parameters = hyper | {"train/noise": torch.full((2,), 0.1).double(), "train/x": x[:, :8], "train/y": y[:, :8]}
    process = ExactGP(kernel=KERNEL).process(parameters)
    _, full = posterior(RBF(ard=False), hyper, *process.data, x[:, 8:], full=True)
    full = full.reshape(2, outputs, 4, 4)
    torch.testing.assert_close(process.covariance(x[:, 8:10], x[:, 10:]), full[..., :2, 2:])
    torch.testing.assert_close(process.prior_covariance(x, x), RBF(ard=False)(hyper, x, x))
    torch.testing.assert_close(process.prior_variance(x), process.prior_covariance(x, x).diagonal(dim1=1, dim2=2))
    with pytest.raises(NotSupported, match="gives gradients"):
        ExactGP(kernel={"name": "helmholtz", "field": "helmholtz"}).process(parameters)
