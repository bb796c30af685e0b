"""Sweeps on a real cluster of one node: packed runs, failures, requeues, daemons that go and come."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from benchmarks import files
from benchmarks.commands import sweeping
from benchmarks.records import provenance
from benchmarks.records.config import run_key
from benchmarks.records.store import Store
from benchmarks.state import checkpoints
from benchmarks.state.claims import Claims
from benchmarks.state.failures import Failures
from benchmarks.suite import Suite
from benchmarks.sweep import runner
from benchmarks.sweep.plan import make_plan
from benchmarks.sweep.slurm import jobs, queue
from benchmarks.sweep.slurm.options import Options
from benchmarks.sweep.slurm.queue import SlurmError
from benchmarks.tables import Recipe
from tests.benchmarks import fakes
from tests.configs import make_config

pytestmark = pytest.mark.usefixtures("environment")
OPTIONS = Options(time=10, memory="700M", runs_per_task=2)
REAL = Options(time=10, memory="3G", runs_per_task=5)  # for runs that need torch
TIMES = {"training_seconds"}


@pytest.fixture
def environment(cluster, monkeypatch):
    """SLURM's commands, and groups that find these tests."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(provenance.ROOT))
    monkeypatch.setattr(sweeping, "LOOK_EVERY", 0.3)


@pytest.fixture
def folders(tmp_path):
    """Folders of results and state. A failed test shows what its array tasks wrote to stderr."""
    yield tmp_path / "results", tmp_path / "state"
    for log in sorted(tmp_path.glob("state/slurm/*/logs/*.err")):
        print(f"{log.name}: {files.tail(log, 3000)}")


def names(folders):
    """Names of the arrays that may be in the queue."""
    return [jobs.PREFIX + each.name for each in jobs.opened(folders[1])] or ["none"]


def wait(condition, seconds=240, every=0.1):
    """Wait until something holds."""
    limit = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(every)
    return found


def submit(configs, folders, suite=fakes.SUITE, options=OPTIONS):
    """Submit what is missing of configurations; return the plan before it, and the receipt."""
    return sweeping.submit(make_plan(configs, *folders, suite), options)


def follow(configs, folders, suite=fakes.SUITE):
    return {run.key: run for run in sweeping.follow(make_plan(configs, *folders, suite)).runs}


def array_of(receipt):
    """Return the number of submitted array tasks, and the id of the array."""
    return int(re.search(r"to (\d+) array task", receipt[0])[1]), receipt[0].rpartition(" ")[2]


def metrics(results, configs):
    """Metric rows of runs as they stand in their records, but for time and memory."""
    found = [Store(results).get(config)["metrics"] for config in configs]
    return [[json.dumps(row) for row in rows if row["metric"] not in TIMES] for rows in found]


def trained(folders):
    """Return a line for every training of a run."""
    lines = (folders[1] / "trained").read_text().splitlines()
    return sorted(line.rpartition(" ")[0] for line in lines)


def digits(method="MAP", seed=0, epochs=2):
    parts = {
        "network": {"name": "mlp", "hidden": [20], "activation": "relu"},
        "likelihood": {"name": "categorical"},
        "training": {"epochs": epochs, "batch_size": 64, "optimiser": {"name": "adam", "lr": 0.01}},
    }
    return make_config(method, "digits", "smoke", Recipe(parts, (), samples=4), 0, seed)


def test_array_tasks_give_the_metrics_of_one_process(folders, tmp_path):
    configs = [digits(method, seed) for method in ("MAP", "MC Dropout", "MAP fVI", "MFVI") for seed in range(10)]
    alone = Suite(limit="tests.benchmarks.sweep.slurm.test_slurm:one")
    plan, receipt = submit(configs, folders, alone, REAL)
    assert len(plan.select("missing")) == 40 and array_of(receipt)[0] == 8
    assert {run.status for run in follow(configs, folders, alone).values()} == {"done"}
    runner.run(make_plan(configs, tmp_path / "here", tmp_path / "here-state", Suite()))
    assert metrics(folders[0], configs) == metrics(tmp_path / "here", configs)
    about = Store(folders[0]).get(configs[0])["provenance"]
    assert about["commit"] == provenance.code()[0] and len(os.listdir(folders[1] / "snapshots")) == 1


def one(config):
    """Return 1: every run is trained alone."""
    return 1


