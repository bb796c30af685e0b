"""Progress messages of long work, such as making data or fitting kernels, sent to a listener if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


def tell(text: str) -> None:
    """Send a progress message to the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(text)


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
