"""Published numbers: one CSV per paper in published/ beside this file, one row per published cell.

``quoted.csv`` names the rows that a paper took over from another, with evidence. ``sha256.txt`` holds the SHA-256 of
all of these files; a file with another one is refused. A plug-in adds files of its own by :func:`add`.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import cast

from benchmarks.errors import BenchmarkError, unknown
from benchmarks.records.lists import lines_of
from fvi_core import plugins

FOLDER = Path(__file__).parent / "published"
QUOTED = Path(__file__).parent / "quoted.csv"
SUMS = Path(__file__).parent / "sha256.txt"
QUOTED_COLUMNS = ("paper", "table", "method", "source", "evidence")
RECORDED = {("dirichlet2022", "log_likelihood"): "smoothed_log_likelihood"}
"""Name of a metric in records by (paper, metric), where it differs; the tables' notes say why."""
CONTEXT = "context="
"""Prefix of a condition that belongs to a row and not to a column."""
COLUMNS = ("table", "dataset", "condition", "method", "metric", "mean", "stderr", "n_runs", "note")


class InvalidPublished(BenchmarkError, ValueError):
    """Error: a file of published numbers is invalid. The message names the file, the line and what was expected."""


@dataclass(frozen=True)
class Quotation:
    """Source of a row that a published table quotes, and the evidence."""

    source: str
    evidence: str


@dataclass(frozen=True)
class Published:
    """One published cell. ``mean`` and ``stderr`` are in the paper's unit; None: not printed.

    ``printed``: mean and standard error as the paper prints them. ``half_unit``: half a unit of the last digit that is
    printed of the mean, and of its error: what rounding may hide.
    """

    paper: str
    table: str
    dataset: str
    condition: str
    method: str
    metric: str
    mean: float
    stderr: float | None
    n_runs: int | None
    note: str
    printed: tuple[str, str]
    half_unit: float = 0.0
    half_unit_of_error: float = 0.0
    quoted: Quotation | None = None

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Key of a cell within its table: (data set, condition, method, metric)."""
        return self.dataset, self.condition, self.method, self.metric

    @property
    def column(self) -> tuple[str, str, str]:
        """Return the column of its table: data set, condition, metric; contexts tell rows apart."""
        condition = ";".join(part for part in self.condition.split(";") if not part.startswith(CONTEXT))
        return self.dataset, condition, self.metric


def recorded(paper: str, metric: str) -> str:
    """Return the name that records have for a metric of a paper."""
    return RECORDED.get((paper, metric), metric)


_OWN: dict[str, Path] = plugins.track({})


def add(file: str | Path) -> str:
    """Know a file of a plug-in's numbers too, with the columns of :data:`COLUMNS`; return its paper, the file's name.

    Its cells are in tables of that ``paper``, and count in no coverage. Raises InvalidPublished as :func:`load` does,
    and if a paper of that name is known.
    """
    path = Path(file).resolve()
    if path.stem in papers() or _OWN.get(path.stem, path) != path:
        raise InvalidPublished(
            f"{path}: there are numbers of a paper {path.stem!r} already; give the file another name"
        )
    if not path.is_file():
        raise InvalidPublished(f"{path}: expected a CSV file of published numbers, found none")
    _OWN[path.stem] = path
    load(path.stem)
    return path.stem


def papers(folder: Path = FOLDER) -> list[str]:
    """Return the papers that have a file, in order of their names."""
    return sorted(path.stem for path in folder.glob("*.csv"))


def load(paper: str, folder: Path = FOLDER) -> tuple[Published, ...]:
    """Return every published cell of a paper.

    Raises :class:`benchmarks.errors.UnknownName` (with the nearest names) and :class:`InvalidPublished` for a file with
    another checksum than the committed one, bytes that are not UTF-8, an overlong or unclosed field, a wrong header, an
    invalid number, a negative standard error, or a repeated cell.
    """
    path = _OWN.get(paper, folder / f"{paper}.csv")
    if not path.is_file():
        raise unknown("paper", paper, papers(folder), f"each has a file in {folder}")
    return _cells(path)


@cache
def _cells(path: Path) -> tuple[Published, ...]:
    paper = path.stem
    rows = (_cell(paper, *line) for line in _lines(path, COLUMNS, ("condition", "mean", "stderr", "n_runs", "note")))
    cells = tuple(map(_with_source, rows))
    twice = [key for key, count in Counter((cell.table, *cell.key) for cell in cells).items() if count > 1]
    if twice:
        raise InvalidPublished(f"{path}: {len(twice)} cells are there more than once, first {twice[0]}: keep one")
    return cells


def _lines(path: Path, columns: Sequence[str], empty: Collection[str] = ()) -> list[tuple[dict[str, str], str]]:
    """Return the lines of a file as :func:`lines_of` does. Raises InvalidPublished."""
    _check_sum(path)
    try:
        return list(lines_of(path, columns, empty))
    except BenchmarkError as error:
        raise InvalidPublished(str(error)) from error


def _check_sum(path: Path) -> None:
    """Raise InvalidPublished if a committed file does not have its committed SHA-256; other files have none."""
    folder = SUMS.parent
    if not path.is_relative_to(folder):
        return
    name = path.relative_to(folder).as_posix()
    expected, digest = _sums().get(name), hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != expected:
        raise InvalidPublished(
            f"{path}: expected the SHA-256 {expected or 'of a file that is listed'} of {SUMS.name}, "
            f"found {digest}. Restore the file with git, or, after a change that is meant, run in {folder}: "
            f"sha256sum published/*.csv quoted.csv > {SUMS.name}"
        )


@cache
def _sums() -> dict[str, str]:
    lines = (line.split() for line in SUMS.read_text(encoding="utf-8").splitlines())
    return {name: digest for digest, name in lines}


def _with_source(cell: Published) -> Published:
    """Remove the number of runs from a quoted cell: they are the other paper's."""
    quoted = quotations().get((cell.paper, cell.table, cell.method))
    return replace(cell, quoted=quoted, n_runs=None) if quoted else cell


