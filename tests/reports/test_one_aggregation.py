"""Markdown and LaTeX say of every cell what pandas makes of the exported records: mean, standard error, count."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pandas
import pytest

from benchmarks import tables
from benchmarks.commands import export
from benchmarks.records.config import run_key
from benchmarks.records.store import Store
from reports.aggregate import TableResult, aggregate
from reports.captions import usual_n
from reports.choice import Choice
from reports.layout import pair
from reports.records import Records
from reports.tables import latex, markdown
from tests.reports import detex

SEEDS = [0, 1, 2, 3]
TABLES = ("digits", "pequignot2020-5")


@pytest.fixture(params=TABLES)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[TableResult, Store]:
    """A table of the suite over four runs of every cell, some of which are not there."""
    table, store, chance = tables.get(request.param), Store(tmp_path / "results"), Random(0)
    for row in table.rows:
        for dataset in table.datasets:
            columns = [column for column in table.columns if column.cell.dataset == dataset]
            for config in table.cell_runs(row, columns[0], "paper", SEEDS) if chance.random() < 0.8 else ():
                metrics = [
                    {**vars(column.cell_of(row)), "value": chance.gauss(0.5, 0.1), "n": 100}
                    for column in columns
                    if chance.random() < 0.9
                ]
                if metrics and chance.random() < 0.9:
                    store.write(store.make(config, metrics, {}, {"fingerprint": "1", "cpu": "AMD EPYC"}))
    return aggregate(table, "paper", Records(store.root), SEEDS), store


def printed(result: TableResult, store: Store, tmp_path: Path) -> dict[tuple[int, int], str]:
    """What each cell has to show, from the exported CSV alone; cells without a run are absent."""
    export.write(store, tmp_path / "records.csv")
    frame = pandas.read_csv(tmp_path / "records.csv", keep_default_na=False)
    usual, shown = usual_n(result), {}
    for i, row in enumerate(result.table.rows):
        for j, column in enumerate(result.table.columns):
            keys = [run_key(config) for config in result.table.cell_runs(row, column, "paper", SEEDS)]
            cell = vars(column.cell_of(row))
            own = (frame[list(cell)] == list(cell.values())).all(axis=1)
            values = frame.loc[own & frame["key"].isin(keys), "value"] * column.scale
            if len(values):
                n, asked = len(values), len(keys)
                count = "" if n == asked == usual else f" ({n})" if n == asked else f" ({n}/{asked})"
                shown[i, j] = pair(values.mean(), values.sem(), column.digits) + count
    return shown


def rows_of(form: str, labels: list[str]) -> list[list[str]]:
    """The lines of rows in Markdown as cells; bold or not."""
    rows = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in form.splitlines()]
    bare = [[re.sub(r"^\*\*(.*?)\*\*$", r"\1", cell.strip()) for cell in row] for row in rows]
    return [row for row in bare if row[0] in labels]


def test_every_form_shows_what_the_export_gives(made: tuple[TableResult, Store], tmp_path: Path) -> None:
    result, store = made
    expected = printed(result, store, tmp_path)
    filled = {(i, j) for i, row in enumerate(result.cells) for j, cell in enumerate(row) if cell.values}
    assert set(expected) == filled and len(filled) > 20
    labels = [row.label for row in result.table.rows]
    down = Choice(across=False)
    for rows in (rows_of(markdown(result), labels), detex.cells_of(latex(result, down))):
        found: dict[str, list[str]] = {}
        for label, *cells in rows:
            found.setdefault(label, []).extend(cells)  # block by block, each a run of the table's columns
        for i, label in enumerate(labels):
            texts = found.get(label, found.get(label.replace("-", "−"), []))
            assert texts or not any((i, j) in expected for j in range(len(result.table.columns)))
            shown = [text for text in texts if not text.startswith(("—", "---"))]
            assert shown == [expected[i, j] for j in range(len(result.table.columns)) if (i, j) in expected]
