"""Definition of a metric and its possible values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal


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
