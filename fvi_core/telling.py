"""Progress of long work, such as training, making data or fitting kernels: messages to a listener, if there is one, and
for a user who waits one live line on a terminal, or now and then a line elsewhere.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, Self, TextIO, TypeVar

if TYPE_CHECKING:
    from fvi_core.stack import Stack

T = TypeVar("T")
Kind = Literal["step", "wait", "warning", "loss"]
FIRST, LIVE = 10.0, 0.5
"""Seconds until the first plain line (the interval doubles after each); seconds between live ones."""

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)

_part: ContextVar[tuple[float, float, float] | None] = ContextVar("part", default=None)
"""Start of the whole work, and the shares of it that are done before and after the present part."""


class Message(str):
    """Progress message. kind: the present step, a wait for another process in place of work, a warning, or the loss of
    earlier work; left: seconds of the work left, where it says them; about: key of the only training or run that a
    warning concerns."""

    kind: Kind
    left: float | None
    about: str

    def __new__(cls, text: str, kind: Kind = "step", left: float | None = None, about: str = "") -> Self:
        made = super().__new__(cls, text)
        made.kind, made.left, made.about = kind, left, about
        return made

    @classmethod
    def of(cls, text: str) -> Message:
        """Return a text as a message: plain text is a step."""
        return text if isinstance(text, Message) else cls(text)

    @property
    def lasting(self) -> bool:
        """Whether it matters after the next message."""
        return self.kind in ("warning", "loss")

    def within(self, what: str) -> Message:
        """Return the message with the name of the part of the work that it belongs to."""
        return Message(f"{what}: {self}", self.kind, self.left, self.about)


class Parts:
    """Equal parts of some work, done one after another; the time left of :func:`counted` in a part is the whole's."""

    def __init__(self, n: int):
        self.n, self.outer = n, _part.get() or (time.monotonic(), 0.0, 1.0)

    @contextmanager
    def part(self, place: int) -> Iterator[None]:
        """Do the part of this number, from 0."""
        start, low, high = self.outer
        width = (high - low) / self.n
        token = _part.set((start, low + place * width, low + (place + 1) * width))
        try:
            yield
        finally:
            _part.reset(token)


def tell(text: str) -> None:
    """Send a progress message to the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(text)


def warn(text: str, kind: Kind = "warning", about: str = "") -> None:
    """Print a message that matters after the next one, for a log, and send it to the listener, if there is one."""
    print(text)
    tell(Message(text, kind, about=about))


def due(place: int, n: int) -> bool:
    """Whether a message is due at the step of this number, from 0: at every one of n steps, of many at a hundred."""
    return place % -(-n // 100) == 0


def counted(what: str, items: Iterable[T], costs: Sequence[float]) -> Iterator[T]:
    """Yield items, each after the message "``what`` k of n" (of many items, a hundred), with the time left by the
    items' relative costs, of all :class:`Parts` that they belong to."""
    start, low, high = _part.get() or (time.monotonic(), 0.0, 1.0)
    done, whole, n = 0.0, sum(costs), len(costs)
    for place, (item, cost) in enumerate(zip(items, costs, strict=True)):
        share = low + (high - low) * done / whole
        left = (time.monotonic() - start) * (1 / share - 1) if share else 0.0
        if due(place, n):
            text = f"{what} {place + 1} of {n}{f', about {duration(left)} left' if left >= 1 else ''}"
            tell(Message(text, left=left if share else None))
        yield item
        done += cost


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Send progress messages to a listener within the block."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def plural(count: int, noun: str) -> str:
    """Return a number with its noun: 1 run, 2 runs."""
    return f"{count} {noun}{'s' * (count != 1)}"


def duration(seconds: float) -> str:
    """Format seconds: 8 s, 3 min, 2 h 05 min, 5 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes > 48 * 60:
        return f"{minutes / 1440:,.0f} days"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def redraws(file: TextIO) -> bool:
    """Whether a file is a terminal that can show a line anew; one of TERM=dumb cannot."""
    return file.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


class Watch:
    """Context that shows ``line(seconds since the start)``, if not empty, from a separate thread, so that the work is
    not slowed down."""

    def __init__(self, line: Callable[[float], str], file: TextIO | None = None):
        self.line, self.file = line, file or sys.stderr
        self.start, self.over = time.monotonic(), threading.Event()
        self.live = redraws(self.file)
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
            width = shutil.get_terminal_size().columns - 1  # a line that wraps would stay when the next is shown
            print(f"\r{text[:width]:<{width}}" if self.live else text, end=end, file=self.file, flush=True)

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


@contextmanager
def messages(what: str) -> Iterator[None]:
    """Show the last message of :func:`tell`."""
    last = ""

    def hear(text: str) -> None:
        nonlocal last
        last = f"{what}: {text}"

    with listening(hear), Watch(lambda spent: last and f"{last}, {duration(spent)}"):
        yield
