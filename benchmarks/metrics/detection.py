"""Detection of out-of-distribution points by an uncertainty: threshold accuracy, and means over near and far sets.

OpenOOD groups sets (Yang et al. 2022, Zhang et al. 2023). Near: other classes of similarly made images; far: images of
other things altogether.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.records.rows import score_of, with_score
from benchmarks.shapes import MetricRow
from fvi_core import plugins
from fvi_core.metrics import ood

from . import curves
from .registry import metric_rows


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


GROUPS: dict[str, dict[str, tuple[str, ...]]] = plugins.track(
    {
        "cifar10": {"near": ("cifar100",), "far": ("svhn",)},
        "cifar100": {"near": ("cifar10",), "far": ("svhn",)},
        "mnist": {"near": ("fashion_mnist", "not_mnist", "kmnist")},
        "fashion_mnist": {"near": ("mnist", "not_mnist", "kmnist")},
    }
)
"""Data set -> group -> names of its sets, as in conditions "ood=<name>". OpenOOD has notMNIST and Fashion-MNIST near
MNIST, CIFAR-100 near CIFAR-10 and the other way round, SVHN far from both; KMNIST and the partners of Fashion-MNIST
follow it."""
AVERAGED = ("ood_auroc", "ood_aupr", "ood_fpr95")


def by_group(dataset: str, rows: Sequence[MetricRow]) -> list[MetricRow]:
    """Average each metric of AVERAGED over the evaluated sets of a group ("near_ood_auroc" and so on), for each score
    in the rows. n is the sum over the sets."""
    means: list[MetricRow] = []
    for group, members in GROUPS.get(dataset, {}).items():
        sets = [f"ood={name}" for name in members]
        own = [row for row in rows if row["metric"] in AVERAGED and row["condition"].partition(";")[0] in sets]
        for metric, score in dict.fromkeys((row["metric"], score_of(row["condition"])) for row in own):
            same = [row for row in own if (row["metric"], score_of(row["condition"])) == (metric, score)]
            mean = float(np.mean([row["value"] for row in same]))
            condition = with_score("", score) if score else ""
            means += metric_rows(dataset, condition, {f"{group}_{metric}": mean}, sum(row["n"] for row in same))
    return means


def detected(
    dataset: str, condition: str, id: dict[str, np.ndarray], other: dict[str, np.ndarray]
) -> tuple[list[MetricRow], curves.Curve]:
    """Return rows for each score, and again without a score's name for the first, as in papers that name none."""
    rows, detections = [], {}
    for position, name in enumerate(name for name in id if name in other):
        detections[name] = detection = ood.Detection.of(id[name], other[name])
        values = {
            "ood_auroc": detection.auroc(),
            "ood_aupr": ood.aupr(id[name], other[name]),
            "ood_fpr95": detection.fpr95(),
        }
        accuracy = {
            "ood_accuracy": threshold_accuracy(id[name], other[name]),
            "ood_accuracy_log_loss": threshold_accuracy(id[name], other[name], "log_loss"),
        }
        sizes = len(id[name]), len(other[name])
        named = with_score(condition, name)
        for place in (named, condition) if position == 0 else (named,):
            rows += metric_rows(dataset, place, values, sum(sizes))
            rows += metric_rows(dataset, place, accuracy, 2 * min(sizes))
    return rows, curves.roc(detections)
