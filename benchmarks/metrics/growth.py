"""Growth of uncertainty away from the data: standard deviations of the function far from and at the training inputs."""

from __future__ import annotations

import numpy as np

from benchmarks.records.predictions import Predictions

from .distances import moments

FAR = 0.2
"""Fraction of the grid that counts as far: the inputs farthest from every training input."""


def metrics(grid: np.ndarray, predictions: Predictions, training: np.ndarray) -> dict[str, float]:
    """Return mean standard deviations at grid inputs [G, D] near to and far from training inputs [N, D], and their
    ratio.

    Averaged over the function's outputs, or over classes.
    """
    return of_deviations(grid, moments(predictions)[1], training)


def of_deviations(grid: np.ndarray, std: np.ndarray, training: np.ndarray) -> dict[str, float]:
    """Return the metrics of standard deviations [G, ...] at the grid inputs."""
    grid, training = grid.reshape(len(grid), -1), training.reshape(len(training), -1)
    std = std.reshape(len(grid), -1).mean(1)
    from scipy.spatial import cKDTree  # slow to load, and most commands only read records

    distance, _ = cKDTree(training).query(grid)
    _, nearest = cKDTree(grid).query(training)
    far = np.argsort(distance, kind="stable")[-max(1, round(FAR * len(grid))) :]
    found = {"std_at_data": float(std[nearest].mean()), "std_far": float(std[far].mean())}
    return found | ({"std_far_ratio": found["std_far"] / found["std_at_data"]} if found["std_at_data"] else {})
