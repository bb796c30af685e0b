"""Only runs of the same data are averaged; costs are compared on one processor model only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.records.config import run_key
from benchmarks.records.store import Store
from reports.aggregate import TableResult, aggregate
from reports.captions import caption
from reports.choice import Choice
from reports.cli import build
from reports.coverage import coverage, problems
from reports.figures import FIGURES, collect
from reports.labels import side
from reports.records import Records
from reports.tables import latex, markdown, text
from tests.reports.detex import words_of
from tests.reports.fakes import Cell, Column, FakeSuite, FakeTable, Row, config, fake_table

Writer = Callable[..., Path]
ROWS = (Row("MAP", "MAP", "MAP"), Row("Ensemble", None, "Ensemble"))
SECONDS, ACCURACY = Cell("fashion_mnist", "", "training_seconds"), Cell("fashion_mnist", "", "accuracy")
COLUMNS = (Column(ACCURACY, "accuracy", ACCURACY, scale=100), Column(SECONDS, "seconds", digits=1))
ONE, OTHER = "1" * 64, "2" * 64
AMD, INTEL = {"cpu": "AMD EPYC", "device": "cpu"}, {"cpu": "Intel(R) Xeon(R) | 2", "device": "cpu"}
GPU = {"cpu": "AMD EPYC", "device": "NVIDIA H100"}


def table(**changes: Any) -> FakeTable:
    given = {"paper": "rudner2022", "number": "1", "one_split": True, "columns": COLUMNS, **changes}
    return fake_table("rudner2022-1", ROWS, **given)


def key(run: int, method: str = "MAP") -> str:
    return run_key(config(method, "fashion_mnist", split=0, seed=run))


@pytest.fixture
def make(write: Writer) -> Callable[..., TableResult]:
    """make(provenance of each run of MAP, ...) -> the table; the ensemble's three runs are all alike."""

    def maker(about: list[dict[str, Any]], others: dict[str, Any] | None = None, **changes: Any) -> TableResult:
        planned = table(n_runs=len(about), **changes)
        for method, provenance in (("Ensemble", [others or AMD] * len(about)), ("MAP", about)):
            runs = [0.4 + 0.01 * i + (0.5 + 1e-9 * i) * (method == "MAP") for i in range(len(about))]
            values = {("", "accuracy"): runs, ("", "training_seconds"): runs}
            results = write(method, "fashion_mnist", values, about=provenance, one_split=planned.one_split)
        return aggregate(planned, "paper", Records(results))

    return maker


def test_runs_of_different_data_are_not_averaged(make: Callable[..., TableResult]) -> None:
    result = make([{"fingerprint": ONE}, {"fingerprint": OTHER}, {"fingerprint": ONE}])
    for cell in result.cells[0]:
        assert (cell.n, cell.missing, cell.verdict) == (0, "different data", "missing: runs of different data")
        assert cell.agreement is None and not cell.bold
    assert [cell.n for cell in result.cells[1]] == [3, 3]
    groups = f"11111111 in {key(0)}, {key(2)} / 22222222 in {key(1)}"
    note = f"Different data: MAP on fashion_mnist: split 0: {groups}: delete"
    for form in (text(result), markdown(result), latex(result)):
        assert words_of(form).count(note) == 1
        marked = r"---\tnote{1}" if "tabular" in form else "— different data"
        assert form.count(marked) == 2


def test_many_runs_are_named_in_short(make: Callable[..., TableResult]) -> None:
    result = make([{"fingerprint": ONE}] * 9 + [{"fingerprint": OTHER}])
    assert f"{key(0)}, {key(1)}, {key(2)} and 6 more / 22222222 in {key(9)}: delete" in result.problems[0]


def test_splits_have_data_of_their_own(make: Callable[..., TableResult]) -> None:
    result = make([{"fingerprint": ONE}, {"fingerprint": OTHER}], one_split=False)
    assert result.cells[0][0].n == 2 and not result.problems


def test_records_that_do_not_say_their_data_differ_from_none(make: Callable[..., TableResult]) -> None:
    assert make([{"fingerprint": ONE}, {}, {"fingerprint": ONE, "data": {"test": ONE}}]).cells[0][0].n == 3


def test_evaluation_sets_of_one_name_have_one_content(make: Callable[..., TableResult]) -> None:
    same = {"fingerprint": ONE, "data": {"test": ONE, "ood-mnist": OTHER}}
    assert make([same, {"fingerprint": ONE, "data": {"test": ONE, "rotation-30": OTHER}}]).cells[0][0].n == 2
    result = make([same, {"fingerprint": ONE, "data": {"test": OTHER, "ood-mnist": OTHER}}])
    assert result.cells[0][0].verdict == "missing: runs of different data"
    assert f"split 0, set test: 11111111 in {key(0)} / 22222222 in {key(1)}: delete" in result.problems[0]
    assert len(result.problems) == 1


