"""Selective prediction: retain points by uncertainty, lowest first. Ties come in any order: every number is the mean
over all orders of points of the same uncertainty. correct [N]: bool, or 0 and 1. Raises ValueError for uncertainties
that are NaN, and for no points.
"""

from __future__ import annotations

import numpy as np


def errors_retained(correct: np.ndarray, uncertainty: np.ndarray) -> np.ndarray:
    """Expected number of errors among the k most certain points, for k = 1..N: with g points of equal uncertainty, of
    which e are wrong, behind n points, errors_n + (k - n) e / g.

    >>> errors_retained(np.array([True, False]), uncertainty=np.array([0.1, 0.9]))
    array([0., 1.])
    """
    if (lost := np.isnan(uncertainty).sum()) or not len(uncertainty):  # NaN would rank as most uncertain, in one tie
        raise ValueError(f"uncertainties: expected numbers, found {lost} NaN of {len(uncertainty)}")
    return np.cumsum(tied_means(1 - correct, uncertainty)[np.argsort(uncertainty, kind="stable")])


def retention_curve(correct: np.ndarray, uncertainty: np.ndarray) -> np.ndarray:
    """Accuracy on the k most certain points, for k = 1..N.

    >>> retention_curve(np.array([True, False]), uncertainty=np.array([0.1, 0.9]))
    array([1. , 0.5])
    """
    return 1 - errors_retained(correct, uncertainty) / np.arange(1, len(correct) + 1)


def selective_accuracy_area(correct: np.ndarray, uncertainty: np.ndarray) -> float:
    """1/N sum_k accuracy_k: mean of the retention curve.

    >>> selective_accuracy_area(np.array([True, False]), uncertainty=np.array([0.1, 0.9]))
    0.75
    """
    return float(retention_curve(correct, uncertainty).mean())


def aurc(correct: np.ndarray, uncertainty: np.ndarray) -> float:
    """1/N sum_k errors_k / k: mean over coverages k / N of the selective risk.

    >>> aurc(np.array([True, False]), uncertainty=np.array([0.1, 0.9]))
    0.25
    """
    return float((1 - retention_curve(correct, uncertainty)).mean())


def augrc(correct: np.ndarray, uncertainty: np.ndarray) -> float:
    """1/N sum_k errors_k / N: mean over coverages of coverage times selective risk (Traub et al. 2024).

    >>> augrc(np.array([True, False]), uncertainty=np.array([0.1, 0.9]))
    0.25
    """
    return float(errors_retained(correct, uncertainty).mean() / len(correct))


def tied_means(values: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return each value [N] replaced by the mean over the points of its score: its expectation over orders of ties.

    >>> tied_means(np.array([0.0, 1.0, 1.0]), scores=np.array([5, 5, 7]))
    array([0.5, 0.5, 1. ])
    """
    _, group, count = np.unique(scores, return_inverse=True, return_counts=True)
    return (np.bincount(group, values) / count)[group]
