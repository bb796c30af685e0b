"""The result store: one JSON file per run, whole or not there.

    results/<data set>/<method>/<key>.json

A file is found by its run's configuration alone; nothing else (job, host, time) enters its name. The last
line of a record is the SHA-256 of what stands before it, so that planning need not parse what is as it was
written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.config import run_key
from benchmarks.errors import BenchmarkError, unknown
from benchmarks.suite import Suite, resolve

SCHEMA = 1
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}  # schema -> function to the next schema
OLD = 3600.0  # seconds after which nobody is still at writing an empty file
SECTIONS = {"config": dict, "metrics": list, "curves": dict, "provenance": dict}
DEPTH = {"config": 2, "metrics": 1, "curves": 1, "provenance": 1}  # how far a section is broken into lines
ROW = ("dataset", "condition", "metric", "value", "n")
HEAD = re.compile(rb'\{\n"schema": (\d+),\n"metric_versions": (\{[^}\n]*\}),\n"key": "([0-9a-f]+)",\n')
TAIL = re.compile(rb'"sha256": "([0-9a-f]{64})"\n\}\n\Z')


class RecordError(BenchmarkError):
    """A file of the results folder that is no record: truncated, corrupt, or something else."""


class NewerRecord(RecordError):
    """A record of a schema that only later code can read."""


class InvalidRecord(BenchmarkError, ValueError):
    """A record that must not be written: a metric that is not finite, or not there."""


class StoreError(BenchmarkError):
    """The results folder cannot be written: read only, full, or no folder."""


class Store:
    """The records under a results folder. metrics says where the versions of metrics are ("module:name")."""

    def __init__(self, root: Path | str, metrics: str = Suite.metrics) -> None:
        self.root, self.metrics = Path(root), metrics

    def path(self, config: dict[str, Any]) -> Path:
        """The file of a run's record, there or not."""
        return (
            self.root / slug(config["dataset"]["name"]) / slug(config["method"]) / f"{run_key(config)}.json"
        )

    def paths(self) -> dict[str, Path]:
        """Every file that is named like a record, by key; none is opened."""
        return {p.stem: p for p in sorted(self.root.glob("*/*/*.json"))}

    def status(self, config: dict[str, Any]) -> str | None:
        """'done', 'stale' (a metric has a newer version), or None without a record. Raises RecordError."""
        path = self.path(config)
        try:
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise RecordError(f"{path}: cannot be read ({error.strerror}): make it readable") from error
        head = HEAD.match(data)
        if head and int(head[1]) == SCHEMA and head[3].decode() == path.stem and untouched(data):
            versions = json.loads(head[2])
        else:
            versions = parse(data, path)["metric_versions"]
        known = resolve(self.metrics)
        newest = {name: known[name].version for name in versions if name in known}
        return "done" if all(version >= newest.get(name, 1) for name, version in versions.items()) else "stale"

    def read(self, path: Path, curves: bool = True) -> dict[str, Any]:
        """One record, upgraded to the present schema. Raises RecordError: the file, and what to do.

        Without curves, those of the record are left out.
        """
        try:
            record = parse(path.read_bytes(), path)
        except OSError as error:
            raise RecordError(f"{path}: cannot be read ({error.strerror})") from error
        return record if curves else record | {"curves": {}}

    def get(self, config: dict[str, Any], curves: bool = True) -> dict[str, Any] | None:
        """The record of a run, or None. Raises :class:`RecordError`."""
        path = self.path(config)
        return self.read(path, curves) if path.exists() else None

    def find(self, prefix: str) -> Path:
        """The one record whose key starts so. Raises UnknownName for none, RecordError for several."""
        paths = self.paths()
        found = [key for key in paths if key.startswith(prefix.lower())]
        if not found:
            raise (
                unknown("key", prefix, paths, f"keys are file names under {self.root}")
                if len(paths) < 20
                else (unknown("key", prefix, [], f"keys are the names of the files under {self.root}"))
            )
        if len(found) > 1:
            raise RecordError(
                f"{len(found)} keys start with {prefix!r}: {', '.join(found[:5])}; give more digits"
            )
        return paths[found[0]]

    def records(self) -> Iterator[dict[str, Any] | RecordError]:
        """Every record; in place of one that cannot be read, the error."""
        for path in self.paths().values():
            try:
                yield self.read(path)
            except RecordError as error:
                yield error

    def version(self, metric: str) -> int:
        """The present version of a metric."""
        known = resolve(self.metrics)
        return known[metric].version if metric in known else 1

    def make(self, config: dict, metrics: list[dict], curves: dict, provenance: dict) -> dict[str, Any]:
        """A record of the present schema, not yet written."""
        return {
            "schema": SCHEMA,
            "metric_versions": {
                name: self.version(name) for name in sorted({row["metric"] for row in metrics})
            },
            "key": run_key(config),
            "config": config,
            "metrics": [{name: row[name] for name in ROW} for row in metrics],
            "curves": curves,
            "provenance": provenance,
        }

    def write(self, record: dict[str, Any]) -> Path:
        """Write a record by atomic rename. Raises InvalidRecord and StoreError, and then leaves no file."""
        path = self.path(record["config"])
        text = serialise(record)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            for left in path.parent.glob(f".{path.stem}.*.tmp"):  # of a writer that was killed
                left.unlink(missing_ok=True)
            write_atomic(path, text)
        except OSError as error:
            raise StoreError(
                f"{path}: the record cannot be written ({error.strerror or error}): "
                "make room or make the folder writable, then run the same command again"
            ) from error
        return path

    def check_writable(self) -> None:
        """Raise :class:`StoreError` before anything is computed if records could not be written."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            write_atomic(self.root / ".writable", "")
            with contextlib.suppress(FileNotFoundError):  # others look at the same time
                now = (self.root / ".writable").stat().st_mtime
                (self.root / ".writable").unlink()
                for left in self.root.glob("..writable.*.tmp"):
                    if now - left.stat().st_mtime > OLD:  # of a process that was killed
                        left.unlink()
        except OSError as error:
            raise StoreError(
                f"{self.root}: the results folder cannot be written ({error.strerror or error}): "
                "make room or make it writable, or choose another with --results"
            ) from error


def slug(name: str) -> str:
    """A name as a folder: lower case, one hyphen for everything that is not a letter, digit or dot."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "unnamed"


