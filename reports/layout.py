"""Table as blocks of short strings, the common base of the terminal, Markdown and LaTeX forms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from benchmarks.records.published import Published
from reports.aggregate import NOT_PLANNED, CellResult, TableResult
from reports.captions import QUOTED, label, usual_n
from reports.choice import WHOLE, Choice
from reports.labels import MARKS, side, title

MISSING = "—"


@dataclass(frozen=True)
class Line:
    """Printed line of a row: kind is value, published or difference; only the first carries the row's label."""

    label: str
    kind: str
    texts: list[str]
    bold: list[bool]


@dataclass(frozen=True)
class Block:
    """Columns printed side by side, under a title (empty where each column names its own metric)."""

    title: str
    header: list[str]
    lines: list[Line]


@dataclass(frozen=True)
class ColumnTexts:
    """One column as strings: title of its metric, header, and for every row the texts of its lines by kind.

    better: +1 where higher is, -1 where lower is, 0 where neither.
    """

    metric: str
    title: str
    better: int
    label: str
    rows: list[dict[str, str]]
    bold: list[bool]

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
        """Longest text of the column, with room for the mark of bold."""
        return max(len(self.header), *(len(text) + 1 for row in self.rows for text in row.values()))


Size = Callable[[ColumnTexts], float]
"""Function that returns the width of a column."""


def blocks(result: TableResult, size: Size, capacity: float, choice: Choice = WHOLE) -> list[Block]:
    """Split the table into blocks of at most that capacity: one if it fits, else metric by metric, then column by
    column.

    With methods across the page, each metric has its blocks.
    """
    if choice.across:
        return _across(result, size, capacity, choice)
    columns = [column for column in columns_of(result, choice) if column.planned]
    groups = [columns]
    if sum(map(size, columns)) > capacity or not _told_apart(columns):
        groups = []
        for _, same in groupby(columns, key=lambda column: column.metric):
            part = list(same)
            if groups and sum(map(size, groups[-1] + part)) <= capacity and _told_apart(groups[-1] + part):
                groups[-1] += part
            else:
                groups += _filled(part, size, capacity)
    labels = [row[0].row.label for row in result.cells]
    return [block for block in (_block(group, labels) for group in groups) if block.lines]


def columns_of(result: TableResult, choice: Choice = WHOLE) -> list[ColumnTexts]:
    """Return every column as strings, in the order of the table."""
    places = range(len(result.table.columns))
    kinds = [_kinds(row, choice) for row in result.cells]
    found = []
    for j in places:
        cells = [row[j] for row in result.cells]
        texts = _texts(result, cells, kinds, choice)
        column = cells[0].column
        about = column.cell.metric, title(column), side(column), label(result, j)
        found.append(ColumnTexts(*about, texts, [cell.bold for cell in cells]))
    return found


def _across(result: TableResult, size: Size, capacity: float, choice: Choice) -> list[Block]:
    """Return the table with its rows as columns."""
    places = list(range(len(result.table.columns)))
    asked = result.table.columns
    metric = [column.cell.metric for column in asked]
    labels = [label(result, j) for j in places]
    apart = len(set(labels)) == len(labels) and len(list(groupby(metric))) > 1
    found = []
    for group in [places] if apart else [list(same) for _, same in groupby(places, key=lambda j: metric[j])]:
        kinds = [_kinds([row[j] for row in result.cells], choice) for j in group]
        columns = []
        for row in result.cells:
            cells = [row[j] for j in group]
            texts = _texts(result, cells, kinds, choice)
            columns.append(ColumnTexts("", "", 0, cells[0].row.label, texts, [cell.bold for cell in cells]))
        columns = [column for column in columns if column.planned]
        lines = [labels[j] + (MARKS[side(asked[j])] if apart else "") for j in group]
        shown = [_block(part, lines) for part in _filled(columns, size, capacity)] if columns else []
        name = "" if apart else title(asked[group[0]])
        found += [replace(block, title=name) for block in shown if block.lines]
    return found


