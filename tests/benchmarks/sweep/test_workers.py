"""The loop and its workers: what every place promises, one that dies, and GPUs."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import BenchmarkError, UnknownName, UsageError
from benchmarks.records.config import run_key
from benchmarks.state.claims import Claims, Holder, _process
from benchmarks.state.failures import Failures
from benchmarks.sweep import begin, work
from benchmarks.sweep.plan import make_plan
from benchmarks.sweep.slurm.options import Options
from benchmarks.sweep.stopping import stoppable
from benchmarks.sweep.workers import Workers, available_cores, available_devices, death
from tests.benchmarks import fakes
from tests.benchmarks.state.holders import live, put


def groups(configs, folders):
    return make_plan(configs, *folders, fakes.SUITE).groups


def nothing(*_):
    """A report that goes nowhere."""


def records(folders) -> dict[int, float]:
    return {r["config"]["seed"]: r["metrics"][0]["value"] for r in fakes.store(folders[0]).records()}


@pytest.fixture(params=["here", "workers"])
def make(request):
    """Run a test with the loop in this process, and with two workers."""
    return work.work if request.param == "here" else Workers(2).outcomes


def test_every_group_comes_back_once_and_is_recorded(make, folders):
    todo, seen = groups([fakes.config(seed, stack=2) for seed in range(5)], folders), []
    found = list(make(todo, lambda group, fraction, text: seen.append((group.keys, fraction, text))))
    assert sorted(group.keys for group, _ in found) == sorted(group.keys for group in todo)
    assert all([o.key for o in outcomes] == list(group.keys) for group, outcomes in found)
    assert {o.status for _, outcomes in found for o in outcomes} == {"done"}
    assert records(folders) == {s: fakes.number(fakes.config(s, stack=2)) for s in range(5)}
    assert {(group.keys, *progress) for group in todo for progress in ((0.0, ""), (0.5, "half way"))} <= set(seen)
    assert Claims(folders[1] / "claims").live() == {}


def test_an_exception_fails_its_group_and_no_other(make, folders):
    bad, good = fakes.config(0, do="raise"), fakes.config(1)
    found = {o.key: o for _, outcomes in make(groups([bad, good], folders), nothing) for o in outcomes}
    assert found[run_key(good)].status == "done"
    assert (found[run_key(bad)].status, found[run_key(bad)].reason) == ("failed", "RuntimeError: the loss exploded")
    failure = Failures(folders[1]).get(run_key(bad))
    assert failure["reason"] == "RuntimeError: the loss exploded" and "in execute" in failure["traceback"]
    assert failure["attempt"] == 1 and failure["config"] == bad
    log = Path(failure["log"]).read_text()
    assert "training 1 runs" in log and "the loss\nexploded" in log


def test_errors_whose_messages_cannot_be_printed_fail_their_groups(make, folders):
    todo = groups([fakes.config(seed, do="mute") for seed in range(2)], folders)
    found = {o.key: o for _, outcomes in make(todo, nothing) for o in outcomes}
    reasons = ["Mute: lone \\ud800", "Mute: (its message cannot be had: OSError)"]
    for seed, reason in enumerate(reasons):
        key = run_key(fakes.config(seed, do="mute"))
        assert (found[key].status, found[key].reason) == ("failed", reason)
        failure = Failures(folders[1]).get(key)
        assert failure["reason"] == reason and "lone \\ud800" in Path(failure["log"]).read_text()


def test_code_that_calls_exit_fails_its_run_and_no_other(make, folders):
    todo = groups([fakes.config(0, do="exit"), fakes.config(1)], folders)
    found = {o.key: (o.status, o.reason) for _, outcomes in make(todo, nothing) for o in outcomes}
    assert found == {
        run_key(fakes.config(0, do="exit")): ("failed", "SystemExit: 0"), run_key(fakes.config(1)): ("done", "")
    }  # fmt: skip


def test_a_number_that_is_none_fails_the_run(make, folders):
    ((_, (outcome,)),) = make(groups([fakes.config(do="nan")], folders), nothing)
    assert (outcome.status, outcome.reason) == ("failed", "accuracy of digits is nan") and records(folders) == {}


def test_the_good_runs_of_a_stack_are_kept(make, folders):
    ((_, outcomes),) = make(groups([fakes.config(s, do="partial", stack=3) for s in range(3)], folders), nothing)
    assert [o.status for o in outcomes] == ["done", "failed", "done"]
    assert outcomes[1].reason == "diverged at step 3" and sorted(records(folders)) == [0, 2]
    logs = [(folders[1] / "logs" / f"{o.key}.log").read_text() for o in outcomes]
    assert "training 3 runs" in logs[0] and logs[0] == logs[1] == logs[2]


def test_what_others_have_made_or_tried_since_is_not_done_again(make, folders):
    todo = groups([fakes.config(0), fakes.config(1, do="raise")], folders)
    list(make(todo, nothing))
    assert list(make(todo, nothing)) == []
    assert len((folders[1] / "trained").read_text().splitlines()) == 2


def test_closing_leaves_no_claim_and_no_failure(make, folders):
    made = make(groups([fakes.config(0), fakes.config(1, do="wait"), fakes.config(2, do="wait")], folders), nothing)
    next(made)
    made.close()
    assert Claims(folders[1] / "claims").live() == {} and not Failures(folders[1]).keys()


def test_what_others_hold_is_left(make, folders):
    todo = groups([fakes.config(seed, stack=2) for seed in range(4)], folders)
    with live() as (_, holder):
        for key in (todo[0].keys[0], *todo[1].keys):
            put(folders[1] / "claims", key, holder)
        found = [[o.status for o in outcomes] for _, outcomes in make(todo, nothing)]
    assert found == [["elsewhere", "done"]], "the other group is not tried, and nobody waits for it"
    list(make(todo, nothing))
    assert sorted(records(folders)) == [0, 1, 2, 3] and len((folders[1] / "trained").read_text().splitlines()) == 4


def test_two_that_begin_with_a_group_at_once_do_not_share_out_its_runs(make, folders):
    todo = groups([fakes.config(seed, stack=3) for seed in range(3)], folders)
    with live() as (_, holder):  # claims the first of its runs at this moment
        put(folders[1] / "claims", f".{todo[0].keys[0]}", holder)
        assert list(make(todo, nothing)) == []
    ((_, outcomes),) = make(todo, nothing)
    assert [o.status for o in outcomes] == ["done"] * 3 and not Claims(folders[1] / "claims").live()


def test_what_others_lose_meanwhile_is_taken_over(make, folders):
    """An array task takes over the runs of a killed array task."""
    todo = groups([fakes.config(0), fakes.config(1, seconds=1.0), fakes.config(2, seconds=1.0)], folders)
    with live() as (other, holder):
        put(folders[1] / "claims", todo[0].keys[0], holder)

        def killing(*_):
            other.kill()
            other.wait()

        order = [(group.keys, outcome.status) for group, (outcome,) in make(todo, killing)]
    assert sorted(order) == sorted((group.keys, "done") for group in todo)
    assert not Failures(folders[1]).keys()


def lose(folders, key: str, pid: int = 7) -> str:
    """Give the claim of a run to a process lost on another machine; return the name of that process."""
    lost = replace(Holder.me(), host="n3", space="another boot", pid=pid)
    put(folders[1] / "claims", key, lost, age=400)
    return str(lost)


def test_a_run_that_costs_two_processes_fails_with_both(make, folders):
    (group,) = groups([fakes.config()], folders)
    first = lose(folders, group.keys[0], 7)
    with Claims(folders[1] / "claims") as claims:
        making = work._Making(group, claims)
        assert making.claim(group.runs[0]), "one death is bad luck"
    failure = Failures(folders[1]).get(group.keys[0])
    assert failure["reason"] == f"its process was lost: {first}" and failure["death"] and failure["guess"]
    second = lose(folders, group.keys[0], 8)
    ((_, (outcome,)),) = make([group], nothing)
    assert outcome.status == "failed" and outcome.reason == f"its process was lost: {first}, then {second}"
    assert Failures(folders[1]).since(group.keys[0], 0)["attempt"] == 2 and not (folders[1] / "trained").exists()
    assert list(make([group], nothing)) == [] and Claims(folders[1] / "claims").live() == {}
    (again,) = groups([fakes.config()], folders)
    lose(folders, group.keys[0], 9)
    ((_, (outcome,)),) = make([again], nothing)
    assert outcome.status == "done" and not Failures(folders[1]).keys(), "the next sweep begins anew"


def test_an_earlier_life_of_the_present_job_was_not_lost(folders, monkeypatch):
    (group,) = groups([fakes.config()], folders)
    far = replace(Holder.me(), host="n3", space="another boot", job="8_0", restart=0)
    for name, value in {"ARRAY_JOB_ID": "8", "ARRAY_TASK_ID": "0", "RESTART_COUNT": "1"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    put(folders[1] / "claims", group.keys[0], far)
    assert Claims(folders[1] / "claims").dead(group.keys[0]) is None
    monkeypatch.setattr(Failures, "write", lambda *_, **__: pytest.fail("it is noted"))
    ((_, (outcome,)),) = work.work([group], nothing)
    assert outcome.status == "done"


def test_no_group_is_begun_after_a_stop_was_requested(folders, monkeypatch):
    """A worker whose parent has died gets such a request."""
    made = work.work(groups([fakes.config(seed) for seed in range(3)], folders), nothing)
    next(made)
    monkeypatch.setattr(work, "stop_requested", lambda: True)
    with pytest.raises(KeyboardInterrupt):
        next(made)
    assert len(records(folders)) == 1 and not Failures(folders[1]).keys()


def test_what_is_trained_here_does_not_print(folders, capsys):
    list(work.work(groups([fakes.config()], folders), nothing))
    assert capsys.readouterr().out == ""


def test_a_killed_worker_takes_only_its_group_with_it(folders):
    configs = [fakes.config(seed, do="die") for seed in range(5)]
    found = {o.key: o for _, outcomes in Workers(2).outcomes(groups(configs, folders), nothing) for o in outcomes}
    assert [found[run_key(c)].status for c in configs] == ["done", "failed", "done", "done", "done"]
    killed = run_key(configs[1])
    assert "SIGKILL" in found[killed].reason and "memory" in found[killed].reason
    failure = Failures(folders[1]).get(killed)
    assert failure["reason"] == found[killed].reason and failure["guess"] and not failure["death"]
    assert Claims(folders[1] / "claims").live() == {}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_worker_that_is_stopped_just_before_its_parent_has_not_failed(folders, how):
    """A cluster ends all processes of an array task one after the other."""
    workers, begun = Workers(1, moment=60), threading.Event()

    def end_all():
        begun.wait()
        pid = workers.workers[0].process.pid
        os.kill(pid, how)
        while _process(pid):
            time.sleep(0.02)
        time.sleep(0.3)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)

    thread = threading.Thread(target=end_all)
    thread.start()
    todo = groups([fakes.config(do="wait")], folders)
    with pytest.raises(KeyboardInterrupt), stoppable():
        list(workers.outcomes(todo, lambda group, fraction, text: begun.set() if fraction else None))
        thread.join()
    assert Failures(folders[1]).keys() == []


def test_a_worker_that_dies_between_two_groups_is_replaced(folders):
    workers, first = Workers(1), True
    todo = groups([fakes.config(seed, seconds=0.3) for seed in range(4)], folders)
    for _ in workers.outcomes(todo, nothing):
        if first:
            first = False
            workers.workers[0].process.kill()
            workers.workers[0].process.join()
    assert len(records(folders)) >= 3


def test_workers_that_cannot_begin_are_named(folders, monkeypatch, capfd):
    monkeypatch.setattr("benchmarks.sweep.workers.live", _stillborn)
    with pytest.raises(BenchmarkError, match="no worker could start: its process ended .* exit status 3"):
        list(Workers(2).outcomes(groups([fakes.config(s) for s in range(3)], folders), nothing))
    assert not Failures(folders[1]).keys()


def _stillborn(*_):
    os._exit(3)


def test_a_worker_killed_after_it_recorded_has_done_its_run(folders):
    (group,) = groups([fakes.config()], folders)
    work.perform(group, nothing)
    assert [o.status for o in work.settle(group, "killed")] == ["done"] and Failures(folders[1]).keys() == []


def test_a_killed_workers_run_that_another_makes_meanwhile_has_not_failed(folders):
    (group,) = groups([fakes.config()], folders)
    with live() as (_, holder):
        put(folders[1] / "claims", group.keys[0], holder)
        assert [o.status for o in work.settle(group, "killed")] == ["elsewhere"]
        assert Claims(folders[1] / "claims").live() == {group.keys[0]: holder}
    assert Failures(folders[1]).keys() == []


def test_a_killed_workers_run_that_failed_elsewhere_meanwhile_is_not_counted_again(folders):
    (group,) = groups([fakes.config(do="raise")], folders)
    work.perform(group, nothing)
    (outcome,) = work.settle(group, "killed")
    assert outcome.status == "failed" and "exploded" in outcome.reason
    assert Failures(folders[1]).attempts(group.keys[0]) == 1


def test_closing_stops_a_running_group_and_gives_up_its_claim(folders):
    todo, workers = groups([fakes.config(do="wait")], folders), Workers(1)
    process = []

    def stop_half_way(group, fraction, text):
        if fraction:
            process.append(workers.workers[0].process)
            os.kill(process[0].pid, signal.SIGINT)  # Ctrl-C reaches every process of the terminal
            process[0].join(0.5)
            assert process[0].is_alive() and list(Claims(folders[1] / "claims").live()) == list(todo[0].keys), (
                "the parent decides"
            )
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(workers.outcomes(todo, stop_half_way))
    assert process[0].exitcode == 0 and os.listdir(folders[1] / "claims") == [".lock"]
    assert Failures(folders[1]).keys() == [], "an interrupted run has not failed"


def test_in_silence_the_last_report_is_repeated(folders, monkeypatch):
    monkeypatch.setattr("benchmarks.sweep.workers.SILENCE", 0.05)
    heard = []

    def stop(*progress):
        heard.append(progress[1:])
        if progress[1] and heard[-3:] == 3 * [progress[1:]]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(Workers(1).outcomes(groups([fakes.config(do="wait")], folders), stop))


def test_stopping_lets_workers_save_and_ends_those_that_do_not(folders):
    saves, waits, later = groups([fakes.config(0, do="save"), fakes.config(1, do="wait"), fakes.config(2)], folders)
    busy, processes = set(), {}

    def stop(group, fraction, text):
        busy.add(group.keys) if fraction else None
        if len(busy) == 2:
            processes.update({worker.group.keys: worker.process for worker in workers.workers})
            workers.stop(grace=3.0)
            raise KeyboardInterrupt

    workers = Workers(2)
    with pytest.raises(KeyboardInterrupt):
        list(workers.outcomes([saves, waits, later], stop))
    assert (folders[1] / "saved").exists(), "it got the request, and the time to save"
    assert workers.stopped == {*saves.keys, *waits.keys}
    codes = {keys: process.exitcode for keys, process in processes.items()}
    assert codes == {saves.keys: 0, waits.keys: -signal.SIGKILL}
    assert Failures(folders[1]).keys() == [] and Claims(folders[1] / "claims").live() == {}


def test_every_worker_sees_a_gpu_of_its_own(folders, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "kept")
    todo = groups([fakes.config(seed, do="see") for seed in range(24)], folders)
    workers, go = Workers(devices=[f"GPU-{i}" for i in range(8)]), folders[1] / "go"
    assert workers.count == 8
    assert len(list(workers.outcomes(todo, lambda *_: len([*go.parent.glob("device-*")]) == 8 and go.touch()))) == 24
    lines = [line.split() for line in (folders[1] / "trained").read_text().splitlines()]
    seen = {pid: (folders[1] / f"device-{pid}").read_text() for *_, pid in lines}
    assert sorted(seen.values()) == [f"GPU-{i}" for i in range(8)], "one process on each"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "kept"


def test_a_worker_that_replaces_another_has_its_gpu_and_more_workers_share(folders):
    todo = groups([fakes.config(seed, do="die") for seed in range(3)], folders)
    workers, seen = Workers(1, devices=["5"]), []
    monitor = lambda *_: seen.append(workers.workers[0].slot)
    assert len(list(workers.outcomes(todo, monitor))) == 3 and set(seen) == {0}
    workers = Workers(3, devices=["0", "1"])
    assert [workers.devices[slot % 2] for slot in range(workers.count)] == ["0", "1", "0"]


def test_gpus_are_those_that_this_process_may_use(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert available_devices(tmp_path) == []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert available_devices(tmp_path) == [], "a machine without any"
    for name in ("nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    for setting, found in ((None, ["0", "1", "2"]), ("3, GPU-a", ["3", "GPU-a"]), ("", []), ("-1", [])):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if setting is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
        assert available_devices(tmp_path) == found


def test_the_names_make_places():
    assert begin.place("inprocess") is None and begin.place("slurm") == Options()
    assert begin.place("pool", 3).count == 3 and begin.place("pool").count == Workers().count
    with pytest.raises(UnknownName, match="did you mean 'pool'"):
        begin.place("pol")
    with pytest.raises(UsageError, match="--workers is 0"):
        begin.place("pool", 0)


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