def test_runs_whose_contexts_come_from_other_images_are_not_averaged(make: Callable[..., TableResult]) -> None:
    result = make([{"fingerprint": ONE, "training_fingerprint": pool} for pool in (ONE, OTHER)])
    assert result.cells[0][0].verdict == "missing: runs of different data"
    where = f"split 0, training and contexts: 11111111 in {key(0)} / 22222222 in {key(1)}: delete"
    assert where in result.problems[0]


def test_only_runs_that_would_be_averaged_have_to_agree(write: Writer) -> None:
    values = {("", "accuracy"): [0.9, 0.8], ("", "training_seconds"): [1.0]}
    about = [{"fingerprint": ONE}, {"fingerprint": OTHER}]
    results = write("MAP", "fashion_mnist", values, about=about, one_split=True)
    accuracy, seconds = aggregate(table(), "paper", Records(results)).cells[0]
    assert (accuracy.missing, seconds.missing, seconds.n) == ("different data", None, 1)
    store = Store(results)
    old = store.get(config("MAP", "fashion_mnist", split=0, seed=1))
    store.write(old | {"metric_versions": {"accuracy": 0}})
    assert aggregate(table(), "paper", Records(results)).cells[0][0].mean == pytest.approx(90)


def test_every_report_says_so_and_ends_with_status_1(
    write: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    about = [{"fingerprint": ONE}, {"fingerprint": OTHER}]
    write("Ensemble", "digits", {("", "ece"): [0.1, 0.2]}, about=about[:1] * 2, one_split=True)
    write("MAP", "digits", {("", "ece"): [0.1, 0.2]}, about=about, one_split=True)
    results = write("MAP", "fashion_mnist", {("", "accuracy"): [0.9173, 0.9172]}, about=about, one_split=True)
    digits = fake_table("digits", ROWS, (Column(Cell("digits", "", "ece"), "ECE"),), one_split=True)
    suite = FakeSuite(table(), digits)
    (row,) = [row for row in coverage(results, suite) if row.problems]
    assert (row.recorded, row.broken, len(problems([row]))) == (0, 0, 1)
    runs = collect(FIGURES["digits-roc"], digits, "paper", Records(results))
    assert list(runs.records) == ["Ensemble"] and runs.missing == ("MAP (different data)",)
    figures = ("figures", "digits-roc", "digits-entropy")
    for arguments in (("table", "rudner2022-1"), ("tables",), ("coverage",), figures):
        with pytest.raises(SystemExit) as stop:
            build(suite)([*arguments, "--results", str(results), "--out", str(tmp_path / "out")])
        output, errors = capsys.readouterr()
        assert (stop.value.code, errors) == (1, "")
        assert output.count("Different data: MAP on ") == (2 if arguments == ("tables",) else 1)


def test_costs_of_one_processor_model_are_compared(make: Callable[..., TableResult]) -> None:
    result = make([AMD, AMD, AMD], AMD)
    assert [[cell.bold for cell in row] for row in result.cells] == [[True, False], [False, True]]
    assert "mixed" not in text(result)


@pytest.mark.parametrize(("other", "name"), [(INTEL, "Intel(R) Xeon(R) | 2"), (GPU, "NVIDIA H100 (AMD EPYC)")])
def test_costs_of_several_are_not(make: Callable[..., TableResult], other: dict[str, str], name: str) -> None:
    result = make([other, other, other], AMD)
    assert [[cell.bold for cell in row] for row in result.cells] == [[True, False], [False, False]]
    (said,) = [sentence for sentence in caption(result) if "AMD EPYC" in sentence]
    models = " and ".join(sorted(["AMD EPYC", name]))
    assert said == f"seconds (mixed): made on {models}, so costs are not compared and none is bold."
    assert "seconds (mixed) ↓" in text(result) and "accuracy (mixed)" not in text(result)
    assert not result.problems, "a mean of times of several models is no mistake"


@pytest.mark.parametrize("across", [False, True])
def test_costs_that_rank_nothing_have_no_arrow_and_no_bold(make: Callable[..., TableResult], across: bool) -> None:
    accuracy, seconds = COLUMNS
    for compared in (True, False):
        result = make([AMD, AMD, AMD], AMD, columns=(accuracy, replace(seconds, compared=compared)))
        forms = [form(result, Choice(across=across)) for form in (text, markdown, latex)]
        assert [("↓" in form or "downarrow" in form) for form in forms] == [compared] * 3
        assert any(row[1].bold for row in result.cells) == compared
    assert side(replace(accuracy, compared=False)) == 1, "rows of different quantities may each have a better side"


def test_a_cell_of_several_processor_models_has_its_mean(make: Callable[..., TableResult]) -> None:
    result = make([AMD, INTEL, AMD], AMD)
    assert result.cells[0][1].mean == pytest.approx(0.91)
    assert "made on AMD EPYC and Intel(R) Xeon(R) \\| 2" in " ".join(markdown(result).split())
    assert not any(row[1].bold for row in result.cells)
    assert result.cells[0][0].bold, "what is no cost does not depend on the processor"


def test_processors_that_a_record_does_not_say_are_another_model(make: Callable[..., TableResult]) -> None:
    assert "made on AMD EPYC and unknown processor" in markdown(make([AMD, {}, AMD], AMD))
