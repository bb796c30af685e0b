"""The records that reports read: each file once, nothing written, and of each only what tables need."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.records.columns import Cell, RecordReader, Rows
from benchmarks.records.form import WHAT_TO_DO, RecordError
from benchmarks.records.other_files import Alike, OtherFiles
from benchmarks.records.store import Store
from benchmarks.shapes import Provenance, Record, RunConfig
from benchmarks.state.failures import Failures
from benchmarks.sweep.plan import recorded_datasets, recorded_protocol
from benchmarks.sweep.progress import brief

G = TypeVar("G", bound=Sequence[str])
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)
UNKNOWN = "unknown processor"


@dataclass(frozen=True)
class Broken:
    """A file that cannot be trusted: its name in the results folder; what is wrong with it, and what to do."""

    file: str
    reason: str

    def __str__(self) -> str:
        return f"Not counted: {self.file}: {self.reason}"


@dataclass(frozen=True)
class Layout:
    """What records of the same metrics share: where each value stands, and which metrics are of an old version."""

    places: dict[Cell, int]
    stale: frozenset[str]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is kept of a record: its values, and on what data and machine they were made.

    data holds (name, fingerprint) of its split, under the empty name, and of every evaluation set that it says;
    warnings are what its training said of itself; seconds are those of its training, with what is fitted after it, and
    of its evaluation, where the record says them; accelerated: not on a CPU.
    """

    file: str
    layout: Layout
    values: array
    data: tuple[tuple[str, str], ...]
    machine: str
    warnings: tuple[str, ...] = ()
    seconds: tuple[float | None, float | None] = (None, None)
    accelerated: bool = False

    @property
    def key(self) -> str:
        """The run's key."""
        return Path(self.file).stem

    def value(self, dataset: str, condition: str, metric: str) -> float | str:
        """One metric as in the record, or why the record does not give it."""
        place = self.layout.places.get((dataset, condition, metric))
        if place is None:
            return "not in the record"
        return "stale record" if metric in self.layout.stale else self.values[place]

    def conditions(self, metric: str) -> Iterator[tuple[str, float]]:
        """Every condition that a metric was computed for, and its value."""
        for (_, condition, name), place in self.layout.places.items():
            if name == metric:
                yield condition, self.values[place]


class Records:
    """The records under a results folder, by configuration.

    A folder that is not there holds no records. A file that cannot be trusted is a problem of its cells, not an error.
    With a state folder, runs that failed are told from runs that were not made.
    """

    def __init__(
        self, folder: Path | str, state: Path | str | None = None, store: Callable[[Path | str], Store] = Store
    ) -> None:
        self.store = store(folder)
        self._given = folder, state
        self.failed = set(Failures(state).keys()) if state else set()
        self._found: dict[str, Recorded | Broken | str | None] = {}
        self._columns = RecordReader(self.store)
        self._alike: Alike = {}
        self._shared: dict[Any, Any] = {}  # what many records have in common is held once

    def of_other_files(self, datasets: Collection[str] | None = None) -> Records:
        """The same, with records of other files, of these data sets or of all, in the place of those that are not
        there.
        """
        return Records(*self._given, partial(OtherFiles, datasets=datasets, alike=self._alike))

    @property
    def files(self) -> list[str]:
        """A note on the files that were used instead of those at hand, if any were."""
        used = self.store.used if isinstance(self.store, OtherFiles) else {}
        files = ", ".join(
            f"{file} ({len(records)} run{'s' * (len(records) != 1)})" for file, records in sorted(used.items())
        )
        why = "Runs on a user's own files of these data (docs/data.md), since none is recorded on those at hand"
        return [f"{why}: {files}."] if files else []

    def get(self, config: RunConfig) -> Recorded | Broken | str | None:
        """What is kept of a run's record; None where there is none, or a few words if that is known to have failed."""
        path = self.store.path(config)
        if path.stem not in self._found:
            self._found[path.stem] = self._look_up(path)
        return self._found[path.stem]

    def curves(self, run: Recorded) -> dict[str, Any]:
        """The curves of a run, read from its file now. Raises RecordError."""
        return self.store.read(self.store.root / run.file)["curves"]

    def _look_up(self, path: Path) -> Recorded | Broken | str | None:
        try:
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return "failed run" if path.stem in self.failed else None
        except OSError:
            pass  # reading it says more
        file = "/".join(path.parts[-3:])
        try:
            return self._run(*self._columns.read(path), file)
        except RecordError as error:
            reason = str(error).removeprefix(f"{path}: ")
        except MALFORMED as error:
            reason = f"not a record of this project ({type(error).__name__}: {error}): {WHAT_TO_DO}"
        return Broken(file, plain(reason))

    def _run(self, record: Record, rows: Rows, values: array, file: str) -> Recorded:
        """What is kept of a record. Raises one of MALFORMED."""
        about = record["provenance"]
        data = [("", about["fingerprint"])] if "fingerprint" in about else []
        data += sorted(about.get("data", {}).items())
        machine = about.get("device"), about.get("cpu")
        versions = tuple(record["metric_versions"].items())
        return Recorded(
            file,
            self._share((rows, versions), lambda: self._layout(rows, versions)),
            values,
            self._share(tuple(data), lambda: _words(data)),
            self._share(machine, lambda: _machine(*machine)),
            tuple(map(plain, *_words([about.get("warnings", [])]))),
            _seconds(about),
            about.get("device") not in (None, "cpu"),
        )

    def _layout(self, rows: Rows, versions: tuple[tuple[str, int], ...]) -> Layout:
        places: dict[Cell, int] = {}
        for place, cell in enumerate(rows.cells):
            places.setdefault(cell, place)
        return Layout(places, frozenset(name for name, version in versions if version < self.store.version(name)))

    def _share(self, key: Any, make: Any) -> Any:
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = make()
        return found


def recorded(table: Any, protocol: str | None, known: Records) -> tuple[str, Records]:
    """The protocol to show, without one the most faithful that has records, and the records: of runs on a user's own
    files of those data sets of which there are no others. Raises UnknownName.
    """
    asked = None if protocol is None else table.check_protocol(protocol)
    for each in (known, known.of_other_files()):
        shown = asked or recorded_protocol(table, None, each.store)
        if found := recorded_datasets(table, shown, each.store):
            lacking = set(table.datasets) - (found if each is known else set())
            return shown, known.of_other_files(lacking) if lacking else known
    return asked or table.default_protocol, known


def plain(words: str, length: int = 400) -> str:
    """Words from a file as one line that can be printed."""
    line = " ".join(words.split())
    return brief("".join(character if character.isprintable() else "?" for character in line), length)


def _seconds(about: Provenance) -> tuple[float | None, float | None]:
    """What a run took. Raises TypeError where one is no number."""
    training = float(about["seconds"]) + float(about.get("fit_seconds", 0.0)) if "seconds" in about else None
    return training, float(about["evaluate_seconds"]) if "evaluate_seconds" in about else None


def _words(groups: Iterable[G]) -> tuple[G, ...]:
    """The same groups of words. Raises TypeError where one is no word."""
    for word in (word for group in groups for word in group):
        if not isinstance(word, str):
            raise TypeError(f"{word!r} stands where a name is expected")
    return tuple(groups)


def _machine(device: str | None, cpu: str | None) -> str:
    """What a machine computes with, for people."""
    _words([[word for word in (device, cpu) if word is not None]])
    if device in (None, "cpu"):
        return plain(cpu or UNKNOWN)
    return plain(f"{device} ({cpu or UNKNOWN})")
