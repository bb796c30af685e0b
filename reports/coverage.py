"""Coverage of the five papers' tables by the records, and agreement with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from benchmarks.records import published, stamp
from benchmarks.suite import Suite
from reports import marks
from reports.agreement import LEVEL, chance
from reports.page.book import Book, published_tables, statuses
from reports.records import Records
from reports.stamp import everything
from reports.tables import marked
from reports.terminal import wrapped

HEADER = [
    "paper", "table", "cells", "recorded", "partial", "reproduced", "differ", "shown", "too wide", "undecided",
    "reduced", "agree", "broken",
]  # fmt: skip
EXPLANATION = (
    "Cells of the published tables. Recorded: at least one run under protocol paper; partial: fewer runs than that "
    f"protocol asks for. Reproduced: a t-test at level {LEVEL} tells no difference from the published number; differ: "
    "it does; shown: of those, cells whose cause a table here shows (reports/causes.csv); too wide (uninformative): "
    "it could not have told half of the range of the column's published numbers; undecided: no verdict, as there is "
    "one run, or splits are missing, or no error is published and the verdict depends on it, or it is a time of "
    "another machine. docs/verdicts.md has the rules. Reduced: cells with records under a reduced protocol only (smoke "
    "apart, which means nothing), counted in its two columns and nowhere else. Broken: records that cannot be trusted "
    "and are not counted, for every table that needs them."
)


@dataclass(frozen=True)
class Coverage:
    """Counts of one published table's cells, and of invalid files; problems says why."""

    paper: str
    table: str
    published: int
    recorded: int = 0
    partial: int = 0
    reproduced: int = 0
    differing: int = 0
    shown: int = 0
    uninformative: int = 0
    undecided: int = 0
    reduced: int = 0
    reduced_reproduced: int = 0
    broken: int = 0
    problems: tuple[str, ...] = ()

    @property
    def tested(self) -> int:
        """Number of cells with a test behind their verdict."""
        return self.reproduced + self.differing + self.uninformative


COUNTS = [each.name for each in fields(Coverage) if each.type == "int"]


def coverage(results_dir: Path | str, suite: Suite) -> list[Coverage]:
    """Return a row per published table.

    A table that the suite lacks counts with all its cells published and none recorded. A published cell counts by
    protocol paper of its own table; a cell with records of reduced protocols only counts as reduced and nowhere else.
    """
    return _rows(Records(results_dir), suite)


def _rows(records: Records, suite: Suite) -> list[Coverage]:
    book, known = Book(suite, records), set(suite.table_names())
    rows = []
    for paper, number in published_tables():
        row = Coverage(paper, number, len(published.table(paper, number)))
        rows.append(_counted(row, book) if f"{paper}-{number}" in known else row)
    return rows


def remembered(records: Records, suite: Suite, file: Path) -> list[Coverage]:
    """Return the rows of :func:`coverage`, from this file if nothing has changed since it was written."""
    digest = everything(suite, records)
    found = stamp.read(file, digest)
    if found is None:
        found = list(map(asdict, _rows(records, suite)))
        stamp.write(file, digest, found)
    return [Coverage(**row | {"problems": tuple(row["problems"])}) for row in found]


def problems(rows: Iterable[Coverage]) -> list[str]:
    """Return the files that do not count, with reasons, without repeats."""
    return list(dict.fromkeys(problem for row in rows for problem in row.problems))


def totals(rows: Iterable[Coverage]) -> list[Coverage]:
    """Return a row per paper, then one over all."""
    rows = list(rows)
    papers = list(dict.fromkeys(row.paper for row in rows))
    return [_sum(paper, [row for row in rows if row.paper == paper]) for paper in papers] + [_sum("all papers", rows)]


def grid(rows: list[Coverage]) -> list[list[str]]:
    """Return header, a line per table, and totals, as strings."""
    lines = [[row.paper, row.table, *(str(getattr(row, name)) for name in COUNTS)] for row in [*rows, *totals(rows)]]
    return [HEADER, *lines]


def explanation(rows: Iterable[Coverage]) -> str:
    """Return what the counts mean, and how many cells would differ by chance."""
    by_paper = (f"{row.paper}: {chance(row.differing, row.tested)}" for row in totals(rows) if row.tested)
    return " ".join((EXPLANATION, *(f"{words}." for words in by_paper)))


def text(rows: list[Coverage]) -> str:
    """Return the counts for the terminal."""
    lines = grid(rows)
    widths = [max(len(line[j]) for line in lines) for j in range(len(HEADER))]
    aligned = [
        "  ".join(
            cell.ljust(width) if j == 0 else cell.rjust(width) for j, (cell, width) in enumerate(zip(line, widths))
        )
        for line in lines
    ]
    rule = "─" * len(aligned[0])
    end = 1 + len(rows)
    body = [aligned[0], rule, *aligned[1:end], rule, *aligned[end:]]
    listed = [line for problem in problems(rows) for line in wrapped(problem)]
    return "\n".join([*body, "", *wrapped(explanation(rows)), *(["", *listed] if listed else [])]) + "\n"


def markdown(rows: list[Coverage]) -> str:
    """Return the counts as a Markdown table, totals in bold."""
    header, *lines = grid(rows)
    end = len(rows)
    body = marks.grid(
        header, [*lines[:end], *([f"**{cell}**" for cell in line] for line in lines[end:])], "---:", "---"
    )
    listed = "".join(f"- {marked(problem)}\n" for problem in problems(rows))
    return f"# Coverage of the published tables\n\n{body}\n{explanation(rows)}\n" + (f"\n{listed}" if listed else "")


def _counted(row: Coverage, book: Book) -> Coverage:
    """Count the cells of a published table as the start page of the site shows them."""
    results = book.results(book.suite.table(f"{row.paper}-{row.table}"))
    found = statuses(results, book.causes(row.paper, row.table)).values()
    counts = Counter(status for status, _ in found)
    whole = [cell for status, cell in found if status != "reduced"]
    return replace(
        row,
        recorded=len(whole),
        partial=sum(cell.n < cell.expected for cell in whole),
        reproduced=counts["reproduced"],
        differing=counts["differs"] + counts["shown"],
        shown=counts["shown"],
        uninformative=counts["uninformative"],
        undecided=counts["undecided"],
        reduced=counts["reduced"],
        reduced_reproduced=sum(status == "reduced" and cell.status == "reproduced" for status, cell in found),
        broken=len({file for result in results.values() for file in result.broken}),
        problems=tuple(dict.fromkeys(problem for result in results.values() for problem in result.problems)),
    )


def _sum(name: str, rows: list[Coverage]) -> Coverage:
    return Coverage(name, "all", *(sum(getattr(row, count) for row in rows) for count in COUNTS))
