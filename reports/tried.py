"""Experiments on cells that differ, and docs/causes.md: every such cell, its shown cause, and what was tried.

A reading is a row of another table of the same paper with the same published number and other runs. ``tried.csv`` holds
experiments without a table: columns ``paper``, ``tables`` (numbers, separated by spaces), ``methods`` (of the published
rows, joined by ``;``), ``columns`` (labels, joined by ``;``; empty: all), ``tried``, ``source`` (the reason for the
reading), ``moved`` (its effect), ``record`` (a table here that shows it; ``-`` where no record is committed).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from benchmarks.records import published
from benchmarks.records.lists import check_names, lines_of
from benchmarks.records.published import Published
from benchmarks.suite import Suite
from reports.aggregate import CellResult
from reports.causes import Cause, agrees
from reports.marks import anchor, escaped, grid
from reports.page.book import TESTED, Book, Sheet
from reports.records import Records
from reports.shown import Shown

FILE = Path(__file__).with_name("tried.csv")
COLUMNS = ("paper", "tables", "methods", "columns", "tried", "source", "moved", "record")
NO_RECORD = "-"
FEW = 3  # readings that the Markdown page names
RENEW = ".venv/bin/python -m reports causes"
HEADER = ("row", "cell", "ours", "published", "difference", "cause shown", "other readings")
INTRODUCTION = f"""# Differences: causes and experiments

    {RENEW}

writes this page from the records, from `reports/causes.csv` and from `reports/tried.csv`. It lists every published cell
that differs at protocol `paper` ([verdicts.md](verdicts.md)).

A cause is *shown* where a row of another table reproduces the published number and differs from the table's row only
as the cause says, goes at least half of the way from our number to the published one, and where fewer cells of the
row differ with it than without; both counts stand beside it, how many cells of the row were not tested with it, or by a
test that could not tell, and how many of all tested readings of the number agree with it by this rule.
Where the test is *uninformative*, since the published numbers of the column are too close together, the row has to
agree with the number, and its test could exclude a number half of the way back to ours. That a cause is shown does not
prove that the authors had this setting: where no source names it, it was one of several that were tried with the
published numbers in view, and the more are tried, the more agree by chance. Cells of one row may have different causes,
of which the authors can have had one at most where they exclude each other. *Other readings* are rows of
further tables beside the same number: here the {FEW} that reproduce it or are nearest to it; the pages of the site
(`make page`) draw all. Experiments below a table have their source and effect; some have no committed record, and
say so.
[protocols.md](protocols.md) has the settings of every table.
"""


@dataclass(frozen=True)
class Experiment:
    """One experiment on cells of published tables; ``where`` names its file and line."""

    paper: str
    tables: tuple[str, ...]
    methods: tuple[str, ...]
    columns: tuple[str, ...]
    tried: str
    source: str
    moved: str
    record: str
    where: str

    def concerns(self, difference: Difference) -> bool:
        """Whether the experiment covers this cell."""
        return (
            self.paper == difference.target.paper
            and difference.target.method in self.methods
            and difference.target.table in self.tables
            and (not self.columns or difference.cell.column.label in self.columns)
        )


@dataclass(frozen=True)
class Reading:
    """Other runs of the same published number: the name of their table, and their cell with its printed value."""

    table: str
    cell: CellResult
    value: str


@dataclass(frozen=True)
class Difference:
    """Published cell that differs at protocol paper, its printed lines by kind, and everything known of the reason."""

    cell: CellResult
    shown: Mapping[str, Shown]
    cause: Cause | None = None
    readings: tuple[Reading, ...] = ()

    @property
    def target(self) -> Published:
        """The published number."""
        assert self.cell.published is not None, "only published cells differ"
        return self.cell.published

    @property
    def nearest(self) -> list[Reading]:
        """Readings that reproduce the published number, then the others; each by their distance from it."""
        return sorted(
            self.readings,
            key=lambda each: (each.cell.status != "reproduced", abs(each.cell.mean - self.target.mean)),
        )


@cache
def load(path: Path = FILE) -> tuple[Experiment, ...]:
    """Return every experiment of the file. Raises BenchmarkError."""
    several = {"tables": None, "methods": ";", "columns": ";"}
    lines = lines_of(path, COLUMNS, ("columns",), several=several)
    return tuple(Experiment(**found, where=where) for found, where in lines)


def check(experiments: Iterable[Experiment], suite: Suite) -> None:
    """Raise BenchmarkError for the first unknown paper, table, method, column or record."""
    for each in experiments:
        check_names(each.where, "paper", [each.paper], published.papers())
        cells = published.load(each.paper)
        check_names(each.where, "table", each.tables, {cell.table for cell in cells})
        check_names(each.where, "method", each.methods, {cell.method for cell in cells if cell.table in each.tables})
        names = set(suite.table_names())
        labels = {
            column.label
            for number in each.tables
            if f"{each.paper}-{number}" in names
            for column in suite.table(f"{each.paper}-{number}").columns
        }
        check_names(each.where, "column", each.columns, labels)
        check_names(each.where, "table of a record", [each.record], {*names, NO_RECORD})


class Differences:
    """Differing cells of published tables and the experiments on them, from a book's tables."""

    def __init__(self, book: Book, experiments: tuple[Experiment, ...] | None = None) -> None:
        self.book = book
        self.known = load() if experiments is None else experiments

    def experiments(self, cells: Sequence[Difference]) -> dict[Experiment, list[Difference]]:
        """Return the experiments that concern any of these cells, with those cells."""
        concerned = {each: [cell for cell in cells if each.concerns(cell)] for each in self.known}
        return {each: its_cells for each, its_cells in concerned.items() if its_cells}

    def untried(self, cells: Iterable[Difference]) -> list[Difference]:
        """Return the cells without a cause, a reading or an experiment."""
        return [
            cell
            for cell in cells
            if not cell.cause and not cell.readings and not any(each.concerns(cell) for each in self.known)
        ]

    def of(self, name: str) -> list[Difference]:
        """Return the cells of a published table that differ at protocol paper."""
        table = self.book.suite.table(name)
        if not table.is_published or "paper" not in table.protocols:
            return []
        sheet, found = Sheet(self.book.result(table, "paper")), []
        for i, row in enumerate(sheet.result.cells):
            for j, cell in enumerate(row):
                if cell.published is None or cell.status != "differs":
                    continue
                own = tuple(cell.values.values())
                others = {
                    values: reading
                    for number, values, reading in reversed(self._readings.get((table.paper, cell.published.key), ()))
                    if number in (None, table.number) and reading.table != name and values != own
                }
                cause, readings = self.book.cause(cell, "paper"), tuple(reversed(others.values()))
                found.append(Difference(cell, sheet.columns[j].rows[i], cause, readings))
        return found

    @cached_property
    def _readings(self) -> dict[tuple[str, tuple[str, ...]], list[tuple[str | None, tuple[float, ...], Reading]]]:
        """Return every cell beside a published number: its table, its values, and its verdict."""
        found: dict[tuple[str, tuple[str, ...]], list[tuple[str | None, tuple[float, ...], Reading]]] = {}
        for table in map(self.book.suite.table, self.book.suite.table_names()):
            if not table.paper or "paper" not in table.protocols:
                continue
            sheet = Sheet(self.book.result(table, "paper"))
            for i, row in enumerate(sheet.result.cells):
                for j, cell in enumerate(row):
                    if cell.published and cell.values:
                        reading = Reading(table.name, cell, str(sheet.columns[j].rows[i]["value"]))
                        place = table.paper, cell.published.key
                        found.setdefault(place, []).append((table.number, tuple(cell.values.values()), reading))
        return found


