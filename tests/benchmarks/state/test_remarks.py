"""Warnings about runs that did not fail are shown by the command and by status until they no longer hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.commands.cli import build
from benchmarks.commands.inspection import remarks_text
from benchmarks.records.config import run_key
from benchmarks.state import kept
from benchmarks.state.remarks import Remarks
from benchmarks.sweep.plan import make_plan
from benchmarks.sweep.work import work
from fvi_core.telling import Message
from tests.benchmarks import fakes

RUNS = fakes.get("fake-warn").runs("smoke")
KEYS = [run_key(run) for run in RUNS]


def status(tmp_path: Path, capsys) -> str:
    folders = ["--results", str(tmp_path / "results"), "--state", str(tmp_path / "state")]
    with pytest.raises(SystemExit):
        build(fakes.SUITE)(["status", "fake-warn", *folders])
    return capsys.readouterr().out


@pytest.mark.parametrize("executor", ["pool", "inprocess"])
def test_warnings_of_workers_are_shown_at_the_end_and_by_status(tmp_path, capsys, executor):
    folders = ["--results", str(tmp_path / "results"), "--state", str(tmp_path / "state")]
    with pytest.raises(SystemExit) as end:
        build(fakes.SUITE)(["run", "fake-warn", "--executor", executor, *folders])
    output, log = capsys.readouterr().out, tmp_path / "state" / "logs" / f"{KEYS[0]}.log"
    assert end.value.code == 0 and output.count("MAP, digits, 2 runs: a checkpoint is not used: it is old\n") == 1
    line = f"warning 2: MAP, digits: the predictions cannot be written (No space left) (log: {log})"
    assert f"  {line}\n" in output and f"\n{line}\n" in status(tmp_path, capsys)
    for key in KEYS:
        for path in (kept.predictions_path(tmp_path / "state", key), kept.parameters_path(tmp_path / "state", key)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    assert "warning 2" not in status(tmp_path, capsys), "the files are here by now"


def test_a_warning_about_training_ends_with_the_record(tmp_path):
    plan = make_plan(RUNS, tmp_path / "results", tmp_path / "state", fakes.SUITE)
    (group,) = plan.groups
    remarks, seen = Remarks(tmp_path / "state"), []

    def see(_, fraction, text):
        if fraction == 0.6:
            seen.append(remarks_text(plan))

    list(work([group], see))
    assert seen[0].startswith("warning 2: MAP, digits: a checkpoint is not used: it is old (log: "), (
        "while it is in training"
    )
    remarks.write(KEYS[:1], Message("a checkpoint is not used", "loss"), Path("log"))
    remarks.end_training(KEYS[0])
    remarks.end_training(KEYS[1])
    assert list(remarks.of(KEYS)) == KEYS[1:], "the predictions are still lacking"
    again = replace(group, results=str(tmp_path / "other"), suite=replace(fakes.SUITE, execute=f"{__name__}:quiet"))
    list(work([again], lambda *_: None))
    assert not remarks.of(KEYS), "another attempt begins without"


def quiet(configs, *, state, report):
    """Train without a warning."""
    return [fakes.Outcome(run, metrics=[fakes.metric(0.5)]) for run in configs]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"text": "without a log"}', "null"])
def test_a_damaged_remark_is_none(tmp_path, text):
    remarks = Remarks(tmp_path)
    remarks.write(KEYS, Message("no checkpoint could be written", "warning"), Path("log"))
    (remarks.folder / f"{KEYS[0]}.json").write_text(text)
    assert list(remarks.of(KEYS)) == KEYS[1:]


def test_a_full_disk_costs_the_remark_alone(tmp_path):
    (tmp_path / "remarks").write_text("in the way")
    remarks = Remarks(tmp_path)
    remarks.write(KEYS, Message("no checkpoint could be written", "warning"), Path("log"))
    remarks.clear(*KEYS)
    assert remarks.of(KEYS) == {}
