"""Tables on terminals: no line too long, little besides numbers, and nothing left out of the table."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.records.provenance import ROOT
from benchmarks.suite import Suite
from reports import interface
from reports.aggregate import TableResult, aggregate
from reports.choice import Choice
from reports.records import Records
from reports.terminal import WIDTH, text, width
from tests.reports.fakes import Cell, Column, Row, fake_table

LONG = "A method that has a name of more than forty characters, as some have"
SETS = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine")


@pytest.fixture
def wide(write: Callable[..., Path]) -> TableResult:
    """Two methods, one of a long name, on eight data sets by two metrics."""
    for dataset in SETS:
        for k, method in enumerate(("MFVI", "MC Dropout")):
            rmse = [3.0 + k + 0.1 * i for i in range(3)]
            results = write(method, dataset, {("", "rmse"): rmse, ("", "log_posterior_predictive"): rmse})
    columns = [
        Column(Cell(d, "", m), f"{d}, {m} of all test points", Cell(d, "experiment=2", m))
        for m in ("rmse", "log_posterior_predictive") for d in SETS
    ]  # fmt: skip
    rows = (Row(LONG, "MFVI", "MFVI"), Row("MC Dropout", "MC Dropout", "MC Dropout"))
    table = fake_table(
        "wide", rows, tuple(columns), paper="pequignot2020", number="5", notes={"paper": ("A note.",) * 9}
    )
    return aggregate(table, "paper", Records(results))


@pytest.mark.parametrize("across", [None, True])
@pytest.mark.parametrize("wanted", [80, 97, 120, 200])
def test_no_line_is_longer_than_the_terminal_and_every_number_is_there(
    wide: TableResult, wanted: int, across: bool | None
) -> None:
    form = text(wide, Choice(across=across), wanted)
    assert max(map(len, form.splitlines())) <= wanted
    assert form.count("3.100 ± 0.058") == form.count("4.100 ± 0.058") == 2 * len(SETS)
    words = " ".join(form.split())
    assert all(word in words for word in (*LONG.split(), *SETS)) and "A note." not in form


def test_wider_terminals_take_fewer_lines(wide: TableResult) -> None:
    lines = [len(text(wide, width=wanted).splitlines()) for wanted in (80, 120, 200)]
    assert lines == sorted(lines, reverse=True) and lines[0] > lines[-1]


def test_a_sentence_the_verdicts_and_three_footnotes_at_most(wide: TableResult) -> None:
    *_, below = text(wide).rstrip().split("\n\n")
    said = below.splitlines()
    assert said[0].startswith("Protocol paper: mean ± standard error over 3 runs")
    assert re.search(r"published cells: \d+ with records, \d+ reproduced, \d+ differ, \d+ uninformative\.", said[1])
    assert 3 <= len(said) <= 5 and said[2].startswith("difference: ")
    assert text(wide, Choice(notes=False)).rstrip() == text(wide).rstrip().removesuffix("\n\n" + below)


def test_the_width_is_that_of_the_terminal_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, found in (("60", 80), ("100", 100), ("500", 200), ("", WIDTH)):
        monkeypatch.setenv("COLUMNS", columns)
        assert width() == found


def test_cifar10_fits_a_screen() -> None:
    found = interface.result(Suite().table("rudner2022-2"), None, None, Records(ROOT / "results", None))
    assert len(text(found).splitlines()) <= 50
