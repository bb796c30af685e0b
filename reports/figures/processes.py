"""Figures drawn by several processes at once."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.suite import Suite
from benchmarks.sweep.workers import available_cores
from reports.figures import Drawn, Figure, draw
from reports.records import Records

MOST = 8  # processes; more of them wait for the disk and the longest figure
WORTH = 4  # figures for which starting a process pays


@contextmanager
def drawing(
    figures: Sequence[Figure], suite: Suite, records: Records, out: Path, *more: Any
) -> Iterator[Iterable[Drawn]]:
    """Yield the results of :func:`reports.figures.draw`, in order; several processes begin to draw at once.

    Few figures are drawn in this process when the results are read, as are those of a suite of one's own class, which
    may not pass to another process, and those whose process was killed.
    """
    count = min(available_cores(), MOST, len(figures) // WORTH)
    if count < 2 or type(suite) is not Suite:
        _ = records.digests  # before any record is read, so that no stamp is newer than its figure
        yield draw(figures, suite, records, out, *more)
        return
    about = suite, records.store.root, records.state, out, *more
    # Ctrl-C reaches every process: the one that waits for the results stops the others.
    ignoring = signal.signal, (signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(count, get_context("spawn"), *ignoring) as pool:
        waiting = [(figure, pool.submit(_drawn, figure, *about)) for figure in figures]
        try:
            yield _results(waiting, suite, records, out, *more)
        finally:
            pool.shutdown(cancel_futures=True)


def _results(waiting: list[tuple[Figure, Future[list[Drawn]]]], *here: Any) -> Iterator[Drawn]:
    for figure, drawn in waiting:
        try:
            yield from drawn.result()
        except BrokenExecutor:  # a process was killed, most often for want of memory
            yield from draw([figure], *here)


def _drawn(figure: Figure, suite: Suite, results: Path, state: Path | str | None, *more: Any) -> list[Drawn]:
    return list(draw([figure], suite, _records(results, state), *more))


@cache
def _records(results: Path, state: Path | str | None) -> Records:
    """Return the records of a process, which reads each of them once."""
    return Records(results, state)