def serialise(record: dict[str, Any]) -> str:
    """The one spelling of a record: a line for every metric row, curve and part. Raises InvalidRecord."""
    for row in record["metrics"]:
        if not math.isfinite(row["value"]):
            where = f"{row['metric']} of {row['dataset']}" + (
                f" ({row['condition']})" if row["condition"] else ""
            )
            raise InvalidRecord(f"{where} is {float(row['value'])}")
    if not record["metrics"]:
        raise InvalidRecord("there are no metrics")
    try:
        body = "{\n" + "".join(
            f'"{name}": {_lines(record[name], DEPTH.get(name, 0))},\n'
            for name in ("schema", "metric_versions", "key", *SECTIONS)
        )
    except ValueError as error:
        raise InvalidRecord(
            f"a curve or the provenance holds a number that is not finite ({error})"
        ) from error
    return body + f'"sha256": "{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n'


def _lines(value: Any, depth: int) -> str:
    if depth and isinstance(value, dict) and value:
        inner = ",\n".join(f"{json.dumps(str(k))}: {_lines(value[k], depth - 1)}" for k in sorted(value))
        return "{\n" + inner + "\n}"
    if depth and isinstance(value, list) and value:
        return "[\n" + ",\n".join(_lines(item, 0) for item in value) + "\n]"
    return json.dumps(value, allow_nan=False, ensure_ascii=False, default=lambda number: number.item())


def untouched(data: bytes) -> bool:
    """Whether a record's bytes are those that were written."""
    tail = TAIL.search(data, max(0, len(data) - 100))
    return bool(tail) and hashlib.sha256(data[: tail.start()]).hexdigest().encode() == tail[1]


def parse(data: bytes, path: Path) -> dict[str, Any]:
    """The record in a file's bytes, upgraded to the present schema. Raises :class:`RecordError`."""
    what_to_do = "delete it (or restore it with git) and run the same command again"
    try:
        record = json.loads(data)
    except ValueError as error:
        raise RecordError(f"{path}: not a whole record ({error}): {what_to_do}") from error
    if not isinstance(record, dict) or not isinstance(record.get("schema"), int):
        raise RecordError(f"{path}: not a record of this project (no schema): {what_to_do}")
    record = upgrade(record, path)
    wrong = [name for name, kind in SECTIONS.items() if not isinstance(record.get(name), kind)]
    if wrong or not all(isinstance(row, dict) and set(ROW) <= set(row) for row in record["metrics"]):
        raise RecordError(f"{path}: {', '.join(wrong) or 'a metric row'} missing or malformed: {what_to_do}")
    if record.get("key") != path.stem:
        raise RecordError(
            f"{path}: holds the record of key {record.get('key')!r}, not of its name: {what_to_do}"
        )
    record.setdefault("metric_versions", {row["metric"]: 1 for row in record["metrics"]})
    return record


def upgrade(record: dict[str, Any], path: Path, schema: int | None = None, upgrades=None) -> dict[str, Any]:
    """A record of an older schema as the present one. Raises :class:`NewerRecord`."""
    schema, upgrades = schema or SCHEMA, UPGRADES if upgrades is None else upgrades
    if record["schema"] > schema:
        raise NewerRecord(
            f"{path}: schema {record['schema']}, this code reads up to {schema}: update the code"
        )
    while record["schema"] < schema:
        before = record["schema"]
        record = upgrades[before](record)
        if record["schema"] <= before:
            raise ValueError(f"the upgrade of schema {before} gave schema {record['schema']}")
    return record


def write_atomic(path: Path, text: str) -> None:
    """Write a text file whole or not at all: temporary file beside it, fsync, rename. Raises OSError."""
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
