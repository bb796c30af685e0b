"""A table as blocks of shown numbers: what the terminal, Markdown and LaTeX forms have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from reports import shown
from reports.aggregate import NOT_PLANNED, CellResult, TableResult
from reports.captions import label, usual_n
from reports.choice import WHOLE, Choice
from reports.labels import MARKS, side, title
from reports.shown import MISSING, NOTHING, Shown


@dataclass(frozen=True)
class Line:
    """Printed line of a row: kind is value, published or difference; only the first carries the row's label."""

    label: str
    kind: str
    cells: list[Shown]


@dataclass(frozen=True)
class Block:
    """Columns printed side by side, under a title (empty where each column names its own metric)."""

    title: str
    header: list[str]
    lines: list[Line]


@dataclass(frozen=True)
class ShownColumn:
    """One column: title of its metric, header, and for every row its lines by kind.

    better: +1 where higher is, -1 where lower is, 0 where neither.
    """

    metric: str
    title: str
    better: int
    label: str
    rows: list[dict[str, Shown]]

    @property
    def header(self) -> str:
        """Label with an arrow to the metric's better side."""
        return self.label + MARKS[self.better]

    @property
    def planned(self) -> bool:
        """Whether the column has planned or published cells; all forms omit others."""
        return not all(map(_unplanned, self.rows))

    @property
    def width(self) -> int:
        """The longest text of the column, with room for the mark of bold."""
        return max(len(self.header), *(len(str(each)) + 1 for row in self.rows for each in row.values()))


Size = Callable[[ShownColumn], float]
"""How wide a column is."""


def blocks(result: TableResult, size: Size, capacity: float, choice: Choice = WHOLE) -> list[Block]:
    """Split the table into blocks of at most that capacity: one if it fits, else metric by metric, then column by
    column. Metrics share a block only where no other column has one of its labels.

    With methods across the page, each metric has its blocks.
    """
    if choice.across:
        return _across(result, size, capacity, choice)
    columns = [column for column in columns_of(result, choice) if column.planned]
    groups = [columns]
    if sum(map(size, columns)) > capacity or not _distinct(columns):
        groups, count = [], Counter(column.label for column in columns)
        for _, same in groupby(columns, key=lambda column: column.metric):
            part = list(same)
            named = groups and all(count[column.label] == 1 for column in groups[-1] + part)
            if named and sum(map(size, groups[-1] + part)) <= capacity:
                groups[-1] += part
            else:
                groups += _filled(part, size, capacity)
    labels = [row[0].row.label for row in result.cells]
    return [block for block in (_block(group, labels) for group in groups) if block.lines]


def columns_of(result: TableResult, choice: Choice = WHOLE) -> list[ShownColumn]:
    """Every column, in the order of the table."""
    kinds, usual = [_kinds(row, choice) for row in result.cells], usual_n(result)
    found = []
    for j, column in enumerate(result.table.columns):
        about = column.cell.metric, title(column), side(column), label(result, j)
        found.append(ShownColumn(*about, _lines(usual, [row[j] for row in result.cells], kinds, choice)))
    return found


def _across(result: TableResult, size: Size, capacity: float, choice: Choice) -> list[Block]:
    """Return the table with its rows as columns."""
    columns = result.table.columns
    places = list(range(len(columns)))
    metric = [column.cell.metric for column in columns]
    labels, usual = [label(result, j) for j in places], usual_n(result)
    apart = len(set(labels)) == len(labels) and len(list(groupby(metric))) > 1
    found: list[Block] = []
    for group in [places] if apart else [list(same) for _, same in groupby(places, key=lambda j: metric[j])]:
        kinds = [_kinds([row[j] for row in result.cells], choice) for j in group]
        rows = []
        for row in result.cells:
            cells = [row[j] for j in group]
            rows.append(ShownColumn("", "", 0, cells[0].row.label, _lines(usual, cells, kinds, choice)))
        rows = [row for row in rows if row.planned]
        lines = [labels[j] + (MARKS[side(columns[j])] if apart else "") for j in group]
        blocks_of_group = [_block(part, lines) for part in _filled(rows, size, capacity)] if rows else []
        name = "" if apart else title(columns[group[0]])
        found += [replace(block, title=name) for block in blocks_of_group if block.lines]
    return found


def _distinct(columns: list[ShownColumn]) -> bool:
    """Whether no two columns have the same label."""
    return len({column.label for column in columns}) == len(columns)


def _kinds(cells: Iterable[CellResult], choice: Choice) -> list[str]:
    """Return the kinds of lines that cells under one label have."""
    known, cells = ["value"], list(cells)
    if choice.published and any(cell.published for cell in cells):
        known.append("published")
    if choice.difference and any(cell.agreement for cell in cells):
        known.append("difference")
    return known


def _lines(
    usual: int | None, cells: list[CellResult], kinds: list[list[str]], choice: Choice
) -> list[dict[str, Shown]]:
    """Return the lines of cells by kind; kinds: those of each cell."""
    of = {
        "value": lambda cell: shown.value(cell, usual, choice.digits),
        "published": lambda cell: shown.published(cell.published),
        "difference": shown.difference,
    }
    return [{kind: of[kind](cell) for kind in of_cell} for cell, of_cell in zip(cells, kinds)]


def _unplanned(row: dict[str, Shown]) -> bool:
    return set(row.values()) - {NOTHING} == {Shown(MISSING, mark=NOT_PLANNED)}


def _filled(columns: list[ShownColumn], size: Size, capacity: float) -> list[list[ShownColumn]]:
    """Columns in as few parts as their sizes allow, none much narrower than the others."""
    parts = _parts(columns, size, capacity)
    even = sum(map(size, columns)) / len(parts)
    while len(parts) > 1:  # the narrowest parts without exceeding this number
        narrower = _parts(columns, size, even)
        if len(narrower) <= len(parts):
            return narrower
        even = min(1.02 * even + 0.1, capacity)
    return parts


def _parts(columns: list[ShownColumn], size: Size, capacity: float) -> list[list[ShownColumn]]:
    parts: list[list[ShownColumn]] = [[]]
    for column in columns:
        if parts[-1] and sum(map(size, parts[-1])) + size(column) > capacity:
            parts.append([])
        parts[-1].append(column)
    return parts


def _block(columns: list[ShownColumn], labels: list[str]) -> Block:
    titles = {column.title for column in columns}
    one = len(titles) == 1
    lines = []
    for i, name in enumerate(labels):
        if all(_unplanned(column.rows[i]) for column in columns):
            continue
        for kind in columns[0].rows[i]:
            cells = [column.rows[i][kind] for column in columns]
            lines.append(Line(name if kind == "value" else kind, kind, cells))
    return Block(titles.pop() if one else "", [c.label if one else c.header for c in columns], lines)
