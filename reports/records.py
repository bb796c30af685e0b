"""Reader of records for reports: each file is read once, and only the entries that tables need stay in memory."""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from benchmarks import files
from benchmarks.records.form import WHAT_TO_DO, RecordError
from benchmarks.records.other_files import Alike, OtherFiles
from benchmarks.records.provenance import digests
from benchmarks.records.rows import Cell, Rows
from benchmarks.records.store import Store
from benchmarks.shapes import Provenance, Record, RunConfig
from benchmarks.state.failures import Failures
from benchmarks.sweep.plan import recorded_datasets, recorded_protocol
from benchmarks.sweep.progress import brief
from fvi_core.telling import plural

G = TypeVar("G", bound=Sequence[str])
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)
UNKNOWN = "unknown processor"


@dataclass(frozen=True)
class Broken:
    """Invalid file: its name in the results folder, what is wrong with it, and what to do."""

    file: str
    reason: str

    def __str__(self) -> str:
        return f"Not counted: {self.file}: {self.reason}"


@dataclass(frozen=True)
class Layout:
    """Layout shared by records with the same metrics: places of values, and metrics of old versions."""

    places: dict[Cell, int]
    stale: frozenset[str]


@dataclass(frozen=True, slots=True)
class Recorded:
    """Entries of a record that reports need.

    data: (part, fingerprint) of its split, of training and contexts, and of its evaluation sets; warnings: those of its
    training; seconds: of training with fit, and of evaluation, where known; accelerated: not on a CPU; commit: of the
    code, changed: with uncommitted changes; finished: the time.
    """

    file: str
    layout: Layout
    values: array
    data: tuple[tuple[str, str], ...]
    machine: str
    warnings: tuple[str, ...] = ()
    seconds: tuple[float | None, float | None] = (None, None)
    accelerated: bool = False
    commit: str = ""
    changed: bool = False
    finished: str = ""

    @property
    def key(self) -> str:
        return Path(self.file).stem

    def value(self, dataset: str, condition: str, metric: str) -> float | str:
        """Return one metric as in the record, or why the record does not have it."""
        place = self.layout.places.get((dataset, condition, metric))
        if place is None:
            return "not in the record"
        return "stale record" if metric in self.layout.stale else self.values[place]

    def conditions(self, metric: str) -> Iterator[tuple[str, float]]:
        """Yield every condition of a metric with its value."""
        for (_, condition, name), place in self.layout.places.items():
            if name == metric:
                yield condition, self.values[place]


