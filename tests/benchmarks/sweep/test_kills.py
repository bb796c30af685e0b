"""Sweeps killed two hundred times: the last resume leaves every record once, and the same as without a kill."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.records.config import run_key
from benchmarks.records.form import parse
from benchmarks.records.provenance import ROOT
from tests.benchmarks import fakes
from tests.benchmarks.sweep import killing

AT_RANDOM, AT_A_TOUCH, OF_A_GROUP = 110, 78, 12  # the last one starts Python anew for every kill
LONG = 120.0  # seconds after which a sweep hangs
VARYING = ("evaluated", "started", "finished", "seconds", "fit_seconds", "evaluate_seconds", "busy", "resumed", "stack")
TIMES = ("training_seconds",)


def facts(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Return every record without its fields of time and memory, and its predictions."""
    found = {}
    for path in (folder / "results").glob("*/*/*.json"):
        parse(path.read_bytes(), path)  # raises unless it is whole
        record = json.loads(path.read_bytes())
        record["metrics"] = [row for row in record["metrics"] if row["metric"] not in TIMES]
        for name in VARYING:
            record["provenance"].pop(name, None)
        del record["sha256"]
        predictions = folder / "state" / "artifacts" / f"{path.stem}.npz"
        found[path.stem] = json.dumps(record), predictions.read_bytes() if predictions.exists() else b""
    return found


def leftovers(folder: Path) -> list[str]:
    """Return the folders and kinds of files that nobody needs once every run is recorded."""
    found = [*folder.glob("state/*/*"), *folder.glob("results/*/*/.*")]
    needed = (".lock", ".log", ".npz")
    kinds = [(path.relative_to(folder).parts, path.suffix or path.name) for path in found]
    kinds = [(parts[0] if parts[0] == "results" else parts[1], kind) for parts, kind in kinds if kind not in needed]
    return sorted({f"{where} {kind if kind.startswith('.') else 'key'}" for where, kind in kinds})


def end(process: multiprocessing.Process) -> int | None:
    """Return the exit status of a process, or None if it hangs."""
    process.join(LONG)
    status = process.exitcode
    process.kill()
    return status


class Killed:
    """Sweep after sweep, each killed until all its runs are recorded; ``scars``: kinds of files that kills left."""

    def __init__(self, folder: Path, whole: dict, left: Callable[[Path], list], resume: Callable[[Path], None]) -> None:
        self.parent, self.whole, self.left, self.resume = folder, whole, left, resume
        self.sweeps, self.scars = 0, set()
        self._next()

    def _next(self) -> None:
        self.sweeps += 1
        self.folder = self.parent / str(self.sweeps)
        self.folder.mkdir()

    def look(self) -> None:
        """Collect what a kill left; if the sweep is complete, begin another."""
        self.scars |= set(leftovers(self.folder))
        if not self.left(self.folder):
            self.end()
            self._next()

    def end(self) -> None:
        """Finish the sweep undisturbed, and compare it with one that was never killed."""
        self.resume(self.folder)
        assert facts(self.folder) == self.whole
        assert leftovers(self.folder) == []


@pytest.fixture(scope="module")
def start():
    """Start a process that has loaded everything: it sweeps at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setenv("CUDA_VISIBLE_DEVICES", "")  # bit for bit: on a CPU
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([killing.__name__])

        def begin(*arguments: Any) -> multiprocessing.Process:
            process = context.Process(target=killing.sweep, args=arguments)
            process.start()
            return process

        yield begin


@pytest.fixture(scope="module")
def undisturbed(start, tmp_path_factory):
    """Return the facts of a sweep that is not killed, its seconds, and how often it touches files."""
    seconds = []
    for _ in range(2):  # the first one waits for the server
        folder = tmp_path_factory.mktemp("undisturbed")
        begin = time.monotonic()
        assert end(start(folder)) == 0
        seconds.append(time.monotonic() - begin)
    (file,) = folder.glob("made-*")
    whole = facts(folder)
    assert set(whole) == set(map(run_key, killing.table())) and all(artifact for _, artifact in whole.values())
    assert leftovers(folder) == []
    return whole, seconds[-1], json.loads(file.read_text())["touched"]


@pytest.fixture
def killed(start, undisturbed, tmp_path):
    def resume(folder: Path) -> None:
        assert end(start(folder)) == 0

    return Killed(tmp_path, undisturbed[0], killing.left, resume)


def test_kills_at_random_instants_change_no_record(start, undisturbed, killed):
    chance = random.Random(1)
    for _ in range(AT_RANDOM):
        process = start(killed.folder)
        process.join(chance.uniform(0, undisturbed[1] / 3))
        process.kill()
        process.join()
        killed.look()
    killed.end()
    assert {"checkpoints .ckpt", "claims key"} <= killed.scars


def test_kills_between_any_two_touches_of_files_change_no_record(start, undisturbed, killed):
    chance, touched = random.Random(2), undisturbed[2]
    for attempt in range(AT_A_TOUCH):
        event = ("", "os.rename", "os.remove", "open", "os.symlink")[attempt % 5]
        process = start(killed.folder, event, chance.randint(1, touched[event] // 3))
        assert end(process) in (-signal.SIGKILL, 0)
        killed.look()
    killed.end()
    assert {"checkpoints .ckpt", "checkpoints key", "claims key"} <= killed.scars
    assert [scar for scar in killed.scars if scar.endswith(".tmp")], "no file was half written"


def test_kills_of_a_whole_process_group_change_no_record(tmp_path):
    def begin(folder: Path) -> subprocess.Popen:
        words = ["run", "fake-slow", "--workers", "2", "--results", folder / "results", "--state", folder / "state"]
        return subprocess.Popen(
            [sys.executable, "-m", fakes.HERE, *map(str, words)],
            cwd=ROOT,
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},  # a killed git must leave no lock in the checkout
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def resume(folder: Path) -> None:
        assert begin(folder).wait(timeout=LONG) == 0

    def left(folder: Path) -> list:
        store = fakes.store(folder / "results")
        return [config for config in fakes.get("fake-slow").runs("smoke") if not store.path(config).exists()]

    before = time.monotonic()
    resume(tmp_path / "undisturbed")
    seconds = time.monotonic() - before
    whole = facts(tmp_path / "undisturbed")
    assert len(whole) == 12
    (tmp_path / "killed").mkdir()
    killed, chance = Killed(tmp_path / "killed", whole, left, resume), random.Random(3)
    for _ in range(OF_A_GROUP):
        process = begin(killed.folder)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0, seconds))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        killed.look()
    killed.end()


def test_two_sweeps_at_once_share_the_work_and_agree(start, undisturbed, tmp_path):
    assert [end(process) for process in [start(tmp_path) for _ in range(2)]] == [0, 0]
    made = [json.loads(path.read_text())["made"] for path in tmp_path.glob("made-*")]
    assert len(made) == 2 and sorted(made[0] + made[1]) == sorted(undisturbed[0]), "a run was made twice, or not at all"
    assert facts(tmp_path) == undisturbed[0] and leftovers(tmp_path) == []
