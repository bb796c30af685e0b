"""Verdicts on claims: by hand, by SciPy, and by Holm's procedure written out."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.errors import BenchmarkError, UnknownName
from benchmarks.records import published
from benchmarks.suite import Suite
from benchmarks.sweep.plan import MEANINGLESS
from reports import interface
from reports.aggregate import aggregate
from reports.cli import DOCS, README, build
from reports.findings import claims, page, words
from reports.findings.claims import FORMS, KINDS, Claim, Rule, expanded, load, margins, papers, read
from reports.findings.comparisons import AGAINST, FOR, OPEN, check
from reports.findings.verdicts import Finding, Verdict, judge
from reports.page.book import Book
from reports.page.site import write as write_site
from reports.records import Records
from reports.significance import compare
from tests.reports.fakes import Cell, Column, FakeSuite, Row, fake_table

A, B, C = [1.0, 1.4, 1.1, 1.3], [2.1, 2.2, 2.0, 2.3], [1.2, 1.1, 1.4, 1.0]
RMSE = Column(Cell("boston", "", "rmse"), "boston", Cell("boston", "experiment=2", "rmse"))
ROWS = ("MC Dropout", "Ensemble", "MFVI", "FuNN-MFVI", "NN-HyVI")
TABLE = fake_table(
    "pequignot2020-5", tuple(Row(name, name, name) for name in ROWS), (RMSE,), n_runs=4, one_split=True,
    paper="pequignot2020", number="5",
)  # fmt: skip
SUITE = FakeSuite(TABLE, dataclasses.replace(TABLE, name="free", paper=None, number=None))


def claim(a: str, b: str = "", form: str = "each", kind: str = "better", name: str = "one", **changes: object) -> Claim:
    """A claim on the fake table, in the words of the files."""
    rows = tuple(a.split(";")), tuple(filter(None, b.split(";")))
    test = Rule(("pequignot2020-5",), *rows, ("boston:experiment=2:rmse",), form)
    return Claim(name, "pequignot2020", "somewhere", "words", kind, tests=(dataclasses.replace(test, **changes),))  # type: ignore[arg-type]


def judged(results: Path, *made: Claim, suite: FakeSuite = SUITE) -> list[Finding]:
    records = Records(results)
    return judge(made, suite, lambda name, protocol: aggregate(suite.table(name), protocol, records))  # type: ignore[arg-type]


Writer = Callable[..., Path]


@pytest.fixture
def runs(write: Writer) -> Callable[..., Path]:
    """runs(MFVI=[...], ...) -> the results folder; an underscore is a space, a dot a hyphen."""

    def writer(protocol: str = "paper", **values: list[float]) -> Path:
        for name, each in values.items():
            label = name.replace("_", " ").replace("0", "-")
            made = write(label, "boston", {("", "rmse"): list(each)}, protocol, one_split=True)
        return made

    return writer


# The files


@pytest.mark.parametrize("paper", papers())
def test_every_row_column_and_table_that_a_claim_names_exists(paper: str) -> None:
    suite = Suite()
    for one in load(paper):
        assert one.place and one.kind in KINDS and one.paper == paper and one.id.startswith(f"{paper}-")
        assert one.tests or one.note, f"{one.id} says neither what is compared nor why nothing is"
        for test in one.tests:
            check(test, [suite.table(name) for name in test.tables], one.not_worse)
            assert test.form in FORMS and (test.b or test.form in ("each", "rows", "columns"))
    assert len({one.id for one in load(paper)}) == len(load(paper))


def test_all_papers_have_claims_and_ten_are_the_main_ones() -> None:
    every = [one for paper in papers() for one in load(paper)]
    assert set(papers()) == set(published.papers()) and len(every) > 120
    assert sum(one.main for one in every) == 10


def test_places_are_locators_and_no_quotations() -> None:
    for one in (one for paper in papers() for one in load(paper)):
        assert all(len(quoted.split()) <= 7 for quoted in re.findall(r'"([^"]*)"', one.place)), one.id
        assert one.words.endswith("."), one.id


@pytest.mark.parametrize("changes", [{"a": ("nobody",)}, {"b": ("nobody",)}, {"columns": ("boston::nothing",)}])
def test_a_name_that_is_not_there_is_refused(changes: dict) -> None:
    test = dataclasses.replace(claim("MFVI", "Ensemble").tests[0], **changes)
    with pytest.raises(UnknownName, match="nobody|nothing"):
        check(test, [TABLE], False)


HEADER = ",".join(claims.COLUMNS)


@pytest.mark.parametrize(
    "lines",
    ["id,claim,table,a", f"{HEADER}\n,p,words,better,t,a,b,c,each,,,,,,,\n",
     f"{HEADER}\na,p,words,nonsense,t,a,b,c,each,,,,,,,\n", f"{HEADER}\na,p,words,better,t,a,b,c,each,,,x,,,,\n",
     f"{HEADER}\na,p,words,better,t,a,b,c,nonsense,,,,,,,\n", f"{HEADER}\nb,,,,t,a,b,c,each,,,,,,,\n"],
)  # fmt: skip
def test_a_file_that_is_none_is_named(tmp_path: Path, lines: str) -> None:
    (tmp_path / "mine.csv").write_text(lines)
    with pytest.raises(BenchmarkError, match=r"mine\.csv"):
        read(tmp_path / "mine.csv")


def test_choices_in_braces_are_written_out() -> None:
    assert expanded(("{a,b}:x={1,2}:m", "c")) == ["a:x=1:m", "a:x=2:m", "b:x=1:m", "b:x=2:m", "c"]


# By the paper's own numbers


def printed(monkeypatch: pytest.MonkeyPatch, **numbers: tuple[float, float | None]) -> None:
    made = {}
    for name, (mean, error) in numbers.items():
        method = name.replace("_", " ").replace("0", "-")
        cell = published.Published(
            "pequignot2020", "5", "boston", "experiment=2", method, "rmse", mean, error, 10, "", ("", "")
        )
        made[cell.key] = cell
    monkeypatch.setattr(published, "table", lambda *_: made)


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome"),
    # 2 sqrt(0.3² + 0.4²) = 1
    [((2.0, 0.3), (3.01, 0.4), FOR), ((2.0, 0.3), (2.99, 0.4), OPEN), ((3.01, 0.3), (2.0, 0.4), AGAINST),
     ((2.0, None), (2.01, 0.4), FOR), ((2.0, None), (2.0, None), OPEN)],
)  # fmt: skip
def test_a_printed_difference_has_to_exceed_two_combined_standard_errors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ours: tuple, theirs: tuple, outcome: int
) -> None:
    printed(monkeypatch, MFVI=ours, Ensemble=theirs)
    (found,) = judged(tmp_path, claim("MFVI", "Ensemble"))
    assert found.printed == Counter([outcome]) and found.by_sign == (ours[1] is None)
    assert ("by sign" in words.by_paper(found)) == found.by_sign


def test_the_paper_contradicts_itself_in_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    printed(monkeypatch, MFVI=(2.0, 0.01), Ensemble=(3.0, 0.01), MC_Dropout=(1.0, 0.01))
    verdicts = {
        rows: judged(tmp_path, claim("MFVI", rows))[0].by_paper
        for rows in ("Ensemble", "MC Dropout", "Ensemble;MC Dropout", "NN-HyVI")
    }
    assert list(verdicts.values()) == [Verdict.HOLDS, Verdict.REVERSED, Verdict.PART, Verdict.UNTESTED]


def test_a_comparison_that_the_paper_does_not_print_is_not_named(monkeypatch, tmp_path: Path) -> None:
    printed(monkeypatch, MFVI=(2.0, 0.01), Ensemble=(3.0, 0.01))
    (found,) = judged(tmp_path, claim("MFVI", "Ensemble;NN-HyVI"))
    assert len(found.tested) == 1


@pytest.mark.parametrize(
    ("form", "rows"),
    # Second best of 3, 1 and 5 is 3, where lower is better; ranges 2 - 1 of the first two rows, 5 - 3 of the others.
    [("second", ("MFVI", "Ensemble;MC Dropout;NN-HyVI")), ("spread", ("MFVI;MC Dropout", "Ensemble;NN-HyVI"))],
)
def test_rows_chosen_by_their_means_are_compared_as_printed_alone(
    monkeypatch: pytest.MonkeyPatch, runs: Callable[..., Path], form: str, rows: tuple[str, str]
) -> None:
    """A test of rows that its own means choose has not its level: of twelve equal rows it calls one worse than the
    second best of the others twice as often."""
    printed(monkeypatch, MFVI=(2.0, 0.01), Ensemble=(3.0, 0.01), MC_Dropout=(1.0, 0.01), NN0HyVI=(5.0, 0.01))
    (found,) = judged(runs(MFVI=A, Ensemble=B, MC_Dropout=C, NN0HyVI=B), claim(*rows, form))
    assert found.by_paper == Verdict.HOLDS and found.by_records == Verdict.UNTESTED
    assert [each.comparison.published() for each in found.tested] == [
        (1.0, pytest.approx(0.01 * math.sqrt(2 if form == "second" else 4)))
    ]
    assert words.by_records(found) == "not tested: rows chosen by the means that a test would compare (1)"


# By the records


def test_effect_error_and_p_are_those_of_scipy(runs: Callable[..., Path]) -> None:
    (found,) = judged(runs(MFVI=A, Ensemble=B), claim("MFVI", "Ensemble"))
    (tested,) = found.counted
    wanted = stats.ttest_rel(B, A)
    assert tested.paired is not None
    assert tested.paired.gap == pytest.approx(wanted.statistic * stats.sem(np.subtract(B, A)), rel=1e-12)
    assert tested.paired.p == pytest.approx(wanted.pvalue, rel=1e-9) and found.p == pytest.approx(wanted.pvalue)
    assert (found.by_records, found.protocol, tested.paired.n) == (Verdict.HOLDS, "paper", 4)


def test_runs_whose_numbers_mean_nothing_judge_no_claim(runs: Callable[..., Path]) -> None:
    suite = FakeSuite(dataclasses.replace(TABLE, protocols=("paper", MEANINGLESS)))
    (found,) = judged(runs(MEANINGLESS, MFVI=A, Ensemble=B), claim("MFVI", "Ensemble"), suite=suite)
    assert (found.by_records, found.protocol) == (Verdict.UNTESTED, "")


def test_several_comparisons_take_the_largest_and_the_smallest_p(runs: Callable[..., Path]) -> None:
    results = runs(MFVI=A, Ensemble=B, MC_Dropout=C)
    one_sided = [stats.ttest_rel(other, A, alternative="greater").pvalue for other in (B, C)]
    against = [stats.ttest_rel(other, A, alternative="less").pvalue for other in (B, C)]
    (found,) = judged(results, claim("MFVI", "Ensemble;MC Dropout"))
    assert found.p == pytest.approx(min(1, 2 * min(max(one_sided), 2 * min(against))))
    assert found.by_records == Verdict.OPEN and found.ours == Counter({FOR: 1, OPEN: 1})


def test_every_verdict_can_be_reached(runs: Callable[..., Path]) -> None:
    results = runs(MFVI=A, Ensemble=B, MC_Dropout=C, FuNN0MFVI=[0.1, 0.2, 0.15, 0.1])
    reached = {
        rows: judged(results, claim("MFVI", rows))[0].by_records
        for rows in ("Ensemble", "FuNN-MFVI", "Ensemble;FuNN-MFVI", "MC Dropout", "NN-HyVI", "Ensemble;NN-HyVI")
    }
    wanted = [Verdict.HOLDS, Verdict.REVERSED, Verdict.PART, Verdict.OPEN, Verdict.UNTESTED, Verdict.SO_FAR]
    assert list(reached.values()) == wanted and set(wanted) == set(Verdict)


def test_holm_holds_the_level_over_the_claims_of_a_paper(runs: Callable[..., Path]) -> None:
    """By hand: 0.05 / 2 for the smaller p-value, 0.05 for the larger; else none."""
    near = [1.6, 1.5, 1.4, 1.7]  # p = 0.044 against A
    p = stats.ttest_rel(near, A).pvalue
    assert 0.025 < p < 0.05
    results = runs(MFVI=A, Ensemble=near, MC_Dropout=C, NN0HyVI=B)
    alone = judged(results, claim("MFVI", "Ensemble"))
    beside = judged(results, claim("MFVI", "Ensemble"), claim("MFVI", "MC Dropout", name="two"))
    after = judged(results, claim("MFVI", "Ensemble"), claim("MFVI", "NN-HyVI", name="two"))
    assert alone[0].by_records == Verdict.HOLDS and beside[0].by_records == Verdict.OPEN
    assert [each.by_records for each in after] == [Verdict.HOLDS, Verdict.HOLDS], "the smaller one is rejected first"


def test_the_runs_that_would_tell_are_the_fewest_that_scipy_calls_significant(runs: Callable[..., Path]) -> None:
    (found,) = judged(runs(MFVI=A, MC_Dropout=[1.6, 1.2, 1.5, 1.5]), claim("MFVI", "MC Dropout"))
    gaps = np.subtract([1.6, 1.2, 1.5, 1.5], A)

    def p(n: int) -> float:
        return 2 * stats.t.sf(abs(gaps.mean()) / (gaps.std(ddof=1) / math.sqrt(n)), n - 1)

    (needed,) = found.needed
    assert found.by_records == Verdict.OPEN and p(int(needed)) <= 0.05 < p(int(needed) - 1)
    assert f"10 runs would decide {int(needed <= 10)} of 1 comparisons, about {needed} all." in words.details(found)


def test_a_difference_that_no_number_of_runs_tells() -> None:
    same = compare({(0, 0): 1.0, (0, 1): 2.0}, {(0, 0): 2.0, (0, 1): 1.0})
    assert same.gap == 0 and same.needed() is None
    floor = compare({(0, 0): 1.0, (1, 1): 2.0}, {(0, 0): 0.0, (1, 1): 0.0}, overlap=10.0)
    assert floor.needed() is None, "overlapping splits leave an error that more runs do not lower"


def test_not_worse_allows_a_share_of_the_other(runs: Callable[..., Path]) -> None:
    """Margin 5 % of the other's RMSE: 2.06 against 2.0 is within 2.1, 2.14 is not."""
    results = runs(MFVI=[2.060, 2.061, 2.059, 2.060], Ensemble=[2.0, 2.0001, 1.9999, 2.0], MC_Dropout=[2.14] * 4)
    assert margins()["rmse"].size == 0.05 and margins()["rmse"].source.startswith("ours")
    for row, wanted in (("MFVI", Verdict.HOLDS), ("MC Dropout", Verdict.REVERSED)):
        (found,) = judged(results, claim(row, "Ensemble", kind="not_worse"))
        assert found.by_records == wanted
        assert judged(results, claim(row, "Ensemble"))[0].by_records == Verdict.REVERSED


