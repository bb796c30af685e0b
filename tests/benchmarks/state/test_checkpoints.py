"""Checkpoint files: whole or ignored, written when it is time to, and gone when nobody needs them."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from benchmarks.errors import UsageError
from benchmarks.records.config import run_key, training_key
from benchmarks.records.store import Store, StoreError
from benchmarks.state import checkpoints
from benchmarks.state.checkpoints import CheckpointCallback, Checkpoints, code_digest, interval, progress
from benchmarks.state.claims import Claims, Holder, Overtaken
from benchmarks.sweep.plan import RunGroup
from benchmarks.sweep.work import perform
from fvi_core.telling import Message, listening
from fvi_core.training import Trainer, Training
from tests.benchmarks import fakes
from tests.benchmarks.state.holders import put
from tests.fvi_core import small

CONFIGS = [fakes.config(seed) for seed in range(3)]
KEYS = [training_key(config) for config in CONFIGS]
MADE = {"code": "c0de", "torch": "2.0", "device": "cpu", "threads": 1}
DATA = dict(zip(KEYS, "abc", strict=True))
ABOUT = {
    "keys": KEYS,
    "configs": CONFIGS,
    "fingerprints": list("abc"),
    **MADE,
    "epoch": 3,
    "epochs": 20,
    "seconds": 8.0,
    "resumed": 1,
}


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "checkpoints"


@pytest.fixture
def kept(tmp_path) -> Checkpoints:
    """One checkpoint of a stack of three runs."""
    found = Checkpoints(tmp_path)
    found.save(ABOUT, KEYS, {"epoch": 3, "t": torch.arange(4000.0)})
    return found


def file(kept: Checkpoints) -> Path:
    (path,) = kept.folder.glob("*.ckpt")
    return path


def names(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name != ".lock")


def test_what_was_saved_is_found_by_any_of_its_runs(kept, capsys):
    for keys in (KEYS, KEYS[::-1], KEYS[1:2]):
        found = kept.find({key: DATA[key] for key in keys}, MADE)
        assert (found.configs, found.epoch, found.epochs, found.seconds, found.resumed) == (CONFIGS, 3, 20, 8.0, 1)
        assert torch.equal(found.state["t"], torch.arange(4000.0))
    assert capsys.readouterr().out == "going on from the checkpoint at epoch 3 of 20\n" * 3
    digest = hashlib.sha256("\n".join(KEYS).encode()).hexdigest()[:16]
    assert names(kept.folder) == sorted([f"{digest}.ckpt", *KEYS])
    assert {os.readlink(kept.folder / key) for key in KEYS} == {f"{digest}.ckpt"}


def test_no_checkpoint_is_no_news(tmp_path, capsys):
    assert Checkpoints(tmp_path / "new").find(DATA, MADE) is None
    assert capsys.readouterr().out == "" and not (tmp_path / "new").exists()


def reseal(path: Path, **changes) -> None:
    """Change the checkpoint's line about its stack, and the checksum with it."""
    _, line, state = path.read_bytes().split(b"\n", 2)
    rest = json.dumps(json.loads(line) | changes).encode() + b"\n" + state
    path.write_bytes(hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-len(data) // 2] ^= 1  # torch.load alone would not notice
    path.write_bytes(data)


DAMAGES = {
    "truncated": (lambda path: os.truncate(path, path.stat().st_size // 2), "is not whole"),
    "one bit": (flip, "is not whole"),
    "empty": (lambda path: path.write_bytes(b""), "is not whole"),
    "foreign": (lambda path: torch.save({"epoch": 3}, path), "is not whole, or is no checkpoint"),
    "unreadable": (lambda path: (path.unlink(), path.mkdir()), "directory"),
    "a newer format": (lambda path: reseal(path, format=2), "format 2, this code reads 1"),
    "other code": (lambda path: reseal(path, code="other"), "made with code other, this is c0de"),
    "another torch": (lambda path: reseal(path, torch="1.9"), "made with torch 1.9, this is 2.0"),
    "another device": (lambda path: reseal(path, device="cuda"), "made with device cuda, this is cpu"),
    "more threads": (lambda path: reseal(path, threads=4), "made with threads 4, this is 1"),
    "other data": (lambda path: reseal(path, fingerprints=["a", "x", "c"]), "the data set has changed"),
    "other runs": (lambda path: reseal(path, configs=CONFIGS[::-1]), "belongs to other runs"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_checkpoint_that_might_give_other_numbers_is_ignored_with_one_line(kept, damage, capsys):
    change, reason = DAMAGES[damage]
    change(file(kept))
    told: list[Message] = []
    with listening(told.append):
        assert kept.find(DATA, MADE) is None
    output = capsys.readouterr().out
    assert told == output.splitlines() and "is not used" in output, "the display shows it, and the log keeps it"
    assert [message.kind for message in told] == ["loss"]
    assert reason in output and output.count("\n") == 1 and output.endswith("; training starts from the beginning\n")


def test_a_pickle_is_not_executed(kept, capsys, tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "bomb"),)

    kept.save(ABOUT, KEYS, {"epoch": Bomb()})
    assert kept.find(DATA, MADE) is None and not (tmp_path / "bomb").exists()
    assert "is not used" in capsys.readouterr().out


def test_a_saved_checkpoint_replaces_the_one_before_and_takes_its_runs_over(kept, folder):
    before = file(kept)
    kept.save(ABOUT | {"epoch": 4}, KEYS, {"epoch": 4})
    assert kept.find(DATA, MADE).epoch == 4 and file(kept) == before
    pair = ABOUT | {"keys": KEYS[:2], "configs": CONFIGS[:2], "fingerprints": ["a", "b"]}
    kept.save(pair, KEYS[:2], {})
    assert os.readlink(folder / KEYS[2]) == before.name != os.readlink(folder / KEYS[0])


def test_clearing_keeps_what_other_runs_need(kept, folder):
    kept.clear(KEYS[0])
    assert names(folder) == sorted([file(kept).name, *KEYS[1:]])
    kept.clear(*KEYS[1:])
    assert names(folder) == []
    kept.clear(KEYS[0])


def test_leftovers_are_removed_when_seen(kept, folder):
    own = names(folder)
    (folder / "0123456789abcdef.ckpt").write_bytes(b"no run needs this")
    (folder / "fedcba9876543210").symlink_to("gone.ckpt")
    (folder / ".spare").symlink_to(own[0])
    (folder / ".killed.12.tmp").write_bytes(b"half a check")
    living = folder / ".alive.13.tmp"
    with open(living, "wb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        kept.find(DATA, MADE)
        assert names(folder) == sorted([*own, living.name])
    kept.clear()
    assert names(folder) == own


class Clock:
    """Trainer whose epochs and saves take given times."""

    def __init__(self, monkeypatch, tmp_path, epochs: int, epoch: float, saving: float = 0.0, setting: str = "60"):
        self.now, self.saved, self.epochs, self.length = 100.0, [], epochs, epoch
        monkeypatch.setenv(checkpoints.VARIABLE, setting)
        monkeypatch.setattr(checkpoints.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(Checkpoints, "save", lambda *_: self._save(saving))
        self.saver = CheckpointCallback(Checkpoints(tmp_path), {}, [], None)

    def _save(self, seconds: float) -> None:
        self.saved.append(self.epoch)
        self.now += seconds

    def run(self) -> list[int]:
        for epoch in range(1, self.epochs + 1):
            self.epoch = epoch
            self.now += self.length
            finished = self.epoch == self.epochs
            self.saver(SimpleNamespace(epoch=self.epoch, epochs=self.epochs, finished=finished, state=dict))
        return self.saved


@pytest.mark.parametrize(
    ("epochs", "epoch", "saving", "setting", "saved"),
    [
        (9, 25, 0, "60", [3, 6, 9]),
        (10, 25, 0, "60", [3, 6, 9, 10]),  # and once at the end, so that evaluation may be killed
        (2, 25, 0, "60", []),  # what is short begins again
        (100, 10, 10, "60", [6, 56, 100]),  # a save of 10 seconds defers the next by 500
        (3, 1, 10, "0", [1, 2, 3]),
        (3, 1e9, 0, "inf", []),
        (3, 25, 0, "", [3]),
    ],
)
def test_checkpoints_are_as_far_apart_as_requested_and_cost_little(
    monkeypatch, tmp_path, epochs, epoch, saving, setting, saved
):
    assert Clock(monkeypatch, tmp_path, epochs, epoch, saving, setting).run() == saved


def test_a_stop_saves_at_the_end_of_the_epoch(monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoints, "_stop", False)
    clock = Clock(monkeypatch, tmp_path, epochs=3, epoch=1)
    assert clock.run() == [] and not checkpoints.stop_requested()
    checkpoints.request_stop()
    with pytest.raises(KeyboardInterrupt):
        clock.run()
    assert clock.saved == [1] and checkpoints.stop_requested()


@pytest.mark.parametrize("text", ["-1", "nan", "soon"])
def test_a_wrong_interval_is_named(monkeypatch, text):
    monkeypatch.setenv(checkpoints.VARIABLE, text)
    with pytest.raises(UsageError, match=f"FVI_CHECKPOINT_SECONDS is '{text}', expected seconds, 0 or more"):
        interval()


def test_a_checkpoint_that_cannot_be_written_stops_nothing(monkeypatch, tmp_path, kept, capsys):
    monkeypatch.setenv(checkpoints.VARIABLE, "0")
    saver = CheckpointCallback(kept, ABOUT, KEYS, None)
    own = names(kept.folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fakes.full_disk)
        saver(SimpleNamespace(epoch=5, epochs=20, finished=False, state=dict))
    output = capsys.readouterr().out
    assert "could be written" in output and "No space left on device" in output and output.count("\n") == 1
    assert names(kept.folder) == own and kept.find(DATA, MADE).epoch == 3


def test_a_holder_that_lost_its_claims_leaves_the_checkpoint_of_the_new_one_alone(tmp_path, kept, monkeypatch):
    monkeypatch.setenv(checkpoints.VARIABLE, "0")
    own, whole = names(kept.folder), file(kept).read_bytes()
    far = replace(Holder.me(), space="another boot")
    for key in KEYS:
        put(tmp_path / "claims", key, far)
    trainer = SimpleNamespace(epoch=5, epochs=20, finished=False, state=dict)
    with pytest.raises(Overtaken):
        CheckpointCallback(kept, ABOUT, KEYS, None)(trainer)
    assert names(kept.folder) == own and file(kept).read_bytes() == whole
    (tmp_path / "claims" / KEYS[1]).unlink()
    pair = ABOUT | {"keys": KEYS[:2], "configs": CONFIGS[:2], "fingerprints": ["a", "b"]}
    kept.save(pair, KEYS[:2], {})
    linked = {key: os.readlink(kept.folder / key) for key in KEYS}
    assert linked[KEYS[0]] == linked[KEYS[2]] != linked[KEYS[1]], "it keeps what is still its own"


def test_peek_says_how_far_a_run_has_come(kept, tmp_path):
    assert str(progress(tmp_path, KEYS[1])) == "checkpoint at epoch 3 of 20" and progress(tmp_path, "0" * 16) is None
    deep, wrong = b"sum\n" + b"[" * 10**5 + b"\n", b'sum\n{"epoch": "\\ud800", "epochs": 1e999}\n'
    for damage in (b"", b"PK\x03\x04\n\xff\xfe\n", b"sum\n[]\n", deep, wrong):
        file(kept).write_bytes(damage)
        assert progress(tmp_path, KEYS[1]) is None


def test_a_restored_trainer_leaves_the_state_that_it_was_given_alone():
    training = Training(4, 5, {"name": "adam", "lr": 0.01}, early_stopping={"patience": 9}, samples=2)
    parts = {"family": {"name": "mean_field"}}
    data = small.training_data(2, 10, dtype=torch.float32, validation=4)
    first = Trainer(small.model(parts, 1), training, data, small.streams(2, torch.float32))
    first.run()
    state = first.state() | {"epoch": 2, "active": [0, 1], "results": {}}
    before = repr(state)
    Trainer(small.model(parts, 1), training, data, small.streams(2, torch.float32), state).run()
    assert repr(state) == before


def test_code_is_named_by_all_of_its_files(tmp_path):
    (tmp_path / "room" / "inner").mkdir(parents=True)
    for name, text in (("room/a.py", "1"), ("room/inner/b.py", "2"), ("room/notes.md", ""), ("alone.py", "3")):
        (tmp_path / name).write_text(text)

    def digest():
        return code_digest([tmp_path / "room", tmp_path / "alone.py"])

    seen = [digest()]
    (tmp_path / "room" / "notes.md").write_text("other")
    assert digest() == seen[0]
    for name, text in (("room/inner/b.py", "4"), ("alone.py", "5"), ("room/c.py", "")):
        (tmp_path / name).write_text(text)
        seen.append(digest())
    assert len(set(seen)) == 4 and len(seen[0]) == 16


def saving(configs, *, state, report):
    """Leave a checkpoint, then do what the configuration says."""
    keys = [training_key(config) for config in configs]
    about = ABOUT | {"keys": keys, "configs": configs, "fingerprints": [""] * len(keys)}
    Checkpoints(state).save(about, keys, {})
    if configs[0]["parts"]["training"]["do"] == "stop":
        raise KeyboardInterrupt
    return fakes.execute(configs, state=state, report=report)


def left_by(tmp_path, do: str) -> list[int]:
    """Return the seeds of a group's runs whose checkpoint is left after the group."""
    configs = [fakes.config(seed, do=do) for seed in range(2)]
    suite = replace(fakes.SUITE, execute=f"{__name__}:saving")
    group = RunGroup(str(tmp_path / "results"), str(tmp_path / "state"), suite, tuple(map(fakes.pending, configs)))
    try:
        perform(group, lambda *_: None)
    except KeyboardInterrupt:
        assert do == "stop" and Claims(tmp_path / "state" / "claims").live() == {}
    found = names(tmp_path / "state" / "checkpoints")
    assert len([name for name in found if name.endswith(".ckpt")]) == any(
        training_key(config) in found for config in configs
    )
    return [config["seed"] for config in configs if training_key(config) in found]


@pytest.mark.parametrize(
    ("do", "left"),
    [("work", []), ("partial", []), ("nan", []), ("raise", [0, 1]), ("once", [0, 1]), ("stop", [0, 1])],
)
def test_a_group_clears_what_is_recorded_or_would_fail_again(tmp_path, do, left):
    assert left_by(tmp_path, do) == left


def test_a_record_that_cannot_be_written_keeps_its_checkpoint(tmp_path, monkeypatch):
    def full(self, *_):
        raise StoreError("no room")

    monkeypatch.setattr(Store, "write", full)
    assert left_by(tmp_path, "work") == [0, 1]
    monkeypatch.undo()
    assert left_by(tmp_path, "work") == []


def test_a_run_that_another_sweep_has_made_needs_no_checkpoint(tmp_path):
    left_by(tmp_path, "work")
    Checkpoints(tmp_path / "state").save(
        ABOUT | {"keys": [training_key(fakes.config(0))]}, [run_key(fakes.config(0))], {}
    )
    runs = (fakes.pending(fakes.config(0)),)
    group = RunGroup(str(tmp_path / "results"), str(tmp_path / "state"), fakes.SUITE, runs)
    assert [outcome.status for outcome in perform(group, lambda *_: None)] == ["elsewhere"]
    assert names(tmp_path / "state" / "checkpoints") == []
