"""Calibration of the predicted class: confidence [N] = max_c p_c, correct [N] = 1[argmax_c p_c = y]."""

from __future__ import annotations

import numpy as np


def equal_width(confidence: np.ndarray, bins: int) -> np.ndarray:
    """Bin of each confidence: bin b is (b / bins, (b + 1) / bins]; 0 goes to the first, 1 to the last."""
    edges = np.linspace(0, 1, bins + 1)
    return np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, bins - 1)


def equal_mass(confidence: np.ndarray, bins: int) -> np.ndarray:
    """Bin of each confidence: runs of the sorted confidences, sizes differing by one at most."""
    index = np.empty(len(confidence), dtype=np.int64)
    for b, members in enumerate(np.array_split(np.argsort(confidence, kind="stable"), bins)):
        index[members] = b
    return index


def binned(
    confidence: np.ndarray, correct: np.ndarray, index: np.ndarray, bins: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean confidence, accuracy and number of points of each bin; NaN where a bin is empty."""
    count = np.bincount(index, minlength=bins)
    with np.errstate(invalid="ignore"):
        return np.bincount(index, confidence, bins) / count, np.bincount(index, correct, bins) / count, count


def calibration_error(confidence: np.ndarray, correct: np.ndarray, index: np.ndarray, bins: int) -> float:
    """sum_b n_b / n |accuracy_b - confidence_b| over bins that are not empty."""
    mean, accuracy, count = binned(confidence, correct, index, bins)
    return float(np.nansum(count * np.abs(accuracy - mean)) / len(confidence))


def ece(confidence: np.ndarray, correct: np.ndarray, bins: int = 15) -> float:
    """Expected calibration error with bins of equal width."""
    return calibration_error(confidence, correct, equal_width(confidence, bins), bins)


def ace(confidence: np.ndarray, correct: np.ndarray, bins: int = 15) -> float:
    """Adaptive calibration error: bins of equal mass."""
    return calibration_error(confidence, correct, equal_mass(confidence, bins), bins)