def test_the_margin_is_said_and_whose_it_is(runs: Callable[..., Path]) -> None:
    results = runs(MFVI=A, Ensemble=B)
    (found,) = judged(results, claim("MFVI", "Ensemble", kind="not_worse"))
    assert words.margin(found) == "Margin (ours, as the paper names none): RMSE 0.05 of the other's value."
    assert words.margin(judged(results, claim("MFVI", "Ensemble"))[0]) == ""


def test_protocols_are_never_mixed(runs: Callable[..., Path]) -> None:
    results = runs(MFVI=A)
    results = runs("short", Ensemble=B)
    (found,) = judged(results, claim("MFVI", "Ensemble"))
    assert found.by_records == Verdict.UNTESTED and not found.protocol
    (found,) = judged(runs("short", MFVI=A), claim("MFVI", "Ensemble"))
    assert (found.protocol, found.by_records) == ("short", Verdict.HOLDS)
    assert "protocol short, reduced" in words.by_records(found)
    (found,) = judged(runs(Ensemble=B), claim("MFVI", "Ensemble"))
    assert found.protocol == "paper" and "reduced" not in words.by_records(found)


def test_why_a_claim_is_not_tested(runs: Callable[..., Path]) -> None:
    results = runs(MFVI=A, Ensemble=[2.0])
    for row, why in (("Ensemble", "one run"), ("NN-HyVI", "no run")):
        (found,) = judged(results, claim("MFVI", row))
        assert found.by_records == Verdict.UNTESTED and found.why == f"{row}: {why} (1)"
    (found,) = judged(results, Claim("x", "p", "Figure 1", "words", "qualitative", "Curves."))
    assert (words.by_paper(found), words.by_records(found)) == ("figure only", "not tested: figure only: Curves")
    (found,) = judged(results, Claim("x", "p", "Abstract", "words", "absolute", "Names no value."))
    assert words.by_paper(found) == "no number named"
    (found,) = judged(results, Claim("x", "p", "Abstract", "words", "absolute", "Names no number."))
    assert words.by_paper(found) == "no number named"


