"""Errors that the command line shows as one message, without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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
    known = sorted(known)
    lower = {k.lower(): k for k in known}
    near = [lower[k] for k in difflib.get_close_matches(str(name).lower(), lower, n=3, cutoff=0.5)]
    near += [k for k in known if str(name).lower() in k.lower() and k not in near][:3]
    listed = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    return UnknownName(f"unknown {kind} {name!r}: {listed}" + (f" ({hint})" if hint else ""))
