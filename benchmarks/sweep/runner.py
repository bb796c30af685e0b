"""Sweep runner: makes the runs that a plan has left, sharing them with other sweeps on the same state folder."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field, replace

from benchmarks.records.store import StoreError
from benchmarks.shapes import Record
from benchmarks.state.checkpoints import Checkpoints
from benchmarks.state.claims import Claims
from benchmarks.sweep import hints
from benchmarks.sweep.estimate import Estimate
from benchmarks.sweep.forecast import Forecast
from benchmarks.sweep.plan import TO_TRAIN, WAITING, Plan, PlannedRun, RunGroup, RunOutcome
from benchmarks.sweep.progress import Display
from benchmarks.sweep.work import work
from benchmarks.sweep.workers import Workers
from fvi_core.telling import plural

RESULTS, STATE = hints.USUAL["results"], hints.USUAL["state"]
LOOK_AGAIN = 1.0  # seconds between checks on runs of other sweeps


@dataclass
class Summary:
    """Result of a sweep. failed: key -> reason; unsaved: records (key -> record) that could not be written."""

    plan: Plan
    made: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    unsaved: dict[str, Record] = field(default_factory=dict)
    unsaved_reason: str = ""
    interrupted: bool = False
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether every run of the plan now has a record."""
        return not (self.interrupted or self.failed or self.unsaved or self.waits)

    @property
    def waits(self) -> bool:
        return bool(self.plan.select(WAITING))

    def note(self, outcome: RunOutcome, claims: Claims) -> None:
        """Count the outcome of a run."""
        if outcome.status == "failed":
            self.failed[outcome.key] = outcome.reason
        elif outcome.status == "unsaved":
            assert outcome.record is not None, "an unsaved run comes with its record"
            self.unsaved[outcome.key] = outcome.record
            claims.take(outcome.key)  # other sweeps would train it again, and not save it
        elif outcome.status == "done":
            self.made.append(outcome.key)

    def save_again(self) -> None:
        """Retry writing the records held in memory, after every run group: disk space may have been freed."""
        for key, record in list(self.unsaved.items()):
            try:
                # Another sweep may have made the run, since its claim was released.
                recorded = self.plan.recorded(PlannedRun(key, record["config"]))
                if not recorded:
                    self.plan.store.write(record)
            except StoreError as error:
                self.unsaved_reason = str(error)
            else:
                (self.elsewhere if recorded else self.made).append(key)
                del self.unsaved[key]


def run(
    plan: Plan,
    workers: Workers | None = None,
    display: Display | None = None,
    estimate: Estimate | None = None,
    groups: list[RunGroup] | None = None,
) -> Summary:
    """Make the runs without a record, retry failed ones, and wait for those that another sweep is making.

    Without workers they are trained in this process. The process that made a record or failure writes it at once.
    Ctrl-C stops at once, releases all claims, and is noted in the summary. With ``groups``, only these are made, and no
    other sweep is waited for. Raises StoreError and ClaimError before any training if the folders cannot be written,
    and BenchmarkError if no worker can start.
    """
    start, display, summary, claims = time.monotonic(), display or Display(), Summary(plan), plan.claims
    todo = plan.groups if groups is None else groups
    left = {run.key: run for run in plan.select("running", *TO_TRAIN)} if groups is None else {}
    if todo or left:
        plan.check_writable()
    display.begin(plan, Forecast(todo, estimate, workers.count if workers else 1))
    try:
        with claims:
            while todo or left:
                with closing((workers.outcomes if workers else work)(todo, display.report)) as finished:
                    for group, outcomes in finished:
                        for outcome in outcomes:
                            if outcome.status != "elsewhere":
                                left.pop(outcome.key, None)
                            summary.note(outcome, claims)
                        summary.save_again()
                        display.end(group, outcomes)
                todo = _wait(left, summary, display)
    except KeyboardInterrupt:
        summary.interrupted = True
    finally:
        claims.clear_dead()
        summary.save_again()
        _forget(plan, {*summary.made, *(run.key for run in plan.select("done"))})
        display.close()
    summary.seconds = time.monotonic() - start
    return summary


def _forget(plan: Plan, keys: set[str]) -> None:
    """Remove checkpoints and failures left by processes that were killed after writing their record."""
    checkpoints = Checkpoints(plan.state)
    checkpoints.clear(*checkpoints.serving(keys))
    for key in keys.intersection(plan.failures.keys()):
        plan.failures.clear(key)


def _wait(left: dict[str, PlannedRun], summary: Summary, display: Display) -> list[RunGroup]:
    """Wait for the runs of other sweeps; runs that those give up are returned as run groups."""
    said = False
    while left:
        free = []
        for run in replace(summary.plan, runs=tuple(left.values())).look().runs:
            before = left[run.key]
            if run.status == "done":
                summary.elsewhere.append(run.key)
                del left[run.key]
            elif run.status == "failed" and (failure := summary.plan.failures.since(run.key, before.attempts)):
                summary.failed[run.key] = failure["reason"]
                del left[run.key]
            elif run.status != "running":
                free.append(replace(run, attempts=before.attempts))
        if free:
            return replace(summary.plan, runs=tuple(free)).groups
        if left and not said:
            display.say(f"waiting for {plural(len(left), 'run')} that another sweep is making")
            said = True
        time.sleep(LOOK_AGAIN if left else 0)
    return []