# One aggregation behind every form


@pytest.fixture(scope="module")
def committed() -> dict[str, list[Finding]]:
    return page.of_book(Book(Suite(), Records("results")))


def test_the_page_and_the_readme_are_current(committed: dict[str, list[Finding]]) -> None:
    hint = f"renew it: {page.RENEW}"
    assert (DOCS / "findings.md").read_text(encoding="utf-8") == page.page(committed), (
        f"docs/findings.md is not current; {hint}"
    )
    text = README.read_text(encoding="utf-8")
    assert page.START in text and page.readme(text, committed) == text, f"the README's table is not current; {hint}"


def test_every_form_tells_the_same_verdicts(committed: dict[str, list[Finding]], tmp_path: Path) -> None:
    every = words.flat(committed)
    rows = list(csv.DictReader(io.StringIO(words.as_csv(every))))
    frame = interface.findings()
    assert len(frame) == len(rows) == sum(max(1, len(each.tested)) for each in every)
    markdown, tex = page.page(committed), page.chapter(committed)
    terminal = "".join(page.text(committed, 10**6, paper) for paper in committed)
    for each in every:
        own = frame[frame.claim == each.claim.id]
        assert set(own.by_records) == {str(each.by_records)} and set(own.by_paper) == {str(each.by_paper)}
        line = next(line for line in markdown.splitlines() if line.startswith(f"| {each.claim.id}: "))
        assert line.split(" | ")[1:][-1].startswith(str(each.by_records)) and str(each.by_records) in tex
        assert words.by_records(each) in terminal and words.by_paper(each) in terminal
        tested = own[own.reason == ""]
        assert len(tested) == len(each.counted)
    counted = Counter(str(each.by_records) for each in every)
    (*_, total) = words.counts(committed)
    assert [int(n) for n in total[3:]] == [counted[verdict] for verdict in Verdict] and int(total[1]) == len(every)


