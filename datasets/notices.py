"""Lines for the user about data: what was guessed, dropped or skipped."""

from __future__ import annotations

import multiprocessing
import sys

_said: set[str] = set()


def say(text: str) -> None:
    """Print a text to stderr, once in a process; workers of a pool leave it to the process that started them."""
    if text not in _said and multiprocessing.parent_process() is None:
        _said.add(text)
        print(text, file=sys.stderr, flush=True)
