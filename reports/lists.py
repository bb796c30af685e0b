"""Lists of facts that are written by hand: CSV files, whose lines name where they are wrong."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from benchmarks.errors import BenchmarkError


def lines_of(
    path: Path, columns: Sequence[str], error: type[BenchmarkError], empty: Collection[str] = (), hint: str = ""
) -> Iterator[tuple[dict[str, str], str]]:
    """Yield each line by column, and its file and number.

    Raises ``error`` for another header, another number of columns, and an empty cell of a column not in ``empty``.
    """
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        header = next(lines, [])
        if header != list(columns):
            raise error(f"{path}: expected the columns {','.join(columns)}, found {','.join(header)}")
        for cells in lines:
            where = f"{path.name}, line {lines.line_num}"
            if len(cells) != len(columns):
                raise error(f"{where}: expected {len(columns)} columns, found {len(cells)}")
            found = {name: cell.strip() for name, cell in zip(columns, cells)}
            for name, cell in found.items():
                if not cell and name not in empty:
                    raise error(f"{where}: {name} is empty{hint}")
            yield found, where


def several(cell: str, between: str | None = ";") -> tuple[str, ...]:
    """Return the parts of a cell."""
    return tuple(filter(None, map(str.strip, cell.split(between))))
