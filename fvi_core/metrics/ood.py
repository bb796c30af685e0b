"""Detection of OOD points among ID points by an uncertainty: OOD is the positive class, a high score means OOD."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FPR_GRID = np.linspace(0, 1, 101)


@dataclass(frozen=True)
class Detection:
    """ROC curve of scores id [N] against ood [M]: one point for each distinct threshold, highest first.

    >>> curve = Detection.of(id=np.array([0.1, 0.4]), ood=np.array([0.3, 0.9]))
    >>> curve.auroc(), curve.fpr95()
    (0.75, 0.5)
    """

    fpr: np.ndarray
    tpr: np.ndarray

    @classmethod
    def of(cls, id: np.ndarray, ood: np.ndarray) -> Detection:
        """Return the curve of ID scores [N] and OOD scores [M]. Raises ValueError for NaN, and for no scores."""
        false, true = _counts(id, ood)
        return cls(np.append(0, false / false[-1]), np.append(0, true / true[-1]))

    def auroc(self) -> float:
        """P(score_ood > score_id) + P(score_ood = score_id) / 2."""
        return float(np.trapezoid(self.tpr, self.fpr))

    def fpr95(self) -> float:
        """False positive rate at the highest threshold whose true positive rate is at least 0.95."""
        return float(self.fpr[np.argmax(self.tpr >= 0.95)])

    def tpr_on_grid(self) -> np.ndarray:
        """True positive rate at the false positive rates 0, 0.01, ..., 1, linear between thresholds.

        >>> Detection.of(np.array([0.1, 0.4]), np.array([0.3, 0.9])).tpr_on_grid().shape
        (101,)
        """
        return np.interp(FPR_GRID, self.fpr, self.tpr)


def aupr(id: np.ndarray, ood: np.ndarray) -> float:
    """Average precision: sum over thresholds of (R_i - R_{i-1}) P_i. Raises ValueError as the curve.

    >>> round(aupr(id=np.array([0.1, 0.4]), ood=np.array([0.3, 0.9])), 3)
    0.833
    """
    false, true = _counts(id, ood)
    terms = np.diff(true / true[-1], prepend=0) * (true / (true + false))
    return float(terms[::-1].copy().sum())  # lowest threshold first, as scikit-learn adds them: the same bits


def _counts(id: np.ndarray, ood: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count ID and OOD points whose score is at least each distinct threshold, highest first."""
    for name, each in (("ID", id), ("OOD", ood)):
        if not len(each) or np.isnan(each).any():  # NaN would rank above every number: a perfect detection
            raise ValueError(f"{name} scores: expected numbers, found {np.isnan(each).sum()} NaN among {len(each)}")
    thresholds = np.unique(np.concatenate([id, ood]))[::-1]
    false, true = (len(each) - np.searchsorted(np.sort(each), thresholds, "left") for each in (id, ood))
    return false, true
