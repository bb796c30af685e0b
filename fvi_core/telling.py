"""Progress messages of long work, such as making data or fitting kernels, sent to a listener if there is one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


def tell(text: str) -> None:
    """Send a progress message to the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(text)


def counted(what: str, items: Iterable[T], costs: Sequence[float]) -> Iterator[T]:
    """Yield items, each after the message "``what`` k of n" (of many items, a hundred), with the time left by the
    items' relative costs."""
    start, done, whole, n = time.monotonic(), 0.0, sum(costs), len(costs)
    for place, (item, cost) in enumerate(zip(items, costs, strict=True)):
        left = (time.monotonic() - start) * (whole / done - 1) if done else 0.0
        if place % -(-n // 100) == 0:
            tell(f"{what} {place + 1} of {n}{f', about {duration(left)} left' if left >= 1 else ''}")
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


def duration(seconds: float) -> str:
    """Format seconds: 8 s, 3 min, 2 h 05 min, 5 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes > 48 * 60:
        return f"{minutes / 1440:,.0f} days"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
