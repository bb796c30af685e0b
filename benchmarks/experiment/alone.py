"""Locks so that one process makes a training that several need: the reference of many runs, or compared seeds."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from benchmarks.state.checkpoints import stop_requested
from benchmarks.state.claims import Claims
from fvi_core.telling import Message

WAIT = 1.0  # seconds between checks on another process's claim


@contextlib.contextmanager
def alone(state: Path, trainings: Iterable[str], say: Callable[[str], None]) -> Iterator[bool]:
    """Yield True with these trainings claimed; or False, once another process that had claimed one has finished.

    Holds no claim while it waits, so that two processes never wait for each other. Raises ClaimError, and
    KeyboardInterrupt when a stop was requested.
    """
    with Claims(state / "claims") as claims:
        busy = next((key for key in trainings if not claims.acquire(key)), None)
        if busy is None:
            yield True
            return
    while holder := claims.holder(busy):
        say(Message(f"waiting for a training by {holder}", "wait"))
        if stop_requested():
            raise KeyboardInterrupt
        time.sleep(WAIT)
    yield False
