"""Damaged state: whatever a file holds, planning, looking, claiming and sweeping end and say in words what is wrong."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks import files
from benchmarks.commands import inspection
from benchmarks.errors import BenchmarkError
from benchmarks.records import predictions
from benchmarks.records.config import run_key
from benchmarks.state import kept
from benchmarks.state.checkpoints import Checkpoints, progress
from benchmarks.state.claims import ClaimError, Claims, Holder
from benchmarks.state.failures import Failures
from benchmarks.sweep import runner
from benchmarks.sweep.plan import make_plan
from benchmarks.sweep.slurm import jobs, queue
from benchmarks.sweep.work import log_path
from tests.benchmarks import fakes
from tests.benchmarks.state.damaging import damage
from tests.benchmarks.state.holders import put

AREAS = ("claims", "failures", "checkpoints", "slurm", "logs", "artifacts")
TIMES = 50  # of each area
LONG = 60  # seconds after which one of them hangs
RUNS = fakes.get("fake").runs("smoke")[:3]
KEYS = DONE, CLAIMED, FAILED = tuple(map(run_key, RUNS))
MADE = {"code": "", "torch": "", "device": "cpu", "threads": 1}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Folder with a recorded run, one begun by a process that died, and one that failed on a cluster."""
    folder = tmp_path_factory.mktemp("whole")
    results, state = folder / "results", folder / "state"
    assert fakes.sweep(RUNS[:1], results=results, state=state).complete
    predictions.save(
        kept.predictions_path(state, DONE), {"test": predictions.RegressionPredictions([[0.0, 1.0]], 0.1, [0.0, 1.0])}
    )
    put(state / "claims", CLAIMED, replace(Holder.me(), started="1"))
    put(state / "claims", FAILED, replace(Holder.me(), space="another boot"))
    about = {"format": 1, "keys": [CLAIMED], "configs": RUNS[1:2], "fingerprints": ["f"], **MADE}
    line = json.dumps(about | {"epoch": 1, "epochs": 2, "seconds": 1.0, "resumed": 0}).encode() + b"\n"
    (state / "checkpoints").mkdir(exist_ok=True)
    (state / "checkpoints" / "0.ckpt").write_bytes(hashlib.sha256(line).hexdigest().encode() + b"\n" + line)
    (state / "checkpoints" / CLAIMED).symlink_to("0.ckpt")
    groups = make_plan(RUNS, results, state, fakes.SUITE).groups
    for group in groups:
        log_path(group, group.keys[0]).write_text("training\n")
    Failures(state).write(RUNS[2], FAILED, "it diverged", "Traceback", str(log_path(groups[-1], FAILED)))
    jobs.write(state / "slurm" / "1", groups)
    files.write(state / "slurm" / "1" / "7_0.json", json.dumps([CLAIMED]))
    return folder


@pytest.fixture
def copies(whole, tmp_path, monkeypatch) -> Callable[[int], Path]:
    """Copy the folder ``whole``, beside a fake cluster that has forgotten every array task."""
    monkeypatch.setattr(queue, "array_tasks", lambda prefix: {})
    monkeypatch.setattr(queue, "end", lambda *_: queue.End("TIMEOUT"))

    def copy(number: int) -> Path:
        made = tmp_path / str(number)
        shutil.copytree(whole, made, symlinks=True)
        submission, folders = made / "state" / "slurm" / "1", {name: str(made / name) for name in ("results", "state")}
        jobs.write(submission, [replace(group, **folders) for group in jobs.read(submission)])
        return made

    return copy