class Records:
    """Records under a results folder, by configuration.

    A missing folder holds no records. An invalid file is a problem of its cells, not an error. With a state folder,
    failed runs are distinguished from runs that were not made.
    """

    def __init__(self, folder: Path | str, state: Path | str | None = None) -> None:
        self.store, self.state = Store(folder), state
        self.failed = set(Failures(state).keys()) if state else set()
        self.results: dict[tuple, Any] = {}  # tables aggregated from these records
        self._found: dict[str, Recorded | Broken | str | None] = {}
        self._files = {"/".join(path.parts[-3:]) for path in self.store.files()}
        self._alike: Alike = {}
        self._shared: dict[Any, Any] = {}  # parts that many records share

    def of_other_files(self, datasets: Collection[str] | None = None) -> Records:
        """Return these records with substitutes made from other files, for these data sets or all."""
        found = copy(self)
        found.store, found.results = OtherFiles(self.store.root, datasets=datasets, alike=self._alike), {}
        found.store.rows = self.store.rows  # so that records read by either share their layouts
        return found

    def has(self, config: RunConfig) -> bool:
        """Return whether there is a file with a run's record, or with a substitute."""
        return self._file(config) in self._files

    @cached_property
    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file, or why it cannot be read, at the first call."""
        return {file: files.digest_or_reason(self.store.root / file) for file in self._files}

    @property
    def files(self) -> list[str]:
        """Return a note on substitute files that were used, if any."""
        used = self.store.used if isinstance(self.store, OtherFiles) else {}
        files = ", ".join(f"{file} ({plural(len(records), 'run')})" for file, records in sorted(used.items()))
        why = "Runs on a user's own files of these data (docs/data.md), since none is recorded on those at hand"
        return [f"{why}: {files}."] if files else []

    def get(self, config: RunConfig) -> Recorded | Broken | str | None:
        """Return a run's record; None without one, or a few words if the run is known to have failed."""
        file = self._file(config)
        if file not in self._found:
            self._found[file] = self._look_up(self.store.root / file)
        return self._found[file]

    @property
    def problems(self) -> list[str]:
        """Return the invalid files among those read so far, with reasons."""
        return [str(found) for found in self._found.values() if isinstance(found, Broken)]

    def _file(self, config: RunConfig) -> str:
        file = Store.file(self.store, config)  # that of other files would look on the disk, and for a substitute twice
        if file in self._files or not isinstance(self.store, OtherFiles):
            return file
        other = self.store.substitute(config)
        return "/".join(other.parts[-3:]) if other else file

    def curves(self, run: Recorded) -> Mapping[str, Any]:
        """Read the curves of a run from its file. Raises RecordError; a damaged curve, ValueError."""
        return self.store.curves(self.store.root / run.file)

    def _look_up(self, path: Path) -> Recorded | Broken | str | None:
        try:
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return "failed run" if path.stem in self.failed else None
        except OSError:
            pass  # reading it gives the reason
        file = "/".join(path.parts[-3:])
        try:
            return self._run(*self.store.columns(path), file)
        except RecordError as error:
            reason = str(error).removeprefix(f"{path}: ")
        except MALFORMED as error:
            reason = f"not a record of this project ({type(error).__name__}: {error}): {WHAT_TO_DO}"
        return Broken(file, plain(reason))

    def _run(self, record: Record, rows: Rows, values: array, file: str) -> Recorded:
        """Convert a record. Raises one of MALFORMED."""
        about = record["provenance"]
        data = [(part and f", {part}", digest) for part, digest in digests(about).items()]
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
            sys.intern(str(about.get("commit") or "")),
            bool(about.get("dirty")),
            str(about.get("finished") or ""),
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
    """Return the protocol to show (default: the most faithful one with records), and the records; data sets with
    records of other files only get these. Raises UnknownName."""
    chosen = None if protocol is None else table.check_protocol(protocol)
    for each in (known, known.of_other_files()):
        shown = chosen or recorded_protocol(table, None, each.has)
        if found := recorded_datasets(table, shown, each.has):
            own = found if each is known else set()
            if not (lacking := set(table.datasets) - own):
                return shown, known
            substituted = recorded_datasets(table, shown, known.of_other_files(lacking).has) - own
            return shown, known.of_other_files(lacking) if substituted else known
    return chosen or table.default_protocol, known


def plain(words: str, length: int = 400) -> str:
    """Return text from a file as one printable line."""
    line = " ".join(words.split())
    if not line.isprintable():
        line = "".join(character if character.isprintable() else "?" for character in line)
    return brief(line, length)


def _seconds(about: Provenance) -> tuple[float | None, float | None]:
    """Return the seconds of training and evaluation. Raises TypeError for invalid ones."""
    training = float(about["seconds"]) + float(about.get("fit_seconds", 0.0)) if "seconds" in about else None
    return training, float(about["evaluate_seconds"]) if "evaluate_seconds" in about else None


def _words(groups: Iterable[G]) -> tuple[G, ...]:
    """Return groups of words unchanged. Raises TypeError for an invalid word."""
    for word in (word for group in groups for word in group):
        if not isinstance(word, str):
            raise TypeError(f"{word!r} stands where a name is expected")
    return tuple(groups)


def _machine(device: str | None, cpu: str | None) -> str:
    """Describe the processor or GPU of a run."""
    if device in (None, "cpu"):
        return plain(cpu or UNKNOWN)
    return plain(f"{device} ({cpu or UNKNOWN})")
