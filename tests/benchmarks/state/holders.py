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
    """Yield a live process of this machine and the holder that stands for it; kill the process after the block."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        yield process, _process(process.pid)
    finally:
        process.kill()
        process.communicate()


def put(folder: Path, key: str, holder: Holder, age: float = 0.0) -> None:
    """Write the claim of a holder whose last heartbeat was ``age`` seconds ago."""
    folder.mkdir(parents=True, exist_ok=True)
    os.symlink(json.dumps(asdict(holder)), folder / key)
    then = time.time() - age
    os.utime(folder / key, (then, then), follow_symlinks=False)
