"""Names of metrics in reports, and their better side."""

from __future__ import annotations

from typing import Any

from benchmarks.metrics.registry import METRICS
from benchmarks.records.store import COSTS

RANK = "mean_rank_"
SIDES = {"higher": 1, "lower": -1, "none": 0}
MARKS = {1: " ↑", -1: " ↓", 0: ""}


def direction(metric: str) -> int:
    """Return +1 where higher is better, -1 where lower is, 0 where neither (entropies)."""
    if metric.startswith(RANK):
        return -1
    return SIDES[METRICS[metric].direction] if metric in METRICS else 0


def side(column: Any) -> int:
    """Return the direction of a table's column; 0 also for costs that rank nothing."""
    return direction(column.cell.metric) if column.compared or column.cell.metric not in COSTS else 0


def name(metric: str) -> str:
    """Return a metric's name in words."""
    if metric.startswith(RANK):
        return f"mean rank by {name(metric.removeprefix(RANK))}"
    title = METRICS[metric].title if metric in METRICS else ""
    return title or metric.replace("_", " ")


def title(column: Any) -> str:
    """Return the name of a column's metric with an arrow to its better side."""
    return name(column.cell.metric) + MARKS[side(column)]
