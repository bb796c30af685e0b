"""Worker processes on this machine that share one list of run groups, each claiming the next free one.

A process that dies loses only its present run group; another process replaces it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError, UsageError
from benchmarks.state.checkpoints import request_stop
from benchmarks.sweep.plan import Outcomes, Report, RunGroup
from benchmarks.sweep.stopping import interrupt
from benchmarks.sweep.threads import environment, threads
from benchmarks.sweep.work import settle, work
from fvi_core.telling import Message

GRACE = 10.0  # seconds that a stopped worker has to release its claims
SAVE = signal.SIGUSR2  # signal that clusters send before a time limit: save a checkpoint, then end
REPORT_EVERY = 0.5  # seconds between reports of one worker
SILENCE = 10.0  # seconds without a message after which the last reports are repeated: the time left counts down
VISIBLE = "CUDA_VISIBLE_DEVICES"
MOMENT = 0.5  # seconds by which a terminal's signal may reach one process later than another


@dataclass(eq=False)
class Worker:
    """A spawned process, the parent's end of its pipe, its index among the workers, its present run group, and the
    last report of it."""

    process: SpawnProcess
    pipe: Connection
    slot: int
    group: RunGroup | None = None
    last: tuple[Any, ...] = ()


class Workers:
    """Pool of ``count`` processes (default: one per GPU, else as many as cores allow), each of which sees one GPU.

    A worker that dies at most ``moment`` seconds before this process receives a stop was stopped too: no failure.
    ``stopped``: keys of the runs in training when the workers were stopped.
    """

    def __init__(self, count: int | None = None, moment: float = MOMENT, devices: Sequence[str] | None = None) -> None:
        if count is not None and count < 1:
            raise UsageError(f"--workers is {count}, expected 1 or more")
        self.devices = available_devices() if devices is None else devices
        self.count, self.moment = count or len(self.devices) or max(1, available_cores() // threads()), moment
        self.workers: list[Worker] = []
        self.stopped: set[str] = set()

    def outcomes(self, todo: Sequence[RunGroup], report: Report) -> Outcomes:
        """Make the remaining run groups; yield each group with its outcomes as it ends.

        Closing the iterator ends all workers. Raises BenchmarkError if none could start.
        """
        todo, reason, heard = list(todo), "", set[int]()
        try:
            for slot in range(min(self.count, len(todo))):
                self._start(todo, slot)
            while self.workers:
                owner: dict[Any, Worker] = {w.pipe: w for w in self.workers}
                owner |= {w.process.sentinel: w for w in self.workers}
                ready = wait(list(owner), SILENCE)
                for worker in [] if ready else self.workers:
                    if worker.group:
                        report(worker.group, *worker.last)
                for worker in dict.fromkeys(owner[each] for each in ready):
                    try:
                        if not worker.pipe.poll():
                            raise EOFError  # dead, though a child process still holds the pipe open
                        place, *message = worker.pipe.recv()
                    except (EOFError, OSError):
                        worker.process.join(GRACE)
                        status = worker.process.exitcode
                        outcomes = settle(worker.group, death(status), self.moment) if worker.group else []
                        if status and not worker.group:
                            time.sleep(self.moment)  # a signal raises here
                        self.workers.remove(worker)
                        if worker.group:
                            yield worker.group, outcomes
                        if worker.group or (status and worker.slot in heard):
                            self._start(todo, worker.slot)
                        elif status:
                            reason = death(status)
                        continue
                    heard.add(worker.slot)
                    worker.group = todo[place] if len(message) == 2 else None
                    if worker.group:
                        worker.last = tuple(message)
                        report(worker.group, *message)
                    else:
                        yield todo[place], *message
            if reason and not heard:
                raise BenchmarkError(f"no worker could start: {reason}; its output is printed above")
        finally:
            self._end(signal.SIGTERM, GRACE)

    def stop(self, grace: float) -> None:
        """Make workers save and end within ``grace`` seconds; ``stopped`` then lists their runs."""
        self.stopped |= {key for worker in self.workers if worker.group for key in worker.group.keys}
        self._end(SAVE, grace)

    def _end(self, number: int, grace: float) -> None:
        limit = time.monotonic() + grace
        for worker in self.workers:
            if worker.process.pid and worker.process.is_alive():
                os.kill(worker.process.pid, number)
        for worker in self.workers:
            worker.process.join(max(0.0, limit - time.monotonic()))
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()
        self.workers.clear()

    def _start(self, todo: list[RunGroup], slot: int) -> None:
        context = multiprocessing.get_context("spawn")  # forked processes would share locks of threads they lack
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=live, args=(theirs, todo), daemon=True)
        with environment({VISIBLE: self.devices[slot % len(self.devices)]} if self.devices else {}):
            process.start()
        self.workers.append(Worker(process, ours, slot))
        theirs.close()  # otherwise a message cut short by its death would never end


def death(status: int | None) -> str:
    """Explain a worker's death by its exit status."""
    if status is not None and status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        why = ": most often for want of memory; try fewer --workers" if name == "SIGKILL" else ""
        return f"its process was killed by {name}{why}"
    if status == 0:
        return "its process was stopped by a signal, and not by this sweep"
    return f"its process ended unexpectedly with exit status {status}"


