"""Bold: the rows of a column that are not significantly worse than any other."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from reports.significance import ALPHA, Runs, bold, compare, holm, pairwise, quantile, worse


def runs(values: list[float], first: int = 0) -> dict[tuple[int, int], float]:
    return {(split, split): value for split, value in enumerate(values, first)}


def paired(first: Runs, second: Runs, overlap: float = 0.0) -> tuple[float, float]:
    found = compare(first, second, overlap)
    return found.gap, found.p


def verdicts(column: list[Runs], direction: int) -> list[bool | None]:
    return worse(len(column), pairwise(column, direction), direction)


A, B = [3.1, 2.9, 3.4, 3.0], [3.3, 3.2, 3.5, 3.6]


def test_shared_runs_are_paired() -> None:
    expected = stats.ttest_rel(A, B).pvalue
    assert paired(runs(A), runs(B)) == pytest.approx((np.mean(A) - np.mean(B), expected), rel=1e-12)
    assert paired(runs(B), runs(A))[1] == pytest.approx(expected, rel=1e-12)


def test_only_shared_runs_are_compared() -> None:
    expected = stats.ttest_rel(B[1:3], A[1:3]).pvalue
    assert paired(runs(A), runs(B[1:3], first=1))[1] == pytest.approx(expected, rel=1e-12)
    assert all(map(math.isnan, paired(runs(A), runs(B, first=3))))
    assert math.isnan(paired(runs([1.0]), runs([2.0, 3.0]))[1])


def test_overlapping_splits_by_hand() -> None:
    """Nadeau and Bengio's t is the plain one with 1/n + overlap in the place of 1/n."""
    gaps = np.subtract(A, B)
    t = gaps.mean() / math.sqrt(gaps.var(ddof=1) * (1 / 4 + 1 / 9))
    assert paired(runs(A), runs(B), overlap=1 / 9)[1] == pytest.approx(2 * stats.t.sf(abs(t), 3), rel=1e-12)
    seeds = [{(0, seed): value for seed, value in enumerate(values)} for values in (A, B)]
    assert paired(*seeds, overlap=1 / 9) == paired(runs(A), runs(B)), "seeds on one split do not overlap"
    assert compare(runs([1.0, 2.0]), runs([0.0, 0.0]), 0.25).error == pytest.approx(math.sqrt(0.5 * (1 / 2 + 0.25)))


def test_gaps_without_scatter_have_the_p_value_of_a_sign_test() -> None:
    assert paired(runs([0.99, 0.99]), runs([0.98, 0.98]))[1] == 0.5, "two accuracies may be equal by chance"
    assert paired(runs([1.0, 2.0]), runs([1.0, 2.0])) == (0.0, 1.0)
    varied = [0.9, 0.91, 0.93, 0.96]
    for n in (2, 3, 4):
        other = runs([each + 0.01 for each in varied[:n]])
        assert paired(runs(varied[:n]), other)[1] == stats.binomtest(n, n).pvalue, "a sign test, whatever the rounding"
    assert compare(runs([1.0, 2.0]), runs([2.0, 3.0])).needed(0.05) == 6


def test_differences_of_rounding_count_as_none() -> None:
    assert paired(runs([0.3, 0.3, 0.3]), runs([0.1 + 0.2] * 3)) == (0.0, 1.0)


def test_holm_by_hand() -> None:
    # 0.01 <= 0.05/4, 0.02 > 0.05/3: the second and all after it stay, although 0.03 and 0.04 are below 0.05.
    assert holm([0.03, 0.01, 0.04, 0.02]) == [False, True, False, False]
    assert holm([0.001, 0.012, 0.024, 0.2]) == [True, True, True, False]
    assert holm([]) == []


def test_the_best_and_its_equals_are_bold() -> None:
    others = [value + 1 + 0.01 * i for i, value in enumerate(A)]
    column = [runs(A), runs([3.2, 2.8, 3.3, 3.15]), runs(others), {}]
    assert verdicts(column, -1) == [False, False, True, None]
    assert bold(verdicts(column, -1)) == [True, True, False, False]
    assert bold(verdicts(column, 1)) == [False, False, True, False]


def test_rows_that_are_not_told_apart_are_tested_and_not_bold() -> None:
    column = [runs(A), runs([3.2, 2.8, 3.3, 3.15]), {}]
    assert verdicts(column, -1) == [False, None, None], "the one behind could be any"
    assert bold(verdicts(column, -1)) == [False, False, False]