def test_effects_are_those_of_the_tables(committed: dict[str, list[Finding]]) -> None:
    """Effects of comparisons without a margin are differences of the means that tables show for the same runs."""
    compared = 0
    for each in words.flat(committed):
        for tested in each.counted:
            terms = tested.comparison.terms
            whole = len(terms) == 2 and terms[0][1].values.keys() == terms[1][1].values.keys()
            if tested.paired and whole and not tested.comparison.slack:
                wanted = tested.comparison.sign * sum(weight * cell.mean for weight, cell in terms)
                assert tested.paired.gap == pytest.approx(wanted, rel=1e-6, abs=1e-9)
                compared += 1
    assert compared > 100


def test_the_site_has_a_page_that_can_be_searched_and_tables_say_their_claims(runs, tmp_path: Path) -> None:
    class Catalogued(FakeSuite):
        def catalogue(self) -> dict:
            return {}

    results = runs(MFVI=A, Ensemble=B)
    write_site(Catalogued(TABLE), Records(results), tmp_path / "site", figures=False)  # type: ignore[arg-type]
    text = (tmp_path / "site/findings/index.html").read_text()
    assert (
        'data-search="Find a claim, paper or table"' in text
        and "pequignot2020-19" in text
        and "cinquin2024-2" not in text
    )
    table = (tmp_path / "site/tables/pequignot2020-5.html").read_text()
    assert "Claims on this table:" in table and "told apart: MFVI." in table
    start = (tmp_path / "site/index.html").read_text()
    assert start.index("What survives") < start.index("What is reproduced")


