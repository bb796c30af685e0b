"""Lists of facts that are written by hand: CSV files, whose lines name where they are wrong."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from fvi_core.spelling import nearest


def lines_of(
    path: Path,
    columns: Sequence[str],
    empty: Collection[str] = (),
    hint: str = "",
    several: Mapping[str, str | None] = {},
    absent: Collection[str] = (),
) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each line by column, and its file and number; several: what separates the parts of a column's cells, which
    become tuples (None: white space); absent: columns that a file may leave out, as if their cells were empty.

    Raises BenchmarkError for a file that cannot be read as CSV in UTF-8, another header, another number of columns, and
    an empty cell of a column not in ``empty``.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets write a mark
            reader = csv.reader(file, strict=True)
            (names, _), *lines = [(cells, reader.line_num) for cells in reader] or [([], 0)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BenchmarkError(f"{path}: expected a CSV file in UTF-8, found: {error}") from error
    if [name for name in columns if name in names or name not in absent] != names:
        may = f" ({','.join(absent)} may be absent)" if absent else ""
        raise BenchmarkError(f"{path}: expected the columns {','.join(columns)}{may}, found {','.join(names)}")
    for cells, number in lines:
        where = f"{path.name}, line {number}"
        if len(cells) != len(names):
            raise BenchmarkError(f"{where}: expected {len(names)} columns, found {len(cells)}")
        found = dict.fromkeys(columns, "") | {name: cell.strip() for name, cell in zip(names, cells)}
        for name, cell in found.items():
            if not cell and name not in empty:
                raise BenchmarkError(f"{where}: {name} is empty{hint}")
        parts = {name: found[name].split(between) for name, between in several.items()}
        yield found | {name: tuple(filter(None, map(str.strip, each))) for name, each in parts.items()}, where


def check_names(where: str, what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise BenchmarkError for the first name that is not known."""
    for name in names:
        if name not in known:
            raise BenchmarkError(f"{where}: no {what} {name!r}; {nearest(name, known)}")
