"""Stamps of reports: digests of everything that a report depends on, so that what is unchanged is not made again."""

from __future__ import annotations

import os
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
SETTINGS = ("MATPLOTLIBRC", "~/.config/matplotlib/matplotlibrc", "matplotlibrc")


@cache
def code() -> str:
    """Return the digest of this project's files, the installed packages, and matplotlib's settings."""
    chosen = [Path(os.environ.get(name, name)).expanduser() for name in SETTINGS]
    settings = [files.digest_or_reason(path / "matplotlibrc" if path.is_dir() else path) for path in chosen]
    return stamp.digest([stamp.code("fvi_core", "datasets", "benchmarks", "reports"), settings])


def everything(suite: Suite, records: Records) -> str:
    """Return the digest of all that reports of a suite show: code, records, failures.

    Empty where that cannot be known: with plug-ins, a user's own data, or another suite than this project's.
    """
    if suite != Suite() or any(map(os.environ.get, OWN_FILES)) or stamp.plugged():
        return ""
    return stamp.digest([code(), str(records.store.root), sorted(records.digests.items()), sorted(records.failed)])
