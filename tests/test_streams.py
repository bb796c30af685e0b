"""Every command on terminals of few characters, on full disks and with closed output: no traceback, names stay two."""

from __future__ import annotations

import builtins
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.commands import cli as benchmarks
from reports import cli as reports
from tests.reports.conftest import write  # noqa: F401  (a fixture)
from tests.reports.fakes import Cell, Column, FakeSuite, Row, fake_table
from tests.test_packaging import ROOT

NAMES = ("Σ-VI", "Δ-VI", "“Rényi” ½")
ENCODINGS = ("latin-1", "cp1252", "ascii")


class Suite(FakeSuite):
    metrics = "benchmarks.metrics.registry:METRICS"

    def catalogue(self) -> dict:
        return {}


@pytest.fixture
def printed(write: Callable[..., Path], tmp_path: Path, monkeypatch) -> Callable[..., str]:  # noqa: F811
    """printed(encoding, room, arguments) -> what a command prints over a table of odd names."""
    for k, name in enumerate(NAMES):
        results = write(name, "boston", {("", "rmse"): [3.0 + k, 3.5, 4.0]})
    table = fake_table(
        "odd", tuple(Row(name, name, name) for name in NAMES), (Column(Cell("boston", "", "rmse"), "boston, 30°"),),
        title="Odd — names", notes={"paper": ("A note “of” ∇f ≤ ∞.",)},
    )  # fmt: skip

    def run(encoding: str, room: str, *arguments: str) -> str:
        folders = ["--results", str(results), *(["--out", str(tmp_path / "out")] if room == "reports" else [])]
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))
        with pytest.raises(SystemExit) as stop:
            (reports if room == "reports" else benchmarks).build(Suite(table))([*arguments, *folders])  # type: ignore[arg-type]
        assert not stop.value.code
        return written.getvalue().decode(encoding)

    run.results = results  # type: ignore[attr-defined]
    return run


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_tables_statuses_coverage_and_records_on_any_terminal(encoding: str, printed) -> None:
    table = printed(encoding, "reports", "table", "odd")
    accent = "e'" if encoding == "ascii" else "é"
    rows = [line.split("  ")[0] for line in table.splitlines() if "plug-in absent" not in line]
    half = "1/2" if encoding == "ascii" else "½"
    quoted = f"“R{accent}nyi” {half}" if encoding == "cp1252" else f'"R{accent}nyi" {half}'
    assert [r"\Sigma-VI", r"\Delta-VI", quoted] == [row for row in rows if "VI" in row or "nyi" in row], table
    assert ("3.50 +-0.29" if encoding == "ascii" else "3.50 ± 0.29") in table
    assert "all" in printed(encoding, "reports", "coverage")
    assert "odd" in printed(encoding, "benchmarks", "status", "odd", "--state", str(printed.results / "state"))
    for path in printed.results.rglob("*.json"):
        shown = printed(encoding, "benchmarks", "show", path.stem)
        assert any(name in shown for name in (r"\Sigma-VI on", r"\Delta-VI on", f"{quoted} on")), shown


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("module", ["benchmarks", "reports", "datasets"])
def test_help_on_any_terminal(encoding: str, module: str, monkeypatch) -> None:
    from datasets.__main__ import main

    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))
    command = {"benchmarks": benchmarks.build(Suite()), "reports": reports.build(Suite()), "datasets": main}[module]  # type: ignore[arg-type]
    with pytest.raises(SystemExit) as stop:
        command(["--help"])
    assert not stop.value.code and "sage" in written.getvalue().decode(encoding)


@pytest.mark.parametrize("command", [("table", "odd"), ("tables",), ("coverage",), ("figures", "odd-points")])
def test_a_full_disk_is_named(command: tuple[str, ...], printed, tmp_path: Path, monkeypatch, capsys) -> None:
    """Files open on a full disk, and only writing fails, without a name of the file; nothing half-written is left."""
    opened = io.open

    def full(file, mode="r", *rest, **more):
        made = opened(file, mode, *rest, **more)
        return opened("/dev/full", "wb") if mode == "xb" and "out" in str(file) else made

    monkeypatch.setattr(builtins, "open", full)
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    table = fake_table("odd", (Row("A", None, NAMES[0]),), (Column(Cell("boston", "", "rmse"), "boston"),))
    with pytest.raises(SystemExit) as stop:
        reports.build(Suite(table))([*command, "--results", str(printed.results), "--out", str(tmp_path / "out")])  # type: ignore[arg-type]
    message = rf"error: {tmp_path / 'out'}/\S+: No space left on device: choose another place with --out\n"
    assert stop.value.code == 1 and re.fullmatch(message, capsys.readouterr().err)
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


@pytest.mark.parametrize(("redirected", "said"), [(">/dev/full", "error: standard output: No space"), ("| true", "")])
@pytest.mark.parametrize("command", ["benchmarks methods", "fvi_core"])
def test_output_that_cannot_be_written(command: str, redirected: str, said: str) -> None:
    shell = f'set -o pipefail; "$0" -m {command} {redirected}'
    done = subprocess.run(["bash", "-c", shell, sys.executable], capture_output=True, text=True)
    assert done.returncode == 1 and re.match(said or r"\Z", done.stderr), done.stderr


@pytest.mark.parametrize("module", ["benchmarks", "reports"])
def test_a_stop_while_the_libraries_load(module: str, tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    words = [sys.executable, "-m", module, "--help"]
    done = subprocess.run(words, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("command", ["list", "fetch", "corrupt"])
def test_a_stop_of_a_command_on_data(command: str, monkeypatch, capsys) -> None:
    from datasets import __main__

    def stop(**_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(__main__, f"_{command}", stop)
    assert __main__.main([command]) == 130
    assert capsys.readouterr().err == "stopped; what is finished is kept\n"