def pair(mean: float, stderr: float, digits: int, fixed: bool = False) -> str:
    """Format a mean and its standard error with two significant digits of the error; large ones with an exponent.

    Without an error (nan, or 0 up to rounding), or where fixed, with that many decimals. An infinite mean has none.
    """
    if math.isinf(mean):
        return "∞" if mean > 0 else "−∞"
    own = 1e-12 * abs(mean) < stderr < math.inf and not fixed
    places = min(max(1 - math.floor(math.log10(stderr)), 0), 6) if own else digits
    parts = [mean] if math.isnan(stderr) else [mean, stderr]
    large = max(map(abs, parts)) >= 1e5
    return " ± ".join(f"{x:.2e}" if large else f"{x:.{places}f}" for x in parts).replace("-", "−")


def _told_apart(columns: list[ColumnTexts]) -> bool:
    return len({column.label for column in columns}) == len(columns)


def _kinds(cells: Iterable[CellResult], choice: Choice) -> list[str]:
    """Return the kinds of lines that cells under one label have."""
    known, cells = ["value"], list(cells)
    if choice.published and any(cell.published for cell in cells):
        known.append("published")
    if choice.difference and any(cell.agreement for cell in cells):
        known.append("difference")
    return known


def _texts(
    result: TableResult, cells: list[CellResult], kinds: list[list[str]], choice: Choice
) -> list[dict[str, str]]:
    """Return the texts of cells for each of these kinds."""
    usual = usual_n(result)
    of = {
        "value": lambda cell: _value(cell, usual, choice.digits),
        "published": lambda cell: _published(cell.published),
        "difference": _difference,
    }
    return [{kind: of[kind](cell) for kind in asked} for cell, asked in zip(cells, kinds)]


def _value(cell: CellResult, usual: int | None, digits: int | None) -> str:
    if cell.missing:
        return f"{MISSING} {cell.missing}"
    count = f" ({cell.n})" if cell.n == cell.expected else f" ({cell.n}/{cell.expected})"
    shown = pair(cell.mean, cell.stderr, cell.column.digits if digits is None else digits, digits is not None)
    return shown + ("" if cell.n == cell.expected == usual else count)


def _unplanned(texts: dict[str, str]) -> bool:
    return set(texts.values()) - {MISSING} == {f"{MISSING} {NOT_PLANNED}"}


def _published(number: Published | None) -> str:
    return number.printed.replace("-", "−") + QUOTED * bool(number.quoted) if number else MISSING


def _difference(cell: CellResult) -> str:
    if cell.agreement is None:
        return MISSING
    if cell.is_cost and cell.published:
        return f"{cell.mean / cell.published.mean:.2g} ×"
    if cell.comparison is None or cell.outcome is None:
        return "" if cell.relative is None else f"{100 * cell.relative:+.1f} % ".replace("-", "−") + "(one run)"
    t = cell.comparison.t
    size = "0.0" if abs(t) < 0.05 else f"{t:+.1f}".replace("-", "−").replace("inf", "∞")
    return f"{'~' if cell.comparison.assumed else ''}{size} {cell.outcome.word}"


def _filled(columns: list[ColumnTexts], size: Size, capacity: float) -> list[list[ColumnTexts]]:
    """Split columns into as few parts as their sizes allow, none much narrower than the others."""
    parts = _parts(columns, size, capacity)
    even = sum(map(size, columns)) / len(parts)
    while len(parts) > 1:  # the narrowest parts without exceeding this number
        narrower = _parts(columns, size, even)
        if len(narrower) <= len(parts):
            return narrower
        even = min(1.02 * even + 0.1, capacity)
    return parts


def _parts(columns: list[ColumnTexts], size: Size, capacity: float) -> list[list[ColumnTexts]]:
    parts: list[list[ColumnTexts]] = [[]]
    for column in columns:
        if parts[-1] and sum(map(size, parts[-1])) + size(column) > capacity:
            parts.append([])
        parts[-1].append(column)
    return parts


def _block(columns: list[ColumnTexts], labels: list[str]) -> Block:
    titles = {column.title for column in columns}
    one = len(titles) == 1
    lines = []
    for i, name in enumerate(labels):
        if all(_unplanned(column.rows[i]) for column in columns):
            continue
        for kind in columns[0].rows[i]:
            marks = [kind == "value" and column.bold[i] for column in columns]
            texts = [column.rows[i][kind] for column in columns]
            lines.append(Line(name if kind == "value" else kind, kind, texts, marks))
    return Block(titles.pop() if one else "", [c.label if one else c.header for c in columns], lines)
