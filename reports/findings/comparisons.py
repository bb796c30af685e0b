"""Comparisons of a claim's tests: sums of weighted cells that are above 0 where the claim is true."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import scipy  # scipy.special, slow to load, is loaded at its first use

from benchmarks.errors import UsageError, unknown
from reports.aggregate import CellResult, TableResult
from reports.findings.claims import MINUS, Rule, expanded, matches
from reports.labels import direction, name
from reports.mean_ranks import bar_of_published, bar_of_runs, ranks
from reports.significance import Paired, compare

Terms = tuple[tuple[float, CellResult], ...]
FOR, AGAINST, OPEN = 1, -1, 0
ERRORS = 2  # combined standard errors that a published difference has to exceed
CHOSEN = "rows chosen by the means that a test would compare"


@dataclass(frozen=True)
class Comparison:
    """One comparison of a claim: sign * sum(weight * cell) + slack, above 0 where the claim is true.

    terms: its weighted cells. place: row and column of its first cell. chosen: whether printed means choose its rows.
    ranked: instead of cells the ranks of two rows by data set, ours and printed.
    """

    words: str
    column: str
    table: str
    sign: int
    terms: Terms
    place: tuple[int, int] = (0, 0)
    slack: float = 0.0
    overlap: float = 0.0
    chosen: bool = False
    ranked: tuple[Paired | None, Paired | None] | None = None

    @property
    def cells(self) -> list[CellResult]:
        """Cells without their weights."""
        return [cell for _, cell in self.terms]

    def published(self) -> tuple[float, float | None] | None:
        """Effect and combined standard error by the printed numbers; the error None where one is not printed."""
        if self.ranked:
            return (self.ranked[1].gap, self.ranked[1].error) if self.ranked[1] else None
        found = [(weight, cell.published) for weight, cell in self.terms if cell.published]
        if not found or len(found) < len(self.terms):
            return None
        effect = self.sign * math.fsum(weight * number.mean for weight, number in found) + self.slack
        errors = [None if number.stderr is None else weight * number.stderr for weight, number in found]
        return effect, None if None in errors else math.hypot(*(error for error in errors if error is not None))

    def printed_outcome(self) -> int | None:
        """Direction by the printed numbers: by two combined standard errors, or by sign where none is printed, and by
        more than rounding may hide."""
        found = self.published()
        if found is None:
            return None
        hidden, error = (0.0, found[1] or 0.0) if self.ranked else self._rounded()
        bound = hidden + ERRORS * (0.0 if found[1] is None else error) + 1e-9
        return FOR if found[0] > bound else AGAINST if found[0] < -bound else OPEN

    def printed_against(self) -> float | None:
        """One-sided p-value of the printed effect for the other way, rounding taken off, with the degrees of freedom of
        Welch and Satterthwaite; None where an error is not printed."""
        found = self.published()
        if found is None or found[1] is None:
            return None
        if self.ranked and self.ranked[1]:
            return self.ranked[1].p / 2 if found[0] < 0 else 1 - self.ranked[1].p / 2
        hidden, error = self._rounded()
        effect = -found[0] - hidden
        if not error:
            return 0.0 if effect > 0 else 1.0
        numbers = [(abs(weight), cell.published) for weight, cell in self.terms if cell.published]
        errors = (weight * ((number.stderr or 0.0) + number.half_unit_of_error) for weight, number in numbers)
        shares = [(each / error) ** 2 for each in errors]
        runs = [number.n_runs or 0 for _, number in numbers]  # an unknown number counts as exact
        rest = math.fsum(share**2 / (n - 1) for share, n in zip(shares, runs, strict=True) if n > 1)
        return float(scipy.special.stdtr(1 / rest, -effect / error) if rest else scipy.special.ndtr(-effect / error))

    def _rounded(self) -> tuple[float, float]:
        """Largest part of the printed effect that may be of rounding, and the largest combined standard error that
        rounds to the printed ones: an error printed as 0.00 may be 0.005."""
        numbers = [(abs(weight), cell.published) for weight, cell in self.terms if cell.published]
        hidden = math.fsum(weight * number.half_unit for weight, number in numbers)
        errors = (weight * ((number.stderr or 0.0) + number.half_unit_of_error) for weight, number in numbers)
        return hidden, math.hypot(*errors)

    def tested(self) -> Paired | str:
        """Effect over our runs, paired by split and seed; or why there is none."""
        if self.ranked:
            return self.ranked[0] or "fewer than two data sets where all rows have runs"
        if self.chosen:  # a row chosen by its mean seems better, or worse, than it is: p-values would be too small
            return CHOSEN
        for cell in self.cells:
            if not cell.values:
                return f"{cell.row.label}: {cell.missing}"
            if not all(map(math.isfinite, cell.values.values())):
                return f"{cell.row.label}: infinite values"
            if cell.n < 2:
                return f"{cell.row.label}: one run"
        if any(cell.shared for cell in self.cells) or len({m for cell in self.cells for m in cell.machines}) > 1:
            return "times of different machines, or of runs trained side by side"
        shared = set.intersection(*(set(cell.values) for cell in self.cells))
        sums = {
            run: self.sign * math.fsum(weight * cell.values[run] for weight, cell in self.terms) + self.slack
            for run in shared
        }
        sizes = (abs(weight * cell.values[run]) for weight, cell in self.terms for run in shared)
        found = compare(sums, dict.fromkeys(sums, 0.0), self.overlap, max(sizes, default=0.0))
        return found if found.n > 1 else "fewer than two splits and seeds that all rows have"


def of(test: Rule, results: dict[str, TableResult], not_worse: bool, paper: str = "") -> Iterator[Comparison]:
    """Yield the comparisons of a test in the tables that it names; where a paper prints numbers, its claims name only
    printed comparisons."""
    for result in results.values():
        comparisons = list(_Maker(test, result, not_worse).comparisons())
        printed = [each for each in comparisons if each.published() is not None]
        yield from (printed if result.table.paper == paper else []) or comparisons


def check(test: Rule, tables: Sequence[Any], not_worse: bool) -> None:
    """Check that a test can be made in its tables.

    Raises UnknownName for a row or a column that none of them has, and UsageError for rows without partners, a metric
    of which neither side is better, and a metric without margin in a claim that something is not worse.
    """
    labels = {row.label for table in tables for row in table.rows}
    for label in (part for each in (*test.a, *test.b) for part in each.split(MINUS)):
        if label not in labels:
            raise unknown("row", label, labels)
    if test.form in ("matched", "equal") and len(test.a) != len(test.b):
        raise UsageError(f"form {test.form}: expected as many rows b as rows a, found {len(test.b)} and {len(test.a)}")
    apart = test.value is not None or test.base or any(MINUS in row for row in test.a)  # compared without rows b
    if not test.b and (test.form in ("spread", "second", "rank") or (test.form == "each" and not apart)):
        raise UsageError(f"form {test.form}: expected rows b{', or a value' if test.form == 'each' else ''}")
    columns = [(column, _names(column)) for table in tables for column in table.columns]
    for pattern in expanded(test.columns + test.base):
        found = [(column, names) for column, names in columns if matches(pattern, *names)]
        if not found:
            raise unknown("column", pattern, {":".join(names) for _, names in columns})
        for column, (_, _, metric) in found:
            if test.form != "spread":
                _side(test, column.cell.metric)
            if not_worse and not test.margin_of(metric):
                raise UsageError(f"not_worse needs a margin for {metric}: give it in column margin")


def _side(test: Rule, metric: str) -> int:
    """Return 1 where higher values are claimed and -1 where lower ones are. Raises UsageError where nothing says it."""
    if side := test.side or direction(metric):
        return side
    raise UsageError(f"a claim on {metric} needs a side: higher or lower")


def _names(column: Any) -> tuple[str, str, str]:
    cell = column.published or column.cell
    return cell.dataset, cell.condition, cell.metric


class _Maker:
    """Comparisons of one test in one table."""

    def __init__(self, test: Rule, result: TableResult, not_worse: bool) -> None:
        self.test, self.result, self.not_worse = test, result, not_worse
        self.rows = {row.label: i for i, row in enumerate(result.table.rows)}
        self.a, self.b = ([each for each in rows if self._has(each)] for rows in (test.a, test.b))
        self.columns, self.base = (self._columns(patterns) for patterns in (test.columns, test.base))

    def comparisons(self) -> Iterator[Comparison]:
        """Yield every comparison, column by column."""
        if self.test.form == "rank":
            yield from self._ranks() if self.columns else ()
        elif self.test.form == "columns":
            for row in self.a:
                for before, after in self._steps():
                    column = f"{self._label(after)} against {self._label(before)}"
                    terms = (*self._at(row, after), *_times(-1, self._at(row, before)))
                    yield self._comparison(row, column, after, terms)
        else:
            for j in self.columns:
                yield from self._of_column(j)

    def _of_column(self, j: int) -> Iterator[Comparison]:
        form, label = self.test.form, self._label(j)
        if form == "spread" and self.a and self.b:
            yield self._comparison("range of the rows", label, j, self._range(j), sign=-1, chosen=True)
        elif form == "second":
            for row in self.a:
                if second := self._second(j):
                    words = f"{row} against the second best"
                    yield self._comparison(words, label, j, self._against(row, second, j), chosen=True)
        elif form == "each" and not self.b:
            for row in self.a:
                value = self.test.value or 0.0
                yield self._comparison(row, label, j, self._at(row, j), slack=-self._sign(j) * value)
        else:
            for first, second in self._pairs():
                words = f"{first} against {second}"
                yield self._comparison(words, label, j, self._against(first, second, j))

    def _pairs(self) -> list[tuple[str, str]]:
        if self.test.form == "rows":
            return [(after, before) for before, after in pairwise(self.a)]
        if self.test.form == "each":
            return [(first, second) for first in self.a for second in self.b if first != second]
        pairs = [pair for pair in zip(self.test.a, self.test.b, strict=True) if pair[0] in self.a and pair[1] in self.b]
        return pairs + [(b, a) for a, b in pairs] if self.test.form == "equal" else pairs

    def _comparison(
        self, words: str, column: str, j: int, terms: Terms, slack: float = 0.0, sign: int = 0, chosen: bool = False
    ) -> Comparison:
        sign = sign or self._sign(j)
        if self.not_worse and (margin := self.test.margin_of(_names(self.result.table.columns[j])[2])):
            if margin.relative:  # only for two rows where lower is better: the other may be larger by this share
                terms = tuple((w if w > 0 else w * (1 + margin.size), cell) for w, cell in terms)
            else:
                slack += margin.size * self.result.table.columns[j].scale
        overlap = self.result.overlaps.get(self.result.table.columns[j].cell.dataset, 0.0)
        place = self.rows[terms[0][1].row.label], j
        return Comparison(words, column, self.result.table.name, sign, terms, place, slack, overlap, chosen)

    def _sign(self, j: int) -> int:
        return _side(self.test, self.result.table.columns[j].cell.metric)

    def _label(self, j: int) -> str:
        column = self.result.table.columns[j]
        same = [each for each in self.result.table.columns if each.label == column.label]
        return column.label if len(same) == 1 else f"{column.label}, {name(column.cell.metric)}"

    def _has(self, row: str) -> bool:
        return all(part in self.rows for part in row.split(MINUS))

    def _columns(self, patterns: Sequence[str]) -> list[int]:
        columns = self.result.table.columns
        wanted = expanded(tuple(patterns))
        return [j for j, column in enumerate(columns) if any(matches(p, *_names(column)) for p in wanted)]

    def _at(self, row: str, j: int) -> Terms:
        """Return a row, or the difference of two, in a column, minus its base."""
        parts = row.split(MINUS)
        bases = [
            k
            for k in self.base
            if self.result.table.columns[k].cell.dataset == self.result.table.columns[j].cell.dataset
        ]
        places = [(1.0, j), *((-1.0, k) for k in bases[:1])]
        signed = [(1.0, parts[0]), *((-1.0, part) for part in parts[1:])]
        return tuple((w * v, self.result.cells[self.rows[part]][k]) for w, part in signed for v, k in places)

    def _against(self, first: str, second: str, j: int) -> Terms:
        return (*self._at(first, j), *_times(-1, self._at(second, j)))

    def _steps(self) -> Iterator[tuple[int, int]]:
        groups: dict[tuple[str, str], list[int]] = {}
        for j in self.columns:
            cell = self.result.table.columns[j].cell
            groups.setdefault((cell.dataset, cell.metric), []).append(j)
        for group in groups.values():
            yield from pairwise(group)

    def _range(self, j: int) -> Terms:
        found: list[tuple[float, CellResult]] = []
        for weight, rows in ((1.0, self.a), (-1.0, self.b)):
            cells = sorted((self.result.cells[self.rows[row]][j] for row in rows), key=_printed)
            found += [(weight, cells[-1]), (-weight, cells[0])]
        return tuple(found)

    def _second(self, j: int) -> str | None:
        cells = {row: self.result.cells[self.rows[row]][j] for row in self.b}
        printed = sorted(
            (row for row in cells if cells[row].published), key=lambda row: -self._sign(j) * _printed(cells[row])
        )
        return printed[1] if len(printed) > 1 else None

    def _ranks(self) -> Iterator[Comparison]:
        """Yield mean ranks over data sets, ours and printed, by the rule of reports.mean_ranks."""
        rows = [*self.a, *self.b]
        sides: list[dict[str, dict[tuple[int, int], float]]] = []
        for bar_of in (bar_of_runs, bar_of_published):
            found: dict[str, dict[tuple[int, int], float]] = {row: {} for row in rows}
            for j in self.columns:
                bars = {row: bar_of(self.result.cells[self.rows[row]][j]) for row in rows}
                known = {row: bar for row, bar in bars.items() if bar}
                if len(known) == len(rows):
                    for row, rank in ranks(known, self._sign(j)).items():
                        found[row][j, 0] = rank
            sides.append(found)
        for first in self.a:
            for second in self.b:
                own, printed = (compare(side[second], side[first]) if side[first] else None for side in sides)
                tested = (own if own and own.n > 1 else None, printed if printed and printed.n > 1 else None)
                label = f"mean rank by {name(self.result.table.columns[self.columns[0]].cell.metric)}"
                words = f"{first} against {second}"
                yield Comparison(words, label, self.result.table.name, -1, (), ranked=tested)


def _times(factor: float, terms: Terms) -> Terms:
    return tuple((factor * weight, cell) for weight, cell in terms)


def _printed(cell: CellResult) -> float:
    return cell.published.mean if cell.published else math.inf  # last, so that its range has no printed number