def page(suite: Suite, records: Records) -> str:
    """Return docs/causes.md. Raises BenchmarkError for a line with an unknown name."""
    known = Differences(Book(suite, records))
    check(known.known, suite)
    found = {name: cells for name in suite.table_names() if (cells := known.of(name))}
    counts: dict[str, list[int]] = {}
    for name, cells in found.items():
        shown = sum(cell.cause is not None for cell in cells)
        counts[f"[{name}](#{anchor(name)})"] = [len(cells), shown, len(cells) - shown, len(known.untried(cells))]
    counts["all"] = [sum(column) for column in zip([0] * 4, *counts.values())]
    head = ("table", "differ", "cause shown", "no cause shown", "not tried")
    parts = [INTRODUCTION, grid(head, [(name, *map(str, each)) for name, each in counts.items()])]
    by_paper = (f"{paper}: {words}" for paper, words in known.book.chances.items())
    parts.append(
        "Equal numbers differ too, one in twenty ([verdicts.md](verdicts.md)); of two rows beside one published number "
        f"only the first counts in what follows. {'. '.join(by_paper)}.\n"
    )
    parts += [_section(name, cells, known) for name, cells in found.items()]
    return "\n".join(parts)


def _section(name: str, cells: list[Difference], known: Differences) -> str:
    rows = []
    for each in cells:
        named = each.cell.row.label, each.cell.column.label
        rows.append((*named, *map(str, each.shown.values()), cause(each), nearest_in_words(each)))
    parts = [f"## {name}\n", grid(HEADER, [tuple(map(escaped, row)) for row in rows])]
    items = [f"- {escaped(words)}" for words in listed(cells, known)]
    return "\n".join([*parts, "\n".join(items) + "\n"] if items else parts)


def listed(cells: list[Difference], known: Differences) -> list[str]:
    """Return the experiments on these cells in words, and the cells without any."""
    words = []
    for each, concerned in known.experiments(cells).items():
        where = ", ".join(dict.fromkeys(one.cell.row.label for one in concerned))
        where += f" ({', '.join(dict.fromkeys(one.cell.column.label for one in concerned))})"
        record = "No record is committed." if each.record == NO_RECORD else f"Records: table {each.record}."
        words.append(f"{where}: {_ended(each.tried)} Source: {_ended(each.source)} {_ended(each.moved)} {record}")
    untried = [f"{one.cell.row.label}, {one.cell.column.label}" for one in known.untried(cells)]
    return [*words, f"Not tried: {'; '.join(untried)}."] if untried else words


def cause(cell: Difference) -> str:
    """Return the shown cause of a cell, the row that shows it, and how many readings agree; a dash without a cause."""
    found, tested = cell.cause, [each.cell for each in cell.readings if each.cell.status in TESTED]
    count = sum(each.status == "reproduced" or agrees(each, cell.cell.mean) for each in tested)
    agree = f"{count} of {len(tested)} tested readings agree with the number"
    return f"{found.cause} ({found.row}, table {found.shown_by}; {found.tally}; {agree})" if found else "-"


def nearest_in_words(cell: Difference) -> str:
    """Return the readings nearest to the published number, and the count of the others; a dash without any."""
    nearest = ((each, each.cell) for each in cell.nearest[:FEW])
    words = [f"{each.value}, {it.agreement} ({it.row.label}, table {each.table})" for each, it in nearest]
    more = len(cell.readings) - len(words)
    return "; ".join([*words, f"{more} more"] if more else words) or "-"


def _ended(words: str) -> str:
    return words if words.endswith(".") else f"{words}."
