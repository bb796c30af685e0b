"""Variables of the environment: a misspelt one is named by every command, and the documentation lists them all."""

from __future__ import annotations

import re

import pytest

from benchmarks.errors import as_messages
from benchmarks.records.provenance import ROOT
from fvi_core.spelling import SET_HERE, VARIABLES


def test_a_misspelt_variable_is_named_and_the_command_goes_on(monkeypatch, capsys) -> None:
    for name in ("FVI_PLUGINS", *SET_HERE):
        monkeypatch.setenv(name, "")
    with as_messages():
        print("goes on")
    assert capsys.readouterr() == ("goes on\n", "")
    monkeypatch.setenv("FVI_PLUGIN", "mine.py")
    with as_messages():
        print("goes on")
    note = "note: FVI_PLUGIN is set, and nothing reads it; did you mean 'FVI_PLUGINS'"
    out, error = capsys.readouterr()
    assert out == "goes on\n" and error.startswith(note) and error.count("note:") == 1


def test_every_variable_that_is_read_is_known_and_documented() -> None:
    code = [path for room in ("benchmarks", "datasets", "fvi_core", "reports") for path in (ROOT / room).rglob("*.py")]
    read = {name for path in code for name in re.findall(r"\bFVI_[A-Z_]+", path.read_text(encoding="utf-8"))}
    assert read == {*VARIABLES, *SET_HERE}
    listed = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert {*re.findall(r"FVI_[A-Z]+(?:_[A-Z]+)*", listed)} == {*VARIABLES}


@pytest.mark.parametrize("variable", ["FVI_CHECKPOINT_SECONDS", "FVI_STATE_GB"])
def test_an_invalid_setting_is_refused_before_anything_is_trained(variable, monkeypatch, command) -> None:
    monkeypatch.setenv(variable, "x")
    status, output, errors = command("run", "fake", "--executor", "inprocess")
    assert status == 2 and f"error: {variable} is 'x', expected" in errors and "failed" not in output
