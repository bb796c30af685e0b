"""Registry of metrics, and the metrics of plug-ins, computed on every set where they are defined.

``metrics.csv`` lists metrics with direction, unit, range, title, formula and bin rule. Empty cells: no unit, no least
or most value, version 1, a title like the name.
"""

from __future__ import annotations

import copy
import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.errors import UnknownName
from benchmarks.records.predictions import Predictions, drawn
from benchmarks.shapes import MetricRow
from fvi_core import plugins
from fvi_core.printing import message
from fvi_core.settings import restored
from fvi_core.spelling import nearest

KINDS = ("id", "shift", "ood", "grid", "spectrum")  # kinds of evaluation sets
LABELLED = ("id", "shift")
"""Kinds whose sets have labels or targets of their points."""


@dataclass(frozen=True)
class Metric:
    """One metric. `version` grows when its values change; records made with an older version are stale.

    entry: evaluation option that computes it where it needs trained parameters or more draws, not only predictions.
    range: smallest and largest possible value; a record with a value outside is refused. infinite: its worst value is
    infinite (probability 0 of a label, in external predictions). title: name on the page and in notes; empty: the
    name, with blanks.
    """

    name: str
    direction: Literal["higher", "lower", "none"]
    unit: str
    formula: str
    bins: str = ""
    version: int = 1
    entry: str = ""
    range: tuple[float, float] = (-math.inf, math.inf)
    infinite: bool = False
    title: str = ""

    @property
    def worst(self) -> float:
        """Infinite value of the worst case; nan where none is infinite."""
        return math.nan if not self.infinite else math.inf if self.direction == "lower" else -math.inf


def _metric(row: dict[str, Any]) -> Metric:
    limits = float(row.pop("least") or -math.inf), float(row.pop("most") or math.inf)
    infinite, version = row.pop("infinite") == "yes", int(row.pop("version") or 1)
    return Metric(**row, range=limits, infinite=infinite, version=version)


with Path(__file__).with_name("metrics.csv").open(newline="", encoding="utf-8") as _file:
    METRICS: dict[str, Metric] = plugins.track({row["name"]: _metric(row) for row in csv.DictReader(_file)})


def metric(name: str) -> Metric:
    """Return the metric of this name. Raises UnknownName with the nearest names."""
    plugins.load()
    if name not in METRICS:
        raise UnknownName(f"unknown metric {name!r}; {nearest(name, METRICS)}")
    return METRICS[name]


Of = Callable[[Predictions], float | None]
Detects = Callable[[Predictions, Predictions], float | None]


@dataclass(frozen=True)
class Own:
    """Functions of a metric. of: labelled predictions -> value; ood: predictions on the OOD and the test set -> value.
    None: not defined."""

    of: Of | None
    ood: Detects | None


OWN: dict[str, Own] = plugins.track({})


def add(metric: Metric, of: Of | None = None, *, ood: Detects | None = None) -> Metric:
    """Add a metric: ``of`` is called for every labelled set, ``ood`` for every out-of-distribution one.

    Another formula needs another ``version``: records made with the older one are then measured again, without
    training. Raises ValueError if the name is taken, or without a function.
    """
    if metric.name in METRICS:
        raise ValueError(f"two metrics are named {metric.name!r}; give one of them another name")
    if of is None and ood is None:
        raise ValueError(f"metric {metric.name!r}: expected a function of predictions, of or ood, found none")
    METRICS[metric.name], OWN[metric.name] = metric, Own(of, ood)
    return metric


def own_rows(
    dataset: str, sets: Sequence[Any], predictions: Mapping[str, Predictions], reference: str
) -> Iterator[MetricRow]:
    """Return metric rows of plug-ins. Raises ValueError naming the metric if a value is no number.

    Every call receives copies, so a metric may write into its arrays.
    """
    for s in sets:
        own = predictions[s.name]
        for name, metric in OWN.items():
            try:
                with restored():
                    if s.kind == "ood" and metric.ood:
                        value = metric.ood(copy.deepcopy(own), copy.deepcopy(predictions[reference]))
                    elif s.kind in LABELLED and metric.of:
                        value = metric.of(copy.deepcopy(own))
                    else:
                        value = None
                    value = None if value is None else float(value)
            except (Exception, SystemExit) as error:
                reason = f"{type(error).__name__}: {message(error)[:200]}"
                raise ValueError(
                    f"metric {name!r} on evaluation set {s.name!r}: {reason}; correct the plug-in that adds it"
                ) from error
            if value is None:
                continue
            if not math.isfinite(value):
                raise ValueError(
                    f"metric {name!r} on evaluation set {s.name!r}: expected a finite number, or None where it is not "
                    f"defined, found {value}; correct the plug-in that adds it"
                )
            yield {"dataset": dataset, "condition": s.condition, "metric": name, "value": value, "n": points(own)}


def metric_rows(dataset: str, condition: str, values: dict[str, float], n: int) -> list[MetricRow]:
    """Return a row for each metric of a set."""
    return [
        {"dataset": dataset, "condition": condition, "metric": name, "value": float(value), "n": n}
        for name, value in values.items()
    ]


def points(predictions: Predictions) -> int:
    """Return the number of points of a set's predictions."""
    return drawn(predictions).shape[1]
