"""Page of a method: its parts with equations, all its measurements, its ranks."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from benchmarks.commands.inspection import compact
from benchmarks.commands.parts import about
from benchmarks.records.form import slug
from reports.aggregate import CellResult
from reports.labels import side
from reports.origins import CellRuns
from reports.page.book import Book, Sheet
from reports.page.details import COST
from reports.page.ranks import Ranking

CHOICES = {
    "family": ("q", "how a random function is drawn"),
    "divergence": ("D", "how two distributions over functions are compared"),
    "prior": ("p", "what functions look like before data"),
    "context": ("C", "at which inputs functions are compared"),
    "weight": ("w", "how much the comparison counts"),
    "likelihood": ("p(y | f)", "what observations are, given a function"),
    "training": ("", "how parameters are found"),
    "fit": ("", "what is done to trained parameters before they predict"),
}
EQUATIONS = Path(__file__).with_name("equations.csv")
ALWAYS = 4  # parts that every method has; the others are shown where a method sets them


@dataclass(frozen=True)
class Choice:
    """Part of a method: its name, its description (with equation and source), its hyper-parameters."""

    kind: str
    symbol: str
    question: str
    part: str
    about: str
    options: str
    equation: str
    source: str


@cache
def equations() -> dict[tuple[str, str], tuple[str, str]]:
    """Return equation and source of parts that have one, by kind and name."""
    with EQUATIONS.open(newline="", encoding="utf-8") as file:
        return {(row["kind"], row["part"]): (row["equation"], row["source"]) for row in csv.DictReader(file)}


@dataclass(frozen=True)
class Measured:
    """Cell of a method: the sheet that shows it, and its row and column there."""

    sheet: Sheet
    i: int
    j: int

    @property
    def cell(self) -> CellResult:
        return self.sheet.result.cells[self.i][self.j]

    @property
    def runs(self) -> CellRuns:
        """All runs of its row on its data set."""
        return self.sheet.result.runs[self.cell.row, self.cell.column.cell.dataset]

    @property
    def finished(self) -> str:
        """End of the last of these runs; empty where no record has it."""
        return max((run.record.finished for run in self.runs.recorded), default="")

    @property
    def rank(self) -> str:
        """Place among the rows of its column; empty in a column without a better side, and where splits are missing."""
        sign, mean = side(self.cell.column), self.cell.mean
        means = [row[self.j].mean for row in self.sheet.result.cells if row[self.j].complete]
        better = sum(sign * other > sign * mean for other in means)
        return f"{1 + better} of {len(means)}" if sign and len(means) > 1 and self.cell.complete else ""


class Methods:
    """Methods with a page: the catalogue's, and those named by tables."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.catalogue: Mapping[str, Any] = book.suite.catalogue()
        self.names = list(dict.fromkeys([*self.catalogue, *(m for m, _, _ in self.rows())]))

    @cached_property
    def pages(self) -> dict[str, str]:
        """Return the file of every method's page; equal spellings are numbered."""
        found: dict[str, str] = {}
        taken: set[str] = {"index"}
        for each in self.names:
            stem, number = slug(each), 2
            while stem in taken:
                stem, number = f"{slug(each)}-{number}", number + 1
            taken.add(stem)
            found[each] = f"methods/{stem}.html"
        return found

    def choices(self, method: str) -> list[Choice]:
        """Return the parts of a method; empty for one that is not in the catalogue."""
        if method not in self.catalogue:
            return []
        known, row = about(), self.catalogue[method]
        parts = {**row.parts(), **row.own_parts()}
        found = []
        for place, (kind, (symbol, question)) in enumerate(CHOICES.items()):
            part = parts.get(kind)
            if part is None and place >= ALWAYS:
                continue
            chosen = dict(part or {})
            label = str(chosen.pop("name", chosen.pop("scaling", "the table's" if part else "none")))
            description = known.get(kind, {}).get(label, "") or known.get(kind, {}).get("", "")
            options = ", ".join(f"{key} = {compact(value, True, ' = ')}" for key, value in chosen.items())
            found.append(
                Choice(kind, symbol, question, label, description, options, *equations().get((kind, label), ("", "")))
            )
        return found

    @cached_property
    def measured(self) -> dict[str, list[Measured]]:
        """Return every cell of each method with a value, without repeats between tables."""
        found: dict[str, dict[tuple, Measured]] = {method: {} for method in self.names}
        for method, sheet, i in self.rows():
            for j, cell in enumerate(sheet.result.cells[i]):
                if cell.values:
                    where = cell.column.cell_of(cell.row)
                    same = where, sheet.protocol, cell.column.scale, tuple(cell.values.items())
                    found[method].setdefault(same, Measured(sheet, i, j))
        return {method: list(cells.values()) for method, cells in found.items()}

    def sheets(self, method: str) -> list[tuple[Sheet, list[str]]]:
        """Return the sheets with values of a method, with the labels of its rows, without repeats of the same runs."""
        shown: dict[Sheet, list[str]] = {}
        for each in self.measured[method]:
            label = each.cell.row.label
            labels = shown.setdefault(each.sheet, [])
            if label not in labels:
                labels.append(label)
        return list(shown.items())

    def ranked(
        self, method: str, rankings_of: Callable[[Sheet], list[Ranking]]
    ) -> list[tuple[Sheet, Ranking, str, float]]:
        """Return the average ranks of a method's rows, sheet by sheet."""
        return [
            (sheet, found, label, rank)
            for sheet, labels in self.sheets(method)
            for found in rankings_of(sheet)
            for label, rank in found.ranks
            if label in labels
        ]

    def costs(self, method: str) -> list[tuple[Sheet, list[str]]]:
        """Return the sheets with times of this method and of another, for plots of quality against cost."""
        return [
            (sheet, labels)
            for sheet, labels in self.sheets(method)
            if sum(any(cell.values for cell in row) for row in sheet.result.cells) > 1
            and any(side(column) and column.cell.metric != COST for column in sheet.table.columns)
        ]

    def rows(self) -> Iterator[tuple[str, Sheet, int]]:
        """Yield every row of a sheet that has a method."""
        for sheet in self.book.flat:
            for i, row in enumerate(sheet.table.rows):
                if row.method:
                    yield row.method, sheet, i