@cache
def quotations(path: Path = QUOTED) -> dict[tuple[str, str, str], Quotation]:
    """Return rows taken over from other papers, by (paper, table, method). Raises InvalidPublished."""
    lines = (line for line, _ in _lines(path, QUOTED_COLUMNS))
    return {(at["paper"], at["table"], at["method"]): Quotation(at["source"], at["evidence"]) for at in lines}


def table(paper: str, number: int | str | None, folder: Path = FOLDER) -> dict[tuple[str, str, str, str], Published]:
    """Return the cells of one published table, or of all of a paper's, by (data set, condition, method, metric)."""
    return {cell.key: cell for cell in load(paper, folder) if number is None or cell.table == str(number)}


def _cell(paper: str, row: dict[str, str], where: str) -> Published:
    stderr = _number(row["stderr"], "stderr", where) if row["stderr"] else None
    if stderr is not None and stderr < 0:
        raise InvalidPublished(f"{where}: stderr is {row['stderr']}, expected a number that is not negative")
    if row["n_runs"] and not re.fullmatch("[0-9]{1,9}", row["n_runs"]):
        raise InvalidPublished(f"{where}: n_runs is {row['n_runs']!r}, expected a whole number or nothing")
    return Published(
        paper=paper,
        table=row["table"],
        dataset=row["dataset"],
        condition=row["condition"],
        method=row["method"],
        metric=row["metric"],
        note=row["note"],
        mean=_number(row["mean"], "mean", where),
        stderr=stderr,
        n_runs=int(row["n_runs"]) if row["n_runs"] else None,
        half_unit=_half_unit(row["mean"]),
        half_unit_of_error=_half_unit(row["stderr"]) if row["stderr"] else 0.0,
        printed=(row["mean"], row["stderr"]),
    )


def _half_unit(text: str) -> float:
    """Return half a unit of the last digit of a number as it is printed."""
    return float(Decimal(5).scaleb(cast(int, Decimal(text).as_tuple().exponent) - 1))


def _number(text: str, name: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidPublished(f"{where}: {name} is {text!r}, expected a finite number")
    return value
