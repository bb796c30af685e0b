"""The result store: one JSON file per run, whole or not there.

    results/<data set>/<method>/<key>.json

A file is found by its run's configuration alone; nothing else (job, host, time) enters its name. The last line of a
record is the SHA-256 of what stands before it. Every read recomputes it, and the key from the configuration: a record
that was changed, moved or damaged is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from array import array
from collections.abc import Iterator, Mapping, Set
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

from benchmarks import files
from benchmarks.errors import BenchmarkError, UnknownName
from benchmarks.records.config import check_form, is_brought, run_key
from benchmarks.records.rows import DECODER, FIELDS, Bounds, RowReader, Rows, readable, spelled
from benchmarks.shapes import Curves, MetricRow, Provenance, Record, RunConfig
from benchmarks.suite import Suite, resolve
from fvi_core.printing import in_ascii, message
from fvi_core.spelling import alike

SCHEMA = 2
SECTIONS = {"config": dict, "metrics": list, "curves": dict, "provenance": dict}
DEPTH = {"config": 2, "metrics": 1, "curves": 1, "provenance": 1}  # how far a section is broken into lines
HEAD_ONLY = ("curves", "metrics")  # what telling whose record it is does without
HEAD = re.compile(rb'\{\n"schema": (\d{1,9}),\n')
SHARED = re.compile(  # in the spelling of serialise
    rb'\{\n"schema": \d{1,9},\n"metric_versions": (\{.*\})'
    rb'(,\n"key": "[\w-]*",\n"config": )(\{\n(?:.*\n)*?\}),\n"metrics": '
)
ENTRIES = frozenset((b"schema", b"metric_versions", b"key", *(name.encode() for name in SECTIONS), b"sha256"))
TAIL = re.compile(rb'"sha256": "([0-9a-f]{64})"\n\}\n\Z')
COSTS = ("training_seconds", "peak_memory_bytes")
"""Metrics of a run's cost, never the same twice. The second is in older records only."""
WHAT_TO_DO = "delete it (or restore it with git) and run the same command again"


class RecordError(BenchmarkError):
    """Raised for a file of the results folder that is no record: truncated, changed, or something else."""


class NewerRecord(RecordError):
    """Raised for a record of a schema that only later code can read."""


class InvalidRecord(BenchmarkError, ValueError):
    """Raised for a record that must not be written: a metric is missing or not finite."""


class StoreError(BenchmarkError):
    """Raised if the results folder cannot be written: read only, full, or no folder."""


