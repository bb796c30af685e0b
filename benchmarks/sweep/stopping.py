"""Stop signals: SIGTERM, SIGHUP, and the end of the make that started a sweep all act like Ctrl-C."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FATAL = (*SIGNALS, signal.SIGQUIT)  # signals that end make
REPEATED = 10.0  # seconds within which further signals belong to the same stop: a terminal and make may send one each
MAKE = "FVI_MAKE"  # the process id of the make that started this process
LOOK_EVERY = 1.0  # seconds between checks on make

_stopped_at = -math.inf


def interrupt(*_: object) -> None:
    """Handle a signal like Ctrl-C: raise KeyboardInterrupt, unless a stop is under way."""
    global _stopped_at
    now = time.monotonic()
    if now - _stopped_at >= REPEATED:
        _stopped_at = now
        raise KeyboardInterrupt


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Turn stop signals into KeyboardInterrupt within this context; ignored ones (SIGHUP under nohup) stay ignored."""
    global _stopped_at
    _stopped_at = -math.inf
    before = {number: signal.getsignal(number) for number in SIGNALS}
    heeded = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in heeded:
        signal.signal(number, interrupt)
    over, make = threading.Event(), os.environ.get(MAKE, "")
    if make.isdecimal():
        threading.Thread(target=_follow, args=(int(make), over), daemon=True).start()
    try:
        yield
    finally:
        over.set()
        for number, handler in heeded.items():
            signal.signal(number, handler)


def _follow(make: int, over: threading.Event) -> None:
    """Stop with make, which passes on only SIGTERM and waits for this process before it dies of another signal."""
    thread = threading.main_thread().ident
    assert thread is not None, "the main thread has started"
    while not over.wait(LOOK_EVERY):
        if _ending(make):
            signal.pthread_kill(thread, signal.SIGTERM)
            return


def _ending(pid: int) -> bool:
    """Whether make was killed, or waits for its children before it dies of a signal. False where unknown."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        fields = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
        status = fields["State"][0]
        blocked, ignored, caught = (int(fields[f"Sig{kind}"][0], 16) for kind in ("Blk", "Ign", "Cgt"))
    except FileNotFoundError:
        return os.path.exists("/proc/self/status")
    except (OSError, KeyError, ValueError, IndexError):
        return False
    # In the handler the signal is blocked, and another one would be fatal.
    handled = blocked & ~ignored & ~caught
    return status in "ZX" or any(handled >> number - 1 & 1 for number in FATAL)
