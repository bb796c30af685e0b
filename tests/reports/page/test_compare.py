"""Two methods compared: by the tests of the tables, each column once, protocols apart; and what the search finds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import tables
from benchmarks.suite import Suite as RealSuite
from reports.figures.catalogue import FIGURES
from reports.findings.page import of_book
from reports.findings.words import flat
from reports.labels import direction
from reports.page.book import Book
from reports.page.compare import comparisons, kind
from reports.page.methods import Methods
from reports.page.search import entries
from reports.page.site import table_page
from reports.records import Records
from tests.reports.page.reading import Page, details
from tests.reports.page.small import HOSTILE, Suite, records, site, table

A, B = [2.0, 2.1, 2.2], [3.0, 3.1, 3.25]


def compared(book: Book) -> dict:
    return comparisons(book, Methods(book), table_page)


def test_a_comparison_is_the_test_of_the_table(write: Callable[..., Path]) -> None:
    for method, values in (("MC Dropout", B), ("Ensemble", A), (HOSTILE, [2.0])):
        results = write(method, "boston", {("", "rmse"): values})
    write("Ensemble", "boston", {("", "rmse"): [9.0, 9.0, 9.0]}, protocol="short")
    book = Book(Suite(table()), Records(results))
    (sheet,) = compared(book)["sheets"]  # nothing is compared with the run of protocol short
    assert (sheet["protocol"], sheet["reduced"], len(sheet["columns"])) == ("paper", False, 1)
    (column,) = sheet["columns"]
    result = book.sheets["pequignot2020-5"][0].result
    test = result.tests[0][0, 1]
    assert column["pairs"] == [[0, 1, -1, float(f"{test.paired.p:.2g}"), 3], [0, 2], [1, 2]]
    assert test.apart and [row[0].bold for row in result.cells] == [False, True, False, False]
    assert column["values"][1] == "2.100 ± 0.058" and (column["kind"], column["place"]) == ("error", 0)


def test_a_difference_that_the_test_leaves_open_is_not_told_apart(write: Callable[..., Path]) -> None:
    for method, values in (("MC Dropout", [2.0, 3.0, 2.2]), ("Ensemble", A)):
        results = write(method, "boston", {("", "rmse"): values})
    (sheet,) = compared(Book(Suite(table()), Records(results)))["sheets"]
    assert sheet["columns"][0]["pairs"][0][2] == 0


def test_a_difference_that_holms_correction_leaves_open_is_not_told_apart(write: Callable[..., Path]) -> None:
    """0.3 / (0.1 sqrt(1/3 + 1/9)) has p = 0.046 by two degrees of freedom; a third row makes three pairs of them."""
    values = {"MC Dropout": [2.0, 2.1, 2.2], "Ensemble": [2.3, 2.5, 2.4], HOSTILE: [2.15, 2.4, 2.1]}
    for method, each in values.items():
        results = write(method, "boston", {("", "rmse"): each})
    (sheet,) = compared(Book(Suite(table()), Records(results)))["sheets"]
    found = {(i, k): (better, p) for i, k, better, p, _ in sheet["columns"][0]["pairs"]}
    assert found[0, 1] == (0, 0.046) and all(better == 0 for better, _ in found.values())


def test_no_row_is_bold_that_loses_a_comparison(tmp_path: Path) -> None:
    book = Book(Suite(table()), Records(records(tmp_path).root))
    lost = set()
    for sheet in compared(book)["sheets"]:
        for column in sheet["columns"]:
            lost |= {(column["place"], i if better < 0 else k) for i, k, better, *_ in column["pairs"] if better}
    result = book.sheets["pequignot2020-5"][0].result
    bold = {(j, i) for i, row in enumerate(result.cells) for j, cell in enumerate(row) if cell.bold}
    assert lost and bold and not lost & bold


def test_runs_that_two_tables_show_are_compared_once(tmp_path: Path) -> None:
    known = Records(records(tmp_path).root)
    alone = compared(Book(Suite(table()), known))
    both = compared(Book(Suite(table(), replace(table(), name="pequignot2020-5-again")), known))
    assert both == alone


def test_columns_that_rank_nothing_are_left_out(write: Callable[..., Path]) -> None:
    for method, values in (("MC Dropout", B), ("Ensemble", A)):
        results = write(method, "boston", {("", "rmse"): values})
    columns = tuple(replace(column, compared=False) for column in table().columns)
    assert compared(Book(Suite(replace(table(), columns=columns)), Records(results)))["sheets"] == []


def test_every_metric_with_a_better_side_has_a_kind() -> None:
    metrics = {column.cell.metric for name in tables.names() for column in tables.get(name).columns}
    assert not {metric for metric in metrics if direction(metric) and kind(metric) == "other"}
    assert kind("ood_accuracy") == "out of distribution" and kind("training_seconds") == "cost"
    assert kind("gaussian_log_predictive") == "likelihood"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    site(folder)
    return folder / "site"


def test_every_address_of_the_search_leads_somewhere(small: Path) -> None:
    found = details(small / "data/search.js")
    assert {entry[0] for entry in found} >= {"table", "method", "data set", "metric", "figure"}
    pages = {str(path.relative_to(small)): Page(path) for path in small.rglob("*.html")}
    for _, _, _, address, _ in found:
        file, _, name = address.partition("#")
        assert file in pages and (not name or name.startswith("find=") or name in pages[file].names), address
    assert ["data set", "boston", "in pequignot2020-5", "tables/index.html#find=boston", ""] in found
    listed = (small / "tables/index.html").read_text()
    assert re.search(r'<td class="measures" data-search="[^"]*boston[^"]*RMSE', listed)
    assert ".sheet[hidden] { display: block }" in listed and "comparisons need JavaScript" in listed


def test_the_search_has_every_table_method_and_claim() -> None:
    book = Book(RealSuite(), Records("nowhere"))
    findings = flat(of_book(book))
    figures = [vars(figure) | {"protocol": "paper"} for figure in FIGURES.values()]
    found = entries(book, Methods(book), findings, figures, table_page)
    assert not [entry for entry in found if "None" in entry[4].split()], "figures after no paper have no word for it"
    titles = {kind: {entry[1] for entry in found if entry[0] == kind} for kind in ("table", "method", "claim")}
    assert titles["table"] == set(book.suite.table_names())
    assert titles["method"] == set(Methods(book).names)
    assert titles["claim"] == {each.claim.words for each in findings}
