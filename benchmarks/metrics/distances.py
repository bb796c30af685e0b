"""Distances between two predictive distributions at the same points: of means, of deviations, Wasserstein-2; and the
growth of one's deviations away from the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.records.predictions import ClassificationPredictions, Predictions

from . import regression

GROWN = ("std_at_data", "std_far", "std_far_ratio", "entropy_far")
"""Metrics of :func:`growth`."""
FAR = 0.2
"""Fraction of the grid that counts as far: the inputs farthest from every training input."""


def between(own: Predictions, reference: Predictions) -> dict[str, float]:
    """Return distances of functions, in standardised units, or of probabilities, per class and point.

    Wasserstein-2 needs equally many draws of both, and is left out otherwise.
    """
    (mean, std, draws), (other_mean, other_std, other_draws) = map(moments, (own, reference))
    values = {
        "mean_distance": float(np.sqrt(np.mean((mean - other_mean) ** 2))),
        "std_distance": float(np.sqrt(np.mean((std - other_std) ** 2))),
    }
    if len(draws) == len(other_draws):
        each = pointwise_wasserstein2(draws, other_draws)
        values |= {"wasserstein2": float(each.mean()), "wasserstein2_squared": float((each**2).mean())}
    return values


def pointwise_wasserstein2(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Wasserstein-2 distance [N] of draws a and b [S, N], point by point: in one dimension the best coupling joins
    equal ranks."""
    return np.sqrt(np.mean((np.sort(a, axis=0) - np.sort(b, axis=0)) ** 2, axis=0))


def moments(predictions: Predictions) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean and standard deviation [N] and draws [S, N]; moments in closed form where there is one."""
    if isinstance(predictions, ClassificationPredictions):
        from scipy.special import softmax  # slow to load, and most commands only read records

        p = softmax(predictions.logits.astype(np.float64), axis=-1)
        draws = p.reshape(len(p), -1)
        return draws.mean(0), draws.std(0), draws
    mean, variance = regression.mean(predictions), regression.variance(predictions)
    draws = predictions.samples.astype(np.float64)
    return mean.reshape(-1), np.sqrt(variance).reshape(-1), draws.reshape(len(draws), -1)


def growth(
    grid: np.ndarray, std: np.ndarray, training: np.ndarray, entropy: ArrayLike | None = None
) -> dict[str, float]:
    """Return mean standard deviations at grid inputs [G, D] near to and far from training inputs [N, D], their ratio,
    and of a classifier the mean entropy far away.

    std: standard deviations [G, ...] at the grid inputs, averaged over the function's outputs, or over classes;
    entropy: predictive entropies [G].
    """
    grid, training = grid.reshape(len(grid), -1), training.reshape(len(training), -1)
    std = std.reshape(len(grid), -1).mean(1)
    from scipy.spatial import cKDTree  # slow to load, and most commands only read records

    distance, _ = cKDTree(training).query(grid)
    _, nearest = cKDTree(grid).query(training)
    far = np.argsort(distance, kind="stable")[-max(1, round(FAR * len(grid))) :]
    values = {"std_at_data": float(std[nearest].mean()), "std_far": float(std[far].mean())}
    if entropy is not None:
        values["entropy_far"] = float(np.asarray(entropy)[far].mean())
    return values | ({"std_far_ratio": values["std_far"] / values["std_at_data"]} if values["std_at_data"] else {})
