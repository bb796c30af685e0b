"""Sweep runner: makes the runs that a plan has left, sharing them with other sweeps on the same state folder."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from benchmarks.records.provenance import ROOT
from benchmarks.records.store import Store, StoreError
from benchmarks.shapes import Record, RunConfig
from benchmarks.state.checkpoints import Checkpoints
from benchmarks.state.claims import Claims
from benchmarks.state.failures import Failures
from benchmarks.suite import Suite
from benchmarks.sweep.estimate import Estimate
from benchmarks.sweep.forecast import Forecast
from benchmarks.sweep.groups import RunGroup, RunOutcome
from benchmarks.sweep.plan import TO_TRAIN, WAITING, Plan, PlannedRun, make_plan
from benchmarks.sweep.progress import Display
from benchmarks.sweep.work import is_recorded, work
from benchmarks.sweep.workers import Workers

RESULTS = ROOT / "results"
STATE = ROOT / ".state"
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


def run(
    configs: list[RunConfig],
    workers: Workers | None = None,
    *,
    results: Path | str = RESULTS,
    state: Path | str = STATE,
    suite: Suite = Suite(),
    display: Display | None = None,
    plan: Plan | None = None,
    groups: list[RunGroup] | None = None,
    asked: Mapping[str, Iterable[str]] = MappingProxyType({}),
    estimate: Estimate | None = None,
) -> Summary:
    """Make the runs without a record, retry failed ones, and wait for those that another sweep is making.

    Without workers they are trained in this process. The process that made a record or failure writes it at once.
    Ctrl-C stops at once, releases all claims, and is noted in the summary. With ``groups``, only these are made, and no
    other sweep is waited for. Raises StoreError and ClaimError before any training if the folders cannot be written,
    and WorkersError if no worker can start.
    """
    results, state, display = Path(results).resolve(), Path(state).resolve(), display or Display()
    start = time.monotonic()
    plan = plan or make_plan(configs, results, state, suite, asked=asked)
    summary, claims = Summary(plan), Claims(state / "claims")
    todo = plan.groups(results, state, suite) if groups is None else groups
    left = {run.key: run for run in plan.select("running", *TO_TRAIN)} if groups is None else {}
    if todo or left:
        check_folders(results, state)
    display.begin(plan, todo, Forecast(todo, estimate, workers.count if workers else 1))
    try:
        with claims:
            while todo or left:
                with closing((workers.outcomes if workers else work)(todo, display.report)) as made:
                    for group, outcomes in made:
                        for outcome in outcomes:
                            if outcome.status != "elsewhere":
                                left.pop(outcome.key, None)
                            _note(outcome, summary, claims)
                        _save_again(summary, Store(results, suite.metrics))
                        display.end(group, outcomes)
                todo = _wait(left, summary, results, state, suite, display)
    except KeyboardInterrupt:
        summary.interrupted = True
    finally:
        claims.clear_dead()
        _save_again(summary, Store(results, suite.metrics))
        _forget(state, {*summary.made, *(run.key for run in plan.select("done"))})
        display.close()
    summary.seconds = time.monotonic() - start
    return summary


def _forget(state: Path, made: set[str]) -> None:
    """Remove checkpoints and failures left by processes that were killed after writing their record."""
    Checkpoints(state).clear(*made)
    failures = Failures(state)
    for key in made.intersection(failures.keys()):
        failures.clear(key)


def check_folders(results: Path, state: Path) -> None:
    """Raise StoreError or ClaimError if records or claims could not be written."""
    Store(results).check_writable()
    with Claims(state / "claims") as claims:
        claims.acquire(".probe")


def _note(outcome: RunOutcome, summary: Summary, claims: Claims) -> None:
    if outcome.status == "failed":
        summary.failed[outcome.key] = outcome.reason
    elif outcome.status == "unsaved":
        assert outcome.record is not None, "an unsaved run comes with its record"
        summary.unsaved[outcome.key] = outcome.record
        claims.take(outcome.key)  # other sweeps would train it again, and not save it
    elif outcome.status != "elsewhere":
        (summary.made if outcome.status == "done" else summary.elsewhere).append(outcome.key)


def _save_again(summary: Summary, store: Store) -> None:
    """Retry writing the records held in memory, after every run group: disk space may have been freed."""
    for key, record in list(summary.unsaved.items()):
        try:
            found = is_recorded(store, record["config"])  # another sweep may have made it, since its claim was released
            if not found:
                store.write(record)
        except StoreError as error:
            summary.unsaved_reason = str(error)
        else:
            (summary.elsewhere if found else summary.made).append(key)
            del summary.unsaved[key]


def _wait(
    left: dict[str, PlannedRun],
    summary: Summary,
    results: Path,
    state: Path,
    suite: Suite,
    display: Display,
) -> list[RunGroup]:
    """Wait for the runs of other sweeps; runs that those give up are returned as run groups."""
    said = False
    while left:
        asked = {key: run.asked for key, run in left.items()}
        free = []
        for found in make_plan([run.config for run in left.values()], results, state, suite, asked=asked).runs:
            failure = Failures(state).since(found.key, left[found.key].attempts)
            if found.status == "running":
                continue
            if found.status != "done" and not failure:
                free.append(replace(found, attempts=left[found.key].attempts))
                continue
            del left[found.key]
            if failure and found.status != "done":
                summary.failed[found.key] = failure["reason"]
            else:
                summary.elsewhere.append(found.key)
        if free:
            return Plan(tuple(free)).groups(results, state, suite)
        if left and not said:
            display.say(f"waiting for {len(left)} runs that another sweep is making")
            said = True
        if left:
            time.sleep(LOOK_AGAIN)
    return []
