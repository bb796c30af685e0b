"""Causes of differences: what the file names is there, and a cause counts only where its row reproduces the number."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from benchmarks import tables
from benchmarks.errors import BenchmarkError
from benchmarks.records import published
from benchmarks.records.config import differences
from benchmarks.records.provenance import ROOT
from benchmarks.suite import Suite
from reports import causes
from reports.aggregate import CellResult, TableResult, aggregate
from reports.agreement import Verdict
from reports.causes import Cause, load, shown
from reports.records import Records
from tests.reports.fakes import Cell, Column, FakeSuite, Row, fake_table

RMSE = Column(Cell("boston", "", "rmse"), "boston", published=Cell("boston", "experiment=2", "rmse"))


def test_each_cause_names_a_table_and_a_row_that_holds_numbers_of_its_method() -> None:
    for cause in load():
        table = tables.get(cause.shown_by)
        rows = [row for row in table.rows if row.label == cause.row]
        assert len(rows) == 1, f"{cause.shown_by} has no row {cause.row}"
        keys = {column.published_key(rows[0]) for column in table.columns}
        for number in cause.tables:
            cells = published.table(cause.paper, number)
            assert keys & {key for key, cell in cells.items() if cell.method == cause.method}, (cause, number)


def test_a_row_that_shows_a_cause_differs_in_nothing_else() -> None:
    """A row differs in the settings of its cause alone, or in evaluation sets, which change no other set's numbers."""
    suite, records = Suite(), Records(ROOT / "results")
    counted = 0
    for paper, number in dict.fromkeys((cause.paper, number) for cause in load() for number in cause.tables):
        table = tables.get(f"{paper}-{number}")
        cells = aggregate(table, "paper", records).flat
        of = {cell.published.key: cell for cell in cells if cell.published}
        for key, cause in shown(cells, paper, number, suite, records).items():
            dataset, other = of[key].column.cell.dataset, tables.get(cause.shown_by)
            (row,) = (row for row in other.rows if row.label == cause.row)
            theirs, ours = (each.row_runs(at, dataset, "paper")[0] for each, at in ((table, of[key].row), (other, row)))
            for name, *_ in differences(ours, theirs):
                named = (name == each or name.startswith(f"{each}.") for each in cause.settings)
                assert name == "evaluation.sets" or any(named), f"{cause.row} on {dataset}: {name} differs too"
            counted += 1
    assert counted > 50


