"""Recognition of a site where nothing has changed since it was written."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks import files
from benchmarks.records import stamp
from benchmarks.suite import Suite
from reports.records import Records
from reports.stamp import everything

MADE = ".made"  # lists the files of the last time, so that obsolete ones can be removed
STAMP = ".stamp"  # the problems that were found, under the digest of all that the site depended on and of its files


def depends(suite: Suite, records: Records, *more: bool) -> str:
    """Return the digest of what a site depends on; empty where that cannot be known. more: further conditions."""
    found = everything(suite, records)
    return found and stamp.digest([found, *more])


def find(out: Path, digest: str) -> tuple[list[str], list[str]] | None:
    """Return the files and problems of the last time, if it depended on the same and no file has changed since."""
    with suppress(OSError, ValueError):  # there was no last time
        names = (out / MADE).read_text(encoding="utf-8").splitlines()
        problems = stamp.read(out / STAMP, digest and _with_files(out, digest, names))
        return None if problems is None else (names, problems)
    return None


def keep(out: Path, digest: str, names: Sequence[str], problems: Sequence[str]) -> None:
    """Write what :func:`find` reads. Raises OSError."""
    stamp.write(out / STAMP, digest and _with_files(out, digest, names), problems)


def _with_files(out: Path, digest: str, names: Sequence[str]) -> str:
    return stamp.digest([digest, [(name, files.digest_or_reason(out / name)) for name in names]])
