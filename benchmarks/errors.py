"""Errors that the command line shows as one message, without a traceback."""

from __future__ import annotations

from collections.abc import Iterable

from fvi_core.spelling import nearest


class BenchmarkError(Exception):
    """Something the user can act on. Its message: file or option, expected, found, what to do."""

    exit_code = 1


class UsageError(BenchmarkError):
    """A command that cannot mean anything: an unknown name, a malformed option."""

    exit_code = 2


class UnknownName(UsageError, KeyError):
    """A name that is not known; the message gives the nearest that are."""

    def __str__(self) -> str:
        return str(self.args[0])


def unknown(kind: str, name: str, known: Iterable[str], hint: str = "") -> UnknownName:
    """The error for an unknown name: the nearest names, otherwise all of them, then where to see the list."""
    return UnknownName(f"unknown {kind} {name!r}: {nearest(name, known)}" + (f" ({hint})" if hint else ""))
