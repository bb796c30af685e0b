"""CRPS, intervals and PIT values against numerical integrals, SciPy's roots and distributions, and by hand."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import kstest, norm

from benchmarks.metrics import SetInfo, curves, evaluate, regression
from benchmarks.metrics.regression import Mixture
from benchmarks.records.predictions import RegressionPredictions

RNG = np.random.default_rng(0)
NOISES = [0.4, np.linspace(0.2, 0.9, 6)]


def example(noise=0.4, samples: int = 6, points: int = 5, **options) -> RegressionPredictions:
    rng = np.random.default_rng(1)
    return RegressionPredictions(rng.normal(size=(samples, points)), noise, rng.normal(size=points), **options)


def cdf(p: RegressionPredictions, n: int, y: float) -> float:
    return norm.cdf(y, p.samples[:, n].astype(float), np.reshape(p.noise_std, -1)).mean()


@pytest.mark.parametrize("noise", NOISES)
def test_crps_is_the_integral_of_its_definition(noise):
    p = example(noise)
    found = Mixture.of(p).crps(p.targets)
    for n, y in enumerate(p.targets):
        below = quad(lambda z: cdf(p, n, z) ** 2, -12, y, limit=200)[0]
        above = quad(lambda z: (1 - cdf(p, n, z)) ** 2, y, 12, limit=200)[0]
        assert found[n] == pytest.approx(below + above, rel=1e-6)


@pytest.mark.parametrize("noise", [0.5, 0.02, np.linspace(0.3, 0.6, 150)])
def test_crps_of_many_samples_is_that_over_all_pairs(noise):
    p = example(noise, samples=150)
    f, std = p.samples.astype(float), np.broadcast_to(np.reshape(p.noise_std, (-1, 1)), (150, 1))

    def distance(m, s):  # E|m + s e| of Grimit et al. (2006)
        return m * (2 * norm.cdf(m / s) - 1) + 2 * s * norm.pdf(m / s)

    pairs = distance(f[:, None] - f, np.sqrt(std[:, None] ** 2 + std**2)).mean((0, 1))
    expected = distance(p.targets - f, std).mean(0) - pairs / 2
    np.testing.assert_allclose(Mixture.of(p).crps(p.targets), expected, rtol=1e-6)


def test_a_gaussian_has_its_closed_forms():
    rng = np.random.default_rng(2)
    mean, variance, y = rng.normal(size=7), rng.uniform(0.1, 1, 7), rng.normal(size=7)
    p = RegressionPredictions(np.zeros((3, 7)), 0.3, y, 1.0, 2.0, mean, variance)
    std = np.sqrt(variance + 0.09)
    z = (y - mean) / std
    crps = std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))  # Gneiting and Raftery 2007
    pit = Mixture.of(p).pit(y)
    np.testing.assert_allclose(Mixture.of(p).crps(y), crps)
    np.testing.assert_allclose(pit, norm.cdf(z))
    found = regression.distribution(p, pit)
    assert found["crps_standardised"] == pytest.approx(crps.mean())
    assert found["crps"] == pytest.approx(2 * crps.mean())
    for level in (50, 90, 95):
        half = norm.ppf(0.5 + level / 200)
        assert found[f"interval_width_{level}"] == pytest.approx(2 * 2 * half * std.mean())
        assert found[f"coverage_{level}"] == (np.abs(z) <= half).mean()


def test_without_a_spread_of_functions_the_samples_are_one_gaussian():
    y = RNG.normal(size=9)
    many = Mixture.of(RegressionPredictions(np.ones((40, 9)), 0.7, y))
    one = Mixture(np.ones((1, 9)), np.full((1, 1), 0.7))
    for function in (lambda m: m.crps(y), lambda m: m.pit(y), lambda m: m.quantiles(0.9)):
        np.testing.assert_allclose(function(many), function(one), rtol=1e-6)


@pytest.mark.parametrize("level", [0.025, 0.4, 0.95])
@pytest.mark.parametrize("noise", [*NOISES, 1e-3])
def test_quantiles_by_roots_of_scipy(noise, level):
    p = example(noise)
    found = Mixture.of(p).quantiles(level)
    for n in range(5):
        root = brentq(lambda z: cdf(p, n, z) - level, -12, 12, xtol=1e-13)
        assert found[n] == pytest.approx(root, abs=1e-7)


@pytest.mark.parametrize("noise", NOISES)
def test_pit_values_by_scipy(noise):
    p = example(noise)
    np.testing.assert_allclose(Mixture.of(p).pit(p.targets), [cdf(p, n, y) for n, y in enumerate(p.targets)])


GAUSSIAN = {"mean": np.linspace(-1, 1, 11), "variance": np.linspace(0.1, 2, 11)}


@pytest.mark.parametrize(("noise", "moments", "chunk"), [(np.linspace(0.2, 0.9, 6), {}, 13), (0.4, GAUSSIAN, 2)])
def test_pieces_change_nothing(monkeypatch, noise, moments, chunk):
    p = example(noise, points=11, **moments)
    whole = [Mixture.of(p).crps(p.targets), Mixture.of(p).pit(p.targets), Mixture.of(p).quantiles(0.3)]
    monkeypatch.setattr(regression, "_CHUNK", chunk)
    pieces = [Mixture.of(p).crps(p.targets), Mixture.of(p).pit(p.targets), Mixture.of(p).quantiles(0.3)]
    np.testing.assert_allclose(pieces, whole, rtol=1e-9)


def test_summaries_of_pit_values():
    pit = np.random.default_rng(3).beta(2, 3, 200)
    assert regression.kolmogorov_smirnov(pit) == pytest.approx(kstest(pit, "uniform").statistic)
    by_hand = np.mean([abs((pit <= p).mean() - p) for p in np.arange(1, 100) / 100])
    assert regression.calibration_error(pit) == pytest.approx(by_hand)
    assert regression.coverage(pit, 0.9) == ((pit >= 0.05) & (pit <= 0.95)).mean()
    even = (np.arange(1000) + 0.5) / 1000
    assert regression.kolmogorov_smirnov(even) == pytest.approx(0.0005)
    assert regression.calibration_error(even) == pytest.approx(0, abs=1e-9)
    curve = curves.pit(pit)
    assert len(curve["edges"]) == 21 and curve["count"] == np.histogram(pit, 20, (0, 1))[0].tolist()


def test_targets_drawn_from_the_prediction_are_covered_as_they_should():
    rng = np.random.default_rng(4)
    f = rng.normal(size=(12, 4000))
    y = f[rng.integers(0, 12, 4000), np.arange(4000)] + 0.3 * rng.normal(size=4000)
    rows, drawn = evaluate("regression", "d", [SetInfo("test", "id")], {"test": RegressionPredictions(f, 0.3, y)})
    found = {row["metric"]: row["value"] for row in rows}
    for level in (50, 90, 95):
        assert found[f"coverage_{level}"] == pytest.approx(level / 100, abs=0.03)
    assert found["pit_ks"] < 0.04 and found["quantile_calibration_error"] < 0.02
    assert sum(drawn["test/pit"]["count"]) == 4000
    assert found["interval_width_50"] < found["interval_width_90"] < found["interval_width_95"]


def test_bad_input_is_refused_by_name():
    with pytest.raises(ValueError, match="targets: expected one per point"):
        regression.distribution(RegressionPredictions(np.zeros((2, 3)), 0.1, None), np.array([0.5]))
