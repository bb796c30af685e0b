"""Verification: train recorded runs again and compare, for a random sample (`verify`) or one run (`again`)."""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import UsageError
from benchmarks.records import provenance
from benchmarks.records.conditions import score_of
from benchmarks.records.config import is_brought
from benchmarks.records.form import RecordError
from benchmarks.records.store import COSTS, Store
from benchmarks.shapes import Record
from benchmarks.suite import Suite
from benchmarks.sweep import runner
from benchmarks.sweep.runner import Display
from benchmarks.sweep.workers import Workers

ROUNDING = 1e-9  # relative differences up to this come from the order of additions
EQUAL, ROUNDED, DIFFERENT, FAILED = "equal", "equal to rounding", "different", "failed"


@dataclass(frozen=True)
class Remade:
    """A record beside its repetition. difference: the largest relative one, and where; cpus: of both."""

    record: Record
    again: Record | None
    verdict: str
    difference: float = 0.0
    of: str = ""
    reason: str = ""

    @property
    def cpus(self) -> tuple[str, str]:
        """Processors of the record and its repetition."""
        after = self.again["provenance"] if self.again else {"cpu": provenance.cpu()}
        return str(self.record["provenance"].get("cpu", "not known")), str(after.get("cpu", "not known"))

    @property
    def alarming(self) -> bool:
        """Whether the numbers should have agreed: some are missing, or differ on the same processor."""
        return self.verdict == FAILED or (self.verdict == DIFFERENT and same_processor(*self.cpus))


def same_processor(one: str, other: str) -> bool:
    """Whether two names are of one model; older records have the name without the numbers in brackets."""
    if one == other:
        return True
    return one.partition(" (family ")[0] == other.partition(" (family ")[0] and "(family" not in one + other


def sample(store: Store, n: int, minutes: float, seed: int) -> tuple[list[Record], int, int]:
    """Draw random records among those trained within so many minutes; return them, their pool's size, and that of all.

    Raises UsageError if there is none.
    """
    if n < 1:
        raise UsageError(f"N is {n}, expected 1 or more")
    every = [record for record in store.records(curves=False) if not isinstance(record, RecordError)]
    every = [record for record in every if not is_brought(record["config"])]  # external predictions have no training
    short = [record for record in every if _seconds(record) <= 60 * minutes]
    if not short:
        raise UsageError(f"{store.root}: no record whose training took at most {minutes:g} min, among {len(every)}")
    chosen = random.Random(seed).sample(sorted(short, key=lambda record: record["key"]), min(n, len(short)))
    return chosen, len(short), len(every)


def estimate(records: Iterable[Record]) -> float:
    """Sum of the recorded training times, in seconds."""
    return sum(map(_seconds, records))


def make_again(
    records: list[Record],
    store: Store,
    workers: Workers | None,
    suite: Suite,
    display: Display | None = None,
    keep: Callable[[Record], None] = lambda record: None,
) -> Iterator[Remade]:
    """Train recorded runs again from scratch and compare; ``keep`` receives the new results."""
    with tempfile.TemporaryDirectory(prefix="fvi-again-") as folder:
        results, state = Path(folder) / "results", Path(folder) / "state"
        configs = [record["config"] for record in records]
        summary = runner.run(configs, workers, results=results, state=state, suite=suite, display=display)
        if summary.interrupted:
            raise KeyboardInterrupt
        made = Store(results, suite.metrics)
        for record in records:
            before, after = store.get(record["config"]), made.get(record["config"])
            if after is None:
                yield Remade(record, None, FAILED, reason=summary.failed.get(record["key"], "no record was made"))
                continue
            keep(after)
            yield compare(before or record, after)


def compare(before: Record, after: Record) -> Remade:
    """Compare the metrics of two records of one run, and where these are equal, the curves that both have.

    Metrics and scores that only one of them has are ignored.
    """
    versions = [set(record["metric_versions"]) for record in (before, after)]
    known, new = versions[0] & versions[1], versions[0] ^ versions[1]
    first, second = (
        {(row["dataset"], row["condition"], row["metric"]): row["value"] for row in record["metrics"]
         if row["metric"] in known and row["metric"] not in COSTS and score_of(row["condition"]) not in new}
        for record in (before, after)
    )  # fmt: skip
    worst, of = _largest(first, second)
    if worst == 0:
        names = set(before["curves"]) & set(after["curves"])
        curves = [{name: _without(record["curves"][name], new) for name in names} for record in (before, after)]
        worst, of = _largest(*(dict(_leaves(curve)) for curve in curves))
        of = of and f"curve {of}"
    verdict = EQUAL if worst == 0 else ROUNDED if worst <= ROUNDING else DIFFERENT
    return Remade(before, after, verdict, worst, of)


def _without(curve: Any, names: Set[str]) -> Any:
    return {name: part for name, part in curve.items() if name not in names} if isinstance(curve, dict) else curve


def _largest(first: dict[Any, Any], second: dict[Any, Any]) -> tuple[float, str]:
    """Return the largest relative difference and its place; infinite where one side lacks a number."""
    told = ((_relative(first.get(name), second.get(name)), _told(name)) for name in {*first, *second})
    found = max(told, default=(0.0, ""))
    return found if found[0] else (0.0, "")


def _told(name: Any) -> str:
    return name if isinstance(name, str) else " ".join(filter(None, name))


def _relative(one: Any, other: Any) -> float:
    if one == other:
        return 0.0
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) / max(abs(one), abs(other))
    return math.inf


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{place} {name}".strip())
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{i}]")
    else:
        yield place, value


def _seconds(record: Record) -> float:
    seconds = record["provenance"].get("seconds")
    return float(seconds) if isinstance(seconds, int | float) else math.inf
