"""Distances of predictive distributions against closed forms, the best coupling, and numbers by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.optimize import linear_sum_assignment
from scipy.stats import norm

from benchmarks.metrics import distances
from benchmarks.records.predictions import ClassificationPredictions, RegressionPredictions


def gaussian(mean: float, std: float, draws: int = 4000, points: int = 1) -> np.ndarray:
    """Draws at the quantiles of a normal distribution, the same at every point."""
    values = mean + std * norm.ppf((np.arange(draws) + 0.5) / draws)
    return np.repeat(values[:, None], points, axis=1)


def test_two_draws_by_hand() -> None:
    a, b = np.array([[0.0, 5.0], [1.0, 5.0]]), np.array([[4.0, 5.0], [0.0, 8.0]])
    assert distances.pointwise_wasserstein2(a, b).tolist() == [np.sqrt(9 / 2), np.sqrt(9 / 2)]


def test_ranks_are_the_best_coupling() -> None:
    random = np.random.RandomState(0)
    a, b = random.normal(size=(30, 3)), random.gumbel(size=(30, 3))
    for point, found in enumerate(distances.pointwise_wasserstein2(a, b)):
        costs = (a[:, None, point] - b[None, :, point]) ** 2
        assert found**2 == pytest.approx(costs[linear_sum_assignment(costs)].mean())


@pytest.mark.parametrize(("own", "other"), [((0.3, 0.5), (-0.4, 1.2)), ((0.0, 1.0), (0.0, 1.0)), ((2.0, 0.1), (2, 3))])
def test_gaussians_have_the_distance_of_the_closed_form(own: tuple, other: tuple) -> None:
    """W^2 = (m1 - m2)^2 + tr(S1 + S2 - 2 (S2^1/2 S1 S2^1/2)^1/2), with matrix roots of scipy."""
    (m1, s1), (m2, s2) = own, other
    first, second = np.array([[s1**2]]), np.array([[s2**2]])
    root = sqrtm(second)
    squared = (m1 - m2) ** 2 + np.trace(first + second - 2 * sqrtm(root @ first @ root)).real
    assert squared == pytest.approx((m1 - m2) ** 2 + (s1 - s2) ** 2, abs=1e-12)
    found = distances.pointwise_wasserstein2(gaussian(*own), gaussian(*other))[0]
    assert found == pytest.approx(np.sqrt(max(squared, 0)), abs=2e-3)


def regression(samples: np.ndarray, *moments: np.ndarray) -> RegressionPredictions:
    return RegressionPredictions(samples, 0.1, None, 5.0, 2.0, *moments)


def test_moments_are_of_the_closed_form_where_there_is_one() -> None:
    draws = gaussian(0.0, 1.0, points=2)
    closed_form = regression(draws, np.array([3.0, 1.0]), np.array([4.0, 1.0]))
    found = distances.between(closed_form, regression(draws))
    assert found["mean_distance"] == pytest.approx(np.sqrt((9 + 1) / 2), abs=1e-6)
    assert found["std_distance"] == pytest.approx(np.sqrt((1 + 0) / 2), abs=2e-3)
    assert found["wasserstein2"] == found["wasserstein2_squared"] == 0


def test_the_mean_square_is_that_of_each_point() -> None:
    a, b = np.array([[0.0, 5.0], [1.0, 5.0]]), np.array([[4.0, 5.0], [0.0, 11.0]])
    assert distances.between(regression(a), regression(b))["wasserstein2_squared"] == pytest.approx((9 / 2 + 18) / 2)


def test_other_numbers_of_draws_have_no_wasserstein_distance() -> None:
    found = distances.between(regression(gaussian(0, 1, 10)), regression(gaussian(0, 1, 20)))
    assert set(found) == {"mean_distance", "std_distance"}


def test_classifiers_are_compared_by_their_probabilities() -> None:
    sure, unsure = np.zeros((2, 1, 2)), np.zeros((2, 1, 2))
    sure[:, 0, 0] = 20.0
    unsure[0, 0, 0], unsure[1, 0, 0] = 20.0, -20.0
    found = distances.between(*map(ClassificationPredictions, (sure, unsure)))
    assert found["mean_distance"] == pytest.approx(0.5, abs=1e-6)
    assert found["std_distance"] == pytest.approx(0.5, abs=1e-6)
    assert found["wasserstein2"] == pytest.approx(np.sqrt(0.5), abs=1e-6)
