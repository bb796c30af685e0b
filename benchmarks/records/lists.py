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
) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each line by column, and its file and number; several: what separates the parts of a column's cells, which
    become tuples (None: white space).

    Raises BenchmarkError for another header, another number of columns, and an empty cell of a column not in ``empty``.
    """
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file, strict=True)
        header = next(lines, [])
        if header != list(columns):
            raise BenchmarkError(f"{path}: expected the columns {','.join(columns)}, found {','.join(header)}")
        for cells in lines:
            where = f"{path.name}, line {lines.line_num}"
            if len(cells) != len(columns):
                raise BenchmarkError(f"{where}: expected {len(columns)} columns, found {len(cells)}")
            found = {name: cell.strip() for name, cell in zip(columns, cells)}
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
