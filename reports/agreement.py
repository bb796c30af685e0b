"""Comparison of our mean with a published one: distance, errors, verdict.

* Both errors are standard errors of means over few runs, so their sum follows a t distribution with the degrees of
  freedom of Welch (1947) and Satterthwaite (1946), not a normal one. Published errors of an unknown number of runs
  count as exact.
* A published number is rounded: half a unit of its last digit is subtracted from the distance and added to the
  published error. So an error printed as 0.00 counts as 0.005, not as none.
* Where a paper prints no error, the scatter of its runs is assumed to be between a quarter of ours and four times
  ours, over as many runs as it made (unknown: as many as ours); nine in ten errors that these papers print are in that
  range (docs/verdicts.md). A cell has a verdict where both ends of the range give the same one. The printed difference
  is in errors that assume our scatter for theirs.
* A number is *reproduced* where a two-sided t-test at level 0.05 finds no difference from the published one. It is
  *uninformative* where test and rounding allow, on either side, more than half of the range of published numbers in
  that column (fewer than three rows: more than half of the published value): it would then have agreed with a number
  from the middle of the range, whatever its row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # scipy.special, slow to load, is loaded at its first use

from benchmarks.records.published import Published
from reports.significance import MOST, quantile

LEVEL = 0.05
RULE = (
    "Difference: (ours − published) in combined standard errors, rounding of the published number taken off; "
    f"reproduced where a t-test at level {LEVEL} tells no difference (Welch's degrees of freedom), uninformative "
    "where it could not tell half of the range of the column's published numbers; ~: no published error, taken as "
    "ours, with a verdict where a scatter of a quarter of ours and of four times ours give the same."
)
SCATTERS = (0.25, 4.0)  # scatter of single published runs, in units of ours, where no error is published
SHARES = 10_000  # points of a numerical integral
FEWEST, SHARE = 3, 0.5  # fewest rows for a range, and the share of a published value that replaces it


class Verdict(StrEnum):
    """Result of testing our number against the published one."""

    REPRODUCED = "reproduced"
    BETTER = "differs, better"
    WORSE = "differs, worse"
    DIFFERS = "differs"
    UNINFORMATIVE = "uninformative"
    UNDECIDED = "no verdict"

    @property
    def differs(self) -> bool:
        """Whether the test finds a difference."""
        return self in (Verdict.BETTER, Verdict.WORSE, Verdict.DIFFERS)

    @property
    def word(self) -> str:
        """Verdict in one word; for differences with a side only the side. It marks a printed cell."""
        return {Verdict.BETTER: "better", Verdict.WORSE: "worse"}.get(self, self.value)


@dataclass(frozen=True)
class Comparison:
    """Our runs of a cell beside the published number; ``range_of_column``: largest minus smallest published mean there.

    ``deviation``: the published errors are standard deviations of single runs. ``scatter``: standard deviation of their
    runs in units of ours, where no error is published.
    """

    values: tuple[float, ...]
    published: Published
    range_of_column: float | None = None
    deviation: bool = False
    scatter: float = 1.0

    @property
    def assumed(self) -> bool:
        """Whether the published error is unknown and therefore assumed from ours."""
        return self.published.stderr is None

    @cached_property
    def gap(self) -> float:
        """Our mean minus the published one, reduced by half a unit of its last digit."""
        gap = float(np.mean(self.values)) - self.published.mean
        return math.copysign(max(0.0, abs(gap) - self.published.half_unit), gap)

    @cached_property
    def _errors(self) -> tuple[float, float]:
        own = float(np.std(self.values, ddof=1)) / math.sqrt(len(self.values))
        if self.published.stderr is None:
            runs = self.published.n_runs or len(self.values)
            return own, own * self.scatter * math.sqrt(len(self.values) / runs)
        error = self.published.stderr + self.published.half_unit_of_error
        return own, error / math.sqrt(self.published.n_runs) if self.deviation and self.published.n_runs else error

    @cached_property
    def error(self) -> float:
        """Standard error of the difference."""
        return math.hypot(*self._errors)

    @cached_property
    def freedom(self) -> float:
        """Degrees of freedom by Welch and Satterthwaite; infinite without any error."""
        own, other = self._errors
        return float(self._freedom(own, other, len(self.values))) if own or other else math.inf

    def _freedom(self, own: Any, other: Any, count: Any) -> Any:
        """Degrees of freedom from our error, the published one, and a number of our runs."""
        if self.assumed:
            return count - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (own / np.hypot(own, other)) ** 2  # powers of the errors themselves may overflow
            return _satterthwaite(share, count, self.published.n_runs)

    @cached_property
    def t(self) -> float:
        """Difference in its standard errors."""
        if self.error > 0:
            return self.gap / self.error
        return 0.0 if self.gap == 0 else math.copysign(math.inf, self.gap)

    @cached_property
    def p(self) -> float:
        """Two-sided p-value of no difference."""
        if math.isinf(self.freedom):
            return math.erfc(abs(self.t) / math.sqrt(2))
        return float(2 * scipy.special.stdtr(self.freedom, -abs(self.t)))

    @cached_property
    def width(self) -> float:
        """Largest distance from ours at which a published number would still agree."""
        return float(quantile(self.freedom) * self.error) + self.published.half_unit

    @property
    def agrees(self) -> bool:
        """Whether the test finds no difference."""
        return self.p >= LEVEL

    @property
    def limit(self) -> float:
        """Largest width that is informative."""
        return SHARE * abs(self.published.mean) if self.range_of_column is None else self.range_of_column / 2

    @property
    def informative(self) -> bool:
        """Whether the test could have found a difference."""
        return self.width <= self.limit

    @cached_property
    def outcome(self) -> Verdict:
        """Verdict without the side of a difference; UNDECIDED where it depends on an unknown scatter."""
        if self.assumed:
            outcomes = {replace(self, scatter=scatter)._outcome for scatter in SCATTERS}
            return outcomes.pop() if len(outcomes) == 1 else Verdict.UNDECIDED
        return self._outcome

    @property
    def _outcome(self) -> Verdict:
        if not self.agrees:
            return Verdict.DIFFERS
        return Verdict.REPRODUCED if self.informative else Verdict.UNINFORMATIVE

    @property
    def widest(self) -> Comparison:
        """Comparison with the largest assumed scatter of the published runs."""
        return replace(self, scatter=SCATTERS[-1]) if self.assumed else self

    @cached_property
    def needed(self) -> int | None:
        """Number of our runs, at the present scatter, that would suffice; None where MOST are not enough."""
        own, other = self._errors
        counts = np.arange(2, MOST + 1)
        errors = own * np.sqrt(len(self.values) / counts)
        unknown = self.assumed and not self.published.n_runs
        others = errors * self.scatter if unknown else np.full_like(errors, other)
        quantiles = quantile(self._freedom(errors, others, counts))
        enough = quantiles * np.hypot(errors, others) + self.published.half_unit <= self.limit
        return int(counts[enough.argmax()]) if enough.any() else None


def chance(differing: int, tested: int) -> str:
    """Return in words how many of the tested cells differ, and how many would if all were equal to their numbers."""
    return f"{differing} of {tested} tested cells differ, about {LEVEL * tested:.0f} would by chance"


def level(scatter: float, taken: float, runs: int) -> float:
    """Return the chance that equal means differ in the test, for runs that scatter ``scatter`` times as much as ours
    and are assumed to scatter ``taken`` times as much, with so many runs on either side: P(|T| > q sqrt((1 + taken²) /
    (1 + scatter²))) for Student's T with runs - 1 degrees of freedom and its quantile q."""
    bound = quantile(runs - 1) * math.sqrt((1 + taken**2) / (1 + scatter**2))
    return float(2 * scipy.special.stdtr(runs - 1, -bound))