def test_a_cause_counts_where_its_row_reproduces_what_the_table_does_not(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("MC Dropout", "boston", {("", "rmse"): [5.0, 5.1, 5.2]})
    results = write("MFVI", "boston", {("", "rmse"): [3.39, 3.40, 3.42]})
    mine = fake_table("pequignot2020-5", (Row("MC Dropout", "MC Dropout", "MC Dropout"),), (RMSE,),
                      paper="pequignot2020", number="5")  # fmt: skip
    other = dataclasses.replace(mine, name="other", rows=(Row("the cause", "MC Dropout", "MFVI"),))
    records, suite = Records(results), FakeSuite(mine, other)
    monkeypatch.setattr(FakeSuite, "table_names", lambda self: list(self.tables), raising=False)
    cells = aggregate(mine, "paper", records).flat

    def counted(row: str, number: str = "5", method: str = "MC Dropout") -> int:
        cause = Cause("pequignot2020", (number,), method, "other", row, (), "why")
        monkeypatch.setattr(causes, "load", lambda: (cause,))
        return len(shown(cells, "pequignot2020", "5", suite, records))

    assert cells[0].agreement == "differs, worse" and counted("the cause") == 1
    assert counted("another row") == counted("the cause", "7") == counted("the cause", method="MFVI") == 0
    write("MFVI", "boston", {("", "rmse"): [5.0, 5.1, 5.2]})
    records = Records(results)
    assert counted("the cause") == 0, "a row that differs too shows nothing"


@pytest.mark.parametrize(
    ("concrete", "scatter", "tally"),
    [
        (4.88, 0.02, "0 of 2 cells of the row differ with it, 1 without"),
        (9.0, 0.02, None),
        (None, 0.02, "0 of 1 cells of the row differ with it, 1 without; not tested with it: 1"),
        (9.0, 5.0, "0 of 1 cells of the row differ with it, 1 without; not tested with it: 1"),
    ],
)
def test_a_setting_that_repairs_one_cell_and_spoils_another_explains_nothing(
    write: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    concrete: float | None,
    scatter: float,
    tally: str | None,
) -> None:
    """The published RMSEs are 3.41 and 4.869: a mean of 9 differs from the second, unless its runs scatter so much that
    no test could tell, which is not to agree with it."""
    for dataset, ours, others, apart in (("boston", 5.0, 3.4, 0.02), ("concrete", 4.87, concrete, scatter)):
        results = write("MC Dropout", dataset, {("", "rmse"): [ours, ours + 0.02, ours - 0.02]})
        if others:
            write("MFVI", dataset, {("", "rmse"): [others, others + apart, others - apart]})
    columns = (
        RMSE,
        Column(Cell("concrete", "", "rmse"), "concrete", published=Cell("concrete", "experiment=2", "rmse")),
    )
    mine = fake_table("pequignot2020-5", (Row("MC Dropout", "MC Dropout", "MC Dropout"),), columns,
                      paper="pequignot2020", number="5")  # fmt: skip
    other = dataclasses.replace(mine, name="other", rows=(Row("the cause", "MC Dropout", "MFVI"),))
    suite = FakeSuite(mine, other)
    monkeypatch.setattr(FakeSuite, "table_names", lambda self: list(self.tables), raising=False)
    cause = Cause("pequignot2020", ("5",), "MC Dropout", "other", "the cause", (), "why")
    monkeypatch.setattr(causes, "load", lambda: (cause,))
    cells = aggregate(mine, "paper", Records(results)).flat
    found = shown(cells, "pequignot2020", "5", suite, Records(results))
    assert [str(each.tally) for each in found.values()] == [tally] * (tally is not None)


@pytest.mark.parametrize(("scatter", "counts"), [(0.01, 1), (0.2, 1), (0.6, 0)])
def test_where_a_column_tells_no_rows_apart_the_difference_is_the_scale(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, scatter: float, counts: int
) -> None:
    """The published RMSE is 3.41 beside 5.1 here: half of the difference is 0.85, of the column's range 0.01."""
    write("MC Dropout", "boston", {("", "rmse"): [5.0, 5.1, 5.2]})
    results = write("MFVI", "boston", {("", "rmse"): [3.4 - scatter, 3.4, 3.4 + scatter]})
    mine = fake_table("pequignot2020-5", (Row("MC Dropout", "MC Dropout", "MC Dropout"),), (RMSE,),
                      paper="pequignot2020", number="5")  # fmt: skip
    other = dataclasses.replace(mine, name="other", rows=(Row("the cause", "MC Dropout", "MFVI"),))
    records, suite = Records(results), FakeSuite(mine, other)
    monkeypatch.setattr(FakeSuite, "table_names", lambda self: list(self.tables), raising=False)
    cause = Cause("pequignot2020", ("5",), "MC Dropout", "other", "the cause", (), "why")
    monkeypatch.setattr(causes, "load", lambda: (cause,))
    near = {name: aggregate(table, "paper", records) for name, table in suite.tables.items()}
    monkeypatch.setattr(causes, "aggregate", lambda table, *_: _narrow(near[table.name]))
    (cell,) = _narrow(near["other"]).flat
    assert cell.outcome is Verdict.UNINFORMATIVE
    assert len(shown(near["pequignot2020-5"].flat, "pequignot2020", "5", suite, records)) == counts


def test_a_small_change_that_a_test_just_does_not_tell_is_no_cause(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The published RMSE is 3.4 ± 0.33: 4.25 differs, 4.15 does not, an eighth of the way from it."""
    write("MC Dropout", "boston", {("", "rmse"): [4.24, 4.25, 4.26]})
    results = write("MFVI", "boston", {("", "rmse"): [4.14, 4.15, 4.16]})
    mine = fake_table("pequignot2020-5", (Row("MC Dropout", "MC Dropout", "MC Dropout"),), (RMSE,),
                      paper="pequignot2020", number="5")  # fmt: skip
    other = dataclasses.replace(mine, name="other", rows=(Row("the cause", "MC Dropout", "MFVI"),))
    records, suite = Records(results), FakeSuite(mine, other)
    monkeypatch.setattr(FakeSuite, "table_names", lambda self: list(self.tables), raising=False)
    cause = Cause("pequignot2020", ("5",), "MC Dropout", "other", "the cause", (), "why")
    monkeypatch.setattr(causes, "load", lambda: (cause,))
    (own,), (found,) = (aggregate(table, "paper", records).flat for table in (mine, other))
    assert own.status == "differs" and found.outcome is Verdict.REPRODUCED
    assert not shown([own], "pequignot2020", "5", suite, records)


def _narrow(result: TableResult) -> TableResult:
    """The result as of a column whose published numbers are close together."""
    cells = [[dataclasses.replace(cell, range_of_column=0.02) for cell in row] for row in result.cells]
    return dataclasses.replace(result, cells=cells)


@pytest.mark.parametrize("text", ["", "paper,tables\n", ",".join(causes.COLUMNS) + "\na,b,c,,e,,f\n"])
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "causes.csv"
    file.write_text(text)
    with pytest.raises(BenchmarkError, match="expected the columns paper,tables,method|line 2: shown_by is empty"):
        load(file)


def test_another_candidate_counts_only_where_every_cell_of_its_data_set_agrees() -> None:
    """Guards against chance: one of several candidates agrees with one number more easily than with all of a set."""
    suite, records = Suite(), Records(ROOT / "results")
    cells = partial(_cells, suite, records)
    for cause in load():
        suffix = cause.shown_by.rpartition("-")[2]
        if suffix not in ("candidates", "laplace"):
            continue
        candidates = [cell for each in ("1", "6", "4") for cell in cells(f"{cause.paper}-{each}-{suffix}")]
        (number,) = cause.tables
        own = cells(f"{cause.paper}-{number}")
        counted = shown(own, cause.paper, number, suite, records)
        keys = {key for key, found in counted.items() if found.row == cause.row}
        sets = {cell.column.cell.dataset for cell in own if cell.published and cell.published.key in keys}
        assert sets, cause
        for cell in candidates:
            if cell.row.label == cause.row and cell.column.cell.dataset in sets:
                assert cell.outcome is not None and not cell.outcome.differs, (cause.row, cell.column.cell)


def test_where_a_cause_says_that_the_table_agrees_and_its_row_does_not_it_is_so() -> None:
    cells = partial(_cells, Suite(), Records(ROOT / "results"))
    words = r"; on (\w+(?: and \w+)?) the narrow start agrees"
    claims = [(cause, found[1].split(" and ")) for cause in load() if (found := re.search(words, cause.cause))]
    for cause, sets in claims:
        own, other = (
            {cell.column.label: cell.status for cell in cells(table) if cell.row.label == label}
            for table, label in ((f"{cause.paper}-{cause.tables[0]}", "MFVI"), (cause.shown_by, cause.row))
        )
        for name in sets:
            assert (own[name], other[name]) == ("reproduced", "differs"), (cause.tables, cause.row, name)
    assert len(claims) == 2


def test_no_fewer_cells_differ_with_thirty_seeds_where_chance_among_ten_is_a_cause() -> None:
    cells = partial(_cells, Suite(), Records(ROOT / "results"))
    named = {cause.shown_by for cause in load() if "no fewer differ with thirty" in cause.cause}
    assert named == {"rotated-mnist-seeds", "rotated-mnist-nearest-seeds"}
    for table, counts in (("rotated-mnist", (55, 58)), ("rotated-mnist-nearest", (43, 44))):
        thirty = cells(f"{table}-seeds")
        rows = {cell.row.label.partition(",")[0] for cell in thirty}
        ten = [cell for cell in cells(table) if cell.row.label in rows]
        assert tuple(sum(cell.status == "differs" for cell in each) for each in (ten, thirty)) == counts


def test_what_the_cause_by_the_weight_says_that_it_spoils_is_so() -> None:
    cells = partial(_cells, Suite(), Records(ROOT / "results"))
    found = [cause for cause in load() if "that of NotMNIST agrees without it and differs with it" in cause.cause]
    for cause in found:
        for table, label, status in (("rudner2022-1", "MFVI", "reproduced"), (cause.shown_by, cause.row, "differs")):
            of = {cell.column.label: cell for cell in cells(table) if cell.row.label == label}
            assert of["AUROC % NotMNIST"].status == status, table
            assert (of["AUROC % MNIST"].mean < 89) == (status == "differs"), "93.1 is published"
    assert len(found) == 1


def _cells(suite: Suite, records: Records, table: str) -> list[CellResult]:
    return [cell for row in aggregate(suite.table(table), "paper", records).cells for cell in row]