def test_a_row_whose_test_could_have_missed_half_of_the_range_is_not_marked() -> None:
    """Four runs that are alike can tell a row from the worst; two runs that scatter cannot."""
    best, worst = runs([1.0, 1.01, 0.99, 1.0]), runs([2.0, 2.01, 1.98, 2.02])
    near, few = runs([1.005, 1.0, 1.01, 0.99]), runs([1.9, 1.96])
    assert verdicts([best, near, worst], -1) == [False, False, True]
    assert verdicts([best, near, few, worst], -1) == [False, False, None, True]
    assert bold(verdicts([best, near, few, worst], -1)) == [True, True, False, False]
    assert verdicts([few, worst], 1) == [None, False], "the best by its mean stays"


@pytest.mark.parametrize(("worst", "wanted"), [(1.4, False), (1.3, None)])
def test_half_of_the_range_is_held_against_the_level_of_the_pairs_that_are_not_told_apart(
    worst: float, wanted: bool | None
) -> None:
    """Only the first two rows are not told apart: their test has level 0.05, and misses up to 3.182 * 0.1 / 2 = 0.159,
    less than half of a range of 0.4, more than half of one of 0.3."""
    near = [1.01 + 0.1 * math.sqrt(3 / 4) * sign for sign in (1, -1, 1, -1)]
    assert verdicts([runs([1.0] * 4), runs(near), runs([worst, worst + 1e-3] * 2)], -1) == [False, wanted, True]


def test_the_largest_missed_difference_by_hand() -> None:
    found = compare(runs([1.0, 2.0, 4.0]), runs([0.0, 0.0, 0.0]))
    assert math.isclose(found.missed(0.05), stats.t.ppf(0.975, 2) * stats.sem([1, 2, 4]))
    assert replace(found, gap=found.missed(0.01) * 1.001).p < 0.01 < replace(found, gap=found.missed(0.01) * 0.999).p
    same = compare(runs([1.0] * 6), runs([1.0] * 6))
    assert same.missed(0.04) == 0 and same.missed(0.03) == math.inf, "a sign test of six runs: p = 1/32"


def test_the_quantile_is_students_and_the_normal_one_for_infinite_freedom() -> None:
    found = quantile(np.array([3.0, math.inf]), 0.01)
    np.testing.assert_allclose(found, [stats.t.ppf(0.995, 3), stats.norm.ppf(0.995)])


def test_means_over_other_splits_do_not_count() -> None:
    """The second row is better wherever both were run; only its harder splits make its mean the worse."""
    first, second = runs([3.0, 3.1, 3.2]), runs([2.0, 2.1, 2.21, 9.0, 9.0, 9.0])
    assert bold(verdicts([first, second], -1)) == [False, True]


def test_nothing_to_compare_is_not_tested() -> None:
    assert verdicts([runs(A), {}], -1) == [None, None]
    assert verdicts([runs(A), runs(B)], 0) == [None, None]
    assert verdicts([runs(A), runs(B, first=9)], -1) == [None, None]
    assert bold([None, None]) == [False, False]


def test_a_row_with_an_infinite_value_is_not_tested_and_not_marked() -> None:
    column = [runs([*A[:3], math.inf]), runs(A), runs([value + 1 + 0.01 * i for i, value in enumerate(A)])]
    assert verdicts(column, -1) == [None, False, True] and bold(verdicts(column, -1)) == [False, True, False]


def test_single_runs_are_not_tested_and_not_marked() -> None:
    assert verdicts([runs([1.0]), runs([2.0])], -1) == [None, None]
    assert verdicts([runs([1.0]), runs(A), runs(B)], -1) == [None, False, False]
    assert verdicts([runs([1.0]), runs([2.0], first=1)], -1) == [None, None]
    assert bold([None, False, True]) == [False, True, False]


@pytest.mark.parametrize("rows", [2, 6, 13])
def test_the_level_holds_for_equal_rows(rows: int) -> None:
    """At most .05 of columns of equal rows call any of them worse, whichever of them is the best by chance."""
    rng, columns = np.random.default_rng(rows), 300
    out = 0
    for _ in range(columns):
        splits = rng.normal(size=5)
        out += any(verdicts([runs(list(splits + rng.normal(size=5))) for _ in range(rows)], 1))
    assert out <= stats.binom.ppf(0.999, columns, ALPHA)


def test_the_level_holds_for_accuracies_that_often_differ_by_the_same_steps() -> None:
    rng, columns = np.random.default_rng(0), 300
    out = sum(
        any(verdicts([runs(list(np.round(rng.normal(0.9, 0.003, 2), 3))) for _ in range(6)], 1)) for _ in range(columns)
    )
    assert out <= stats.binom.ppf(0.999, columns, ALPHA)
