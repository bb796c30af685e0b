"""Calibration of the predicted class: confidence [N] = max_c p_c, correct [N] = 1[argmax_c p_c = y]; and of every
class: probabilities p [N, C], labels y [N].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .probabilities import check_labels
from .selective import tied_means

_ROUNDING = 1e-12  # of a probability that was a logarithm, or a mean over samples


def equal_width(confidence: np.ndarray, bins: int) -> np.ndarray:
    """Bin of each confidence: bin b is (b / bins, (b + 1) / bins]; 0 goes to the first, 1 to the last. Confidences
    that rounding moved beyond the end of a bin stay in that bin.

    >>> equal_width(np.array([0.0, 0.5, 0.51, 1.0]), bins=2)
    array([0, 0, 1, 1])
    """
    edges = np.linspace(0, 1, bins + 1)
    return np.clip(np.searchsorted(edges + _ROUNDING, confidence, side="left") - 1, 0, bins - 1)


def equal_mass(confidence: np.ndarray, bins: int) -> np.ndarray:
    """Bin of each confidence: runs of the sorted confidences, sizes differing by one at most.

    >>> equal_mass(np.array([0.9, 0.5, 0.7, 0.6]), bins=2)
    array([1, 0, 1, 0])
    """
    index = np.empty(len(confidence), dtype=np.int64)
    for b, members in enumerate(np.array_split(np.argsort(confidence, kind="stable"), bins)):
        index[members] = b
    return index


def binned(
    confidence: np.ndarray, correct: np.ndarray, index: np.ndarray, bins: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean confidence, accuracy and number of points of each bin; NaN where a bin is empty.

    >>> binned(np.array([0.5, 1.0]), np.array([True, False]), index=np.array([0, 0]), bins=1)
    (array([0.75]), array([0.5]), array([2]))
    """
    count = np.bincount(index, minlength=bins)
    with np.errstate(invalid="ignore"):
        return np.bincount(index, confidence, bins) / count, np.bincount(index, correct, bins) / count, count


def calibration_error(confidence: np.ndarray, correct: np.ndarray, index: np.ndarray, bins: int) -> float:
    """sum_b n_b / n |accuracy_b - confidence_b| over bins that are not empty. Raises ValueError for NaN, and for no
    points.

    >>> calibration_error(np.array([0.5, 1.0]), np.array([True, False]), index=np.array([0, 0]), bins=1)
    0.25
    """
    lost = np.isnan(confidence).sum()
    if lost or not len(confidence):  # NaN's bin, the last, would count as empty
        raise ValueError(f"confidences: expected numbers, found {lost} NaN of {len(confidence)}")
    mean, accuracy, count = binned(confidence, correct, index, bins)
    return float(np.nansum(count * np.abs(accuracy - mean)) / len(confidence))


def ece(confidence: np.ndarray, correct: np.ndarray, bins: int = 15) -> float:
    """Expected calibration error with bins of equal width.

    >>> ece(np.array([0.75, 0.75]), np.array([True, False]))
    0.25
    """
    return calibration_error(confidence, correct, equal_width(confidence, bins), bins)


def ace(confidence: np.ndarray, correct: np.ndarray, bins: int = 15) -> float:
    """Expected calibration error with bins of equal mass. Where a bin's edge falls among points of equal confidence,
    both bins take shares of the same accuracy, so that their order does not matter.

    >>> ace(np.array([0.75, 0.75]), np.array([True, False]))
    0.25
    """
    return calibration_error(confidence, tied_means(correct, confidence), equal_mass(confidence, bins), bins)


def classwise_ece(p: np.ndarray, y: np.ndarray, bins: int = 15) -> float:
    """1 / C sum_c sum_b n_cb / n |share of label c - mean of p_c|, bins of equal width of p_c (Kull et al. 2019 eq. 3;
    the static calibration error of Nixon et al. 2019). Raises ValueError for labels without a column of p [N, C].

    >>> classwise_ece(np.array([[0.75, 0.25], [0.75, 0.25]]), np.array([0, 1]))
    0.25
    """
    return _classwise(p, y, ece, bins)


def classwise_ace(p: np.ndarray, y: np.ndarray, bins: int = 15) -> float:
    """Adaptive calibration error of Nixon et al. (2019): classwise, with bins of equal mass of each p_c.

    >>> classwise_ace(np.array([[0.75, 0.25], [0.75, 0.25]]), np.array([0, 1]))
    0.25
    """
    return _classwise(p, y, ace, bins)


def top_label_ece(p: np.ndarray, y: np.ndarray, bins: int = 15) -> float:
    """sum_c sum_b n_cb / n |accuracy_cb - confidence_cb| over the points predicted as c, bins of equal width of max p:
    E |P(y = c | c, max p) - max p| for c = argmax p (Gupta and Ramdas 2022 eq. 3). Raises ValueError
    as :func:`classwise_ece`.

    >>> top_label_ece(np.array([[0.75, 0.25], [0.75, 0.25]]), np.array([0, 1]))
    0.25
    """
    check_labels(p, y)
    confidence, predicted = p.max(-1), p.argmax(-1)
    index = predicted * bins + equal_width(confidence, bins)
    return calibration_error(confidence, predicted == y, index, p.shape[-1] * bins)


def _classwise(p: np.ndarray, y: np.ndarray, error: Callable[[np.ndarray, np.ndarray, int], float], bins: int) -> float:
    check_labels(p, y)
    return float(np.mean([error(own, y == c, bins) for c, own in enumerate(p.T)]))
