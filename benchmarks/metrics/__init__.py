"""Metrics: `evaluate` turns predictions into metric rows and figure curves; `add` registers a metric of a plug-in."""

from fvi_core.metrics.classification import summarise

from .evaluate import SetInfo, evaluate
from .registry import METRICS, Metric, add, metric

__all__ = ["METRICS", "Metric", "SetInfo", "add", "evaluate", "metric", "summarise"]
