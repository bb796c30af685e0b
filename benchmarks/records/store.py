"""Result store: one JSON file per run, whole or absent.

    results/<data set>/<method>/<key>.json

A file is found by its run's configuration alone; nothing else (job, host, time) enters its name. The last line of a
record is the SHA-256 of the text before it. Every read recomputes it, and the key from the configuration: a changed,
moved or damaged record is refused.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, cast

from benchmarks import files
from benchmarks.errors import BenchmarkError
from benchmarks.records import stamp
from benchmarks.records.config import check_form, run_key
from benchmarks.records.form import (
    HEAD_ONLY,
    SCHEMA,
    WHAT_TO_DO,
    InvalidRecord,
    LazyCurves,
    RecordError,
    parse,
    section,
    serialise,
    slug,
)
from benchmarks.records.rows import FIELDS, Bounds, RowReader, Rows
from benchmarks.shapes import Curves, MetricRow, Provenance, Record, RunConfig
from benchmarks.suite import Suite, resolve

COSTS = ("training_seconds", "peak_memory_bytes")
"""Metrics of a run's cost, which vary between repetitions. The second is in older records only."""


class StoreError(BenchmarkError):
    """Error: the results folder cannot be written: read only, full, or no folder."""


class Store:
    """Records under a results folder. metrics: where the versions of metrics are ("module:name").

    remember: file of the records that were checked before, which ``status`` and ``problems`` do not read again while
    their files stay unchanged.
    """

    def __init__(self, root: Path | str, metrics: str = Suite.metrics, remember: Path | None = None) -> None:
        self.root, self.metrics = Path(root), metrics
        self.rows = RowReader(self.bounds)
        self._checked = stamp.Checked(remember, metrics) if remember else None

    def path(self, config: RunConfig) -> Path:
        """Return the path of a run's record, existing or not."""
        return self.root / self.file(config)

    def file(self, config: RunConfig) -> str:
        """Return this path within the folder."""
        return f"{self.folder(config)}/{run_key(config)}.json"

    def folder(self, config: RunConfig) -> str:
        """Return the folder of a method's records on a data set."""
        return f"{slug(config['dataset']['name'])}/{slug(config['method'])}"

    def has(self, config: RunConfig) -> bool:
        """Return whether there is a file with a run's record."""
        return self.path(config).exists()

    def files(self) -> list[Path]:
        """Return every file with the name of a record, without opening any."""
        return sorted(self.root.glob("*/*/[!.]*.json"), key=lambda path: path.parts)

    def paths(self) -> dict[str, Path]:
        """Return the path of every key. Several files of one name are opened, and only the record counts."""
        paths: dict[str, Path] = {}
        for path in self.files():
            if path.stem not in paths or not self._reads(paths[path.stem]):
                paths[path.stem] = path
        return paths

    def _reads(self, path: Path) -> bool:
        try:
            return self._load(path, HEAD_ONLY) is not None
        except RecordError:
            return False

    def status(self, config: RunConfig, needed: Iterable[str] = ()) -> tuple[str | None, str]:
        """Return 'done', 'stale' or None (no record) for a run, and why it is not complete.

        Stale: a metric has a newer version, or one in ``needed`` is newer than the record. Raises RecordError.
        """
        record = self._head(self.file(config))
        if record is None:
            return None, ""
        versions, known = record["metric_versions"], resolve(self.metrics)
        lacking = sorted(name for name in needed if name in known and name not in versions)
        if lacking:
            return "stale", f"its record lacks {', '.join(lacking)}"
        old = sorted(name for name, version in versions.items() if name in known and version < known[name].version)
        return ("stale", f"its record has an older version of {', '.join(old)}") if old else ("done", "")

    def read(self, path: Path, curves: bool = True) -> Record:
        """Return one record. Raises RecordError: the file, and what to do.

        Without ``curves`` they are not parsed, and the record has none.
        """
        return parse(_existing(path), path, () if curves else ("curves",), self.rows)[0]

    def columns(self, path: Path) -> tuple[Record, Rows, array]:
        """Return one record without curves and metric rows; its rows; their values. Raises RecordError.

        What many records' rows have in common is parsed once, so this is the fast way to read many records.
        """
        return parse(_existing(path), path, HEAD_ONLY, self.rows)

    def curves(self, path: Path) -> Mapping[str, Any]:
        """Return the curves of one record, each parsed when it is looked up.

        Raises RecordError; a curve that is looked up, ValueError if it is damaged.
        """
        data = _existing(path)
        parse(data, path, HEAD_ONLY, self.rows)
        return LazyCurves(data)

    def get(self, config: RunConfig, curves: bool = True) -> Record | None:
        """Return the record of a run, or None. Raises :class:`RecordError`."""
        return self._load(self.path(config), () if curves else ("curves",))

    def beside(self, folder: Path) -> Iterator[Record]:
        """Yield the records of a method on a data set, without curves and metrics, leaving out broken files."""
        for path in sorted(folder.glob("[!.]*.json")):
            with suppress(RecordError):
                yield self.columns(path)[0]

    def records(self, curves: bool = True) -> Iterator[Record | RecordError]:
        """Yield every record, or the error of an invalid one."""
        for path in self.files():
            try:
                yield self.read(path, curves)
            except RecordError as error:
                yield error

    def problems(self) -> dict[str, str]:
        """Return, by path, why a file with the name of a record belongs to no run."""
        reasons = {}
        for path in self.files():
            file = "/".join(path.parts[-3:])
            try:
                self._head(file)
            except RecordError as error:
                reasons[file] = str(error)
        if self._checked:
            self._checked.save()
        return reasons

    def bounds(self, metric: str) -> Bounds:
        """Return the possible values of a metric; unbounded for an unknown metric."""
        about = resolve(self.metrics).get(metric)
        if about is None or not hasattr(about, "range"):
            return Bounds()
        derived = about.entry or metric in COSTS or metric.startswith(("near_", "far_"))
        low, high = about.range
        return Bounds(low, high, about.worst, counts=not derived)

    def version(self, metric: str) -> int:
        """Return the current version of a metric."""
        known = resolve(self.metrics)
        return known[metric].version if metric in known else 1

    def make(self, config: RunConfig, metrics: list[MetricRow], curves: Curves, provenance: Provenance) -> Record:
        """Return a new record of the current schema, without writing it.

        ``metric_versions`` covers all metrics known today: a metric without a row is not defined for the run.
        """
        names = {row["metric"] for row in metrics} | set(resolve(self.metrics))
        return {
            "schema": SCHEMA,
            "metric_versions": {name: self.version(name) for name in sorted(names)},
            "key": run_key(config),
            "config": config,
            "metrics": [cast(MetricRow, {name: cast(Any, row)[name] for name in FIELDS}) for row in metrics],
            "curves": curves,
            "provenance": provenance,
        }

    def write(self, record: Record, around: AbstractContextManager[Any] = nullcontext()) -> Path:
        """Write a record by atomic rename. Raises InvalidRecord and StoreError, and then leaves no file.

        ``around`` is entered directly before the rename, and may raise.
        """
        path = self.path(record["config"])
        text = serialise(record)
        try:  # no reader would accept such a record
            check_form(record["config"])
            data = text.encode()
            rows, values = self.rows.read(data[section(data, "metrics")])
            rows.check(values, record["config"])
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidRecord(str(error)) from error
        try:
            files.write(path, text, around)
        except OSError as error:
            raise StoreError(
                f"{path}: the record cannot be written ({error.strerror or error}): "
                "make room or make the folder writable, then run the same command again"
            ) from error
        return path

    def check_writable(self) -> None:
        """Raise :class:`StoreError` before any computation if records could not be written."""
        try:
            files.write(self.root / ".writable", "")
            (self.root / ".writable").unlink(missing_ok=True)  # other processes may check at the same time
        except OSError as error:
            raise StoreError(
                f"{self.root}: the results folder cannot be written ({error.strerror or error}): "
                "make room or make it writable, or choose another with --results"
            ) from error

    def _head(self, file: str) -> dict[str, Any] | None:
        """Return key and metric versions of the record in a file within the folder. Raises RecordError."""
        known = self._checked
        place = stamp.place(f"{self.root}/{file}") if known else ""
        head = known.get(file, place) if known else None
        if head is None and (data := read_bytes(path := self.root / file)) is not None:
            sha256 = hashlib.sha256(data).hexdigest() if known else ""
            head = known.get(file, sha256) if known else None
            if head is None:
                record = parse(data, path, HEAD_ONLY, self.rows)[0]
                head = {"key": record["key"], "metric_versions": record["metric_versions"]}
            if known:
                known.add(file, sha256, head, place)
        return head

    def _load(self, path: Path, without: tuple[str, ...]) -> Record | None:
        data = read_bytes(path)
        return None if data is None else parse(data, path, without, self.rows)[0]


def read_bytes(path: Path) -> bytes | None:
    """Return the content of a file in the results folder, None if absent. Raises RecordError."""
    try:
        return files.read(path)
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise RecordError(f"{path}: a link to nothing: {WHAT_TO_DO}") from None
        return None
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror}): make it readable, or {WHAT_TO_DO}") from error


def _existing(path: Path) -> bytes:
    data = read_bytes(path)
    if data is None:
        raise RecordError(f"{path}: there is no such file")
    return data
