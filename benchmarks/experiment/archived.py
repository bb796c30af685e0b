"""Pack predictions and parameters of committed records into archives, and their digests beside the records.

Whoever commits a digest vouches for the file: it is packed only if it says that it is of the record's training.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.experiment import parameters
from benchmarks.metrics import regression
from benchmarks.records import predictions
from benchmarks.records.config import training_key
from benchmarks.records.form import RecordError, slug
from benchmarks.records.store import Store
from benchmarks.shapes import Record
from benchmarks.state import kept
from benchmarks.state.archive import DIGESTS, ENDING, ArchiveError, digests, sha256, write, write_digests
from fvi_core.metrics import classification
from fvi_core.printing import message

TEST = "test"
CLOSE = 1e-6  # relative: the same predictions measured by another version of NumPy
Ticks = Callable[[int, str], None]


class Foreign(BenchmarkError, ValueError):
    """Error: a file does not belong to the record it claims."""


@dataclass
class Packed:
    """Result of packing.

    written: SHA-256 of the archives; counts: files by folder; missing: run keys without either file; left: why a file,
    or those of an invalid record, were left out.
    """

    written: dict[Path, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    records: int = 0
    missing: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def pack(store: Store, state: Path, out: Path, report: Ticks = lambda *_: None) -> Packed:
    """Write one archive per data set with the state folder's files of recorded runs, and their digests.

    ``report(records done, data set)``. Raises ArchiveError.
    """
    packed, sets, known = Packed(), defaultdict[str, list[Path]](list), digests(store.root)
    for path in store.files():
        sets[path.parts[-3]].append(path)
    for name, paths in sets.items():
        listed: dict[str, str] = {}
        for path in paths:
            try:
                record = store.read(path, curves=False)
            except RecordError as error:
                packed.left.append(str(error))
                continue
            members = dict(_members(record, state, known, packed.left))
            listed |= members
            if not members:
                packed.missing.append(record["key"])
            packed.records += 1
            report(packed.records, name)
        if listed:
            archive = out / f"{slug(name)}{ENDING}"
            try:
                write(archive, state, listed)
                write_digests(store.root, known := known | listed)
            except OSError as error:
                remedy = "make room, or choose another folder with --out"
                raise ArchiveError(f"{archive}: cannot be written ({error.strerror or error}): {remedy}") from error
            packed.written[archive] = sha256(archive)
            packed.counts.update(Path(member).parent.name for member in listed)
            packed.bytes += sum((state / member).stat().st_size for member in listed)
    return packed


def check_predictions(path: Path, record: Record) -> dict[str, predictions.Predictions]:
    """Return the predictions in a file. Raises Foreign unless they have the sets of a record and give its error on the
    test set."""
    try:
        stored = predictions.load(path)
    except predictions.PredictionsError as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise Foreign(f"{path}: expected predictions, found none: {reason}") from error
    sets = record["config"]["evaluation"]["sets"]
    if set(stored) != set(sets):
        raise Foreign(
            f"{path}: expected predictions at the sets {', '.join(sets)}, found {', '.join(stored) or 'none'}"
        )
    dataset, errors = record["config"]["dataset"]["name"], _errors(stored[TEST]) if TEST in stored else {}
    rows = [row for row in record["metrics"] if (row["dataset"], row["condition"]) == (dataset, "")]
    for row in rows:
        value, n = errors.get(row["metric"], (row["value"], row["n"]))
        if n != row["n"] or not math.isclose(value, row["value"], rel_tol=CLOSE, abs_tol=CLOSE):
            raise Foreign(
                f"{path}: its {row['metric']} on the test set is {value:.6g} over {n} points, the record has "
                f"{row['value']:.6g} over {row['n']}: they belong to another training"
            )
    return stored


def check_parameters(path: Path, record: Record) -> None:
    """Raise Foreign unless a file holds the parameters of a record's training."""
    try:
        stored = parameters.read(path, training_key(record["config"]))
    except kept.DAMAGE as error:
        raise Foreign(f"{path}: expected parameters, found none: {message(error)[:200]}") from error
    theirs: Mapping[str, Any] = stored.provenance | {"training_fingerprint": stored.fingerprint}
    ours: Mapping[str, Any] = record["provenance"]
    for name in ("training_fingerprint", "commit", "started", "finished"):
        if name in ours and ours[name] != theirs.get(name):
            raise Foreign(
                f"{path}: expected {name} {ours[name]}, as the record says, found {theirs.get(name)}: of another "
                "training"
            )


def _errors(predicted: predictions.Predictions) -> dict[str, tuple[float, int]]:
    """Return metrics that need no data, by name: value and number of points."""
    if isinstance(predicted, predictions.ClassificationPredictions):
        p, y = np.exp(classification.log_softmax(predicted.logits.astype(np.float64))).mean(0), predicted.given_labels
        return {
            "accuracy": (classification.accuracy(p, y), len(y)),
            "brier": (classification.brier(p, y), len(y)),
        }
    error = regression.squared_error(predicted)
    return {"rmse": (float(np.sqrt(error.mean())) * predicted.y_std, error.size)}


def _members(record: Record, state: Path, known: Mapping[str, str], left: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the state folder's files that belong to a record, with their SHA-256."""
    key = record["key"]
    for path, check in (
        (kept.predictions_path(state, key), check_predictions),
        (kept.parameters_path(state, key), check_parameters),
    ):
        name = f"{path.parent.name}/{path.name}"
        if not path.is_file():
            continue
        try:
            digest = sha256(path)
            if known.get(name, digest) != digest:
                raise Foreign(
                    f"{path}: its SHA-256 is not the one of {DIGESTS}; remove the line there if this file is right"
                )
            check(path, record)
            yield name, digest
        except Foreign as error:
            left.append(str(error))
