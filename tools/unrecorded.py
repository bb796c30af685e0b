"""List the rows of the tables that have no run yet on a data set, cheapest run first: ``python -m tools.unrecorded``.

A row counts under the protocol that its table shows. Costs are those of ``--dry-run`` (docs/cluster.md), "at least"
without the evaluation. Rows that wait for data are left out. Runs that several tables need are listed for the first.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from benchmarks.commands.inspection import columns
from benchmarks.records.config import run_key
from benchmarks.records.store import Store
from benchmarks.shapes import RunConfig
from benchmarks.suite import Suite
from benchmarks.sweep.begin import SUITE
from benchmarks.sweep.estimate import Estimate, Known, estimate
from benchmarks.sweep.plan import MEANINGLESS, make_plan, missing_data
from reports.records import Records, recorded

Place = tuple[str, str, str, str]


def costs(
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
    known, found = Known(Store(results, suite.metrics), state), []
    for group in plan.groups:
        for run in group.runs:  # each by itself, though some share a training
            place, runs = firsts[run.key]
            found.append((place, len(runs), estimate([replace(group, runs=(run,))], known)))
    return sorted(found, key=lambda each: (bool(each[2].unknown), each[2].seconds))


def main(arguments: list[str] | None = None) -> None:
    """Print these rows, the core-hours of a run and the number of runs."""
    parser = argparse.ArgumentParser(prog="python -m tools.unrecorded", description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="names of tables (all)")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the records (results)")
    parser.add_argument("--state", type=Path, default=Path(".state"), help="folder of checkpoints (.state)")
    options = parser.parse_args(arguments)
    rows = [("core-hours a run", "runs", "table", "protocol", "row", "data set")]
    for place, runs, cost in costs(options.results, options.state, options.tables):
        rows.append((cost.core_hours, str(runs), *place))
    print(columns(rows))


if __name__ == "__main__":
    main()
