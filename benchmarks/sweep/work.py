"""Loop of every worker: claim the next free run group, train it, write records or failures."""

from __future__ import annotations

import contextlib
import io
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import files
from benchmarks.errors import BenchmarkError
from benchmarks.records import provenance
from benchmarks.records.config import run_key
from benchmarks.records.form import InvalidRecord
from benchmarks.records.store import StoreError
from benchmarks.shapes import Failure, Record
from benchmarks.state.checkpoints import Checkpoints, stop_requested
from benchmarks.state.claims import ClaimError, Claims, Holder, Overtaken
from benchmarks.state.remarks import Remarks
from benchmarks.suite import resolve
from benchmarks.sweep.plan import Outcomes, PlannedRun, Report, RunGroup, RunOutcome
from benchmarks.sweep.threads import limited
from fvi_core import plugins
from fvi_core.printing import message
from fvi_core.telling import Message

FREE, HELD, OVER = "free", "held", "over"


def work(todo: Sequence[RunGroup], report: Report, descriptors: bool = False) -> Outcomes:
    """Make the runs that no other process is making, has made or has tried since they were planned.

    Repeats the list until all remaining runs are made elsewhere, so that runs given up by other processes are taken
    over. Yields each run group of which it tried a run; for descriptors see :func:`perform`. Raises KeyboardInterrupt
    between two run groups when a stop was requested.
    """
    left, moved = list(todo), True
    while left and moved:
        before, left, moved = left, [], False
        for group in before:
            if stop_requested():
                raise KeyboardInterrupt
            state = _state(group)
            if state == FREE:
                outcomes = perform(group, partial(report, group), descriptors)
                runs = tuple(run for run, each in zip(group.runs, outcomes) if each.status == "elsewhere")
                if len(runs) < len(group.runs):
                    yield group, outcomes
                    group, moved = replace(group, runs=runs), True
            if state != OVER and group.runs:
                left.append(group)


def _state(group: RunGroup) -> str:
    """Tell whether a run of a group is free, or all are made or tried, or some are claimed elsewhere."""
    claims, failures, held = group.claims, group.failures, False
    for run in group.runs:
        if claims.holder(run.key):
            held = True
        elif not failures.since(run.key, run.attempts) and not group.recorded(run):
            return FREE
    return HELD if held else OVER


def perform(group: RunGroup, report: Callable[[float, str], None], descriptors: bool = False) -> list[RunOutcome]:
    """Make the runs of a group that no other process is making or has made; return the outcome of each.

    Raises only KeyboardInterrupt, after releasing its claims. With descriptors the log also captures what compiled code
    prints; only for processes that do nothing else.
    """
    with group.claims as claims:
        making = _Making(group, claims)
        try:
            plugins.load()  # before any look-up of metrics
            with limited():
                mine = making.claim_all()
                if mine:
                    report(0.0, "")
                    making.train(mine, report, descriptors)
        except Overtaken:
            for run in making.left():
                making.note(run, "elsewhere")
        except (Exception, SystemExit) as error:  # code from outside may call sys.exit
            for run in making.left():
                making.fail(run, reason_of(error), traceback.format_exc())
    return making.all_outcomes()


def settle(group: RunGroup, reason: str, moment: float = 0.0) -> list[RunOutcome]:
    """Return the outcomes of a group whose process has died: runs without a record have failed, for this reason, unless
    another process has taken them over, which counts this death itself.

    Holds their claims for ``moment`` seconds before, in which a signal may show that this process was to end too.
    """
    with group.claims as claims:
        for key in group.keys:
            with contextlib.suppress(ClaimError):
                claims.acquire(key)
        time.sleep(moment)
        making = _Making(group, claims)
        for run in group.runs:
            if group.recorded(run):
                making.note(run, "done")
            elif failure := making.failures.since(run.key, run.attempts):
                making.note(run, "failed", failure["reason"])
            else:
                making.fail(run, reason, guess=True)
    return making.all_outcomes()


