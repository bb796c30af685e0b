"""Files of settings: one CSV per paper beside this module, one line per setting of a group of tables.

Columns: ``tables`` (names, separated by spaces), ``rows`` (labels joined by ``;``; empty: every row), ``setting``,
``paper`` and ``code`` (their settings, with the place; ``-`` where they have none), ``ours`` (the recipe's setting,
with placeholders as ``{parts.training.optimiser.lr}``, which :mod:`reports.protocols.filled` fills), ``why``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.records import published
from benchmarks.suite import Suite
from reports.lists import check_names, lines_of

FOLDER = Path(__file__).parent
COLUMNS = ("tables", "rows", "setting", "paper", "code", "ours", "why")
MAY_BE_EMPTY = ("rows",)


@dataclass(frozen=True)
class Line:
    """One setting of some rows of some tables; ``where`` names its file and line."""

    about: str
    tables: tuple[str, ...]
    rows: tuple[str, ...]
    setting: str
    paper: str
    code: str
    ours: str
    why: str
    where: str


def papers(folder: Path = FOLDER) -> list[str]:
    """Return the papers that have a file of settings."""
    return sorted(path.stem for path in folder.glob("*.csv"))


@cache
def load(folder: Path = FOLDER) -> tuple[Line, ...]:
    """Return every line of every file. Raises BenchmarkError."""
    return tuple(line for paper in papers(folder) for line in _read(paper, folder / f"{paper}.csv"))


def _read(paper: str, path: Path) -> Iterable[Line]:
    check_names(str(path), "paper", [paper], published.papers())
    hint, several = "; write - where a source says nothing", {"tables": None, "rows": ";"}
    for found, where in lines_of(path, COLUMNS, MAY_BE_EMPTY, hint, several):
        yield Line(paper, **found, where=where)


def check(lines: Iterable[Line], suite: Suite) -> None:
    """Raise BenchmarkError for the first line with an unknown table or row."""
    known = suite.table_names()
    for line in lines:
        check_names(line.where, "table", line.tables, known)
        labels = [row.label for name in line.tables for row in suite.table(name).rows]
        check_names(line.where, f"row of {' '.join(line.tables)}", line.rows, labels)


def of_table(name: str, suite: Suite, lines: Iterable[Line]) -> list[Line]:
    """Return the lines that cover rows of a table."""
    labels = {row.label for row in suite.table(name).rows}
    return [line for line in lines if name in line.tables and (not line.rows or labels & set(line.rows))]
