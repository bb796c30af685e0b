"""Full disks, read-only folders, locks and claims of the dead, clocks that jump: clear words, nothing half done, and a
later sweep completes. The file systems are real ones, small and mounted for the test."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.commands.inspection import remarks_text
from benchmarks.records import predictions
from benchmarks.records.config import run_key
from benchmarks.records.store import StoreError
from benchmarks.state import checkpoints, kept
from benchmarks.state.claims import ClaimError, Claims, Holder
from benchmarks.state.failures import Failures
from benchmarks.suite import Suite
from benchmarks.sweep import runner
from benchmarks.sweep.plan import make_plan
from benchmarks.sweep.workers import Workers
from tests.benchmarks import fakes
from tests.benchmarks.experiment.test_execute import config, numbers, run
from tests.benchmarks.state.holders import put

RUNS = [fakes.config(seed) for seed in range(3)]
KEYS = [run_key(run) for run in RUNS]


@pytest.fixture
def mount():
    """Mount a file system with a given number of bytes."""
    mounted = []

    def make(path: Path, size: int = 2**20) -> Path:
        path.mkdir(parents=True, exist_ok=True)
        if os.geteuid() or not shutil.which("mount"):
            pytest.skip("only root can mount a file system")
        words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
        mounted.append(path)
        return path

    yield make
    for path in mounted:
        subprocess.run(["umount", "--lazy", path], check=True)


def remount(path: Path, how: str) -> None:
    """Make a mounted file system "ro" or "rw"."""
    subprocess.run(["mount", "-o", f"remount,{how}", path], check=True)


def fill(path: Path) -> Path:
    """Write a file that fills the file system."""
    filler = path / "filler"
    with pytest.raises(OSError, match="No space left"), open(filler, "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return filler


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def complete(sweep, tmp_path: Path, made: int = len(RUNS)) -> None:
    """Sweep what is missing; check that every record then exists once, and that no claim is held."""
    summary = sweep(RUNS)
    assert summary.complete and len(summary.made) == made, summary
    assert sorted(path.stem for path in (tmp_path / "results").rglob("*.json")) == sorted(KEYS)
    assert all(isinstance(record, dict) for record in fakes.store(tmp_path / "results").records())
    assert os.listdir(tmp_path / "state" / "claims") == [".lock"]


def test_a_full_disk_of_results_loses_nothing(mount, sweep, tmp_path):
    filler = fill(mount(tmp_path / "results"))
    summary = sweep(RUNS)
    assert sorted(summary.unsaved) == sorted(KEYS) and not summary.made and not summary.failed
    assert "No space left on device" in summary.unsaved_reason and "make room" in summary.unsaved_reason
    assert files(tmp_path / "results") == ["filler"], "no part of a record"
    filler.unlink()
    complete(sweep, tmp_path)


def test_records_are_written_as_soon_as_a_full_disk_has_room(mount, sweep, tmp_path):
    filler = fill(mount(tmp_path / "results"))

    class Display(runner.Display):
        def end(self, group, outcomes):
            filler.unlink(missing_ok=True)

    assert sweep(RUNS, display=Display()).complete
    complete(sweep, tmp_path, made=0)


def test_a_run_that_finds_no_room_is_trained_once_by_several_workers(mount, sweep, tmp_path):
    filler = fill(mount(tmp_path / "results"))
    runs = [fakes.config(seed, seconds=0.5 * (seed + 1)) for seed in range(3)]
    summary = sweep(runs, Workers(2))
    assert len(summary.unsaved) == 3 and not summary.failed and not summary.made
    assert len((tmp_path / "state" / "trained").read_text().splitlines()) == 3
    assert os.listdir(tmp_path / "state" / "claims") == [".lock"]
    filler.unlink()
    assert len(sweep(runs, Workers(2)).made) == 3
    assert not Failures(tmp_path / "state").keys()


def test_a_full_disk_of_the_state_is_said_before_anything_is_computed(mount, sweep, tmp_path):
    filler = fill(mount(tmp_path / "state"))
    with pytest.raises(ClaimError, match=r"cannot be claimed \(No space left on device\).*--state"):
        sweep(RUNS)
    assert files(tmp_path / "results") == [] and not (tmp_path / "state" / "trained").exists()
    filler.unlink()
    complete(sweep, tmp_path)


@pytest.mark.parametrize(("folder", "error"), [("results", StoreError), ("state", ClaimError)])
def test_a_read_only_folder_is_said_before_anything_is_computed(mount, sweep, tmp_path, folder, error):
    path = mount(tmp_path / folder)
    remount(path, "ro")
    with pytest.raises(error, match=r"Read-only file system.*--" + folder) as caught:
        sweep(RUNS)
    assert str(path) in str(caught.value) and not (tmp_path / "state" / "trained").exists()
    remount(path, "rw")
    complete(sweep, tmp_path)


def test_results_that_become_read_only_lose_nothing(mount, sweep, tmp_path):
    path = mount(tmp_path / "results")

    class Display(runner.Display):
        def end(self, group, outcomes):
            remount(path, "ro")

    summary = sweep(RUNS, display=Display())
    assert len(summary.made) == 1 and len(summary.unsaved) == 2 and "Read-only file system" in summary.unsaved_reason
    assert len(files(path)) == 1
    remount(path, "rw")
    complete(sweep, tmp_path, made=2)


def test_a_checkpoint_that_finds_no_room_stops_nothing(mount, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(checkpoints.VARIABLE, "0")
    path = mount(tmp_path / "state" / "checkpoints", size=8192)
    found = run(config("MFVI"), tmp_path / "state")
    assert numbers(found[0]) == numbers(run(config("MFVI"), tmp_path / "other")[0])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and all("(No space left on device); training continues without" in line for line in lines)
    assert set(files(path)) <= {".lock"}


def test_predictions_that_find_no_room_cost_no_training(mount, sweep, tmp_path, monkeypatch):
    monkeypatch.setenv(checkpoints.VARIABLE, "0")
    runs, state = [config("MAP")], tmp_path / "state"
    filler = fill(mount(state / "artifacts"))
    (reason,) = sweep(runs, suite=Suite()).failed.values()
    assert reason.startswith(
        f"{state / 'artifacts'}: predictions cannot be written: No space left on device; make room"
    )
    assert files(state / "artifacts") == ["filler"]
    filler.unlink()
    heard = []

    class Display(runner.Display):
        def report(self, group, fraction, text):
            heard.append(text)

    assert sweep(runs, display=Display(), suite=Suite()).complete
    assert heard == ["", "predictions at test: piece 1 of 1"], "no epoch was trained again"
    assert not Failures(state).keys() and files(state / "checkpoints") == [".lock"]


def test_a_training_whose_parameters_and_predictions_find_no_room_is_recorded(mount, sweep, tmp_path):
    runs, state = [config("MAP")], tmp_path / "state"
    for name in kept.FOLDERS:
        fill(mount(state / name))
    assert len(sweep(runs, suite=Suite()).made) == 1
    (log,) = (state / "logs").iterdir()
    assert log.read_text().count("No space left on device") == 2
    text = remarks_text(make_plan(runs, tmp_path / "results", state, Suite()))
    assert text.startswith(
        f"warning 1: MAP, cinquin_1d: {state / 'artifacts'}: predictions cannot be written: No space"
    )
    assert text.endswith(f"training (log: {log})"), "status says it"
    assert all(files(state / name) == ["filler"] for name in kept.FOLDERS)


@pytest.mark.parametrize("age", [400, 1e9, -400, -1e8], ids=["silent", "from the past", "ahead", "from the future"])
def test_claims_of_a_dead_machine_and_of_a_wrong_clock_are_taken_over(sweep, tmp_path, age):
    far = replace(Holder.me(), host="far", space="another boot")
    for key in KEYS[:2]:
        put(tmp_path / "state" / "claims", key, far, age)
    complete(sweep, tmp_path)


def test_a_requeued_job_takes_its_own_claims_over(sweep, tmp_path, monkeypatch):
    far = replace(Holder.me(), host="node7", space="another boot", job="11_2", restart=0)
    put(tmp_path / "state" / "claims", KEYS[0], far)
    for name, value in {"ARRAY_JOB_ID": "11", "ARRAY_TASK_ID": "2", "JOB_ID": "13", "RESTART_COUNT": "1"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    complete(sweep, tmp_path)


def test_a_lock_dies_with_its_holder(sweep, tmp_path):
    folder = tmp_path / "state" / "claims"
    folder.mkdir(parents=True)
    code = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    words = [sys.executable, "-S", "-c", code, folder / ".lock"]
    holder = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    holder.stdout.readline()
    holder.kill()
    holder.communicate()
    os.symlink("half a take-over", folder / ".spare")
    put(folder, ".probe", replace(Holder.me(), started="1"))
    complete(sweep, tmp_path)
    assert Claims(folder).live() == {}


def test_predictions_that_find_no_room_fail_their_run_alone(tmp_path, monkeypatch):
    runs, save = [config("MAP", (0, seed)) for seed in range(2)], predictions.save

    def full(path, sets):
        if path.stem == run_key(runs[0]):
            raise OSError(errno.ENOSPC, "No space left on device")
        save(path, sets)

    monkeypatch.setattr(predictions, "save", full)
    first, second = run(runs, tmp_path)
    assert first.status == "failed" and "No space left on device; make room" in first.reason
    assert numbers(second) == numbers(run(runs[1], tmp_path / "other")[0])
