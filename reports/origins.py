"""Origin of runs: only runs of the same data are averaged, and only costs of one processor model compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmarks.shapes import RunConfig
from reports.records import Broken, Recorded, Records, plain

UNCOUNTED = "record not counted"
SHOWN, MOST = 3, 1000  # most items of a list, and most characters


@dataclass(frozen=True, slots=True)
class CellRun:
    """Recorded run of a cell: its split and seed, its data set with scheme and split, and its record."""

    replicate: tuple[int, int]
    dataset_split: tuple[str, str, int]
    record: Recorded

    @classmethod
    def of(cls, config: RunConfig, record: Recorded) -> CellRun:
        data = config["dataset"]
        return cls((data["split"], config["seed"]), (data["name"], data["scheme"], data["split"]), record)


@dataclass(frozen=True)
class CellRuns:
    """Runs of a row on one data set: every chosen one with its record, why records are absent, and broken files;
    splits: those that the protocol plans, also where only some seeds are chosen."""

    runs: tuple[tuple[RunConfig, Recorded | None], ...]
    absent: tuple[str, ...]
    broken: tuple[Broken, ...]
    splits: frozenset[int]

    @property
    def expected(self) -> int:
        """Number of chosen runs."""
        return len(self.runs)

    @cached_property
    def recorded(self) -> list[CellRun]:
        """Runs that are recorded."""
        return [CellRun.of(config, record) for config, record in self.runs if record]

    @cached_property
    def different(self) -> str:
        """Describe how the data of the recorded runs differ; empty where they agree."""
        return different_data(self.recorded)


def runs_of(
    table: Any, row: Any, dataset: str, protocol: str, records: Records, seeds: list[int] | None = None
) -> CellRuns:
    """Look up the runs of a row on a data set.

    Raises ValueError where the table gives a run of another protocol.
    """
    configs = table.row_runs(row, dataset, protocol, seeds)
    for config in configs:
        if config["protocol"] != table.recorded_as(protocol):
            raise ValueError(f"table {table.name}: a run of protocol {config['protocol']!r} in a cell of {protocol!r}")
    states = [records.get(config) for config in configs]
    runs = tuple((config, each if isinstance(each, Recorded) else None) for config, each in zip(configs, states))
    broken = tuple(each for each in states if isinstance(each, Broken))
    absent = [UNCOUNTED if isinstance(each, Broken) else each for each in states if isinstance(each, Broken | str)]
    lacks = table.lacks(row, dataset, protocol) if row.method and not configs else ""
    absent += [lacks.partition(":")[0]] if lacks else []
    every = configs if seeds is None else table.row_runs(row, dataset, protocol)
    splits = frozenset(config["dataset"]["split"] for config in every)
    return CellRuns(runs, tuple(dict.fromkeys(absent)), broken, splits)


def different_data(runs: Sequence[CellRun]) -> str:
    """Describe how data of one name differ, with some of the runs of each; empty where they agree.

    Compares the split (training, validation and test arrays together), training with its contexts, and every evaluation
    set, as far as they are recorded.
    """
    known: dict[tuple[tuple[str, str, int], str], dict[str, None]] = {}
    for dataset_split, data in {(run.dataset_split, run.record.data): None for run in runs}:
        for part, fingerprint in data:
            known.setdefault((dataset_split, part), {})[fingerprint] = None
    differing = [(*where, list(fingerprints)) for where, fingerprints in known.items() if len(fingerprints) > 1]
    groups = [_groups(*which, runs) for which in differing[:SHOWN]]
    return plain(_listed(groups, len(differing), "; "), MOST)


def different_note(row: Any, dataset: str, groups: str) -> str:
    """Return the note of a table or figure on runs that it cannot average."""
    what_to_do = "delete the records of the wrong data and run the table again"
    return f"Different data: {row.label} on {dataset}: {groups}: {what_to_do}"


def _groups(
    dataset_split: tuple[str, str, int], part: str, fingerprints: Iterable[str], runs: Sequence[CellRun]
) -> str:
    groups, same = [], [run.record for run in runs if run.dataset_split == dataset_split]
    for fingerprint in fingerprints:
        keys = [record.key for record in same if (part, fingerprint) in record.data]
        groups.append(f"{fingerprint[:8]} in {_listed(keys[:SHOWN], len(keys))}")
    return f"split {dataset_split[2]}{part}: {_listed(groups[:SHOWN], len(groups), ' / ')}"


def _listed(shown: Sequence[str], count: int, between: str = ", ") -> str:
    return between.join(shown) + (f" and {count - len(shown)} more" if count > len(shown) else "")
