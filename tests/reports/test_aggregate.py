"""Means, standard errors, differences and verdicts, against numbers computed by hand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.records import published
from benchmarks.records.config import run_key
from benchmarks.records.published import Published
from benchmarks.records.store import Store
from benchmarks.state.failures import Failures
from reports.aggregate import CellResult, _overlap, aggregate
from reports.captions import COSTS_ALONE, NO_VERDICTS, ONE_RUN, caption
from reports.choice import Choice
from reports.records import Records, recorded
from reports.significance import RULE
from reports.tables import latex, markdown, marked, text
from reports.tex import flowing
from tests.reports.fakes import Cell, Column, FakeTable, Row, config, fake_table, on_own_files

Writer = Callable[..., Path]
RMSE = Column(Cell("boston", "", "rmse"), "boston", published=Cell("boston", "experiment=2", "rmse"))
LPP = Column(Cell("boston", "", "log_posterior_predictive"), "boston")
ROWS = (Row("MC Dropout", "MC Dropout", "MC Dropout"), Row("FBNN", "FBNN", None))


def table(**changes: Any) -> FakeTable:
    return dataclasses.replace(fake_table("t", ROWS, (RMSE,), paper="pequignot2020", number="5"), **changes)


def only_cell(results: Path, **changes: Any) -> CellResult:
    return aggregate(table(**changes), "paper", Records(results)).cells[0][0]


class Mixed(FakeTable):
    """Table whose runs have another protocol than the requested one."""

    def row_runs(self, row: Row, dataset: str, protocol: str, seeds: Any = None) -> list[dict[str, Any]]:
        return super().row_runs(row, dataset, "short", seeds)


def number(mean: float = 3.0, stderr: float | None = 0.3) -> Published:
    return Published("p", "1", "boston", "", "GP", "rmse", mean, stderr, 10, "", ("", ""))


def result(values: list[float], published: Published | None, expected: int = 2, column: Column = RMSE) -> CellResult:
    return CellResult(ROWS[0], column, expected, {(i, i): value for i, value in enumerate(values)}, published)


def test_mean_and_standard_error_by_hand(write: Writer) -> None:
    cell = only_cell(write("MC Dropout", "boston", {("", "rmse"): [3.0, 4.0, 5.0]}))
    assert (cell.n, cell.expected, cell.mean) == (3, 3, 4.0)
    assert cell.stderr == pytest.approx(1 / math.sqrt(3))  # sd with ddof = 1 is 1
    assert cell.published and (cell.published.mean, cell.published.stderr) == (3.4, 0.33)
    rounded = cell.comparison  # 3.4 ± 0.33 as printed, of ten runs
    assert rounded and rounded.t == pytest.approx((0.6 - 0.05) / math.hypot(1 / math.sqrt(3), 0.335))
    assert cell.verdict == "uninformative", "the published rows of this column are within .2 of each other"


def test_the_range_of_a_column_is_that_of_the_paper_whatever_rows_are_shown(write: Writer) -> None:
    results = write("MC Dropout", "boston", {("", "rmse"): [3.0, 4.0]})
    column = RMSE.published
    assert column
    means = [
        one.mean
        for one in published.load("pequignot2020")
        if (one.table, one.dataset, one.condition, one.metric) == ("5", column.dataset, column.condition, "rmse")
    ]
    assert only_cell(results, rows=ROWS[:1]).range_of_column == only_cell(results).range_of_column
    assert only_cell(results).range_of_column == max(means) - min(means) and len(means) > 2


def test_contexts_tell_rows_apart_and_not_columns() -> None:
    found = published.table("cinquin2024", "2").values()
    contexts = {one.condition for one in found if one.column == ("mnist", "", "accuracy")}
    assert {"", "context=kmnist", "context=random"} <= contexts


def test_scale_is_applied_once(write: Writer) -> None:
    results = write("MC Dropout", "digits", {("", "accuracy"): [0.9, 0.8]})
    column = Column(Cell("digits", "", "accuracy"), "accuracy", scale=100)
    cell = only_cell(results, columns=(column,), n_runs=2)
    assert cell.mean == pytest.approx(85)
    assert cell.stderr == pytest.approx(5)


def test_a_row_may_take_its_number_from_another_metric(write: Writer) -> None:
    results = write("MC Dropout", "boston", {("", "rmse"): [3.0, 4.0, 5.0], ("", "mse"): [10.0, 20.0, 30.0]})
    row = dataclasses.replace(ROWS[0], metrics=(("rmse", "mse"),))
    cell = only_cell(results, rows=(row,))
    assert cell.mean == 20.0 and cell.published and cell.published.mean == 3.4


def test_difference_in_combined_standard_errors_by_hand() -> None:
    cell = result([3.1, 3.9] * 8, number(mean=2.0, stderr=0.1), expected=16)  # mean 3.5, standard error .4 / sqrt(15)
    assert cell.comparison and cell.comparison.t == pytest.approx(1.5 / math.hypot(0.4 / math.sqrt(15), 0.1))
    assert cell.verdict == "differs, worse"
    assert result([3.1, 3.9] * 8, number(mean=5.0), expected=16).verdict == "differs, better"
    assert result([3.1, 3.9] * 8, number(mean=3.0), expected=16).verdict == "reproduced"
    assert result([3.1, 3.9], number(mean=5.0)).verdict == "reproduced", "three errors of two runs are not many"
    assert result([3.1, 3.9], number(mean=2.51)).verdict == "uninformative"


def test_better_follows_the_direction_of_the_metric() -> None:
    several = [3.1, 3.9] * 8
    assert result(several, number(mean=2.0), column=LPP, expected=16).verdict == "differs, better"
    entropy = Column(Cell("boston", "", "predictive_entropy"), "entropy")
    assert result(several, number(mean=2.0), column=entropy, expected=16).verdict == "differs"


@pytest.mark.parametrize("stderr", [0.3, None])
def test_runs_that_diverged_have_a_verdict_and_no_overflow(stderr: float | None) -> None:
    assert result([-1e80, -3e80], number(-2.0, stderr), column=LPP).verdict == "uninformative"
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert result([-1e200, -3e200], number(-2.0, stderr), column=LPP).comparison is None, "no error can be computed"


def test_without_an_error_of_ours_the_difference_is_said() -> None:
    assert result([3.51], number(-2.5), expected=1).verdict == "one run, no error, +6"
    assert result([-3.5], number(2.5), expected=1).verdict == "one run, no error, −6"
    assert result([3.5, 3.5], number(3.5, 0.0)).verdict == "reproduced"
    assert result([3.5, 3.5], number(3.4, 0.0)).verdict == "differs, worse"


def test_the_caption_says_what_a_difference_of_one_run_is(write: Writer) -> None:
    seconds = Column(Cell("boston", "", "training_seconds"), "seconds", RMSE.published)
    results = write("MC Dropout", "boston", {("", "rmse"): [3.5], ("", "training_seconds"): [1.0]})
    for column, shown in ((RMSE, True), (seconds, False), (LPP, False)):
        found = aggregate(table(columns=(column,)), "paper", Records(results))
        assert ("(one run): ours − published, since" in text(found)) == (marked(ONE_RUN) in markdown(found)) == shown
        assert (flowing(ONE_RUN) in latex(found)) == shown
        assert ONE_RUN not in caption(found, Choice(difference=False))


def test_times_of_another_machine_have_a_ratio_and_no_verdict() -> None:
    seconds = Column(Cell("boston", "", "training_seconds"), "boston")
    cell = result([20.0, 40.0], number(60.0, 3.0), column=seconds)
    assert cell.comparison is None and cell.agreement == "another machine, 0.5 of the published time"
    assert cell.status == "undecided"
    assert result([20.0], None, column=seconds).agreement is None


def test_of_costs_alone_the_difference_is_a_ratio_in_every_form(write: Writer) -> None:
    seconds = Column(Cell("boston", "", "training_seconds"), "seconds", RMSE.published)
    results = write("MC Dropout", "boston", {("", "rmse"): [3.5], ("", "training_seconds"): [1.0]})
    for columns, shown in (((seconds,), True), ((RMSE,), False), ((RMSE, seconds), False)):
        found = aggregate(table(columns=columns), "paper", Records(results))
        for words in (" ".join(text(found).split()), markdown(found).replace("\\", ""), " ".join(caption(found))):
            assert (COSTS_ALONE in words) == shown and ("in combined standard errors" in words) != shown


def test_runs_trained_side_by_side_are_one_measurement_of_their_time(write: Writer) -> None:
    results = write("MC Dropout", "boston", {("", "training_seconds"): [4.8, 4.8, 4.8]})
    write("FBNN", "boston", {("", "training_seconds"): [5.0, 6.0, 7.0]})
    rows = (ROWS[0], dataclasses.replace(ROWS[1], method="FBNN"))
    seconds = Column(Cell("boston", "", "training_seconds"), "boston")
    (shared,), (alone,) = aggregate(table(rows=rows, columns=(seconds,)), "paper", Records(results)).cells
    assert shared.shared and math.isnan(shared.stderr) and not shared.bold, "no error is known that bold could rest on"
    said = "Without an error, in boston: runs trained side by side, each with an equal part of one time."
    both = aggregate(table(rows=rows, columns=(seconds,)), "paper", Records(results))
    assert said in caption(both) and said not in caption(Choice(rows=("FBNN",)).of(both))
    assert not alone.shared and alone.stderr == pytest.approx(1 / math.sqrt(3))
    assert not dataclasses.replace(shared, column=RMSE).shared, "metrics may well be equal"


def test_partial_cells_say_how_much_is_there(write: Writer) -> None:
    cell = only_cell(write("MC Dropout", "boston", {("", "rmse"): [3.3, None, 3.6]}), n_runs=10)
    assert cell.values == {(0, 0): 3.3, (2, 2): 3.6}
    assert cell.verdict == "partial n=2/10; no verdict", "the splits that are there may be easier than the others"
    assert cell.status == "undecided"
    seeds = dataclasses.replace(cell, splits_missing=0)
    assert (seeds.status, seeds.verdict) == ("reproduced", "partial n=2/10; reproduced"), (
        "where seeds alone are missing, the split is the paper's"
    )


def test_runs_of_protocol_smoke_have_no_verdict(write: Writer) -> None:
    results = write("MC Dropout", "boston", {("", "rmse"): [3.0, 4.0, 5.0]}, protocol="smoke")
    found = aggregate(table(protocols=("paper", "smoke")), "smoke", Records(results))
    cell = found.cells[0][0]
    assert (cell.verdict, cell.status) == ("no verdict", "undecided")
    assert dataclasses.replace(cell, trial=False).verdict == "uninformative", "the numbers alone would give one"
    assert NO_VERDICTS in caption(found) and not any("reproduced" in sentence for sentence in caption(found))
    shown = text(found)
    assert "No verdicts: these runs test" in shown and "0 reproduced" not in shown and "no verdict" in shown


def test_missing_cells_say_why(write: Writer, tmp_path: Path) -> None:
    cells = aggregate(table(), "paper", Records(tmp_path / "nothing")).cells
    assert [row[0].verdict for row in cells] == ["missing: no run", "no method yet"]
    results = write("MC Dropout", "boston", {("", "mse"): [3.0, 4.0, 5.0]})
    assert only_cell(results).missing == "not in the record"
    assert only_cell(results, planned={"boston": ()}).missing == "not planned"


def test_unusable_records_are_no_values(tmp_path: Path) -> None:
    store = Store(tmp_path)
    row = {"dataset": "boston", "condition": "", "metric": "rmse", "value": 3.0, "n": 9}
    broken, old = (config("MC Dropout", "boston", split=split) for split in (0, 1))
    store.write(store.make(broken, [row], {}, {})).write_text("{")
    store.write(store.make(old, [row], {}, {}) | {"metric_versions": {"rmse": 0}})
    cell = only_cell(tmp_path)
    assert (cell.n, cell.problems) == (0, ("record not counted", "stale record"))
    assert cell.verdict == "missing: record not counted"


def test_failed_runs_are_distinguished_from_those_not_made(tmp_path: Path) -> None:
    failed = config("MC Dropout", "boston", split=0)
    Failures(tmp_path / "state").write(failed, run_key(failed), "loss is nan")
    records = Records(tmp_path / "results", tmp_path / "state")
    assert aggregate(table(), "paper", records).cells[0][0].missing == "failed run"


def test_protocols_are_never_mixed(write: Writer) -> None:
    write("MC Dropout", "boston", {("", "rmse"): [3.0, 4.0, 5.0]})
    results = write("MC Dropout", "boston", {("", "rmse"): [30.0, 40.0, 50.0]}, protocol="short")
    assert only_cell(results).mean == 4.0
    assert aggregate(table(), "short", Records(results)).cells[0][0].mean == 40.0

    with pytest.raises(ValueError, match="a run of protocol 'short' in a cell of 'paper'"):
        aggregate(Mixed("mixed", "", ROWS, (RMSE,), recipe=lambda *_: None), "paper", Records(results))


def test_seeds_limit_what_is_expected(write: Writer) -> None:
    results = write("MC Dropout", "boston", {("", "rmse"): [3.0, 4.0, 5.0]})
    cell = aggregate(table(), "paper", Records(results), seeds=[0, 2]).cells[0][0]
    assert (cell.expected, cell.mean) == (2, 4.0)
    assert (cell.splits_missing, cell.verdict) == (1, "no verdict"), "the chosen splits may be easier than the others"
    seeds = aggregate(table(one_split=True), "paper", Records(results), seeds=[0]).cells[0][0]
    assert (seeds.expected, seeds.splits_missing) == (1, 0)


def test_bold_is_marked_by_column(write: Writer) -> None:
    write("MC Dropout", "boston", {("", "rmse"): [3.0, 3.1, 3.2]})
    results = write("Ensemble", "boston", {("", "rmse"): [5.0, 5.2, 5.1]})
    rows = (ROWS[0], Row("Ensemble", "Ensemble", "Ensemble"), ROWS[1])
    found = aggregate(table(rows=rows), "paper", Records(results))
    assert [row[0].bold for row in found.cells] == [True, False, False]


def test_the_caption_counts_the_columns_in_which_no_rows_are_told_apart(write: Writer) -> None:
    alike, apart = [3.0, 3.1, 3.2], [5.0, 5.2, 5.1]
    write("MC Dropout", "boston", {("", "rmse"): alike, ("", "log_posterior_predictive"): alike, ("", "crps"): alike})
    values = {("", "rmse"): apart, ("", "log_posterior_predictive"): alike[::-1], ("", "crps"): [3.0]}
    results = write("Ensemble", "boston", values)
    columns = (RMSE, LPP, dataclasses.replace(LPP, cell=Cell("boston", "", "crps"), label="crps"))
    rows = (ROWS[0], Row("Ensemble", "Ensemble", "Ensemble"))
    found = aggregate(table(rows=rows, columns=columns), "paper", Records(results))
    assert [[cell.bold for cell in row] for row in found.cells] == [[True, False, False], [False] * 3]
    assert [cell.apart for cell in found.cells[0]] == [True, False, None]
    for metrics, sentence in (
        ((), "In 1 of 2 columns no two rows are told apart, so none is marked there."),
        (("log_posterior_predictive",), "No two rows of a column are told apart, so none is marked."),
        (("rmse",), ""),
        (("crps",), ""),
    ):
        said = caption(Choice(metrics=metrics).of(found))
        assert [each for each in said if "told apart" in each] == [sentence] * bool(sentence)
        assert (RULE in said) == (metrics != ("crps",))


def test_rows_of_different_quantities_are_not_tested_against_one_another(write: Writer) -> None:
    write("MC Dropout", "boston", {("", "rmse"): [3.0, 3.1, 3.2]})
    results = write("Ensemble", "boston", {("", "rmse"): [5.0, 5.2, 5.1]})
    planned = table(rows=(ROWS[0], Row("Ensemble", "Ensemble", "Ensemble")))
    for compared in (True, False):
        columns = tuple(dataclasses.replace(column, compared=compared) for column in planned.columns)
        found = aggregate(dataclasses.replace(planned, columns=columns), "paper", Records(results))
        assert [row[0].bold for row in found.cells] == [compared, False]


def test_data_sets_without_runs_on_the_files_at_hand_show_those_of_others(write: Writer) -> None:
    boston, yacht = (Column(Cell(name, "", "rmse"), name) for name in ("boston", "yacht"))
    both = table(columns=(boston, yacht), paper="", number="")
    results = write("MC Dropout", "boston", {("", "rmse"): [3.0, 4.0]})
    for path in on_own_files(results, "boston/train", more=1.0):
        path.unlink()
    write("MC Dropout", "yacht", {("", "rmse"): [7.0]})
    shown, known = recorded(both, None, Records(results))
    found = aggregate(both, shown, known)
    assert [cell.mean for cell in found.cells[0]] == [4.5, 7.0] and "boston/train" in found.files[0]
    write("MC Dropout", "boston", {("", "rmse"): [2.0]})
    found = aggregate(both, *recorded(both, "paper", Records(results)))
    assert [list(cell.values.values()) for cell in found.cells[0]] == [[2.0], [7.0]], "never both in one cell"
    assert not found.files


@pytest.mark.parametrize(
    ("name", "scheme", "share"),
    [("digits", "", 539 / 1258), ("boston", "gal2016", 51 / 455), ("fashion_mnist", "cinquin2024-pixelwise", 0.0)],
)
def test_splits_overlap_where_they_redraw_their_test_points(name: str, scheme: str, share: float) -> None:
    assert _overlap({(name, scheme, 0), (name, scheme, 1)}) == share and _overlap({(name, scheme, 0)}) == 0.0
