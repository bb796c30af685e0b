"""Verification: train recorded runs again and compare, for a random sample (`verify`) or one run (`again`)."""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import UsageError
from benchmarks.records import provenance
from benchmarks.records.config import is_external
from benchmarks.records.form import RecordError
from benchmarks.records.rows import score_of
from benchmarks.records.store import COSTS, Store
from benchmarks.shapes import Record
from benchmarks.suite import Suite
from benchmarks.sweep import runner
from benchmarks.sweep.plan import make_plan
from benchmarks.sweep.runner import Display
from benchmarks.sweep.workers import Workers
from benchmarks.tables.manifest import RETIRED, read_retired

ROUNDING = 1e-9  # relative differences up to this come from the order of additions
EQUAL, ROUNDED, DIFFERENT, FAILED = "equal", "equal to rounding", "different", "failed"


@dataclass(frozen=True)
class Remade:
    """A record beside its repetition. difference: the largest relative one, and where; machines: of both."""

    record: Record
    again: Record | None
    verdict: str
    difference: float = 0.0
    of: str = ""
    reason: str = ""

    @property
    def machines(self) -> tuple[str, str]:
        """Processor of the record and of its repetition, with the number of threads where that is not 1."""
        after = self.again["provenance"] if self.again else {"cpu": provenance.cpu()}
        return _machine(self.record["provenance"]), _machine(after)

    @property
    def other_data(self) -> list[str]:
        """Parts of the data whose digests differ from the record's, where both runs have one."""
        sides = [provenance.digests(each["provenance"]) for each in (self.record, self.again) if each]
        return [part or "split" for part in sides[0] if sides[0][part] != sides[-1].get(part, sides[0][part])]

    @property
    def alarming(self) -> bool:
        """Whether the new run contradicts its record: numbers are missing or differ on one machine, or data differ."""
        differs = self.verdict == DIFFERENT and self.machines[0] == self.machines[1]
        return self.verdict == FAILED or differs or bool(self.other_data)


def _machine(about: Mapping[str, Any]) -> str:
    threads, device = about.get("threads", 1), about.get("device", "cpu")
    text = f"{about.get('cpu', 'not known')}{f', {threads} threads' if threads != 1 else ''}"
    return text if device == "cpu" else f"{text}, {device}"


def sample(store: Store, n: int, minutes: float, seed: int) -> tuple[list[Record], int, int, list[RecordError]]:
    """Draw n random records among those trained within so many minutes. Return them, the number of those that they are
    drawn from, the number of all valid records, and the errors of invalid ones.

    Retired records are left out: what they were made with, as a scheme of splits, may be gone. Raises UsageError if
    there is none.
    """
    if n < 1:
        raise UsageError(f"--n is {n}, expected 1 or more")
    retired = read_retired(store.root / RETIRED)
    every, invalid = [], []
    for record in store.records(curves=False):
        if isinstance(record, RecordError):
            invalid.append(record)
        elif not is_external(record["config"]) and store.file(record["config"]).removesuffix(".json") not in retired:
            every.append(record)  # a training: external predictions have none
    short = [record for record in every if _seconds(record) <= 60 * minutes]
    if not short:
        raise UsageError(f"{store.root}: no record whose training took at most {minutes:g} min, among {len(every)}")
    chosen = random.Random(seed).sample(sorted(short, key=lambda record: record["key"]), min(n, len(short)))
    return chosen, len(short), len(every), invalid


def estimate(records: Iterable[Record]) -> float:
    """Sum of the recorded training times, in seconds."""
    return sum(map(_seconds, records))


def make_again(
    records: list[Record],
    store: Store,
    workers: Workers | None,
    suite: Suite,
    display: Display | None = None,
) -> Iterator[Remade]:
    """Train recorded runs again from scratch and compare."""
    with tempfile.TemporaryDirectory(prefix="fvi-again-") as folder:
        results, state = Path(folder) / "results", Path(folder) / "state"
        plan = make_plan((record["config"] for record in records), results, state, suite)
        summary = runner.run(plan, workers, display)
        if summary.interrupted:
            raise KeyboardInterrupt
        for record in records:
            before, after = store.get(record["config"]), plan.store.get(record["config"])
            reason = summary.failed.get(record["key"], "no record was made")
            yield compare(before or record, after) if after else Remade(record, None, FAILED, reason=reason)


def compare(before: Record, after: Record) -> Remade:
    """Compare the metrics of two records of one run, and where these are equal, the curves that both have.

    Metrics and scores that only one of them has are ignored.
    """
    versions = [set(record["metric_versions"]) for record in (before, after)]
    known, new = versions[0] & versions[1], versions[0] ^ versions[1]
    worst, of = _largest(
        {" ".join(filter(None, (row["dataset"], row["condition"], row["metric"]))): row["value"]
         for row in record["metrics"]
         if row["metric"] in known and row["metric"] not in COSTS and score_of(row["condition"]) not in new}
        for record in (before, after)
    )  # fmt: skip
    if worst == 0:
        names = set(before["curves"]) & set(after["curves"])
        worst, of = _largest(
            {f"curve {place}": value for name in names for place, value in _leaves(record["curves"][name], name, new)}
            for record in (before, after)
        )
    verdict = EQUAL if worst == 0 else ROUNDED if worst <= ROUNDING else DIFFERENT
    return Remade(before, after, verdict, worst, of)


def _largest(sides: Iterable[dict[str, Any]]) -> tuple[float, str]:
    """Return the largest relative difference and its place; infinite where one side lacks a number."""
    first, second = sides
    found = max(((_relative(first.get(name), second.get(name)), name) for name in {*first, *second}), default=(0.0, ""))
    return found if found[0] else (0.0, "")


def _relative(one: Any, other: Any) -> float:
    if one == other:
        return 0.0
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) / max(abs(one), abs(other))
    return math.inf


def _leaves(value: Any, place: str, without: Set[str] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Yield the numbers of a curve with their places; without: names of parts to leave out."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in without:
                yield from _leaves(inner, f"{place} {name}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{i}]")
    else:
        yield place, value


def _seconds(record: Record) -> float:
    seconds = record["provenance"].get("seconds")
    return float(seconds) if isinstance(seconds, int | float) else math.inf
