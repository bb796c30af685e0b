"""Tests of the attempts to explain differing cells: they name existing tables, and the page is current."""

from __future__ import annotations

import dataclasses
import math
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.records import published
from benchmarks.records.provenance import ROOT
from benchmarks.suite import Suite
from reports.aggregate import aggregate
from reports.causes import Cause, Tally
from reports.cli import DOCS, build
from reports.page.book import Book
from reports.page.forest import interval
from reports.page.site import write as write_site
from reports.records import Records
from reports.tried import COLUMNS, RENEW, Differences, Experiment, cause, check, load, nearest_in_words, page
from tests.reports.fakes import Cell, Column, FakeSuite, Row, fake_table
from tests.reports.page.small import Suite as SmallSuite
from tests.reports.page.small import records as small_records
from tests.reports.page.small import table as small_table

RMSE = Column(Cell("boston", "", "rmse"), "boston", published=Cell("boston", "experiment=2", "rmse"))
MINE = fake_table(
    "pequignot2020-5", (Row("MC Dropout", "MC Dropout", "MC Dropout"),), (RMSE,), paper="pequignot2020", number="5"
)
READING = dataclasses.replace(
    MINE, name="pequignot2020-5-wide", rows=(Row("MC Dropout, wide", "MC Dropout", "MFVI"),), number=None
)
TRIED = Experiment(
    "pequignot2020", ("5",), ("MC Dropout",), (), "twice the steps", "App. E", "Nothing moved", "-", "tried.csv, line 2"
)


@pytest.fixture
def records(write: Callable[..., Path]) -> Records:
    write("MC Dropout", "boston", {("", "rmse"): [5.0, 5.1, 5.2]})
    return Records(write("MFVI", "boston", {("", "rmse"): [4.8, 4.81, 4.82]}))


def book(records: Records, *tables: object) -> Book:
    suite = FakeSuite(*tables)
    suite.table_names = lambda: list(suite.tables)  # type: ignore[method-assign]
    return Book(suite, records)


