"""Start of a sweep: its cost, the alternatives where that is too much to start without confirmation, and the end.

On a cluster: submit missing runs, say how to follow them, wait.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.commands import inspection
from benchmarks.records.other_files import OtherFiles
from benchmarks.suite import Suite
from benchmarks.sweep import hints
from benchmarks.sweep.begin import Planned
from benchmarks.sweep.plan import Plan, counts_text, recorded_datasets, recorded_protocol
from benchmarks.sweep.runner import Summary
from benchmarks.sweep.slurm import jobs
from benchmarks.sweep.slurm import submit as sbatch
from benchmarks.sweep.slurm.options import Options
from fvi_core.telling import plural

UNFINISHED = 3  # exit status: runs are not finished
TOO_LONG = 4  # exit status: nothing was trained, since it would take too long
WAITS = 5  # exit status: all runs left wait for data, and every table has records
LOOK_EVERY = 5.0  # seconds between checks while waiting
LINE_EVERY = 60.0  # seconds between lines if nothing changes


def show(planned: Planned) -> int:
    """Show the runs, the data that they wait for, and the cost. Returns the exit status of the command."""
    print(inspection.plan_text(planned.plan))
    if isinstance(planned.where, Options) and planned.groups:
        print(*sbatch.preview(planned.groups, planned.where, Path(planned.plan.state)), sep="\n")
    for line in [*planned.costs, *planned.misfits, *planned.refusal]:
        print(line)
    return 1 if planned.misfits or planned.plan.problems else 0


def hand_over(planned: Planned, options: Options, wait: bool, anyway: bool) -> int:
    """Show the cost and submit the runs to a cluster. Returns the exit status of the command."""
    for line in planned.costs:
        print(line, flush=True)
    return refuse(planned) if planned.refusal and not anyway else run(planned.plan, options, wait)


def refuse(planned: Planned) -> int:
    """Print the table as far as there are records, and the alternatives. Returns the exit status of the command."""
    selection, plan = planned.selection, planned.plan
    if len(selection.tables) == 1:
        print_best(selection.tables[0], selection.protocol, Path(plan.results), Path(plan.state), plan.suite)
    print(*planned.refusal, sep="\n")
    return TOO_LONG


def status(summary: Summary, names: Sequence[str], protocol: str | None) -> int:
    """Return the exit status of a sweep."""
    if summary.interrupted or summary.complete:
        return 130 if summary.interrupted else 0
    suite, tables = summary.plan.suite, [summary.plan.suite.table(name) for name in names]
    recorded = OtherFiles(Path(summary.plan.results), suite.metrics).has
    shown = all(recorded_datasets(table, recorded_protocol(table, protocol, recorded), recorded) for table in tables)
    return WAITS if shown and not (summary.failed or summary.unsaved) else 1


def print_best(table: Any, protocol: str | None, results: Path, state: Path, suite: Suite) -> None:
    """Print a table as far as there are records, under the most faithful recorded protocol."""
    best = recorded_protocol(table, protocol, OtherFiles(results, suite.metrics).has)
    print(f"table {table.name} as far as there are records, at protocol {best}:", flush=True)
    if suite.reports:
        with contextlib.suppress(OSError):  # reports refuse a folder that is not there
            results.mkdir(parents=True, exist_ok=True)
        where = ["--results", str(results), "--state", str(state)]
        subprocess.run([sys.executable, "-m", suite.reports, "table", table.name, "--protocol", best, *where])


def run(plan: Plan, options: Options, wait: bool) -> int:
    """Submit and report; with ``wait``, follow until every run is over. Returns the exit status of the command."""
    plan, receipt = submit(plan, options)
    print(*plan.problems, f"{plural(len(plan.runs), 'run')}: {counts_text(plan.counts)}", sep="\n")
    coming = len(plan.select("running", "queued"))
    way = "is on its" if coming == 1 else "are on their"
    nothing = "nothing to submit" + (f"; {plural(coming, 'run')} {way} way" if coming else "")
    print(*(receipt or [nothing]), sep="\n")
    if wait:
        plan = follow(plan)
        print(*filter(None, [inspection.failures_text(plan), inspection.remarks_text(plan)]), sep="\n")
        if plan.counts["done"] < len(plan.runs):
            print(f"to continue: {hints.again()}")
    elif receipt or coming:
        return UNFINISHED
    return 0 if plan.counts["done"] == len(plan.runs) else 1


def submit(plan: Plan, options: Options) -> tuple[Plan, list[str]]:
    """Submit the runs that are neither done nor queued nor running, nor wait for data; return the plan before that, and
    the receipt.

    Raises StoreError, ClaimError, and errors of :func:`sbatch.submit`.
    """
    plan.check_writable()
    with jobs.locked(plan.state):
        plan = plan.look(jobs.pending(plan.state, held=True))
        return plan, sbatch.submit(plan.groups, options, Path(plan.state)) if plan.groups else []


def follow(plan: Plan) -> Plan:
    """Wait until no run is queued or running, with a line at every change. Ctrl-C does not affect the jobs."""
    shown, last = "", 0.0
    try:
        while True:
            plan = plan.look(jobs.pending(plan.state), strict=False)
            text = counts_text(plan.counts)
            if text != shown or time.monotonic() - last > LINE_EVERY:
                shown, last = text, time.monotonic()
                print(f"{plural(len(plan.runs), 'run')}: {text}", flush=True)
            if not plan.select("running", "queued"):
                return plan
            time.sleep(LOOK_EVERY)
    except KeyboardInterrupt:
        print(f"no longer waiting; the jobs continue without this command; to wait again: {hints.again()}")
        raise
