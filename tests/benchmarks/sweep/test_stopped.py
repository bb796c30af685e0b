"""Fifty holders of claims that were stopped, lost them or not, and woke: nothing is lost, and nothing written twice."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.records.provenance import ROOT
from benchmarks.state.claims import Claims, Holder
from benchmarks.state.failures import Failures
from benchmarks.sweep.plan import RunGroup
from benchmarks.sweep.work import perform, settle
from tests.benchmarks import fakes
from tests.benchmarks.sweep import stopping

LONG = 120.0  # seconds after which a process hangs
RUNS = 10
FILES = ("results", "state/failures", "state/checkpoints")


class Stopped:
    """Process that trains a group and stops itself at times; tests then change its claims."""

    def __init__(self, folder: Path, execute: str) -> None:
        self.folder, self.state = folder, folder / "state"
        self.state.mkdir(parents=True)
        runs = tuple(fakes.pending(fakes.config(seed, stack=RUNS)) for seed in range(RUNS))
        suite = replace(fakes.SUITE, execute=f"{stopping.HERE}:{execute}")
        self.group = RunGroup(str(folder / "results"), str(self.state), suite, runs)
        self.file = folder / "group.json"
        self.file.write_text(json.dumps(asdict(self.group)))
        self.claims = Claims(self.state / "claims")
        self.process = subprocess.Popen([sys.executable, "-m", stopping.HERE, self.file], cwd=ROOT)

    def wait(self) -> bool:
        """Wait until the process stops (True) or ends (False)."""
        limit = time.monotonic() + LONG
        while time.monotonic() < limit:
            pid, status = os.waitpid(self.process.pid, os.WUNTRACED | os.WNOHANG)
            if pid and os.WIFSTOPPED(status):
                return True
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                assert self.process.returncode == 0
                return False
            time.sleep(0.005)
        raise AssertionError("it neither stops nor ends")

    def wake(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def age(self, key: str) -> None:
        """Make the heartbeat of a claim old, as if its holder had been stopped for a long time."""
        os.utime(self.claims.folder / key, (0, 0), follow_symlinks=False)

    def make(self, run: int) -> str:
        """Train a run in this process; return its status."""
        tried = Failures(self.state).attempts(self.group.keys[run])
        runs = (replace(self.group.runs[run], attempts=tried),)
        group = replace(self.group, suite=replace(fakes.SUITE, execute=f"{stopping.HERE}:made"), runs=runs)
        (outcome,) = perform(group, lambda *_: None)
        return outcome.status

    def record(self, run: int) -> dict | None:
        return fakes.store(self.folder / "results").get(self.group.configs[run])

    def files(self) -> dict[str, tuple]:
        """Return the inode and the time of every file about runs, which differ once it is written again."""
        found = [path for name in FILES for path in (self.folder / name).rglob("*") if not path.name.startswith(".")]
        return {str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in found if not path.is_dir()}

    def outcomes(self) -> list[str]:
        return [outcome["status"] for outcome in json.loads(Path(f"{self.file}.outcomes").read_text())]


@pytest.fixture
def stopped(tmp_path) -> Iterator[Callable[[str], Stopped]]:
    """Start a process of class Stopped, and wait until it has stopped."""
    started = []

    def start(execute: str) -> Stopped:
        started.append(Stopped(tmp_path / execute, execute))
        assert started[-1].wait()
        return started[-1]

    yield start
    for one in started:
        with contextlib.suppress(ProcessLookupError):
            one.process.kill()
        one.process.wait()


def made_by_another(found: Stopped, run: int, key: str) -> str:
    """Another process takes the claim over, and is ready before the stopped one wakes."""
    found.age(key)
    assert found.make(run) == "done"
    return "elsewhere"


def begun_by_another(found: Stopped, run: int, key: str) -> str:
    """Another process takes the claim over, and is still at it."""
    found.age(key)
    assert found.claims.acquire(key)
    return "elsewhere"


def given_up_by_another(found: Stopped, run: int, key: str) -> str:
    """Another process takes the claim over, and gives it up again."""
    found.age(key)
    assert found.claims.acquire(key)
    found.claims.release(key)
    return "own"


def believed_dead(found: Stopped, run: int, key: str) -> str:
    """The claim is old, but nobody takes it over."""
    found.age(key)
    return "own"


def swept_away(found: Stopped, run: int, key: str) -> str:
    """Another sweep, which has ended, has removed the claim."""
    found.age(key)
    found.claims.clear_dead()
    assert not (found.claims.folder / key).is_symlink()
    return "own"


FATES = (made_by_another, begun_by_another, given_up_by_another, believed_dead, swept_away)


@pytest.mark.parametrize("execute", ["made", "failing"])
def test_a_woken_holder_writes_over_nothing_that_others_made(stopped, execute):
    found = stopped(execute)
    own = {"made": "done", "failing": "failed"}[execute]
    expected = []
    for run, key in enumerate(found.group.keys):
        fate = FATES[run % len(FATES)]
        ending = fate(found, run, key)
        expected.append(own if ending == "own" else ending)
        if fate is begun_by_another:
            Failures(found.state).write(found.group.configs[run], key, "noted by another")
        before = found.files()
        found.wake()
        assert found.wait() == (run < RUNS - 1)
        changed = {Path(path).stem for path, now in found.files().items() if before.get(path) != now}
        assert changed == ({key} if ending == "own" else set()) and not before.keys() - found.files().keys()
        if fate is begun_by_another:
            assert found.claims.holder(key) == Holder.me() and Failures(found.state).attempts(key) == 1
            assert found.make(run) == "done", "the other one makes it at last"
    assert found.outcomes() == expected and found.claims.live() == {}
    records = [found.record(run) for run in range(RUNS)]
    makers = [record and record["provenance"]["process"] for record in records]
    mine, others = found.process.pid if execute == "made" else None, os.getpid()
    assert makers == [mine if status == own else others for status in expected]
    assert Failures(found.state).keys() == sorted(
        key for key, status in zip(found.group.keys, expected) if status == own == "failed"
    )
    assert not list(found.folder.rglob("*.tmp"))


@pytest.mark.parametrize("taken", [RUNS, RUNS // 2, 0])
def test_a_woken_holder_trains_on_only_what_is_still_its_own(stopped, taken):
    found = stopped("training")
    for key in found.group.keys:
        found.age(key)
    for key in found.group.keys[:taken]:
        assert found.claims.acquire(key)
    found.wake()
    assert not found.wait()
    assert found.outcomes() == ["elsewhere"] * taken + ["done"] * (RUNS - taken)
    assert sorted(found.claims.live()) == sorted(found.group.keys[:taken])
    assert (found.state / f"trained-{found.process.pid}").exists() == (taken < RUNS)
    assert [bool(found.record(run)) for run in range(RUNS)] == [False] * taken + [True] * (RUNS - taken)


def test_the_end_of_a_dead_process_is_noted_only_for_runs_that_nobody_else_has(stopped):
    """A parent notes the failures of a dead worker, unless another process was faster."""
    found = stopped("training")
    keys = found.group.keys
    for run, fate in enumerate((made_by_another, believed_dead, begun_by_another)):
        fate(found, run, keys[run])
    put = json.loads(os.readlink(found.claims.folder / keys[2])) | {"space": "another boot"}
    found.claims.release(keys[2])
    os.symlink(json.dumps(put), found.claims.folder / keys[2])
    found.process.kill()
    found.process.wait()
    outcomes = settle(found.group, "it was killed")
    assert [one.status for one in outcomes] == ["done", "failed", "elsewhere"] + ["failed"] * (RUNS - 3)
    assert Failures(found.state).keys() == sorted({*keys} - {keys[0], keys[2]})
    assert list(found.claims.live()) == [keys[2]]
