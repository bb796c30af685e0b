"""Levels of the verdicts on claims: which comparisons, claims and cells a correction or a count includes."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from reports.findings import words
from reports.findings.comparisons import AGAINST, FOR, OPEN
from reports.findings.verdicts import Verdict
from tests.reports.fakes import FakeSuite
from tests.reports.test_findings import TABLE, A, B, C, claim, judged, printed, runs

__all__ = ["runs"]  # a fixture
Runs = Callable[..., Path]
NEAR = [1.6, 1.5, 1.4, 1.7]


def test_a_comparison_alone_has_the_level_without_a_correction(runs: Runs) -> None:
    p = stats.ttest_rel(NEAR, A).pvalue
    (found,) = judged(runs(MFVI=A, Ensemble=NEAR), claim("MFVI", "Ensemble"))
    assert 0.025 < p < 0.05 and found.ours == Counter([FOR])
    (found,) = judged(runs(MFVI=A, Ensemble=NEAR), claim("Ensemble", "MFVI"))
    assert found.ours == Counter([AGAINST])


def test_bonferronis_correction_counts_printed_comparisons_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The second table prints no numbers: one comparison of two can contradict the claim."""
    printed(monkeypatch, MFVI=(2.0, 0.3), Ensemble=(1.05, 0.3))
    (found,) = judged(tmp_path, claim("MFVI", "Ensemble", tables=("pequignot2020-5", "free")))
    errors = [0.3 * 10**0.5] * 2
    p = stats.ttest_ind_from_stats(2.0, errors[0], 10, 1.05, errors[1], 10, equal_var=False).pvalue / 2
    assert 0.0125 < p < 0.025 and len(found.tested) == 2 and found.printed == Counter([AGAINST])
    assert found.surely_against and not found.by_sign


def test_claims_without_runs_take_no_part_in_holms_correction(runs: Runs) -> None:
    results = runs(MFVI=A, Ensemble=NEAR)
    found, untested = judged(results, claim("MFVI", "Ensemble"), claim("MFVI", "NN-HyVI", name="two"))
    assert (found.family, found.by_records, untested.by_records) == (1, Verdict.HOLDS, Verdict.UNTESTED)


def test_the_smallest_p_of_a_reversal_counts_tested_comparisons_alone(runs: Runs) -> None:
    (found,) = judged(runs(MFVI=A, Ensemble=NEAR), claim("Ensemble", "MFVI;NN-HyVI"))
    assert found.p == pytest.approx(stats.ttest_rel(A, NEAR).pvalue) and found.by_records == Verdict.REVERSED


def test_runs_that_would_decide_are_counted_at_the_first_level_of_holm(runs: Runs) -> None:
    near = [1.6, 1.2, 1.5, 1.5]
    pairs = ("MC Dropout", "Ensemble", "NN-HyVI")
    results = runs(MFVI=A, MC_Dropout=near, Ensemble=B, NN0HyVI=C)
    found, *_ = judged(results, *(claim("MFVI", other, name=other) for other in pairs))
    gaps = np.subtract(near, A)

    def p(n: int) -> float:
        return 2 * stats.t.sf(abs(gaps.mean()) / (gaps.std(ddof=1) / math.sqrt(n)), n - 1)

    assert found.needed == [next(n for n in range(2, 1000) if p(n) <= 0.05 / 3)]
    assert p(int(found.needed[0]) - 1) < 0.05


def test_a_cell_of_two_comparisons_counts_once_and_one_without_a_verdict_does_not(
    monkeypatch: pytest.MonkeyPatch, runs: Runs
) -> None:
    """MFVI differs, Ensemble is reproduced; without a printed error MC Dropout has no verdict."""
    printed(monkeypatch, MFVI=(9.0, 0.01), Ensemble=(2.15, 0.01), MC_Dropout=(0.8, None))
    (found,) = judged(runs(MFVI=A, Ensemble=B, MC_Dropout=C), claim("MFVI", "Ensemble;MC Dropout"))
    outcomes = [str(cell.outcome) for cell in found.tested[1].comparison.cells]
    assert outcomes == ["differs, better", "no verdict"] and found.apart == (1, 2)


def test_protocols_of_several_tables_are_not_mixed_and_the_faithful_one_comes_first(runs: Runs) -> None:
    """One of two tables has no protocol paper: its comparison is not tested beside the other's runs of paper."""
    reduced = dataclasses.replace(TABLE, name="reduced", protocols=("short",))
    suite = FakeSuite(reduced, TABLE)
    both = claim("MFVI", "Ensemble", tables=("reduced", "pequignot2020-5"))
    results = runs(MFVI=A, Ensemble=B)
    runs("short", MFVI=B, Ensemble=A)
    (found,) = judged(results, both, suite=suite)
    assert (found.protocol, found.by_records) == ("paper", Verdict.SO_FAR)
    assert found.why == "no protocol paper of table reduced (1)"


def test_without_a_test_the_protocol_with_most_values_says_why(runs: Runs) -> None:
    runs("paper", MFVI=A)
    (found,) = judged(runs("short", MFVI=[1.0], Ensemble=[2.0]), claim("MFVI", "Ensemble"))
    assert (found.by_records, found.why) == (Verdict.UNTESTED, "MFVI: one run (1)")


def test_least_support_is_that_of_the_largest_p_and_not_of_the_smallest_effect(runs: Runs) -> None:
    """Ensemble is 0.9 above with little scatter; MC Dropout 1.5 above with much."""
    much = [1.0, 5.0, 1.4, 3.3]
    (found,) = judged(runs(MFVI=A, Ensemble=B, MC_Dropout=much), claim("MFVI", "Ensemble;MC Dropout"))
    assert np.mean(much) - np.mean(A) > np.mean(B) - np.mean(A) and found.ours == Counter([FOR, OPEN])
    assert found.weakest is not None and found.weakest.comparison.words == "MFVI against MC Dropout"
    assert words.details(found).startswith("Least support: MFVI against MC Dropout")
