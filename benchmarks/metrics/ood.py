"""Telling OOD points from ID points by an uncertainty: OOD is the positive class, a high score means OOD."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FPR_GRID = np.linspace(0, 1, 101)


@dataclass(frozen=True)
class Detection:
    """ROC curve of scores id [N] against ood [M]: one point for each distinct threshold, highest first."""

    fpr: np.ndarray
    tpr: np.ndarray

    @classmethod
    def of(cls, id: np.ndarray, ood: np.ndarray) -> Detection:
        from sklearn.metrics import roc_curve  # slow to load, and most commands only read records

        fpr, tpr, _ = roc_curve(*_labelled(id, ood), drop_intermediate=False)
        return cls(fpr, tpr)

    def auroc(self) -> float:
        """P(score_ood > score_id) + P(score_ood = score_id) / 2."""
        return float(np.trapezoid(self.tpr, self.fpr))

    def fpr95(self) -> float:
        """False positive rate at the highest threshold whose true positive rate is at least 0.95."""
        return float(self.fpr[np.argmax(self.tpr >= 0.95)])

    def tpr_on_grid(self) -> np.ndarray:
        """True positive rate at the false positive rates 0, 0.01, ..., 1, linear between thresholds."""
        return np.interp(FPR_GRID, self.fpr, self.tpr)


def aupr(id: np.ndarray, ood: np.ndarray) -> float:
    """Average precision: sum over thresholds of (R_i - R_{i-1}) P_i."""
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(*_labelled(id, ood)))


def threshold_accuracy(id: np.ndarray, ood: np.ndarray, criterion: str = "gini") -> float:
    """Accuracy of a tree of depth 1 fitted to the first n points of each set (cinquin2024 app. C.5).

    ``criterion``: what the threshold minimises, "gini" or "log_loss".
    """
    n = min(len(id), len(ood))
    labels, scores = _labelled(id[:n], ood[:n])
    # Ranks, because the tree takes scores less than 1e-7 apart for equal; a threshold only sees the order.
    from scipy.stats import rankdata
    from sklearn.tree import DecisionTreeClassifier

    ranks = rankdata(scores, method="dense")[:, None]
    tree = DecisionTreeClassifier(criterion=criterion, max_depth=1, random_state=0).fit(ranks, labels)
    return float(tree.score(ranks, labels))


def _labelled(id: np.ndarray, ood: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat([0, 1], [len(id), len(ood)]), np.concatenate([id, ood])
