"""Regression metrics by hand, against Monte Carlo and analytic entropies, and under a change of units."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import mean_squared_error, root_mean_squared_error

from benchmarks.metrics import SetInfo, curves, evaluate, regression
from benchmarks.records.predictions import RegressionPredictions
from fvi_core.metrics.regression import epistemic_entropy


def example(y_std: float = 3.0, y_mean: float = -2.0, noise_std=0.4) -> RegressionPredictions:
    rng = np.random.default_rng(0)
    return RegressionPredictions(rng.normal(size=(8, 30)), noise_std, rng.normal(size=30), y_mean, y_std)


def values(predictions: RegressionPredictions) -> dict[str, float]:
    rows, _ = evaluate("regression", "boston", [SetInfo("test", "id")], {"test": predictions})
    return {row["metric"]: row["value"] for row in rows}


def test_errors_against_sklearn_in_both_units():
    p, found = example(), values(example())
    y, mean = p.targets, p.samples.mean(0)
    assert found["mse_standardised"] == pytest.approx(mean_squared_error(y, mean), rel=1e-6)
    assert found["rmse_standardised"] == pytest.approx(root_mean_squared_error(y, mean), rel=1e-6)
    original, prediction = y * p.y_std + p.y_mean, mean * p.y_std + p.y_mean
    assert found["mse"] == pytest.approx(mean_squared_error(original, prediction), rel=1e-6)
    assert found["rmse"] == pytest.approx(root_mean_squared_error(original, prediction), rel=1e-6)


@pytest.mark.parametrize("noise", [0.4, np.linspace(0.2, 0.9, 8)])
def test_likelihoods_by_scipy_in_original_units(noise):
    p, found = example(noise_std=noise), values(example(noise_std=noise))
    y, f = p.targets * p.y_std + p.y_mean, p.samples * p.y_std + p.y_mean
    log_density = norm.logpdf(y, f, np.reshape(noise, (-1, 1)) * p.y_std)
    assert found["expected_log_likelihood"] == pytest.approx(log_density.mean(), rel=1e-5)
    predictive = np.log(np.exp(log_density).mean(0))
    assert found["log_posterior_predictive"] == pytest.approx(predictive.mean(), rel=1e-5)


@pytest.mark.parametrize("noise", [0.4, np.linspace(0.2, 0.9, 8)])
def test_gaussians_of_the_samples_moments_by_scipy_in_original_units(noise):
    p, found = example(noise_std=noise), values(example(noise_std=noise))
    y, f = p.targets * p.y_std + p.y_mean, p.samples.astype(np.float64) * p.y_std + p.y_mean
    with_noise = norm.logpdf(y, f.mean(0), np.sqrt(f.var(0) + np.mean((noise * p.y_std) ** 2)))
    assert found["gaussian_log_predictive"] == pytest.approx(with_noise.mean(), rel=1e-6)
    alone = norm.logpdf(y, f.mean(0), f.std(0, ddof=1))
    assert found["gaussian_log_predictive_without_noise"] == pytest.approx(alone.mean(), rel=1e-6)
    single = RegressionPredictions(p.samples[:1], 0.4, p.targets, p.y_mean, p.y_std)
    assert "gaussian_log_predictive_without_noise" not in values(single)


@given(st.floats(1e-3, 1e3), st.floats(-50, 50))
def test_likelihoods_change_by_the_log_of_the_scale_only(scale, shift):
    base, changed = values(example(1, 0)), values(example(scale, shift))
    for name in ("log_posterior_predictive", "expected_log_likelihood"):
        assert changed[name] + np.log(scale) == pytest.approx(base[name], abs=1e-9)
        assert changed[name + "_standardised"] == base[name + "_standardised"] == base[name]
    assert changed["rmse"] == pytest.approx(scale * base["rmse"])
    assert changed["mse"] == pytest.approx(scale**2 * base["mse"])
    assert changed["epistemic_entropy"] == base["epistemic_entropy"]


def test_gaussian_closed_form_against_monte_carlo():
    rng = np.random.default_rng(0)
    mean, variance, targets = rng.normal(size=5), rng.uniform(0.1, 1, 5), rng.normal(size=5)
    samples = mean + np.sqrt(variance) * rng.normal(size=(100_000, 5))
    sampled = RegressionPredictions(samples, 0.7, targets)
    closed = RegressionPredictions(samples[:2], 0.7, targets, mean=mean, variance=variance)
    for name in ("squared_error", "log_posterior_predictive", "expected_log_likelihood", "mean", "variance"):
        function = getattr(regression, name)
        np.testing.assert_allclose(function(closed), function(sampled), atol=0.02)


def test_likelihoods_far_from_the_data_stay_finite():
    p = RegressionPredictions(np.zeros((4, 1)), 1e-3, np.array([1e3]))
    assert regression.log_posterior_predictive(p)[0] == pytest.approx(norm.logpdf(1e3, 0, 1e-3))


@pytest.mark.parametrize(
    "distribution, entropy",
    [
        (lambda rng, shape: rng.normal(3, 0.5, shape), 0.5 * np.log(2 * np.pi * np.e * 0.25)),
        (lambda rng, shape: rng.uniform(-2, 5, shape), np.log(7)),
        (lambda rng, shape: rng.exponential(1, shape), 1.0),
    ],
)
def test_epistemic_entropy_against_analytic_entropies(distribution, entropy):
    samples = distribution(np.random.default_rng(0), (1000, 100))
    assert epistemic_entropy(samples).mean() == pytest.approx(entropy, abs=0.02)


def test_epistemic_entropy_by_all_pairs_of_samples():
    samples = np.random.default_rng(0).normal(size=(12, 3))
    distances = np.abs(samples[:, None] - samples)
    distances[np.arange(12), np.arange(12)] = np.inf
    euler = 0.57721566490153286  # -psi(1)
    expected = np.log(12) + euler + np.log(2) + np.log(distances.min(1)).mean(0)
    np.testing.assert_allclose(epistemic_entropy(samples), expected)


def test_epistemic_entropy_of_equal_samples_is_finite():
    floor = np.log(np.finfo(np.float32).eps)
    found = epistemic_entropy(np.ones((100, 1), np.float32))
    assert found[0] == pytest.approx(np.log(100) + 0.5772156649 + np.log(2) + floor)


def test_one_sample_has_no_epistemic_entropy():
    single = RegressionPredictions(np.zeros((1, 3)), 0.1, np.zeros(3))
    assert "epistemic_entropy" not in values(single)
    assert values(single)["rmse"] == 0


def test_the_grid_is_in_original_units():
    rng = np.random.default_rng(0)
    p = RegressionPredictions(rng.normal(size=(50, 4)), 0.3, None, 10.0, 2.0)
    curve = curves.regression_grid(np.linspace(-1, 1, 4)[:, None], p)
    f = p.samples.astype(float) * 2 + 10
    np.testing.assert_allclose(curve["mean"], f.mean(0), rtol=1e-4)
    np.testing.assert_allclose(curve["std"], f.std(0), rtol=1e-4)
    np.testing.assert_allclose(curve["std_with_noise"], np.sqrt(f.var(0) + 0.6**2), rtol=1e-4)
    np.testing.assert_allclose(curve["samples"], f[:5], rtol=1e-4)
    assert np.shape(curve["x"]) == (4, 1)
