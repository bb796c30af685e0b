"""Errors that the command line shows as one message, without a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from fvi_core.printing import streams
from fvi_core.spelling import nearest, unknown_variables

ROOMS = ("benchmarks", "datasets", "fvi_core")


class BenchmarkError(Exception):
    """Error that the user can correct. Its message: file or option, expected, found, what to do."""

    exit_code = 1


class UsageError(BenchmarkError):
    """Invalid command: an unknown name, a malformed option."""

    exit_code = 2


class UnknownName(UsageError, KeyError):
    """Unknown name; the message gives the nearest known ones."""

    def __str__(self) -> str:
        return str(self.args[0])


def unknown(kind: str, name: str, known: Iterable[str], hint: str = "") -> UnknownName:
    """Return the error for an unknown name: the nearest names, otherwise all of them, then where to see the list."""
    return UnknownName(f"unknown {kind} {name!r}: {nearest(name, known)}" + (f" ({hint})" if hint else ""))


def setting(variable: str, default: float, unit: str) -> float:
    """Return a number of the environment, 0 or more. Raises UsageError."""
    text = os.environ.get(variable) or str(default)
    with suppress(ValueError):
        if (value := float(text)) >= 0:
            return value
    raise UsageError(f"{variable} is {text!r}, expected {unit}, 0 or more")


@contextmanager
def as_messages() -> Iterator[None]:
    """Print errors that the user can correct as one message, and exit with their status.

    Data sets, methods and parts, which do not know this module, raise KeyErrors, ValueErrors and OSErrors of their own
    for such errors; others of these types are faults of the program, except for files that cannot be read or written.
    """
    try:
        with streams():
            for text in unknown_variables():
                print(f"note: {text}", file=sys.stderr)
            yield
    except (BenchmarkError, KeyError, ValueError, OSError) as error:
        text, status = str(error), getattr(error, "exit_code", 2)
        if not isinstance(error, BenchmarkError) and not type(error).__module__.startswith(ROOMS):
            if not isinstance(error, OSError) or error.filename is None:
                raise
            text, status = f"{error.filename}: {error.strerror}", 1
        print(f"error: {text}", file=sys.stderr)
        sys.exit(status)
