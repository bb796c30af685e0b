"""The command line: what it says, and its exit status."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from types import SimpleNamespace

import pytest

from benchmarks.commands import inspection
from benchmarks.metrics.registry import METRICS
from benchmarks.records.config import run_key
from benchmarks.records.published import Published
from benchmarks.state.failures import Failures
from benchmarks.suite import Suite
from benchmarks.sweep.plan import make_plan
from benchmarks.sweep.runner import Summary
from reports.records import Records
from tests.benchmarks import fakes


@pytest.fixture
def where(tmp_path):
    """Return the options for the folders of the test, as messages spell them."""
    return f"--results {tmp_path / 'results'} --state {tmp_path / 'state'}"


@pytest.mark.parametrize(
    "templates",
    [
        ("export", "{}/all.csv"),
        ("verify",),
        ("again", "12"),
        ("keys",),
        ("select", "cinquin2024-1"),
        *(("artifacts", each) for each in ("pack", "fetch", "list")),
    ],
)
def test_a_misspelt_folder_of_records_is_not_an_empty_one(templates, say, tmp_path):
    (tmp_path / "all.csv").write_text("kept")
    words = [template.format(tmp_path) for template in templates]
    status, output = say(*words, "--results", str(tmp_path / "reslts"), folders=False)
    assert (status, output) == (2, f"error: --results: there is no folder {tmp_path / 'reslts'}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["all.csv"] and (tmp_path / "all.csv").read_text() == "kept"


def test_help_teaches(say):
    status, output = say("--help", folders=False)
    assert status == 0
    for word in (
        "tables",
        "methods",
        "plan",
        "run",
        "status",
        "show",
        "explain",
        "First `plan TABLE`",
        "share the work",
    ):
        assert word in output
    status, output = say("run", "--help", folders=False)
    for option in (
        "--protocol",
        "--seeds",
        "--executor",
        "--workers",
        "--dry-run",
        "--results",
        "--state",
        "--method",
    ):
        assert option in output
    assert "run [OPTIONS] {TABLE}..." in output and "--method METHOD" in output and "--dataset NAME" in output


def test_lists(say):
    assert "fake-stacked  paper smoke  A table of nothing" in say("tables", folders=False)[1]
    assert say("methods", folders=False)[1].splitlines()[1].split() == ["MAP", "none", "one", "point"]


def test_a_part_is_found_by_its_name_alone(command):
    whole = command("parts", "family", "mean_field", folders=False, suite=Suite())
    assert command("parts", "mean_field", folders=False, suite=Suite()) == whole
    status, _, said = command("parts", "meanfield", folders=False, suite=Suite())
    assert status == 2 and "unknown part or kind of part 'meanfield': did you mean 'mean_field'" in said


@pytest.mark.parametrize("words", [("tables",), ("methods",), ("parts",)], ids=str)
@pytest.mark.parametrize("width", [80, 100])
def test_lists_fit_into_a_terminal(command, monkeypatch, width, words):
    monkeypatch.setenv("COLUMNS", str(width))
    whole = command(*words, folders=False, suite=Suite())[1]
    monkeypatch.setattr("_pytest.capture.CaptureIO.isatty", lambda _: True)
    lines = command(*words, folders=False, suite=Suite())[1].splitlines()
    assert max(map(len, lines)) <= width < max(map(len, whole.splitlines()))
    assert " ".join(lines).split() == whole.split(), "nothing is cut off"


def test_plan_and_dry_run_run_nothing(say, tmp_path):
    for words in (("plan", "fake"), ("run", "fake", "--dry-run")):
        status, output = say(*words)
        assert status == 0 and "5 runs: 5 missing" in output and "to train: 5 runs in 5 groups of runs" in output
    assert list(tmp_path.iterdir()) == []


def test_run_and_run_again(say, where):
    assert "5 runs: 5 made now" in say("run", "fake", "--executor", "inprocess")[1]
    status, output = say("run", "fake", "fake-once", "--executor", "inprocess", "--seeds", "2")
    assert status == 1 and "to continue:" in output
    shown = re.search(r"failed 1: MemoryError \(\S*python -m benchmarks (show [0-9a-f-]+ (.*))\)", output)
    assert shown and shown[2] == where, "the command finds the failure in the folders of this sweep"
    assert "reason: MemoryError" in say(*shlex.split(shown[1]), folders=False)[1]
    status, output = say("run", "fake")
    assert status == 0 and "nothing to do" in output and "5 already recorded" in output


def test_a_stopped_sweep_says_what_is_kept_and_how_to_go_on(tmp_path):
    plan = make_plan([fakes.config()], tmp_path / "results", tmp_path / "state", fakes.SUITE)
    output = inspection.summary_text(Summary(plan, interrupted=True), "make table-fake")
    kept = f"stopped; finished runs are saved; others continue from what {tmp_path / 'state'} has of them"
    assert output.splitlines()[1:] == [kept, "to continue: make table-fake"]


def test_measure_trains_nothing_and_says_what_it_found(say, tmp_path):
    (tmp_path / "results").mkdir()
    status, output = say("measure", "fake")
    assert status == 0 and output.startswith("5 runs: 5 not trained\n") and not (tmp_path / "state").exists()
    assert "5 runs (" in output and "have neither predictions nor parameters" in output
    say("run", "fake", "--executor", "inprocess", "--seeds", "2")
    assert "5 runs: 2 without predictions and parameters, 3 not trained\n" in say("measure", "fake")[1]


def test_seeds_methods_and_data_sets_choose(say):
    assert "2 runs: 2 missing" in say("plan", "fake", "--seeds", "3-4", "--method", "MAP", "--dataset", "digits")[1]


@pytest.mark.parametrize("verb", ["plan", "run", "status", "measure"])
def test_more_seeds_than_there_are_is_said_first(say, verb):
    output = say(verb, "fake", "--seeds", "99", *(("--executor", "inprocess") if verb == "run" else ()))[1]
    assert output.startswith("--seeds 99: table fake has 5 replicates at protocol smoke, all 5 are used\n")
    assert "--seeds 5:" not in say(verb, "fake", "--seeds", "5")[1]


@pytest.mark.parametrize(
    "words, message",
    [
        (("run", "fkae"), "unknown table 'fkae': did you mean 'fake'"),
        (("status", "fkae"), "unknown table 'fkae'"),
        (("run", "fake", "--method", "map2"), "unknown method or row of this table 'map2': did you mean 'MAP'"),
        (("run", "fake", "--dataset", "digit"), "did you mean 'digits'"),
        (("run", "fake", "--protocol", "papr"), "did you mean 'paper'"),
        (("status", "--protocol", "papr"), "did you mean 'paper'"),
        (("run", "fake", "--executor", "pol"), "did you mean 'pool'"),
        (("run", "fake", "--workers", "0"), "--workers is 0"),
        (("run", "fake", "--seeds", "x"), "--seeds is 'x'"),
        (("plan", "fake-none", "--seeds", "7-9"), "chooses none of the runs of fake-none"),
        (("explain", "fake", "MAPP", "accuracy"), "unknown row 'MAPP' of table fake: did you mean one of these"),
        (("explain", "fake", "MAP", "acuracy"), "did you mean one of these\n"),
        (("show", "zz"), "unknown key 'zz'"),
    ],
)
def test_unknown_names_exit_with_2_and_leave_nothing(say, tmp_path, words, message):
    status, output = say(*words)
    assert status == 2 and message in output and "Traceback" not in output
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_exits_with_1(say, tmp_path):
    (tmp_path / "results").write_text("")
    status, output = say("run", "fake", "--executor", "inprocess")
    assert status == 1 and "results folder cannot be written" in output and "Traceback" not in output
    assert f"{tmp_path / 'results'}: " in output and "(expected a folder, found a file)" in output


def test_a_folder_of_records_that_is_not_there_is_named(say, tmp_path):
    status, output = say("status", "fake")
    assert status == 0 and output.startswith(f"--results: there is no folder {tmp_path / 'results'}, so no run has a")
    for command in ("measure", "plan"):
        assert say(command, "fake")[1].startswith(output.splitlines()[0])
    assert f"under {tmp_path / 'results'}, a folder that is not there" in say("show", "12")[1]
    (tmp_path / "results").mkdir()
    assert say("status", "fake")[1].startswith("table ") and "not there" not in say("show", "12")[1]


def test_status_counts_and_names_what_is_wrong(say, tmp_path):
    say("run", "fake", "fake-raise", "--executor", "inprocess")
    path = fakes.store(tmp_path / "results").path(fakes.config(2))
    path.write_text("{")
    foreign = path.with_name("foreign.json")
    foreign.write_text("{}")
    status, output = say("status")
    lines = {line.split()[0]: line.split() for line in output.splitlines()}
    assert status == 1
    assert lines["fake"] == ["fake", "smoke", "4", "0", "0", "0", "0", "1", "5"]
    assert lines["fake-raise"] == ["fake-raise", "smoke", "0", "0", "0", "5", "0", "0", "5"]
    assert "failed 5: MAP, digits: RuntimeError: the loss exploded" in output
    assert output.count(f"not counted: {path}") == 1 and output.count(f"not counted: {foreign}") == 1


@pytest.mark.parametrize(
    "words",
    [("plan", "fake"), ("run", "fake", "--dry-run"), ("explain", "fake", "MAP", "accuracy"), ("status", "fake")],
)
def test_an_invalid_record_is_named_and_ends_with_1(say, tmp_path, words):
    say("run", "fake", "--executor", "inprocess")
    assert say(*words)[0] == 0
    path = fakes.store(tmp_path / "results").path(fakes.config(2))
    path.write_text("{")
    named = f"{path}: not a whole record"
    status, output = say(*words)
    assert status == 1 and output.count(named) == 1
    Failures(tmp_path / "state").write(fakes.config(2), path.stem, "it failed when it was made again")
    status, output = say(*words)
    assert status == 1 and output.count(named) == 1


def test_show_a_record(say, tmp_path):
    say("run", "fake", "--executor", "inprocess")
    key = run_key(fakes.config(1))
    status, output = say("show", key[:6])
    assert status == 0
    for word in (
        "MAP on digits (version fake, split 1), seed 1, protocol smoke",
        key,
        "accuracy",
        "network: mlp",
        "fingerprint: f",
    ):
        assert word in output
    assert f"{fakes.number(fakes.config(1)):.6g}" in output
    assert json.loads(say("show", key, "--json")[1])["config"] == fakes.config(1)
    path = fakes.store(tmp_path / "results").path(fakes.config(1))
    path.write_text(path.read_text().replace('"n": 10', '"n": 11'))
    status, output = say("show", key)
    assert status == 1 and f"error: {path}: changed since it was written" in output


def test_show_a_failure(say):
    say("run", "fake-raise", "--seeds", "1", "--executor", "inprocess")
    key = run_key(fakes.config(0, do="raise"))
    status, output = say("show", key[:8])
    assert (
        status == 0
        and "reason: RuntimeError: the loss exploded" in output
        and "log: " in output
        and "in execute" in output
    )
    assert json.loads(say("show", key, "--json")[1])["attempt"] == 1


@pytest.mark.parametrize("text", ["", "<<<<<<< HEAD\n"], ids=["stale", "invalid"])
def test_show_the_failure_of_a_run_whose_record_does_not_count(say, tmp_path, text):
    config, store = fakes.config(0, do="raise"), fakes.store(tmp_path / "results")
    record = store.make(config, [fakes.metric(0.5)], {}, {})
    path = store.write({**record, "metric_versions": {"accuracy": 0}})
    path.write_text(text + path.read_text())
    _, output = say("run", "fake-raise", "--seeds", "1", "--executor", "inprocess")
    shown = re.search(r"python -m benchmarks (show .*)\)", output)
    assert shown
    status, output = say(*shlex.split(shown[1]), folders=False)
    assert "reason: RuntimeError: the loss exploded" in output
    assert (f"error: {path}: " in output, status) == ((True, 1) if text else (False, 0))
    assert text or json.loads(say("show", path.stem, "--json")[1])["config"] == config


def test_explain_all_cells_of_a_data_set(say, monkeypatch, where):
    table = fakes.TABLES["fake"]
    cells = [SimpleNamespace(dataset="digits", condition="", metric=metric) for metric in ("accuracy", "nll")]
    monkeypatch.setattr(table, "columns", tuple(fakes.Column(cell, "digits", 1, 1) for cell in cells))
    status, output = say("explain", "fake", "MAP", "Digits")
    assert status == 0 and output.count("fake (smoke): MAP, digits\n") == 2
    assert output.index("metric: digits / accuracy") < output.index("metric: digits / nll")
    status, output = say("explain", "fake", "MAP", "digit", "--protocol", "smoke", "--seeds", "2")
    assert status == 2 and "column 'digit' of table fake has 2 meanings: choose one\n" in output
    for metric in ("accuracy", "nll"):
        words = f"benchmarks explain fake MAP 'digits {metric}' --protocol smoke --seeds 0,1 {where}\n"
        assert words in output and say(*shlex.split(words)[1:], folders=False)[0] == 0


def test_explain_all_cells_under_a_label_of_several_columns(say, monkeypatch):
    cells = [SimpleNamespace(dataset="digits", condition="", metric=metric) for metric in ("accuracy", "nll")]
    monkeypatch.setattr(fakes.TABLES["fake"], "columns", tuple(fakes.Column(cell, "90°", 1, 1) for cell in cells))
    status, output = say("explain", "fake", "MAP", "90°")
    assert status == 0 and output.count("fake (smoke): MAP, 90°\n") == 2


def test_explain_lists_rows_and_columns(say, where):
    status, output = say("explain", "fake")
    assert status == 2 and "no row of table fake was chosen: choose one\n" in output
    assert f"benchmarks explain fake MAP {where}\n" in output
    status, output = say("explain", "fake", "MAP")
    assert status == 2 and f"benchmarks explain fake MAP accuracy {where}\n" in output


def test_explain_an_ambiguous_row(say, monkeypatch, where):
    table = fakes.TABLES["fake"]
    rows = [
        SimpleNamespace(label=f"MAP ({how})", published=None, method="MAP", added=False) for how in ("wide", "deep")
    ]
    monkeypatch.setattr(table, "rows", (*rows, table.rows[1]))
    status, output = say("explain", "fake", "MAP", "accuracy")
    assert status == 2 and "choose one" in output and "Traceback" not in output
    assert f"benchmarks explain fake 'MAP (wide)' accuracy {where}\n" in output
    assert f"'MAP (deep)' accuracy {where}\n" in output
    assert say("explain", "fake", "wide", "accuracy")[1].startswith("fake (smoke): MAP (wide), accuracy\n")


def test_explain_a_cell(say, monkeypatch, where):
    say("run", "fake", "--seeds", "3", "--executor", "inprocess")
    values = [100 * fakes.number(fakes.config(seed)) for seed in range(3)]
    centre = sum(values) / 3
    error = (sum((v - centre) ** 2 for v in values) / 2 / 3) ** 0.5
    status, output = say("explain", "fake", "map", "acc")
    assert status == 0 and say("explain", "fake", "MAP", "digits accuracy")[1] == output
    assert f"ours: {centre:.2f} ± {error:.2f} (mean ± standard error, n = 3), 5 runs planned" in output
    assert all(run_key(fakes.config(seed)) in output for seed in range(5)) and output.count("missing") >= 2
    assert f"python -m benchmarks run fake --protocol smoke --method MAP --dataset digits {where}\n" in output
    assert "to make missing runs" not in say("explain", "fake", "MAP", "accuracy", "--seeds", "3")[1]
    assert "--results again --state again/.state" in output
    assert "no method makes this row yet" in say("explain", "fake", "nobody's", "accuracy")[1]
    cell = Published("p", "1", "digits", "", "MAP", "accuracy", 91.0, 0.5, 10, "", ("91.0", "0.5"))
    monkeypatch.setattr(inspection.published, "table", lambda paper, number: {cell.key: cell})
    table = fakes.TABLES["fake"]
    monkeypatch.setattr(table, "paper", "p", raising=False)
    monkeypatch.setattr(table.rows[0], "published", "MAP")
    monkeypatch.setattr(table.columns[0], "published", table.columns[0].cell)
    assert "docs/causes.md" not in output
    output = say("explain", "fake", "MAP", "accuracy")[1]
    assert "published: 91.0 ± 0.5 (p, table 1, MAP)" in output and "docs/causes.md" in output


def test_failures_that_cannot_be_read_are_failures(tmp_path):
    failures = Failures(tmp_path)
    failures.folder.mkdir()
    (failures.folder / "k.json").write_text("{")
    assert failures.attempts("k") == 1 and "cannot be read" in failures.get("k")["reason"]


def test_explain_a_cell_whose_record_is_deleted_while_it_is_read(say, monkeypatch):
    assert say("run", "fake", "--seeds", "1", "--method", "MAP", "--executor", "inprocess")[0] == 0
    monkeypatch.setattr(Records, "get", lambda *_: None)
    status, output = say("explain", "fake", "MAP", "accuracy", "--seeds", "1")
    assert status == 0 and "ours: no record, 1 run planned" in output


def test_explain_averages_what_tables_average(say, monkeypatch):
    assert say("run", "fake", "--seeds", "3", "--executor", "inprocess")[0] == 0
    newer = {**METRICS, "accuracy": replace(METRICS["accuracy"], version=METRICS["accuracy"].version + 1)}
    monkeypatch.setattr("benchmarks.metrics.registry.METRICS", newer)
    status, output = say("explain", "fake", "MAP", "accuracy")
    assert status == 0 and "ours: no value (stale record), 5 runs planned" in output
    assert len(re.findall(r"done +stale record", output)) == 3
    value = 100 * fakes.number(fakes.config(0))
    assert f"{value:.3f}" not in output


@pytest.mark.parametrize(
    "words, message",
    [
        ("explain ake- MAP accuracy", "table 'ake-' has 9 meanings: choose one\n"),
        ("explain fake-stack MAP accuracy", "fake-stacked (smoke): MAP, accuracy\n"),
        ("explain fke MAP accuracy", "unknown table 'fke': did you mean one of these\n"),
        ("explain fake MPA accuracy", "unknown row 'MPA' of table fake: did you mean one of these\n"),
        ("explain fake MAP brier", "unknown column 'brier' of table fake: there is\n"),
        ("explain fake MAP 'accuracy digits'", "fake (smoke): MAP, accuracy\n"),
    ],
)
def test_explain_asks_back_with_commands_that_work(say, words, message):
    status, said = say(*shlex.split(words))
    assert message in said and "Traceback" not in said
    commands = re.findall(r"^  \S*python\S* -m benchmarks (explain .*)$", said, re.MULTILINE)
    assert bool(commands) == (status == 2)
    for command in commands[:2]:
        assert say(*shlex.split(command), folders=False)[0] == 0, command


@pytest.mark.parametrize("verb", ["show", "again"])
def test_keys_that_begin_alike_are_listed_with_their_runs(say, verb, tmp_path):
    say("run", "fake", "--executor", "inprocess")
    keys = sorted(run_key(fakes.config(seed)) for seed in range(5))
    store = fakes.store(tmp_path / "results")
    start = keys[0][:3] + "x"
    folders = ["--results", str(store.root)] + ["--state", str(tmp_path / "state")] * (verb == "show")
    status, output = say(verb, "", *folders, folders=False)
    assert status == 2 and "key '' has 5 meanings: choose one\n" in output
    given = shlex.join(folders)
    assert all(f"benchmarks {verb} {key} {given}  # digits, map\n" in output for key in keys)
    status, output = say(verb, start, *folders, folders=False)
    assert status == 2 and f"unknown key {start!r}: these begin most like it\n" in output
    assert f"benchmarks {verb} {keys[0]} {given}  # digits, map\n" in output
