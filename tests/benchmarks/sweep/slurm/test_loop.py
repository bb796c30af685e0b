"""An array task that SLURM ends, without a cluster: the same signals, from a thread."""

from __future__ import annotations

import json
import math
import os
import pickle
import signal
import threading
import time

import pytest

from benchmarks.records.config import run_key
from benchmarks.state.claims import _process
from benchmarks.state.failures import Failures
from benchmarks.sweep import stopping
from benchmarks.sweep.plan import make_plan
from benchmarks.sweep.slurm import jobs, submit
from benchmarks.sweep.work import work
from tests.benchmarks import fakes

PATIENCE = 60.0


@pytest.fixture
def ended(tmp_path, monkeypatch):
    """``ended(number)``: kill the worker of an array task of one run, then send the task a signal; return how the task
    ends, and the failure noted for the run."""
    from submitit.core.utils import UncompletedJobError

    monkeypatch.setattr(submit, "MOMENT", PATIENCE)
    monkeypatch.setattr(stopping, "_stopped_at", -math.inf)
    before = {number: signal.getsignal(number) for number in (signal.SIGUSR2, signal.SIGTERM)}
    folders = tmp_path / "results", tmp_path / "state"
    groups = make_plan([fakes.config(do="wait")], *folders, fakes.SUITE).groups
    folder = folders[1] / "slurm" / "1"
    jobs.write(folder, groups)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    made = submit.Loop(str(folder), count=1, seconds=60.0, notice=15.0)

    def notice(*_):
        """Handle the signal as submitit does."""
        assert made.checkpoint() is None
        raise UncompletedJobError("Job not requeued")

    def end(number):
        trained, limit = folders[1] / "trained", time.monotonic() + PATIENCE
        while not (trained.exists() and trained.read_text()) and time.monotonic() < limit:
            time.sleep(0.02)
        pid = int(trained.read_text().split()[-1])
        os.kill(pid, signal.SIGKILL)
        while _process(pid):
            time.sleep(0.02)
        time.sleep(0.3)  # its end is seen
        signal.pthread_kill(threading.main_thread().ident, number)

    def run(number):
        signal.signal(signal.SIGUSR2, notice)
        thread = threading.Thread(target=end, args=(number,))
        thread.start()
        with pytest.raises((UncompletedJobError, SystemExit, KeyboardInterrupt)) as error:
            made()
            thread.join()
        return error.value, Failures(folders[1]).get(groups[0].keys[0])

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_worker_that_dies_as_the_time_ends_failed_by_the_time_limit(ended):
    _, failure = ended(signal.SIGUSR2)
    assert failure["reason"].startswith(
        "its array task reached its time limit of 1 min (no checkpoint was written; Job not"
    )
    assert failure["attempt"] == 1 and not failure["guess"]


def test_a_worker_that_dies_as_its_task_is_ended_has_not_failed(ended):
    error, failure = ended(signal.SIGTERM)
    assert failure is None and error.code == submit.STOPPED


def test_what_it_is_at_is_noted_until_its_good_end(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    before = signal.getsignal(signal.SIGTERM)
    folders = tmp_path / "results", tmp_path / "state"
    configs = [fakes.config(seed, do=do) for seed, do in enumerate(("raise", "work", "work"))]
    groups = make_plan(configs, *folders, fakes.SUITE).groups
    folder = folders[1] / "slurm" / "1"
    jobs.write(folder, groups)
    seen, write = [], submit.Diary.write
    monkeypatch.setattr(submit.Diary, "write", lambda self, keys: seen.append(keys) or write(self, keys))
    made = submit.Loop(str(folder), count=1, seconds=60.0, notice=15.0)
    assert pickle.loads(pickle.dumps(made)).__dict__ == made.__dict__
    try:
        made()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (
        seen[0] is None and seen[-1] == [] and {key for keys in seen[1:-1] for key in keys} == {*map(run_key, configs)}
    )
    assert json.loads((folder / "7.json").read_text()) == []
    assert made.diary.finished_any and len(list(folders[0].rglob("*.json"))) == 2
    assert Failures(folders[1]).keys() == [run_key(configs[0])]


def test_an_array_task_makes_runs_with_their_own_metrics_and_none_that_has_failed_since(tmp_path):
    folders = tmp_path / "results", tmp_path / "state"
    configs = [fakes.config(seed, stack=3) for seed in range(3)]
    metrics = dict(zip(map(run_key, configs), [{"ece"}, {"accuracy"}, {"nll"}]))
    (group,) = make_plan(configs, *folders, fakes.SUITE, metrics=metrics).groups
    folder = folders[1] / "slurm" / "1"
    jobs.write(folder, [group])
    (same,) = jobs.read(folder)
    assert [(run.config, set(run.asked)) for run in same.runs] == [(c, metrics[run_key(c)]) for c in configs]
    Failures(folders[1]).write(configs[0], group.keys[0], "it diverged")
    outcomes = [o.status for _, found in work([same], lambda *_: None) for o in found]
    assert outcomes == ["failed", "done", "done"]
    assert (folders[1] / "trained").read_text().count("MAP") == 2