class Store:
    """The records under a results folder. metrics says where the versions of metrics are ("module:name").

    remember: for one look at many files, ``status`` and ``problems`` together read each once, while it is the same.
    """

    def __init__(self, root: Path | str, metrics: str = Suite.metrics, remember: bool = False) -> None:
        self.root, self.metrics = Path(root), metrics
        self.rows = RowReader(self.bounds)
        self._heads: dict[Path, tuple[tuple[int, int, int], dict[str, Any]]] | None = {} if remember else None

    def path(self, config: RunConfig) -> Path:
        """Return the file of a run's record, there or not."""
        return self.root / slug(config["dataset"]["name"]) / slug(config["method"]) / f"{run_key(config)}.json"

    def files(self) -> list[Path]:
        """Return every file that is named like a record; none is opened."""
        return [path for path in sorted(self.root.glob("*/*/*.json")) if not path.name.startswith(".")]

    def paths(self) -> dict[str, Path]:
        """Return the file of every key. Of several with one name only the record counts, and only those are opened."""
        found: dict[str, Path] = {}
        for path in self.files():
            if path.stem not in found or not self._reads(found[path.stem]):
                found[path.stem] = path
        return found

    def _reads(self, path: Path) -> bool:
        try:
            return self._load(path, HEAD_ONLY) is not None
        except RecordError:
            return False

    def status(self, config: RunConfig, asked: Set[str] = frozenset()) -> tuple[str | None, str]:
        """Return 'done', 'stale' or None (no record) for a run, and why it is not complete.

        Stale: a metric has a newer version, or one that is ``asked`` was not known yet when the record was made.
        Raises RecordError.
        """
        record = self._head(self.path(config))
        if record is None:
            return None, ""
        versions, known = record["metric_versions"], resolve(self.metrics)
        lacking = sorted(name for name in asked if name in known and name not in versions)
        if lacking:
            return "stale", f"its record lacks {', '.join(lacking)}"
        old = sorted(name for name, version in versions.items() if name in known and version < known[name].version)
        return ("stale", f"its record has an older version of {', '.join(old)}") if old else ("done", "")

    def read(self, path: Path, curves: bool = True) -> Record:
        """Return one record. Raises RecordError: the file, and what to do.

        Without ``curves`` they are not parsed, and none are in it.
        """
        record = self._load(path, () if curves else ("curves",))
        if record is None:
            raise RecordError(f"{path}: there is no such file")
        return record

    def get(self, config: RunConfig, curves: bool = True) -> Record | None:
        """Return the record of a run, or None. Raises :class:`RecordError`."""
        return self._load(self.path(config), () if curves else ("curves",))

    def beside(self, folder: Path) -> Iterator[Record]:
        """Yield the records of a method on a data set, without curves and metrics, leaving out broken files."""
        for path in sorted(folder.glob("*.json")):
            with suppress(RecordError):
                record = None if path.name.startswith(".") else self._load(path, HEAD_ONLY)
                if record is not None:
                    yield record

    def find(self, prefix: str) -> Path:
        """Return the only record whose key starts with these digits. Raises UnknownName for none, RecordError for
        several.
        """
        paths = self.paths()
        found = [key for key in paths if key.startswith(prefix.lower())]
        if not found:
            near = ", ".join(alike(prefix.lower(), paths))
            told = f"most alike: {near}" if near else "no key begins like it"
            raise UnknownName(f"unknown key {prefix!r}: {told} (keys are file names under {self.root})")
        if len(found) > 1:
            raise RecordError(f"{len(found)} keys start with {prefix!r}: {', '.join(found[:5])}; give more digits")
        return paths[found[0]]

    def records(self, curves: bool = True) -> Iterator[Record | RecordError]:
        """Yield every record, or the error of one that cannot be used."""
        for path in self.files():
            try:
                yield self.read(path, curves)
            except RecordError as error:
                yield error

    def problems(self) -> dict[str, str]:
        """Return, by path, why a file that is named like a record is not found by any run."""
        found = {}
        for path in self.files():
            try:
                self._head(path)
            except RecordError as error:
                found[str(path.relative_to(self.root))] = str(error)
        return found

    def bounds(self, metric: str) -> Bounds:
        """Return the possible values of a metric; any for a metric that is not known here."""
        about = resolve(self.metrics).get(metric)
        if about is None or not hasattr(about, "range"):
            return Bounds()
        derived = about.entry or metric in COSTS or metric.startswith(("near_", "far_"))
        low, high = about.range
        return Bounds(low, high, about.worst, counts=not derived)

    def version(self, metric: str) -> int:
        """Return the present version of a metric."""
        known = resolve(self.metrics)
        return known[metric].version if metric in known else 1

    def make(self, config: RunConfig, metrics: list[MetricRow], curves: Curves, provenance: Provenance) -> Record:
        """Return a record of the present schema, not yet written.

        ``metric_versions`` are those of all metrics known today: one that has no row is not defined for the run.
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

        ``around`` is entered directly before the record takes its place, where it may raise.
        """
        path = self.path(record["config"])
        text = serialise(record)
        try:  # what no reader would accept is not written
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
        """Raise :class:`StoreError` before anything is computed if records could not be written."""
        try:
            files.write(self.root / ".writable", "")
            (self.root / ".writable").unlink(missing_ok=True)  # others look at the same time
        except OSError as error:
            raise StoreError(
                f"{self.root}: the results folder cannot be written ({error.strerror or error}): "
                "make room or make it writable, or choose another with --results"
            ) from error

    def _head(self, path: Path) -> dict[str, Any] | None:
        """Return key and metric versions of the record in a file. Raises RecordError."""
        try:
            about = path.stat()
        except OSError:
            about = None
        stamp = (about.st_mtime_ns, about.st_size, about.st_ino) if about else (0, 0, 0)
        if self._heads and path in self._heads and self._heads[path][0] == stamp:
            return self._heads[path][1]
        record = self._load(path, HEAD_ONLY)
        if record is None:
            return None
        head = {"key": record["key"], "metric_versions": record["metric_versions"]}
        if self._heads is not None:
            self._heads[path] = stamp, head
        return head

    def _load(self, path: Path, without: tuple[str, ...]) -> Record | None:
        data = read_bytes(path)
        return None if data is None else parse(data, path, without, self.rows)[0]


