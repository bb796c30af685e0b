"""The command that explain prints for a row makes the runs of that row and no others."""

from __future__ import annotations

import shlex

import pytest

from benchmarks.commands.cli import build
from benchmarks.suite import Suite


@pytest.mark.parametrize(
    "words, runs",
    [
        (["digits", "SWAG", "accuracy %", "--also", "SWAG"], 5),
        (["rudner2022-1", "FSVI (KMNIST)", "ECE", "--protocol", "short"], 3),
    ],
)
def test_it_makes_the_row(words, runs, tmp_path, capsys):
    def say(*words: str) -> str:
        with pytest.raises(SystemExit) as end:
            build(Suite())([*words, "--results", str(tmp_path / "results"), "--state", str(tmp_path / "state")])
        printed = capsys.readouterr()
        assert not end.value.code, printed.err
        return printed.out

    (line,) = (line for line in say("explain", *words).splitlines() if line.startswith("to make every run again"))
    command, _, _ = line.partition(" --results again")
    _, _, _, run, *rest = shlex.split(command.rpartition(": ")[2])
    assert run == "run" and f"\n{runs} runs: {runs} missing" in say("plan", *rest)


def test_an_unknown_column_of_an_added_row_is_answered_with_the_row(tmp_path, capsys):
    with pytest.raises(SystemExit):
        build(Suite())(["explain", "digits", "SWAG", "accuracy", "--also", "SWAG"])
    assert "explain digits SWAG 'accuracy %' --also SWAG" in capsys.readouterr().err
