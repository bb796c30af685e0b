"""Choice of a table's rows and columns and its layout; values do not depend on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.errors import UsageError, unknown
from reports.aggregate import TableResult
from reports.labels import name as metric_name

PAGE = (17.0, 23.0)
"""Width and height in centimetres of the text of a page of A4 or letter paper."""


@dataclass(frozen=True)
class Choice:
    """Selection and layout of a table; the default is the whole table.

    rows: labels or methods; columns: labels or data sets; metrics: as in records or as printed; each in the order to
    print. digits: decimals of every number (default: by its error). across: methods across the page instead of down
    (None: as takes fewer pages in LaTeX). page: width and height of its text, in cm. rules: whether the notes of the
    LaTeX form explain bold and verdicts.
    """

    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    digits: int | None = None
    published: bool = True
    difference: bool = True
    across: bool | None = None
    notes: bool = True
    page: tuple[float, float] = PAGE
    rules: bool = True

    @property
    def whole(self) -> bool:
        """Return whether no row, column or metric is left out."""
        return not (self.rows or self.columns or self.metrics)

    def of(self, result: TableResult) -> TableResult:
        """Return the chosen rows and columns. Raises UnknownName, and UsageError where no column is left."""
        rows = _places("row", self.rows, result.table.rows, lambda row: (row.label, row.method or ""))
        columns = _columns(self, result.table)
        table = replace(
            result.table,
            rows=tuple(result.table.rows[i] for i in rows),
            columns=tuple(result.table.columns[j] for j in columns),
        )
        cells = [[result.cells[i][j] for j in columns] for i in rows]
        hidden = _left_out(result.table.rows, table.rows), _left_out(result.table.columns, table.columns)
        return replace(result, table=table, cells=cells, hidden=hidden)


def _left_out(parts: Iterable[Any], chosen: Iterable[Any]) -> frozenset[str]:
    return frozenset(part.label for part in parts) - {part.label for part in chosen}


WHOLE = Choice()


def page_size(words: str) -> tuple[float, float]:
    """Parse width and height in centimetres, such as 17x23. Raises UsageError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)x(\d+(?:\.\d+)?)", words.strip())
    size = (float(found[1]), float(found[2])) if found else (0.0, 0.0)
    if min(size) < 5 or max(size) > 200:
        raise UsageError(f"--page is {words!r}, expected width x height of a page's text in cm, 5 to 200, as 17x23")
    return size


def _columns(choice: Choice, table: Any) -> list[int]:
    """Return the places of columns in the order of the names, metric by metric where labels do not name the metric."""
    metrics = _places("metric", choice.metrics, table.columns, lambda c: (c.cell.metric, metric_name(c.cell.metric)))
    columns = _places("column", choice.columns, table.columns, lambda c: (c.label, c.cell.dataset))
    if not choice.metrics:
        if len({table.columns[place].label for place in columns}) == len(columns):
            return columns
        metrics = columns
    order = list(dict.fromkeys(table.columns[place].cell.metric for place in metrics))
    found = sorted(
        set(columns) & set(metrics), key=lambda j: (order.index(table.columns[j].cell.metric), columns.index(j))
    )
    if not found:
        raise UsageError(
            f"--column {', '.join(choice.columns)} --metric {', '.join(choice.metrics)}: expected a column of table "
            f"{table.name} that is both, found none; leave one of the two options out"
        )
    return found


def _places(kind: str, chosen: Sequence[str], parts: Sequence[Any], names: Callable[[Any], Iterable[str]]) -> list[int]:
    """Return the places of the named parts, in the order of the names; all places without names."""
    if not chosen:
        return list(range(len(parts)))
    found: dict[int, None] = {}
    for name in chosen:
        same = [k for k, part in enumerate(parts) if name.lower() in (each.lower() for each in names(part))]
        if not same:
            raise unknown(kind, name, {each for part in parts for each in names(part) if each})
        found |= dict.fromkeys(same)
    return list(found)
