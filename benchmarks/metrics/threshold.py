"""Accuracy of a depth-1 tree's threshold on an uncertainty that separates OOD points from ID points."""

from __future__ import annotations

import numpy as np


def threshold_accuracy(id: np.ndarray, ood: np.ndarray, criterion: str = "gini") -> float:
    """Accuracy of a tree of depth 1 fitted to the first n points of each set (cinquin2024 app. C.5).

    ``criterion``: the impurity that the threshold minimises, "gini" or "log_loss".
    """
    n = min(len(id), len(ood))
    labels, scores = np.repeat([0, 1], n), np.concatenate([id[:n], ood[:n]])
    # Ranks, because the tree treats scores less than 1e-7 apart as equal; a threshold depends on the order only.
    from scipy.stats import rankdata
    from sklearn.tree import DecisionTreeClassifier

    ranks = rankdata(scores, method="dense")[:, None]
    tree = DecisionTreeClassifier(criterion=criterion, max_depth=1, random_state=0).fit(ranks, labels)
    return float(tree.score(ranks, labels))