def reason_of(error: BaseException) -> str:
    """Return an exception in one line, with the place in a plug-in that it came through."""
    text = message(error)
    if isinstance(error, BenchmarkError):
        return text
    return ": ".join(filter(None, (type(error).__name__, text))) + plugins.place_of(error)


class _Making:
    """State of a run group while it is made: claims, and outcomes of finished runs."""

    def __init__(self, group: RunGroup, claims: Claims) -> None:
        self.group, self.claims, self.store, self.failures = group, claims, group.store, group.failures
        self.checkpoints, self.remarks = Checkpoints(group.state), Remarks(group.state)
        self.outcomes: dict[str, RunOutcome] = {}

    def note(self, run: PlannedRun, status: str, reason: str = "", record: Record | None = None) -> None:
        """Set the outcome of a run."""
        self.outcomes[run.key] = RunOutcome(run.key, status, reason, record)

    def left(self) -> list[PlannedRun]:
        """Runs without an outcome."""
        return [run for run in self.group.runs if run.key not in self.outcomes]

    def all_outcomes(self) -> list[RunOutcome]:
        """Return the outcome of every run."""
        return [self.outcomes[key] for key in self.group.keys]

    def claim_all(self) -> list[PlannedRun]:
        """Claim the free runs of the group. One process at a time does so: two at once would each get a part of them.

        Raises Overtaken while another process does.
        """
        gate = f".{self.group.keys[0]}"
        if not self.claims.acquire(gate):
            raise Overtaken(gate)
        mine = [run for run in self.group.runs if self.claim(run)]
        self.claims.release(gate)
        return mine

    def claim(self, run: PlannedRun) -> bool:
        """Claim a run, unless another sweep makes it, or has made or tried it since this group was planned."""
        dead = self.claims.dead(run.key)
        try:
            acquired = self.claims.acquire(run.key)
        except ClaimError as error:
            self.fail(run, str(error))
            return False
        if not acquired:
            self.note(run, "elsewhere")
            return False
        if not self._found(run):
            failure = self.failures.since(run.key, run.attempts) or (dead and self._lost(run, dead))
            if not failure:
                return True
            self.note(run, "failed", failure["reason"])
        self.claims.release(run.key)
        return False

    def _lost(self, run: PlannedRun, holder: Holder) -> Failure | None:
        """Record that the claim of a lost process was taken over; the second lost process of a run is its failure."""
        before = self.failures.get(run.key)
        again = before and before["death"] and before["attempt"] > run.attempts
        reason = f"{before['reason']}, then {holder}" if before and again else f"its process was lost: {holder}"
        with contextlib.suppress(OSError):
            log = str(log_path(self.group, run.key))
            self.failures.write(run.config, run.key, reason, log=log, guess=True, death=not again)
        return self.failures.since(run.key, run.attempts)

    def train(self, mine: list[PlannedRun], report: Callable[[float, str], None], descriptors: bool) -> None:
        """Train claimed runs."""

        def checked_report(fraction: float, text: str = "") -> None:
            if all(self.claims.taken(run.key) for run in mine):
                raise Overtaken("others have claimed all runs of this group since")  # avoids training them twice
            if (remark := Message.of(text)).lasting:
                keys = [run.key for run in mine if run.key.startswith(remark.about) and not self.claims.taken(run.key)]
                self.remarks.write(keys, remark, log_path(self.group, mine[0].key))
            report(fraction, text)

        started = provenance.now()
        self.remarks.clear(*(run.key for run in mine))
        with _log(self.group, [run.key for run in mine], descriptors):
            try:
                mine = [run for run in mine if not self._measured(run)]
                if not mine:
                    return
                execute = resolve(self.group.suite.execute)
                outcomes = execute([run.config for run in mine], state=Path(self.group.state), report=checked_report)
            except Exception:
                traceback.print_exc()
                raise
        outcomes = {run_key(outcome.config): outcome for outcome in outcomes}
        for run in mine:
            outcome = outcomes.get(run.key)
            if outcome is None:
                self.fail(run, f"{self.group.suite.execute} gave no outcome for this run")
            elif outcome.status != "done":
                self.fail(run, outcome.reason or "no reason given", final=True)
            else:
                self._record(run, outcome, started)

    def fail(self, run: PlannedRun, reason: str, trace: str = "", final: bool = False, guess: bool = False) -> None:
        """Record a failure. final: resuming from the checkpoint would repeat it; guess: the cause is not known, only
        the end."""
        log = str(log_path(self.group, run.key))
        try:
            self.failures.write(run.config, run.key, reason, trace, log, guess, around=self._fence(run))
        except Overtaken:
            return
        except OSError as error:
            reason += f" (and this could not be noted in {self.group.state}: {error.strerror or error})"
        if final:
            self.checkpoints.clear(run.key)
        self.note(run, "failed", reason)

    def _found(self, run: PlannedRun) -> bool:
        """Whether another process has made a run; sets that outcome."""
        if not self.group.recorded(run):
            return False
        self.note(run, "elsewhere")
        self.checkpoints.clear(run.key)
        return True

    @contextlib.contextmanager
    def _fence(self, run: PlannedRun) -> Iterator[None]:
        """Guard the writing of a run's result, so that a process that was suspended overwrites nothing.

        If another process has claimed or made the run, sets that outcome and raises Overtaken.
        """
        with contextlib.suppress(ClaimError):  # without claims the record alone decides
            if not self.claims.acquire(run.key):
                self.note(run, "elsewhere")
                raise Overtaken(run.key)
        if self._found(run):
            raise Overtaken(run.key)
        yield

    def _measured(self, run: PlannedRun) -> bool:
        """Whether a stale run could be measured again from stored predictions or parameters."""
        group, suite = self.group, self.group.suite
        try:
            stale = suite.measure and self.store.status(run.config, run.asked)[0] == "stale"
            folders = Path(group.results), suite.metrics, Path(group.state)
            measured = stale and resolve(suite.measure)(run.config, *folders) and group.recorded(run)
        except Overtaken:
            raise
        except Exception as error:  # parameters of older code raise many types
            print(f"{run.key}: its record cannot be measured again ({reason_of(error)}); it is trained again")
            return False
        if measured:
            self.note(run, "done")
        return bool(measured)

    def _record(self, run: PlannedRun, outcome: Any, started: str) -> None:
        about: Any = {**provenance.collect(), "started": started, "finished": provenance.now(), **outcome.provenance}
        record = self.store.make(run.config, outcome.metrics, outcome.curves, about)
        try:
            self.store.write(record, self._fence(run))
        except Overtaken:
            pass
        except InvalidRecord as error:
            self.fail(run, str(error), final=True)
        except StoreError as error:
            self.note(run, "unsaved", str(error), record)
            self.claims.held.discard(run.key)  # the claim stays, because the parent holds the record
        else:
            self.failures.clear(run.key)
            self.checkpoints.clear(run.key)
            self.remarks.end_training(run.key)
            self.note(run, "done")


def log_path(group: RunGroup, key: str) -> Path:
    """Return the log file of a run; the runs of one group share one file."""
    return Path(group.state) / "logs" / f"{key}.log"


class _Log(io.TextIOWrapper):
    """Log that loses what a full disk does not take, and stops no training."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


@contextlib.contextmanager
def _log(group: RunGroup, keys: list[str], descriptors: bool) -> Iterator[None]:
    """Add all output to the log of the first run; the logs of the others are links to it."""
    path = log_path(group, keys[0])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for key in keys:
            if key != keys[0] or path.is_symlink():
                log_path(group, key).unlink(missing_ok=True)
        for key in keys[1:]:
            log_path(group, key).symlink_to(path.name)
        # The text of an earlier attempt stays, and a code block closes it below.
        opened = _Log(open(path, "ab", 0, opener=files.regular), "utf-8", "backslashreplace", write_through=True)  # noqa: SIM115
    except OSError as error:
        raise BenchmarkError(
            f"{error.filename or path}: the log of a run cannot be written ({error.strerror or error}): "
            "free space or delete it, then run the same command again"
        ) from error
    with opened as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
        print(f"{provenance.now()} {group.title}: {' '.join(keys)}")
        if descriptors:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        yield