def read_bytes(path: Path) -> bytes | None:
    """Return the content of a file in the results folder, None where there is none. Raises RecordError."""
    try:
        return files.read(path)
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise RecordError(f"{path}: a link to nothing: {WHAT_TO_DO}") from None
        return None
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror}): make it readable, or {WHAT_TO_DO}") from error


@cache
def slug(name: str) -> str:
    """Return a name as a folder: ASCII, lower case, one hyphen for what is no letter, digit, dot or plus sign."""
    return re.sub(r"[^a-z0-9.+]+", "-", in_ascii(name).lower())[:200].strip("-.") or "unnamed"


def serialise(record: Record) -> str:
    """Return the one spelling of a record: a line for every metric row, curve and part. Raises InvalidRecord."""
    for row in record["metrics"]:
        if math.isnan(row["value"]) or (math.isinf(row["value"]) and not is_brought(record["config"])):
            where = f"{row['metric']} of {row['dataset']}" + (f" ({row['condition']})" if row["condition"] else "")
            raise InvalidRecord(f"{where} is {float(row['value'])}")
    if not record["metrics"]:
        raise InvalidRecord("there are no metrics")
    sections: Mapping[str, Any] = {**record, "metrics": list(map(spelled, record["metrics"]))}
    try:
        body = "{\n" + "".join(
            f'"{name}": {_lines(sections[name], DEPTH.get(name, 0))},\n'
            for name in ("schema", "metric_versions", "key", *SECTIONS)
        )
    except ValueError as error:
        raise InvalidRecord(f"a curve or the provenance holds a number that is not finite ({error})") from error
    return body + f'"sha256": "{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n'


def _lines(value: Any, depth: int) -> str:
    if depth and isinstance(value, dict) and value:
        inner = ",\n".join(f"{json.dumps(str(k))}: {_lines(value[k], depth - 1)}" for k in sorted(value))
        return "{\n" + inner + "\n}"
    if depth and isinstance(value, list) and value:
        return "[\n" + ",\n".join(_lines(item, 0) for item in value) + "\n]"
    return json.dumps(value, allow_nan=False, ensure_ascii=False, default=lambda number: number.item())


def parse(
    data: bytes, path: Path, without: tuple[str, ...] = (), reader: RowReader | None = None
) -> tuple[Record, Rows, array]:
    """Return the record in a file's bytes, its metric rows as columns, and their values.

    Sections ``without`` which the caller does are not parsed, and empty; metric rows are checked all the same.
    Raises :class:`RecordError`.
    """
    head = HEAD.match(data)
    if head and int(head[1]) > SCHEMA:
        raise NewerRecord(f"{path}: schema {int(head[1])}, this code reads up to {SCHEMA}: update the code")
    tail = TAIL.search(data, max(0, len(data) - 100))
    if tail is None:
        raise RecordError(f"{path}: not a whole record (no SHA-256 in its last line): {WHAT_TO_DO}")
    digest = hashlib.sha256(data[: tail.start()]).hexdigest()
    if digest.encode() != tail[1]:
        raise RecordError(
            f"{path}: changed since it was written (its SHA-256 is {digest[:8]}..., "
            f"its last line says {tail[1][:8].decode()}...): {WHAT_TO_DO}"
        )
    reader = RowReader() if reader is None else reader
    try:
        text, rest = _apart(data, "curves" in without)
        same, rest = _same(rest) if head and int(head[1]) == SCHEMA else (None, rest)
        record: Any = DECODER.decode(rest.decode())
        if same:
            record["config"], key = reader.heads.config(same[1])
            record["metric_versions"] = reader.heads.versions(same[0])
        if not isinstance(record, dict) or type(record.get("schema")) is not int:
            raise ValueError("no schema")
        for section_name, kind in SECTIONS.items():
            if not isinstance(record.get(section_name), kind):
                raise ValueError(f"{section_name} missing or malformed")
        rows, values = reader.read(text) if text else reader.of(readable(record["metrics"]))
        del record["sha256"]
        if record["schema"] != SCHEMA:
            raise ValueError(f"schema {record['schema']}, expected {SCHEMA}")
        if not same:
            check_form(record["config"])
            key = run_key(record["config"])
        _check(cast(Record, record), key, rows, values)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, MemoryError) as error:
        told = f"no {error}" if isinstance(error, KeyError) else message(error) or type(error).__name__
        raise RecordError(f"{path}: not a record of this project ({told[:200]}): {WHAT_TO_DO}") from error
    if record["key"] != path.stem:
        raise RecordError(f"{path}: holds the record of key {record['key']!r}, not of its name: {WHAT_TO_DO}")
    config = record["config"]
    folder = slug(config["dataset"]["name"]), slug(config["method"])
    if path.parts[-3:-1] != folder:
        raise RecordError(
            f"{path}: is in the wrong folder, expected {'/'.join(folder)}: move it there, or {WHAT_TO_DO}"
        )
    record["metrics"] = [] if "metrics" in without else rows.with_values(values)
    return cast(Record, record), rows, values


