"""Bold: the best row of a column and all that are not significantly worse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reports.significance import bold, holm, worse_p


def runs(values: list[float], first: int = 0) -> dict[tuple[int, int], float]:
    return {(split, split): value for split, value in enumerate(values, first)}


A, B = [3.1, 2.9, 3.4, 3.0], [3.3, 3.2, 3.5, 3.6]


def test_shared_runs_are_paired() -> None:
    expected = stats.ttest_rel(B, A, alternative="greater").pvalue
    assert worse_p(runs(A), runs(B), direction=-1) == pytest.approx(expected, rel=1e-12)
    assert worse_p(runs(B), runs(A), direction=1) == pytest.approx(expected, rel=1e-12)


def test_only_shared_runs_are_paired() -> None:
    expected = stats.ttest_rel(B[1:3], A[1:3], alternative="greater").pvalue
    assert worse_p(runs(A), runs(B[1:3], first=1), direction=-1) == pytest.approx(expected, rel=1e-12)


def test_runs_that_share_nothing_are_compared_by_welch() -> None:
    expected = stats.ttest_ind(B, A[:3], equal_var=False, alternative="greater").pvalue
    assert worse_p(runs(A[:3]), runs(B, first=10), direction=-1) == pytest.approx(expected, rel=1e-12)


def test_constant_gaps_are_certain_and_one_run_is_no_test() -> None:
    assert worse_p(runs([1.0, 2.0]), runs([2.0, 3.0]), direction=-1) == 0
    assert worse_p(runs([1.0, 2.0]), runs([1.0, 2.0]), direction=-1) == 1
    assert np.isnan(worse_p(runs([1.0]), runs([2.0, 3.0]), direction=-1))


def test_holm_by_hand() -> None:
    # 0.01 <= 0.05/4, 0.02 > 0.05/3: the second and all after it stay, although 0.03 and 0.04 are below 0.05.
    assert holm([0.03, 0.01, 0.04, 0.02]) == [False, True, False, False]
    assert holm([0.001, 0.012, 0.024, 0.2]) == [True, True, True, False]
    assert holm([]) == []


def test_the_best_and_its_equals_are_bold() -> None:
    worse = [value + 1 + 0.01 * i for i, value in enumerate(A)]
    column = [runs(A), runs([3.2, 2.8, 3.3, 3.15]), runs(worse), {}]
    assert bold(column, -1) == [True, True, False, False]
    assert bold(column, 1) == [False, False, True, False]


def test_nothing_to_compare_is_not_bold() -> None:
    assert bold([runs(A), {}], -1) == [False, False]
    assert bold([runs(A), runs(B)], 0) == [False, False]


def test_one_run_is_bold_only_if_best() -> None:
    assert bold([runs([1.0]), runs(A)], -1) == [True, False]
    assert bold([runs([9.0]), runs(A)], -1) == [False, True]
