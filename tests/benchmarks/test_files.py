"""Whole files: on disk with their names, and without what killed writers leave."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from pathlib import Path

import pytest

from benchmarks import files
from benchmarks.commands import selection
from benchmarks.records import predictions
from benchmarks.records.config import run_key
from benchmarks.state import kept
from benchmarks.state.checkpoints import Checkpoints
from benchmarks.state.failures import Failures
from benchmarks.sweep.slurm import jobs
from benchmarks.tables import choices
from tests.benchmarks import fakes

CONFIG = fakes.config()
KEY = run_key(CONFIG)


def record(folder: Path) -> Path:
    store = fakes.store(folder)
    return store.write(store.make(CONFIG, [fakes.metric(0.5)], {}, {}))


def failure(folder: Path) -> Path:
    Failures(folder).write(CONFIG, KEY, "it diverged")
    return folder / "failures" / f"{KEY}.json"


def prediction(folder: Path) -> Path:
    path = kept.predictions_path(folder, KEY)
    predictions.save(path, {"test": predictions.ClassificationPredictions([[[0.0, 1.0]]])})
    return path


def checkpoint(folder: Path) -> Path:
    Checkpoints(folder).save({"keys": [KEY]}, [KEY], {})
    return Checkpoints(folder).path(KEY).resolve()


def submission(folder: Path) -> Path:
    jobs.write(folder / "slurm" / "1", [])
    return folder / "slurm" / "1" / jobs.TODO


def selected(folder: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choices, "FOLDER", folder / "selected")
        patch.setattr(selection, "select", lambda *_: {})
        selection.write("cinquin2024-1", folder, folder)
    return folder / "selected" / "cinquin2024-1-paper.json"


WRITERS = [record, failure, prediction, checkpoint, submission, selected]


@pytest.fixture
def events(monkeypatch):
    """List every sync and rename in order: the inode of a file, or the names."""
    seen, sync, replace = [], os.fsync, os.replace

    def fsync(handle):
        found = os.fstat(handle)
        seen.append(("folder" if stat.S_ISDIR(found.st_mode) else "file", found.st_ino))
        sync(handle)

    def rename(source, target):
        if not Path(source).is_symlink():
            seen.append(("rename", Path(source).stat().st_ino))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", rename)
    return seen


@pytest.mark.parametrize("write", WRITERS)
def test_everything_that_is_written_is_on_disk_and_so_is_its_name(write, events, tmp_path):
    path = write(tmp_path / "new" / "folder")
    inode, folder = path.stat().st_ino, path.parent.stat().st_ino
    assert events[-3:] == [("file", inode), ("rename", inode), ("folder", folder)]
    above = [parent.stat().st_ino for parent in path.parents if tmp_path in (parent, *parent.parents)][1:]
    assert [found for found in events if found[0] == "folder"][:-1] == [("folder", made) for made in reversed(above)]
    events.clear()
    assert write(tmp_path / "new" / "folder") == path
    assert [kind for kind, _ in events] == ["file", "rename", "folder"], "folders that are there are not synced again"


@pytest.mark.parametrize("write", WRITERS)
def test_whoever_writes_removes_what_killed_writers_left_and_no_more(write, tmp_path):
    path = write(tmp_path)
    before = sorted(os.listdir(path.parent))
    dead, living = (path.with_name(f".{path.name}.{digits}.tmp") for digits in ("0123", "4567"))
    other = path.with_name(".x.json.0123.tmp")
    dead.write_text("half")
    other.touch()
    with open(living, "wb") as writer, open(other, "rb") as another:
        fcntl.flock(writer, fcntl.LOCK_EX)
        fcntl.flock(another, fcntl.LOCK_EX)
        write(tmp_path)
        assert sorted(os.listdir(path.parent)) == sorted([*before, living.name, other.name])
    write(tmp_path)
    assert set(os.listdir(path.parent)) - {other.name} == set(before)


def test_all_that_killed_writers_left_in_a_folder_can_be_removed(tmp_path):
    for name in (".a.json.1.tmp", ".b.ckpt.2.tmp", "c.tmp", ".d.json", ".e.json.3.tmp/full"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".f.json.4.tmp").symlink_to("gone")
    files.clear(tmp_path)
    assert files.listdir(tmp_path) == [".d.json", ".e.json.3.tmp", ".f.json.4.tmp", "c.tmp"]
    files.clear(tmp_path / "none")


@pytest.fixture
def no_locks(monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)


def test_without_locks_age_tells_the_dead_from_the_living(no_locks, tmp_path):
    for name, time in (("new", None), ("old", (0, 0))):
        (tmp_path / f".file.{name}.tmp").touch()
        os.utime(tmp_path / f".file.{name}.tmp", time)
    files.write(tmp_path / "file", "text")
    assert files.listdir(tmp_path) == [".file.new.tmp", "file"] and (tmp_path / "file").read_text() == "text"
    with files.locked(tmp_path) as mine, files.locked(tmp_path) as too:
        assert mine and too


def test_a_file_that_was_taken_for_a_leftover_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    lock, taken = fcntl.flock, []

    def late(file, how):
        if not taken:
            taken.append(file.name)
            os.unlink(file.name)
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    files.write(tmp_path / "file", "text")
    assert files.listdir(tmp_path) == ["file"] and len(taken) == 1


def test_a_file_that_cannot_be_begun_has_its_own_name_in_the_error(tmp_path):
    with pytest.raises(OSError) as caught:
        files.write(tmp_path / ("x" * 255), "")  # the temporary name is longer
    assert caught.value.filename == str(tmp_path / ("x" * 255))
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="expected a folder, found a file") as caught:
        files.write(tmp_path / "file" / "x", "")
    assert caught.value.filename == str(tmp_path / "file")


def test_a_reader_finds_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "file"
    files.write(path, "old")
    with files.replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_what_is_around_the_renaming_may_forbid_it(tmp_path, events):
    @contextlib.contextmanager
    def watched(allowed: bool):
        events.append(("permission", 0))
        if not allowed:
            raise PermissionError("somebody else has made it")
        yield
        events.append(("made", 0))

    files.write(tmp_path / "file", "old", watched(True))
    assert [kind for kind, _ in events] == ["file", "permission", "rename", "made", "folder"]
    with pytest.raises(PermissionError, match="somebody else"):
        files.write(tmp_path / "file", "new", watched(False))
    assert (tmp_path / "file").read_text() == "old" and files.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(("number", "raised"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_folder_that_cannot_be_synced_is_an_error_unless_none_can_be(tmp_path, monkeypatch, number, raised):
    sync = os.fsync

    def fsync(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        sync(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="Input/output") if raised else contextlib.nullcontext():
        files.write(tmp_path / "file", "text")


def test_a_lock_is_waited_for_but_not_for_ever(tmp_path):
    with files.locked(tmp_path) as mine, files.locked(tmp_path, 0) as second, files.locked(tmp_path, 0.01) as third:
        assert (mine, second, third) == (True, False, False)
    with files.locked(tmp_path, 0) as mine:
        assert mine


def test_text_nested_too_deep_is_no_json():
    assert files.parse(b'{"a": [1]}') == {"a": [1]}
    for text in ("[" * 100_000, "{", b"\xff\xfe\x00", "1" * 5000):
        with pytest.raises(ValueError):
            files.parse(text)


@pytest.mark.parametrize(("folder", "lock"), [(0o755, 0o600), (0o775, 0o660), (0o777, 0o666), (0o700, 0o600)])
def test_only_who_may_write_in_a_folder_can_hold_its_lock(tmp_path, folder, lock):
    path = tmp_path / "state"
    path.mkdir()
    path.chmod(folder)
    (path / files.LOCK).touch(mode=0o644)
    with files.locked(path) as mine:
        assert mine and stat.S_IMODE((path / files.LOCK).stat().st_mode) == lock, "also one that was there"
    (path / files.LOCK).unlink()
    with files.locked(path):
        assert stat.S_IMODE((path / files.LOCK).stat().st_mode) == lock


def test_a_pipe_in_place_of_a_lock_or_a_log_is_not_waited_for(tmp_path):
    for name in (files.LOCK, "job.err"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match=files.LOCK), files.locked(tmp_path):
        pass
    assert files.tail(tmp_path / "job.err") == files.tail(tmp_path / "none") == ""


def test_of_a_log_the_end_is_read(tmp_path):
    (tmp_path / "job.err").write_bytes(b"begin\n" + b"\xff" * 10 + b"end\n")
    assert files.tail(tmp_path / "job.err", 6) == "\ufffd\ufffdend\n"


def test_waiting_for_a_lock_says_for_whom_and_ends(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(files, "NOTICE", 0.02)
    with files.locked(tmp_path), files.locked(tmp_path, patience=0.05) as mine:
        assert not mine
    errors = capsys.readouterr().err
    assert f"waiting for process {os.getpid()} of " in errors and f"which has locked {tmp_path}" in errors
    assert files.holder(tmp_path) == "", "nobody has it now"
    with files.locked(tmp_path), files.locked(tmp_path, patience=0):
        assert capsys.readouterr().err == "", "who does not wait says nothing"
