"""Tests of the growth of uncertainty away from the data, against values by hand on a line and in the plane."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from benchmarks.metrics import SetInfo, evaluate
from benchmarks.metrics.distances import growth, moments
from benchmarks.records.predictions import ClassificationPredictions, Predictions, RegressionPredictions

GRID = [SetInfo("grid", "grid", "inputs=grid")]


def functions(std: np.ndarray) -> np.ndarray:
    """Two draws [2, N] whose standard deviations (divided by 2) are these."""
    return np.stack([3 + std, 3 - std])


def grown(grid: np.ndarray, predictions: Predictions, training: np.ndarray) -> dict[str, float]:
    """The growth of the deviations that predictions have."""
    return growth(grid, moments(predictions)[1], training)


def test_deviations_near_and_far_on_a_line() -> None:
    """Training inputs at 0 and 1 of a grid from -2 to 7: far are 6 and 7, at distances 5 and 6 from 1."""
    grid = np.arange(-2.0, 8.0)[:, None]
    std = np.array([9.0, 8.0, 0.5, 0.25, 7.0, 6.0, 5.0, 4.0, 2.0, 1.0])
    found = grown(grid, RegressionPredictions(functions(std), 0.1, None), np.array([[0.1], [0.1], [1.2]]))
    assert found["std_at_data"] == pytest.approx((0.5 + 0.5 + 0.25) / 3)  # each training input counts
    assert found["std_far"] == pytest.approx(1.5) and found["std_far_ratio"] == pytest.approx(1.5 / (1.25 / 3))


def test_closed_form_moments_go_before_draws() -> None:
    grid, moments = np.arange(5.0)[:, None], (np.zeros(5), np.array([1.0, 4.0, 9.0, 16.0, 25.0]))
    closed_form = RegressionPredictions(functions(np.ones(5)), 0.1, None, 0.0, 1.0, *moments)
    found = grown(grid, closed_form, np.array([[0.0]]))
    assert found == pytest.approx({"std_at_data": 1.0, "std_far": 5.0, "std_far_ratio": 5.0})


def test_deviations_of_probabilities_in_the_plane() -> None:
    """Corners of a square, training inputs near (0, 0); the farthest of five points is (2, 2)."""
    grid = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    logits = np.zeros((2, 5, 2))
    logits[0, :, 1], logits[1, :, 1] = [0.125, 1, 1, 1, 3], [-0.125, -1, -1, -1, -3]
    found = grown(grid, ClassificationPredictions(logits), np.array([[0.1, -0.2]]))
    assert found["std_at_data"] == pytest.approx(expit(0.125) - 0.5)
    assert found["std_far"] == pytest.approx(expit(3) - 0.5)


def test_the_entropy_far_away_is_that_of_the_mean_probabilities() -> None:
    x, logits = np.arange(5.0)[:, None], np.zeros((2, 5, 2))
    logits[0, :, 1], logits[1, :, 1] = [5, 5, 5, 5, 2], [5, 5, 5, 5, -2]  # opposite draws at the farthest input
    predictions = {"grid": ClassificationPredictions(logits)}
    rows, _ = evaluate("classification", "moons", GRID, predictions, {"grid": x}, training=np.zeros((1, 1)))
    found = {row["metric"]: row["value"] for row in rows}
    assert found["entropy_far"] == pytest.approx(np.log(2), abs=1e-5)  # from the curve, in five digits
    assert found["std_far"] == pytest.approx(expit(2) - 0.5)


def test_no_ratio_where_the_data_have_no_deviation() -> None:
    std = np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    found = grown(np.arange(5.0)[:, None], RegressionPredictions(functions(std), 0.1, None), np.array([[0.0]]))
    assert found == {"std_at_data": 0.0, "std_far": 1.0}


def test_a_grid_has_values_of_growth_where_the_training_inputs_are_given() -> None:
    x = np.linspace(-2, 2, 11)[:, None]
    predictions = {"grid": RegressionPredictions(functions(np.abs(x[:, 0]) + 1), 0.1, None)}
    rows, _ = evaluate("regression", "snelson", GRID, predictions, {"grid": x}, training=np.zeros((3, 1)))
    found = {row["metric"]: (row["value"], row["condition"], row["n"]) for row in rows}
    assert found["std_far_ratio"] == (pytest.approx(3.0), "inputs=grid", 11)
    assert evaluate("regression", "snelson", GRID, predictions, {"grid": x})[0] == []
