"""Progress of work that a user waits for: one live line on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from fvi_core.stack import Stack
from fvi_core.telling import duration, listening

FIRST, LIVE = 10.0, 0.5
"""Seconds until the first plain line (the interval doubles after each); seconds between live ones."""


class Watch:
    """Context that shows ``line(seconds since the start)``, if not empty, from a separate thread, so that the work is
    not slowed down."""

    def __init__(self, line: Callable[[float], str], file: TextIO | None = None):
        self.line, self.file = line, file or sys.stderr
        self.start, self.over = time.monotonic(), threading.Event()
        self.live = self.file.isatty()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self.thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.over.set()
        self.thread.join()
        if self.live:
            self._show("\n")

    def _show(self, end: str) -> None:
        if text := self.line(time.monotonic() - self.start):
            print(f"\r{text:<78}" if self.live else text, end=end, file=self.file, flush=True)

    def _run(self) -> None:
        wait = LIVE if self.live else FIRST
        while not self.over.wait(wait):
            self._show("" if self.live else "\n")
            wait = wait if self.live else 2 * wait


def training(stack: Stack, what: str) -> Watch:
    """Show epochs, loss and time left of a training."""

    def line(spent: float) -> str:
        done = max(stack.epoch / max(stack.epochs, 1), stack.progress if stack.progress < 1 else 0)
        losses = [values[-1] for values in stack.now.losses.values() if values]
        loss = f", loss {sum(losses) / len(losses):.4g}" if losses else ""
        left = "" if not 0 < done < 1 else f", about {duration(spent / done * (1 - done))} left"
        return f"{what}: {stack.unit} {stack.epoch}/{stack.epochs}{loss}, {duration(spent)}{left}"

    return Watch(line)


@contextlib.contextmanager
def messages(what: str) -> Iterator[None]:
    """Show the last message of :func:`fvi_core.telling.tell`."""
    last = ""

    def hear(text: str) -> None:
        nonlocal last
        last = f"{what}: {text}"

    with listening(hear), Watch(lambda spent: last and f"{last}, {duration(spent)}"):
        yield