def test_failures_harm_no_other_run_and_the_same_command_retries_them_alone(folders):
    kinds = {"raise": 0, "hog": 1, "wait": 2, "work": 3}
    configs = {do: fakes.config(seed, do=do) for do, seed in kinds.items()}
    configs |= {f"work{i}": fakes.config(10 + i) for i in range(4)}
    options = Options(time=1, memory="400M", runs_per_task=1)
    submit([*configs.values()], folders, options=options)
    runs = follow([*configs.values()], folders)
    status = {do: runs[run_key(config)].status for do, config in configs.items()}
    assert status == {do: "failed" if do in ("raise", "hog", "wait") else "done" for do in configs}
    failures = {do: Failures(folders[1]).get(run_key(configs[do])) for do in ("raise", "hog", "wait")}
    assert failures["raise"]["reason"] == "RuntimeError: the loss exploded"
    assert "memory" in failures["hog"]["reason"]
    assert "time limit of 1 min" in failures["wait"]["reason"] and "--slurm time=" in failures["wait"]["reason"]
    assert all(Path(failure["log"]).is_file() for failure in failures.values())

    (folders[1] / "go").touch()  # now the one that waited ends
    before = len(trained(folders))
    plan, _ = submit([*configs.values()], folders, options=options)
    assert {run.key for run in plan.select("missing", "failed")} == {run_key(configs[do]) for do in failures}
    wait(lambda: len(trained(folders)) > before)
    runs = follow([*configs.values()], folders)
    assert runs[run_key(configs["wait"])].status == "done" and len(trained(folders)) - before <= 4


def test_array_tasks_take_over_the_runs_of_a_killed_one_and_nobody_asks_again(folders):
    configs = [fakes.config(seed, seconds=2.0) for seed in range(12)]
    count, _ = array_of(submit(configs, folders, options=Options(time=10, memory="700M", runs_per_task=4))[1])
    assert count == 3
    wait(lambda: len(Claims(folders[1] / "claims").live()) == 3)
    holder = next(iter(Claims(folders[1] / "claims").live().values()))
    for pid in _processes_of(holder.job):
        os.kill(pid, signal.SIGKILL)
    assert {run.status for run in follow(configs, folders).values()} == {"done"}
    assert len(trained(folders)) <= 12 + 1 and len(set(trained(folders))) == 12
    assert not Failures(folders[1]).keys() and Claims(folders[1] / "claims").live() == {}


def _processes_of(job):
    """The processes of an array task, but for SLURM's own."""
    array, _, index = job.partition("_")
    wanted = {f"SLURM_ARRAY_JOB_ID={array}".encode(), f"SLURM_ARRAY_TASK_ID={index}".encode()}
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted <= set(path.read_bytes().split(b"\0")) and int(path.parts[2]) != os.getpid():
                found.append(int(path.parts[2]))
    return found


def test_an_array_task_that_dies_before_its_first_run_is_explained_when_the_controller_has_forgotten_it(
    folders, monkeypatch
):
    configs = [fakes.config(seed) for seed in range(3)]
    options = Options(time=10, memory="500M", setup=("echo no module named torch >&2", "exit 3"))
    submit(configs, folders, options=options)
    wait(lambda: not queue.array_tasks(names(folders)))
    ask = queue.ask

    def forgotten(*command):
        if command[:2] == ("scontrol", "--oneliner"):
            raise SlurmError("slurm_load_jobs error: Invalid job id specified")
        return ask(*command)

    monkeypatch.setattr(queue, "ask", forgotten)
    runs = follow(configs, folders)
    assert {run.status for run in runs.values()} == {"failed"}
    for run in runs.values():
        assert run.note.endswith("ended before its first run: no module named torch")


def test_a_foreign_job_whose_name_is_no_text_spoils_nothing(folders):
    words = [
        b"sbatch",
        b"--parsable",
        b"--output=/dev/null",
        b"--mem=100M",
        b"--job-name=\xff\xfe|a",
        b"--wrap=sleep 60",
    ]
    foreign = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    config = fakes.config()
    submit([config], folders)
    assert foreign in queue.ask("squeue", "--noheader", "--format=%i").split()
    assert foreign not in queue.array_tasks(names(folders))
    assert {run.status for run in follow([config], folders).values()} == {"done"}


