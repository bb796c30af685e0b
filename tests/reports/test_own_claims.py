"""Claims of a user's own file: verdicts by SciPy, errors that name the claim, and the command."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats

from benchmarks.errors import BenchmarkError
from benchmarks.suite import Suite
from reports import interface
from reports.cli import DOCS, build
from reports.figures import claims as figure_of_claims
from reports.figures.looks import GREEN, GREY
from reports.figures.style import caption
from reports.findings import page
from reports.findings.claims import read
from reports.findings.verdicts import Finding, Verdict
from reports.records import Records
from tests.reports.compiling import compiled, faults
from tests.reports.fakes import Cell, Column
from tests.reports.test_findings import SUITE, A, B, C, printed, runs
from tools import missing

__all__ = ["runs"]  # a fixture
HEADER = "id,claim,kind,table,a,b,columns,form,side,margin"
RMSE = "boston:experiment=2:rmse"
SCATTER = "boston::scatter"
Runs = Callable[..., Path]


def file(folder: Path, *lines: str, header: str = HEADER) -> Path:
    path = folder / "mine.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def judged(results: Path, *lines: str, header: str = HEADER) -> list[Finding]:
    return interface.judged(file(results.parent, *lines, header=header), Records(results), suite=SUITE)  # type: ignore[arg-type]


def test_its_p_value_is_that_of_a_paired_t_test(runs: Runs) -> None:
    """One comparison: twice the one-sided p-value of the better way."""
    (found,) = judged(
        runs(MFVI=A, Ensemble=B), f"one,lower,free,MFVI,Ensemble,{RMSE}", header="id,claim,table,a,b,columns"
    )
    assert found.by_records == Verdict.HOLDS and found.by_paper == Verdict.UNTESTED
    assert found.p == pytest.approx(stats.ttest_rel(A, B).pvalue)


def test_its_margin_takes_the_place_of_ours(runs: Runs) -> None:
    """RMSE 1.2 on average, the other 1.175: worse by 0.025, which 5 % of the other allow by another test than 0.5."""
    results = runs(MFVI=A, MC_Dropout=C)
    lines = [f"{margin},no worse,not_worse,free,MFVI,MC Dropout,{RMSE},,,{margin}" for margin in ("", "0.5")]
    ours, own = judged(results, "ours" + lines[0], lines[1])
    assert own.p == pytest.approx(stats.ttest_rel([a - 0.5 for a in A], C).pvalue)
    assert ours.p == pytest.approx(min(1.0, stats.ttest_rel(A, [1.05 * c for c in C]).pvalue))


def test_holms_correction_counts_the_claims_of_the_file(runs: Runs) -> None:
    results = runs(MFVI=A, Ensemble=B, MC_Dropout=C)
    pairs = [("MFVI", "Ensemble"), ("MFVI", "MC Dropout"), ("Ensemble", "MC Dropout")]
    found = judged(results, *(f"{i},words,better,free,{a},{b},{RMSE},,," for i, (a, b) in enumerate(pairs)))
    assert {each.family for each in found} == {3}
    assert [each.by_records for each in found] == [Verdict.HOLDS, Verdict.OPEN, Verdict.REVERSED]


def test_a_row_that_the_paper_does_not_print_counts(monkeypatch: pytest.MonkeyPatch, runs: Runs) -> None:
    """Of a paper's claims such comparisons are left out."""
    printed(monkeypatch, MFVI=(2.0, 0.01), Ensemble=(3.0, 0.01))
    (found,) = judged(runs(MFVI=A, Ensemble=B, NN0HyVI=C),
                      f"a,words,better,pequignot2020-5,MFVI,Ensemble;NN-HyVI,{RMSE},,,")  # fmt: skip
    assert len(found.tested) == 2 and len(found.counted) == 2 and found.printed.total() == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"a,words,,free,MVFI,MFVI,{RMSE},,,", "claim a: unknown row 'MVFI'"),
        ("a,words,,free,MFVI,Ensemble,boston::rmsd,,,", "claim a: unknown column 'boston::rmsd'"),
        (f"a,words,,free,MFVI;Ensemble,MFVI,{RMSE},matched,,", "claim a: form matched: expected as many rows b"),
        (f"a,words,,free,MFVI,,{RMSE},second,,", "claim a: form second: expected rows b$"),
        (f"a,words,,free,MFVI,,{RMSE},,,", "claim a: form each: expected rows b, or a value$"),
        (f"a,words,not_worse,free,MFVI,Ensemble,{RMSE},,,-1", "line 2: expected a number from 0 on, found '-1'"),
        (f"a,words,not_worse,free,MFVI,Ensemble,{RMSE},,,nan", "line 2: expected a number from 0 on, found 'nan'"),
        (f"a,words,,other,MFVI,Ensemble,{SCATTER},,,", "claim a: a claim on scatter needs a side: higher or lower"),
        (f"a,words,not_worse,other,MFVI,Ensemble,{SCATTER},,lower,", "claim a: not_worse needs a margin for scatter"),
        (f"a,words,,free,MFVI,Ensemble,{RMSE},,,much", "line 2: expected a number from 0 on, found 'much'"),
        (f"a,words,,free,MFVI,Ensemble,{RMSE},,up,", "line 2: expected rows, columns, .* as side higher, lower"),
    ],
)  # fmt: skip
def test_a_claim_that_cannot_be_tested_is_named(
    monkeypatch: pytest.MonkeyPatch, runs: Runs, line: str, message: str
) -> None:
    column = Column(Cell("boston", "", "scatter"), "boston")
    monkeypatch.setitem(SUITE.tables, "other", replace(SUITE.table("free"), name="other", columns=(column,)))
    with pytest.raises(BenchmarkError, match=rf"mine\.csv.*{message}"):
        judged(runs(MFVI=A), line)


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"id,claim\n", b"id,claim,table,a,columns\n"])
def test_a_file_that_is_no_list_of_claims_is_named(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "mine.csv").write_bytes(content)
    with pytest.raises(BenchmarkError, match=r"mine\.csv: expected (a CSV file|the columns id,place,claim|a claim)"):
        interface.judged(tmp_path / "mine.csv", Records(tmp_path))


