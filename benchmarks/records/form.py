"""File format of records: serialising, parsing, checking."""

from __future__ import annotations

import hashlib
import json
import math
import re
from array import array
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from benchmarks.errors import BenchmarkError
from benchmarks.records.config import LARGE, check_form, is_external, run_key
from benchmarks.records.rows import DECODER, RowReader, Rows, not_a_number, readable, spelled
from benchmarks.shapes import Record
from fvi_core.printing import in_ascii, message

SCHEMA = 2
SECTIONS = {"config": dict, "metrics": list, "curves": dict, "provenance": dict}
DEPTH = {"config": 2, "metrics": 1, "curves": 1, "provenance": 1}  # depth to which a section is broken into lines
LABELS = {name: (f'\n"{name}": '.encode(), f',\n"{after}": '.encode()) for name, after in pairwise(SECTIONS)}
HEAD_ONLY = ("curves", "metrics")  # sections that are not needed to identify a record
HEAD = re.compile(rb'\{\n"schema": (\d{1,9}),\n')
SHARED = re.compile(  # in the format of serialise
    rb'\{\n"schema": \d{1,9},\n"metric_versions": (\{.*\})'
    rb'(,\n"key": "[\w-]*",\n"config": )(\{\n(?:.*\n)*?\}),\n"metrics": '
)
ENTRIES = frozenset((b"schema", b"metric_versions", b"key", *(name.encode() for name in SECTIONS), b"sha256"))
CURVE = json.JSONDecoder(parse_constant=not_a_number)  # of checked text, where no key is repeated
TAIL = re.compile(rb'"sha256": "([0-9a-f]{64})"\n\}\n\Z')
PROVENANCE_TYPES: dict[str, set[type]] = {
    "commit": {str},
    "dirty": {bool, type(None)},
    "cpu": {str},
    "device": {str},
    "seconds": {int, float},
}
"""Types of the entries of a provenance that tables of records and texts show."""
WHAT_TO_DO = "delete it (or restore it with git) and run the same command again"


class RecordError(BenchmarkError):
    """Error: a file of the results folder is no valid record: truncated, changed, or something else."""


class NewerRecord(RecordError):
    """Raised for a record of a schema that only later code can read."""


class InvalidRecord(BenchmarkError, ValueError):
    """Raised for a record that must not be written: a metric is missing or not finite."""


@cache
def slug(name: str) -> str:
    """Return a name as a folder: ASCII, lower case, hyphens for all but letters, digits, dots and plus signs."""
    return re.sub(r"[^a-z0-9.+]+", "-", in_ascii(name).lower())[:200].strip("-.") or "unnamed"


