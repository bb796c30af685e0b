"""Timing a few steps of one run group, as every executor does that trains on this machine."""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.suite import resolve
from benchmarks.sweep.groups import RunGroup
from benchmarks.sweep.work import one_thread, reason_of
from fvi_core import plugins


@dataclass(frozen=True)
class Timing:
    """A run group whose first steps are to be timed, and the seconds that nothing in this should take."""

    group: RunGroup
    seconds: float


def time_group(timing: Timing, tell: Callable[[dict[str, Any]], None]) -> str:
    """Time a run group; what is found is told as soon as it is, first when all was loaded. Why there is no more, or "".

    With one thread, as it is trained with, and without a word of what it prints. Raises nothing but interrupts.
    """
    try:
        plugins.load()
        with one_thread(), _silence():
            steps = resolve(timing.group.timing)
            tell({"loaded": time.monotonic()})
            steps(list(timing.group.configs), timing.seconds, tell)
    except Exception as error:  # a part that does not fit, data that are damaged: the run itself will say so again
        return reason_of(error)
    return ""


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        nothing = stack.enter_context(open(os.devnull, "w"))
        for redirect in (contextlib.redirect_stdout, contextlib.redirect_stderr):
            stack.enter_context(redirect(nothing))
        stack.enter_context(warnings.catch_warnings())
        yield
