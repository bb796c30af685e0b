"""Start of a sweep: its cost, and the alternatives where that is too much to start without confirmation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.commands import inspection, sweeping
from benchmarks.records.other_files import OtherFiles
from benchmarks.suite import Suite
from benchmarks.sweep.begin import Planned
from benchmarks.sweep.plan import recorded_datasets, recorded_protocol
from benchmarks.sweep.runner import Summary
from benchmarks.sweep.slurm import submit
from benchmarks.sweep.slurm.options import Options

TOO_LONG = 4  # exit status: nothing was trained, since it would take too long
WAITS = 5  # exit status: all runs left wait for data, and every table has records


def show(planned: Planned) -> int:
    """Show the runs, the data that they wait for, and the cost. Returns the exit status of the command."""
    print(inspection.plan_text(planned.plan))
    if isinstance(planned.where, Options) and planned.groups:
        print(*submit.preview(planned.groups, planned.where, Path(planned.plan.state)), sep="\n")
    for line in [*planned.costs, *planned.misfits, *planned.refusal]:
        print(line)
    return 1 if planned.misfits else 0


def hand_over(planned: Planned, options: Options, wait: bool, anyway: bool) -> int:
    """Show the cost and submit the runs to a cluster. Returns the exit status of the command."""
    for line in planned.costs:
        print(line, flush=True)
    return refuse(planned) if planned.refusal and not anyway else sweeping.run(planned.plan, options, wait)


def refuse(planned: Planned) -> int:
    """Print the table as far as there are records, and the alternatives. Returns the exit status of the command."""
    asked, plan = planned.asked, planned.plan
    if len(asked.tables) == 1:
        print_best(asked.tables[0], asked.protocol, Path(plan.results), Path(plan.state), plan.suite)
    print(*planned.refusal, sep="\n")
    return TOO_LONG


def status(summary: Summary, names: Sequence[str], protocol: str | None) -> int:
    """Return the exit status of a sweep."""
    if summary.interrupted or summary.complete:
        return 130 if summary.interrupted else 0
    suite, tables = summary.plan.suite, [summary.plan.suite.table(name) for name in names]
    has = OtherFiles(Path(summary.plan.results), suite.metrics).has
    shown = all(recorded_datasets(table, recorded_protocol(table, protocol, has), has) for table in tables)
    return WAITS if shown and not (summary.failed or summary.unsaved) else 1


def print_best(table: Any, protocol: str | None, results: Path, state: Path, suite: Suite) -> None:
    """Print a table as far as there are records, under the most faithful recorded protocol."""
    best = recorded_protocol(table, protocol, OtherFiles(results, suite.metrics).has)
    print(f"table {table.name} as far as there are records, at protocol {best}:", flush=True)
    if suite.reports:
        where = ["--results", str(results), "--state", str(state)]
        subprocess.run([sys.executable, "-m", suite.reports, "table", table.name, "--protocol", best, *where])
