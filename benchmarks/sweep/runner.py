"""Runs what a plan says is left to do, and shares it with every other sweep on the same state folder."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from benchmarks.records.provenance import ROOT
from benchmarks.records.store import Store, StoreError
from benchmarks.shapes import Record, RunConfig
from benchmarks.state.checkpoints import Checkpoints
from benchmarks.state.claims import Claims
from benchmarks.suite import Suite
from benchmarks.sweep.estimate import Estimate
from benchmarks.sweep.executors.work import is_recorded
from benchmarks.sweep.forecast import Forecast
from benchmarks.sweep.groups import Executor, RunGroup, RunOutcome
from benchmarks.sweep.plan import WAITING, Plan, PlannedRun, make_plan

RESULTS = ROOT / "results"
STATE = ROOT / ".state"
LOOK_AGAIN = 1.0  # seconds between looks at runs that another sweep is making


class Display(Protocol):
    """Where progress is shown."""

    def begin(self, plan: Plan, groups: list[RunGroup], forecast: Forecast) -> None: ...

    def report(self, group: RunGroup, fraction: float, text: str) -> None: ...

    def end(self, group: RunGroup, outcomes: list[RunOutcome]) -> None: ...

    def say(self, text: str) -> None: ...

    def close(self) -> None: ...


class Silent:
    """Shows nothing."""

    def begin(self, plan: Plan, groups: list[RunGroup], forecast: Forecast) -> None:
        """Called once, before the first run group."""

    def report(self, group: RunGroup, fraction: float, text: str) -> None:
        """A run group has come so far."""

    def end(self, group: RunGroup, outcomes: list[RunOutcome]) -> None:
        """A run group is over."""

    def say(self, text: str) -> None:
        """A sentence to the user."""

    def close(self) -> None:
        """Called once, whatever happened."""


@dataclass
class Summary:
    """What a sweep did. failed: key -> reason; unsaved: records (key -> record) that could not be written."""

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
        """Whether runs wait for their data."""
        return bool(self.plan.select(WAITING))


def run(
    configs: list[RunConfig],
    executor: Executor,
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
    """Make the runs that have no record, failed ones again, and wait for those that another sweep is making.

    Every record and failure is written by the process that made it, at once. Ctrl-C stops at once, gives up
    all claims, and is told in the summary. With ``groups`` just these are done, and no other sweep is waited for.
    Raises StoreError and ClaimError, before anything is computed, if the folders cannot be written. The
    executor is closed at the end.
    """
    results, state, display = Path(results).resolve(), Path(state).resolve(), display or Silent()
    start = time.monotonic()
    plan = plan or make_plan(configs, results, state, suite, asked=asked)
    summary = Summary(plan)
    given = groups is not None
    waiting = {} if given else {run.key: run for run in plan.select("running")}
    groups = plan.groups(results, state, suite) if groups is None else groups
    if groups or waiting:
        check_folders(results, state)
    display.begin(plan, groups, Forecast(groups, estimate, executor.size))
    try:
        while groups or waiting:
            executor.submit(groups)
            for group, outcomes in executor.outcomes(display.report):
                _note(group, outcomes, summary, waiting)
                _save_again(summary, Store(results, suite.metrics))
                display.end(group, outcomes)
            if given:
                break
            groups = _wait(waiting, summary, results, state, suite, display)
    except KeyboardInterrupt:
        summary.interrupted = True
    finally:
        executor.close()
        Claims(state / "claims").clear_dead()
        _save_again(summary, Store(results, suite.metrics))
        # Of a process that was killed between a record and forgetting its checkpoint.
        Checkpoints(state).clear(*(run.key for run in plan.select("done")), *summary.made)
        display.close()
    summary.seconds = time.monotonic() - start
    return summary


def check_folders(results: Path, state: Path) -> None:
    """Raise StoreError or ClaimError if records or claims could not be written."""
    Store(results).check_writable()
    with Claims(state / "claims") as claims:
        claims.acquire(".probe")


def _note(group: RunGroup, outcomes: list[RunOutcome], summary: Summary, waiting: dict[str, PlannedRun]) -> None:
    for outcome, run in zip(outcomes, group.runs):
        if outcome.status == "elsewhere":
            asked = frozenset(run.asked)
            waiting[run.key] = PlannedRun(run.key, run.config, "running", attempts=run.attempts, asked=asked)
        elif outcome.status == "failed":
            summary.failed[outcome.key] = outcome.reason
        elif outcome.status == "unsaved":
            assert outcome.record is not None, "an unsaved run comes with its record"
            summary.unsaved[outcome.key] = outcome.record
        else:
            (summary.made if outcome.status == "done" else summary.elsewhere).append(outcome.key)


def _save_again(summary: Summary, store: Store) -> None:
    """What could not be written is held in memory and tried after every run group: room may have been made."""
    for key, record in list(summary.unsaved.items()):
        try:
            found = is_recorded(store, record["config"])  # by another sweep, since its claim was given up
            if not found:
                store.write(record)
        except StoreError as error:
            summary.unsaved_reason = str(error)
        else:
            (summary.elsewhere if found else summary.made).append(key)
            del summary.unsaved[key]


def _wait(
    waiting: dict[str, PlannedRun],
    summary: Summary,
    results: Path,
    state: Path,
    suite: Suite,
    display: Display,
) -> list[RunGroup]:
    """Wait for the runs that another sweep is making; those that it gives up come back as run groups."""
    said = False
    while waiting:
        abandoned = []
        asked = {key: run.asked for key, run in waiting.items()}
        for found in make_plan([run.config for run in waiting.values()], results, state, suite, asked=asked).runs:
            if found.status == "running":
                continue
            before = waiting.pop(found.key)
            if found.status == "done":
                summary.elsewhere.append(found.key)
            elif found.attempts > before.attempts:
                summary.failed[found.key] = found.note
            else:
                abandoned.append(found)
        if abandoned:
            return Plan(tuple(abandoned)).groups(results, state, suite)
        if waiting and not said:
            display.say(f"waiting for {len(waiting)} runs that another sweep is making")
            said = True
        if waiting:
            time.sleep(LOOK_AGAIN)
    return []
