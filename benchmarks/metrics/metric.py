"""The description of one metric, and the error for a name that no metric has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """One metric. `version` grows when its values change; records made with an older version are stale.

    entry: of an evaluation that asks for it, where it is of trained parameters or of more draws of the posterior or of
    others, and not computed from predictions.
    """

    name: str
    direction: Literal["higher", "lower", "none"]
    unit: str
    formula: str
    bins: str = ""
    version: int = 1
    entry: str = ""


class UnknownMetric(KeyError):
    """No metric has this name; the message gives the nearest names."""

    def __str__(self) -> str:
        return self.args[0]
