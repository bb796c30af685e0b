"""Recipes: values are never read as commands, a stop reaches the sweep, and messages name commands of make."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.state.claims import _process
from tests.benchmarks.sweep.test_runner import until
from tests.test_packaging import ROOT, calls, make, plain_environment

HOSTILE = {
    "quote": "smoke'; touch made; '",
    "double quote": 'smoke"; touch made; "',
    "substitution": "$(touch made)",
    "function of make": "$(shell touch made)",
    "escaped": "$$(touch made)",
    "backticks": "`touch made`",
    "semicolon": "smoke; touch made;",
    "newline": "smoke\ntouch made\n",
    "comment": "smoke # ' touch made",
    "ampersand": "smoke & touch made &",
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_values_are_never_read_as_commands(checkout: Path, value: str) -> None:
    every, shown = ("PROTOCOL", "SEEDS", "EXECUTOR", "WORKERS", "SLURM", "WAIT"), ("PROTOCOL", "SEEDS")
    taken = {"table-digits": every, f"table-{value}": every, "status": shown, "figures": shown, "tables": every}
    for arguments in (("-n",), ("DRY_RUN=1",), ()):
        for target, names in [*taken.items(), ("status", every)]:
            make(*arguments, target, *(f"{name}={value}" for name in names), cwd=checkout)
            assert not (checkout / "made").exists(), (arguments, target)


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_values_arrive_as_they_are(checkout: Path, value: str) -> None:
    (checkout / ".venv" / "bin" / "python").write_text('#!/bin/sh\nprintf "%s\\0" "$@" >> words\n')
    options = {"PROTOCOL": value, "SEEDS": value, "EXECUTOR": value, "WORKERS": value}
    assert (
        make(
            f"table-{value}",
            "SLURM=partition=gpu time=8:00:00",
            *(f"{name}={text}" for name, text in options.items()),
            cwd=checkout,
        ).returncode
        == 0
    )
    flags = [word for name in ("protocol", "seeds") for word in (f"--{name}", value)]
    where = ["--executor", value, "--workers", value, "--slurm", "partition=gpu", "--slurm", "time=8:00:00"]
    assert (checkout / "words").read_text().split("\0") == [
        "-m", "benchmarks", "run", value, *flags, *where, "-m", "reports", "table", value, *flags, ""
    ]  # fmt: skip


def test_values_from_the_environment_are_text_too(checkout: Path) -> None:
    words = ["env", "PROTOCOL=$(shell touch made)", "SEEDS='; touch made; '", "make", "table-digits"]
    subprocess.run(words, cwd=checkout, check=True, capture_output=True, env=plain_environment())
    assert not (checkout / "made").exists()
    assert calls(checkout)[0] == "benchmarks run digits --protocol $(shell touch made) --seeds '; touch made; '"


def test_a_variable_of_python_in_the_environment_is_text_too(checkout: Path) -> None:
    words = ["env", "PYTHONDONTWRITEBYTECODE=$(shell touch made)", "make", "status"]
    subprocess.run(words, cwd=checkout, check=True, capture_output=True, env=plain_environment())
    assert not (checkout / "made").exists()


@pytest.fixture
def sweeping(checkout: Path) -> Path:
    """Checkout whose tables are fakes."""
    (checkout / ".venv" / "bin" / "python").write_text(
        f'#!/bin/sh\nshift 2; PYTHONPATH={ROOT} exec {sys.executable} -m tests.benchmarks.fakes "$@" '
        f"--results {checkout}/results --state {checkout}/state\n"
    )
    return checkout


def trained(folder: Path) -> list[int]:
    """The processes that began to train."""
    path = folder / "state" / "trained"
    return [int(line.split()[-1]) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize(
    "number, everybody",
    [(signal.SIGTERM, False), (signal.SIGHUP, False), (signal.SIGINT, True), (signal.SIGHUP, True)],
    ids=["SIGTERM to make", "SIGHUP to make", "Ctrl-C", "a closed terminal"],
)
def test_a_signal_to_make_stops_the_sweep(sweeping: Path, number: int, everybody: bool) -> None:
    if number == signal.SIGHUP and not everybody and not Path("/proc/self/status").exists():
        pytest.skip("make passes SIGHUP on to nobody, and this system does not tell that it waits to die")
    process = subprocess.Popen(
        ["make", "table-fake-wait", "WORKERS=2", "SEEDS=0-2"], cwd=sweeping, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True, env=plain_environment(),
        preexec_fn=lambda: [signal.signal(n, signal.SIG_DFL) for n in (signal.SIGINT, signal.SIGHUP)],
    )  # fmt: skip
    try:
        until(lambda: len(trained(sweeping)) == 2)
        os.killpg(process.pid, number) if everybody else process.send_signal(number)
        output = process.communicate(timeout=60)[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode != 0 and "stopped; finished runs are saved" in output, output
    assert "to continue: make table-fake-wait SEEDS=0-2 WORKERS=2\n" in output and "Traceback" not in output
    assert not any(map(_process, trained(sweeping)))
    assert os.listdir(sweeping / "state" / "claims") == [".lock"] and not (sweeping / "state" / "failures").exists()


def test_a_failed_sweep_names_the_command_that_was_given(sweeping: Path) -> None:
    output = make("table-fake-once", "EXECUTOR=inprocess", "PROTOCOL=smoke", "DRY_RUN=0", cwd=sweeping).stdout
    assert "to continue: make table-fake-once PROTOCOL=smoke EXECUTOR=inprocess DRY_RUN=0\n" in output


@pytest.mark.parametrize("target", ["table-a b", "table-it's", "tables"])
def test_the_command_can_be_pasted_whatever_it_holds(checkout: Path, target: str) -> None:
    (checkout / ".venv" / "bin" / "python").write_text(
        '#!/bin/sh\n[ "$3" != tables ] || exec cat tables\nprintf %s "$FVI_COMMAND" > command\n'
    )
    values = ["PROTOCOL=smoke", "SEEDS=0,3", "SLURM=partition=gpu time=8:00:00", "FVI_SLURM=it's mine.toml"]
    command = ["make", target, *values]
    assert make(*command[1:], cwd=checkout).returncode == 0
    assert shlex.split((checkout / "command").read_text()) == command


@pytest.mark.parametrize("strict, status", [("", 0), ("0", 0), ("1", 2)])
def test_data_that_cannot_be_fetched_fail_make_only_if_it_is_strict(checkout: Path, strict: str, status: int) -> None:
    (checkout / "benchmarks.status").write_text("5")
    assert make("table-digits", f"STRICT={strict}", cwd=checkout).returncode == status
    assert calls(checkout) == ["benchmarks run digits", "reports table digits"]
