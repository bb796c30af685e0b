"""Metrics: from stored predictions to metric rows and figure curves, by one way (`evaluate`)."""
from .evaluate import SetInfo, evaluate
from .registry import METRICS, Metric, UnknownMetric, metric

__all__ = ["METRICS", "Metric", "SetInfo", "UnknownMetric", "evaluate", "metric"]
