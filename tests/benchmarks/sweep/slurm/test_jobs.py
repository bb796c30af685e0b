"""Tests of the states of submitted runs, with fake commands of SLURM."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pwd

import pytest

from benchmarks import files
from benchmarks.errors import BenchmarkError
from benchmarks.records.config import run_key
from benchmarks.state.claims import Claims, Holder
from benchmarks.state.failures import Failures
from benchmarks.sweep import work
from benchmarks.sweep.plan import make_plan
from benchmarks.sweep.slurm import jobs, queue, submit
from benchmarks.sweep.slurm.options import Options
from benchmarks.sweep.slurm.queue import SlurmError
from tests.benchmarks import fakes
from tests.benchmarks.state.holders import put


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


def groups(folders, n=4, do="work", stack=1):
    configs = [fakes.config(seed, do=do, stack=stack) for seed in range(n)]
    return make_plan(configs, *folders, fakes.SUITE).groups


def submitted(folders, todo, name="1", **at):
    """A submission, and what its array tasks were at, by the number of each: _0=[...]."""
    made = folders[1] / "slurm" / name
    jobs.write(made, todo)
    (made / "logs").mkdir(exist_ok=True)
    for number, keys in at.items():
        files.write(made / f"7{number}.json", json.dumps(keys))
        (made / "logs" / f"7{number}_0_log.err").touch()
    return made


def line(submission, id_, status="PENDING", why="Priority"):
    return f"echo '{id_}|{status}|{why}|fvi-{submission.name}'"


def test_run_groups_come_back_from_disk_as_they_were(folders):
    todo = groups(folders)
    made = submitted(folders, todo)
    assert jobs.read(made) == todo


DAMAGES = {
    "no text": lambda text: b"",
    "half": lambda text: text[: len(text) // 2],
    "another attempt": lambda text: text.replace(b'"attempts": 0', b'"attempts": 1'),
    "groups of another version": lambda text: _signed(text.partition(b"\n")[2].replace(b'"attempts"', b'"tries"')),
    "no groups": lambda text: _signed(b"[7]"),
    "no JSON": lambda text: _signed(b"[{"),
}


def _signed(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text


@pytest.mark.parametrize("damage", DAMAGES)
def test_changed_groups_are_named_and_spoil_no_look_at_the_queue(damage, folders, slurm):
    (first, *_) = groups(folders)
    made = submitted(folders, [first], _0=list(first.keys))
    whole = (made / jobs.TODO).read_bytes()
    (made / jobs.TODO).write_bytes(DAMAGES[damage](whole))
    assert (made / jobs.TODO).read_bytes() != whole
    expected = "todo: expected the run groups of a submission, found .*; submit again"
    with pytest.raises(SlurmError, match=expected):
        jobs.read(made)
    assert jobs.pending(folders[1]) == {} and not Failures(folders[1]).keys()


@pytest.mark.parametrize("text", ["7", '{"a": 1}', "[7]", "[", '["none of these"]', '"x"'])
def test_notes_of_wrong_values_explain_nothing(text, folders, slurm):
    (first, *_) = groups(folders)
    made = submitted(folders, [first])
    (made / "7_0.json").write_text(text)
    slurm(scontrol="echo JobState=TIMEOUT")
    assert jobs.pending(folders[1]) == {} and not Failures(folders[1]).keys()


def test_runs_of_a_submission_in_the_queue_are_pending_but_for_those_that_failed_in_it(folders, slurm):
    first, second, third, _ = groups(folders)
    made = submitted(folders, [first, second])
    slurm(squeue=line(made, "7_0", "RUNNING", "None") + "\n" + line(made, "7_1") + "\necho '8_0|PENDING|None|others'")
    state = "SLURM job 7: array tasks: 1 running, 1 waiting (Priority)"
    assert jobs.pending(folders[1]) == {first.keys[0]: state, second.keys[0]: state}
    plan = make_plan(
        [j.configs[0] for j in (first, second, third)], *folders, fakes.SUITE, queued=jobs.pending(folders[1])
    )
    assert [run.status for run in plan.runs] == ["queued", "queued", "missing"]
    Failures(folders[1]).write(first.configs[0], first.keys[0], "it diverged")
    Failures(folders[1]).write(second.configs[0], second.keys[0], "it cost its process", guess=True, death=True)
    assert list(jobs.pending(folders[1])) == list(second.keys), "another array task may try it once more"


def test_foreign_jobs_of_any_name_are_left_alone(folders, slurm):
    (first, *_) = groups(folders)
    made = submitted(folders, [first])
    odd = r"printf '9|RUNNING|None|\xff\xfe\n9|RUNNING|None|a|b\nc\x85d\n\n|||\n10|PENDING|None|fv\n'"
    slurm(squeue=f"{odd}\n{line(made, '7_0')}")
    assert list(queue.array_tasks([f"fvi-{made.name}"])) == ["7_0"]
    assert list(jobs.pending(folders[1])) == list(first.keys)


def test_array_tasks_of_another_user_of_the_folder_are_seen(folders, slurm):
    (first, *_) = groups(folders)
    made = submitted(folders, [first])
    slurm(squeue=f'case "$*" in *--me*) ;; *--name=fvi-{made.name}*) {line(made, "7_0")} ;; esac')
    assert list(jobs.pending(folders[1])) == list(first.keys) and jobs.opened(folders[1]) == [made]


def test_options_of_the_array_go_over_variables_of_sbatch(folders, slurm, tmp_path, monkeypatch):
    names = ("JOB_NAME", "TIMELIMIT", "SIGNAL", "ARRAY_INX", "PARTITION")
    for name in names:
        monkeypatch.setenv(f"SBATCH_{name}", "mine")
    slurm(
        scontrol="echo MaxArraySize=1001", srun="true",
        sbatch=f"env | grep ^SBATCH_ > {tmp_path / 'seen'}; echo Submitted batch job 77",
    )  # fmt: skip
    submit.submit(groups(folders), Options(snapshot=False), folders[1])
    assert (tmp_path / "seen").read_text().split() == ["SBATCH_PARTITION=mine"]
    assert all(os.environ[f"SBATCH_{name}"] == "mine" for name in names)


def test_if_the_queue_cannot_be_read_nothing_counts_as_missing(folders, slurm):
    first, second, *_ = groups(folders)
    submitted(folders, [first, second], _0=list(first.keys))
    slurm(squeue="echo 'Unable to contact slurm controller' >&2; exit 1")
    found = jobs.pending(folders[1])
    assert set(found) == {*first.keys, *second.keys}
    assert all("Unable to contact slurm controller" in note for note in found.values())
    assert not Failures(folders[1]).keys() and jobs.opened(folders[1])


ENDS = {
    "TIMEOUT": "its array task reached its time limit (SLURM job 7_0, TIMEOUT, n3); give it more, as in --slurm time=8",
    "NODE_FAIL": "its array task, SLURM job 7_0, lost its node (NODE_FAIL, n3)",
    "OUT_OF_MEMORY": "its array task, SLURM job 7_0, was killed for want of memory (OUT_OF_MEMORY, n3)",
    "FAILED": "its array task, SLURM job 7_0, ended with exit code 0:15 (FAILED, n3)",
    "CANCELLED": None,
    "COMPLETED": None,
}


@pytest.mark.parametrize("status", ENDS)
def test_runs_that_an_array_task_was_at_when_it_ended_have_failed_with_what_slurm_tells(status, folders, slurm):
    first, second, third, _ = groups(folders)
    work.perform(third, lambda *_: None)
    made = submitted(folders, [first, second, third], _0=[*first.keys, *third.keys], _1=[])
    put(folders[1] / "claims", first.keys[0], Holder("n3", "another boot", 7, "1", "7_0"))
    slurm(scontrol=f"echo 'JobId=8 JobState={status} ExitCode=0:15 NodeList=n3'")
    assert jobs.pending(folders[1]) == {}
    failure = Failures(folders[1]).get(first.keys[0])
    if ENDS[status]:
        assert failure["reason"].startswith(ENDS[status]) and failure["config"] == first.configs[0]
        assert failure["log"] == str(made / "logs" / "7_0_0_log.err") and failure["attempt"] == 1
    assert Failures(folders[1]).keys() == [first.keys[0]] * bool(ENDS[status]), "what none was at is missing"
    assert Claims(folders[1] / "claims").live() == {}, "its claim does not stand until it is old"
    slurm(squeue="exit 1")
    assert jobs.pending(folders[1]) == {} and jobs.opened(folders[1]) == [], "the queue is not read for it again"
    assert Failures(folders[1]).attempts(first.keys[0]) == bool(ENDS[status])


@pytest.mark.parametrize("death", [True, False])
def test_what_slurm_tells_goes_before_the_guess_of_who_took_over(death, folders, slurm):
    (first, *_) = groups(folders)
    submitted(folders, [first], _0=list(first.keys))
    Failures(folders[1]).write(first.configs[0], first.keys[0], "it cost its process", guess=True, death=death)
    slurm(scontrol="echo 'JobState=OUT_OF_MEMORY'")
    jobs.pending(folders[1])
    failure = Failures(folders[1]).get(first.keys[0])
    assert "want of memory" in failure["reason"] and failure["attempt"] == 1 and not failure["guess"]


def test_a_known_reason_stays_and_a_cancelled_guess_goes(folders, slurm):
    first, second, *_ = groups(folders)
    submitted(folders, [first, second], _0=[*first.keys, *second.keys])
    Failures(folders[1]).write(first.configs[0], first.keys[0], "the loss exploded")
    Failures(folders[1]).write(second.configs[0], second.keys[0], "it cost its process", guess=True, death=True)
    slurm(scontrol="echo JobState=CANCELLED")
    jobs.pending(folders[1])
    assert Failures(folders[1]).get(first.keys[0])["reason"] == "the loss exploded"
    assert Failures(folders[1]).keys() == list(first.keys)


def test_an_end_that_cannot_be_noted_is_printed(folders, capfd):
    (first, *_) = groups(folders)
    folders[1].mkdir()
    (folders[1] / "failures").write_text("no folder")
    jobs.note_end(first, first.runs[0], "its array task was preempted", folders[1] / "log")
    said = capfd.readouterr().err
    assert "its array task was preempted (and this could not be noted: " in said and first.title in said


@pytest.mark.parametrize("forgotten", [True, False])
def test_array_tasks_that_could_not_begin_are_named_with_their_output(forgotten, folders, slurm):
    first, second, *_ = groups(folders)
    made = submitted(folders, [first, second], _0=None)
    said = "module: not found\n\nTraceback\nModuleNotFoundError: no torch\nsrun: error: task 0: Exited\n"
    (made / "logs" / "7_0_0_log.err").write_text(said)
    if not forgotten:
        slurm(scontrol="echo 'JobState=FAILED ExitCode=1:0'")
    assert jobs.pending(folders[1]) == {}
    how = "ended" if forgotten else "ended with exit code 1:0 (FAILED)"
    for group in (first, second):
        assert Failures(folders[1]).get(group.keys[0])["reason"] == (
            f"its array task, SLURM job 7_0, {how} before its first run: "
            "module: not found; Traceback; ModuleNotFoundError: no torch"
        )
    plan = make_plan([first.configs[0]], *folders, fakes.SUITE)
    assert plan.runs[0].status == "failed", "and not missing for ever"


def test_array_tasks_that_were_cancelled_before_they_began_have_not_failed(folders, slurm):
    first, second, *_ = groups(folders)
    submitted(folders, [first])
    made = submitted(folders, [second], "2", _0=None)
    (made / "logs" / "7_0_0_log.err").write_text("slurmstepd: error: *** JOB 7 ON n3 CANCELLED AT 2026-01-01T00:00 ***")
    assert jobs.pending(folders[1]) == {} and not Failures(folders[1]).keys() and not jobs.opened(folders[1])


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


def test_while_somebody_submits_nothing_is_closed(folders, slurm):
    (first, *_) = groups(folders)
    submitted(folders, [first])
    with jobs.locked(folders[1]):
        assert jobs.pending(folders[1]) == {run_key(first.configs[0]): "is being submitted to SLURM"}
    assert jobs.pending(folders[1]) == {}, "a submission that the queue does not know is over"


def test_waiting_for_another_submission_says_for_whom_and_ends(folders, slurm, monkeypatch, capfd):
    monkeypatch.setattr("benchmarks.files.NOTICE", 0.05)
    monkeypatch.setattr(jobs, "PATIENCE", 0.1)
    with jobs.locked(folders[1]):
        pass
    lock = folders[1] / "slurm" / ".lock"
    assert oct(lock.stat().st_mode & 0o777) == "0o600", "others may not hold it"
    who = f"process {os.getpid()} of {pwd.getpwuid(os.geteuid()).pw_name}"
    with open(lock, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(SlurmError, match=f"locked for 0 s by {who}: wait until"), jobs.locked(folders[1]):
            pass
    assert f"waiting for {who}, which has locked {lock.parent}" in capfd.readouterr().err
    (folders[1] / "file").write_text("")
    with pytest.raises(SlurmError, match="cannot be written"), jobs.locked(folders[1] / "file"):
        pass


def test_without_slurm_and_without_submissions_no_queue_is_read(folders, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert jobs.pending(folders[1]) == {}
    with pytest.raises(SlurmError, match="squeue is not on the PATH"):
        queue.array_tasks(["fvi-1"])


def test_a_refused_submission_is_over_and_says_what_to_do(folders, slurm):
    slurm(
        scontrol="echo MaxArraySize=1001", sbatch="echo 'sbatch: error: invalid partition: no' >&2; exit 1", srun="true"
    )
    with pytest.raises(SlurmError, match="SLURM did not take the jobs.*check the options") as error:
        submit.submit(groups(folders), Options(snapshot=False), folders[1])
    assert isinstance(error.value, BenchmarkError) and error.value.exit_code == 2
    assert jobs.opened(folders[1]) == [] and jobs.pending(folders[1]) == {}


def test_a_submission_is_one_array_no_larger_than_the_cluster_allows(folders, slurm):
    slurm(scontrol="echo MaxArraySize=3", sbatch="cp $1 $(dirname $0)/script; echo Submitted batch job 12", srun="true")
    todo = groups(folders, 5)
    receipt = submit.submit(todo, Options(snapshot=False, runs_per_task=1, gpus=0), folders[1])
    assert receipt[0] == "submitted 5 runs to 2 array tasks: SLURM job 12" and "scancel 12" in receipt[3]
    (made,) = jobs.opened(folders[1])
    assert jobs.read(made) == todo
    script = (folders[1].parent / "bin" / "script").read_text()
    preview = submit.preview(todo, Options(snapshot=False, runs_per_task=1), folders[1])
    assert preview[0].startswith("would submit 5 runs to an array of 5 array tasks of 1 process, each for at most 4 h")
    shown = [entry.strip().replace("SUBMISSION", made.name) for entry in preview[1:]]
    same = {entry for entry in script.splitlines() if entry.strip() and "--array" not in entry}
    assert {entry.strip() for entry in same} <= set(shown), "the script is what is shown"
