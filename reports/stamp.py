"""Stamps of reports: digests of everything that a report depends on, so that what is unchanged is not made again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from benchmarks import files
from benchmarks.records import stamp
from benchmarks.suite import Suite
from datasets import user_arrays
from datasets.fundus import sources
from reports.records import Records

OWN_FILES = (user_arrays.VARIABLE, sources.VARIABLE)
"""Variables that name a user's data, on which configurations depend."""
LISTING = ".made"  # lists the files of the last time, so that obsolete ones can be removed
STAMP = ".stamp"  # the problems that were found, under the digest of all that the site depended on and of its files
SETTINGS = ("MATPLOTLIBRC", "~/.config/matplotlib/matplotlibrc", "matplotlibrc")


@cache
def code() -> str:
    """Return the digest of this project's files, the installed packages, and matplotlib's settings."""
    chosen = [Path(os.environ.get(name, name)).expanduser() for name in SETTINGS]
    settings = [files.digest_or_reason(path / "matplotlibrc" if path.is_dir() else path) for path in chosen]
    return stamp.digest([stamp.code("fvi_core", "datasets", "benchmarks", "reports"), settings])


def everything(suite: Suite, records: Records, *more: bool) -> str:
    """Return the digest of all that reports of a suite show: code, records, failures, and further conditions.

    Empty where that cannot be known: with plug-ins, a user's own data, or another suite than this project's.
    """
    if suite != Suite() or any(map(os.environ.get, OWN_FILES)) or stamp.plugged():
        return ""
    about = code(), str(records.store.root), sorted(records.digests.items()), sorted(records.failed)
    return stamp.digest([*about, *more])


def last_site(out: Path, digest: str) -> tuple[list[str], list[str]] | None:
    """Return the files and problems of the last time, if it depended on the same and no file has changed since."""
    with suppress(OSError, ValueError):  # there was no last time
        names = (out / LISTING).read_text(encoding="utf-8").splitlines()
        problems = stamp.read(out / STAMP, digest and _with_files(out, digest, names))
        return None if problems is None else (names, problems)
    return None


def keep_site(out: Path, digest: str, names: Sequence[str], problems: Sequence[str]) -> None:
    """Write what :func:`last_site` reads. Raises OSError."""
    stamp.write(out / STAMP, digest and _with_files(out, digest, names), problems)


def _with_files(out: Path, digest: str, names: Sequence[str]) -> str:
    return stamp.digest([digest, [(name, files.digest_or_reason(out / name)) for name in names]])
