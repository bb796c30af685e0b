"""The executors keep their contract; the pool outlives its workers."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
import torch

from benchmarks.errors import UnknownName, UsageError
from benchmarks.records.config import run_key
from benchmarks.state.claims import Claims, _process
from benchmarks.state.failures import Failures
from benchmarks.sweep import where
from benchmarks.sweep.executors import work
from benchmarks.sweep.executors.cores import available_cores
from benchmarks.sweep.executors.in_process import InProcess
from benchmarks.sweep.executors.pool import Pool, death
from benchmarks.sweep.stopping import stoppable
from tests.benchmarks import fakes
from tests.benchmarks.sweep.executor_contract import ExecutorContract


class TestInProcess(ExecutorContract):
    def make(self):
        return InProcess()

    def test_what_it_prints_does_not_reach_the_terminal(self, folders, capsys):
        self.run(self.groups([fakes.config()], folders))
        assert capsys.readouterr().out == ""


class TestPool(ExecutorContract):
    def make(self):
        return Pool(2)

    def test_a_killed_worker_takes_only_its_group_with_it(self, folders):
        configs = [fakes.config(seed, do="die") for seed in range(5)]
        found = {o.key: o for _, outcomes in self.run(self.groups(configs, folders)) for o in outcomes}
        assert [found[run_key(c)].status for c in configs] == ["done", "failed", "done", "done", "done"]
        killed = run_key(configs[1])
        assert "SIGKILL" in found[killed].reason and "memory" in found[killed].reason
        assert Failures(folders[1]).get(killed)["reason"] == found[killed].reason
        assert Claims(folders[1] / "claims").live() == {}

    @pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
    def test_a_worker_that_is_stopped_just_before_its_parent_has_not_failed(self, folders, how):
        """As when a cluster ends all processes of an array task, one after the other."""
        (group,) = self.groups([fakes.config(do="wait")], folders)
        pool, begun = Pool(1, moment=60), threading.Event()

        def end_all():
            begun.wait()
            pid = pool.workers[0].process.pid
            os.kill(pid, how)
            while _process(pid):
                time.sleep(0.02)
            time.sleep(0.3)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)

        thread = threading.Thread(target=end_all)
        thread.start()
        pool.submit([group])
        with pytest.raises(KeyboardInterrupt), stoppable():
            list(pool.outcomes(lambda group, fraction, text: begun.set() if fraction else None))
            thread.join()
        pool.close()
        assert Failures(folders[1]).keys() == []

    def test_a_worker_killed_between_two_groups_is_replaced(self, folders):
        first, second = self.groups([fakes.config(seed) for seed in range(2)], folders)
        with Pool(1) as pool:
            pool.submit([first])
            list(pool.outcomes(lambda *_: None))
            pool.workers[0].process.kill()
            pool.workers[0].process.join()
            pool.submit([second])
            ((_, (outcome,)),) = pool.outcomes(lambda *_: None)
        assert outcome.status == "done"

    def test_a_worker_killed_after_it_recorded_has_done_its_run(self, folders):
        (group,) = self.groups([fakes.config()], folders)
        work.perform(group, lambda *_: None)
        assert [o.status for o in work.settle(group, "killed")] == ["done"]
        assert Failures(folders[1]).keys() == []

    def test_closing_stops_a_running_group_and_gives_up_its_claim(self, folders):
        (group,) = self.groups([fakes.config(do="wait")], folders)
        pool = Pool(1)

        def stop_half_way(group, fraction, text):
            if fraction:
                os.kill(pool.workers[0].process.pid, signal.SIGINT)  # Ctrl-C reaches every process of the terminal
                raise KeyboardInterrupt

        pool.submit([group])
        with pytest.raises(KeyboardInterrupt):
            list(pool.outcomes(stop_half_way))
        process = pool.workers[0].process
        process.join(0.5)
        assert process.is_alive() and list(Claims(folders[1] / "claims").live()) == list(group.keys), (
            "the parent decides"
        )
        pool.close()
        assert process.exitcode == 0
        assert os.listdir(folders[1] / "claims") == [".lock"]
        assert Failures(folders[1]).keys() == [], "an interrupted run has not failed"

    def test_stopping_lets_workers_save_and_ends_those_that_do_not(self, folders):
        configs = [fakes.config(0, do="save"), fakes.config(1, do="wait"), fakes.config(2)]
        saves, waits, later = self.groups(configs, folders)

        busy = set()

        def stop(group, fraction, text):
            busy.add(group.keys) if fraction else None
            if len(busy) == 2:
                pool.stop(grace=3.0)
                raise KeyboardInterrupt

        pool = Pool(2)
        pool.submit([saves, waits, later])
        with pytest.raises(KeyboardInterrupt):
            list(pool.outcomes(stop))
        assert (folders[1] / "saved").exists(), "it was asked, and given the time"
        assert pool.stopped == {*saves.keys, *waits.keys}
        codes = {worker.group.keys: worker.process.exitcode for worker in pool.workers}
        assert codes == {saves.keys: 0, waits.keys: -signal.SIGKILL}
        pool.close()
        assert Failures(folders[1]).keys() == [] and Claims(folders[1] / "claims").live() == {}


def test_the_names_make_executors():
    assert isinstance(where.make("inprocess"), InProcess)
    assert where.make("pool", 3).size == 3 and where.make("pool").size == available_cores()
    with pytest.raises(UnknownName, match="did you mean 'pool'"):
        where.make("pol")
    with pytest.raises(UsageError, match="--workers is 0"):
        where.make("pool", 0)


def test_deaths_in_words():
    assert "SIGSEGV" in death(-11) and "memory" not in death(-11)
    assert "memory" in death(-9) and "exit status 3" in death(3) and "stopped by a signal" in death(0)


def test_cores_are_physical_and_within_the_quota(tmp_path):
    for cpu in os.sched_getaffinity(0):
        folder = tmp_path / "cpus" / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text("0\n")
        (folder / "core_id").write_text("7\n")
    none = tmp_path / "none"
    assert available_cores(tmp_path / "cpus", none) == 1
    assert available_cores(none, none) == len(os.sched_getaffinity(0))
    (tmp_path / "quota").write_text("150000 100000\n")
    assert available_cores(none, tmp_path / "quota") == 1
    (tmp_path / "quota").write_text("max 100000\n")
    assert available_cores(none, tmp_path / "quota") == len(os.sched_getaffinity(0))


def test_threads_are_set_and_put_back(monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    torch.set_num_threads(3)
    try:
        with work.one_thread():
            assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert os.environ["OMP_NUM_THREADS"] == "5" and "MKL_NUM_THREADS" not in os.environ
