"""Figures drawn by several processes at once."""

from __future__ import annotations

import gc
import importlib
import signal
import sys
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
_from: list[Any] = []  # suite, records, folder, ...: what a process draws from, as it was when the process began


@contextmanager
def drawing(
    figures: Sequence[Figure], suite: Suite, records: Records, out: Path, *more: Any
) -> Iterator[Iterable[Drawn]]:
    """Yield the results of :func:`reports.figures.draw`, in order; several processes begin to draw at once.

    Processes are forks of this one, so that none imports a library or reads a record which this one has read already.
    Few figures are drawn in this process when the results are read, as are those of a suite of one's own class, whose
    code may not bear a fork, and those whose process was killed.
    """
    _ = records.digests  # before any record is read, so that no stamp is newer than its figure
    count = min(available_cores(), MOST, len(figures) // WORTH)
    if count < 2 or type(suite) is not Suite:
        yield draw(figures, suite, records, out, *more)
        return
    importlib.import_module("reports.figures.style")  # matplotlib, once for all
    with ProcessPoolExecutor(count, get_context("fork"), _begin, (suite, records, out, *more)) as pool:
        waiting = [(figure, pool.submit(_drawn, figure)) for figure in figures]
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


def _begin(*about: Any) -> None:
    # Ctrl-C reaches every process, and ends this one silently: files are whole or not there.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)  # a fork lacks its parent's OpenMP threads, and would wait for them
    gc.freeze()  # what is shared stays shared: a collection would write to it
    _from[:] = about


def _drawn(figure: Figure) -> list[Drawn]:
    return list(draw([figure], *_from))
