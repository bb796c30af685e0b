"""Bold rows of a column: not significantly worse than any other row, if some row is.

Testing all rows against whichever is best by chance rejects equal rows too often (at level 0.05 in 10 to 25 per cent of
columns of equal rows). Here every pair is tested, and Holm's correction (1979) holds the level over all of them: the
chance that any row of a column of equals is not bold is at most 0.05. Runs are compared on the splits and seeds that
both rows have, and where runs are of overlapping splits of the same points, the variance of their mean is corrected for
the overlap (Nadeau and Bengio 2003, eq. 9: 1/n becomes 1/n + test points / training points).

A difference that is the same in every run has no scatter for a t-test. Accuracies have steps of 1 / test points, so two
seeds often differ by the same amount: a sign test decides, whose p-value is 2^(1 - n).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import scipy  # scipy.special, slow to load, is loaded at its first use

ALPHA = 0.05
MOST = 1000  # most runs worth recommending
ROUNDING = 1e-12
"""Differences of two runs that are smaller than this part of their values are of rounding, and count as none."""
RULE = (
    "Bold: the rows that are not significantly worse than any other, in columns where some row is: t-tests of all "
    "pairs, paired over shared seeds and splits, corrected for overlapping splits (Nadeau and Bengio) and for their "
    f"number (Holm), level {ALPHA}. A row that shares fewer than two runs with every other is not tested and not "
    "marked. Nor is one behind another where their test could have missed half of the range of the column's means."
)

Runs = Mapping[tuple[int, int], float]


@dataclass(frozen=True)
class Paired:
    """Difference of two rows over the runs that both have.

    gap: mean difference; spread: standard deviation of the differences (ddof = 1); n: shared runs; overlap: test points
    for each training point, where the runs are of different splits of the same points. gap and spread are nan for fewer
    than two runs. Where the difference is the same in every run, a sign test decides.
    """

    gap: float
    spread: float
    n: int
    overlap: float = 0.0

    @property
    def error(self) -> float:
        """Standard error of the mean difference, corrected for overlapping splits."""
        return self._error(self.n)

    @cached_property
    def p(self) -> float:
        """Two-sided p-value of no difference."""
        return self._p(self.n) if self.n > 1 else math.nan

    def needed(self, level: float = ALPHA) -> int | None:
        """Return how many runs, at this scatter, would make a difference of this size significant; None for more than
        MOST."""
        counts = range(2, MOST + 1) if self.gap else range(0)
        place = bisect_left(counts, True, key=lambda n: self._p(n) <= level)
        return counts[place] if place < len(counts) else None

    def missed(self, level: float) -> float:
        """Return the largest difference at this scatter that the test at a level does not find."""
        if self.spread:
            return float(quantile(self.n - 1, level)) * self.error
        return 0.0 if replace(self, gap=1.0).p <= level else math.inf

    def _p(self, n: int) -> float:
        if self.spread:
            return float(2 * scipy.special.stdtr(n - 1, -abs(self.gap) / self._error(n)))
        return 2.0 ** (1 - n) if self.gap else 1.0

    def _error(self, n: int) -> float:
        return self.spread * math.sqrt(1 / n + self.overlap) if n else math.nan


def quantile(freedom: Any, level: float = ALPHA) -> Any:
    """Return the two-sided quantile of Student's t distribution at a level; the normal one for infinite freedom."""
    normal = scipy.special.ndtri(1 - level / 2)
    return np.where(np.isfinite(freedom), scipy.special.stdtrit(freedom, 1 - level / 2), normal)


def compare(first: Runs, second: Runs, overlap: float = 0.0, size: float | None = None) -> Paired:
    """Return the difference first - second over the runs that both have, by (split, seed).

    overlap: test points for each training point, where runs are of overlapping splits. size: largest size of the
    numbers that were added up, against which a difference counts as rounding; None: the largest in first.
    """
    shared = sorted(first.keys() & second.keys())
    if len(shared) < 2:
        return Paired(math.nan, math.nan, len(shared))
    gaps = np.array([first[run] - second[run] for run in shared])
    gap = np.add.reduce(gaps) / len(gaps)  # as NumPy's mean and std, which take several times as long for few numbers
    apart = gaps - gap
    varied = len({split for split, _ in shared}) > 1
    spread = math.sqrt(np.add.reduce(apart * apart) / (len(gaps) - 1))
    rounding = ROUNDING * (max(map(abs, first.values())) if size is None else size)
    gap, spread = (float(each) if abs(each) > rounding else 0.0 for each in (gap, spread))
    return Paired(gap, spread, len(gaps), overlap if varied else 0.0)


def holm(p_values: Sequence[float]) -> list[bool]:
    """Return the hypotheses that Holm's step-down procedure rejects at family-wise level ALPHA (Holm 1979)."""
    rejected = [False] * len(p_values)
    order = np.argsort(p_values, kind="stable")
    for step, index in enumerate(order):
        if not p_values[index] <= ALPHA / (len(order) - step):
            break
        rejected[index] = True
    return rejected


@dataclass(frozen=True)
class Pair:
    """Test of one pair of rows of a column; apart: whether it rejects that they are equal, after Holm's correction;
    vague: whether it does not, and could have missed half of the range of the column's means."""

    paired: Paired
    apart: bool
    vague: bool


def pairwise(column: Sequence[Runs], direction: int, overlap: float = 0.0) -> dict[tuple[int, int], Pair]:
    """Return the test of every pair of rows of a column that share two runs, corrected for their number; none for rows
    with an infinite value (which has no variance), and none in a column without a direction.

    direction is +1 where higher is better, -1 where lower is.
    """
    present = [index for index, runs in enumerate(column) if runs and all(map(math.isfinite, runs.values()))]
    pairs = {
        (i, j): found
        for i, j in combinations(present if direction else (), 2)
        if not math.isnan((found := compare(column[i], column[j], overlap)).p)
    }
    rejected = holm([found.p for found in pairs.values()])
    means = [math.fsum(column[index].values()) / len(column[index]) for index in present]
    half, level = (max(means) - min(means)) / 2 if means else 0.0, ALPHA / max(rejected.count(False), 1)
    return {
        pair: Pair(found, apart, not apart and found.missed(level) > half)
        for (pair, found), apart in zip(pairs.items(), rejected, strict=True)
    }


def worse(rows: int, found: Mapping[tuple[int, int], Pair], direction: int) -> list[bool | None]:
    """Return for every row of a column whether it is significantly worse than another; None for one in no test, or
    behind another by a vague one."""
    behind = {pair: pair[direction * test.paired.gap > 0] for pair, test in found.items() if test.paired.gap}
    beaten = {index for pair, index in behind.items() if found[pair].apart}
    vague = {index for pair, index in behind.items() if found[pair].vague}
    tested = {index for pair in found for index in pair} - vague | beaten
    return [index in beaten if index in tested else None for index in range(rows)]


def bold(rows: Sequence[bool | None]) -> list[bool]:
    """Return which rows are printed in bold, given which are worse (see worse): none if no two rows differ, since a
    mark on every row would look like a rank."""
    return [any(rows) and row is False for row in rows]
