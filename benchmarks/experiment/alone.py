"""One process at a time makes a training that several need: a reference of many runs, say, or seeds that are compared
with each other.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from benchmarks.state.checkpoints import stop_requested
from benchmarks.state.claims import Claims

WAIT = 1.0  # seconds between looks at another process's claim


@contextlib.contextmanager
def alone(state: Path, trainings: Iterable[str], say: Callable[[str], None]) -> Iterator[bool]:
    """True, and these trainings are claimed meanwhile; or False, once another process that had one of them is over
    with it. Nothing is held while it waits, so that two processes never wait for each other.

    Raises ClaimError, and KeyboardInterrupt when a stop was requested.
    """
    with Claims(state / "claims") as claims:
        busy = next((key for key in trainings if not claims.acquire(key)), None)
        if busy is None:
            yield True
            return
    while holder := claims.holder(busy):
        say(f"waiting for a training by {holder}")
        if stop_requested():
            raise KeyboardInterrupt
        time.sleep(WAIT)
    yield False
