"""An array task that SLURM ends, without a cluster: the same signals, from a thread."""

from __future__ import annotations

import math
import os
import signal
import threading
import time

import pytest

from benchmarks.records.config import run_key
from benchmarks.state.claims import _process
from benchmarks.state.failures import Failures
from benchmarks.sweep import stopping
from benchmarks.sweep.plan import make_plan
from benchmarks.sweep.slurm import array_task, ledger
from tests.benchmarks import fakes

PATIENCE = 60.0


@pytest.fixture
def ended(tmp_path, monkeypatch):
    """How an array task of one run ends whose worker is killed and then gets a signal; what is noted of the run."""
    from submitit.core.utils import UncompletedJobError

    monkeypatch.setattr(array_task, "MOMENT", PATIENCE)
    monkeypatch.setattr(stopping, "_asked", -math.inf)
    before = {number: signal.getsignal(number) for number in (signal.SIGUSR2, signal.SIGTERM)}
    folders = tmp_path / "results", tmp_path / "state"
    groups = make_plan([fakes.config(do="wait")], *folders, fakes.SUITE).groups(*folders, fakes.SUITE)
    file = ledger.begin(folders[1], [groups]).task_file(0)
    made = array_task.ArrayTask(str(file), workers=1, seconds=60.0, notice=15.0)

    def notice(*_):
        """As submitit does it."""
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


def test_a_worker_that_dies_as_the_time_ends_is_told_as_the_time_limit(ended):
    _, failure = ended(signal.SIGUSR2)
    assert failure["reason"].startswith(
        "its array task came to its time limit of 1 min (no checkpoint was written; Job not"
    )
    assert failure["attempt"] == 1 and not failure["guess"]


def test_of_a_worker_that_dies_as_its_task_is_ended_slurm_is_asked(ended):
    error, failure = ended(signal.SIGTERM)
    assert failure is None and error.code == array_task.STOPPED


def test_runs_that_follow_a_failed_one_are_made_with_their_own_metrics(tmp_path):
    folders = tmp_path / "results", tmp_path / "state"
    configs = [fakes.config(seed, stack=3) for seed in range(3)]
    asked = dict(zip(map(run_key, configs), [{"ece"}, {"accuracy"}, {"nll"}]))
    (group,) = make_plan(configs, *folders, fakes.SUITE, asked=asked).groups(*folders, fakes.SUITE)
    Failures(folders[1]).write(configs[0], group.keys[0], "it diverged")
    left = array_task._untried(group)
    assert [(run.config, set(run.asked)) for run in left.runs] == [(c, asked[run_key(c)]) for c in configs[1:]]
