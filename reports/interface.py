"""Tables from Python: their cells as a frame, as Markdown or LaTeX, and coverage of the papers.

The command line calls these functions; docs/python.md shows them. Functions of :mod:`benchmarks.interface`, which plan,
train and measure, are included, so that one import serves a notebook. Problems with records are in
``frame.attrs["problems"]`` and under every rendered table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.errors import BenchmarkError, UsageError, unknown
from benchmarks.interface import measure, plan, records, run, score
from benchmarks.suite import Suite
from benchmarks.sweep.begin import SUITE, Names, Seeds, TooLong, parse_seeds, with_rows
from benchmarks.sweep.runner import RESULTS, STATE
from benchmarks.tables.external import with_external_rows
from reports import tables, terminal
from reports.aggregate import CellResult, TableResult
from reports.aggregate import aggregate as aggregate_table
from reports.choice import WHOLE, Choice
from reports.coverage import COUNTS
from reports.coverage import coverage as count_coverage
from reports.findings import words
from reports.findings.claims import read
from reports.findings.comparisons import check
from reports.findings.page import of_book
from reports.findings.verdicts import Finding, judge
from reports.page.book import Book
from reports.records import Records, recorded

if TYPE_CHECKING:
    import pandas

__all__ = [
    "COLUMNS",
    "Choice",
    "TooLong",
    "aggregate",
    "claims",
    "coverage",
    "findings",
    "measure",
    "plan",
    "records",
    "render",
    "run",
    "score",
]

FORMS = {"text": terminal.text, "markdown": tables.markdown, "latex": tables.latex}
COLUMNS = {
    "row": "label of the row",
    "method": "as in the catalogue of methods; None where none makes the row yet",
    "column": "label of the column",
    "dataset": "of the column",
    "condition": "of the column, as in records",
    "metric": "that the cell shows, as in records",
    "mean": "over the runs found, in the unit that the table prints; nan without any",
    "stderr": "standard error of the mean, ddof = 1; nan with fewer than two runs",
    "n": "runs found",
    "expected": "runs that the protocol asks for",
    "published": "the published mean; nan where there is none",
    "published_stderr": "its error; nan where the paper does not say it",
    "verdict": "what is missing of the cell, and how it compares with the published number (docs/verdicts.md)",
    "best": "whether it is printed in bold",
}
"""Columns of :func:`aggregate`."""


def aggregate(
    table: str,
    protocol: str | None = None,
    seeds: Seeds = None,
    *,
    also: Names = (),
    results: Path | str = RESULTS,
    state: Path | str | None = STATE,
    suite: Suite = SUITE,
) -> pandas.DataFrame:
    """Return a row for every cell of a table, in COLUMNS. protocol: default the table's own, or the most faithful one
    with records where that has none; seeds: how many, or which.

    Raises UnknownName for unknown names, UsageError for invalid seeds.
    """
    import pandas

    known = Records(results, state)
    found = result(chosen(table, known, also, suite), protocol, seeds, known)
    frame = pandas.DataFrame([_cell(cell) for cell in found.flat], columns=list(COLUMNS))
    frame.attrs |= {"table": found.table.name, "protocol": found.protocol, "problems": found.problems}
    return frame


def render(
    table: str,
    form: str = "markdown",
    protocol: str | None = None,
    seeds: Seeds = None,
    *,
    also: Names = (),
    choice: Choice = WHOLE,
    results: Path | str = RESULTS,
    state: Path | str | None = STATE,
    suite: Suite = SUITE,
) -> str:
    """Return a table as "markdown", "latex" or "text", as ``python -m reports table`` writes it; see :func:`aggregate`.

    choice: rows, columns and layout.
    """
    if form not in FORMS:
        raise unknown("form", form, FORMS)
    known = Records(results, state)
    return FORMS[form](choice.of(result(chosen(table, known, also, suite), protocol, seeds, known)), choice)


def coverage(results: Path | str = RESULTS, *, suite: Suite = SUITE) -> pandas.DataFrame:
    """Return a row for every published table: its cells, those with records, reproduced and differing ones."""
    import pandas

    rows = count_coverage(results, suite)
    columns = ["paper", "table", *COUNTS]
    frame = pandas.DataFrame([[getattr(row, name) for name in columns] for row in rows], columns=columns)
    frame.attrs["problems"] = list(dict.fromkeys(problem for row in rows for problem in row.problems))
    return frame


def findings(results: Path | str = RESULTS, *, suite: Suite = SUITE) -> pandas.DataFrame:
    """Return a row for every comparison of every claim of the papers, with both verdicts on the claim.

    Columns are in :data:`reports.findings.words.COLUMNS`.
    """
    known = Records(results)
    return _comparisons(words.flat(of_book(Book(suite, known))), known)


def claims(
    file: Path | str, results: Path | str = RESULTS, *, also: Names = (), suite: Suite = SUITE
) -> pandas.DataFrame:
    """Return a row for every comparison of every claim of a CSV file of one's own, as :func:`findings` does.

    also: methods that have a row more in the tables that the file names. Raises BenchmarkError for an invalid file, and
    for a claim that cannot be tested.
    """
    known = Records(results)
    return _comparisons(judged(Path(file), known, also, suite), known)


def judged(file: Path, known: Records, also: Names = (), suite: Suite = SUITE) -> list[Finding]:
    """Return both verdicts on every claim of a file of one's own; see :func:`claims`."""
    table = cache(lambda name: chosen(name, known, also, suite))
    listed = read(file)
    for claim in listed:
        try:
            for test in claim.tests:
                check(test, list(map(table, test.tables)), claim.not_worse)
        except UsageError as error:
            raise BenchmarkError(f"{file}: claim {claim.id}: {error}") from error
    return judge(listed, suite, lambda name, protocol: result(table(name), protocol, None, known))


def chosen(name: str, known: Records, also: Names = (), suite: Suite = SUITE) -> Any:
    """Return a table with rows for more methods, and for external predictions. Raises UnknownName and NoRecipe."""
    (found,) = with_external_rows(with_rows(name, also, suite), suite, known.store)
    return found


def result(table: Any, protocol: str | None, seeds: Seeds, known: Records) -> TableResult:
    """Return every cell of a table, as all forms show it. Raises UnknownName and UsageError."""
    shown, known = recorded(table, protocol, known)
    return aggregate_table(table, shown, known, parse_seeds(seeds))


def _comparisons(found: Sequence[Finding], known: Records) -> pandas.DataFrame:
    import pandas

    frame = pandas.DataFrame(words.rows(found), columns=list(words.COLUMNS))
    frame.attrs["problems"] = known.problems
    return frame


def _cell(cell: CellResult) -> list[Any]:
    wanted, number = cell.column.cell_of(cell.row), cell.published
    paper = [number.mean if number else None, number.stderr if number else None]
    numbers = [cell.mean, cell.stderr, cell.n, cell.expected, *(float("nan") if p is None else p for p in paper)]
    named = [cell.row.label, cell.row.method, cell.column.label, wanted.dataset, wanted.condition, wanted.metric]
    return [*named, *numbers, cell.verdict, cell.bold]
