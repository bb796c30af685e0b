"""Run groups trained by processes on this machine. A process that dies takes only its own group with it."""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from benchmarks.state.checkpoints import request_stop
from benchmarks.sweep.executors.cores import available_cores
from benchmarks.sweep.executors.work import perform, settle
from benchmarks.sweep.groups import Executor, Report, RunGroup, RunOutcome
from benchmarks.sweep.stopping import interrupt

GRACE = 10.0  # seconds that a worker has to give up its claims when it is stopped
SAVE = signal.SIGUSR2  # what a cluster sends before a time limit: save a checkpoint, then end
REPORT_EVERY = 0.5  # seconds between reports of one worker
MOMENT = 0.5  # seconds by which a signal for all processes of a terminal may reach one later than another


class Worker:
    """A spawned process and our end of its pipe."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # forked processes would share locks of threads they lack
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()  # otherwise a message that its death cuts short would never end
        self.group: RunGroup | None = None

    def give(self, work: RunGroup | None) -> None:
        """Send a run group to train, or None: no more."""
        self.group = work
        with contextlib.suppress(OSError):  # it has died; reading from the pipe will say so
            self.connection.send(work)

    def receive(self) -> Any:
        """What it has sent. Raises EOFError or OSError if it has died."""
        if not self.connection.poll():
            raise EOFError  # dead, though a child of its own still holds the pipe open
        return self.connection.recv()

    def end(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.join()


class Pool(Executor):
    """Trains run groups in ``workers`` processes (default: one for every core this process may use).

    A worker that dies ``moment`` seconds or less before this process is told to stop was stopped too: no failure.
    """

    def __init__(self, workers: int | None = None, moment: float = MOMENT) -> None:
        self.size, self.moment = workers or available_cores(), moment
        self.queue: deque[RunGroup] = deque()
        self.workers: list[Worker] = []
        self.stopped: set[str] = set()

    def submit(self, groups: Sequence[RunGroup]) -> None:
        self.queue.extend(groups)

    def outcomes(self, report: Report) -> Iterator[tuple[RunGroup, list[RunOutcome]]]:
        while self.queue or any(worker.group for worker in self.workers):
            self._hand_out(report)
            busy = [worker for worker in self.workers if worker.group]
            owner: dict[Any, Worker] = {w.connection: w for w in busy} | {w.process.sentinel: w for w in busy}
            for worker in dict.fromkeys(owner[ready] for ready in wait(list(owner))):
                group = worker.group
                assert group is not None, "it is busy"
                try:
                    message = worker.receive()
                except (EOFError, OSError):
                    worker.process.join(GRACE)
                    time.sleep(self.moment)  # the signal raises here
                    self.workers.remove(worker)
                    yield group, settle(group, death(worker.process.exitcode))
                    continue
                if isinstance(message, list):
                    worker.group = None
                    yield group, message
                else:
                    report(group, *message)

    def stop(self, grace: float) -> None:
        """Have the workers save what they are at and end within ``grace`` seconds; ``stopped`` then has their runs."""
        self.queue.clear()
        self.stopped |= {key for worker in self.workers if worker.group for key in worker.group.keys}
        for worker in self.workers:
            if not worker.group:
                worker.give(None)
            elif worker.process.pid and worker.process.is_alive():
                os.kill(worker.process.pid, SAVE)
        limit = time.monotonic() + grace
        for worker in self.workers:
            worker.process.join(max(0.0, limit - time.monotonic()))
            if worker.process.is_alive():
                worker.end()

    def close(self) -> None:
        self.queue.clear()
        workers, self.workers = self.workers, []
        for worker in workers:
            worker.process.terminate() if worker.group else worker.give(None)
        limit = time.monotonic() + GRACE
        for worker in workers:
            worker.process.join(max(0.0, limit - time.monotonic()))
            if worker.process.is_alive():
                worker.end()
            worker.connection.close()

    def _hand_out(self, report: Report) -> None:
        self.workers = [worker for worker in self.workers if worker.group or worker.process.is_alive()]
        while self.queue and (worker := self._idle() or self._new()):
            group = self.queue.popleft()
            worker.give(group)
            report(group, 0.0, "")

    def _idle(self) -> Worker | None:
        return next((worker for worker in self.workers if not worker.group and worker.process.is_alive()), None)

    def _new(self) -> Worker | None:
        """One worker more, if there may be more."""
        if len(self.workers) >= self.size:
            return None
        self.workers.append(Worker())
        return self.workers[-1]


def death(exitcode: int | None) -> str:
    """Why a worker died, in words."""
    if exitcode is not None and exitcode < 0:
        name = signal.Signals(-exitcode).name if -exitcode in set(signal.Signals) else f"signal {-exitcode}"
        why = ": most often for want of memory; try fewer --workers" if name == "SIGKILL" else ""
        return f"its process was killed by {name}{why}"
    if exitcode == 0:
        return "its process was stopped by a signal, and not by this sweep"
    return f"its process ended unexpectedly with exit status {exitcode}"


def work(connection: Connection) -> None:
    """A worker's life: take run groups until there are none. If the parent dies, it saves a checkpoint and ends."""
    for number in (signal.SIGINT, signal.SIGHUP):  # they reach every process of a terminal; the parent stops us
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(SAVE, request_stop)
    faulthandler.enable()
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    try:
        while True:
            work = connection.recv()
            if work is None:
                return
            connection.send(perform(work, _Reporter(connection), descriptors=True))
    except (KeyboardInterrupt, EOFError, OSError):
        os._exit(0)  # at once: what has begun is given up, and what was made is on disk


def _stop_with_parent() -> None:
    """Nobody would see a training that goes on for hours after its sweep was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker is a child"
    parent.join()
    request_stop()


class _Reporter:
    """Sends progress to the parent, but not too often."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.last = connection, 0.0

    def __call__(self, fraction: float, text: str = "") -> None:
        now = time.monotonic()
        if now - self.last < REPORT_EVERY:
            return
        self.last = now
        # When the parent has died, training ends with its epoch, and what is trained already is recorded.
        with contextlib.suppress(OSError):
            self.connection.send((fraction, text))
