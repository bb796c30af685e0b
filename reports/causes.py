"""Differences from published numbers whose cause is shown by an experiment of this project.

``causes.csv`` names, for rows of a paper's tables, a row of another table here that differs in the named settings only.
The cause of a cell counts as shown if that row reproduces the cell's published number, or agrees with it and could have
told a number half of the way back to ours: some columns of published numbers are too close together to tell their rows
apart, not to tell a difference from none. It must go half of the way from our number to the published one, or more: a
number that a test just tells from the published one agrees after any small change, or with a larger error. With the
cause fewer of the row's cells in the table must differ: a setting that repairs one cell and spoils another explains
nothing. Cells whose test with the cause could not tell count as not tested: with two runs a number may move away from
the published one and no longer differ. Causes that are only supposed are in the tables' notes, and count nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from benchmarks.records.lists import lines_of
from benchmarks.suite import Suite
from reports.aggregate import CellResult, aggregate
from reports.agreement import Verdict
from reports.records import Records

FILE = Path(__file__).with_name("causes.csv")
COLUMNS = ("paper", "tables", "method", "shown_by", "row", "settings", "cause")
HALF = 0.5  # least part of the way from our number to the published one that a cause explains


@dataclass(frozen=True)
class Tally:
    """Cells that a row of a paper's table and the row of a cause both have: how many differ from their published
    numbers with the cause, before, and all. untested: cells of the paper's row that have no test with the cause, or one
    that could not tell."""

    differing: int = 0
    before: int = 0
    cells: int = 0
    untested: int = 0

    def __str__(self) -> str:
        counts = f"{self.differing} of {self.cells} cells of the row differ with it, {self.before} without"
        return f"{counts}; not tested with it: {self.untested}" if self.untested else counts


@dataclass(frozen=True)
class Cause:
    """Cause of differing cells of a method, with the table and row that show it.

    tables: numbers of the paper's tables; settings: all in which the row's runs differ from those of the paper's table,
    each with the settings under it; tally: of one of these tables.
    """

    paper: str
    tables: tuple[str, ...]
    method: str
    shown_by: str
    row: str
    settings: tuple[str, ...]
    cause: str
    tally: Tally = Tally()


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
    """Return those of a table's differing cells whose cause is shown, by the keys of their numbers."""
    # Of several rows of one published row the first counts.
    tested: dict[tuple[str, ...], CellResult] = {
        cell.published.key: cell for cell in reversed(list(cells)) if cell.published and cell.outcome
    }
    causes: dict[tuple[str, ...], Cause] = {}
    for cause in load():
        if cause.paper != paper or number not in cause.tables or cause.shown_by not in suite.table_names():
            continue
        own = {key: cell for key, cell in tested.items() if cell.published and cell.published.method == cause.method}
        if not _differing(own):
            continue
        flat = aggregate(suite.table(cause.shown_by), "paper", records).flat
        other: dict[tuple[str, ...], CellResult] = {
            cell.published.key: cell
            for cell in flat
            if cell.row.label == cause.row and cell.published and (mine := own.get(cell.published.key))
            if _tells(cell, mine)
        }
        before = _differing({key: own[key] for key in other})
        tally = Tally(len(_differing(other)), len(before), len(other), len(own) - len(other))
        if tally.differing < tally.before:
            for key in before:
                if agrees(other[key], own[key].mean):
                    causes.setdefault(key, replace(cause, tally=tally))
    return causes


def _differing(cells: Mapping[tuple[str, ...], CellResult]) -> list[tuple[str, ...]]:
    return [key for key, cell in cells.items() if cell.status == "differs"]


def agrees(cell: CellResult, ours: float) -> bool:
    """Whether a cell reproduces its published number, among those of its column or within half of the difference of our
    mean from it, and is at least half of that difference nearer to it."""
    if cell.published is None or not (cell.mean - ours) / (cell.published.mean - ours) >= HALF:
        return False
    return Verdict.REPRODUCED in (cell.outcome, _by_difference(cell, ours))


def _tells(cell: CellResult, before: CellResult) -> bool:
    """Whether the test of a cell with a cause finds a difference from the published number or could have found one."""
    if cell.outcome is None or cell.outcome is Verdict.UNDECIDED:
        return False
    if cell.outcome is not Verdict.UNINFORMATIVE:
        return True
    return before.status == "differs" and _by_difference(cell, before.mean) is Verdict.REPRODUCED


def _by_difference(cell: CellResult, ours: float) -> Verdict | None:
    """Return the verdict on an uninformative cell by the scale of our difference; None for other cells."""
    if cell.outcome is not Verdict.UNINFORMATIVE or cell.comparison is None:
        return None
    return replace(cell.comparison, range_of_column=abs(ours - cell.comparison.published.mean)).outcome
