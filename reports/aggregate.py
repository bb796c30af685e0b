"""Aggregation of a table's records into cells: mean, standard error, published value, difference, verdict."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import datasets
from benchmarks.records import published
from benchmarks.records.published import Published
from benchmarks.records.store import COSTS
from benchmarks.sweep.plan import MEANINGLESS
from reports.agreement import Comparison, Verdict, range_of
from reports.hours import Hours, hours
from reports.labels import direction
from reports.origins import CellRun, CellRuns, different_data, different_note, runs_of
from reports.records import Broken, Records, recorded
from reports.significance import Pair, bold, pairwise, worse

NOT_PLANNED, DIFFERENT = "not planned", "different data"


@dataclass(frozen=True)
class CellResult:
    """One cell of a table: the values of its runs, in the unit shown, beside the published number.

    row and column are those of the table; values maps (split, seed) to the metric's value; expected counts the planned
    runs; problems says why runs are absent other than not being made; apart: whether tests find a difference between
    any two rows of its column, None without tests; different: how the data of its runs differ, which then have no
    values; machines: the processor models behind a cost; range_of_column: largest minus smallest published mean of its
    column; warnings: those of the trainings of its runs; splits_missing: number of splits without a run; impossible:
    for every run with an infinite value, at how many points the label has probability 0; trial: whether its runs only
    test that all works, so that no verdict can rest on them.
    """

    row: Any
    column: Any
    expected: int
    values: dict[tuple[int, int], float]
    published: Published | None = None
    problems: tuple[str, ...] = ()
    bold: bool = False
    apart: bool | None = None
    different: str = ""
    machines: frozenset[str] = frozenset()
    range_of_column: float | None = None
    warnings: tuple[str, ...] = ()
    splits_missing: int = 0
    impossible: tuple[int, ...] = ()
    trial: bool = False

    @property
    def n(self) -> int:
        """Number of runs."""
        return len(self.values)

    @property
    def complete(self) -> bool:
        """Whether every split has a run: without some, a mean may be over easier splits than those of other rows."""
        return bool(self.values) and not self.splits_missing

    # By NumPy and not as a pandas frame: pandas sums in another order, which shows in the last digits of a few printed
    # cells, and loading it takes longer than the whole aggregation.
    @cached_property
    def mean(self) -> float:
        """Mean over the runs; nan without any."""
        return float(np.mean(list(self.values.values()))) if self.values else math.nan

    @cached_property
    def stderr(self) -> float:
        """Standard error of the mean, sd (ddof = 1) / sqrt(n); nan with fewer than two runs, for shared costs, and for
        an infinite mean."""
        if self.n < 2 or self.shared or not math.isfinite(self.mean):
            return math.nan
        return float(np.std(list(self.values.values()), ddof=1)) / math.sqrt(self.n)

    @property
    def is_cost(self) -> bool:
        """Whether the column shows a cost (time, memory) rather than a metric."""
        return self.column.cell.metric in COSTS

    @property
    def shared(self) -> bool:
        """Whether the cell is a cost of runs trained side by side, each with an equal share of the time: fewer
        measurements than runs."""
        return self.is_cost and len(set(self.values.values())) < self.n

    @cached_property
    def comparison(self) -> Comparison | None:
        """Our runs beside the published number; None without one, with fewer than two runs, or for another machine's
        costs."""
        if self.published is None or self.is_cost or not math.isfinite(self.stderr):
            return None
        return Comparison(tuple(self.values.values()), self.published, self.range_of_column)

    @property
    def apart_by(self) -> str:
        """ours - published, to the last digit that is published; empty where either is unknown or infinite."""
        if self.published is None or not math.isfinite(self.mean):
            return ""
        digits = len(self.published.printed[0].partition(".")[2])
        return f"{self.mean - self.published.mean:+z.{digits}f}".replace("-", "−")

    @property
    def missing(self) -> str | None:
        """Reason why there is no value; None where there is one."""
        if self.values:
            return None
        if self.row.method is None:
            return "no method yet"
        if self.different:
            return DIFFERENT
        return self.problems[0] if self.problems else ("no run" if self.expected else NOT_PLANNED)

    @cached_property
    def outcome(self) -> Verdict | None:
        """Verdict on the published number; None where there is no test."""
        if self.comparison is None:
            return None
        if self.splits_missing or self.trial:
            return Verdict.UNDECIDED
        sense = direction(self.column.cell.metric) * self.comparison.gap
        if not self.comparison.outcome.differs or sense == 0:
            return self.comparison.outcome
        return Verdict.BETTER if sense > 0 else Verdict.WORSE

    @property
    def agreement(self) -> str | None:
        """Ours against the published value in one word or two; None where one of them is absent."""
        if self.published is None or not self.values:
            return None
        if self.is_cost:
            return f"another machine, {self.mean / self.published.mean:.2g} of the published time"
        if self.comparison is None:
            return "one run, no error" + f", {self.apart_by}" * bool(self.apart_by)
        return self.outcome

    @property
    def status(self) -> str:
        """Status of this cell alone, as in :data:`reports.page.book.STATUSES`; empty where nothing is published."""
        if self.published is None:
            return ""
        if not self.values:
            return "missing"
        if self.outcome in (None, Verdict.UNDECIDED):
            return "undecided"
        return "differs" if self.outcome.differs else self.outcome.value

    @property
    def verdict(self) -> str:
        """Description of the cell: what is missing, and the comparison with the published value."""
        if self.missing:
            reason = f"runs of {DIFFERENT}" if self.different else self.missing
            return reason if self.row.method is None else f"missing: {reason}"
        partial = f"partial n={self.n}/{self.expected}" if self.n < self.expected else None
        return "; ".join(part for part in (partial, self.agreement) if part) or "not published"


@dataclass(frozen=True)
class TableResult:
    """Table under one protocol: cells[i][j] belongs to rows[i] and columns[j].

    broken: invalid files, which do not count; files: a note on substitute data files; hours: cost of its runs; runs:
    those of every row on every data set; overlaps: for each data set, test points for each training point, where its
    runs are of overlapping splits; hidden: labels of the rows and of the columns that are left out.
    """

    table: Any
    protocol: str
    cells: list[list[CellResult]] = field(repr=False)
    broken: tuple[Broken, ...] = ()
    files: tuple[str, ...] = ()
    hours: Hours = Hours()
    runs: Mapping[tuple[Any, str], CellRuns] = field(default_factory=dict, repr=False, compare=False)
    overlaps: Mapping[str, float] = field(default_factory=dict)
    hidden: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())

    @property
    def flat(self) -> list[CellResult]:
        """Every cell, row by row."""
        return [cell for row in self.cells for cell in row]

    @property
    def trial(self) -> bool:
        """Whether the protocol only tests that everything works."""
        return self.protocol == MEANINGLESS

    @property
    def problems(self) -> list[str]:
        """Files and runs that do not count, with reasons, without repeats."""
        different = [
            different_note(cell.row, cell.column.cell.dataset, cell.different) for cell in self.flat if cell.different
        ]
        return [*map(str, self.broken), *dict.fromkeys(different)]

    @property
    def warnings(self) -> list[str]:
        """Warnings of the trainings of the runs that count, without repeats."""
        return list(dict.fromkeys(warning for cell in self.flat for warning in cell.warnings))

    def machines(self, j: int) -> list[str]:
        """Processor models of a column of costs; empty for other columns."""
        return sorted(set().union(*(row[j].machines for row in self.cells)))

    @cached_property
    def tests(self) -> list[dict[tuple[int, int], Pair]]:
        """Tests between the rows of every column; none of costs that rank nothing."""
        return [self._tests(j, column) for j, column in enumerate(self.table.columns)]

    def _tests(self, j: int, column: Any) -> dict[tuple[int, int], Pair]:
        if not column.compared or len(self.machines(j)) > 1:
            return {}
        compared = [{} if row[j].shared else row[j].values for row in self.cells]
        return pairwise(compared, direction(column.cell.metric), self.overlaps.get(column.cell.dataset, 0.0))


def aggregate(table: Any, protocol: str, records: Records, seeds: list[int] | None = None) -> TableResult:
    """Return every cell of a table under one protocol, once for these records; runs of other protocols take no part.

    Raises :class:`benchmarks.records.published.InvalidPublished` for damaged files.
    """
    place = id(table), protocol, None if seeds is None else tuple(seeds)  # the result holds the table
    if place not in records.results:
        records.results[place] = _aggregate(table, protocol, records, seeds)
    return records.results[place]


def _aggregate(table: Any, protocol: str, records: Records, seeds: list[int] | None) -> TableResult:
    numbers = published.table(table.paper, table.number) if table.paper else {}
    ranges = _ranges(table.columns, numbers)
    runs = {
        (row, name): runs_of(table, row, name, protocol, records, seeds)
        for row in table.rows
        for name in table.datasets
    }
    cells = [
        [
            _cell(row, column, runs[row, column.cell.dataset], protocol, numbers, range_of_column)
            for column, range_of_column in zip(table.columns, ranges)
        ]
        for row in table.rows
    ]
    broken = tuple(dict.fromkeys(file for each in runs.values() for file in each.broken))
    overlaps = {
        name: _overlap(run.dataset_split for row in table.rows for run in runs[row, name].recorded)
        for name in table.datasets
    }
    cost = hours(run for each in runs.values() for run in each.runs)
    result = TableResult(table, protocol, cells, broken, tuple(records.files), cost, runs, overlaps)
    for j, column in enumerate(table.columns):
        if tests := result.tests[j]:
            beaten = worse(len(cells), tests, direction(column.cell.metric))
            for row, mark in zip(cells, bold(beaten)):
                row[j] = replace(row[j], bold=mark, apart=any(beaten))
    return result


def cell(
    table: Any, row: Any, column: Any, protocol: str, records: tuple[Path, Path], seeds: list[int] | None = None
) -> tuple[CellResult, dict[tuple[int, int], str]]:
    """Return one cell without its column, and by split and seed why runs with a record do not count.

    records: the folders of records and of failures.
    """
    runs = runs_of(table, row, column.cell.dataset, protocol, recorded(table, protocol, Records(*records))[1], seeds)
    numbers = published.table(table.paper, table.number) if table.paper else {}
    result, wanted = _cell(row, column, runs, protocol, numbers), column.cell_of(row)
    where = wanted.dataset, wanted.condition, wanted.metric
    values = {run.replicate: run.record.value(*where) for run in runs.recorded}
    reasons = {replicate: reason for replicate, reason in values.items() if isinstance(reason, str)}
    return result, dict.fromkeys(values, DIFFERENT) if result.different else reasons


def _ranges(columns: Iterable[Any], numbers: dict) -> list[float | None]:
    """Return each column's published range, over all rows of the paper, also those that this table does not show."""
    means: dict[tuple[str, str, str], list[float]] = {}
    for number in numbers.values():
        means.setdefault(number.column, []).append(number.mean)
    cells = (column.published or column.cell for column in columns)
    return [range_of(means.get((cell.dataset, cell.condition, cell.metric), [])) for cell in cells]


