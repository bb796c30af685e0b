"""Near and far out-of-distribution sets, as OpenOOD groups them (Yang et al. 2022, Zhang et al. 2023).

Near: other classes of similarly made images; far: images of other things altogether.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.records.conditions import score_of, with_score
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
"""Data set -> group -> names of its sets, as in conditions "ood=<name>". OpenOOD has notMNIST and Fashion-MNIST near
MNIST, CIFAR-100 near CIFAR-10 and the other way round, SVHN far from both; KMNIST and the partners of Fashion-MNIST
follow it."""
AVERAGED = ("ood_auroc", "ood_aupr", "ood_fpr95")


def rows(dataset: str, found: Sequence[MetricRow]) -> list[MetricRow]:
    """Average each metric of AVERAGED over the evaluated sets of a group ("near_ood_auroc" and so on), for each score
    in the rows ``found``. n is the sum over the sets."""
    means: list[MetricRow] = []
    for group, members in GROUPS.get(dataset, {}).items():
        sets = [f"ood={name}" for name in members]
        own = [row for row in found if row["metric"] in AVERAGED and row["condition"].partition(";")[0] in sets]
        for metric, score in dict.fromkeys((row["metric"], score_of(row["condition"])) for row in own):
            same = [row for row in own if (row["metric"], score_of(row["condition"])) == (metric, score)]
            means.append(
                {
                    "dataset": dataset,
                    "condition": with_score("", score) if score else "",
                    "metric": f"{group}_{metric}",
                    "value": float(np.mean([row["value"] for row in same])),
                    "n": sum(row["n"] for row in same),
                }
            )
    return means