def serialise(record: Record) -> str:
    """Return the text of a record: a line for every metric row, curve and part. Raises InvalidRecord."""
    for row in record["metrics"]:
        if math.isnan(row["value"]) or (math.isinf(row["value"]) and not is_external(record["config"])):
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

    Sections in ``without`` are returned empty and not parsed; metric rows are checked all the same. Raises
    :class:`RecordError`.
    """
    head = HEAD.match(data)
    if head and int(head[1]) > SCHEMA:
        raise NewerRecord(f"{path}: schema {int(head[1])}, this code reads up to {SCHEMA}: update the code")
    tail = TAIL.search(data, max(0, len(data) - 100))
    if tail is None:
        raise RecordError(f"{path}: not a whole record (no SHA-256 in its last line): {WHAT_TO_DO}")
    digest = hashlib.sha256(memoryview(data)[: tail.start()]).hexdigest()
    if digest.encode() != tail[1]:
        raise RecordError(
            f"{path}: changed since it was written (its SHA-256 is {digest[:8]}..., "
            f"its last line says {tail[1][:8].decode()}...): {WHAT_TO_DO}"
        )
    reader = RowReader() if reader is None else reader
    try:
        if b"\\ud" in data:  # perhaps half of a character, which no output can hold
            json.dumps(DECODER.decode(data.decode()), ensure_ascii=False).encode()
        metrics_text, remainder = _without_metrics(data, "curves" in without)
        shared, remainder = _without_shared(remainder) if head and int(head[1]) == SCHEMA else (None, remainder)
        record: Any = DECODER.decode(remainder.decode())
        if shared:
            record["config"], key = reader.heads.config(shared[1])
            record["metric_versions"] = reader.heads.versions(shared[0])
        if not isinstance(record, dict) or type(record.get("schema")) is not int:
            raise ValueError("no schema")
        for section_name, kind in SECTIONS.items():
            if not isinstance(record.get(section_name), kind):
                raise ValueError(f"{section_name} missing or malformed")
        rows, values = reader.read(metrics_text) if metrics_text else reader.of(readable(record["metrics"]))
        del record["sha256"]
        if record["schema"] != SCHEMA:
            raise ValueError(f"schema {record['schema']}, expected {SCHEMA}")
        if not shared:
            check_form(record["config"])
            key = run_key(record["config"])
        _check(cast(Record, record), key, rows, values)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, MemoryError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else message(error) or type(error).__name__
        raise RecordError(f"{path}: not a record of this project ({reason[:200]}): {WHAT_TO_DO}") from error
    if record["key"] != path.stem:
        raise RecordError(f"{path}: holds the record of key {record['key']!r}, not of its name: {WHAT_TO_DO}")
    config = record["config"]
    folder = slug(config["dataset"]["name"]), slug(config["method"])
    if path.parts[-3:-1] != folder:
        remedy = f": move it there, or {WHAT_TO_DO}"
        if path.parents[2].joinpath(*folder, path.name).exists():
            remedy = ", where another file has its name: delete one of them"
        raise RecordError(f"{path}: is in the wrong folder, expected {'/'.join(folder)}{remedy}")
    record["metrics"] = [] if "metrics" in without else rows.with_values(values)
    return cast(Record, record), rows, values


def section(data: bytes, name: str) -> slice:
    """Return the place of a section's value in a record's bytes, as :func:`serialise` writes it; empty if absent."""
    label, following = LABELS[name]
    start, end = data.find(label), data.rfind(following)
    return slice(start + len(label), end) if 0 < start < end else slice(0, 0)


class LazyCurves(Mapping[str, Any]):
    """Curves in a record's bytes; each is parsed when it is looked up, since figures need few. data: checked before."""

    def __init__(self, data: bytes) -> None:
        text = data[section(data, "curves")]
        lines = [line.removesuffix(b",").partition(b": ") for line in text[2:-2].split(b"\n")] if text[2:] else []
        self._texts = {DECODER.decode(name.decode()): curve for name, _, curve in lines}

    def __getitem__(self, name: str) -> Any:
        return CURVE.decode(self._texts[name].decode())

    def __contains__(self, name: object) -> bool:
        return name in self._texts  # without parsing the curve

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _without_metrics(data: bytes, without_curves: bool) -> tuple[bytes, bytes]:
    """Return the text of a record's metrics, and its bytes without them, optionally without curves too.

    Raises ValueError for a repeated section.
    """
    curves, metrics = section(data, "curves") if without_curves else slice(0, 0), section(data, "metrics")
    if curves.stop:
        _check_keys(data[curves])
        data = data[: curves.start] + b"{}" + data[curves.stop :]
    text = data[metrics]
    return text, data[: metrics.start] + b"[]" + data[metrics.stop :] if text else data


def _check_keys(curves: bytes) -> None:
    """Raise ValueError where the text of curves holds a key twice, or a further section.

    Parses only suspicious text: curves are long, and most readers do not need them.
    """
    pieces = curves.split(b'"')  # outside of strings, inside, outside, ...
    names: set[bytes] = set()
    own: set[bytes] = set()
    plain = b"\\" not in curves
    for before, key, after in zip(pieces[::2], pieces[1::2], pieces[2::2]):
        if after.startswith(b":"):
            line = before.endswith(b"\n")  # the name of a curve, at the start of its line
            if line and key in ENTRIES:
                raise ValueError(f"{key.decode()!r} occurs twice")
            own = set() if line else own
            plain = plain and key not in (names if line else own)
            (names if line else own).add(key)
    if not plain:
        DECODER.decode(curves.decode())


def _without_shared(data: bytes) -> tuple[tuple[bytes, bytes] | None, bytes]:
    """Return the texts of versions and configuration, which many records share, and a record's bytes without them."""
    match = SHARED.match(data)
    if not match:
        return None, data
    versions, between, config = match.groups()
    return (versions, config), data[: match.start(1)] + b"{}" + between + b"{}" + data[match.end(3) :]


def _check(record: Record, key: str, rows: Rows, values: array) -> None:
    """Raise ValueError, KeyError or TypeError unless a record is consistent; key: its configuration's key."""
    config = record["config"]
    if record["key"] != key:
        raise ValueError(f"its configuration has the key {key}, it says {str(record['key'])[:40]!r}")
    versions = record["metric_versions"]
    if not isinstance(versions, dict) or not set(map(type, versions.values())) <= {int}:
        raise ValueError("metric_versions malformed")
    for name, value in record["provenance"].items():
        if type(value) not in PROVENANCE_TYPES.get(name, {type(value)}) or (type(value) is int and abs(value) >= LARGE):
            raise ValueError(f"provenance['{name}'] is {value!r:.80}")
    rows.check(values, config)
