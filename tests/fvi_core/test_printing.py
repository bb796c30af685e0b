"""Characters that an encoding lacks are spelled so that names stay apart; every error has words; closed streams."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from fvi_core.printing import in_ascii, message, streams

RUN = "from fvi_core.printing import streams\nwith streams():\n    "


class Silent(Exception):
    def __str__(self) -> str:
        raise OSError("no words")


@pytest.mark.parametrize(
    ("words", "spelled"),
    [
        ("Σ-VI", r"\Sigma-VI"), ("Δ-VI", r"\Delta-VI"), ("λ", r"\lambda"), ("ά", r"\alpha'"), ("Rényi", "Re'nyi"),
        ("Re\u0301nyi", "Re'nyi"), ("“a” ‘b’", "\"a\" 'b'"), ("x² ₂", "x^2 _2"), ("½ … −1 — –", "1/2 ... -1 --- --"),
        ("A–B", "A--B"),
        ("中\udc80", r"\u4e2d\udc80"), ("0.1 ± 2", "0.1 +- 2"), ("a\\b", "a\\b"),
    ],
)  # fmt: skip
def test_words_in_ascii(words: str, spelled: str) -> None:
    assert in_ascii(words) == spelled


class Contract:
    def __call__(self) -> None:
        raise NotImplementedError


class Mine(Contract):
    pass


def undefined() -> None:
    raise NotImplementedError


def test_a_part_without_a_method_of_its_contract_is_named() -> None:
    for call, expected in (
        (Mine(), f"Mine does not define __call__(), as its contract {__name__}.Contract expects"),
        (undefined, ""),
    ):
        with pytest.raises(NotImplementedError) as caught:
            call()
        assert message(caught.value) == expected
    assert message(NotImplementedError()) == "" and message(NotImplementedError("words")) == "words"


@pytest.mark.parametrize(
    ("encoding", "printed"),
    [
        ("utf-8", "Σ “é” 1 ± 2 ─"),
        ("latin-1", '\\Sigma "é" 1 ± 2 -'),
        ("cp1252", "\\Sigma “é” 1 ± 2 -"),
        ("ascii", '\\Sigma "e\'" 1 +-2 -'),
        ("gbk", "Σ “é” 1 ± 2 ─"),
    ],
)
def test_streams_take_every_character_and_keep_columns(encoding: str, printed: str, monkeypatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))
    with streams():
        print("Σ “é” 1 ± 2 ─")
        print("\udc80")
    assert written.getvalue().decode(encoding) == f"{printed}\n\\udc80\n"


def test_names_with_dashes_stay_apart_and_empty_cells_keep_their_width(monkeypatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii"))
    with streams():
        print("A–B A—B A-B | — |")
    assert written.getvalue() == b"A--B A---B A-B | - |\n"


def test_every_error_has_words_that_can_be_printed() -> None:
    assert message(ValueError("two\n  lines")) == "two lines" and message(ValueError()) == ""
    assert message(Silent()) == "(its message cannot be had: OSError)"
    assert message(ValueError("\ud800 é")) == r"\ud800 é"


@pytest.mark.parametrize(
    ("command", "redirected", "status", "expected"),
    [
        ("print('x' * 100_000)", ">/dev/full", 1, "error: standard output: No space left on device\n"),
        ("print('x')", ">/dev/full", 1, "error: standard output: No space left on device\n"),
        ("print('x' * 100_000)", "| true", 1, ""),
        ("print('x')", ">&-", 0, ""),
        ("import sys; sys.stdin.isatty(), print('x', file=sys.stderr), sys.exit(3)", "<&- >&- 2>&-", 3, ""),
        ("import sys; print('x'); sys.exit(3)", ">/dev/full", 1, "error: standard output: No space left on device\n"),
        ("open('/dev/full', 'w', buffering=1).write('x\\n')", ">/dev/null", 1, "OSError: [Errno 28] No space left"),
    ],
)
def test_a_command_whose_streams_are_closed_or_full(command: str, redirected: str, status: int, expected: str) -> None:
    shell = f'set -o pipefail; "$0" -c "$1" {redirected}'
    done = subprocess.run(["bash", "-c", shell, sys.executable, RUN + command], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert expected in done.stderr if "Errno" in expected else done.stderr == expected


def test_a_closed_stream_keeps_its_number() -> None:
    """A file opened later would otherwise get the number of the closed stream and receive the output of libraries."""
    command = (
        RUN + "import os, sys; file = open('/dev/null'); os.write(2, b'%d %d' % (sys.stdout.fileno(), file.fileno()))"
    )
    done = subprocess.run(["bash", "-c", '"$0" -c "$1" >&-', sys.executable, command], capture_output=True, text=True)
    assert done.stderr == "1 3", done.stderr


def test_a_warning_for_the_user_of_a_command_is_a_note_without_its_line_of_code() -> None:
    code = "import warnings\n" + RUN
    code += "warnings.warn('no such folder'); warnings.warn('at its line', RuntimeWarning)\nwarnings.warn('after')"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.splitlines()
    assert said[0] == "note: no such folder"
    assert said[1].endswith("RuntimeWarning: at its line") and said[2].endswith("UserWarning: after")
