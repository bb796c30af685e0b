"""Output of text: standard streams that accept every character, and messages for every error.

Every room may import this module, and it loads nothing.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SPELLED, OUTPUT = "spelled", "standard output"
USUAL = warnings.formatwarning
SIGNS = {
    **dict.fromkeys("−‐‑─", "-"), "–": "--", "—": "---", **dict.fromkeys("‘’′", "'"),
    **dict.fromkeys("“”″", '"'), "«": "<<", "»": ">>",
    "±": "+-", "×": "x", "·": ".", "→": "->", "↑": "^", "↓": "v", "∞": "inf", "≤": "<=", "≥": ">=", "≈": "~", "⁄": "/",
    "°": "deg", "†": "+", "ß": "ss", "æ": "ae", "Æ": "AE", "ø": "o/", "Ø": "O/", "ł": "l/", "Ł": "L/",
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0308": '"', "\u030a": "*",
    "\u030c": "<", "\u0327": ",",
}  # fmt: skip
RAISED = {"<super>": "^", "<sub>": "_"}


def in_ascii(words: str) -> str:
    """Spell words in ASCII: é as e', Σ as \\Sigma, x² as x^2, − as -; what has no spelling as \\u and its number."""
    return words if words.isascii() else "".join(map(_spelled, words))


def message(error: BaseException) -> str:
    """Return the message of an error in one line that can be printed; empty where it has none.

    A NotImplementedError without words is given some: a part lacks a method of its contract.
    """
    try:
        words = " ".join(str(error).split())
        if not words and isinstance(error, NotImplementedError):
            words = _undefined(error)
    except Exception as fault:  # code of others
        return f"(its message cannot be had: {type(fault).__name__})"
    return words.encode(errors="backslashreplace").decode()


def _undefined(error: NotImplementedError) -> str:
    """Name the class that lacks a method, and the contract that leaves the method to it; empty outside of a method."""
    last = error.__traceback__
    while last and last.tb_next:
        last = last.tb_next
    own = last.tb_frame.f_locals.get("self") if last else None
    if last is None or own is None:
        return ""
    contract, _, method = last.tb_frame.f_code.co_qualname.rpartition(".")
    module = last.tb_frame.f_globals.get("__name__", "")
    return f"{type(own).__name__} does not define {method}(), as its contract {module}.{contract} expects"


class Output(io.TextIOWrapper):
    """Standard output whose errors mention it."""

    def write(self, text: str, /) -> int:
        """Write text. Raises OSError."""
        with _named():
            return super().write(text)

    def flush(self) -> None:
        """Write buffered text. Raises OSError."""
        with _named():
            super().flush()


@contextmanager
def streams() -> Iterator[None]:
    """Let a command print every character on standard streams of any encoding, also where the caller closed them, and
    warnings for its user as notes, without their line of code.

    Exits with status 1 where standard output cannot be written: without a word if its reader has gone, as head does.
    """
    codecs.register_error(SPELLED, _replaced)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # otherwise a file opened later would get its number, and the output of libraries
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode))
        elif mode == "w" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=SPELLED)
    own = output = sys.stdout
    warnings.formatwarning = _noted
    if type(own) is io.TextIOWrapper:
        lines = {"line_buffering": own.line_buffering, "write_through": own.write_through}
        sys.stdout = output = Output(own.buffer, own.encoding, SPELLED, None, **lines)
    try:
        try:
            yield
        finally:
            output.flush()
    except OSError as error:
        if error.filename != OUTPUT:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())  # for buffered text
        if not isinstance(error, BrokenPipeError):
            print(f"error: {OUTPUT}: {error.strerror}", file=sys.stderr)
        sys.exit(1)
    finally:
        warnings.formatwarning = USUAL
        if output is not own and isinstance(output, Output):
            output.detach()
            sys.stdout = own


def _noted(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> str:
    return f"note: {message}\n" if issubclass(category, UserWarning) else USUAL(message, category, *place, **more)


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = OUTPUT
        raise


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of characters that a codec lacks, and where the codec continues."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    words = in_ascii(error.object[error.start : error.end])
    after = error.object[error.end : error.end + 2]
    if words == "---" and not (error.object[: error.start][-1:] + after[:1]).strip():
        words = "-"  # an empty cell of a table is as wide as it was
    aligned = words.endswith("+-") and after[:1] == " " and after[1:].isdigit()  # 1 +-2 is as long as 1 ± 2
    return words, error.end + aligned


def _spelled(character: str) -> str:
    if character.isascii() or character in SIGNS:
        return SIGNS.get(character, character)
    *kind, letter = unicodedata.name(character, "").split(" ")
    if kind in (["GREEK", "CAPITAL", "LETTER"], ["GREEK", "SMALL", "LETTER"]):
        letter = letter.replace("LAMDA", "LAMBDA")
        return "\\" + (letter.capitalize() if "CAPITAL" in kind else letter.lower())
    form, _, parts = unicodedata.decomposition(character).rpartition(">")
    if parts:
        return RAISED.get(form + ">", "") + in_ascii("".join(chr(int(part, 16)) for part in parts.split()))
    return character.encode("ascii", "backslashreplace").decode()
