"""Coverage counts every published cell, and what the records reproduce of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.records import published
from reports.coverage import Coverage, coverage, markdown, text, totals
from reports.page.book import Book
from reports.records import Records
from tests.reports.fakes import Cell, Column, FakeSuite, Row, fake_table, on_own_files

PER_PAPER = {"cinquin2024": 477, "dirichlet2022": 1140, "pequignot2020": 294, "rudner2021": 32, "rudner2022": 91}
TABLE = fake_table(
    "rudner2022-1",
    (Row("MAP", "MAP", "MAP"), Row("DUQ", "DUQ [van Amersfoort et al., 2020]", None)),
    (
        Column(Cell("fashion_mnist", "", "accuracy"), "accuracy", Cell("fashion_mnist", "", "accuracy"), scale=100),
        Column(Cell("fashion_mnist", "", "ece"), "ECE", Cell("fashion_mnist", "", "ece")),
        Column(Cell("fashion_mnist", "", "brier"), "Brier"),
    ),
    paper="rudner2022", number="1",
)  # fmt: skip


def row_of(rows: list[Coverage], paper: str, table: str) -> Coverage:
    return next(row for row in rows if (row.paper, row.table) == (paper, table))


def test_every_published_cell_is_counted(tmp_path: Path) -> None:
    rows = coverage(tmp_path, FakeSuite())
    *papers, everything = totals(rows)
    assert {row.paper: row.published for row in papers} == PER_PAPER
    assert everything == Coverage("all papers", "all", 2034)
    assert row_of(rows, "rudner2022", "1").published == 48
    assert len(rows) == 37


def test_cells_are_counted_by_their_verdict(write: Callable[..., Path]) -> None:
    # Published: accuracy 91.73 ± 0.08, ECE 0.037 ± 0.001.
    results = write("MAP", "fashion_mnist", {
        ("", "accuracy"): [0.9170, 0.9175, 0.9172], ("", "ece"): [0.1, 0.11, 0.12], ("", "brier"): [0.1, 0.1, 0.1],
    })  # fmt: skip
    found = row_of(coverage(results, FakeSuite(TABLE)), "rudner2022", "1")
    assert found == Coverage("rudner2022", "1", 48, recorded=2, partial=0, reproduced=1, differing=1, undecided=0)
    words = "1 of 2 tested cells differ, about 0 would by chance"
    assert Book(FakeSuite(TABLE), Records(results)).chances == {"rudner2022": words}
    words = f"rudner2022: {words}. all papers: {words}."
    assert words in markdown([found]) and words in " ".join(text([found]).split()), "papers without a test are left out"
    write("MAP", "fashion_mnist", {("", "accuracy"): [0.9170, 0.9175, 0.9172]})
    next(results.rglob("*.json")).unlink()
    found = row_of(coverage(results, FakeSuite(TABLE)), "rudner2022", "1")
    assert (found.recorded, found.partial, found.reproduced, found.undecided) == (1, 1, 0, 1), "a split is missing"


def test_differing_cells_with_a_shown_cause_are_counted_among_those_that_differ(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = write("MAP", "fashion_mnist", {("", "accuracy"): [0.917, 0.9175, 0.9172], ("", "ece"): [0.1, 0.11, 0.12]})
    monkeypatch.setattr(Book, "causes", lambda *_: published.table("rudner2022", "1"))  # one for every cell
    found = row_of(coverage(results, FakeSuite(TABLE)), "rudner2022", "1")
    assert (found.reproduced, found.differing, found.shown) == (1, 1, 1)


def test_of_two_rows_of_one_published_row_the_first_counts(write: Callable[..., Path]) -> None:
    """Rows such as DUQ and DUQ with its own settings stand beside the same number."""
    write("MAP", "fashion_mnist", {("", "accuracy"): [0.9170, 0.9175, 0.9172]})
    results = write("DUQ", "fashion_mnist", {("", "accuracy"): [0.8, 0.81, 0.82]})
    rows = (Row("MAP", "MAP", "MAP"), Row("MAP, another way", "MAP", "DUQ"))
    for order, expected in ((rows, (1, 1, 0)), (rows[::-1], (1, 0, 1))):
        table = dataclasses.replace(TABLE, rows=order)
        found = row_of(coverage(results, FakeSuite(table)), "rudner2022", "1")
        assert (found.recorded, found.reproduced, found.differing) == expected


def test_a_single_run_decides_nothing(write: Callable[..., Path]) -> None:
    results = write("MAP", "fashion_mnist", {("", "accuracy"): [0.9173]})
    found = row_of(coverage(results, FakeSuite(TABLE)), "rudner2022", "1")
    assert (found.recorded, found.partial, found.reproduced, found.undecided) == (1, 1, 0, 1)


def test_other_protocols_count_in_their_own_column(write: Callable[..., Path]) -> None:
    results = write("MAP", "fashion_mnist", {("", "accuracy"): [0.9173, 0.9172, 0.9174]}, protocol="short")
    found = row_of(coverage(results, FakeSuite(TABLE)), "rudner2022", "1")
    assert found == Coverage("rudner2022", "1", 48, reduced=1, reduced_reproduced=1)
    turned = dataclasses.replace(TABLE, protocols=("short", "paper"))
    assert row_of(coverage(results, FakeSuite(turned)), "rudner2022", "1") == found


def test_runs_on_a_users_own_files_count_where_there_are_no_others(write: Callable[..., Path]) -> None:
    results = write("MAP", "fashion_mnist", {("", "accuracy"): [0.9173, 0.9172, 0.9174]})
    for path in on_own_files(results, "fashion_mnist/train"):
        path.unlink()
    found = row_of(coverage(results, FakeSuite(TABLE)), "rudner2022", "1")
    assert (found.recorded, found.reproduced) == (1, 1)
    write("MAP", "fashion_mnist", {("", "ece"): [0.037]})
    found = row_of(coverage(results, FakeSuite(TABLE)), "rudner2022", "1")
    assert (found.recorded, found.undecided) == (1, 1), "the two are not mixed"


def test_both_forms_have_every_table_and_the_total(tmp_path: Path) -> None:
    rows = coverage(tmp_path, FakeSuite())
    assert len(markdown(rows).splitlines()) == 2 + 2 + 37 + 6 + 2
    assert "| **all papers** | **all** | **2034** | **0** |" in markdown(rows)
    assert max(map(len, text(rows).splitlines())) <= 120
    assert text(rows).count("rudner2022") == 3
