"""Registry of metrics; ``metrics.csv`` lists them with direction, unit, range, title, formula and bin rule.

Empty cells: no unit, no least or most value, version 1, a title like the name.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.errors import UnknownName
from fvi_core import plugins
from fvi_core.spelling import nearest

KINDS = ("id", "shift", "ood", "grid", "spectrum")  # kinds of evaluation sets
LABELLED = ("id", "shift")
"""Kinds whose sets have labels or targets of their points."""


@dataclass(frozen=True)
class Metric:
    """One metric. `version` grows when its values change; records made with an older version are stale.

    entry: evaluation option that computes it where it needs trained parameters or more draws, not only predictions.
    range: smallest and largest possible value; a record with a value outside is refused. infinite: its worst value is
    infinite (probability 0 of a label, in external predictions). title: name in tables; empty: the name, with blanks.
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
