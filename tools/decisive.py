"""List the missing runs that would decide the papers' claims, cheapest claim first: ``python -m tools.decisive``.

A claim counts while our runs of protocol paper leave some of its comparisons without a test. Costs are those of
``--dry-run`` (docs/cluster.md). A run that several claims need is counted for each of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from benchmarks.commands.inspection import columns
from benchmarks.records.store import Store
from benchmarks.shapes import RunConfig
from benchmarks.suite import Suite
from benchmarks.sweep.begin import SUITE, merged
from benchmarks.sweep.estimate import Estimate, Known, estimate
from benchmarks.sweep.plan import make_plan
from reports.findings.page import of_book
from reports.findings.verdicts import Finding
from reports.findings.words import flat
from reports.page.book import Book
from reports.records import Records

PAPER = "paper"


def lacking(finding: Finding, suite: Suite) -> Iterator[RunConfig]:
    """Yield the runs of protocol paper, made or not, of the comparisons that our runs do not test."""
    for each in finding.tested:
        if finding.protocol != PAPER or each.paired is None:
            table = suite.table(each.comparison.table)
            for cell in each.comparison.cells:
                if PAPER in table.protocols and cell.row.method:
                    yield from table.cell_runs(cell.row, cell.column, PAPER)


def costs(results: Path, state: Path, suite: Suite = SUITE) -> list[tuple[Finding, int, Estimate]]:
    """Return each claim that more runs would test, the number of these, and their estimate; cheapest first."""
    known, found = Known(Store(results, suite.metrics), state), []
    for finding in flat(of_book(Book(suite, Records(results)))):
        tables = (table for table in map(suite.table, finding.claim.tables) if PAPER in table.protocols)
        metrics = merged(table.asked(PAPER) for table in tables)
        plan = make_plan(lacking(finding, suite), results, state, suite, metrics)
        if missing := sum(len(group.runs) for group in plan.groups):
            found.append((finding, missing, estimate(plan.groups, known)))
    return sorted(found, key=lambda each: (bool(each[2].unknown), each[2].seconds))


def main(arguments: list[str] | None = None) -> None:
    """Print these claims, their missing runs and core-hours."""
    parser = argparse.ArgumentParser(prog="python -m tools.decisive", description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the records (results)")
    parser.add_argument("--state", type=Path, default=Path(".state"), help="folder of checkpoints (.state)")
    options = parser.parse_args(arguments)
    rows = [("claim", "missing runs", "core-hours", "tables")]
    for finding, missing, cost in costs(options.results, options.state):
        rows.append((finding.claim.id, str(missing), cost.core_hours, " ".join(finding.claim.tables)))
    print(columns(rows))


if __name__ == "__main__":
    main()
