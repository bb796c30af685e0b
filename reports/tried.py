"""Experiments on cells that differ: other readings of a recipe, from tables here, and lines of ``tried.csv``.

A reading is a row of another table of the same paper with the same published number and other runs. ``tried.csv`` holds
experiments without a table: columns ``paper``, ``tables`` (numbers, separated by spaces), ``methods`` (of the published
rows, joined by ``;``), ``columns`` (labels, joined by ``;``; empty: all), ``tried``, ``source`` (the reason for the
reading), ``moved`` (its effect), ``record`` (a table here that shows it; ``-`` where no record is committed).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from benchmarks.records import published
from benchmarks.suite import Suite
from reports.causes import Cause
from reports.lists import check_names, lines_of
from reports.page.book import Book, Sheet

FILE = Path(__file__).with_name("tried.csv")
COLUMNS = ("paper", "tables", "methods", "columns", "tried", "source", "moved", "record")
MAY_BE_EMPTY = ("columns",)
NO_RECORD = "-"


@dataclass(frozen=True)
class Experiment:
    """One experiment on cells of published tables; ``where`` names its file and line."""

    paper: str
    tables: tuple[str, ...]
    methods: tuple[str, ...]
    columns: tuple[str, ...]
    tried: str
    source: str
    moved: str
    record: str
    where: str

    def concerns(self, difference: Difference) -> bool:
        """Whether the experiment covers this cell."""
        return (
            (self.paper, difference.method) in {(difference.paper, method) for method in self.methods}
            and difference.number in self.tables
            and (not self.columns or difference.column in self.columns)
        )


@dataclass(frozen=True)
class Reading:
    """Other runs of the same published number: their table, row, value and verdict."""

    table: str
    row: str
    value: str
    verdict: str


@dataclass(frozen=True)
class Difference:
    """Published cell that differs at protocol paper, with everything known of the reason."""

    paper: str
    number: str
    method: str
    row: str
    column: str
    value: str
    published: str
    verdict: str
    cause: Cause | None
    readings: tuple[Reading, ...] = ()


@cache
def load(path: Path = FILE) -> tuple[Experiment, ...]:
    """Return every experiment of the file. Raises BenchmarkError."""
    several = {"tables": None, "methods": ";", "columns": ";"}
    lines = lines_of(path, COLUMNS, MAY_BE_EMPTY, several=several)
    return tuple(Experiment(**found, where=where) for found, where in lines)


def check(experiments: Iterable[Experiment], suite: Suite) -> None:
    """Raise BenchmarkError for the first unknown paper, table, method, column or record."""
    for each in experiments:
        check_names(each.where, "paper", [each.paper], published.papers())
        cells = published.load(each.paper)
        check_names(each.where, "table", each.tables, {cell.table for cell in cells})
        check_names(each.where, "method", each.methods, {cell.method for cell in cells if cell.table in each.tables})
        names = set(suite.table_names())
        labels = {
            column.label
            for number in each.tables
            if f"{each.paper}-{number}" in names
            for column in suite.table(f"{each.paper}-{number}").columns
        }
        check_names(each.where, "column", each.columns, labels)
        check_names(each.where, "table of a record", [each.record], {*names, NO_RECORD})


class Differences:
    """Differing cells of published tables and the experiments on them, from a book's tables."""

    def __init__(self, book: Book, experiments: tuple[Experiment, ...] | None = None) -> None:
        self.book = book
        self.known = load() if experiments is None else experiments

    def experiments(self, found: Iterable[Difference]) -> dict[Experiment, list[Difference]]:
        """Return the experiments that concern any of these cells, with those cells."""
        cells = list(found)
        concerned = {each: [cell for cell in cells if each.concerns(cell)] for each in self.known}
        return {each: of_it for each, of_it in concerned.items() if of_it}

    def untried(self, found: Iterable[Difference]) -> list[Difference]:
        """Return the cells without a cause, a reading or an experiment."""
        return [
            cell
            for cell in found
            if not cell.cause and not cell.readings and not any(each.concerns(cell) for each in self.known)
        ]

    def of(self, name: str) -> list[Difference]:
        """Return the cells of a published table that differ at protocol paper."""
        table = self.book.suite.table(name)
        if name != f"{table.paper}-{table.number}" or "paper" not in table.protocols:
            return []
        sheet, found = Sheet(self.book.result(table, "paper")), []
        for i, row in enumerate(sheet.result.cells):
            for j, cell in enumerate(row):
                if cell.published is None or cell.status != "differs":
                    continue
                shown, own = sheet.columns[j].rows[i], tuple(cell.values.values())
                readings = self._readings.get((table.paper, cell.published.key), ())
                others = {
                    values: reading
                    for number, values, reading in reversed(readings)
                    if number in (None, table.number) and reading.table != name and values != own
                }
                found.append(
                    Difference(
                        table.paper,
                        table.number,
                        cell.published.method,
                        cell.row.label,
                        cell.column.label,
                        str(shown["value"]),
                        str(shown["published"]),
                        str(shown["difference"]),
                        self.book.cause(cell, "paper"),
                        tuple(reversed(others.values())),
                    )
                )
        return found

    @cached_property
    def _readings(self) -> dict[tuple[str, tuple[str, ...]], list[tuple[str | None, tuple[float, ...], Reading]]]:
        """Return every cell beside a published number: its table, its values, and its verdict."""
        found: dict[tuple[str, tuple[str, ...]], list[tuple[str | None, tuple[float, ...], Reading]]] = {}
        for table in map(self.book.suite.table, self.book.suite.table_names()):
            if not table.paper or "paper" not in table.protocols:
                continue
            sheet = Sheet(self.book.result(table, "paper"))
            for i, row in enumerate(sheet.result.cells):
                for j, cell in enumerate(row):
                    if cell.published and cell.values:
                        told = Reading(
                            table.name, cell.row.label, str(sheet.columns[j].rows[i]["value"]), cell.agreement or ""
                        )
                        place = table.paper, cell.published.key
                        found.setdefault(place, []).append((table.number, tuple(cell.values.values()), told))
        return found
