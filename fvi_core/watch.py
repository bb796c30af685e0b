"""Progress of a training that a user waits for: one live line on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, TextIO

from fvi_core.stack import Stack
from fvi_core.telling import duration

FIRST, LIVE = 10.0, 0.5
"""Seconds until the first plain line (the interval doubles after each); seconds between live ones."""


class Watch:
    """Context that shows progress, loss and time left of a training, from a separate thread, so that training is not
    slowed down."""

    def __init__(self, stack: Stack, what: str, file: TextIO | None = None):
        self.stack, self.what, self.file = stack, what, file or sys.stderr
        self.start, self.over = time.monotonic(), threading.Event()
        self.live = self.file.isatty()
        self.thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Watch:
        self.thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.over.set()
        self.thread.join()
        if self.live:
            print(f"\r{self.line():<78}", file=self.file, flush=True)

    def line(self) -> str:
        """The state of the training in one line."""
        stack, spent = self.stack, time.monotonic() - self.start
        done = max(stack.epoch / max(stack.epochs, 1), stack.progress if stack.progress < 1 else 0)
        losses = [values[-1] for values in stack.now.losses.values() if values]
        loss = f", loss {sum(losses) / len(losses):.4g}" if losses else ""
        left = "" if not 0 < done < 1 else f", about {duration(spent / done * (1 - done))} left"
        return f"{self.what}: {stack.unit} {stack.epoch}/{stack.epochs}{loss}, {duration(spent)}{left}"

    def _show(self) -> None:
        wait = LIVE if self.live else FIRST
        while not self.over.wait(wait):
            print(f"\r{self.line():<78}" if self.live else self.line(), end="" if self.live else "\n", file=self.file)
            self.file.flush()
            wait = wait if self.live else 2 * wait
