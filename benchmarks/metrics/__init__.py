"""Metrics: from stored predictions to metric rows and figure curves, by one way (`evaluate`). `add` adds a metric from
outside.
"""

from .classification import summarise
from .evaluate import SetInfo, evaluate
from .own import add
from .registry import METRICS, Metric, UnknownMetric, metric

__all__ = ["METRICS", "Metric", "SetInfo", "UnknownMetric", "add", "evaluate", "metric", "summarise"]
