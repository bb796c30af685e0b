"""Stamps: digests of what a result depends on, so that what is unchanged is not made again.

A digest names everything that the result depends on. It is taken before that is read, so that no stamp is newer than
its result.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import files
from benchmarks.records.provenance import ROOT
from fvi_core import plugins

PASSED_OVER = {"__pycache__", "output"}


def digest(parts: Iterable[Any]) -> str:
    """Return the SHA-256 of parts in plain JSON."""
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()


@cache
def code(*rooms: str, root: Path = ROOT) -> str:
    """Return the digest of the files of some rooms (code, published numbers, notes, templates), and of the names and
    versions of Python and all installed packages."""
    found = (path for room in rooms for path in (root / room).rglob("*") if path.is_file())
    own = sorted(path for path in found if not PASSED_OVER & set(path.relative_to(root).parts))
    packages = {each.name for place in sys.path for each in Path(place).glob("*.dist-info")}
    content = [(path.relative_to(root).as_posix(), files.digest_or_reason(path)) for path in own]
    return digest([sys.version, sorted(packages), content])


def read(path: Path, digest: str) -> Any:
    """Return the value in a file that :func:`write` wrote under this digest; None where there is none, the digest was
    another or empty, or the file is damaged."""
    with suppress(OSError, ValueError):
        head, _, text = path.read_text(encoding="utf-8").partition("\n")
        if digest and head == _sum(digest, text):
            return json.loads(text)
    return None


def write(path: Path, digest: str, value: Any) -> None:
    """Write a value, in plain JSON, under a digest of all that it depends on; nothing under an empty one, which no
    :func:`read` finds. Raises OSError."""
    if digest:
        text = json.dumps(value)
        files.write(path, f"{_sum(digest, text)}\n{text}")


def _sum(digest: str, text: str) -> str:
    return hashlib.sha256(f"{digest}\n{text}".encode()).hexdigest()


def plugged() -> bool:
    """Return whether there are plug-ins, whose dependencies nobody knows."""
    return any(True for _ in plugins.found())
