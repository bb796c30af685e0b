"""Claims: one holder, dead holders replaced, by one only."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import socket
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.state import claims as claims_module
from benchmarks.state.claims import ClaimError, Claims, Holder
from tests.benchmarks.state.holders import live, put


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "claims"


@pytest.fixture
def other():
    """A live process of this machine."""
    with live() as process_and_holder:
        yield process_and_holder


def test_a_claim_has_one_holder(folder, other):
    _process, holder = other
    claims = Claims(folder)
    put(folder, "taken", holder)
    assert claims.acquire("free") and not claims.acquire("taken")
    assert claims.holder("free") == Holder.me() and claims.holder("taken") == holder and claims.holder("none") is None
    assert claims.live() == {"free": Holder.me(), "taken": holder}


def test_release_gives_up_only_what_is_held(folder, other):
    put(folder, "taken", other[1])
    with Claims(folder) as claims:
        assert claims.acquire("mine")
        claims.release("taken")
        assert set(claims.live()) == {"mine", "taken"}
    assert set(claims.live()) == {"taken"}


def test_a_dead_holder_on_this_machine_is_replaced_at_once(folder, other):
    process, holder = other
    put(folder, "key", holder)
    process.kill()
    while Claims(folder).holder("key"):  # a killed process that was not waited for is dead too
        time.sleep(0.01)
    assert Claims(folder).acquire("key") and Claims(folder).holder("key") == Holder.me()


def test_a_process_id_that_went_to_another_process_is_no_holder(folder):
    put(folder, "key", replace(Holder.me(), started="1"))
    assert Claims(folder).holder("key") is None and Claims(folder).acquire("key")


def test_a_holder_on_another_machine_is_believed_while_it_beats(folder):
    far = replace(Holder.me(), host="far", space="another boot")
    put(folder, "beats", far, age=200)
    put(folder, "silent", far, age=400)
    claims = Claims(folder, limit=300)
    assert not claims.acquire("beats") and claims.holder("beats") == far
    assert claims.holder("silent") is None and claims.acquire("silent")


def test_a_claim_from_the_future_is_believed_no_longer_than_an_old_one(folder):
    far = replace(Holder.me(), host="far", space="another boot")
    put(folder, "fast clock", far, age=-200)
    put(folder, "set back", far, age=-400)
    claims = Claims(folder, limit=300)
    assert not claims.acquire("fast clock") and claims.holder("fast clock") == far
    assert claims.holder("set back") is None and claims.acquire("set back")
    assert not [name for name in os.listdir(folder) if name not in ("fast clock", "set back", ".lock")]


def test_age_is_measured_by_the_clock_of_the_folder(folder, monkeypatch):
    put(folder, "key", replace(Holder.me(), host="far", space="another boot"), age=200)
    monkeypatch.setattr(time, "time", lambda: 1e10)  # this machine's is wrong
    assert Claims(folder, limit=300).holder("key")


@pytest.fixture
def slurm(monkeypatch):
    """Pretend to be a process of a SLURM job."""
    for name in ("SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_RESTART_COUNT"):
        monkeypatch.delenv(name, raising=False)

    def be(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(f"SLURM_{name}", value)
        return Holder.me()

    return be


def test_a_process_of_a_slurm_job_says_so(slurm):
    me = Holder.me()
    assert (me.job, me.restart) == ("", 0) and str(me) == f"process {os.getpid()} on {me.host}"
    one = slurm(JOB_ID="7", RESTART_COUNT="2")
    assert (one.job, one.restart) == ("7", 2) and str(one) == f"{me} (SLURM job 7)"
    array_task = slurm(JOB_ID="9", ARRAY_JOB_ID="8", ARRAY_TASK_ID="0", RESTART_COUNT="")
    assert (array_task.job, array_task.restart) == ("8_0", 0) and array_task == me, "it is the same process"


def test_a_requeued_job_replaces_its_earlier_life_at_once(folder, slurm):
    far = replace(Holder.me(), host="node7", space="another boot")
    for name, (job, restart) in {"before": ("8_0", 1), "now": ("8_0", 2), "other": ("8_1", 0), "none": ("", 0)}.items():
        put(folder, name, replace(far, job=job, restart=restart))
    assert len(Claims(folder).live()) == 4, "outside the job all of them hold"
    slurm(ARRAY_JOB_ID="8", ARRAY_TASK_ID="0", RESTART_COUNT="2")
    claims = Claims(folder)
    assert sorted(claims.live()) == ["none", "now", "other"] and claims.acquire("before")
    assert json.loads(os.readlink(folder / "before"))["restart"] == 2
    claims.release("before")
    assert not (folder / "before").is_symlink()


def test_claims_without_a_job_are_still_read(folder, other):
    _process, holder = other
    put(folder, "old", holder)
    old = {name: value for name, value in asdict(holder).items() if name not in ("job", "restart")}
    (folder / "old").unlink()
    os.symlink(json.dumps(old), folder / "old")
    assert Claims(folder).holder("old") == holder and not Claims(folder).acquire("old")


def test_a_claim_that_later_code_may_have_made_holds_until_it_is_old(folder):
    folder.mkdir()
    os.symlink('{"host": "far", "user": "ann"}', folder / "key")
    claims = Claims(folder)
    assert not claims.acquire("key") and "unknown process" in str(claims.live()["key"])
    os.utime(folder / "key", (0, 0), follow_symlinks=False)
    assert not claims.live() and claims.acquire("key") and claims.live() == {"key": Holder.me()}


def test_a_holder_of_this_machine_that_does_not_beat_is_stopped(folder, other):
    _process, holder = other
    put(folder, "beats", holder, age=200)
    put(folder, "silent", holder, age=400)
    claims = Claims(folder, limit=300)
    assert not claims.acquire("beats") and claims.live() == {"beats": holder}
    assert claims.taken("silent") and claims.acquire("silent") and not claims.taken("silent")


def test_a_suspended_holder_of_this_machine_is_not_lost(folder, other):
    process, holder = other
    put(folder, "silent", holder, age=400)
    put(folder, "far", replace(holder, space="another boot"), age=400)
    claims = Claims(folder, limit=300)
    assert claims.dead("silent") is None and claims.dead("far") == replace(holder, space="another boot")
    process.kill()
    process.wait()
    assert claims.dead("silent") == holder


def test_a_holder_that_wakes_in_the_last_moment_keeps_its_claims(folder, other, monkeypatch):
    for key in ("taken over", "cleared"):
        put(folder, key, other[1], age=400)

    @contextlib.contextmanager
    def wake(path):
        for key in os.listdir(folder):
            os.utime(folder / key, follow_symlinks=False)
        yield

    monkeypatch.setattr(claims_module, "locked", wake)
    assert not Claims(folder).acquire("taken over")
    for key in ("taken over", "cleared"):
        os.utime(folder / key, (0, 0), follow_symlinks=False)
    Claims(folder).clear_dead()
    assert sorted(Claims(folder).live()) == ["cleared", "taken over"]


def test_a_name_of_a_machine_says_nothing_of_its_processes(folder, other, monkeypatch):
    _process, holder = other
    put(folder, "renamed", replace(holder, host="before"))
    assert not Claims(folder).acquire("renamed") and Claims(folder).live() == {"renamed": holder}
    mine = Claims(folder)
    assert mine.acquire("mine")
    monkeypatch.setattr(claims_module, "_self", claims_module._self.__wrapped__)
    monkeypatch.setattr(socket, "gethostname", lambda: "after")
    assert Holder.me().host == "after" and mine.acquire("mine") and not mine.taken("mine")
    mine.release("mine")
    assert list(Claims(folder).live()) == ["renamed"]


@pytest.mark.parametrize("change", [{"space": "another boot pid:[1]"}, {"space": "another boot", "host": "far"}])
def test_the_same_ids_elsewhere_are_another_process(folder, change):
    """A container or a machine that shares the folder, the name and the numbers, but not what they count in."""
    for name, process in {"same": Holder.me(), "gone here": replace(Holder.me(), pid=2**22 + 1, started="1")}.items():
        put(folder, name, replace(process, **change))
    claims = Claims(folder)
    assert len(claims.live()) == 2 and not claims.acquire("same") and not claims.acquire("gone here")


def without_proc(monkeypatch, hidden: str) -> None:
    """Make files of /proc unreadable whose path contains a text."""
    read = Path.read_text

    def refuse(path, *rest, **named):
        if hidden in str(path):
            raise FileNotFoundError(path)
        return read(path, *rest, **named)

    monkeypatch.setattr(Path, "read_text", refuse)


def test_where_a_machine_cannot_be_distinguished_from_others_only_heartbeats_count(folder, monkeypatch):
    here = claims_module._space.__wrapped__
    assert here() == here() == Holder.me().space
    without_proc(monkeypatch, "/proc")
    assert here() != here(), "two machines of one name must not take each other's processes for their own"
    monkeypatch.undo()
    monkeypatch.setattr(os, "getpid", lambda: 2**22 + 1)  # as in a namespace that was given no /proc of its own
    assert here() != here()


def test_a_process_that_is_hidden_is_judged_by_its_heartbeat(folder, other, monkeypatch):
    process, holder = other
    without_proc(monkeypatch, f"/proc/{process.pid}/")
    put(folder, "beats", holder)
    put(folder, "silent", holder, age=400)
    assert list(Claims(folder).live()) == ["beats"]
    process.kill()
    process.wait()
    assert Claims(folder).live() == {}


def test_a_claim_beats_where_a_link_keeps_its_time(folder, monkeypatch):
    claims = Claims(folder)
    claims.acquire("key")
    os.utime(folder / "key", (0, 0), follow_symlinks=False)
    monkeypatch.setattr(os, "utime", lambda *_, **__: (_ for _ in ()).throw(NotImplementedError))
    claims._touch("key")
    assert (folder / "key").lstat().st_mtime > 0 and claims.acquire("key")
    assert sorted(os.listdir(folder)) == [".lock", "key"]


def test_the_heart_beats_while_the_claims_are_open(folder):
    with Claims(folder, heartbeat=0.01) as claims:
        claims.acquire("key")
        os.utime(folder / "key", (0, 0), follow_symlinks=False)
        limit = time.monotonic() + 10
        while (folder / "key").lstat().st_mtime == 0:
            assert time.monotonic() < limit, "no heartbeat"
            time.sleep(0.01)


def test_clear_dead_removes_only_the_dead(folder):
    put(folder, "dead", replace(Holder.me(), started="1"))
    claims = Claims(folder)
    claims.acquire("mine")
    os.symlink("half a take-over", folder / ".spare")
    claims.clear_dead()
    assert sorted(os.listdir(folder)) == [".lock", "mine"]


def _race(folder, gate, results):
    claims = Claims(folder)
    gate.wait()
    results.put([key for key in map(str, range(40)) if claims.acquire(key)])
    gate.wait()


@pytest.mark.parametrize("stale", [False, True])
def test_of_many_processes_one_gets_each_claim(folder, stale):
    folder.mkdir()
    if stale:
        for key in range(40):
            put(folder, str(key), replace(Holder.me(), started="1"))
    context = multiprocessing.get_context("spawn")
    gate, results = context.Barrier(4), context.Queue()
    processes = [context.Process(target=_race, args=(folder, gate, results)) for _ in range(4)]
    for process in processes:
        process.start()
    won = [key for _ in processes for key in results.get(timeout=60)]
    for process in processes:
        process.join()
    assert sorted(won) == sorted(map(str, range(40)))


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ClaimError, match="cannot be claimed .*--state"):
        Claims(tmp_path / "file" / "claims").acquire("key")
