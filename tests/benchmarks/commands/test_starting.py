"""Tests of the lines printed before a sweep starts, and of the confirmation that a sweep of days needs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from benchmarks import tables
from benchmarks.commands import sweeping
from benchmarks.records import provenance
from benchmarks.records.provenance import ROOT
from benchmarks.sweep import hints
from benchmarks.sweep.estimate import Known, hours
from benchmarks.sweep.slurm import submit
from tests.benchmarks import fakes

DAY = 24 * 3600.0


@pytest.fixture
def printed(monkeypatch):
    """The commands that would print tables."""
    commands = []
    monkeypatch.setattr(sweeping, "subprocess", SimpleNamespace(run=commands.append))
    return commands


@pytest.fixture
def say(say, printed, monkeypatch):
    """Run a command of the fakes, which tell their costs, and of reports."""
    monkeypatch.setattr(Known, "cost", fakes.known_cost)
    return partial(say, suite=replace(fakes.SUITE, reports="reports"))


@pytest.fixture
def table(monkeypatch):
    """table(name, cost=..., ...) is known to the command line."""

    def add(name: str, **options):
        made = fakes.Table(name, **options)
        monkeypatch.setattr(made, "protocols", ("paper", "short", "smoke"))
        monkeypatch.setattr(made, "default_protocol", "paper")
        monkeypatch.setitem(fakes.TABLES, name, made)
        return made

    return add


def test_a_sweep_begins_with_what_it_costs(say, table):
    table("cheap", cost=3600.0, early_stopping={"patience": 3})
    status, output = say("run", "cheap", "--executor", "inprocess")
    lines = output.splitlines()
    assert status == 0 and "5 runs: 5 made now" in output, output
    assert lines[0] == "estimate: 5 runs, at most 5.5 core-hours, 5 h 30 min here with 1 worker on otherwise idle cores"
    assert lines[1] == "  5 runs by a checkpoint, training may end early in 5"
    assert lines[2] == "5 runs: 5 missing; 5 groups of runs to train"


def test_hours_too_few_to_print_are_said_to_be_few():
    assert [hours(seconds) for seconds in (0, 0.05, 35.9, 360)] == ["0", "less than 0.01", "less than 0.01", "0.1"]


def test_a_dry_run_says_it_too_and_writes_nothing(say, table, folders):
    table("cheap", cost=36.0)
    status, output = say("run", "cheap", "--dry-run", "--executor", "inprocess")
    assert status == 0 and "estimate: 5 runs, about 0.055 core-hours, 3 min here with 1 worker" in output
    assert not folders[0].exists() and not folders[1].exists()


def test_what_is_not_known_is_said_and_trained(say, table):
    table("odd", do="once", n=1)
    status, output = say("run", "odd", "--executor", "inprocess")
    assert output.startswith(
        "estimate: none for 1 run\n  not estimated: 1 run (MAP on digits): no record of these methods"
    )
    assert "failed 1: MemoryError" in output and status == 1, "it was begun"


def test_what_takes_days_does_not_begin_by_itself(say, table, printed, folders):
    table("long", cost=30 * DAY)
    command = ("run", "long", "--executor", "inprocess")
    status, output = say(*command)
    assert status == sweeping.TOO_LONG == 4 and not (folders[1] / "trained").exists()
    assert "not started: it would take about 165 days here; sweeps of more than 24 h need confirmation" in output
    for way in ("--protocol short", "--protocol smoke", "--seeds 1", "--executor slurm", "--anyway", "with a GPU"):
        assert way in output
    assert "one seed or split of each row: about 33 days here" in output
    where = ["--results", str(folders[0]), "--state", str(folders[1])]
    assert printed == [[sys.executable, "-m", "reports", "table", "long", "--protocol", "paper", *where]]
    assert "one seed or split" not in say(*command, "--seeds", "1-3")[1], "the first seed is not among them"
    status, output = say(*command, "--anyway")
    assert status == 0 and "5 runs: 5 made now" in output and "not started" not in output


def test_the_limit_is_wall_time_of_all_workers(say, table):
    table("long", cost=0.6 * DAY)
    assert say("run", "long", "--workers", "5", "--dry-run")[1].count("not started") == 0
    status, output = say("run", "long", "--workers", "2", "--dry-run")
    assert status == 0 and "not started: it would take about 39 h 36 min here" in output


def test_ways_on_are_options_of_make_if_that_was_called(say, table, monkeypatch):
    monkeypatch.setenv(hints.VARIABLE, "make table-long SEEDS=1 PROTOCOL=short")
    table("long", cost=30 * DAY)
    output = say("run", "long", "--executor", "inprocess", "--seeds", "1", "--protocol", "short")[1]
    assert "PROTOCOL=smoke" in output and "EXECUTOR=slurm" in output and "ANYWAY=1" in output
    assert "PROTOCOL=short" not in output and "SEEDS=1" not in output, "it is that already"


def test_the_table_is_printed_at_the_most_faithful_protocol_that_has_records(say, table, printed, folders, monkeypatch):
    long = table("long", cost=30 * DAY)
    runs = {"short": [fakes.config(7)], "smoke": [fakes.config(8)]}
    usual = long.row_runs
    monkeypatch.setattr(
        long, "row_runs", lambda row, _, protocol, seeds=None: runs.get(protocol) or usual(row, _, protocol)
    )
    store = fakes.store(folders[0])
    for protocol, shown in (("smoke", "paper"), ("short", "short")):
        store.write(store.make(runs[protocol][0], [fakes.metric(0.5)], {}, {}))
        status, output = say("run", "long", "--executor", "inprocess")
        assert status == 4 and printed[-1][printed[-1].index("--protocol") + 1] == shown
        assert f"table long as far as there are records, at protocol {shown}:" in output


def test_of_several_tables_none_is_printed(say, table, printed):
    table("long", cost=30 * DAY)
    table("longer", cost=60 * DAY)
    assert say("run", "long", "longer", "--executor", "inprocess")[0] == 4 and printed == []


def test_a_folder_that_cannot_be_written_is_found_before_anything_is_trained(say, table, folders):
    table("cheap", cost=1.0)
    folders[0].write_text("")
    status, output = say("run", "cheap", "--executor", "inprocess")
    assert status == 1 and "results folder cannot be written" in output


def test_the_table_is_printed_by_the_reports_themselves(folders, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", f"""
from pathlib import Path
from benchmarks.commands.sweeping import print_best
from benchmarks.suite import Suite
print_best(Suite().table("cinquin2024-1"), "smoke", Path({str(folders[0])!r}), Path({str(folders[1])!r}), Suite())
"""], cwd=ROOT, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("table cinquin2024-1 as far as there are records, at protocol smoke:\n")
    assert "yacht" in done.stdout.lower()


def test_a_dry_run_whose_costs_are_known_loads_no_torch(folders):
    code = f"""