def test_the_example_of_the_page_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text((DOCS / "verdicts.md").read_text().split("```csv\n")[1].split("```")[0])
    first, second = read(tmp_path / "mine.csv")
    assert first.tests[0].b == ("MAP", "MFVI") and first.tests[0].columns == ("{bikes,waves}::rmse",)
    assert second.not_worse and second.tests[0].margin_of("log_posterior_predictive").size == 0.05  # type: ignore[union-attr]


def test_a_spreadsheets_byte_order_mark_is_no_part_of_the_header(runs: Runs) -> None:
    (found,) = judged(runs(MFVI=A, Ensemble=B), f"a,words,,free,MFVI,Ensemble,{RMSE},,,", header="\ufeff" + HEADER)
    assert found.by_records == Verdict.HOLDS


def test_the_command_and_the_frame_say_the_same(runs: Runs, tmp_path: Path, call) -> None:
    given = file(runs(MFVI=A, Ensemble=B).parent, f"a|b,lower,,free,MFVI,Ensemble,{RMSE},,,")
    options = ["claims", str(given), "--results", str(tmp_path / "results"), "--out", str(tmp_path / "out")]
    status, output, _ = call(build(SUITE), *options)  # type: ignore[arg-type]
    assert status == 0 and "1 claim, by the records: 1 holds." in output and "a|b: lower" in output
    written = (tmp_path / "out/claims-mine.md").read_text()
    assert r"| a\|b: **lower** Tables: free. | no numbers printed | holds: 1 of 1 as claimed" in written
    assert f"python -m reports claims {given}" in written and "over the claims of the file" in written
    with (tmp_path / "out/claims-mine.csv").open(newline="") as lines:
        (row,) = csv.DictReader(lines)
    frame = interface.claims(given, tmp_path / "results", suite=SUITE)  # type: ignore[arg-type]
    assert float(row["effect"]) == frame["effect"][0] == pytest.approx(sum(B) / 4 - sum(A) / 4)
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".md", ".tex", ".csv", ".pdf", ".png"}
    assert set(row) == set(frame.columns) and frame.attrs["problems"] == []


def test_the_picture_has_every_effect_in_standard_errors(
    monkeypatch: pytest.MonkeyPatch, runs: Runs, tmp_path: Path, no_open_canvas: None
) -> None:
    """Printed (2.5 - 2) / hypot(0.3, 0.4) = 1, not told apart; runs by a paired t-test."""
    printed(monkeypatch, MFVI=(2.0, 0.3), Ensemble=(2.5, 0.4))
    tables = ("pequignot2020-5", "free", "pequignot2020-5")
    lines = [f"{i},words,,{table},MFVI,Ensemble,{RMSE},,," for i, table in enumerate(tables)]
    found = judged(runs(MFVI=A, Ensemble=B), *lines)
    found[2] = replace(found[2], tested=())
    kept: list = []
    monkeypatch.setattr(figure_of_claims, "save", lambda figure, files: kept.append(figure))
    figure_of_claims.draw(found, "mine.csv", tmp_path / "claims")
    (axis,) = kept[0].axes
    assert caption(kept[0]).startswith("Claims of mine.csv")
    marks = [
        (line.get_marker(), *line.get_xdata(), line.get_color()) for line in axis.lines if line.get_marker() in "Do"
    ]
    ours = ("o", pytest.approx(-stats.ttest_rel(A, B).statistic), GREEN)
    assert marks == [("D", pytest.approx(1.0), GREY), ours, ours]
    assert [text.get_text() for text in axis.texts] == ["no test"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["0: words", "1: words", "2: words"]


def test_its_latex_compiles_with_the_packages_that_the_page_names(runs: Runs, tmp_path: Path) -> None:
    found = judged(runs(MFVI=A, Ensemble=B), f"a_1,50 % & lower,not_worse,free,MFVI,Ensemble,{RMSE},,,0.1")
    packages = ("array", "booktabs", "longtable")
    assert all(name in (DOCS / "verdicts.md").read_text() for name in packages)
    head = rf"\documentclass{{article}}\usepackage{{{','.join(packages)}}}\begin{{document}}"
    written = tmp_path / "claims.tex"
    written.write_text(head + page.tex_of_file(found) + r"\end{document}", encoding="utf-8")
    assert faults(compiled(written, packages=packages)) == []


def test_a_method_that_was_added_to_a_table_may_be_named(tmp_path: Path) -> None:
    given = file(tmp_path, "a,words,,digits,SWAG (not in the paper),MAP,digits::accuracy,,,")
    (tmp_path / "results").mkdir()
    with pytest.raises(BenchmarkError, match="claim a: unknown row 'SWAG "):
        interface.judged(given, Records(tmp_path / "results"))
    (found,) = interface.judged(given, Records(tmp_path / "results"), ["swag"])
    assert [each.comparison.words for each in found.tested] == ["SWAG (not in the paper) against MAP"]


def test_the_runs_that_a_claim_lacks_are_listed(tmp_path: Path) -> None:
    given = file(tmp_path, "a,words,,digits,MFVI,MAP,digits::accuracy,,,")
    (tmp_path / "results").mkdir()
    ((found, count, _),) = missing.claims(tmp_path / "results", tmp_path / "state", file=given)
    assert found.claim.id == "a" and count == 2 * Suite().table("digits").replicates("paper")
