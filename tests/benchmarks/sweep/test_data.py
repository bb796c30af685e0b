"""Runs whose data are not at hand wait; they neither fail nor keep the others from being trained."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.commands import sweeping
from benchmarks.state.failures import Failures
from benchmarks.sweep.plan import WAITING, make_plan, missing_data
from benchmarks.sweep.slurm import submit
from benchmarks.sweep.slurm.options import Options
from datasets import fetch
from tests.benchmarks import fakes

THERE, LACKING = [fakes.config(seed) for seed in range(2)], [fakes.config(seed, dataset="yacht") for seed in range(3)]
NEXT = fakes.config(0, dataset="boston")
FILE = "uci/yacht/data.txt"


@pytest.fixture(autouse=True)
def nothing_at_hand(tmp_path, monkeypatch):
    """Set up an empty cache without mirror and network, and a table of runs on digits, yacht and boston."""
    monkeypatch.setenv(fetch.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(fetch.MIRROR_VARIABLE, "")
    monkeypatch.setenv(fetch.OFFLINE_VARIABLE, "1")
    table = fakes.Table("two-sets")
    monkeypatch.setattr(table, "runs", lambda protocol, seeds=None: [*THERE, *LACKING, NEXT])
    monkeypatch.setitem(fakes.TABLES, "two-sets", table)


@pytest.fixture
def say(command):
    """Run a command of the fakes; return its exit status and output, without errors."""
    return lambda *words: command(*words)[:2]


def test_runs_wait_for_their_data_and_the_others_are_made(say, folders):
    status, output = say("run", "two-sets", "--executor", "inprocess")
    assert status == 5 and "6 runs: 2 made now, 4 waiting for data" in output and "to continue: " in output
    assert "3 runs wait for data set yacht: 1 file of " in output and "FVI_OFFLINE is set" in output
    assert "1 run waits for data set boston: " in output
    assert output.count("-m datasets fetch yacht boston") == 1
    assert Failures(folders[1]).keys() == [], "they have not failed"
    assert "failed" not in output and len(list(fakes.store(folders[0]).records())) == 2
    assert say("status", "two-sets")[1].splitlines()[1].split()[2:] == ["2", "0", "0", "0", "0", "4", "6"]


def test_where_all_runs_wait_one_message_says_so_and_the_status_depends_on_records(say, monkeypatch):
    monkeypatch.setattr(fakes.TABLES["two-sets"], "runs", lambda protocol, seeds=None: LACKING)
    status, output = say("run", "two-sets", "--executor", "inprocess")
    assert status == 1 and len(output.splitlines()) == 3  # the data set, the command, the count
    monkeypatch.setattr(fakes.TABLES["two-sets"], "runs", lambda protocol, seeds=None: [*THERE, *LACKING])
    assert say("run", "two-sets", "--executor", "inprocess")[0] == 5
    status, output = say("run", "two-sets", "--executor", "inprocess")
    assert status == 5 and len(output.splitlines()) == 3, output


def test_a_dry_run_says_what_waits_and_fetches_nothing(say, monkeypatch):
    monkeypatch.delenv(fetch.OFFLINE_VARIABLE)
    monkeypatch.setattr(fetch, "retrieve", lambda *_: pytest.fail("a dry run downloads nothing"))
    status, output = say("run", "two-sets", "--dry-run")
    assert status == 0 and "6 runs: 2 missing, 4 waiting for data" in output
    assert "to train: 2 runs in 2 groups of runs" in output and "not fetched yet" in output
    assert "the sweep tries to fetch them, unless FVI_OFFLINE is set; to fetch them" in output
    monkeypatch.setattr(fakes.TABLES["two-sets"], "runs", lambda protocol, seeds=None: LACKING)
    assert "nothing to train before their data are here" in say("run", "two-sets", "--dry-run")[1]


def test_what_can_be_fetched_is_fetched_before_the_first_run(say, monkeypatch):
    def download(url, sha256, target):
        if "yacht" not in url:
            return "HTTPError: 404 not found"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"x" * fetch.registry()[FILE].size)

    monkeypatch.delenv(fetch.OFFLINE_VARIABLE)
    monkeypatch.setattr(fetch, "retrieve", download)
    monkeypatch.setattr(fetch, "reachable", lambda url: True)
    monkeypatch.setattr(fetch, "sha256", lambda *_: fetch.registry()[FILE].sha256)
    status, output = say("run", "two-sets", "--executor", "inprocess")
    assert status == 5 and "6 runs: 5 made now, 1 waiting for data" in output
    places = [output.index(words) for words in (f"fetching {FILE} (", "1 run waits for data set boston", "5 groups")]
    assert places == sorted(places)
    assert (
        "could not be fetched (" in output
        and "HTTPError: 404 not found)" in output
        and "for data set yacht" not in output
    )


def test_runs_without_data_are_not_submitted_to_a_cluster(folders, capsys, monkeypatch):
    taken = []
    monkeypatch.setattr(submit, "submit", lambda groups, options, state: taken.extend(groups) or ["submitted"])
    plan = make_plan([*THERE, *LACKING], *folders, fakes.SUITE)
    plan = plan.waiting(missing_data(plan))
    assert sweeping.run(plan, Options(), wait=False) == 3
    assert {config["dataset"]["name"] for group in taken for config in group.configs} == {"digits"}
    assert "5 runs: 2 missing, 3 waiting for data" in capsys.readouterr().out
    alone = replace(plan, runs=tuple(plan.select(WAITING)))
    assert sweeping.run(alone, Options(), wait=False) == 1, "nothing is on its way"


def test_done_runs_need_no_data_and_failed_ones_do(folders):
    store = fakes.store(folders[0])
    store.write(store.make(LACKING[0], [fakes.metric(0.5, "yacht")], {}, {}))
    plan = make_plan(LACKING, *folders, fakes.SUITE)
    Failures(folders[1]).write(LACKING[1], plan.runs[1].key, "no data")
    plan = make_plan(LACKING, *folders, fakes.SUITE)
    found = missing_data(plan)
    assert found.runs == {plan.runs[1].key: ["yacht"], plan.runs[2].key: ["yacht"]}
    assert plan.waiting(found).counts == {"done": 1, WAITING: 2} | dict.fromkeys(
        ("running", "queued", "failed", "stale", "missing"), 0
    )
    assert plan.waiting(found).groups == []


def test_a_data_set_that_nobody_knows_is_left_to_the_run(folders):
    assert missing_data(make_plan([fakes.config(dataset="atlantis")], *folders, fakes.SUITE)).runs == {}
