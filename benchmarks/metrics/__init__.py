"""Metrics: from stored predictions to metric rows and figure curves, by one way (`evaluate`). `add` adds a metric from
outside.
"""

from fvi_core.metrics.classification import summarise

from .evaluate import SetInfo, evaluate
from .metric import Metric
from .own import add
from .registry import METRICS, UnknownMetric, metric

__all__ = ["METRICS", "Metric", "SetInfo", "UnknownMetric", "add", "evaluate", "metric", "summarise"]
