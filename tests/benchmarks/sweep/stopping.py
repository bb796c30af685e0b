"""A group in a process of its own that stops itself (SIGSTOP) wherever it is about to tell what became of a run."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.sweep.slurm import jobs
from benchmarks.sweep.work import perform
from tests.benchmarks import fakes

HERE = "tests.benchmarks.sweep.stopping"


def stop() -> None:
    """Stop this process until another one continues it."""
    os.kill(os.getpid(), signal.SIGSTOP)


def training(configs: list[dict[str, Any]], *, state: Path, report) -> list[fakes.Outcome]:
    """Train, and stop half way."""
    stop()
    report(0.5, "half way")
    return made(configs, state=state, report=report)


def made(configs: list[dict[str, Any]], *, state: Path, report) -> list[fakes.Outcome]:
    """Train, and note the process in the provenance."""
    (state / f"trained-{os.getpid()}").touch()
    about = {"process": os.getpid()}
    return [fakes.Outcome(config, metrics=[fakes.metric(0.5)], provenance=about) for config in configs]


def failing(configs: list[dict[str, Any]], *, state: Path, report) -> list[fakes.Outcome]:
    """Train, and report failures."""
    return [fakes.Outcome(config, "failed", reason=f"diverged in {os.getpid()}") for config in configs]


def main(file: str) -> None:
    """Do the group in a file, and write what became of its runs beside it. Unless it trains half, stop at every record
    and failure: when it is on disk, but has not got its name."""
    fields = json.loads(Path(file).read_text())
    group = jobs._group(**fields)
    sync = os.fsync

    def fsync(handle: int) -> None:
        sync(handle)
        if stat.S_ISREG(os.fstat(handle).st_mode) and not group.suite.execute.endswith(":training"):
            stop()

    os.fsync = fsync
    outcomes = perform(group, lambda *_: None)
    os.fsync = sync
    Path(f"{file}.outcomes").write_text(json.dumps([asdict(outcome) for outcome in outcomes]))


if __name__ == "__main__":
    main(sys.argv[1])
