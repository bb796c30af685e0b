"""One run group: claim its runs, train them, write each record or failure. The same for every executor."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Set
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.records import provenance
from benchmarks.records.config import run_key
from benchmarks.records.store import InvalidRecord, RecordError, Store, StoreError
from benchmarks.shapes import RunConfig
from benchmarks.state.checkpoints import Checkpoints
from benchmarks.state.claims import ClaimError, Claims, Overtaken
from benchmarks.state.failures import Failures
from benchmarks.suite import resolve
from benchmarks.sweep.groups import Run, RunGroup, RunOutcome
from fvi_core import plugins

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class LogError(BenchmarkError):
    """The log of a run cannot be written."""


def perform(group: RunGroup, report: Callable[[float, str], None], descriptors: bool = False) -> list[RunOutcome]:
    """Make the runs of a run group that nobody else makes or has made, and say what became of every one.

    Raises nothing but interrupts (KeyboardInterrupt, SystemExit), and then has given up its claims. With
    descriptors the log also takes what compiled code prints; that is for processes that do nothing else.
    """
    outcomes: dict[str, RunOutcome] = {}
    with Claims(Path(group.state) / "claims") as claims:
        try:
            plugins.load()  # before anything asks which metrics there are
            with threads(group.threads):
                mine = [run for run in group.runs if _is_mine(group, run, claims, outcomes)]
                if mine:
                    _train(group, mine, report, descriptors, claims, outcomes)
        except Overtaken:
            outcomes |= {key: RunOutcome(key, "elsewhere") for key in group.keys if key not in outcomes}
        except Exception as error:
            for run in group.runs:
                if run.key not in outcomes:
                    _fail(group, run, reason_of(error), traceback.format_exc(), claims, outcomes)
    return [outcomes[key] for key in group.keys]


def settle(group: RunGroup, reason: str) -> list[RunOutcome]:
    """The outcomes of a group whose process has died: what it had not recorded has failed, for this reason."""
    claims, outcomes = Claims(Path(group.state) / "claims"), {}
    for run in group.runs:
        if recorded(group, run):
            outcomes[run.key] = RunOutcome(run.key, "done")
        else:
            _fail(group, run, reason, "", claims, outcomes, guess=True)
            claims.release(run.key)
    return [outcomes[key] for key in group.keys]


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
        if torch and used:
            torch.set_num_threads(used)


def _is_mine(group: RunGroup, run: Run, claims: Claims, outcomes: dict[str, RunOutcome]) -> bool:
    """Claim a run, unless another sweep makes it, or has made or tried it since this group was planned."""
    key = run.key
    failure = Failures(group.state).get(key)
    try:
        acquired = claims.acquire(key)
    except ClaimError as error:
        _fail(group, run, str(error), "", claims, outcomes)
        return False
    if not acquired:
        outcomes[key] = RunOutcome(key, "elsewhere")
        return False
    if recorded(group, run):
        outcomes[key] = RunOutcome(key, "found")
        Checkpoints(group.state).clear(key)
    elif failure and failure["attempt"] > run.attempts:
        outcomes[key] = RunOutcome(key, "failed", failure["reason"])
    else:
        return True
    claims.release(key)
    return False


def _store(group: RunGroup) -> Store:
    return Store(group.results, group.metrics)


def recorded(group: RunGroup, run: Run) -> bool:
    """Whether a run of a group has its record."""
    return is_recorded(_store(group), run.config, set(run.asked))


def is_recorded(store: Store, config: RunConfig, asked: Set[str] = frozenset()) -> bool:
    """Whether a run has a record that is whole, of the present metrics, and knows those that are asked for."""
    try:
        return store.status(config, asked)[0] == "done"
    except RecordError:
        return False


def _train(
    group: RunGroup,
    mine: list[Run],
    report: Callable[[float, str], None],
    descriptors: bool,
    claims: Claims,
    outcomes: dict[str, RunOutcome],
) -> None:
    def told(fraction: float, text: str = "") -> None:
        if all(claims.taken(run.key) for run in mine):
            raise Overtaken("others have claimed all runs of this group since")  # they need not be trained twice
        report(fraction, text)

    started = provenance.now()
    with _log(group, [run.key for run in mine], descriptors):
        try:
            mine = [run for run in mine if not _measured(group, run, outcomes)]
            if not mine:
                return
            made = resolve(group.execute)([run.config for run in mine], state=Path(group.state), report=told)
        except Exception:
            traceback.print_exc()
            raise
    made = {run_key(outcome.config): outcome for outcome in made}
    for run in mine:
        outcome = made.get(run.key)
        if outcome is None:
            _fail(group, run, f"{group.execute} gave no outcome for this run", "", claims, outcomes)
        elif outcome.status != "done":
            _fail(group, run, outcome.reason or "no reason given", "", claims, outcomes, final=True)
        else:
            _record(group, run, outcome, started, claims, outcomes)


@contextlib.contextmanager
def _fence(group: RunGroup, run: Run, claims: Claims, outcomes: dict[str, RunOutcome]) -> Iterator[None]:
    """Around the writing of what became of a run: a process that was stopped writes over nothing that others made.

    If another one has claimed the run or has made it, that is the outcome. Raises Overtaken then.
    """
    key = run.key
    with contextlib.suppress(ClaimError):  # where nothing can be claimed the record alone decides
        if not claims.acquire(key):
            outcomes[key] = RunOutcome(key, "elsewhere")
            raise Overtaken(key)
    if recorded(group, run):
        outcomes[key] = RunOutcome(key, "found")
        Checkpoints(group.state).clear(key)
        raise Overtaken(key)
    yield


def _measured(group: RunGroup, run: Run, outcomes: dict[str, RunOutcome]) -> bool:
    """Whether a run whose record is stale could be measured again from what its training has left."""
    try:
        if not group.measure or _store(group).status(run.config, set(run.asked))[0] != "stale":
            return False
        measured = resolve(group.measure)(run.config, Path(group.results), group.metrics, Path(group.state))
        if not measured or not recorded(group, run):
            return False
    except (BenchmarkError, ValueError, KeyError, OSError) as error:
        print(f"{run.key}: its record cannot be measured again ({reason_of(error)}); it is trained again")
        return False
    outcomes[run.key] = RunOutcome(run.key, "done")
    return True


def _record(
    group: RunGroup, run: Run, outcome: Any, started: str, claims: Claims, outcomes: dict[str, RunOutcome]
) -> None:
    key = run.key
    about: Any = {**provenance.collect(), "started": started, "finished": provenance.now(), **outcome.provenance}
    record = _store(group).make(run.config, outcome.metrics, outcome.curves, about)
    try:
        _store(group).write(record, _fence(group, run, claims, outcomes))
    except Overtaken:
        pass
    except InvalidRecord as error:
        _fail(group, run, str(error), "", claims, outcomes, final=True)
    except StoreError as error:
        outcomes[key] = RunOutcome(key, "unsaved", str(error), record)
    else:
        Failures(group.state).clear(key)
        Checkpoints(group.state).clear(key)
        outcomes[key] = RunOutcome(key, "done")


def _fail(
    group: RunGroup,
    run: Run,
    reason: str,
    trace: str,
    claims: Claims,
    outcomes: dict[str, RunOutcome],
    final: bool = False,
    guess: bool = False,
) -> None:
    """Note a failure. A final one would come again if training went on from its checkpoint; of a guess only the end is
    known.
    """
    key = run.key
    fence = _fence(group, run, claims, outcomes)
    try:
        Failures(group.state).write(run.config, key, reason, trace, str(log_path(group, key)), guess, fence)
    except Overtaken:
        return
    except OSError as error:
        reason += f" (and this could not be noted in {group.state}: {error.strerror or error})"
    if final:
        Checkpoints(group.state).clear(key)
    outcomes[key] = RunOutcome(key, "failed", reason)


def log_path(group: RunGroup, key: str) -> Path:
    """The log of a run; the runs of one group share one file."""
    return Path(group.state) / "logs" / f"{key}.log"


@contextlib.contextmanager
def _log(group: RunGroup, keys: list[str], descriptors: bool) -> Iterator[None]:
    """What is printed is added to the log of the first run; the logs of the others are links to it."""
    path = log_path(group, keys[0])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for key in keys:
            if key != keys[0] or path.is_symlink():
                log_path(group, key).unlink(missing_ok=True)
        for key in keys[1:]:
            log_path(group, key).symlink_to(path.name)
        # What an earlier attempt said stays; it is closed with its own block below.
        opened = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115
    except OSError as error:
        raise LogError(
            f"{error.filename or path}: the log of a run cannot be written ({error.strerror or error}): "
            "make room or delete what is there, then run the same command again"
        ) from error
    with opened as file:
        print(f"{provenance.now()} {group.title}: {' '.join(keys)}", file=file)
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
