"""List missing runs, cheapest first: ``python -m tools.missing claims``, ``... undecided`` or ``... rows [TABLE]..``.

claims: those that would test the papers' claims. A claim counts while our runs of protocol paper leave some of its
comparisons without a test; a run that several claims need is counted for each of them.

undecided: further seeds for claims that our runs test and do not decide, under the protocol of these runs. A comparison
counts where the table plans as many runs as would decide it at the scatter seen so far.

rows: rows of tables without a run on a data set, under the protocol that the table shows, with the cost of one run.
Rows that wait for data are left out; runs that several tables need are listed for the first.

Costs are those of ``--dry-run`` (docs/cluster.md), "at least" without the evaluation.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from benchmarks.commands.inspection import columns
from benchmarks.records.config import run_key
from benchmarks.records.store import Store
from benchmarks.shapes import RunConfig
from benchmarks.suite import Suite
from benchmarks.sweep.begin import SUITE, merged
from benchmarks.sweep.estimate import Estimate, Known, estimate
from benchmarks.sweep.plan import MEANINGLESS, make_plan, missing_data
from reports.findings.page import of_book
from reports.findings.verdicts import Finding, Verdict
from reports.findings.words import flat
from reports.interface import judged
from reports.page.book import Book
from reports.records import Records, recorded

PAPER = "paper"
Place = tuple[str, str, str, str]
T = TypeVar("T")


def lacking(finding: Finding, suite: Suite) -> Iterator[RunConfig]:
    """Yield the runs of protocol paper, made or not, of the comparisons that our runs do not test."""
    for each in finding.tested:
        if finding.protocol != PAPER or each.paired is None:
            table = suite.table(each.comparison.table)
            for cell in each.comparison.cells:
                if PAPER in table.protocols and cell.row.method:
                    yield from table.cell_runs(cell.row, cell.column, PAPER)


def decisive(finding: Finding, suite: Suite) -> Iterator[RunConfig]:
    """Yield the runs, made or not, that would decide comparisons of an undecided claim at the scatter of its runs."""
    for each, needed in zip(finding.counted, finding.needed, strict=True):
        table = suite.table(each.comparison.table)
        runs = [table.cell_runs(cell.row, cell.column, finding.protocol) for cell in each.comparison.cells]
        if finding.by_records == Verdict.OPEN and needed <= min(map(len, runs), default=0):
            yield from (run for own in runs for run in own[: int(needed)])


def claims(
    results: Path, state: Path, suite: Suite = SUITE, undecided: bool = False, file: Path | None = None
) -> list[tuple[Finding, int, Estimate]]:
    """Return each claim that more runs would test, or decide where ``undecided``, the number of these, and their
    estimate; cheapest first. file: of claims in place of those of the papers."""
    known, listed, records = Known(Store(results, suite.metrics), state), [], Records(results)
    for finding in judged(file, records, suite=suite) if file else flat(of_book(Book(suite, records))):
        protocol, runs = (finding.protocol, decisive) if undecided else (PAPER, lacking)
        tables = (table for table in map(suite.table, finding.claim.tables) if protocol in table.protocols)
        metrics = merged(table.metrics_of_runs(protocol) for table in tables)
        plan = make_plan(runs(finding, suite), results, state, suite, metrics)
        if missing := sum(len(group.runs) for group in plan.groups):
            listed.append((finding, missing, estimate(plan.groups, known)))
    return _cheapest_first(listed)


def rows(
    results: Path, state: Path, names: Collection[str] = (), suite: Suite = SUITE
) -> list[tuple[Place, int, Estimate]]:
    """Return table, protocol, row and data set of these rows, the number of their runs, and the estimate of the first;
    cheapest first.

    names: of tables; all without. Raises UnknownName.
    """
    records, firsts = Records(results), dict[str, tuple[Place, list[RunConfig]]]()
    for table in map(suite.table, names or suite.table_names()):
        protocol = recorded(table, None, records)[0]
        for row, dataset, runs in table.plans(protocol) if protocol != MEANINGLESS else ():
            if runs and not any(map(records.has, runs)):
                firsts.setdefault(run_key(runs[0]), ((table.name, protocol, row.label, dataset), runs))
    plan = make_plan([runs[0] for _, runs in firsts.values()], results, state, suite)
    plan = plan.waiting(missing_data(plan))
    known, listed = Known(Store(results, suite.metrics), state), []
    for group in plan.groups:
        for run in group.runs:  # each by itself, though some share a training
            place, runs = firsts[run.key]
            listed.append((place, len(runs), estimate([replace(group, runs=(run,))], known)))
    return _cheapest_first(listed)


def _cheapest_first(listed: list[tuple[T, int, Estimate]]) -> list[tuple[T, int, Estimate]]:
    return sorted(listed, key=lambda each: (bool(each[2].unknown), each[2].seconds))


def main(arguments: list[str] | None = None) -> None:
    """Print claims or rows, with their numbers of runs and core-hours."""
    parser = argparse.ArgumentParser(prog="python -m tools.missing", description=__doc__)
    parser.add_argument("what", choices=("claims", "undecided", "rows"), help="what lacks the runs that are listed")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="for rows, names of tables (all)")
    parser.add_argument("--claims", type=Path, metavar="FILE", help="claims of your own, in place of the papers'")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the records (results)")
    parser.add_argument("--state", type=Path, default=Path(".state"), help="folder of checkpoints (.state)")
    options = parser.parse_args(arguments)
    if options.what != "rows":
        listed = [("claim", "missing runs", "core-hours", "tables")]
        for finding, count, cost in claims(
            options.results, options.state, undecided=options.what == "undecided", file=options.claims
        ):
            listed.append((finding.claim.id, str(count), cost.core_hours, " ".join(finding.claim.tables)))
        print(columns(listed))
    else:
        shown = [("core-hours a run", "runs", "table", "protocol", "row", "data set")]
        for place, count, cost in rows(options.results, options.state, options.tables):
            shown.append((cost.core_hours, str(count), *place))
        print(columns(shown))


if __name__ == "__main__":
    main()