@pytest.mark.parametrize("how", ["requeue", "signal"])
def test_an_interrupted_run_goes_on_from_its_checkpoint(how, folders, tmp_path, monkeypatch):
    monkeypatch.setenv("FVI_CHECKPOINT_SECONDS", "0")
    config = digits(epochs=200)
    key = run_key(config)
    submit([config], folders, Suite(), REAL)
    wait(lambda: _epoch(folders, key) >= 3 or Failures(folders[1]).keys(), every=0.02)
    job = Claims(folders[1] / "claims").live()[key].job
    subprocess.run(["scontrol", "requeue", job] if how == "requeue" else ["scancel", "--signal=USR2", job], check=True)
    wait(lambda: key not in Claims(folders[1] / "claims").live())
    assert follow([config], folders, Suite())[key].status == "done"
    record = Store(folders[0]).get(config)
    assert record["provenance"]["resumed"] >= 1
    assert "going on from the checkpoint" in (folders[1] / "logs" / f"{key}.log").read_text()
    monkeypatch.delenv("FVI_CHECKPOINT_SECONDS")
    runner.run(make_plan([config], tmp_path / "here", tmp_path / "here-state", Suite()))
    assert metrics(folders[0], [config]) == metrics(tmp_path / "here", [config])
    assert not os.listdir(folders[1] / "checkpoints") or os.listdir(folders[1] / "checkpoints") == [".lock"]


@pytest.mark.parametrize("daemon", ["slurmd", "slurmctld"])
def test_a_daemon_may_go_and_come_back_in_mid_sweep(daemon, folders, cluster):
    configs = [fakes.config(seed, seconds=1.0) for seed in range(8)]
    submit(configs, folders)
    wait(lambda: (folders[1] / "trained").exists())
    cluster.stop(daemon)
    try:
        if daemon == "slurmctld":
            with pytest.raises(SlurmError, match="^squeue "):
                queue.array_tasks(names(folders))
            plan = make_plan(configs, *folders, fakes.SUITE, queued=jobs.pending(folders[1]))
            assert not plan.select("missing", "failed"), "nothing is thought lost while the queue does not answer"
        time.sleep(2)
    finally:
        cluster.start(daemon)
    assert {run.status for run in follow(configs, folders).values()} == {"done"}
    assert trained(folders) == sorted(f"MAP {seed}" for seed in range(8)), "each run was trained once"
    assert not list(folders[0].rglob("*.tmp"))


def test_the_command_line_submits_and_returns_and_says_how_to_go_on(folders, command):
    def say(*words):
        return command(*words)[:2]

    run = ("run", "fake-wait", "--executor", "slurm", "--slurm", "runs_per_task=3", "--slurm", "memory=500M")
    status, output = say(*run, "--dry-run")
    assert status == 0 and "4 runs: 4 missing" in output and not (folders[1] / "slurm").exists()
    for words in ("to an array of 2 array tasks", "at most 4 h", "#SBATCH --array=0-1%2", "#SBATCH --mem=500M"):
        assert words in output, words
    status, output = say(*run)
    assert status == sweeping.UNFINISHED
    follow = f"status --results {folders[0]}"
    for words in ("submitted 4 runs to 2 array tasks: SLURM job ", follow, "scancel ", "logs", "collect"):
        assert words in output
    status, again = say(*run)
    assert status == sweeping.UNFINISHED and "nothing to submit; 4 runs are on their way" in again
    wait(lambda: "running" in say("status", "fake-wait")[1])
    output = say("plan", "fake-wait")[1]
    assert "nothing to do" in output
    (folders[1] / "go").touch()
    status, output = say(*run, "--wait")
    assert status == 0 and "4 runs: 4 done" in output
    assert len(trained(folders)) == 4


def test_a_run_that_misses_data_fails_at_once_and_says_what_to_do(folders, tmp_path, monkeypatch):
    monkeypatch.setenv("FVI_DATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FVI_DATA_MIRROR", "")
    config = digits()
    config = {**config, "dataset": {**config["dataset"], "name": "yacht", "scheme": "gal2016"}}
    submit([config], folders, Suite(), REAL)
    (run,) = follow([config], folders, Suite()).values()
    assert run.status == "failed" and "make data" in run.note and "FVI_OFFLINE" in run.note


def _epoch(folders, key):
    """Return the epoch of a run's checkpoint; 0 without a checkpoint."""
    found = checkpoints.progress(folders[1], key)
    return found.epoch if found else 0
