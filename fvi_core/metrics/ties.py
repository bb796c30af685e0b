"""Points of the same score, whose order is arbitrary."""

from __future__ import annotations

import numpy as np


def tied_means(values: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return each value [N] replaced by the mean over the points of its score: its expectation over orders of ties.

    >>> tied_means(np.array([0.0, 1.0, 1.0]), scores=np.array([5, 5, 7]))
    array([0.5, 0.5, 1. ])
    """
    _, group, count = np.unique(scores, return_inverse=True, return_counts=True)
    return (np.bincount(group, values) / count)[group]