def live(pipe: Connection, todo: list[RunGroup]) -> None:
    """Do a worker's work and report to the parent. If the parent dies, save a checkpoint and end."""
    for number in (signal.SIGINT, signal.SIGHUP):  # the parent stops its workers
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(SAVE, request_stop)
    faulthandler.enable()
    places = {key: place for place, group in enumerate(todo) for key in group.keys}
    last = 0.0

    def tell(group: RunGroup, *message: Any) -> None:
        # When the parent has died, training ends with its epoch, and finished runs are recorded.
        with contextlib.suppress(OSError):
            pipe.send((places[group.keys[0]], *message))

    def report(group: RunGroup, fraction: float, text: str = "") -> None:
        nonlocal last
        if not fraction or Message.of(text).lasting or time.monotonic() - last >= REPORT_EVERY:
            last = time.monotonic() if fraction else 0.0
            tell(group, fraction, text)

    try:
        threading.Thread(target=_stop_with_parent, daemon=True).start()
        for group, outcomes in work(todo, report, descriptors=True):
            tell(group, outcomes)
    except KeyboardInterrupt:
        os._exit(0)  # at once: training in progress is discarded, and everything finished is on disk


def _stop_with_parent() -> None:
    """End with the parent, so that no training goes on unnoticed after its sweep was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker is a child"
    parent.join()
    request_stop()


def available_devices(nodes: Path = Path("/dev")) -> list[str]:
    """Return the names by which $CUDA_VISIBLE_DEVICES chooses each NVIDIA GPU that this process may use."""
    gpus = list(nodes.glob("nvidia[0-9]*"))
    visible = os.environ.get(VISIBLE)
    if visible is None:
        return [str(index) for index in range(len(gpus))]
    return [name for name in map(str.strip, visible.split(",")) if name not in ("", "-1")] if gpus else []


def available_cores(
    topology: Path = Path("/sys/devices/system/cpu"), quota: Path = Path("/sys/fs/cgroup/cpu.max")
) -> int:
    """Physical cores this process may use: those of its CPU set, within a container's quota; at least 1."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    # Two hyper-threads of one core share its arithmetic units, so they count once.
    cores = len({_core(topology / f"cpu{cpu}" / "topology", cpu) for cpu in allowed})
    try:
        limit, period = quota.read_text().split()
        cores = min(cores, int(limit) // int(period))
    except (OSError, ValueError):
        pass  # no quota: the file is missing or says "max"
    return max(1, cores)


def _core(folder: Path, cpu: int) -> tuple[str, str]:
    try:
        return (folder / "physical_package_id").read_text().strip(), (folder / "core_id").read_text().strip()
    except OSError:
        return "cpu", str(cpu)
