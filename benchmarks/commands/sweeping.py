"""Sweep on a cluster: submit missing runs, say how to follow them, wait."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.commands import inspection
from benchmarks.sweep import hints
from benchmarks.sweep.plan import Plan, counts_text
from benchmarks.sweep.slurm import jobs
from benchmarks.sweep.slurm import submit as sbatch
from benchmarks.sweep.slurm.options import Options

UNFINISHED = 3  # exit status: runs are not finished
LOOK_EVERY = 5.0  # seconds between checks while waiting
LINE_EVERY = 60.0  # seconds between lines if nothing changes


def run(plan: Plan, options: Options, wait: bool) -> int:
    """Submit and report; with ``wait``, follow until every run is over. Returns the exit status of the command."""
    plan, receipt = submit(plan, options)
    print(submitted_text(plan, receipt))
    if wait:
        plan = follow(plan)
        print(inspection.failures_text(plan))
        if plan.counts["done"] < len(plan.runs):
            print(f"to continue: {hints.again()}")
    elif receipt or plan.select("running", "queued"):
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


def submitted_text(plan: Plan, receipt: list[str]) -> str:
    """Describe a submitted sweep: its plan and its receipt."""
    lines = [*plan.problems, f"{len(plan.runs)} runs: {counts_text(plan.counts)}"]
    waiting = plan.counts["running"] + plan.counts["queued"]
    nothing = "nothing to submit" + (f"; {waiting} runs are on their way" if waiting else "")
    return "\n".join([*lines, *(receipt or [nothing])])


def follow(plan: Plan) -> Plan:
    """Wait until no run is queued or running, with a line at every change. Ctrl-C does not affect the jobs."""
    told, last = "", 0.0
    try:
        while True:
            plan = plan.look(jobs.pending(plan.state), strict=False)
            text = counts_text(plan.counts)
            if text != told or time.monotonic() - last > LINE_EVERY:
                told, last = text, time.monotonic()
                print(f"{len(plan.runs)} runs: {text}", flush=True)
            if not plan.select("running", "queued"):
                return plan
            time.sleep(LOOK_EVERY)
    except KeyboardInterrupt:
        print(f"no longer waiting; the jobs continue without this command; to wait again: {hints.again()}")
        raise
