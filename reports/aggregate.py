"""From the records of a table's runs to its cells: mean, standard error, published value, difference, verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks import published
from benchmarks.published import Published
from reports.labels import direction
from reports.records import Records
from reports.significance import bold

AGREES = 2.0
NOT_PLANNED = "not planned"


@dataclass(frozen=True)
class CellResult:
    """One cell of a table: the values of its runs, in the unit shown, beside the published number.

    row and column are those of the table; values maps (split, seed) to the metric's value; expected counts the
    runs that the protocol asks for; problems says why runs are absent where there is more to say than that they were
    not made.
    """

    row: Any
    column: Any
    expected: int
    values: dict[tuple[int, int], float]
    published: Published | None = None
    problems: tuple[str, ...] = ()
    bold: bool = False

    @property
    def n(self) -> int:
        """Runs found."""
        return len(self.values)

    @cached_property
    def mean(self) -> float:
        """Mean over the runs found; nan without any."""
        return float(np.mean(list(self.values.values()))) if self.values else math.nan

    @cached_property
    def stderr(self) -> float:
        """Standard error of the mean, sd (ddof = 1) / sqrt(n); nan with fewer than two runs."""
        return float(np.std(list(self.values.values()), ddof=1)) / math.sqrt(self.n) if self.n > 1 else math.nan

    @cached_property
    def z(self) -> float | None:
        """(ours - published) / sqrt(se_ours^2 + se_published^2); None where either mean or error is not known."""
        if self.published is None or self.published.stderr is None or self.n < 2:
            return None
        gap, error = self.mean - self.published.mean, math.hypot(self.stderr, self.published.stderr)
        return gap / error if error > 0 else (0.0 if gap == 0 else math.copysign(math.inf, gap))

    @property
    def relative(self) -> float | None:
        """(ours - published) / |published|; None where either is not known or the published value is 0."""
        if self.published is None or not self.values or self.published.mean == 0:
            return None
        return (self.mean - self.published.mean) / abs(self.published.mean)

    @property
    def missing(self) -> str | None:
        """Why there is no value; None where there is one."""
        if self.values:
            return None
        if self.row.method is None:
            return "no method yet"
        return self.problems[0] if self.problems else ("no run" if self.expected else NOT_PLANNED)

    @property
    def agreement(self) -> str | None:
        """Ours against the published value in one word or two; None where one of them is not there."""
        if self.published is None or not self.values:
            return None
        if self.z is None:
            size = "" if self.relative is None else f", {_signed(100 * self.relative)} %"
            return ("no published error" if self.published.stderr is None else "one run, no error") + size
        if abs(self.z) <= AGREES:
            return "reproduced"
        sense = direction(self.column.cell.metric) * self.z
        return "differs" if sense == 0 else "differs, better" if sense > 0 else "differs, worse"

    @property
    def verdict(self) -> str:
        """The cell in words: what is missing of it, and how it compares with the published value."""
        if self.missing:
            return "no method yet" if self.row.method is None else f"missing: {self.missing}"
        partial = f"partial n={self.n}/{self.expected}" if self.n < self.expected else None
        return "; ".join(part for part in (partial, self.agreement) if part) or "not published"


@dataclass(frozen=True)
class TableResult:
    """A table under one protocol: cells[i][j] belongs to rows[i] and columns[j]."""

    table: Any
    protocol: str
    cells: list[list[CellResult]] = field(repr=False)

    @property
    def flat(self) -> list[CellResult]:
        """Every cell, row by row."""
        return [cell for row in self.cells for cell in row]


def aggregate(table: Any, protocol: str, records: Records, seeds: list[int] | None = None) -> TableResult:
    """Every cell of a table under one protocol; runs of other protocols take no part.

    Raises :class:`benchmarks.published.InvalidPublished` for damaged files.
    """
    numbers = published.table(table.paper, table.number) if table.paper else {}

    def cell(row: Any, column: Any) -> CellResult:
        return _cell(table, row, column, table.cell_runs(row, column, protocol, seeds), protocol, records, numbers)

    cells = [[cell(row, column) for column in table.columns] for row in table.rows]
    for j, column in enumerate(table.columns):
        marks = bold([row[j].values for row in cells], direction(column.cell.metric))
        for row, mark in zip(cells, marks):
            row[j] = replace(row[j], bold=mark)
    return TableResult(table, protocol, cells)


def _cell(
    table: Any, row: Any, column: Any, configs: list[dict], protocol: str, records: Records, numbers: dict
) -> CellResult:
    values: dict[tuple[int, int], float] = {}
    problems: list[str] = []
    for config in configs:
        if config["protocol"] != protocol:
            raise ValueError(f"table {table.name}: a run of protocol {config['protocol']!r} in a cell of {protocol!r}")
        value = records.value(config, column.cell.dataset, column.cell.condition, column.cell.metric)
        if isinstance(value, float):
            values[config["dataset"]["split"], config["seed"]] = value * column.scale
        elif value is not None:
            problems.append(value)
    number = numbers.get(column.published_key(row))
    return CellResult(row, column, len(configs), values, number, tuple(dict.fromkeys(problems)))


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")
