"""LaTeX of tables: what is chosen of them, what stands where, and that pdflatex sets it within its page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import UnknownName, UsageError
from benchmarks.suite import Suite
from reports.aggregate import TableResult, aggregate
from reports.agreement import Verdict
from reports.captions import notes
from reports.choice import WHOLE, Choice, page_size
from reports.entries import VERDICTS, entry
from reports.latex import latex
from reports.layout import blocks
from reports.records import Records
from reports.shown import Shown
from reports.tables import markdown, render_table, text
from reports.tex import lines, wide
from tests.reports.compiling import compiled, faults
from tests.reports.detex import cells_of
from tests.reports.fakes import Cell, Column, FakeTable, Row, fake_table

SETS = ("boston", "concrete")
METHODS = ("MC Dropout", "MFVI")
NASTY = (
    r"A \method{with} $100 % of_all & ~every^thing #1 σ 😀 <name|that> is-longer-than-any-column-of-any-page-would-be"
    " Σ“Δ” ∇Ŧ„ș‚ q\u030cế\u030c ά½…\x1b"
)


@pytest.fixture
def result(write: Callable[..., Path]) -> TableResult:
    """Two methods on two sets, by RMSE and log posterior predictive, beside published numbers."""
    for k, method in enumerate(METHODS):
        for dataset in SETS:
            values = [3.0 + k + (0.1 + 1e-8 * k) * i for i in range(3)]
            results = write(method, dataset, {("", "rmse"): values, ("", "log_posterior_predictive"): values})
    return aggregate(table(), "paper", Records(results))


def table(**changes: object) -> FakeTable:
    columns = tuple(
        Column(Cell(d, "", m), d, Cell(d, "experiment=2", m))
        for m in ("rmse", "log_posterior_predictive")
        for d in SETS
    )
    rows = tuple(Row(method, method, method) for method in METHODS)
    return replace(
        fake_table("pequignot2020-5", rows, columns, paper="pequignot2020", number="5", notes={"paper": ("A note.",)}),
        **changes,
    )


def joined(form: str) -> str:
    """A table with the halves of its numbers together."""
    return re.sub(r"(\d\}?) & (\\textbf\{)?\.", r"\1.", form).replace("}.", ".")


def test_rows_columns_and_metrics_are_in_the_requested_order(result: TableResult) -> None:
    chosen = Choice(rows=("mfvi", "MC Dropout"), columns=("Concrete",), metrics=("RMSE",)).of(result)
    assert [row[0].row.label for row in chosen.cells] == ["MFVI", "MC Dropout"]
    assert [(c.column.label, c.column.cell.metric) for c in chosen.cells[0]] == [("concrete", "rmse")]
    assert chosen.cells[1][0] is result.cells[0][1]
    both = Choice(columns=("concrete", "boston"), metrics=("log_posterior_predictive", "rmse")).of(result)
    assert [(c.cell.metric, c.label) for c in both.table.columns] == [
        (metric, name) for metric in ("log_posterior_predictive", "rmse") for name in ("concrete", "boston")
    ]


@pytest.mark.parametrize("names", [("boston",), ("boston", "concrete"), ("concrete", "boston")])
def test_columns_of_one_label_stand_below_their_metric(result: TableResult, names: tuple[str, ...]) -> None:
    choice = Choice(columns=names)
    found = blocks(choice.of(result), lambda column: 1.0, 99.0, choice)
    assert [(block.title, tuple(block.header)) for block in found] == [
        ("RMSE ↓", names),
        ("log posterior predictive ↑", names),
    ]


@pytest.mark.parametrize("room", [1.0, 2.0, 3.0, 99.0])
def test_no_block_mixes_metrics_that_labels_do_not_name(write: Callable[..., Path], room: float) -> None:
    where = [("boston", "rmse"), ("concrete", "rmse"), ("yacht", "rmse"), ("boston", "log_posterior_predictive")]
    columns = tuple(Column(Cell(data, "", metric), data) for data, metric in where)
    results = write("MAP", "boston", {("", "rmse"): [1.0]})
    found = aggregate(fake_table("t", (Row("MAP", None, "MAP"),), columns), "paper", Records(results))
    assert all(block.title for block in blocks(found, lambda column: 1.0, room))


def test_verdicts_and_bold_are_those_of_the_whole_table(result: TableResult) -> None:
    choice = Choice(rows=("MFVI",), metrics=("rmse",))
    (row,) = choice.of(result).cells
    assert [(cell.verdict, cell.bold) for cell in row] == [(c.verdict, c.bold) for c in result.cells[1][:2]]
    some = Choice(rows=("MC Dropout",))
    assert any(cell.bold for cell in some.of(result).flat)
    assert "Bold is decided among all rows of the table" in markdown(some.of(result), some)
    assert "among all rows" not in markdown(result)


def test_notes_on_rows_or_columns_that_are_left_out_go_with_them() -> None:
    whole = aggregate(Suite().table("cinquin2024-1"), "paper", Records("nowhere"))
    chosen = Choice(rows=("GFSVI", "GP"), columns=("yacht",)).of(whole)
    all_of, some = ([note.text for each in notes(found).values() for note in each] for found in (whole, chosen))
    assert set(some) < set(all_of) and notes(WHOLE.of(whole)) == notes(whole)
    left = {text.split("**")[1] for text in set(all_of) - set(some) if text.startswith("**")}
    assert {"GP on wine", "Sparse GP", "FVI and TFSVI"} <= left, "GP on wine is not of yacht"
    assert not left & {"GFSVI on yacht", "Mean ranks", "GP and sparse GP", "Folds"}


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (Choice(rows=("MFV",)), "unknown row 'MFV': did you mean 'MFVI'"),
        (Choice(columns=("bostn",)), "unknown column 'bostn': did you mean 'boston'"),
        (Choice(metrics=("rms",)), "unknown metric 'rms': did you mean 'rmse' or 'RMSE'"),
    ],
)
def test_unknown_names_are_answered_by_near_ones(result: TableResult, choice: Choice, message: str) -> None:
    with pytest.raises(UnknownName, match=re.escape(message)):
        choice.of(result)


def test_a_column_and_a_metric_that_no_column_has_together(write: Callable[..., Path]) -> None:
    columns = (Column(Cell("boston", "", "rmse"), "boston"), Column(Cell("digits", "", "ece"), "ECE"))
    results = write("MAP", "boston", {("", "rmse"): [1.0]})
    found = aggregate(fake_table("t", (Row("MAP", None, "MAP"),), columns), "paper", Records(results))
    with pytest.raises(UsageError, match="--column boston --metric ece: expected a column of table t that is both"):
        Choice(columns=("boston",), metrics=("ece",)).of(found)


@pytest.mark.parametrize("form", [text, markdown, latex])
def test_lines_and_notes_can_be_left_out(result: TableResult, form: Callable[[TableResult, Choice], str]) -> None:
    choices = Choice(), Choice(published=False, difference=False, notes=False)
    whole, bare = (" ".join(joined(form(result, choice)).split()) for choice in choices)
    below = ("reproduced", "Protocol") if form is text else ("A note.", "Welch", "Published over")
    for word in ("published", "difference", *below):
        assert word in whole and word not in bare
    assert "Welch" not in form(result, Choice(difference=False)) and "Published over" not in bare
    more = joined(form(result, Choice(digits=4)))
    assert "3.100" in whole and "3.1000" in more and "4.1000" in more


@pytest.mark.parametrize("form", [text, markdown])
def test_methods_across_show_the_same_texts(result: TableResult, form: Callable[[TableResult, Choice], str]) -> None:
    def cells(shown: str) -> list[str]:
        return sorted(re.findall(r"[−+]?\d+\.\d+ (?:± \d+\.\d+|reproduced|better|worse|uninformative)", shown))

    down, across = form(result, Choice()), form(result, Choice(across=True))
    assert cells(down) == cells(across) and len(cells(down)) == 24
    lined = [line for line in across.splitlines() if "MC Dropout" in line]
    assert len(lined) == 2 and all("MFVI" in line for line in lined)


def test_latex_goes_across_where_that_takes_fewer_pages(write: Callable[..., Path]) -> None:
    conditions = [f"shift=rotation;angle={angle}" for angle in range(0, 190, 10)]
    results = write("MAP", "mnist", {(condition, "accuracy"): [0.9, 0.8] for condition in conditions})
    columns = tuple(Column(Cell("mnist", c, "accuracy"), c[-3:], scale=100) for c in conditions)
    found = aggregate(fake_table("t", (Row("MAP", None, "MAP"),), columns, n_runs=2), "paper", Records(results))
    assert latex(found).count(r"\begin{table}") == 1 and len(cells_of(latex(found))) == 19
    assert latex(found, Choice(across=False)).count(r"\begin{table}") > 1
    assert latex(found, Choice(across=True, page=(17, 7))).count("part 2 of") == 1


def test_the_caption_is_one_sentence_and_notes_are_below_the_last_part(result: TableResult) -> None:
    form = latex(result)
    captions = re.findall(r"\\caption\{(.*)\}", form)
    assert captions and all(caption.count(". ") == 0 and len(caption) < 200 for caption in captions)
    assert form.count("A note.") == 1 and form.index("A note.") > form.rindex(r"\end{tabular")
    assert all(r"\begin{tablenotes}" in each for each in form.split(r"\begin{table}")[1:]), "verdicts are explained"


def test_marks_of_verdicts_say_the_verdict() -> None:
    assert all(VERDICTS[verdict.word][1].startswith(verdict) for verdict in Verdict)
    assert len({mark for mark, _ in VERDICTS.values()}) == len(VERDICTS)


def test_entries_keep_every_printed_digit() -> None:
    marks = {"reproduced": "r", "no run": "1"}
    for shown, two, one in (
        (Shown("−0.470", "0.0"), r"$-$0 & .470 & $\pm$\,0 & .0", ""),
        (Shown("3.4", "0.33", after="†"), r"3 & .4 & $\pm$\,0 & .33$^\dagger$", ""),
        (Shown("91", "1", bold=True), r"\textbf{91} &  & $\pm$\,1 & ", ""),
        (Shown("2.000", after=" (1/4)"), r"2 & \multicolumn{3}{@{}l}{.000\,(1/4)}", r"2 & .000\,(1/4)"),
        (
            Shown("+0.7", before="~", mark="reproduced"),
            r"$\sim$ +0 & \multicolumn{3}{@{}l}{.7\tnote{r}}",
            r"$\sim$ +0 & .7\tnote{r}",
        ),
        (Shown("0.0788", "1e-3"), r"0 & \multicolumn{3}{@{}l}{.0788\,$\pm$ 1$\times10^{-3}$}", ""),
        (
            Shown("−1.50e+07", "2.50e+06"),
            r"\multicolumn{4}{c}{$-$1.50$\times10^{7}$ $\pm$ 2.50$\times10^{6}$}",
            "",
        ),
        (Shown("—", mark="no run"), r"\multicolumn{4}{c}{---\tnote{1}}", r"\multicolumn{2}{c}{---\tnote{1}}"),
    ):
        assert entry(shown, True, marks) == two
        assert not one or entry(shown, False, marks) == one


def test_words_are_cut_where_a_line_is_full() -> None:
    assert lines("MC Dropout fVI, 50 draws", 14) == ["MC Dropout", "fVI, 50 draws"]
    assert all(wide(line) <= 12 for line in lines("x" * 50, 12)) and "".join(lines("x" * 50, 12)) == "x" * 50


def test_page_sizes_are_read() -> None:
    assert page_size("8.4x23") == (8.4, 23.0)
    for wrong in ("17", "x", "1x23", "17x2300"):
        with pytest.raises(UsageError, match="--page is"):
            page_size(wrong)


@pytest.mark.parametrize("choice", [Choice(), Choice(across=True), Choice(page=(9.0, 15.0), digits=5)])
def test_tables_of_any_names_fit_their_page(write: Callable[..., Path], tmp_path: Path, choice: Choice) -> None:
    values = {("", "rmse"): [3.0, 2.9, 3e7], ("", "log_posterior_predictive"): [-2.0]}
    for method in (NASTY, "MC Dropout"):
        for dataset in SETS:
            results = write(method, dataset, values)
    rows = (Row(NASTY, NASTY, "MFVI"), Row("MC Dropout", "MC Dropout", "MC Dropout"), Row("FBNN", "FBNN", None))
    made = table(rows=rows, notes={"paper": (NASTY, "And more words of a note. " * 200)}, title=NASTY)
    rendered = render_table(aggregate(made, "paper", Records(results)), tmp_path / "out", choice)
    alone = rendered.files["LaTeX alone"]
    width, height = choice.page
    source = alone.read_text().replace("[a4paper,margin=2cm]", f"[a4paper,textwidth={width}cm,textheight={height}cm]")
    alone.write_text(source.replace(r"\usepackage{mathptmx}", "") if choice.across else source)  # a wider font
    log = compiled(alone, runs=2)
    assert not faults(log)


def test_a_difference_without_any_error_is_infinite_in_words_of_mathematics(write: Callable[..., Path]) -> None:
    condition = "ood=mnist;score=mutual_information"
    results = write("MAP", "fashion_mnist", {(condition, "ood_auroc"): [0.5, 0.5, 0.5]})
    cell = Cell("fashion_mnist", condition, "ood_auroc")
    columns = (Column(cell, "AUROC %", cell, scale=100),)
    certain = fake_table("rudner2021-1", (Row("MAP", "MAP", "MAP"),), columns, paper="rudner2021", number="1")
    found = aggregate(certain, "paper", Records(results))
    assert "~−∞ worse" in text(found) and r"\infty" in latex(found)