def test_the_committed_page_is_what_the_committed_records_give(tmp_path: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z", "results"], cwd=ROOT, capture_output=True, text=True)
    names = [name for name in listed.stdout.split("\0") if name.endswith(".json")]
    if listed.returncode or not names:
        pytest.skip("no checkout of git, so no committed records are known")
    for name in names:
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            place.symlink_to(ROOT / name)
    text = page(Suite(), Records(tmp_path / "results"))
    assert (DOCS / "causes.md").read_text(encoding="utf-8") == text, f"docs/causes.md is not current; renew it: {RENEW}"


def test_divergences_of_pequignot2020_differ_by_the_entropies_that_they_subtract() -> None:
    records = Records(ROOT / "results")
    divergences, entropies = (aggregate(Suite().table(f"pequignot2020-{n}"), "paper", records).flat for n in "41")
    entropy = {(each.row.label, each.column.cell.dataset, each.column.cell.condition): each for each in entropies}
    found = {}
    for cell in filter(lambda cell: cell.published and cell.n > 1, divergences):
        space, pair = cell.column.cell.condition.split(";")
        first = "HMC" if pair.startswith("pair=HMC") else cell.row.label
        subtracted = entropy[first, cell.column.cell.dataset, space]
        away = [cell.mean - cell.published.mean]
        away.append(away[0] + subtracted.mean - subtracted.published.mean)
        errors = [
            [cell.stderr, cell.published.stderr],
            [cell.stderr, cell.published.stderr, subtracted.published.stderr],
        ]
        names = cell.row.label, cell.column.label
        found[names] = [size / math.hypot(*(e or 0 for e in error)) for size, error in zip(away, errors, strict=True)]
    named = [(method, column) for each in load() if "cross term" in each.tried for column in each.columns
             for method in each.methods]  # fmt: skip
    assert len(found) == 60 and len(named) == 8
    assert all(abs(before) > 2.6 > 1.5 > abs(after) for before, after in map(found.__getitem__, named))
    assert [sum(abs(size) > 2.6 for size in sizes) for sizes in zip(*found.values())] == [14, 4]


def test_a_differing_cell_has_its_readings_and_experiments(records: Records) -> None:
    found = Differences(book(records, MINE, READING), (TRIED,))
    (cell,) = found.of("pequignot2020-5")
    assert (cell.target.method, cell.cell.column.label, cell.cause) == ("MC Dropout", "boston", None)
    assert str(cell.shown["value"]) == "5.100 ± 0.058"
    (reading,) = cell.readings
    assert reading.table == "pequignot2020-5-wide" and reading.value == "4.8100 ± 0.0058"
    assert (reading.cell.agreement, reading.cell.status) == ("differs, worse", "differs")
    assert interval(cell.cell) == pytest.approx((5.1 - 0.2 / 3**0.5, 5.1 + 0.2 / 3**0.5)), "two standard errors"
    assert found.experiments([cell]) == {TRIED: [cell]} and found.untried([cell]) == []
    assert found.of("pequignot2020-5-wide") == []


@pytest.mark.parametrize(
    "changes", [{"tables": ("7",)}, {"methods": ("MFVI",)}, {"columns": ("yacht",)}, {"paper": "rudner2021"}]
)
def test_experiments_on_other_cells_do_not_count(records: Records, changes: dict[str, object]) -> None:
    found = Differences(book(records, MINE), (dataclasses.replace(TRIED, **changes),))
    cells = found.of("pequignot2020-5")
    assert found.experiments(cells) == {} and found.untried(cells) == cells


def test_the_page_names_the_nearest_readings_and_counts_the_others(
    write: Callable[..., Path], records: Records
) -> None:
    others = {"VIP": [4.0, 4.01], "HMC": [4.2, 4.21], "Laplace": [4.5, 4.51]}
    for method, values in others.items():
        write(method, "boston", {("", "rmse"): values})
    rows = tuple(Row(f"with {method}", "MC Dropout", method) for method in others)
    again = dataclasses.replace(READING, rows=(*READING.rows, *rows))
    (cell,) = Differences(book(records, MINE, again), ()).of("pequignot2020-5")
    assert [each.cell.row.label for each in cell.nearest] == [
        "with VIP",
        "with HMC",
        "with Laplace",
        "MC Dropout, wide",
    ]
    words = nearest_in_words(cell)
    assert (
        words.startswith("4.0050 ± 0.0050 (2/3), no verdict (with VIP")
        and words.endswith("; 1 more")
        and words.count("; ") == 3
    )
    far, near = cell.nearest[-1], cell.nearest[0]
    target = dataclasses.replace(far.cell.published, mean=far.cell.mean)
    far = dataclasses.replace(far, cell=dataclasses.replace(far.cell, published=target, range_of_column=9.0))
    chosen = dataclasses.replace(cell, readings=(near, far)).nearest
    assert chosen == [far, near], "what reproduces the number comes first, however far"


def test_a_cause_says_how_many_readings_agree_with_the_number(records: Records) -> None:
    """One that no other number of its column is told from counts by the rule of causes: 3.41 is published, 5.1 ours."""
    (cell,) = Differences(book(records, MINE, READING), ()).of("pequignot2020-5")
    statuses = ("reproduced", "differs", "undecided")
    near = [
        dataclasses.replace(cell.cell, values=dict(enumerate((3.41 - d, 3.41, 3.41 + d))), range_of_column=0.02)
        for d in (0.01, 2.0)
    ]
    assert [each.status for each in near] == ["uninformative"] * 2
    counted = [*(SimpleNamespace(status=status, published=None) for status in statuses), *near]
    several: Any = tuple(SimpleNamespace(cell=each) for each in counted)
    wide = Cause("pequignot2020", ("5",), "MC Dropout", "a-table", "a row", (), "a wide network", Tally(0, 1, 1))
    words = cause(dataclasses.replace(cell, cause=wide, readings=several))
    assert words.startswith("a wide network (a row, table a-table; 0 of 1 cells of the row differ with it, 1 without; ")
    assert words.endswith("; 2 of 4 tested readings agree with the number)") and cause(cell) == "-"


def test_the_same_runs_under_another_name_are_no_reading(records: Records) -> None:
    again = dataclasses.replace(MINE, name="uci", number=None)
    other_number = dataclasses.replace(READING, number="7")
    (cell,) = Differences(book(records, MINE, again, other_number), ()).of("pequignot2020-5")
    assert cell.readings == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"paper": "pequignot2021"}, "no paper 'pequignot2021'; did you mean 'pequignot2020'"),
        ({"tables": ("50",)}, "no table '50'"),
        ({"methods": ("MC Dropuot",)}, "no method 'MC Dropuot'; did you mean 'MC Dropout'"),
        ({"columns": ("bostom",)}, "no column 'bostom'; did you mean 'boston'"),
        ({"record": "nowhere"}, "no table of a record 'nowhere'"),
    ],
)
def test_what_is_not_there_is_named_with_file_and_line(changes: dict[str, object], message: str) -> None:
    wrong = dataclasses.replace(TRIED, **changes)
    with pytest.raises(BenchmarkError, match=re.escape(f"tried.csv, line 2: {message}")):
        check([wrong], Suite())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("paper,table\n", "expected the columns paper,tables,methods"),
        (",".join(COLUMNS) + "\na,b,c\n", "line 2: expected 8 columns, found 3"),
        (",".join(COLUMNS) + "\na,5,c,,,s,m,-\n", "line 2: tried is empty"),
    ],
)
def test_a_malformed_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "tried.csv"
    file.write_text(text)
    with pytest.raises(BenchmarkError, match=re.escape("tried.csv")) as raised:
        load(file)
    assert message in str(raised.value)


