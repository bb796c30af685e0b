"""Which rows of a column are printed in bold: the best, and all that are not significantly worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import stdtr

ALPHA = 0.05
RULE = (
    "Bold: the best mean of the column, and every row not significantly worse: one-sided t-tests against the best row, "
    f"paired over shared seeds and splits (Welch's where fewer than two are shared), Holm-corrected, level {ALPHA}. "
    "A row of one run is not tested: it is marked only if it is the best."
)

Runs = Mapping[tuple[int, int], float]


def worse_p(best: Runs, other: Runs, direction: int) -> float:
    """p-value of "other is worse than best", one-sided; nan where there are too few runs to test.

    Values by (split, seed). direction is +1 where higher is better, -1 where lower is. Paired t-test over the shared
    runs where there are at least two, otherwise Welch's t-test.
    """
    shared = sorted(best.keys() & other.keys())
    if len(shared) >= 2:
        gaps = direction * np.array([best[run] - other[run] for run in shared])
        error, freedom = gaps.std(ddof=1) / np.sqrt(len(gaps)), len(gaps) - 1
    elif min(len(best), len(other)) >= 2:
        a, b = (np.array(list(runs.values())) for runs in (best, other))
        gaps = direction * (a.mean() - b.mean())
        parts = np.array([a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)])
        error = np.sqrt(parts.sum())
        freedom = parts.sum() ** 2 / (parts**2 / (len(a) - 1, len(b) - 1)).sum() if error > 0 else 1
    else:
        return float("nan")
    gap = float(np.mean(gaps))
    if error == 0:
        return 0.0 if gap > 0 else 1.0
    return float(stdtr(freedom, -gap / error))


def holm(p_values: Sequence[float], alpha: float = ALPHA) -> list[bool]:
    """Which hypotheses Holm's step-down procedure rejects at family-wise level alpha (Holm 1979)."""
    rejected = [False] * len(p_values)
    order = np.argsort(p_values, kind="stable")
    for step, index in enumerate(order):
        if not p_values[index] <= alpha / (len(order) - step):
            break
        rejected[index] = True
    return rejected


def bold(column: Sequence[Runs], direction: int) -> list[bool]:
    """For every row of a column whether it is printed in bold; see RULE. Columns without a direction have no bold.

    Rows without a run take no part; with fewer than two rows there is nothing to compare and nothing is bold.
    """
    marks = [False] * len(column)
    present = [index for index, runs in enumerate(column) if runs]
    if direction == 0 or len(present) < 2:
        return marks
    means = {index: direction * float(np.mean(list(column[index].values()))) for index in present}
    best = max(present, key=means.__getitem__)
    p_values = {index: worse_p(column[best], column[index], direction) for index in present if index != best}
    tested = {index: p for index, p in p_values.items() if not np.isnan(p)}
    for index, is_worse in zip(tested, holm(list(tested.values()))):
        marks[index] = not is_worse
    marks[best] = True
    return marks
