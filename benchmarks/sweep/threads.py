"""Number of threads of a training process."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping

from benchmarks.errors import UsageError

VARIABLE = "FVI_THREADS"
LIBRARIES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def threads() -> int:
    """Return the number of threads of a training process, 1 unless the user chose one. Raises :class:`UsageError`."""
    text = os.environ.get(VARIABLE) or "1"
    if text.isdecimal() and int(text):
        return int(text)
    raise UsageError(f"{VARIABLE} is {text!r}, expected a number of threads, 1 or more")


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Limit numerical libraries to these threads: the last digits of sums depend on their number."""
    number, torch = threads(), sys.modules.get("torch")
    used = torch.get_num_threads() if torch else None
    with environment(dict.fromkeys(LIBRARIES, str(number))):
        if torch:
            torch.set_num_threads(number)
        try:
            yield
        finally:
            if torch and used:
                torch.set_num_threads(used)


@contextlib.contextmanager
def environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables within this context; None: take one away."""
    before = {name: os.environ.get(name) for name in changes}
    _put(changes)
    try:
        yield
    finally:
        _put(before)


def _put(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        os.environ.pop(name, None) if value is None else os.environ.update({name: value})
