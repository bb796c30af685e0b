"""Tests that reports read each record once, without its curves, and keep only values."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.records.store import Store
from reports.aggregate import aggregate
from reports.cli import build
from reports.coverage import coverage
from reports.records import Recorded, Records
from tests.reports import many
from tests.reports.fakes import Cell, Column, FakeSuite, FakeTable, Row, fake_table

METRICS = ("rmse", "mse", "log_posterior_predictive")
ROWS = tuple(Row(method, method, method) for method in ("MC Dropout", "Ensemble"))
COLUMNS = tuple(Column(Cell("boston", "", name), name, Cell("boston", "experiment=2", name)) for name in METRICS)
TABLES = [fake_table(f"pequignot2020-{n}", ROWS, COLUMNS, paper="pequignot2020", number=n) for n in ("4", "5")]
GRID = {"grid/grid": {"x": [[0.0], [1.0]], "mean": [0.5, 0.5], "std": [0.1, 0.1], "samples": [[0.0, 1.0]]}}


@pytest.fixture
def results(write: Callable[..., Path]) -> Path:
    for row in ROWS:
        found = write(row.method, "boston", {("", metric): [1.0, 2.0, 3.0] for metric in METRICS}, curves=GRID)
    return found


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, bool]]:
    """Count the reads of each file, with and without its curves."""
    counted: Counter[tuple[str, bool]] = Counter()

    def count(owner: type, name: str, with_curves: bool) -> None:
        read = getattr(owner, name)

        def counting(reader: Any, path: Path) -> Any:
            counted[path.name, with_curves] += 1
            return read(reader, path)

        monkeypatch.setattr(owner, name, counting)

    count(Store, "columns", with_curves=False)
    count(Store, "curves", with_curves=True)
    return counted


def run(suite: Any, results: Path, *arguments: str) -> None:
    with pytest.raises(SystemExit) as stop:
        build(suite)([*arguments, "--results", str(results), "--out", str(results.parent / "out")])
    assert not stop.value.code


def test_tables_read_every_record_once_without_curves(results: Path, reads: Counter) -> None:
    run(FakeSuite(*TABLES), results, "tables")
    assert len(reads) == 6 and set(reads.values()) == {1}
    assert not any(curves for _, curves in reads)


def test_coverage_reads_every_record_once_without_curves(results: Path, reads: Counter) -> None:
    assert sum(row.recorded for row in coverage(results, FakeSuite(*TABLES))) > 0
    assert len(reads) == 6 and set(reads.values()) == {1}
    assert not any(curves for _, curves in reads)


def test_figures_that_are_there_need_no_curves(write: Callable[..., Path], reads: Counter) -> None:
    results = write("MFVI", "cinquin_1d", {("", "rmse"): [1.0, 2.0, 3.0]}, curves=GRID)
    toys = fake_table("toys", (Row("MFVI", None, "MFVI"),), (Column(Cell("cinquin_1d", "", "rmse"), "RMSE"),))
    run(FakeSuite(toys), results, "table", "toys")
    assert len([name for name, curves in reads if not curves]) == 3, "the table and its figure share what was read"
    assert len([name for name, curves in reads if curves]) == 1, "a picture of one run reads the curves of that run"
    reads.clear()
    run(FakeSuite(toys), results, "table", "toys")
    assert len(reads) == 3 and set(reads.values()) == {1} and not any(curves for _, curves in reads)


def test_runs_of_a_row_are_planned_once_for_all_columns_of_a_data_set(results: Path) -> None:
    requests: list[tuple[str, str]] = []

    class Counting(FakeTable):
        def row_runs(self, row: Row, dataset: str, protocol: str, seeds: Any = None) -> list[dict[str, Any]]:
            requests.append((row.label, dataset))
            return super().row_runs(row, dataset, protocol, seeds)

    columns = (*COLUMNS, Column(Cell("yacht", "", "rmse"), "yacht"))
    table = Counting("t", "", ROWS, columns, recipe=lambda *_: None, protocols=("paper",))
    aggregate(table, "paper", Records(results))
    assert sorted(requests) == sorted((row.label, dataset) for row in ROWS for dataset in ("boston", "yacht"))


def rows_held() -> int:
    """Return the number of metric rows in memory that have the form of records."""
    gc.collect()
    return sum(type(held) is dict and {"dataset", "metric", "value"} <= held.keys() for held in gc.get_objects())


def test_what_is_kept_of_records_is_small(tmp_path: Path) -> None:
    count = 36
    many.write(tmp_path, count)
    table = many.get(f"{many.PREFIX}{count}")
    before = rows_held()
    records = Records(tmp_path)
    runs = [records.get(config) for config in table.runs("paper")]
    assert len(runs) == count and all(isinstance(run, Recorded) for run in runs)
    assert len({id(run.layout) for run in runs}) == len({id(run.data) for run in runs}) == 1
    assert all(run.values.itemsize * len(run.values) < 2500 for run in runs), "203 metrics as numbers, not as rows"
    assert rows_held() <= before, "no row of any record is held"


def test_many_records_are_those_of_their_table(tmp_path: Path) -> None:
    many.write(tmp_path, 24)
    table = many.get("many-24")
    cells = aggregate(replace(table, columns=table.columns[:1]), "paper", Records(tmp_path)).flat
    assert [(cell.n, cell.expected) for cell in cells] == [(2, 2)] * 12
    assert sum(1 for _ in tmp_path.rglob("*.json")) == 24