def level_of_few(scatter: float, ours: int, theirs: int, nominal: float = LEVEL) -> float:
    """Return the chance that equal means differ in Welch's test at a nominal level, for so many runs of ours beside
    theirs, which have a printed error and scatter ``scatter`` times as much.

    Given the share of our runs in both sums of squares, which has a Beta distribution, the difference in its true error
    over the root of their total is Student's T with ours + theirs - 2 degrees of freedom. The mean over the share is
    taken at SHARES equally likely ones.
    """
    a, b = ours - 1, theirs - 1
    share = scipy.special.betaincinv(a / 2, b / 2, (np.arange(SHARES) + 0.5) / SHARES)
    variances = np.array([1 / ours, scatter**2 / theirs])
    own, other = np.stack((share / a, (1 - share) / b)) * (variances / variances.sum())[:, None]
    freedom = _satterthwaite(own / (own + other), ours, theirs)
    bound = quantile(freedom, nominal) * np.sqrt((a + b) * (own + other))
    return float(np.mean(2 * scipy.special.stdtr(a + b, -bound)))


def _satterthwaite(share: Any, ours: Any, theirs: int | None) -> Any:
    """Degrees of freedom of a difference of means, by our share of its variance and both numbers of runs; a published
    error of one run or an unknown number counts as exact."""
    of_theirs = (1 - share) ** 2 / (theirs - 1) if theirs and theirs > 1 else 0.0
    return np.float64(1) / (share**2 / (ours - 1) + of_theirs)


def range_of(means: Sequence[float]) -> float | None:
    """Largest minus smallest published mean of a column; None for fewer than three rows, which make no range."""
    return max(means) - min(means) if len(means) >= FEWEST else None


def rank_agreement(ours: Sequence[float], published: Sequence[float]) -> float | None:
    """Spearman's correlation of two columns, equal values sharing their rank; None for fewer than three rows, or a
    constant column."""
    if len(ours) < FEWEST:
        return None
    ranks = []
    for values in (np.asarray(ours, dtype=float), np.asarray(published, dtype=float)):
        below, equal = values[:, None] > values, values[:, None] == values
        ranks.append(below.sum(1) + equal.sum(1) / 2)
    if min(np.ptp(each) for each in ranks) == 0:
        return None
    return float(np.corrcoef(*ranks)[0, 1])


def sign_agreement(ours: Sequence[float], published: Sequence[float]) -> tuple[int, int] | None:
    """Return how many differences have the published sign, and how many could; None where none could."""
    both = [(np.sign(own), np.sign(theirs)) for own, theirs in zip(ours, published, strict=True) if theirs]
    return (sum(bool(own == theirs) for own, theirs in both), len(both)) if both else None
