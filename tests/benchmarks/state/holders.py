"""Other processes that hold claims, for tests."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.state.claims import Holder, _process


@contextlib.contextmanager
def live() -> Iterator[tuple[subprocess.Popen, Holder]]:
    """A process of this machine that lives until then, if nobody kills it."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        yield process, _process(process.pid)
    finally:
        process.kill()
        process.communicate()


def put(folder: Path, key: str, holder: Holder, age: float = 0.0) -> None:
    """The claim of a holder whose last heartbeat is so many seconds ago."""
    folder.mkdir(parents=True, exist_ok=True)
    os.symlink(json.dumps(asdict(holder)), folder / key)
    then = time.time() - age
    os.utime(folder / key, (then, then), follow_symlinks=False)
