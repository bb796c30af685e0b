"""Manifest of all keys: a digest for every row of every table, and a reason for every record without a table.

A recipe changed by accident gives its runs other keys, and their records vanish from the table silently. So
``keys.txt`` holds a digest of each row's configurations, and ``results/retired.txt`` names the records of abandoned
recipes with reasons. Tests check both; ``python -m benchmarks keys`` describes changes in words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from benchmarks import files
from benchmarks.errors import BenchmarkError
from benchmarks.records.config import differences, is_external, run_key
from benchmarks.records.other_files import bare_digest
from benchmarks.records.store import Store
from benchmarks.shapes import RunConfig
from benchmarks.tables.spec import UNREDUCED, Table

FILE = Path(__file__).with_name("keys.txt")
RETIRED = "retired.txt"
PROTOCOLS = (*UNREDUCED, "short")  # smoke runs have no records


class Place(NamedTuple):
    """Place of runs: table, protocol, row and data set."""

    table: str
    protocol: str
    row: str
    dataset: str


class Digest(NamedTuple):
    """How many runs a row has on a data set, and 12 digits of the SHA-256 of their configurations."""

    runs: int
    digits: str


Manifest = dict[Place, Digest]


@dataclass
class Change:
    """Row whose runs differ from keys.txt, and its former records."""

    place: Place
    before: Digest | None
    after: Digest | None
    orphans: list[str] = field(default_factory=list)
    differences: list[tuple[str, str, str]] = field(default_factory=list)

    def __str__(self) -> str:
        where = f"{self.place.table} ({self.place.protocol}), row {self.place.row!r}, {self.place.dataset}"
        if self.before is None or self.after is None:
            runs = (self.after or self.before or Digest(0, "")).runs
            what = f"{'new' if self.before is None else 'gone'}, {runs} runs"
        elif self.differences:
            what = "; ".join(f"{name}: {then} before, {now} now" for name, now, then in self.differences)
        else:
            what = f"{self.before.runs} runs before, {self.after.runs} now, of another configuration"
        return f"{where}: {what}" + (f"; {len(self.orphans)} records orphaned" if self.orphans else "")


def plans(tables: Iterable[Table]) -> Iterator[tuple[Place, list[RunConfig]]]:
    """Yield the runs of every row of the tables on every data set, where there are any."""
    for table in tables:
        for protocol in (each for each in table.protocols if each in PROTOCOLS):
            for row, dataset, runs in table.plans(protocol):
                if runs:
                    yield Place(table.name, protocol, row.label, dataset), runs


def manifest(plans: Iterable[tuple[Place, list[RunConfig]]]) -> Manifest:
    """Return the digests of planned runs. The user's own files, part of a configuration, are left out."""
    digests = {}
    for place, runs in plans:
        configurations = "\n".join(map(bare_digest, runs))
        digests[place] = Digest(len(runs), hashlib.sha256(configurations.encode()).hexdigest()[:12])
    return digests


def write(manifest: Manifest, path: Path = FILE) -> None:
    """Write a manifest: a head ``[table protocol]``, then ``row <tab> data set <tab> runs <tab> digest``."""
    lines = []
    for (table, protocol), own in groupby(manifest.items(), lambda item: item[0][:2]):
        lines.append(f"[{table} {protocol}]")
        lines += ["\t".join((place.row, place.dataset, str(runs), digits)) for place, (runs, digits) in own]
    files.write(path, "\n".join(lines) + "\n")


def read(path: Path = FILE) -> Manifest:
    """Return the committed manifest. Raises BenchmarkError for an invalid line."""
    digests: Manifest = {}
    for head, line, number in _sections(path):
        words, fields = head.split(" "), line.split("\t")
        if len(words) != 2 or len(fields) != 4 or not fields[2].isdigit():
            raise BenchmarkError(f"{path}:{number}: expected row, data set, runs, digest, found {line!r}")
        digests[Place(*words, *fields[:2])] = Digest(int(fields[2]), fields[3])
    return digests


def read_retired(path: Path) -> dict[str, str]:
    """Return the reason of every retired record, by its place under the results folder, without ".json"."""
    return {line: head for head, line, _ in _sections(path)} if path.exists() else {}


def write_retired(reasons: Mapping[str, str], path: Path) -> None:
    """Write the retired records: a head ``[reason]``, then its records."""
    lines = []
    for reason in sorted(set(reasons.values())):
        lines += [f"[{reason}]", *sorted(record for record, why in reasons.items() if why == reason)]
    files.write(path, "\n".join(lines) + "\n" * bool(lines))


def _sections(path: Path) -> Iterator[tuple[str, str, int]]:
    """Yield every line of a file with its head and number. Raises BenchmarkError for a line without a head."""
    head = ""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if line.startswith("[") and line.endswith("]"):
            head = line[1:-1]
        elif not head:
            raise BenchmarkError(f"{path}:{number}: expected a head in brackets first, found {line!r}")
        elif line:
            yield head, line, number


def orphans(store: Store, runs: Iterable[RunConfig]) -> dict[str, RunConfig]:
    """Return the configurations of all records that belong to none of these runs, by place, without external
    predictions.

    Raises RecordError for an invalid record.
    """
    planned = list(runs)
    keys, digests = set(map(run_key, planned)), set(map(bare_digest, planned))
    configs = {}
    for key, path in store.paths().items():
        if key in keys:
            continue
        config = store.read(path, curves=False)["config"]
        if bare_digest(config) not in digests and not is_external(config):
            configs[path.relative_to(store.root).with_suffix("").as_posix()] = config
    return configs


def changes(
    before: Manifest, now: Mapping[Place, list[RunConfig]], orphaned: Mapping[str, RunConfig]
) -> tuple[list[Change], list[str]]:
    """Return the changed rows, each with its orphaned records, and the orphans of no changed row.

    An orphan belongs to the changed row of its method, data set and protocol whose runs differ least.
    """
    after = manifest(now.items())
    changed = [
        Change(place, before.get(place), after.get(place))
        for place in dict.fromkeys((*before, *after))
        if before.get(place) != after.get(place)
    ]
    unmatched = []
    for record, config in orphaned.items():
        near: list[tuple[int, int, list[tuple[str, str, str]]]] = []
        for number, change in enumerate(changed):
            for run in now.get(change.place, [])[:1]:
                if _of(run) == _of(config):
                    apart = differences(run, config)
                    near.append((len(apart), number, apart))
        if near:
            _, number, apart = min(near)
            change = changed[number]
            change.orphans.append(record)
            change.differences = change.differences or apart
        else:
            unmatched.append(record)
    return changed, unmatched


def _of(config: RunConfig) -> tuple[str, str, str]:
    return config["method"], config["dataset"]["name"], config["protocol"]