def test_the_command_writes_the_page(
    records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., tuple[int, str, str]]
) -> None:
    monkeypatch.setattr("reports.tried.load", lambda: (TRIED,))
    suite, file = book(records, MINE, READING).suite, tmp_path / "causes.md"
    status, output, _ = call(build(suite), "causes", "--results", str(records.store.root), "--file", str(file))
    assert not status and "causes.md" in output
    text = file.read_text(encoding="utf-8")
    assert "| [pequignot2020-5](#pequignot2020-5) | 1 | 0 | 1 | 0 |" in text
    number = published.table("pequignot2020", "5")["boston", "experiment=2", "MC Dropout", "rmse"]
    assert f"| MC Dropout | boston | 5.100 ± 0.058 | {' ± '.join(number.printed)} |" in text
    assert "4.8100 ± 0.0058, differs, worse (MC Dropout, wide, table pequignot2020-5-wide) |" in text
    assert (
        "- MC Dropout (boston): twice the steps. Source: App. E. Nothing moved. No record is committed." in text
        and "Not tried" not in text
    )
    monkeypatch.setattr("reports.tried.load", lambda: ())
    assert "- Not tried: MC Dropout, boston." in page(book(records, MINE).suite, records)


@pytest.mark.parametrize(
    ("table", "protocol", "row", "column", "words"),
    [
        ("rudner2022-1-dropout", "short", "MC Dropout, rate .25", "ECE", "rises to {:.3f} and"),
        ("rudner2022-1-dropout", "short", "MC Dropout, rate .5", "ECE", "and {:.3f} (0.007 to 0.010 with 0.1;"),
        ("rudner2022-1", "paper", "FSVI (KMNIST)", "ECE", "near ours (92.6 %, {:.3f}, 99.7"),
        ("rudner2022-1", "paper", "FSVI (KMNIST)", "AUROC % NotMNIST", "99.7 and {:.1f} %), not with"),
        ("rudner2022-1", "paper", "Deep Ensemble of MAP", "accuracy %", "nothing moves ({:.1f} %, without"),
        ("cinquin2024-1-jitter", "paper", "TFSVI, last layer", "energy", "Energy: log-likelihood from {:.2f} to"),
    ],
)
def test_numbers_of_committed_records_are_theirs(table: str, protocol: str, row: str, column: str, words: str) -> None:
    cells = aggregate(Suite().table(table), protocol, Records(ROOT / "results")).flat
    (mean,) = (cell.mean for cell in cells if (cell.row.label, cell.column.label) == (row, column))
    assert any(words.format(mean) in each.moved for each in load()), words.format(mean)


def test_the_site_shows_them_on_the_page_of_their_table(tmp_path: Path) -> None:
    write_site(SmallSuite(small_table()), Records(small_records(tmp_path).root), tmp_path / "site", figures=False)
    text = (tmp_path / "site" / "tables" / "pequignot2020-5.html").read_text(encoding="utf-8")
    section = text[text.index('<details class="settings" id="causes"') :]
    cells = Differences(Book(SmallSuite(small_table()), Records(tmp_path / "results"))).of("pequignot2020-5")
    assert cells and len(re.findall('<figure class="forest"', section[: section.index("</details>")])) == len(cells)