def _overlap(dataset_splits: Iterable[tuple[str, str, int]]) -> float:
    """Return test points for each training point, where runs are of splits that draw both from the same points; else
    0."""
    distinct = set(dataset_splits)
    if len({split for *_, split in distinct}) < 2:
        return 0.0
    name, scheme, _ = min(distinct)
    with contextlib.suppress(datasets.UnknownDataset, datasets.DataNotFound, ValueError):
        about = datasets.describe(name, scheme or None)
        return about.n_test / about.n_train if about.redrawn else 0.0
    return 0.0


def _cell(
    row: Any, column: Any, runs: CellRuns, protocol: str, numbers: dict, range_of_column: float | None = None
) -> CellResult:
    cell = column.cell_of(row)
    where = cell.dataset, cell.condition, cell.metric
    values: dict[tuple[int, int], float] = {}
    counted: list[CellRun] = []
    impossible = []
    problems = dict.fromkeys(runs.absent)
    for run in runs.recorded:
        value = run.record.value(*where)
        if isinstance(value, float):
            values[run.replicate] = value * column.scale
            counted.append(run)
            if math.isinf(value):
                count = run.record.value(cell.dataset, cell.condition, "zero_probability")
                impossible.append(int(count) if isinstance(count, float) else 0)
        else:
            problems[value] = None
    different = runs.different and different_data(counted)
    if different:
        values, counted = {}, []
    machines = frozenset(run.record.machine for run in counted) if column.cell.metric in COSTS else frozenset()
    number = numbers.get(column.published_key(row))
    warnings = tuple(
        f"{row.label} on {column.cell.dataset}, split {run.replicate[0]}, seed {run.replicate[1]}: {warning}."
        for run in counted
        for warning in run.record.warnings
    )
    return CellResult(
        row,
        column,
        runs.expected,
        values,
        number,
        tuple(problems),
        different=different,
        machines=machines,
        range_of_column=range_of_column,
        warnings=warnings,
        splits_missing=len(runs.splits - {split for split, _ in values}),
        impossible=tuple(impossible),
        trial=protocol == MEANINGLESS,
    )