def section(data: bytes, name: str) -> slice:
    """Return where the value of a section stands in a record's bytes, as :func:`serialise` writes it; empty
    if nowhere.
    """
    order, label = list(SECTIONS), f'\n"{name}": '.encode()
    start = data.find(label)
    end = data.rfind(f',\n"{order[order.index(name) + 1]}": '.encode())
    return slice(start + len(label), end) if 0 < start < end else slice(0, 0)


def _apart(data: bytes, without_curves: bool) -> tuple[bytes, bytes]:
    """Return the text of a record's metrics, and its bytes without them, perhaps without curves too.

    Raises ValueError for a section that is there twice.
    """
    curves, metrics = section(data, "curves") if without_curves else slice(0, 0), section(data, "metrics")
    if curves.stop:
        _check_keys(data[curves])
        data = data[: curves.start] + b"{}" + data[curves.stop :]
    text = data[metrics]
    return text, data[: metrics.start] + b"[]" + data[metrics.stop :] if text else data


def _check_keys(curves: bytes) -> None:
    """Raise ValueError where the text of curves holds a key twice, or a further section.

    Only what looks as if it did is parsed: curves are long, and most who look at records do without.
    """
    pieces = curves.split(b'"')  # outside of strings, inside, outside, ...
    names: set[bytes] = set()
    own: set[bytes] = set()
    plain = b"\\" not in curves
    for before, key, after in zip(pieces[::2], pieces[1::2], pieces[2::2]):
        if after.startswith(b":"):
            line = before.endswith(b"\n")  # the name of a curve, which has a line
            if line and key in ENTRIES:
                raise ValueError(f"{key.decode()!r} is there twice")
            own = set() if line else own
            plain = plain and key not in (names if line else own)
            (names if line else own).add(key)
    if not plain:
        DECODER.decode(curves.decode())


def _same(data: bytes) -> tuple[tuple[bytes, bytes] | None, bytes]:
    """The texts of versions and configuration, which many records share, and a record's bytes without them."""
    found = SHARED.match(data)
    if not found:
        return None, data
    versions, between, config = found.groups()
    return (versions, config), data[: found.start(1)] + b"{}" + between + b"{}" + data[found.end(3) :]


def _check(record: Record, key: str, rows: Rows, values: array) -> None:
    """Raise ValueError, KeyError or TypeError unless a record is what it says; key: that of its configuration."""
    config = record["config"]
    if record["key"] != key:
        raise ValueError(f"its configuration has the key {key}, it says {str(record['key'])[:40]!r}")
    versions = record["metric_versions"]
    if not isinstance(versions, dict) or not set(map(type, versions.values())) <= {int}:
        raise ValueError("metric_versions malformed")
    rows.check(values, config)
