"""What is known of submitted runs, with commands of SLURM that say what the test wants."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace

import pytest

from benchmarks.records.config import run_key
from benchmarks.state.failures import Failures
from benchmarks.sweep.executors import work
from benchmarks.sweep.groups import Run
from benchmarks.sweep.plan import make_plan
from benchmarks.sweep.slurm import ledger, queue
from benchmarks.sweep.slurm.executor import _outcome as outcome
from benchmarks.sweep.slurm.executor import pack
from tests.benchmarks import fakes


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Write a command of SLURM: slurm(squeue="echo ...")."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def write(**commands: str) -> None:
        for name, script in commands.items():
            (folder / name).write_text(f"#!/bin/bash\n{script}\n")
            (folder / name).chmod(0o755)

    write(squeue="true", scontrol="echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    return write


@pytest.fixture
def folders(tmp_path):
    return tmp_path / "results", tmp_path / "state"


def groups(folders, n=4, do="work", stack=1):
    configs = [fakes.config(seed, do=do, stack=stack) for seed in range(n)]
    return make_plan(configs, *folders, fakes.SUITE).groups(*folders, fakes.SUITE)


def submitted(folders, array_tasks):
    made = ledger.begin(folders[1], array_tasks)
    for i, entry in enumerate(made.entries):
        entry.id = f"7_{i}"
    made.save()
    return made


def line(submission, id_, status="PENDING", why="Priority"):
    return f"echo '{id_}|{status}|{why}|{submission.name}'"


def test_groups_are_packed(folders):
    one = groups(folders, 7)
    assert [len(array_task) for array_task in pack(one, 3)] == [3, 3, 1]
    assert [group for array_task in pack(one, 3) for group in array_task] == one
    assert len(pack(one, None)) == 1, "groups of small networks share an array task"
    parts = one[0].configs[0]["parts"] | {"network": {"name": "cnn"}}
    heavy = [replace(group, runs=(Run({**group.configs[0], "parts": parts}),)) for group in one]
    assert len(pack(heavy, None)) == 7, "large ones do not"
    stacked = groups(folders, 10, stack=4)
    assert [len(group.configs) for group in stacked] == [4, 4, 2]
    assert [len(array_task) for array_task in pack(stacked, 3)] == [1, 1, 1] and [len(t) for t in pack(stacked, 6)] == [
        1,
        2,
    ]


def test_groups_come_back_from_disk_as_they_were(folders):
    array_tasks = [groups(folders)[:3], groups(folders)[3:]]
    made = ledger.begin(folders[1], array_tasks)
    assert [ledger.groups_of(made.task_file(i)) for i in range(2)] == array_tasks
    made.task_file(0).write_text("[{")
    with pytest.raises(ledger.LedgerError, match="task-0.json"):
        ledger.groups_of(made.task_file(0))


CHANGES = {
    "no groups": lambda groups: groups.clear(),
    "no group": lambda groups: groups.append(7),
    "no runs": lambda groups: groups[0].update(runs=[]),
    "no run": lambda groups: groups[0].update(runs=[7]),
    "no configuration": lambda groups: groups[0]["runs"][0].update(config={"seed": 1}),
    "no count": lambda groups: groups[0]["runs"][0].update(attempts="0"),
    "no metric": lambda groups: groups[0]["runs"][0].update(asked=[7]),
    "runs as they were before": lambda groups: groups[0].update(
        configs=[run["config"] for run in groups[0].pop("runs")], attempts=[0], asked=[[]]
    ),
    "no folder": lambda groups: groups[0].update(state=None),
    "a name of no folder": lambda groups: groups[0].update(results="a\0b"),
    "no metrics": lambda groups: groups[0].update(metrics="benchmarks.metrics:NONE"),
    "no module": lambda groups: groups[0].update(metrics="benchmarks.none:METRICS"),
    "no name": lambda groups: groups[0].update(metrics="text"),
    "more": lambda groups: groups[0].update(more=1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_groups_are_named_and_spoil_no_look_at_the_queue(change, folders, slurm):
    (first, *_) = groups(folders)
    work.perform(first, lambda *_: None)  # with a record, all of a run group is read
    made = submitted(folders, [[first]])
    told = json.loads(made.task_file(0).read_text())
    CHANGES[change](told)
    made.task_file(0).write_text(json.dumps(told))
    with pytest.raises(
        ledger.LedgerError, match="task-0.json: expected the run groups of an array task, found .*; submit again"
    ):
        ledger.groups_of(made.task_file(0))
    assert ledger.pending(folders[1]) == {} and not Failures(folders[1]).keys()


def test_groups_of_other_runs_than_those_that_were_submitted_have_not_failed(folders, slurm):
    first, other, *_ = groups(folders)
    made = submitted(folders, [[first]])
    ledger.write(made.task_file(0), [asdict(other)])
    for group in (first, other):
        work.log_path(group, group.keys[0]).parent.mkdir(parents=True, exist_ok=True)
        work.log_path(group, group.keys[0]).touch()
    slurm(scontrol="echo JobState=TIMEOUT")
    assert ledger.pending(folders[1]) == {} and not Failures(folders[1]).keys()


@pytest.mark.parametrize(
    ("name", "value"),
    [("keys", [["a"]]), ("keys", [None]), ("id", 7), ("id", ""), ("id", "-h"), ("over", None), ("x", 1)],
)
def test_a_submission_of_wrong_values_is_left_out(name, value, folders, slurm):
    first, second, *_ = groups(folders)
    whole, changed = submitted(folders, [[first]]), submitted(folders, [[second]])
    path = changed.folder / "submission.json"
    told = json.loads(path.read_text())
    told["tasks"][0][name] = value
    path.write_text(json.dumps(told))
    slurm(squeue=line(whole, "7_0"))
    assert list(ledger.pending(folders[1])) == list(first.keys)
    path.write_text(json.dumps(told | {"name": None}))
    assert len(ledger.open_submissions(folders[1])) == 1


def test_a_submission_removes_what_killed_ones_have_left(folders):
    killed = submitted(folders, [groups(folders)[:1]])
    left = killed.folder / ".task-0.json.0123.tmp"
    left.write_text("[{")
    submitted(folders, [groups(folders)[:1]])
    assert not left.exists() and killed.task_file(0).exists()


def test_runs_of_array_tasks_in_the_queue_are_pending_and_those_of_others_are_not(folders, slurm):
    first, second, third, _ = groups(folders)
    made = submitted(folders, [[first], [second], [third]])
    slurm(squeue=line(made, "7_0", "RUNNING", "None") + "\n" + line(made, "7_1") + "\necho '7_2|PENDING|None|others'")
    found = ledger.pending(folders[1])
    assert found == {first.keys[0]: "SLURM job 7_0 (running)", second.keys[0]: "SLURM job 7_1 (pending, Priority)"}
    plan = make_plan([j.configs[0] for j in (first, second, third)], *folders, fakes.SUITE, queued=found)
    assert [run.status for run in plan.runs] == ["queued", "queued", "missing"]
    assert [group.keys for group in plan.groups(*folders, fakes.SUITE)] == [third.keys]


def test_if_the_queue_cannot_be_asked_nothing_counts_as_missing(folders, slurm):
    (first, second, *_) = groups(folders)
    submitted(folders, [[first], [second]])
    slurm(squeue="echo 'Unable to contact slurm controller' >&2; exit 1")
    found = ledger.pending(folders[1])
    assert set(found) == {*first.keys, *second.keys}
    assert all("Unable to contact slurm controller" in note for note in found.values())
    assert not Failures(folders[1]).keys()


def test_a_run_that_its_array_task_had_begun_when_it_died_has_failed_with_the_reason(folders, slurm):
    first, second, *_ = groups(folders, do="raise")
    made = submitted(folders, [[first, second]])
    log = work.log_path(first, first.keys[0])
    log.parent.mkdir(parents=True)
    log.touch()
    slurm(scontrol="echo 'JobId=8 JobState=TIMEOUT Reason=TimeLimit ExitCode=0:15 NodeList=n3'")
    assert ledger.pending(folders[1]) == {}
    failure = Failures(folders[1]).get(first.keys[0])
    assert failure["reason"].startswith(
        "its array task came to its time limit (SLURM job 7_0, TIMEOUT, n3); give it more"
    )
    assert failure["log"] == str(made.errors("7_0")) and failure["config"] == first.configs[0]
    assert Failures(folders[1]).keys() == [first.keys[0]], "the second was not begun: it is missing, not failed"
    slurm(squeue="exit 1")
    assert ledger.pending(folders[1]) == {}, "a closed submission is not asked for again"
    assert Failures(folders[1]).attempts(first.keys[0]) == 1


def test_an_array_task_that_could_not_begin_is_told_with_what_it_said(folders, slurm):
    first, second, *_ = groups(folders)
    made = submitted(folders, [[first, second]])
    made.log_folder.mkdir()
    made.errors("7_0").write_text("module: not found\nModuleNotFoundError: no torch\nsrun: error: task 0: Exited\n")
    slurm(scontrol="echo 'JobState=FAILED ExitCode=1:0'")
    assert ledger.pending(folders[1]) == {}
    for group in (first, second):
        assert Failures(folders[1]).get(group.keys[0])["reason"] == (
            "its array task, SLURM job 7_0, ended with exit code 1:0 (FAILED) before its first run: "
            "ModuleNotFoundError: no torch"
        )


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("slurmstepd: error: *** JOB 7 ON n3 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***", "TIMEOUT"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.", "OUT_OF_MEMORY"),
        ("slurmstepd: error: *** JOB 7 ON n3 CANCELLED AT 2026-01-01T00:00:00 DUE TO NODE FAILURE ***", "NODE_FAIL"),
        ("slurmstepd: error: *** STEP 7.0 ON n3 CANCELLED AT 2026-01-01T00:00:00 ***", "CANCELLED"),
        (
            "error: StepId=7.0 exceeded memory limit (9 > 8), being killed\n"
            "*** STEP 7.0 ON n3 CANCELLED AT 2026-01-01T00:00:00 ***",
            "OUT_OF_MEMORY",
        ),
        ("*** JOB 7 ON n3 CANCELLED AT 2026-01-01T00:00:00 DUE TO JOB REQUEUE ***\nTraceback", ""),
    ],
)
def test_the_error_file_tells_the_end_when_the_controller_has_forgotten_it(text, status, tmp_path, slurm):
    (tmp_path / "log.err").write_text(text)
    assert queue.end("7_0", tmp_path / "log.err").status == status


def test_runs_of_a_cancelled_array_task_are_missing_again(folders, slurm):
    (first, *_) = groups(folders)
    submitted(folders, [[first]])
    log = work.log_path(first, first.keys[0])
    log.parent.mkdir(parents=True)
    log.touch()
    slurm(scontrol="echo 'JobState=CANCELLED ExitCode=0:15'")
    assert ledger.pending(folders[1]) == {} and not Failures(folders[1]).keys()


def test_a_recorded_run_of_a_dead_array_task_has_not_failed(folders, slurm):
    (first, *_) = groups(folders)
    submitted(folders, [[first]])
    work.perform(first, lambda *_: None)
    slurm(scontrol="echo JobState=NODE_FAIL")
    assert ledger.pending(folders[1]) == {} and not Failures(folders[1]).keys()


def test_a_submission_whose_process_died_before_it_had_the_ids_is_found_by_name(folders, slurm):
    first, second, *_ = groups(folders)
    made = ledger.begin(folders[1], [[first], [second]])
    slurm(squeue=line(made, "9_0") + "\n" + line(made, "9_1"))
    assert set(ledger.pending(folders[1])) == {*first.keys, *second.keys}
    slurm(squeue="true")
    assert ledger.pending(folders[1]) == {}, "and it is over when the queue knows it no longer"
    assert ledger.open_submissions(folders[1]) == []


def test_while_somebody_submits_nothing_is_closed(folders, slurm):
    (first, *_) = groups(folders)
    with ledger.locked(folders[1]):
        ledger.begin(folders[1], [[first]])
        assert ledger.pending(folders[1]) == {run_key(first.configs[0]): "is being submitted to SLURM"}
        assert ledger.pending(folders[1], held=True) == {}


def test_without_slurm_and_without_submissions_nothing_is_asked(folders, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert ledger.pending(folders[1]) == {}
    with pytest.raises(queue.QueueError, match="squeue is not on the PATH"):
        queue.array_tasks("fvi-")


GUESS = "its process was killed by SIGKILL: most often for want of memory"
LIMIT = (
    "its array task came to its time limit of 30 min (SLURM job 7_0, TIMEOUT, n3); give it more, as in --slurm time="
)


@pytest.fixture
def ended(folders, slurm):
    """The failure of a begun run after its array task has ended so; with ``guess`` its worker died before, nobody knows
    why.
    """

    def end(status, guess=True, age=0.0, reason=GUESS):
        (first, *_) = groups(folders)
        made = ledger.begin(folders[1], [[first]], minutes=30)
        made.entries[0].id = "7_0"
        made.save()
        log = work.log_path(first, first.keys[0])
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        made.log_folder.mkdir()
        made.errors("7_0").write_text("Submitted job triggered an exception")
        if guess is not None:
            Failures(folders[1]).write(first.configs[0], first.keys[0], reason, guess=guess)
            now = made.errors("7_0").stat().st_mtime
            os.utime(Failures(folders[1]).path(first.keys[0]), (now - age, now - age))
        slurm(scontrol=f"echo 'JobId=8 JobState={status} ExitCode=0:15 NodeList=n3'")
        assert ledger.pending(folders[1]) == {}
        return Failures(folders[1]).get(first.keys[0])

    return end


@pytest.mark.parametrize("guess", [None, True], ids=["SLURM", "the pool"])
def test_a_time_limit_is_told_in_the_same_words_whoever_notices_first(ended, guess):
    failure = ended("TIMEOUT", guess)
    assert failure["reason"].startswith(LIMIT) and failure["attempt"] == 1 and not failure["guess"]


def test_a_guess_of_an_earlier_attempt_stays_an_attempt(ended):
    ended("FAILED")
    failure = ended("TIMEOUT", guess=None)
    assert failure["reason"].startswith(LIMIT) and failure["attempt"] == 2


@pytest.mark.parametrize(("status", "word"), [("NODE_FAIL", "lost its node"), ("OUT_OF_MEMORY", "of memory (OUT_OF")])
def test_what_slurm_tells_goes_before_a_guess(ended, status, word):
    assert word in ended(status)["reason"]


@pytest.mark.parametrize(
    ("status", "about"),
    [
        ("FAILED", {}),
        ("COMPLETED", {}),
        ("TIMEOUT", {"age": 2 * ledger.LAST}),
        ("TIMEOUT", {"guess": False, "reason": "RuntimeError: the loss exploded"}),
    ],
    ids=["nothing better is known", "the array task went on", "long before the end", "it is known why"],
)
def test_a_reason_stays_that_the_end_of_the_array_task_does_not_explain(ended, status, about):
    assert ended(status, **about)["reason"] == about.get("reason", GUESS)


def test_a_guess_is_not_told_while_its_array_task_may_end_in_another_way(folders):
    (first, *_) = groups(folders, 1)
    (run,) = first.runs
    Failures(folders[1]).write(run.config, run.key, GUESS, guess=True)
    assert outcome(first, run, {run.key: "SLURM job 7_0 (running)"}) is None
    assert outcome(first, run, {}).reason == GUESS


def test_a_run_whose_worker_died_as_its_array_task_was_cancelled_is_missing_again(ended):
    assert ended("CANCELLED") is None