@contextlib.contextmanager
def soon():
    """Fail if the block hangs."""

    def late(*_):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONG)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def attempt(path: Path, do: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns, or None if it names a faulty file."""
    try:
        return do(*arguments)
    except (BenchmarkError, predictions.PredictionsError) as error:
        assert any(part in str(error) for part in (path.name, path.parent.name)), f"{error} does not name {path}"


def look(folder: Path, path: Path) -> None:
    """Call every function that reads the state."""
    results, state = folder / "results", folder / "state"
    queued = jobs.pending(state)
    plan = make_plan(RUNS, results, state, fakes.SUITE, queued=queued)
    assert plan.runs[0].status == "done"
    texts = [inspection.plan_text(plan)]
    texts.append(inspection.status_text([fakes.get("fake")], None, [0, 1, 2], results, state, fakes.SUITE)[0])
    texts += [inspection.failure_text(found) for key in KEYS if (found := Failures(state).get(key))]
    assert all(map(str.encode, texts)), "all of it can be printed"
    for key, config in zip(KEYS, RUNS):
        failure = Failures(state).get(key)
        if failure:
            kinds = {name: type(value) for name, value in failure.items() if name != "config"}
            assert (
                kinds.pop("attempt") is int
                and kinds.pop("guess") is kinds.pop("death") is bool
                and set(kinds.values()) == {str}
            ), failure
            assert failure["attempt"] > 0 and failure["config"] in (None, config)
        assert (
            str(progress(state, key)) in ("None", "checkpoint at epoch 1 of 2")
            or area_of(folder, path) == "checkpoints"
        )
        if area_of(folder, path) == "checkpoints":
            Checkpoints(state).find({key: "f"}, MADE)
    for submission in jobs.opened(state):
        attempt(path, jobs.read, submission)
    with contextlib.suppress(FileNotFoundError):
        attempt(path, predictions.load, kept.predictions_path(state, DONE))


def claim(folder: Path, path: Path) -> None:
    """Use every operation on claims."""
    claims = Claims(folder / "state" / "claims")
    for key in KEYS:
        if attempt(path, claims.acquire, key):
            assert claims.holder(key) == Holder.me() and key in claims.live()
        elif claims.folder.is_dir() and not os.path.isdir(claims.folder / key):
            assert claims.holder(key), "a run that cannot be claimed must be held by somebody, or a sweep goes round"
        claims.release(key)
    claims.clear_dead()


def sweep(folder: Path, path: Path) -> None:
    """Sweep what is missing, with all holders dead."""
    results, state = folder / "results", folder / "state"
    for key in KEYS:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.utime(state / "claims" / key, (0, 0), follow_symlinks=False)
    summary = attempt(path, lambda: fakes.sweep(RUNS, results=results, state=state))
    for reason in summary.failed.values() if summary else ():
        assert str(path) in reason, f"{reason} does not name {path}"
    store = fakes.store(results)
    left = [key for key, config in zip(KEYS, RUNS) if store.status(config)[0] != "done"]
    assert left == (sorted(summary.failed, key=left.index) if summary else left), summary
    if path.is_file():
        assert not left or path.name == area_of(folder, path), "only a folder can stop a run"


def area_of(folder: Path, path: Path) -> str:
    return path.relative_to(folder / "state").parts[0]


@pytest.mark.parametrize("area", AREAS)
def test_damage_stops_nothing_and_is_named_in_words(area, copies):
    chance = Random(area)
    for number in range(TIMES):
        where = copies(number)
        inside = sorted((where / "state" / area).rglob("*"))
        path = chance.choice([p for p in inside if p.name != ".lock"] * 9 + [where / "state" / area])
        done = damage(path, chance)
        try:
            with soon():
                look(where, path)
                chance.choice((claim, sweep))(where, path)
                look(where, path)
        except BaseException as error:
            error.add_note(f"damage {number}: {done}")
            raise
        shutil.rmtree(where)


def put_text(text: str | bytes):
    return lambda path: os.symlink(text, path)


def put_file(path):
    path.write_text("not a link")


def put_folder(path):
    path.mkdir()


NO_CLAIMS = {
    "a file": put_file,
    "an empty folder": put_folder,
    "a text": put_text("?"),
    "no UTF-8": put_text(b"\xff\xfe\xf0 \x01"),
    "a number": put_text("7"),
    "nested too deep": put_text("[" * 2000),
}


@pytest.mark.parametrize("thing", NO_CLAIMS)
def test_what_no_code_can_have_written_is_no_claim(tmp_path, thing):
    NO_CLAIMS[thing](tmp_path / "key")
    claims = Claims(tmp_path)
    assert claims.live() == {} and claims.holder("key") is None
    assert claims.acquire("key") and claims.live() == {"key": Holder.me()}
    claims.release("key")
    assert os.listdir(tmp_path) == [".lock"]


WRONG = {
    "host": 7, "space": None, "pid": "12", "started": 3.5, "job": [], "restart": "0",
    "host ": "a\nb", "pid ": True, "pid  ": -1, "pid   ": 2**70, "job ": "\ud800",
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_claim_of_wrong_values_holds_until_it_is_old(tmp_path, name):
    os.symlink(json.dumps(asdict(Holder.me()) | {name.strip(): WRONG[name]}), tmp_path / "key")
    claims = Claims(tmp_path)
    assert not claims.acquire("key") and str(claims.live()["key"]).isprintable()
    os.utime(tmp_path / "key", (0, 0), follow_symlinks=False)
    claims.clear_dead()
    assert os.listdir(tmp_path) == [".lock"]


def test_a_full_folder_in_the_place_of_a_claim_is_named(tmp_path):
    claims = Claims(tmp_path)
    (tmp_path / "key" / "full").mkdir(parents=True)
    with pytest.raises(ClaimError, match=f"^{tmp_path}/key: expected the claim of a run.*not empty.*delete it and run"):
        claims.acquire("key")
    assert claims.live() == {} and not claims.held and claims.acquire("other")
    (tmp_path / ".lock").unlink(missing_ok=True)
    (tmp_path / ".lock").mkdir()
    put(tmp_path, "dead", replace(Holder.me(), started="1"))
    with pytest.raises(ClaimError, match=r"dead: the run cannot be claimed \(Is a directory: \.lock\)"):
        claims.acquire("dead")


@pytest.mark.parametrize("text", ["?", '{"host": "far", "user": "ann"}'])
def test_a_sweep_waits_for_a_claim_that_it_cannot_read_only_until_that_is_old(tmp_path, monkeypatch, text):
    monkeypatch.setattr(runner, "LOOK_AGAIN", 0.02)
    claims, said = tmp_path / "state" / "claims", []
    claims.mkdir(parents=True)
    os.symlink(text, claims / CLAIMED)

    class Display(runner.Display):
        def say(self, message):
            said.append(message)
            os.utime(claims / CLAIMED, (0, 0), follow_symlinks=False)

    folders = {"results": tmp_path / "results", "state": tmp_path / "state"}
    with soon():
        summary = fakes.sweep(RUNS, display=Display(), **folders)
    assert summary.complete and len(summary.made) == len(RUNS)
    assert said == ([] if text == "?" else ["waiting for 1 run that another sweep is making"])


@pytest.mark.parametrize("where", ["claims/{}", "logs/{}.log"])
def test_a_run_whose_files_are_in_the_way_fails_with_their_names(tmp_path, where):
    state, stack = tmp_path / "state", [fakes.config(seed, stack=3) for seed in range(3)]
    path = state / where.format(run_key(stack[1]))
    (path / "full").mkdir(parents=True)
    folders = {"results": tmp_path / "results", "state": state}
    with soon():
        summary = fakes.sweep(stack, **folders)
    stopped = stack[1:2] if "claims" in where else stack  # the runs of a stack share one log
    assert summary.failed.keys() == set(map(run_key, stopped))
    assert all(reason.startswith(f"{path}: ") and "delete" in reason for reason in summary.failed.values())
    shutil.rmtree(path)
    assert fakes.sweep(stack, **folders).complete
