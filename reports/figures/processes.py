"""Figures drawn by several processes at once."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager
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
    about = suite, records.store.root, records.state, out, more
    with ProcessPoolExecutor(count, get_context("spawn"), _Worker.begin, about) as pool:
        waiting = [(figure, pool.submit(_Worker.draw, figure)) for figure in figures]
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


class _Worker:
    """What a process knows: the arguments of every drawing but its figure."""

    known: tuple[Any, ...]

    @classmethod
    def begin(cls, suite: Suite, results: Path, state: Path | str | None, out: Path, more: tuple[Any, ...]) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that waits for the results stops this one
        cls.known = suite, Records(results, state), out, *more

    @classmethod
    def draw(cls, figure: Figure) -> list[Drawn]:
        return list(draw([figure], *cls.known))
