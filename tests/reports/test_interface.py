"""The functions for Python: what they give, what the commands say of it, and what they refuse."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pandas
import pytest

import reports.cli
from benchmarks.commands import cli
from benchmarks.errors import UsageError
from benchmarks.records.store import Store
from benchmarks.suite import Suite
from benchmarks.sweep.estimate import Known
from reports import interface
from reports.coverage import coverage
from tests.benchmarks import fakes
from tests.reports.fakes import FakeSuite, config
from tests.reports.page import small

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)


@pytest.fixture
def fake(tmp_path: Path) -> dict:
    return {
        "results": tmp_path / "results", "state": tmp_path / "state", "suite": fakes.SUITE, "executor": "inprocess"
    }  # fmt: skip


def test_the_examples_of_the_document_run(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict = {}
    for example in EXAMPLES:
        exec(example, space)
    output = capsys.readouterr().out
    assert "4 runs: 4 missing\nestimate: " in output and "did you mean 'digits'" in output
    assert space["summary"].made and not (tmp_path / "results").exists()
    again = space["fvi"].aggregate("digits", "smoke", [0, 1], **space["mine"])
    assert set(again.loc[again["n"] > 0, "method"]) == {"MAP", "MFVI"} and again["n"].max() == 2
    assert space["fvi"].plan(**space["few"], **space["mine"]).counts["done"] == 4
    read = pandas.read_csv(tmp_path / "mine" / "records.csv")
    assert len(read) == len(space["long"]) and read["value"].sum() == pytest.approx(space["long"]["value"].sum())


def test_a_plan_knows_every_run_and_trains_none(fake, tmp_path, capsys) -> None:
    planned = interface.plan("fake", seeds=3, **fake)
    assert planned.counts["missing"] == 3 and list(planned.runs["seed"]) == [0, 1, 2] and planned.core_seconds == 0
    assert set(planned.runs["status"]) == {"missing"} and len(planned.groups) == 3 and not planned.too_long
    assert str(planned).startswith("3 runs: 3 missing\nestimate: none for 3 runs")
    assert not list(tmp_path.iterdir())
    messages: list[str] = []
    assert len(interface.plan(["fake", "fake-none"], seeds=[0, 9], **fake, say=messages.append).plan.runs) == 1
    assert messages == ["--seeds 0,9: table fake has 5 replicates at protocol smoke, 1 of 2 requested are used"]
    assert interface.plan("fake", cost=False, **fake).core_seconds is None and capsys.readouterr().out == ""


def test_a_run_is_complete_or_says_what_failed(fake, tmp_path) -> None:
    summary = interface.run("fake", seeds="0-1", progress=False, **fake)
    assert summary.complete and len(summary.made) == 2 and len(Store(tmp_path / "results").paths()) == 2
    summary = interface.run(["fake", "fake-raise"], progress=False, **fake)
    assert not summary.complete and len(summary.made) == 3 and set(summary.failed.values()) == {
        "RuntimeError: the loss exploded"
    }  # fmt: skip


def test_what_takes_days_raises_unless_it_is_wanted_anyway(fake, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(fakes.TABLES, "long", fakes.Table("long", cost=30 * 24 * 3600.0))
    monkeypatch.setattr(Known, "cost", fakes.known_cost)
    with pytest.raises(interface.TooLong, match=r"not started: it would take about 165 days here") as raised:
        interface.run("long", **fake)
    assert raised.value.planned.too_long and not (tmp_path / "state" / "trained").exists()
    assert interface.run("long", seeds=[0], anyway=True, progress=False, **fake).complete


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda fake: interface.plan("fkae", **fake), "unknown table 'fkae': did you mean 'fake'"),
        (lambda fake: interface.plan("fake", "papr", **fake), "did you mean 'paper'"),
        (lambda fake: interface.plan("fake", seeds=0, **fake), "--seeds is '0', expected how many"),
        (lambda fake: interface.run("fake", methods="map2", **fake), "did you mean 'MAP'"),
        (lambda fake: interface.run("fake", **fake | {"executor": "pol"}), "did you mean 'pool'"),
        (lambda fake: interface.run("fake", **fake | {"executor": "slurm"}), "its jobs outlive this process"),
        (lambda _: interface.render("digits", "html"), "unknown form 'html'"),
        (lambda _: interface.aggregate("digts"), "did you mean 'digits'"),
        (lambda fake: interface.records(fake["results"], "x.xls"), "expected a file that ends in .csv or .parquet"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_written(fake, tmp_path, monkeypatch, call, message) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((UsageError, ValueError, KeyError), match=re.escape(message)):
        call(fake)
    assert not list(tmp_path.iterdir())


def test_records_that_cannot_be_trusted_are_said_and_named(fake, tmp_path) -> None:
    interface.run("fake", progress=False, **fake)
    path = fakes.store(fake["results"]).path(fakes.config(1))
    path.write_text(path.read_text().replace('"n": 10', '"n": 11'))
    messages: list[str] = []
    frame = interface.records(fake["results"], suite=fakes.SUITE, say=messages.append)
    assert len(frame) == 4 and messages == [f"not counted: {problem}" for problem in frame.attrs["problems"]]
    assert str(path) in messages[0]


def test_the_commands_print_what_the_functions_give(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(reports.cli, "_draw", lambda *_: [])  # the figures of the table
    where = ["--results", str(ROOT / "results"), "--out", str(tmp_path)]
    for words, written, expected in (
        (["table", "digits"], "digits-paper.tex", interface.render("digits", "latex")),
        (["table", "digits", "--seeds", "2"], "digits-paper.md", interface.render("digits", "markdown", seeds=2)),
    ):
        with pytest.raises(SystemExit):
            reports.cli.build(Suite())([*words, *where, "--state", str(tmp_path / "state")])
        assert (tmp_path / written).read_text() == expected
    assert interface.render("digits", "text", seeds=2) in capsys.readouterr().out, "120 columns, as without a terminal"
    with pytest.raises(SystemExit):
        cli.build(Suite())(["plan", "digits", "--seeds", "2", "--state", str(tmp_path / "state")])
    planned = interface.plan("digits", seeds=2, cost=False, state=tmp_path / "state")
    assert f"{len(planned.runs)} runs: {planned.counts['done']} done" in capsys.readouterr().out


def test_coverage_has_a_row_for_every_published_table(tmp_path) -> None:
    rows, frame = coverage(tmp_path, FakeSuite()), interface.coverage(tmp_path, suite=FakeSuite())
    assert list(frame["published"]) == [row.published for row in rows] and frame["published"].sum() > 1000
    assert frame["recorded"].sum() == 0 and frame.attrs["problems"] == []


def test_claims_and_causes_name_a_record_that_cannot_be_trusted(tmp_path, monkeypatch, capsys) -> None:
    store, suite = small.records(tmp_path), small.Suite(small.table())
    path = store.path(config("MC Dropout", "boston", "paper", 0, 0))
    path.write_text(path.read_text().replace('"n": 100', '"n": 101'))
    (problem,) = interface.findings(store.root, suite=suite).attrs["problems"]
    assert path.name in problem
    monkeypatch.setattr("reports.tried.load", lambda: ())
    written = ["--results", str(store.root), "--file", str(tmp_path / "page.md")]
    for words in (["causes"], ["findings", "--out", str(tmp_path), "--readme", str(tmp_path / "none")]):
        with pytest.raises(SystemExit) as end:
            reports.cli.build(suite)([*words, *written])
        assert end.value.code == 1 and problem in capsys.readouterr().out, words


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import sys, reports.interface; print(*{'torch', 'pandas', 'matplotlib', 'sklearn'} & set(sys.modules))"
    output = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not output.split(), output
