"""How far a verdict on a claim can be trusted: rounding, cells unlike the paper's, words that allow exceptions."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy import stats

from benchmarks.records import published
from reports.findings import words
from reports.findings.claims import Claim, load, papers
from reports.findings.comparisons import AGAINST, FOR, OPEN
from tests.reports.test_findings import A, B, claim, judged, runs

__all__ = ["runs"]  # a fixture


def printed(monkeypatch: pytest.MonkeyPatch, half: float, **numbers: tuple[float, float | None]) -> None:
    """Publish means and errors whose last digits have half a unit of this size."""
    made = {}
    for method, (mean, error) in numbers.items():
        where = "pequignot2020", "5", "boston", "experiment=2", method, "rmse"
        cell = published.Published(*where, mean, error, 10, "", ("", ""), half, 0.0 if error is None else half)
        made[cell.key] = cell
    monkeypatch.setattr(published, "table", lambda *_: made)


@pytest.mark.parametrize(
    ("half", "ours", "theirs", "outcome"),
    # Printed to 0.01: means may be 0.01 nearer, and both errors 0.005, so 0.01 + 2 sqrt(2) 0.005 = 0.0241 is the least.
    [(0.005, (0.04, 0.0), (0.05, 0.0), OPEN), (0.005, (0.04, 0.0), (0.06, 0.0), OPEN),
     (0.005, (0.04, 0.0), (0.07, 0.0), FOR), (0.005, (0.07, 0.0), (0.04, 0.0), AGAINST),
     (0.5, (2.0, None), (3.0, None), OPEN), (0.5, (2.0, None), (4.0, None), FOR)],
)  # fmt: skip
def test_a_printed_difference_that_rounding_may_hide_decides_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, half: float, ours: tuple, theirs: tuple, outcome: int
) -> None:
    printed(monkeypatch, half, MFVI=ours, Ensemble=theirs)
    (found,) = judged(tmp_path, claim("MFVI", "Ensemble"))
    assert found.printed == Counter([outcome])


@pytest.mark.parametrize("error", [0.4, 0.2, None])
def test_a_paper_contradicts_itself_by_chance_where_it_compares_much(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: float | None
) -> None:
    """One of two comparisons goes the other way by more than two standard errors; SciPy tells at which level."""
    printed(monkeypatch, 0.0, MFVI=(2.0, 0.3), Ensemble=(0.9, error), **{"MC Dropout": (9.0, error)})
    (found,) = judged(tmp_path, claim("MFVI", "Ensemble;MC Dropout"))
    assert found.printed == Counter([AGAINST, FOR])
    against, (_, short, _) = words.reservations([found]), words.summary([found])
    assert f"1 claims are contradicted by the papers' own numbers in some comparison, {int(error == 0.2)} of" in short
    if error is None:
        assert found.surely_against is None and "; 0 also after Bonf" in against and ", 1 by signs alone" in against
        return
    p = stats.ttest_ind_from_stats(2.0, 0.3 * 10**0.5, 10, 0.9, error * 10**0.5, 10, equal_var=False).pvalue / 2
    assert next(each.comparison.printed_against() for each in found.tested) == pytest.approx(p, rel=1e-9)
    assert found.surely_against == (error == 0.2) == (2 * p <= 0.025)
    assert f"; {int(error == 0.2)} also after Bonferroni's correction for the number of comparisons" in against
    assert ("none the other way after" in words.by_paper(found)) == (error == 0.4)


def test_margins_and_rounding_weigh_printed_numbers_as_the_effect_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not worse by 5 % of the other: 1.05 theirs - ours, of errors up to 0.3 + 0.05 and 1.05 (0.4 + 0.05), where
    rounding may hide 0.05 + 1.05 * 0.05."""
    hidden, errors = 0.05 * 2.05, (0.35, 1.05 * 0.45)
    bound = hidden + 2 * (errors[0] ** 2 + errors[1] ** 2) ** 0.5
    for effect, outcome in ((bound + 0.01, FOR), (bound - 0.01, OPEN), (-bound - 0.01, AGAINST)):
        printed(monkeypatch, 0.05, MFVI=(1.05 * 20 - effect, 0.3), Ensemble=(20.0, 0.4))
        (found,) = judged(tmp_path, claim("MFVI", "Ensemble", kind="not_worse"))
        assert found.printed == Counter([outcome])
        (each,) = found.tested
        assert each.comparison.published() == pytest.approx((effect, (0.3**2 + (1.05 * 0.4) ** 2) ** 0.5))
    deviations = [error * 10**0.5 for error in errors]
    p = (
        stats.ttest_ind_from_stats(-effect - hidden, deviations[0], 10, 0, deviations[1], 10, equal_var=False).pvalue
        / 2
    )
    assert each.comparison.printed_against() == pytest.approx(p, rel=1e-9)


