"""The page, Markdown, LaTeX and the frame say of every cell what pandas makes of the exported records: mean, standard
error, count; and of the published number the same.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pandas
import pytest

import datasets
from benchmarks import tables
from benchmarks.records import published as published_numbers
from benchmarks.records.config import run_key
from benchmarks.records.store import Store
from benchmarks.suite import Suite
from reports import interface
from reports.aggregate import TableResult, aggregate
from reports.captions import usual_n
from reports.choice import Choice
from reports.findings.claims import Rule
from reports.findings.comparisons import of
from reports.page.book import Book, Sheet
from reports.page.details import DIGITS, details
from reports.records import Records
from reports.shown import Shown, pair
from reports.tables import latex, markdown
from tests.reports import detex

SEEDS = [0, 1, 2, 3]
TABLES = (("digits", "paper"), ("pequignot2020-5", "paper"), ("rudner2022-1", "short"))


@pytest.fixture(params=TABLES, ids=" ".join)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[TableResult, Store]:
    """A table of the suite over four runs of every cell, some of which are not there."""
    name, protocol = request.param
    table, store, chance = tables.get(name), Store(tmp_path / "results"), Random(0)
    for row in table.rows:
        for dataset in table.datasets:
            columns = [column for column in table.columns if column.cell.dataset == dataset]
            planned = table.cell_runs(row, columns[0], protocol)
            n = datasets.describe(dataset, planned[0]["dataset"]["scheme"] or None).n_test if planned else 0
            for config in table.cell_runs(row, columns[0], protocol, SEEDS) if chance.random() < 0.8 else ():
                metrics = [
                    {
                        **vars(column.cell_of(row)),
                        "value": -chance.random() if "log" in column.cell.metric else chance.random(),
                        "n": n,
                    }
                    for column in columns
                    if chance.random() < 0.9
                ]
                if metrics and chance.random() < 0.9:
                    store.write(store.make(config, metrics, {}, {"fingerprint": "1", "cpu": "AMD EPYC"}))
    return aggregate(table, protocol, Records(store.root), SEEDS), store


@dataclass(frozen=True)
class Wanted:
    """Expected content of a cell in every form; shown: its spelling in printed forms."""

    mean: float
    stderr: float
    n: int
    planned: int
    shown: str


def exported(result: TableResult, store: Store, tmp_path: Path) -> dict[tuple[int, int], Wanted]:
    """Return the expected cells, computed from the exported CSV alone; cells without a run are absent."""
    interface.records(store.root, tmp_path / "records.csv")
    frame = pandas.read_csv(tmp_path / "records.csv", keep_default_na=False)
    usual, found = usual_n(result), {}
    for i, row in enumerate(result.table.rows):
        for j, column in enumerate(result.table.columns):
            keys = [run_key(config) for config in result.table.cell_runs(row, column, result.protocol, SEEDS)]
            cell = vars(column.cell_of(row))
            own = (frame[list(cell)] == list(cell.values())).all(axis=1)
            values = frame.loc[own & frame["key"].isin(keys), "value"] * column.scale
            if len(values):
                n, planned = len(values), len(keys)
                count = "" if n == planned == usual else f" ({n})" if n == planned else f" ({n}/{planned})"
                mean, error = values.mean(), values.sem()
                shown = str(Shown(*pair(mean, error, column.digits), after=count))
                found[i, j] = Wanted(mean, error, n, planned, shown)
    return found


def same(found: float | None, wanted: float) -> bool:
    """Return whether a form has the wanted number, up to the order of a sum; None or nan stands for no number."""
    none = found is None or math.isnan(found)
    return none if math.isnan(wanted) else not none and math.isclose(found, wanted, rel_tol=1e-12)


def kept(value: float) -> float:
    """Return a number with as many digits as the page keeps."""
    return float(f"{value:.{DIGITS}g}")


def rows_of(form: str, labels: list[str]) -> list[list[str]]:
    """The lines of rows in Markdown as cells; bold or not."""
    rows = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in form.splitlines()]
    bare = [[re.sub(r"^\*\*(.*?)\*\*$", r"\1", cell.strip()) for cell in row] for row in rows]
    return [row for row in bare if row[0] in labels]


def test_every_form_shows_what_the_export_gives(made: tuple[TableResult, Store], tmp_path: Path) -> None:
    result, store = made
    wanted = exported(result, store, tmp_path)
    filled = {(i, j) for i, row in enumerate(result.cells) for j, cell in enumerate(row) if cell.values}
    assert set(wanted) == filled and len(filled) > 20
    assert any(each.n < each.planned for each in wanted.values()), "some cells are partial"
    labels = [row.label for row in result.table.rows]
    down = Choice(across=False)
    for rows in (rows_of(markdown(result), labels), detex.cells_of(latex(result, down))):
        found: dict[str, list[str]] = {}
        for label, *cells in rows:
            found.setdefault(label, []).extend(cells)  # block by block, each a run of the table's columns
        for i, label in enumerate(labels):
            texts = found.get(label, found.get(label.replace("-", "−"), []))
            assert texts or not any((i, j) in wanted for j in range(len(result.table.columns)))
            shown = [text for text in texts if not text.startswith(("—", "---"))]
            assert shown == [wanted[i, j].shown for j in range(len(result.table.columns)) if (i, j) in wanted]


def test_the_page_and_the_frame_give_the_same_numbers(made: tuple[TableResult, Store], tmp_path: Path) -> None:
    result, store = made
    wanted = exported(result, store, tmp_path)
    records = Records(store.root)
    sheet = Sheet(result)
    page = json.loads(json.dumps(details(sheet, Book(Suite(), records), {})["cells"]))
    frame = interface.aggregate(result.table.name, result.protocol, SEEDS, results=store.root, state=None)
    width, compared = len(result.table.columns), 0
    assert len(frame) == len(result.table.rows) * width
    for place, row in enumerate(frame.to_dict("records")):
        i, j = divmod(place, width)
        spec, column = result.table.rows[i], result.table.columns[j]
        assert (row["row"], row["column"], row["metric"]) == (spec.label, column.label, column.cell_of(spec).metric)
        expected, drawn = wanted.get((i, j)), page[i][j] or {}
        published = numbers(result).get(column.published_key(spec))
        if expected:
            for form, spelt in ((row, float), (drawn, kept)):
                assert same(form["mean"], spelt(expected.mean)) and same(form["stderr"], spelt(expected.stderr))
            assert (row["n"], row["expected"], drawn["n"], drawn["expected"]) == 2 * (expected.n, expected.planned)
            assert drawn["value"] == expected.shown
        else:
            assert math.isnan(row["mean"]) and drawn.get("mean") is None and row["n"] == 0
        paper = math.nan if published is None else published.mean
        assert same(row["published"], paper) and same((drawn.get("paper") or {}).get("mean"), kept(paper))
        assert not drawn or row["verdict"] == drawn["verdict"]
        compared += bool(expected) + bool(published)
    assert compared > 20


def numbers(result: TableResult) -> dict:
    """The published numbers of a table, as the CSV files have them."""
    table = result.table
    return published_numbers.table(table.paper, table.number) if table.paper else {}


def test_claims_compare_what_the_export_gives(made: tuple[TableResult, Store], tmp_path: Path) -> None:
    """The effect of a claim is the mean over the splits and seeds that both rows have in the export."""
    result, store = made
    interface.records(store.root, tmp_path / "records.csv")
    frame = pandas.read_csv(tmp_path / "records.csv", keep_default_na=False)
    table, filled = result.table, [cells[0].row for cells in result.cells if sum(cell.n > 2 for cell in cells) > 2]
    first, second = filled[:2]
    compared = 0
    for j, column in enumerate(table.columns):
        runs = []
        for row in (first, second):
            keys = {run_key(config): config["seed"] for config in table.cell_runs(row, column, result.protocol, SEEDS)}
            own = (frame[list(vars(column.cell_of(row)))] == list(vars(column.cell_of(row)).values())).all(axis=1)
            found = frame[own & frame["key"].isin(keys)]
            runs.append(pandas.Series(found["value"].to_numpy() * column.scale, [keys[key] for key in found["key"]]))
        gaps = (runs[0] - runs[1]).dropna()
        cell = column.published or column.cell
        pattern = f"{cell.dataset}:{cell.condition}:{cell.metric}"
        rule = Rule((table.name,), (first.label,), (second.label,), (pattern,), "each", 1)
        each = next(one for one in of(rule, {table.name: result}, False) if one.place[1] == j)
        tested = each.tested()
        assert isinstance(tested, str) == (len(gaps) < 2)
        if not isinstance(tested, str):
            assert tested.gap == pytest.approx(gaps.mean(), rel=1e-9) and tested.n == len(gaps)
            compared += 1
    assert compared > 2
