"""Aggregated tables under every protocol with records, and their published cells."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmarks.records import published
from benchmarks.records.form import slug
from benchmarks.suite import Suite
from benchmarks.sweep.plan import MEANINGLESS
from benchmarks.tables.external import with_external_rows
from reports.aggregate import CellResult, TableResult, aggregate
from reports.agreement import chance
from reports.causes import Cause, shown
from reports.layout import ShownColumn, columns_of
from reports.records import Records, recorded

STATUSES = {
    "reproduced": "reproduced: a test tells no difference",
    "shown": "differs, cause shown by an experiment here",
    "differs": "differs",
    "uninformative": "uninformative: the test cannot tell half of the range of the column's published numbers",
    "undecided": "no verdict: one run, splits missing, no published error, or a time of another machine",
    "reduced": "recorded under a reduced protocol only",
    "missing": "missing",
}

TESTED = ("reproduced", "shown", "differs", "uninformative")
"""Statuses with a test behind them."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """Table under one protocol, with columns as in every other form."""

    result: TableResult

    @property
    def table(self) -> Any:
        return self.result.table

    @property
    def protocol(self) -> str:
        return self.result.protocol

    @cached_property
    def columns(self) -> list[ShownColumn]:
        return columns_of(self.result)

    @cached_property
    def shown(self) -> list[int]:
        """Places of the columns that are shown."""
        return [j for j, column in enumerate(self.columns) if column.planned]

    @property
    def datasets(self) -> list[str]:
        """Data sets of these columns."""
        return list(dict.fromkeys(self.table.columns[j].cell.dataset for j in self.shown))

    @property
    def metrics(self) -> list[str]:
        """Metrics of these columns."""
        return list(dict.fromkeys(self.columns[j].metric for j in self.shown))

    @property
    def filled(self) -> int:
        """Number of cells with a value."""
        return sum(bool(cell.values) for cell in self.result.flat)

    @property
    def file(self) -> str:
        """Name of the file with its details."""
        return f"data/{slug(self.table.name)}-{slug(self.protocol)}.js"


@dataclass(frozen=True)
class Square:
    """One published cell in the picture of its table: its place, its status, its cell here, and the p-value of the test
    behind a verdict."""

    row: int
    column: int
    status: str
    name: str
    p: float | None = None


@dataclass(frozen=True)
class Picture:
    """Published table as a picture: a square for every published cell."""

    paper: str
    number: str
    name: str
    title: str
    squares: tuple[Square, ...]

    def count(self, status: str) -> int:
        """Return the number of cells with this status."""
        return sum(square.status == status for square in self.squares)

    @property
    def size(self) -> tuple[int, int]:
        """Numbers of columns and rows."""
        return 1 + max(s.column for s in self.squares), 1 + max(s.row for s in self.squares)


def _place(table: Any) -> tuple[int, str, int, str]:
    if not table.is_published:
        return 1 + bool(table.paper), "", 0, ""
    return 0, table.paper, len(table.number), table.number


class Book:
    """Content of the site about a suite's tables, from the records alone."""

    def __init__(self, suite: Suite, records: Records) -> None:
        self.suite, self.records = suite, records
        self._results: dict[tuple[str, str], TableResult] = {}
        self._causes: dict[tuple[str, str], dict[tuple[str, ...], Cause]] = {}

    def result(self, table: Any, protocol: str) -> TableResult:
        """Return a table under a protocol, aggregated as for every other form."""
        place = table.name, protocol
        if place not in self._results:
            self._results[place] = aggregate(table, *recorded(table, protocol, self.records))
        return self._results[place]

    def results(self, table: Any) -> dict[str, TableResult]:
        """Return a table under each of its protocols whose numbers mean something."""
        return {name: self.result(table, name) for name in table.protocols if name != MEANINGLESS}

    @cached_property
    def sheets(self) -> dict[str, list[Sheet]]:
        """For each table, its default protocol and the ones with records; the one that other forms show comes first.

        The papers' tables come first, by number, then tables of no paper, then the papers' tables by other settings.
        """
        found: dict[str, list[Sheet]] = {}
        tables = list(map(self.suite.table, self.suite.table_names()))
        for table in sorted(with_external_rows(tables, self.suite, self.records.store), key=_place):
            always = recorded(table, None, self.records)[0], table.default_protocol
            every = [Sheet(self.result(table, name)) for name in dict.fromkeys((*always, *table.protocols))]
            found[table.name] = [sheet for sheet in every if sheet.protocol in always or sheet.filled]
        return found

    @cached_property
    def flat(self) -> list[Sheet]:
        """Return every sheet except smoke runs."""
        return [sheet for sheets in self.sheets.values() for sheet in sheets if sheet.protocol != MEANINGLESS]

    @cached_property
    def problems(self) -> list[str]:
        """Return the files that do not count, with reasons, without repeats."""
        return list(dict.fromkeys(problem for sheet in self.flat for problem in sheet.result.problems))

    @cached_property
    def pictures(self) -> list[Picture]:
        """Return every published table, with one square for each of its cells."""
        return [self._picture(*each) for each in published_tables()]

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many published cells have which status."""
        return {status: sum(picture.count(status) for picture in self.pictures) for status in STATUSES}

    @cached_property
    def chances(self) -> dict[str, str]:
        """How many tested cells of every paper differ, and how many would by chance, in words."""
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for picture in self.pictures:
            counts[picture.paper].update(square.status for square in picture.squares)
        return {
            paper: chance(found["differs"] + found["shown"], tested)
            for paper, found in counts.items()
            if (tested := sum(found[status] for status in TESTED))
        }

    def _picture(self, paper: str, number: str) -> Picture:
        left, name = dict(published.table(paper, number)), f"{paper}-{number}"
        squares, title = [], f"Table {number}"
        if name in self.suite.table_names():
            table = self.suite.table(name)
            title = table.title
            found = statuses(self.results(table), self.causes(paper, number))
            rows = [row for row in table.rows if any(column.published_key(row) in left for column in table.columns)]
            for i, row in enumerate(rows):
                for j, column in enumerate(table.columns):
                    key = column.published_key(row)
                    if key in left:
                        del left[key]
                        status, cell = found.get(key, ("missing", None))
                        test = cell.comparison if cell and status in TESTED else None
                        squares.append(Square(i, j, status, f"{row.label}, {column.label}", test.p if test else None))
        below = 1 + max((square.row for square in squares), default=-1)
        width = max((1 + square.column for square in squares), default=12)
        for place, key in enumerate(left):  # no recipe here makes these
            squares.append(Square(below + place // width, place % width, "missing", ", ".join(filter(None, key))))
        return Picture(paper, number, name if name in self.suite.table_names() else "", title, tuple(squares))

    def causes(self, paper: str, number: str) -> dict[tuple[str, ...], Cause]:
        """Return the shown causes of differing cells of a published table, by the keys of their numbers."""
        place, name = (paper, number), f"{paper}-{number}"
        if place not in self._causes:
            table = self.suite.table(name) if name in self.suite.table_names() else None
            flat = self.result(table, "paper").flat if table and "paper" in table.protocols else []
            self._causes[place] = shown(flat, paper, number, self.suite, self.records)
        return self._causes[place]

    def cause(self, cell: CellResult, protocol: str) -> Cause | None:
        """Return the shown cause of a cell's difference."""
        if cell.published is None or protocol != "paper" or cell.status != "differs":
            return None
        return self.causes(cell.published.paper, cell.published.table).get(cell.published.key)

    def status(self, cell: CellResult, protocol: str) -> str:
        """Return the status of a published cell, as STATUSES names it; empty for other cells."""
        return "shown" if self.cause(cell, protocol) else cell.status


def published_tables() -> list[tuple[str, str]]:
    """Return paper and number of every published table, in order."""
    numbers = {(cell.paper, cell.table) for paper in published.papers() for cell in published.load(paper)}
    return sorted(numbers, key=lambda each: (each[0], int(each[1])))


def statuses(
    results: Mapping[str, TableResult], causes: Container[tuple[str, ...]]
) -> dict[tuple[str, ...], tuple[str, CellResult]]:
    """Return the status of every published cell with records, by key, and the cell behind it.

    results: the table by protocol, without protocol smoke; causes: keys of cells whose difference is explained if there
    is one. Protocol paper precedes the reduced ones, and the first of several rows of one published row the others.
    """
    found: dict[tuple[str, ...], tuple[str, CellResult]] = {}
    for protocol in sorted(results, key=lambda name: name == "paper"):
        for cell in reversed(results[protocol].flat):
            if cell.published and cell.values:
                status = cell.status if protocol == "paper" else "reduced"
                explained = status == "differs" and cell.published.key in causes
                found[cell.published.key] = "shown" if explained else status, cell
    return found
