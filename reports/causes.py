"""Differences from published numbers whose cause is shown by an experiment of this project.

``causes.csv`` names, for rows of a paper's tables, a row of another table here that differs in the named settings only.
The cause of a cell counts as shown if that row reproduces the cell's published number, or agrees with it and could have
told a number half of the way back to ours: some columns of published numbers are too close together to tell their rows
apart, not to tell a difference from none. Causes that are only supposed are in the tables' notes, and count nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from benchmarks.suite import Suite
from reports.aggregate import CellResult, aggregate
from reports.agreement import Verdict
from reports.lists import lines_of
from reports.records import Records

FILE = Path(__file__).with_name("causes.csv")
COLUMNS = ("paper", "tables", "method", "shown_by", "row", "settings", "cause")


@dataclass(frozen=True)
class Cause:
    """Cause of differing cells of a method, with the table and row that show it.

    tables: numbers of the paper's tables; settings: all in which the row's runs differ from those of the paper's table,
    each with the settings under it.
    """

    paper: str
    tables: tuple[str, ...]
    method: str
    shown_by: str
    row: str
    settings: tuple[str, ...]
    cause: str


@cache
def load(path: Path = FILE) -> tuple[Cause, ...]:
    """Return every cause. Raises BenchmarkError for an invalid file."""
    return tuple(
        Cause(**found)
        for found, _ in lines_of(path, COLUMNS, ("settings",), several={"tables": None, "settings": None})
    )


def shown(
    cells: Iterable[CellResult], paper: str, number: str, suite: Suite, records: Records
) -> dict[tuple[str, ...], Cause]:
    """Return those of these differing cells whose cause is shown, by the keys of their numbers."""
    differing = [cell for cell in cells if cell.published and cell.outcome and cell.outcome.differs]
    causes: dict[tuple[str, ...], Cause] = {}
    for cause in load():
        if cause.paper != paper or number not in cause.tables or cause.shown_by not in suite.table_names():
            continue
        gaps = {
            cell.published.key: abs(cell.mean - cell.published.mean)
            for cell in reversed(differing)  # of several rows of one published row the first counts
            if cell.published and cell.published.method == cause.method
        }
        if not gaps:
            continue
        found = aggregate(suite.table(cause.shown_by), "paper", records)
        rows = [row for row in found.cells if row[0].row.label == cause.row]
        for cell in (cell for row in rows for cell in row):
            if cell.published and cell.published.key in gaps and _agrees(cell, gaps[cell.published.key]):
                causes.setdefault(cell.published.key, cause)
    return causes


def _agrees(cell: CellResult, gap: float) -> bool:
    """Whether a cell reproduces its published number, among those of its column or within half of a difference."""
    if cell.outcome is not Verdict.UNINFORMATIVE or cell.comparison is None:
        return cell.outcome is Verdict.REPRODUCED
    return replace(cell.comparison, range_of_column=gap).outcome is Verdict.REPRODUCED
