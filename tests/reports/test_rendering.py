"""The three forms of a table: what they say, that they fit, and that LaTeX accepts them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import tables
from benchmarks.metrics import Metric, registry
from benchmarks.records.published import Published
from reports.aggregate import CellResult, TableResult, aggregate
from reports.captions import caption
from reports.labels import name
from reports.records import Records
from reports.shown import difference, pair, value
from reports.tables import WIDTH, latex, markdown, render_table, text
from reports.tex import escape
from tests.reports.detex import cells_of, marks_of, words_of
from tests.reports.fakes import Cell, Column, FakeTable, Row, fake_table

SETS = ("boston", "concrete", "energy", "wine", "yacht")
METRICS = ("rmse", "log_posterior_predictive")
METHODS = ("MC Dropout", "Ensemble", "MFVI")
NOTE = "100 % of the_rows & more: {σ} <= $5 #1"


def uci() -> FakeTable:
    rows = tuple(Row(method, method, method) for method in METHODS) + (Row("FBNN", "FBNN", None),)
    columns = tuple(Column(Cell(d, "", m), d, Cell(d, "experiment=2", m)) for m in METRICS for d in SETS)
    return fake_table(
        "pequignot2020-5", rows, columns, title="UCI sets.", paper="pequignot2020", number="5", n_runs=4,
        notes={"paper": (NOTE,)}, reductions={"short": "a tenth of the epochs"},
    )  # fmt: skip


@pytest.fixture
def results(write: Callable[..., Path]) -> Path:
    for k, method in enumerate(METHODS):
        for dataset in SETS[:-1]:
            n = 2 if dataset == "wine" else 4
            rmse = [3.0 + k + (0.1 + 1e-8 * k) * i for i in range(n)]
            write(method, dataset, {("", "rmse"): rmse, ("", "log_posterior_predictive"): [-value for value in rmse]})
    return write("MFVI", "yacht", {("", "rmse"): [2.0]})


def forms(results: Path, protocol: str = "paper") -> tuple[str, str, str]:
    result = aggregate(uci(), protocol, Records(results))
    return text(result), markdown(result), latex(result)


def test_numbers_show_two_digits_of_their_error() -> None:
    assert pair(3.14159, 0.0271, 3) == ("3.142", "0.027")
    assert pair(-31.4159, 2.71, 3) == ("−31.4", "2.7")
    assert pair(3141.59, 271.0, 3) == ("3142", "271")
    assert pair(3.14159, float("nan"), 3) == ("3.142", "")
    assert pair(3.14159, 0.0, 2) == pair(3.14159, 4e-16, 2) == ("3.14", "0.00")
    assert pair(-1.5e7, 2.5e6, 3) == ("−1.50e+07", "2.50e+06")
    assert pair(1.84e-6, 2.1e-7, 3) == ("1.84e−06", "2.10e−07"), "not 0.000002 with no error"
    assert pair(3.14159, 2.1e-7, 3) == ("3.141590", "0.000000"), "an exponent would hide digits of the mean"


def test_zero_has_no_sign() -> None:
    assert pair(-0.0004, 0.027, 3) == ("0.000", "0.027") and pair(-0.0004, float("nan"), 3) == ("0.000", "")
    number = Published("p", "1", "boston", "", "GP", "rmse", 3.5, None, None, "", ("3.5", ""))
    cell = CellResult(uci().rows[0], uci().columns[0], 1, {(0, 0): 3.4999}, number)
    assert (str(difference(cell)), cell.agreement) == ("+0.0 (one run)", "one run, no error, +0.0")


def test_metrics_have_names_for_people() -> None:
    for metric in registry.METRICS:
        assert not re.search(r"_|\b(area|auroc|auprc|aupr|ece|fpr95|nll|ood)\b(?! under)", name(metric)), metric
    assert name("referral_auroc_area") == "AUROC under referral"
    assert name("near_ood_fpr95") == "near OOD FPR at 95 % TPR"


def test_columns_say_what_they_are_of() -> None:
    assert [column.label for column in tables.get("dirichlet2022-11").columns] == [f"severity {k}" for k in range(6)]
    labels = [column.label for name in ("retinopathy", "retinopathy-severity") for column in tables.get(name).columns]
    assert {"APTOS to EyePACS AUROC %", "EyePACS and APTOS joint referral AUROC %", "EyePACS NLL"} <= set(labels)
    assert not any(re.search("eyepacs|aptos|idrid", label) for label in labels)


def test_the_caption_counts_under_the_other_reading_of_published_errors(results: Path) -> None:
    plain, unclear = (aggregate(table, "paper", Records(results)) for table in (uci(), replace(uci(), deviations=True)))
    texts = [" ".join(markdown(result).split()) for result in (unclear, plain)]
    said = re.search(r"Were the published errors standard deviations over runs: (\d+) reproduced", texts[0])
    counted = re.search(r"(\d+) reproduced,", texts[1])
    assert said and counted and int(said[1]) <= int(counted[1]) + 2
    assert "standard deviations over runs" not in texts[1]
    cells = [[replace(cell, splits_missing=1) for cell in row] for row in unclear.cells]
    assert "standard deviations over runs" not in markdown(replace(unclear, cells=cells)), "these have no verdict"


def test_the_caption_counts_verdicts_by_hand() -> None:
    """Ours are means of ten runs with an error of 0.1 each, beside 3.0 with errors of 0.01, 0.5 and 5."""
    table, values = uci(), {(k, k): 0.1 * math.sqrt(10) * (-1) ** k * math.sqrt(0.9) for k in range(10)}
    number = Published("p", "1", "boston", "", "GP", "rmse", 3.0, 0.01, 10, "", ("3.00", "0.01"))

    def cell(mean: float, method: str, error: float = 0.01) -> CellResult:
        own = {run: mean + value for run, value in values.items()}
        printed = replace(number, method=method, stderr=error)
        return CellResult(table.rows[0], table.columns[0], 10, own, printed, range_of_column=4.0)

    cells = [cell(3.0, "a"), cell(3.5, "b"), cell(9.0, "c"), cell(8.0, "f"), cell(3.5, "d", 0.5), cell(3.5, "e", 5.0)]
    assert cells[0].stderr == pytest.approx(0.1)
    counted = "6 published cells: 6 with records, 2 reproduced, 3 differ, 1 uninformative."
    whole = TableResult(replace(table, columns=table.columns[:1], deviations=True), "paper", [[each] for each in cells])
    assert counted in caption(whole)
    # As deviations over ten runs the errors are 0.003, 0.16 and 1.6: d differs.
    assert "Were the published errors standard deviations over runs: 1 reproduced." in caption(whole)


def test_differences_print_a_tenth_and_those_of_one_run_the_published_digits() -> None:
    number = Published("p", "1", "boston", "", "GP", "rmse", 2.0, 0.3, None, "", ("2.0", "0.3"))
    one, some = (
        CellResult(uci().rows[0], uci().columns[0], len(v), dict(enumerate(v)), number) for v in ([2.5], [2.1, 2.3])
    )  # type: ignore[misc]
    assert str(difference(one)) == "+0.5 (one run)"
    assert str(difference(some)).startswith("+0.6 ")  # 0.2 / hypot(0.1, 0.3)
    assert str(difference(replace(some, values={(0, 0): 2.0, (0, 1): 2.2}))).startswith("+0.3 ")


def test_a_partial_cell_says_so_also_where_its_n_is_the_usual_one() -> None:
    cell = CellResult(uci().rows[0], uci().columns[0], 4, {(0, 0): 1.0, (1, 1): 3.0})
    assert str(value(cell, 2)).endswith("(2/4)")
    assert str(value(replace(cell, expected=2), 2)) == "2.0 ± 1.0"


def test_quoted_numbers_are_marked_and_the_caption_says_whose_they_are(results: Path) -> None:
    another = replace(uci(), rows=(*uci().rows, Row("FBNN, other settings", "FBNN", None)))
    quoted = [each for each in caption(aggregate(another, "paper", Records(results))) if "quoted" in each]
    assert quoted == ["† FBNN and FBNN, other settings: quoted from Sun et al. (2019): the paper says so."]
    table = uci()
    assert "†: quoted by the paper from another one." in text(aggregate(table, "paper", Records(results)))
    for form, mark in zip((markdown, latex), ("†", r"$^\dagger$")):
        said = form(aggregate(table, "paper", Records(results)))
        content = words_of(said)
        assert "2.378 ± 0.03†" in (content if form is not latex else [c for row in cells_of(said) for c in row])
        assert f"{mark} FBNN: quoted from Sun et al. (2019): the paper says so." in content
        assert content.count(mark) == 10 + 1


def test_every_cell_stands_beside_the_published_one(results: Path) -> None:
    lines = forms(results)[1].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("| MC Dropout"))
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[first : first + 3]]
    # 3.0, 3.1, 3.2, 3.3: mean 3.15, sd 0.1291, standard error 0.0645; published 3.4 ± 0.33, that is at least
    # 3.35 and .335 at most: -0.20 / 0.3412. The paper's rows, of which it has more than are shown, are 1.95 apart.
    assert [row[:2] for row in cells] == [
        ["MC Dropout", "**3.150 ± 0.065**"], ["*published*", "3.4 ± 0.33"], ["*difference*", "−0.6 reproduced"],
    ]  # fmt: skip
    assert cells[0][4] == "**3.050 ± 0.050 (2/4)**"
    assert cells[2][4] == "+46.3 no verdict"  # two splits of four; (3.05 - 0.635 - 0.0005) / hypot(0.05, 0.015)


def test_missing_cells_are_shown_with_their_reason(results: Path) -> None:
    reasons = {"no method yet": 10, "no run": 4, "not in the record": 1}  # of yacht, two rows of either metric
    for form in forms(results)[:2]:
        assert {reason: form.count(reason) for reason in reasons} == reasons
        assert "2.000 (1/4)" in form
    form = forms(results)[2]
    shown = [cell for row in cells_of(form) for cell in row]
    assert {
        reason: shown.count(f"---{mark}") for mark, reason in marks_of(form).items() if reason in reasons
    } == reasons
    assert "2.000 (1/4)" in shown


def test_the_caption_says_what_is_needed(results: Path) -> None:
    for form in forms(results)[1:]:
        words = " ".join(form.split())
        for part in (
            "Protocol paper.",
            "n = 4, otherwise in brackets",
            "for their number (Holm), level 0.05",
            "paired over shared seeds",
        ):
            assert part in words
        assert re.search(
            r"40 published cells: 25 with records \(7 of them partial\), "
            r"\d+ reproduced, \d+ differ, \d+ uninformative\.",
            words,
        )
        assert "Published over 10 runs." in words
        assert re.search(
            r"Order of the rows, ours and published: Spearman's correlation \S*\d\.\d\d \(boston, RMSE\)", words
        )
    assert "Protocol short: a tenth of the epochs. No run of this protocol yet." in " ".join(
        forms(results, "short")[1].split()
    )


def test_text_fits_and_has_a_block_per_metric(results: Path) -> None:
    form = forms(results)[0]
    assert max(map(len, form.splitlines())) <= WIDTH
    assert [line for line in form.splitlines() if line.endswith(("↑", "↓"))] == ["RMSE ↓", "log posterior predictive ↑"]
    assert "3.150 ± 0.065*" in form


def test_wide_tables_are_split_by_column(write: Callable[..., Path]) -> None:
    angles = range(0, 190, 10)
    conditions = [f"shift=rotation;angle={angle}" for angle in angles]
    results = write("MAP", "mnist", {(condition, "accuracy"): [0.9, 0.8] for condition in conditions})
    columns = tuple(Column(Cell("mnist", c, "accuracy"), f"{a}°", scale=100) for c, a in zip(conditions, angles))
    result = aggregate(fake_table("t", (Row("MAP", None, "MAP"),), columns, n_runs=2), "paper", Records(results))
    form = text(result)
    assert max(map(len, form.splitlines())) <= WIDTH
    assert all(f"{angle}°" in form for angle in angles)
    assert form.count("85.0 ± 5.0") == len(angles)


def test_metrics_share_a_block_where_they_fit(write: Callable[..., Path]) -> None:
    results = write("MAP", "digits", {("", "accuracy"): [0.9, 0.8], ("", "ece"): [0.1, 0.2]})
    columns = (
        Column(Cell("digits", "", "accuracy"), "accuracy (%)", scale=100),
        Column(Cell("digits", "", "ece"), "ECE"),
    )
    form = text(aggregate(fake_table("t", (Row("MAP", None, "MAP"),), columns, n_runs=2), "paper", Records(results)))
    assert re.search(r"accuracy \(%\) ↑ +ECE ↓", form)
    assert "over 2 runs" in form and "published" not in form


def test_rows_that_a_block_has_no_runs_for_are_left_out(write: Callable[..., Path]) -> None:
    results = write("MAP", "boston", {("", "rmse"): [1.0, 2.0]})
    rows, columns = (Row("MAP", None, "MAP"), Row("GP", None, "GP")), (Column(Cell("boston", "", "rmse"), "boston"),)
    table = fake_table("t", rows, columns, n_runs=2, planned={"boston": ("MAP",)})
    form = text(aggregate(table, "paper", Records(results)))
    assert "MAP" in form and "GP" not in form


def test_columns_that_no_row_is_planned_for_are_left_out(write: Callable[..., Path]) -> None:
    results = write("MAP", "boston", {("", "rmse"): [1.0, 2.0]})
    columns = tuple(Column(Cell(dataset, "", "rmse"), dataset) for dataset in ("wine", "boston"))
    table = fake_table("t", (Row("MAP", None, "MAP"),), columns, n_runs=2, planned={"wine": ()})
    for form in (text, markdown, latex):
        said = form(aggregate(table, "paper", Records(results)))
        assert "boston" in said and "wine" not in said
    known = replace(uci(), planned={"wine": ()})
    assert "wine" in text(aggregate(known, "paper", Records(results))), "published numbers are shown all the same"


def test_numbers_that_two_rows_share_count_once(results: Path) -> None:
    table = replace(uci(), rows=(*uci().rows, Row("MFVI, another way", "MFVI", "MFVI")))
    words = " ".join(text(aggregate(table, "paper", Records(results))).split())
    assert "50 comparisons with 40 published cells: " in words


def test_latex_is_booktabs_with_everything_escaped(results: Path) -> None:
    form = forms(results)[2]
    for command in (r"\toprule", r"\midrule", r"\bottomrule", r"\caption", r"\label{tab:pequignot2020-5}"):
        assert command in form
    assert form.count(r"\begin{table}") == form.count(r"\end{table}") == form.count(r"\begin{threeparttable}")
    assert r"\textbf{3} & \textbf{.150} & $\pm$\,0 & .065" in form
    for rows in map(cells_of, form.split(r"\begin{table}")[1:]):
        assert len({len(row) for row in rows}) == 1
    assert escape(r"a_b & 5% #1 {x} \y ~ ^ $") == (
        r"a\_b \& 5\% \#1 \{x\} \textbackslash{}y \textasciitilde{} \textasciicircum{} \$"
    )
    assert form.isascii()
    assert escape("λο") == r"$\lambda$$o$"  # Unicode calls the first one lamda, and LaTeX has no command for the second


@pytest.mark.parametrize(
    ("words", "tex"),
    [
        ("Σ-VI", r"$\Sigma$-VI"), ("Δ-VI", r"$\Delta$-VI"), ("Α", r"\textbackslash{}Alpha"), ("∇x", r"$\nabla$x"),
        ("“a” ‘b’", "``a'' `b'"), ("Hernández", "Hernández"), ("Herna\u0301ndez", "Hernández"), ("ế", r"\'{\^{e}}"),
        ("q\u030c", r"\v{q}"), ("\u030cq", r"$<$q"), ("😀", r"\textbackslash{}U0001f600"),
        ("Ŧ", r"\textbackslash{}u0166"), ("x₂", r"x\_2"), ("\x1b[", r"\textbackslash{}x1b["),
        ("--protocol ---", "-{}-protocol -{}-{}-"),
    ],
)  # fmt: skip
def test_latex_of_names_keeps_them_apart(words: str, tex: str) -> None:
    assert escape(words) == tex


def test_files_are_written(results: Path, tmp_path: Path) -> None:
    rendered = render_table(aggregate(uci(), "short", Records(results)), tmp_path / "new" / "out")
    names = {form: path.name for form, path in rendered.files.items()}
    assert names == {
        "Markdown": "pequignot2020-5-short.md", "LaTeX": "pequignot2020-5-short.tex",
        "LaTeX alone": "pequignot2020-5-short-standalone.tex",
    }  # fmt: skip
    assert all(path.stat().st_size > 100 for path in rendered.files.values())
    assert r"\input{pequignot2020-5-short.tex}" in rendered.files["LaTeX alone"].read_text()
    assert rendered.counts == "0 of 40 cells, protocol short"


def test_what_a_training_said_of_itself_is_a_note_under_the_table(write: Callable[..., Path]) -> None:
    about: list[dict] = [{}, {"warnings": ["not converged: R-hat of predictions is 1.31, not below 1.05"]}]
    results = write(
        "MFVI", "boston", {("", "rmse"): [2.0, 3.0], ("", "log_posterior_predictive"): [1.0, 2.0]}, about=about
    )
    note = "MFVI on boston, split 1, seed 1: not converged: R-hat of predictions is 1.31, not below 1.05."
    for form in forms(results):
        assert " ".join(form.split()).count(note) == 1


def test_notes_stand_by_kind_with_bold_leads_and_long_paragraphs_in_markdown_alone(tmp_path: Path) -> None:
    result = aggregate(tables.get("precision"), "paper", Records(tmp_path))
    form = markdown(result)
    assert "\n\n### Protocol\n\n- **Settings**: no paper. " in form and "\n\n### Cost\n\n- **Seconds**: " in form
    assert "\n\n  A ResNet-18 of 8 to 64 channels, SGD with momentum" in form
    short = latex(result)
    assert r"\item \textit{Protocol.} \textbf{Settings}: no paper. " in short and "A ResNet-18 of 8" not in short
    assert "Settings" not in text(result)


def test_words_of_others_are_no_markup_in_markdown(write: Callable[..., Path]) -> None:
    """Title, notes, names of rows, columns and reasons."""
    nasty = "<img src=x> *a* |\n# b \\<i> [l](u)"
    columns = (Column(Cell("boston", "", "rmse"), nasty), Column(Cell("wine", "", "rmse"), "wine"))
    table = fake_table(
        "mine",
        (Row(nasty, None, "MFVI"),),
        columns,
        title=nasty,
        notes={"paper": (nasty, "`code_of <b>`")},
        number="1",
        paper="rudner2022",
    )
    about: list[dict] = [{"warnings": [nasty]}]
    form = markdown(aggregate(table, "paper", Records(write("MFVI", "boston", {("", "rmse"): [2.0]}, about=about))))
    assert form.count(r"\<img src=x\>") == 6 and form.count("`code_of <b>`") == 1, form
    assert not re.search(r"(?<!\\)(?:\\\\)*[<*\[](?!b>`)|\n# ", form), form
    assert len({line.replace(r"\|", "").count("|") for line in form.splitlines() if line.startswith("|")}) == 1


def test_metrics_are_named_by_their_title_or_else_their_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (Metric("mine", "lower", "", "", title="my score"), Metric("largest_error", "lower", "", "")):
        monkeypatch.setitem(registry.METRICS, each.name, each)
    assert [name(each) for each in ("mine", "largest_error", "ece")] == ["my score", "largest error", "ECE (15 bins)"]