def test_a_printed_error_of_an_unknown_number_of_runs_counts_as_exact(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def against(ours: int | None, theirs: int | None, error: float = 0.4) -> float | None:
        printed(monkeypatch, 0.0, MFVI=(2.0, error), Ensemble=(1.0, error))
        known = {key[2]: cell for key, cell in published.table("", "").items()}
        made = [dataclasses.replace(known[name], n_runs=n) for name, n in (("MFVI", ours), ("Ensemble", theirs))]
        monkeypatch.setattr(published, "table", lambda *_: {cell.key: cell for cell in made})
        (found,) = judged(tmp_path, claim("MFVI", "Ensemble"))
        return found.tested[0].comparison.printed_against()

    t = 1 / (0.4 * 2**0.5)
    assert against(None, None) == pytest.approx(stats.norm.sf(t))
    assert against(5, None) == pytest.approx(stats.t.sf(t, 4 * 2**2)), "half of the variance has 4 degrees of freedom"
    assert against(10, 10, 0.0) == 0.0, "an error printed as none, and not rounded"


def test_a_verdict_says_how_many_of_its_cells_are_unlike_the_papers(
    monkeypatch: pytest.MonkeyPatch, runs: Callable[..., Path]
) -> None:
    """MFVI has 1.2 and Ensemble 2.15: a claim may hold on records that are far from the paper's numbers."""
    results = runs(MFVI=A, Ensemble=B)
    for theirs, apart in ((1.2, 0), (9.0, 1)):
        printed(monkeypatch, 0.0, MFVI=(theirs, 0.01), Ensemble=(2.15, 0.01))
        (found,) = judged(results, claim("MFVI", "Ensemble"))
        told = re.findall(r"; cells that differ from the published numbers: (\d+) of (\d+)", words.by_records(found))
        assert (found.apart[0], told) == (apart, [("1", "2")] if apart else [])
    printed(monkeypatch, 0.0, MFVI=(9.0, 0.01), Ensemble=(9.0, 0.01))
    (found,) = judged(results, claim("MFVI", "Ensemble"))
    assert found.apart == (2, 2)
    assert " 1 of these 1 rests on cells most of which differ from the published numbers." in words.summary([found])[0]


def test_a_claim_that_allows_exceptions_says_so_and_is_no_example_of_a_reversed_one(
    monkeypatch: pytest.MonkeyPatch, runs: Callable[..., Path]
) -> None:
    printed(monkeypatch, 0.0, MFVI=(1.2, 0.01), Ensemble=(2.15, 0.01))
    results = runs(MFVI=A, Ensemble=B)
    plain = dataclasses.replace(claim("Ensemble", "MFVI", name="plain"), words="Plain.")
    hedged = dataclasses.replace(claim("Ensemble", "MFVI", name="hedged"), words="Hedged.", hedge="generally")
    found, other = judged(results, hedged, plain)
    _, against, _ = words.summary([found, other])
    assert "2 claims are contradicted" in against and "(most clearly: Plain)" in against
    assert "of the 2 claims" in (sure := words.reservations([found, other])) and "; 1 says generally or the" in sure
    assert words.caveats(found).startswith('The paper says "generally"') and words.caveats(other) == ""


def test_reversed_claims_that_allow_exceptions_or_repeat_another_are_counted(
    monkeypatch: pytest.MonkeyPatch, runs: Callable[..., Path]
) -> None:
    """Two claims on one comparison are one piece of evidence, and an exception does not reverse what allows it."""
    printed(monkeypatch, 0.0, MFVI=(1.2, 0.01), Ensemble=(2.15, 0.01), **{"MC Dropout": (1.0, 0.01)})
    results = runs(MFVI=A, Ensemble=B, MC_Dropout=[1.1, 1.0, 1.2, 1.1])
    first, again = claim("Ensemble", "MFVI", name="first"), claim("Ensemble", "MFVI", name="again")
    other = claim("Ensemble", "MC Dropout", name="other")
    against = words.reservations(judged(results, first, dataclasses.replace(again, hedge="generally"), other))
    ending = "; 1 says generally or the like, and allows exceptions; 1 rests on the same comparisons as another"
    printed_part, _, ours = against.partition(". Of the ")
    assert printed_part.endswith(ending) and ours.endswith(f"{ending}.") and ours.startswith("3 that our runs reverse")
    against = words.reservations(judged(results, first, other))
    assert "rest" not in against and "generally" not in against


def test_claims_that_are_tested_in_part_are_not_among_the_confirmed(runs: Callable[..., Path]) -> None:
    results = runs(MFVI=A, Ensemble=B)
    whole, part = claim("MFVI", "Ensemble", name="whole"), claim("MFVI", "Ensemble;NN-HyVI", name="part")
    survives, _, _ = words.summary(judged(results, whole, part))
    assert "Of all 2 claims our runs confirm 1, and 1 more as far as they are tested, 0 of them" in survives
    survives, _, _ = words.summary(judged(results, whole))
    assert "Of all 1 claims our runs confirm 1, 0 of them" in survives


def test_claims_that_more_runs_would_not_decide_are_counted(runs: Callable[..., Path]) -> None:
    """Rows with the same mean are told apart by no number of runs: that runs are too few would promise too much."""
    results = runs(MFVI=A, Ensemble=A[::-1], MC_Dropout=[1.3, 1.4, 1.4, 1.3])
    equal, near = claim("MFVI", "Ensemble", name="equal"), claim("MFVI", "MC Dropout", name="near")
    _, _, undecided = words.summary(judged(results, equal, near))
    assert "do not decide 2 claims; in 1 of them some comparison would need more than 1,000 runs" in undecided


def test_words_that_allow_exceptions_are_on_claims_with_tests() -> None:
    hedged = [one for paper in papers() for one in load(paper) if one.hedge]
    assert len(hedged) == 12 and all(one.tests for one in hedged)


def test_a_quotation_from_a_caption_does_not_rest_on_a_figure_alone() -> None:
    """The paper calls fVI diverse for ECE in a caption, beside tables of ECE, and compares it with nothing."""
    (one,) = (one for one in load("dirichlet2022") if one.id == "dirichlet2022-36")
    assert not one.tests and one.untested == "no number named"
    assert Claim("x", "p", "4", "words", "qualitative", "Read off a figure.").untested == "figure only"


def test_claims_compare_every_row_that_their_words_name() -> None:
    """The closest of all is compared with all, the only one with every method of the paper, both priors are tested."""
    compared = {
        one.id: {(row, other) for test in one.tests for row in test.a for other in test.b}
        for paper in papers()
        for one in load(paper)
    }
    assert {("Sparse GP", "GFSVI"), ("Sparse GP", "FVI")} == compared["cinquin2024-16"]
    assert compared["pequignot2020-22"] == compared["pequignot2020-14"] >= {("FuNN-HyVI", "HMC")}
    fewer = ("FVI, 10 points minus FVI, 100 points", "GFSVI, 10 points minus GFSVI, 100 points")
    assert compared["cinquin2024-39"] == {fewer}, "as main text and figure 8 say"
    assert {("GFSVI (RBF)", "FVI (RBF)"), ("GFSVI (Matern 1/2)", "FVI (Matern 1/2)")} <= compared["cinquin2024-32"]


@pytest.mark.parametrize(("name", "word"), [("cinquin2024-37", "tend to"), ("rudner2022-15", "can")])
def test_a_hedge_of_the_sentence_is_kept(name: str, word: str) -> None:
    (one,) = (one for one in load(name.partition("-")[0]) if one.id == name)
    assert one.hedge == word
