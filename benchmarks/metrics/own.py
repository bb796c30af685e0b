"""Metrics of plug-ins, computed on every set where they are defined."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.records.predictions import ClassificationPredictions, Predictions
from benchmarks.shapes import MetricRow
from fvi_core import plugins
from fvi_core.printing import message
from fvi_core.settings import restored

from .registry import LABELLED, METRICS, Metric

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


def rows(
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
                told = f"{type(error).__name__}: {message(error)[:200]}"
                raise ValueError(
                    f"metric {name!r} on evaluation set {s.name!r}: {told}; correct the plug-in that adds it"
                ) from error
            if value is None:
                continue
            if not math.isfinite(value):
                raise ValueError(
                    f"metric {name!r} on evaluation set {s.name!r}: expected a finite number, or None where it is not "
                    f"defined, found {value}; correct the plug-in that adds it"
                )
            yield {"dataset": dataset, "condition": s.condition, "metric": name, "value": value, "n": points(own)}


def points(predictions: Predictions) -> int:
    """Return the number of points of a set's predictions."""
    drawn = predictions.logits if isinstance(predictions, ClassificationPredictions) else predictions.samples
    return drawn.shape[1]
