"""Sweeps: what is missing is made once, whatever fails, dies or runs beside it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from benchmarks import files
from benchmarks.errors import BenchmarkError
from benchmarks.records.config import run_key
from benchmarks.records.form import NewerRecord
from benchmarks.records.provenance import ROOT
from benchmarks.records.store import StoreError
from benchmarks.state.claims import ClaimError, Claims, _process
from benchmarks.state.failures import Failures
from benchmarks.sweep import runner, work
from benchmarks.sweep.workers import REPORT_EVERY, Workers
from tests.benchmarks import fakes
from tests.benchmarks.state.holders import live, put


def trained(tmp_path: Path) -> list[str]:
    return (tmp_path / "state" / "trained").read_text().splitlines()


def processes(tmp_path: Path) -> set[str]:
    return {line.rsplit(" ", 1)[1] for line in trained(tmp_path)}


def numbers(tmp_path: Path) -> dict[str, str]:
    """Return every record without its provenance."""
    kept = ("schema", "key", "config", "metrics", "curves")
    return {r["key"]: json.dumps([r[k] for k in kept]) for r in fakes.store(tmp_path / "results").records()}


def runs(n: int, **training) -> list[dict]:
    return [fakes.config(seed, **training) for seed in range(n)]


def test_only_what_is_missing_is_made(sweep, tmp_path):
    first = sweep(runs(2))
    assert sorted(first.made) == sorted(map(run_key, runs(2))) and first.complete
    second = sweep(runs(3))
    assert second.made == [run_key(runs(3)[2])] and second.plan.counts["done"] == 2
    assert len(trained(tmp_path)) == 3
    assert sweep(runs(3)).made == []


def test_a_record_says_where_it_comes_from(sweep, tmp_path):
    sweep(runs(1))
    (record,) = fakes.store(tmp_path / "results").records()
    about = record["provenance"]
    assert {
        "commit",
        "dirty",
        "versions",
        "device",
        "platform",
        "cpu",
        "threads",
        "started",
        "finished",
    } <= set(about)
    assert about["fingerprint"] == "f" and about["seconds"] == 0.1 and about["threads"] == 1


def test_one_failure_stops_nothing_and_the_next_sweep_retries_it(sweep, tmp_path):
    configs = [*runs(1, do="once"), *[fakes.config(seed) for seed in (1, 2)]]
    first = sweep(configs)
    assert len(first.made) == 2 and list(first.failed.values()) == ["MemoryError"] and not first.complete
    key = run_key(configs[0])
    assert Failures(tmp_path / "state").attempts(key) == 1
    second = sweep(configs)
    assert second.plan.counts["failed"] == 1 and second.made == [key] and second.complete
    assert Failures(tmp_path / "state").get(key) is None


def test_a_killed_worker_leaves_no_claim_and_is_tried_again(sweep, tmp_path):
    summary = sweep(runs(3, do="die"), Workers(1))  # a second one might take the run over before the pool knows
    assert len(summary.made) == 2 and "SIGKILL" in next(iter(summary.failed.values()))
    assert os.listdir(tmp_path / "state" / "claims") == [".lock"]
    assert sweep(runs(3, do="die"), Workers(1)).plan.counts == {
        "done": 2,
        "running": 0,
        "queued": 0,
        "failed": 1,
        "stale": 0,
        "missing": 0,
    }
    assert Failures(tmp_path / "state").attempts(run_key(runs(3, do="die")[1])) == 2


def test_failures_are_counted(sweep, tmp_path):
    for attempt in (1, 2):
        sweep(runs(1, do="raise"))
        assert Failures(tmp_path / "state").attempts(run_key(runs(1, do="raise")[0])) == attempt


def test_a_corrupt_record_is_made_again(sweep, tmp_path):
    sweep(runs(2))
    path = fakes.store(tmp_path / "results").path(runs(1)[0])
    whole = numbers(tmp_path)
    path.write_text(path.read_text()[:100])
    summary = sweep(runs(2))
    assert summary.made == [path.stem] and str(path) in summary.plan.problems[0]
    assert numbers(tmp_path) == whole


def test_the_records_do_not_depend_on_the_workers(sweep, tmp_path):
    found = []
    for name, workers in (("a", None), ("b", Workers(1)), ("c", Workers(3))):
        sweep(runs(6, stack=4), workers, results=tmp_path / name / "results", state=tmp_path / name / "state")
        found.append(numbers(tmp_path / name))
    assert found[0] == found[1] == found[2] and len(found[0]) == 6


def command(tmp_path: Path, *arguments: str) -> subprocess.Popen:
    folders = ["--results", str(tmp_path / "results"), "--state", str(tmp_path / "state")]
    words = [sys.executable, "-m", "tests.benchmarks.fakes", *arguments, *folders]
    # Tests that are started in the background have Ctrl-C switched off, and would pass that on.
    return subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


def until(condition) -> None:
    limit = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < limit, "waited three minutes in vain"
        time.sleep(0.02)


def test_two_sweeps_at_once_share_the_work(tmp_path):
    both = [command(tmp_path, "run", "fake-wait", "fake-slow", "--workers", "1") for _ in range(2)]
    until(lambda: (tmp_path / "state" / "trained").exists() and len(processes(tmp_path)) == 2)
    (tmp_path / "state" / "go").touch()
    outputs = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert len(trained(tmp_path)) == len(numbers(tmp_path)) == 16, "a run was trained twice"
    assert len(processes(tmp_path)) == 2


def test_runs_that_another_sweep_gives_up_are_taken_over(sweep, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "LOOK_AGAIN", 0.02)
    (tmp_path / "state").mkdir()
    with live() as (other, holder):
        put(tmp_path / "state" / "claims", run_key(runs(1)[0]), holder)
        said = []

        class Display(runner.Display):
            def say(self, text):
                said.append(text)
                other.kill()

        summary = sweep(runs(2), display=Display())
    assert said == ["waiting for 1 run that another sweep is making"]
    assert summary.plan.counts["running"] == 1 and len(summary.made) == 2 and summary.complete


def test_runs_that_another_sweep_finishes_are_waited_for(sweep, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "LOOK_AGAIN", 0.02)
    configs = runs(4, do="wait")
    other = command(tmp_path, "run", "fake-wait", "--workers", "4")
    until(lambda: (tmp_path / "state" / "trained").exists() and len(trained(tmp_path)) == 4)

    class Display(runner.Display):
        def say(self, text):
            (tmp_path / "state" / "go").touch()

    summary = sweep(configs, display=Display())
    other.communicate(timeout=60)
    assert summary.made == [] and len(summary.elsewhere) == 4 and summary.complete
    assert len(trained(tmp_path)) == 4


def test_a_run_that_another_process_makes_just_before_its_claim_is_counted_once(sweep, tmp_path, monkeypatch):
    look, ended = work._state, []

    def late(group):
        state = look(group)
        if state == work.FREE:
            work.perform(group, lambda *_: None)
        return state

    class Display(runner.Display):
        def end(self, group, outcomes):
            ended.append(group.keys)

    monkeypatch.setattr(work, "_state", late)
    summary = sweep(runs(2), display=Display())
    assert ended == [] and summary.made == [] and summary.complete
    assert sorted(summary.elsewhere) == sorted(map(run_key, runs(2))) and len(trained(tmp_path)) == 2


@pytest.mark.parametrize(
    "how, executor",
    [(signal.SIGINT, "pool"), (signal.SIGTERM, "pool"), (signal.SIGHUP, "pool"), (signal.SIGTERM, "inprocess")],
)
def test_a_stopped_sweep_is_gone_on_with(tmp_path, how, executor):
    process = command(tmp_path, "run", "fake", "fake-wait", "--workers", "2", "--executor", executor)
    waiting = 2 if executor == "pool" else 1
    until(lambda: (tmp_path / "state" / "trained").exists() and len(trained(tmp_path)) == 5 + waiting)
    os.killpg(process.pid, how) if how == signal.SIGINT else process.send_signal(how)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 130, output
    assert (
        "5 made now" in output
        and "python -m benchmarks run fake fake-wait --workers 2 " in output.partition("to continue: ")[2]
        and "Traceback" not in output
    )
    assert os.listdir(tmp_path / "state" / "claims") == [".lock"] and not Failures(tmp_path / "state").keys()
    assert len(numbers(tmp_path)) == 5
    (tmp_path / "state" / "go").touch()
    output = command(tmp_path, "run", "fake", "fake-wait").communicate(timeout=60)[0]
    assert "4 made now, 5 already recorded" in output
    assert len(numbers(tmp_path)) == 9 and len(trained(tmp_path)) == 9 + waiting


def test_workers_whose_parent_is_killed_save_a_checkpoint_and_end(tmp_path):
    process = command(tmp_path, "run", "fake-save", "--workers", "2")
    try:
        until(lambda: (tmp_path / "state" / "trained").exists() and len(trained(tmp_path)) == 2)
        process.kill()
        process.wait()
        until(lambda: not any(_process(int(line.split()[-1])) for line in trained(tmp_path)))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
    assert (tmp_path / "state" / "saved").exists() and not numbers(tmp_path)
    assert os.listdir(tmp_path / "state" / "claims") == [".lock"] and not Failures(tmp_path / "state").keys()


def test_what_is_past_its_training_is_recorded_when_the_parent_is_killed(tmp_path):
    process = command(tmp_path, "run", "fake-wait", "--workers", "2")
    until(lambda: (tmp_path / "state" / "trained").exists() and len(trained(tmp_path)) == 2)
    process.kill()
    process.wait()
    time.sleep(2 * REPORT_EVERY)  # their reports now reach nobody
    assert len(Claims(tmp_path / "state" / "claims").live()) == 2, "no epoch ends that they could stop at"
    (tmp_path / "state" / "go").touch()
    until(lambda: len(numbers(tmp_path)) == 2 and not Claims(tmp_path / "state" / "claims").live())
    process.stdout.close()
    assert "2 made now, 2 already recorded" in command(tmp_path, "run", "fake-wait").communicate(timeout=60)[0]


def test_folders_that_cannot_be_written_are_said_before_anything_is_computed(sweep, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="results folder cannot be written"):
        sweep(runs(1), results=tmp_path / "file" / "results")
    with pytest.raises(ClaimError, match="cannot be claimed"):
        sweep(runs(1), state=tmp_path / "file" / "state")
    assert not (tmp_path / "state" / "trained").exists()
    assert not [p for p in (tmp_path / "results").rglob("*") if p.is_file()]


class FullDisk:
    """Disk on which records cannot be written while ``full``."""

    def __init__(self, monkeypatch) -> None:
        self.full, write = True, files.write

        def refuse(path, *rest):
            if self.full and path.suffix == ".json":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            write(path, *rest)

        monkeypatch.setattr(files, "write", refuse)


def test_a_record_that_cannot_be_written_is_kept_and_named(sweep, tmp_path, monkeypatch):
    disk = FullDisk(monkeypatch)
    summary = sweep(runs(2))
    assert not summary.complete and summary.made == [] and summary.failed == {}
    assert {k: r["metrics"][0]["value"] for k, r in summary.unsaved.items()} == {
        run_key(c): fakes.number(c) for c in runs(2)
    }
    assert "No space left" in summary.unsaved_reason
    assert not [p for p in (tmp_path / "results").rglob("*") if p.is_file()]
    disk.full = False
    assert len(sweep(runs(2)).made) == 2


def test_a_record_is_written_as_soon_as_there_is_room(sweep, tmp_path, monkeypatch):
    disk = FullDisk(monkeypatch)

    saved = []

    class Display(runner.Display):
        def end(self, group, outcomes):
            disk.full = False
            saved.append(len(numbers(tmp_path)))

    summary = sweep(runs(3), display=Display())
    assert saved == [0, 2, 3]
    assert summary.complete and len(summary.made) == 3 and len(trained(tmp_path)) == 3


def test_a_kept_record_is_not_written_over_the_one_that_another_sweep_has_made(sweep, tmp_path, monkeypatch):
    disk, written = FullDisk(monkeypatch), []

    class Display(runner.Display):
        def end(self, group, outcomes):
            if not written:
                disk.full = False
                (tmp_path / "state" / "claims" / run_key(runs(1)[0])).unlink()  # it was taken for lost
                assert sweep(runs(1)).complete
                written.append((tmp_path / "results").rglob("*.json").__next__().stat().st_ino)

    summary = sweep(runs(2), display=Display())
    assert summary.complete and (summary.elsewhere, summary.made) == ([run_key(runs(1)[0])], [run_key(runs(2)[1])])
    assert fakes.store(tmp_path / "results").path(runs(1)[0]).stat().st_ino == written[0]


def test_a_record_that_newer_code_writes_during_a_training_is_not_written_over(sweep, tmp_path):
    newer = fakes.store(tmp_path / "results").path(runs(2)[1])

    class Display(runner.Display):
        def report(self, group, fraction, text):
            if fraction and group.configs[0]["seed"] == 1:
                newer.parent.mkdir(parents=True, exist_ok=True)
                newer.write_text('{\n"schema": 9,\n"content": "of another checkout"}\n')

    with pytest.raises(NewerRecord, match="update the code"):
        sweep(runs(2), display=Display())
    assert "another checkout" in newer.read_text() and fakes.store(tmp_path / "results").has(runs(2)[0])
    assert len(trained(tmp_path)) == 2 and not Claims(tmp_path / "state" / "claims").live()


def test_a_broken_state_folder_fails_runs_and_not_the_sweep(sweep, tmp_path, monkeypatch):
    from benchmarks.sweep import work

    monkeypatch.setattr(Failures, "write", fakes.full_disk)
    summary = sweep([*runs(1, do="raise"), fakes.config(1)])
    (reason,) = summary.failed.values()
    assert "the loss exploded" in reason and "could not be noted" in reason and len(summary.made) == 1
    monkeypatch.setattr(work, "_log", fakes.full_disk)
    assert "No space left" in next(iter(sweep([fakes.config(2)]).failed.values()))


def test_the_front_imports_nothing_heavy():
    """Planning, and running what is there already, must not wait for the import of torch."""
    code = (
        "import sys; from benchmarks.commands import cli; from benchmarks.sweep import plan, runner;"
        "from benchmarks.suite import Suite;"
        "cli.build(Suite());"
        "print([m for m in ('torch', 'submitit', 'pandas', 'reports') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout.strip() == "[]"


def test_errors_are_of_one_kind():
    assert issubclass(StoreError, BenchmarkError) and issubclass(ClaimError, BenchmarkError)


def test_threads_do_not_outlive_a_sweep(sweep):
    before = threading.active_count()
    sweep(runs(1))
    until(lambda: threading.active_count() <= before)
