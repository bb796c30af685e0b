"""Doing one job: claim its runs, train them, write each record or failure. The same for every executor."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import provenance
from benchmarks.checkpoints import Checkpoints
from benchmarks.claims import Claims
from benchmarks.config import run_key
from benchmarks.errors import BenchmarkError
from benchmarks.executors.base import Job, RunOutcome
from benchmarks.failures import Failures
from benchmarks.store import InvalidRecord, RecordError, Store, StoreError
from benchmarks.suite import resolve

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def perform(job: Job, report: Callable[[float, str], None], descriptors: bool = False) -> list[RunOutcome]:
    """Make the runs of a job that nobody else makes or has made, and say what became of every one.

    Raises nothing but interrupts (KeyboardInterrupt, SystemExit), and then has given up its claims. With
    descriptors the log also takes what compiled code prints; that is for processes that do nothing else.
    """
    outcomes: dict[str, RunOutcome] = {}
    try:
        with Claims(Path(job.state) / "claims") as claims, threads(job.threads):
            runs = zip(job.keys, job.configs, job.attempts)
            mine = {
                key: config
                for key, config, tried in runs
                if _is_mine(job, key, config, tried, claims, outcomes)
            }
            if mine:
                _train(job, mine, report, descriptors, outcomes)
    except Exception as error:
        for config, key in zip(job.configs, job.keys):
            if key not in outcomes:
                _fail(job, config, key, reason_of(error), traceback.format_exc(), outcomes)
    return [outcomes[key] for key in job.keys]


def settle(job: Job, reason: str) -> list[RunOutcome]:
    """The outcomes of a job whose process has died: what it had not recorded has failed, for this reason."""
    claims, outcomes = Claims(Path(job.state) / "claims"), {}
    for config, key in zip(job.configs, job.keys):
        if recorded(job, config):
            outcomes[key] = RunOutcome(key, "done")
        elif claims.holder(key):
            outcomes[key] = RunOutcome(key, "elsewhere")
        else:
            _fail(job, config, key, reason, "", outcomes, guess=True)
    return [outcomes[key] for key in job.keys]


def reason_of(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    return (
        text
        if isinstance(error, BenchmarkError)
        else f"{type(error).__name__}: {text}"
        if text
        else type(error).__name__
    )


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Numerical libraries use this many threads: the last digits of sums depend on their number."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update({name: str(count) for name in THREAD_VARIABLES})
    torch = sys.modules.get("torch")
    used = torch.get_num_threads() if torch else None
    if torch:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        if used:
            torch.set_num_threads(used)


def _is_mine(
    job: Job, key: str, config: dict, attempts: int, claims: Claims, outcomes: dict[str, RunOutcome]
) -> bool:
    """Claim a run, unless another sweep makes it, or has made or tried it since this job was planned."""
    failure = Failures(job.state).get(key) or {"attempt": 0}
    if not claims.acquire(key):
        outcomes[key] = RunOutcome(key, "elsewhere")
        return False
    if recorded(job, config):
        outcomes[key] = RunOutcome(key, "found")
        Checkpoints(job.state).clear(key)
    elif failure["attempt"] > attempts:
        outcomes[key] = RunOutcome(key, "failed", failure["reason"])
    else:
        return True
    claims.release(key)
    return False


def _store(job: Job) -> Store:
    return Store(job.results, job.metrics)


def recorded(job: Job, config: dict) -> bool:
    """Whether a run of a job has its record."""
    try:
        return _store(job).status(config) == "done"
    except RecordError:
        return False


def _train(
    job: Job, mine: dict[str, dict], report, descriptors: bool, outcomes: dict[str, RunOutcome]
) -> None:
    started = provenance.now()
    with _log(job, list(mine), descriptors):
        try:
            made = resolve(job.execute)(list(mine.values()), state=Path(job.state), report=report)
        except Exception:
            traceback.print_exc()
            raise
    made = {run_key(outcome.config): outcome for outcome in made}
    for key, config in mine.items():
        outcome = made.get(key)
        if outcome is None:
            _fail(job, config, key, f"{job.execute} gave no outcome for this run", "", outcomes)
        elif outcome.status != "done":
            _fail(job, config, key, outcome.reason or "no reason given", "", outcomes)
            Checkpoints(job.state).clear(key)  # going on from it would fail in the same way
        else:
            _record(job, config, key, outcome, started, outcomes)


def _record(
    job: Job, config: dict, key: str, outcome: Any, started: str, outcomes: dict[str, RunOutcome]
) -> None:
    about = {**provenance.collect(), **outcome.provenance, "started": started, "finished": provenance.now()}
    record = _store(job).make(config, outcome.metrics, outcome.curves, about)
    try:
        _store(job).write(record)
    except InvalidRecord as error:
        _fail(job, config, key, str(error), "", outcomes)
        Checkpoints(job.state).clear(key)
    except StoreError as error:
        outcomes[key] = RunOutcome(key, "unsaved", str(error), record)
    else:
        Failures(job.state).clear(key)
        Checkpoints(job.state).clear(key)
        outcomes[key] = RunOutcome(key, "done")


def _fail(
    job: Job, config: dict, key: str, reason: str, trace: str, outcomes: dict[str, RunOutcome], guess: bool = False
) -> None:
    try:
        Failures(job.state).write(config, key, reason, trace, str(log_path(job, key)), guess)
    except OSError as error:
        reason += f" (and this could not be noted in {job.state}: {error.strerror or error})"
    outcomes[key] = RunOutcome(key, "failed", reason)


def log_path(job: Job, key: str) -> Path:
    """The log of a run; the runs of one job share one file."""
    return Path(job.state) / "logs" / f"{key}.log"


@contextlib.contextmanager
def _log(job: Job, keys: list[str], descriptors: bool) -> Iterator[None]:
    """What is printed is added to the log of the first run; the logs of the others are links to it."""
    path = log_path(job, keys[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    for key in keys:
        if key != keys[0] or path.is_symlink():
            log_path(job, key).unlink(missing_ok=True)
    for key in keys[1:]:
        log_path(job, key).symlink_to(path.name)
    with open(path, "a", encoding="utf-8", buffering=1) as file:  # what an earlier attempt said stays
        print(f"{provenance.now()} {job.title}: {' '.join(keys)}", file=file)
        if descriptors:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            try:
                yield
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
        else:
            with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
                yield