def test_the_command_prints_lines_that_fit_and_writes_its_files(tmp_path, monkeypatch, call) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    front = tmp_path / "README.md"
    front.write_text(f"before\n{page.START}of long ago\n{page.END}after\n")
    given = ["--results", str(tmp_path), "--out", str(tmp_path), "--file", str(tmp_path / "f.md")]
    status, output, _ = call(build(Suite()), "findings", *given, "--readme", str(front), "--paper", "rudner2021")
    lines = output.splitlines()
    assert (tmp_path / "findings-rudner2021.pdf").is_file() and "rudner2021-17:" in output
    assert not status and max(map(len, lines[:-1])) <= 80
    assert lines[0].startswith("What survives: 24 of the 98 claims")
    assert "of long ago" not in front.read_text() and front.read_text().endswith(f"{page.END}after\n")
    before = front.read_text()
    monkeypatch.setattr(page, "readme", lambda text, found: text + "\ud800" * 9)  # no file can hold it
    with pytest.raises(UnicodeEncodeError):
        build(Suite())(["findings", *given, "--readme", str(front)])
    assert front.read_text() == before, "it is written whole or not at all"
    assert json.dumps(list(words.COLUMNS)) and (tmp_path / "findings.csv").read_text().startswith("claim,paper,place")
    assert "unknown paper 'nobody2020'" in call(build(Suite()), "findings", "--paper", "nobody2020")[2]
