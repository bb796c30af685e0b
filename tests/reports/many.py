"""A results folder of very many records, and what it costs to look at: python -m tests.reports.many FOLDER [COUNT].

Makes COUNT records (20,000 without it) of a table like digits with many seeds, copies of a real record with other
values, as far as they are not there; then prints time and memory of `reports table` and of `benchmarks status`.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

from benchmarks import tables
from benchmarks.commands.cli import build as benchmarks
from benchmarks.records import provenance
from benchmarks.records.store import Store
from benchmarks.suite import Suite
from benchmarks.tables import Table
from reports.cli import build as reports

COUNT, PREFIX = 20_000, "many-"
SUITE = Suite(tables="tests.reports.many")


def names() -> list[str]:
    """Return the name of the one table."""
    return [f"{PREFIX}{COUNT}"]


def get(name: str) -> Table:
    """Return table digits with the seeds for the number of records in its name: many-20000."""
    digits = tables.get("digits")
    seeds = -(-int(name.removeprefix(PREFIX)) // len(digits.rows))
    replicates = tuple((0, seed) for seed in range(seeds))
    return replace(digits, name=name, recipe=lambda *run: replace(digits.recipe(*run), replicates=replicates))


def write(results: Path, count: int) -> None:
    """Write the records of the table with ``count`` runs."""
    store, real = Store(results), Store(provenance.ROOT / "results")
    first = tables.get("digits").runs("paper")[0]
    record = real.get(first)
    noise = random.Random(0)
    with mock.patch("os.fsync"):  # nobody needs these records after a power failure
        for config in get(f"{PREFIX}{count}").runs("paper"):
            if not store.path(config).exists():
                rows = [row | {"value": row["value"] * (1 - 0.01 * noise.random())} for row in record["metrics"]]
                store.write(store.make(config, rows, record["curves"], record["provenance"]))


def main(folder: Path, count: int) -> None:
    """Make the records, then look at them, each time in a process of its own."""
    write(folder / "results", count)
    for what in ("table", "status"):
        start = time.monotonic()
        subprocess.run([sys.executable, "-m", "tests.reports.many", folder, str(count), what], check=True)
        print(f"{what}: {time.monotonic() - start:.1f} s with start-up")


def look(folder: Path, count: int, what: str) -> None:
    """Run one command over the records; print the processor time and the memory that it took."""
    command = reports(SUITE) if what == "table" else benchmarks(SUITE)
    options = ["--results", str(folder / "results"), "--state", str(folder / "state")]
    options += ["--out", str(folder / "out")] if what == "table" else []
    try:
        command([what, f"{PREFIX}{count}", *options])
    except SystemExit as end:
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(f"status {end.code}: {used.ru_utime + used.ru_stime:.1f} CPU seconds, {used.ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    arguments = sys.argv[2:] or [str(COUNT)]
    (look if len(arguments) > 1 else main)(Path(sys.argv[1]), int(arguments[0]), *arguments[1:])
