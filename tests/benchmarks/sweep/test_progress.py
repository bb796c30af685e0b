"""Progress of sweeps: plain lines, live bars, counters, durations."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from benchmarks.sweep import progress
from benchmarks.sweep.estimate import Estimate
from benchmarks.sweep.forecast import Forecast
from benchmarks.sweep.plan import RunOutcome, make_plan
from fvi_core import telling
from tests.benchmarks import fakes


def lines_of(tmp_path, display, capsys) -> str:
    configs = [fakes.config(seed) for seed in range(3)]
    folders = tmp_path / "results", tmp_path / "state"
    plan = make_plan(configs, *folders, fakes.SUITE)
    groups = plan.groups
    display.begin(plan, Forecast(groups))
    for group, status in zip(groups, ("done", "failed", "failed")):
        display.report(group, 0.5, "step 5")
        display.end(group, [RunOutcome(group.keys[0], status, "it diverged" if status == "failed" else "")])
    display.close()
    return capsys.readouterr().out


def test_plain_progress(tmp_path, capsys):
    output = lines_of(tmp_path, progress.Plain(every=0), capsys)
    assert output.splitlines()[0] == "3 runs: 3 missing; 3 groups of runs to train"
    assert "0/3 runs, time left not known [MAP, digits, split 0 seed 0 50%]" in output
    assert "failed: MAP, digits, split 1 seed 1: it diverged" in output
    assert "failed: MAP, digits, split 2 seed 2: for the same reason" in output
    assert output.splitlines()[-1].startswith("3/3 runs, 2 failed in ")
    assert len(lines_of(tmp_path, progress.Plain(every=1000), capsys).splitlines()) == 4


def test_a_failure_names_the_runs_of_a_group_that_failed(tmp_path, capsys):
    configs = [fakes.config(), fakes.config(method="MAP (temperature)"), fakes.config(1)]
    plan = make_plan(configs, tmp_path / "results", tmp_path / "state", fakes.SUITE)
    display, group = progress.Plain(every=0), replace(plan.groups[0], runs=plan.runs)
    display.begin(plan, Forecast([group]))
    fitted = next(run.key for run in plan.runs if run.config["method"] != "MAP")
    display.end(
        group, [RunOutcome(k, "failed" if k == fitted else "done", "no fit" * (k == fitted)) for k in group.keys]
    )
    output = capsys.readouterr().out
    assert f"failed: MAP (temperature), digits, split 0 seed 0: no fit ({fitted})" in output


def test_a_record_that_could_not_be_saved_at_once_is_no_failure(tmp_path, capsys):
    plan = make_plan([fakes.config()], tmp_path / "results", tmp_path / "state", fakes.SUITE)
    (group,) = plan.groups
    display = progress.Plain(every=0)
    display.begin(plan, Forecast([group]))
    display.end(group, [RunOutcome(group.keys[0], "unsaved", "no space left")])
    _, message, last = capsys.readouterr().out.splitlines()
    assert message == f"not saved yet: {group.title}: no space left ({group.keys[0]})"
    assert last.startswith("1/1 run in ")


def test_plain_lines_say_what_is_done_when_nothing_is_trained(tmp_path, capsys):
    plan = make_plan([fakes.config()], tmp_path / "results", tmp_path / "state", fakes.SUITE)
    (group,) = plan.groups
    display = progress.Plain(every=0)
    display.begin(plan, Forecast([group]))
    for fraction in (0.5, 1.0):
        display.report(group, fraction, "making images: 2 of 19")
    waits = telling.Message("waiting for a training by process 7 on node", "wait")
    display.report(group, 0.6, waits)
    display.report(group, 0.7, waits.within("MAP, seed 1, with which the run is compared"))
    display.report(group, 0.8, "step 5: waiting for a training is no longer needed")
    output = capsys.readouterr().out
    assert "split 0 seed 0 50%]" in output and "split 0 seed 0 100% making images: 2 of 19]" in output
    assert "split 0 seed 0 60% waiting for a training by process 7 on node]" in output
    assert "split 0 seed 0 80%]" in output, "no text is searched for words"
    assert "70% MAP, seed 1, with which the run is compared: waiting for a training by process 7 on node]" in output
    for _ in range(2):  # as of two workers, each of which tells of the whole group
        display.end(group, [RunOutcome(group.keys[0], "done")])
    assert capsys.readouterr().out.splitlines()[-1].startswith("1/1 run in ")
    for _ in range(2):
        display.end(group, [RunOutcome(group.keys[0], "failed", "it diverged")])
    output = capsys.readouterr().out
    assert output.count("failed: ") == 1 and output.splitlines()[-1].startswith("1/1 run, 1 failed in ")


def test_an_evaluation_after_training_is_not_said_to_be_over(tmp_path, capsys):
    plan = make_plan([fakes.config()], tmp_path / "results", tmp_path / "state", fakes.SUITE)
    (group,) = plan.groups
    display = progress.Plain(every=0)
    display.begin(plan, Forecast([group], Estimate(groups={group.keys: 100.0})))
    display.report(group, 0.5, "step 5")
    display.report(group, 1.0, "curvature, batch 3 of 9")
    _, first, second = capsys.readouterr().out.splitlines()
    assert " left [" in first and "time left not known" not in first
    assert "time left not known [MAP, digits, split 0 seed 0 100% curvature, batch 3 of 9]" in second


def test_the_time_left_of_an_evaluation_is_given_where_it_is_known(tmp_path, capsys, monkeypatch):
    clock = iter([100.0] * 13)  # at the start, and four times in each of three reports
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock, 130.0)))
    plan = make_plan([fakes.config()], tmp_path / "results", tmp_path / "state", fakes.SUITE)
    (group,) = plan.groups
    display = progress.Plain(every=0)
    display.begin(plan, Forecast([group], Estimate(groups={group.keys: 100.0})))
    for _ in range(4):  # the last of them later: reports are repeated in a long silence
        text = "predictions at ood-svhn (set 3 of 9): piece 1 of 4, about 3 min left"
        display.report(group, 1.0, telling.Message(text, left=180.0))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("0/1 run, about 3 min left [MAP, digits, split 0 seed 0 100% predictions at ood-svhn (s")
    assert lines[-1].startswith("0/1 run, about 2 min left [")


def test_a_refused_checkpoint_is_a_line_of_its_own(tmp_path, capsys):
    plan = make_plan([fakes.config()], tmp_path / "results", tmp_path / "state", fakes.SUITE)
    (group,) = plan.groups
    display = progress.Plain(every=1000)
    forecast = Forecast([group], Estimate(groups={group.keys: 30.0}, saved={group.keys: 0.7}))
    display.begin(plan, forecast)
    refused = "a checkpoint in .state/checkpoints is not used: it is not whole; training starts from the beginning"
    for _ in range(2):
        display.report(group, 0.0, telling.Message(refused, "loss"))
    display.report(group, 0.5, "step 5: its third value is not used")
    assert capsys.readouterr().out.splitlines()[1:] == [f"{group.title}: {refused}"], "no text is searched for words"
    assert forecast.fraction == pytest.approx(0.5) and forecast.left(progress.time.monotonic()) == pytest.approx(
        50, 0.1
    )


def test_runs_taken_over_from_another_sweep_are_counted(tmp_path, capsys, monkeypatch):
    plan = make_plan([fakes.config(seed) for seed in range(2)], tmp_path / "results", tmp_path / "state", fakes.SUITE)
    first, second = plan.groups
    display = progress.Plain(every=0)
    display.begin(plan, Forecast([]))
    display.report(first, 0.5, "step 5")
    assert capsys.readouterr().out.splitlines()[-1].startswith("0/1 run, time left not known [MAP, digits")
    display.end(first, [RunOutcome(first.keys[0], "done")])
    display.report(second, 0.5, "step 5")
    assert capsys.readouterr().out.splitlines()[-1].startswith("1/2 runs, ")
    monkeypatch.setenv("FORCE_COLOR", "1")
    live = progress.Live()
    live.begin(plan, Forecast([]))
    live.report(first, 0.5, "step 5")
    live._show(now=True)
    live.close()
    assert "0/1, 0 failed" in capsys.readouterr().out


def test_a_ticker_tells_how_many_are_done_and_the_time_left(capsys, monkeypatch):
    clock = iter([0.0, 4.0, 12.0, 30.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    ticker = progress.Ticker(3, "runs")
    for done in (1, 2, 3):
        ticker(done, "changed")
    assert capsys.readouterr().out == "2/3 runs, about 6 s left\n"


@pytest.mark.parametrize("term, kind", [("xterm", progress.Live), ("dumb", progress.Plain), ("", progress.Live)])
def test_a_terminal_that_redraws_nothing_has_plain_lines(monkeypatch, term, kind):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", term)
    assert type(progress.display()) is kind


def test_live_progress(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    output = lines_of(tmp_path, progress.Live(), capsys)
    assert "3 runs: 3 missing" in output and "failed: MAP, digits, split 1 seed 1: it diverged" in output
    assert "3/3, 2 failed" in output


def test_long_reasons_are_cut_in_lists():
    assert progress.brief("short") == "short"
    assert progress.brief("x" * 500) == "x" * 237 + "..."


def test_durations():
    assert [progress.duration(s) for s in (0.4, 89, 90, 5000, 7500)] == [
        "0 s",
        "89 s",
        "2 min",
        "83 min",
        "2 h 05 min",
    ]