import sys
from benchmarks.commands.cli import build
from benchmarks.records import provenance
from benchmarks.records.store import Store
from benchmarks.suite import Suite
import benchmarks.tables

config = benchmarks.tables.get("digits").runs("smoke", [1])
store = Store({str(folders[0])!r})
here = {{"cpu": provenance.cpu(), "device": provenance.expected_device(), "threads": 1, "seconds": 1.0}}
row = {{"dataset": "digits", "condition": "", "metric": "accuracy", "value": 0.5, "n": 539}}
for one in config:
    store.write(store.make(one, [row], {{}}, here))
try:
    build(Suite())(["run", "digits", "--protocol", "smoke", "--seeds", "0-0", "--dry-run",
                    "--results", {str(folders[0])!r}, "--state", {str(folders[1])!r}])
except SystemExit as end:
    print(end.code, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "0 False", done.stdout + done.stderr
    assert "estimate: 12 runs, less than 0.01 core-hours" in done.stdout and "12 runs by records" in done.stdout


@pytest.mark.parametrize(
    ("files", "hidden", "device"),
    [({}, None, "cpu"), ({"0/information": "Model: \t NVIDIA X1\nIRQ: 7\n"}, None, "NVIDIA X1"),
     ({"0/information": "Model: \t NVIDIA X1\n"}, "", "cpu"), ({"0/information": "nothing"}, None, "a GPU")],
)  # fmt: skip
def test_a_gpu_is_expected_where_its_driver_names_one(tmp_path, monkeypatch, files, hidden, device):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(provenance, "GPUS", tmp_path)
    monkeypatch.setattr(provenance, "GPU_DEVICES", (tmp_path / "none",))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if hidden is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert provenance.expected_device() == device


def test_a_table_made_for_a_gpu_is_not_submitted_without_one(say, table, tmp_path, monkeypatch):
    table("big", do="work", cost=360000.0)
    monkeypatch.setattr(fakes.TABLES["big"], "gpu", ("paper",))
    taken = []
    monkeypatch.setattr(submit, "submit", lambda groups, options, state: taken.append(options) or ["submitted"])
    run = ("run", "big", "--executor", "slurm")
    status, output = say(*run)
    assert status == sweeping.TOO_LONG and not taken
    assert "not submitted: table big at protocol paper is made for a GPU, and its array tasks have none" in output
    for way in ("--slurm gpus=1  ", "--protocol short", "--protocol smoke", "--anyway"):
        assert way in output, way
    status, shown = say(*run, "--dry-run")
    assert status == 0 and "not submitted: table big" in shown and "would submit 5 runs to an array of 1" in shown
    status, shown = say(*run, "--dry-run", "--slurm", "gpus=8", "--slurm", "runs_per_task=1", "--slurm", "time=2:00:00")
    assert "not submitted" not in shown and "#SBATCH --gpus-per-node=8" in shown and "#SBATCH --time=120" in shown
    assert (
        "would submit 5 runs to an array of 1 array task of 8 processes, one for each GPU, each for at most 2 h"
        in shown
    )
    for way in (("--anyway",), ("--slurm", "gpus=1"), ("--slurm", "sbatch=gres=gpu:a100:1"), ("--protocol", "short")):
        assert say(*run, *way)[0] == 3, way
    assert len(taken) == 4


def test_tables_made_for_a_gpu():
    made = {name for name in tables.names() if tables.get(name).gpu}
    numbers = {f"dirichlet2022-{number}" for number in range(11, 23)}
    others = {"dirichlet2022-figure-9", "rudner2022-2", "rudner2022-2-nll"}
    assert made == numbers | others | {"retinopathy", "retinopathy-mild", "retinopathy-severity"}
    assert {tables.get(name).gpu for name in made} == {("paper",)}
