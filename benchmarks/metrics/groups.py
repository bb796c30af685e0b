"""Near and far sets of other sources, as OpenOOD groups them (Yang et al. 2022, Zhang et al. 2023).

Near: images made in the same way of other classes; far: of other things altogether.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.shapes import MetricRow
from fvi_core import plugins

GROUPS: dict[str, dict[str, tuple[str, ...]]] = plugins.track(
    {
        "cifar10": {"near": ("cifar100",), "far": ("svhn",)},
        "cifar100": {"near": ("cifar10",), "far": ("svhn",)},
        "mnist": {"near": ("fashion_mnist", "not_mnist", "kmnist")},
        "fashion_mnist": {"near": ("mnist", "not_mnist", "kmnist")},
    }
)
"""Data set -> group -> conditions "ood=<name>" of its sets. OpenOOD has notMNIST and Fashion-MNIST near MNIST,
CIFAR-100 near CIFAR-10 and the other way round, SVHN far from both; KMNIST and the partners of Fashion-MNIST follow it.
"""
METRICS = ("ood_auroc", "ood_aupr", "ood_fpr95")


def rows(dataset: str, found: Sequence[MetricRow]) -> list[MetricRow]:
    """Means of METRICS over those sets of each group that were evaluated, as "group=near" in the place of "ood=<name>";
    n is the sum of theirs."""
    means: list[MetricRow] = []
    for group, members in GROUPS.get(dataset, {}).items():
        sets = [f"ood={name}" for name in members]
        own = [row for row in found if row["metric"] in METRICS and row["condition"].partition(";")[0] in sets]
        for metric, score in dict.fromkeys((row["metric"], row["condition"].partition(";")[2]) for row in own):
            same = [r for r in own if (r["metric"], r["condition"].partition(";")[2]) == (metric, score)]
            means.append(
                {
                    "dataset": dataset,
                    "condition": ";".join(filter(None, (f"group={group}", score))),
                    "metric": metric,
                    "value": float(np.mean([row["value"] for row in same])),
                    "n": sum(row["n"] for row in same),
                }
            )
    return means
