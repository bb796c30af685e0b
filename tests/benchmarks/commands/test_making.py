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
def test_it_makes_the_row(words, runs, command):
    status, output, errors = command("explain", *words, suite=Suite())
    assert status == 0, errors
    (line,) = (line for line in output.splitlines() if line.startswith("to make every run again"))
    printed, _, _ = line.partition(" --results again")
    _, _, _, run, *rest = shlex.split(printed.rpartition(": ")[2])
    status, output, _ = command("plan", *rest, suite=Suite())
    assert (run, status) == ("run", 0) and f"\n{runs} runs: {runs} missing" in output, output


def test_an_unknown_column_of_an_added_row_is_answered_with_the_row(call):
    status, _, errors = call(build(Suite()), "explain", "digits", "SWAG", "accuracy", "--also", "SWAG")
    assert status and "explain digits SWAG 'accuracy %' --also SWAG" in errors
