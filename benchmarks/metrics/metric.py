"""Definition of a metric and its possible values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

_INFINITE = ("nll", "log_likelihood", "expected_log_likelihood", "referral_nll_area", "referral_nll_area_oracle")
_NEVER_POSITIVE = ("log_likelihood", "smoothed_log_likelihood")
_NEVER_NEGATIVE = (
    *("nll", "predictive_entropy", "expected_entropy", "mutual_information", "zero_probability", "temperature"),
    *("rmse", "rmse_standardised", "mse", "mse_standardised", "crps", "crps_standardised", "training_seconds"),
    *("mean_distance", "std_distance", "wasserstein2", "wasserstein2_squared", "brier"),
    *(f"interval_width_{level}" for level in (50, 90, 95)),
    *(f"referral_nll_area{suffix}" for suffix in ("", "_oracle")),
)


@dataclass(frozen=True)
class Metric:
    """One metric. `version` grows when its values change; records made with an older version are stale.

    entry: evaluation option that computes it where it needs trained parameters or more draws, not only predictions.
    range: smallest and largest possible value; a record with a value outside is refused. infinite: its worst value is
    infinite (probability 0 of a label, in external predictions).
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

    @property
    def worst(self) -> float:
        """Infinite value of the worst case; nan where none is infinite."""
        return math.nan if not self.infinite else math.inf if self.direction == "lower" else -math.inf


def ranged(metric: Metric) -> Metric:
    """Return a metric of this project with its range."""
    fraction, name = metric.unit == "fraction", metric.name
    low = 0.0 if fraction or name in _NEVER_NEGATIVE else -math.inf
    high = 1.0 if fraction else 2.0 if name == "brier" else 0.0 if name in _NEVER_POSITIVE else math.inf
    return replace(metric, range=(low, high), infinite=name in _INFINITE)


class UnknownMetric(KeyError):
    """Error for an unknown metric; the message gives the nearest names."""

    def __str__(self) -> str:
        return self.args[0]
