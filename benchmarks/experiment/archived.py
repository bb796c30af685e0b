"""Archives of predictions and parameters of committed records: packed by the owner, fetched on a fresh clone.

A file belongs to a record if it says so and its numbers agree with the record's; both are checked when it is packed and
when it is fetched.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import files
from benchmarks.errors import BenchmarkError, UsageError
from benchmarks.experiment import parameters
from benchmarks.metrics import regression
from benchmarks.records import predictions
from benchmarks.records.config import run_key, training_key
from benchmarks.records.form import RecordError, slug
from benchmarks.records.store import Store
from benchmarks.shapes import Record, RunConfig
from benchmarks.state import kept
from benchmarks.state.archive import Archive, ArchiveError, Manifest, reading, sha256, write
from datasets.fetch import OFFLINE_VARIABLE, TIMEOUT, cache_folder
from fvi_core.metrics import classification
from fvi_core.printing import message

VARIABLE = "FVI_ARTIFACTS"
ORIGIN = ("commit", "started", "finished", "fingerprint", "training_fingerprint", "data")
"""Entries of a record's provenance on the origin of its training and predictions."""
ENDING, SUMS = ".zip", "SHA256SUMS"
ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*://[^#]+)(?:#sha256=([0-9a-f]{64}))?")
TEST = "test"
CLOSE = 1e-6  # relative tolerance: NumPy versions differ by this much on the same predictions
Ticks = Callable[[int, str], None]


class Foreign(BenchmarkError, ValueError):
    """Error: a file does not belong to the record it claims."""


@dataclass
class Packed:
    """Result of packing.

    written: the archives and their SHA-256; unchanged: archives that stay; counts: files by folder; missing: run keys
    without either file; left: why a file was left out.
    """

    written: dict[Path, str] = field(default_factory=dict)
    unchanged: dict[Path, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    records: int = 0
    missing: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


@dataclass
class Fetched:
    """Result of fetching.

    taken: copied files; there: files already in the state folder; problems: files not taken, with the reason.
    """

    taken: int = 0
    there: int = 0
    bytes: int = 0
    gone: int = 0
    problems: list[str] = field(default_factory=list)


def pack(store: Store, state: Path, out: Path, report: Ticks = lambda *_: None) -> Packed:
    """Write one archive per data set with the state folder's files of recorded runs.

    ``report(records done, data set)``. Raises ArchiveError, and RecordError for a record that cannot be read.
    """
    found, sets, done = Packed(), defaultdict[str, list[Path]](list), 0
    for path in store.files():
        sets[path.parts[-3]].append(path)
    for name, paths in sets.items():
        listed: dict[str, tuple[str, int]] = {}
        origins: dict[str, Mapping[str, Any]] = {}
        for path in paths:
            record = store.read(path, curves=False)
            own = dict(_own(record, state, found.left))
            listed |= own
            if own:
                origins[record["key"]] = {"made": origin(record), "files": sorted(own)}
            else:
                found.missing.append(record["key"])
            done, found.records = done + 1, found.records + 1
            report(done, name)
        if listed:
            archive = out / f"{slug(name)}{ENDING}"
            try:
                made = write(archive, Manifest(listed, origins), lambda member: state / member)
            except OSError as error:
                what = "make room, or choose another folder with --out"
                raise ArchiveError(f"{archive}: cannot be written ({error.strerror or error}): {what}") from error
            (found.written if made else found.unchanged)[archive] = sha256(archive)
            found.counts.update(Path(member).parent.name for member in listed)
            found.bytes += sum(size for _, size in listed.values())
    sums = sorted((path.name, digest) for path, digest in {**found.written, **found.unchanged}.items())
    if sums:
        files.write(out / SUMS, "".join(f"{digest}  {name}\n" for name, digest in sums))
    return found


def fetch(
    store: Store,
    state: Path,
    places: Iterable[str],
    configs: list[RunConfig] | None = None,
    say: Callable[[str], None] = print,
) -> Fetched:
    """Copy missing files of recorded runs from archives; configs: limit to these runs and trainings.

    places: paths, folders of archives, and addresses "https://...#sha256=...". A wrong file is listed as a problem and
    stops no other; a damaged archive whose files cannot be separated gives nothing.
    """
    found, records = Fetched(), _Records(store)
    asked = None if configs is None else {run_key(c) for c in configs} | {training_key(c) for c in configs}
    for place in places:
        try:
            for path in located(place, say):
                with reading(path) as archive:
                    _take(archive, records, state, asked, found)
        except (ArchiveError, OSError) as error:
            found.problems.append(str(error))
    if found.taken:
        found.gone = kept.bound(state)
    return found


def places() -> list[str]:
    """Return the archives that $FVI_ARTIFACTS names: paths, folders and addresses, quoted as in a shell. Raises
    UsageError.
    """
    given = os.environ.get(VARIABLE, "")
    try:
        return shlex.split(given)
    except ValueError as error:
        raise UsageError(
            f"{VARIABLE} is {given!r}, expected paths and addresses, quoted as in a shell: {error}"
        ) from error


def located(place: str, say: Callable[[str], None] = print) -> Iterator[Path]:
    """Yield the archives of a path, a folder or an address; downloads go to the cache of data.

    Raises ArchiveError.
    """
    address = ADDRESS.fullmatch(place)
    if address:
        yield _downloaded(address[1], address[2], say)
        return
    path = Path(os.path.expanduser(place))
    listed = sorted(path.glob(f"*{ENDING}")) if path.is_dir() else [path]
    if not listed:
        raise ArchiveError(f"{path}: expected archives, *{ENDING}, found none in this folder")
    yield from listed


def origin(record: Record) -> dict[str, Any]:
    """Return a record's provenance without later re-measurements."""
    about: Mapping[str, Any] = record["provenance"]
    return {name: about[name] for name in ORIGIN if name in about}


def check_predictions(path: Path, record: Record) -> None:
    """Raise Foreign unless a file has the sets of a record and gives its error on the test set."""
    try:
        found = predictions.load(path)
    except predictions.PredictionsError as error:
        raise Foreign(f"expected predictions, found none: {str(error).removeprefix(f'{path}: ')}") from error
    asked = record["config"]["evaluation"]["sets"]
    if set(found) != set(asked):
        raise Foreign(f"expected predictions at the sets {', '.join(asked)}, found {', '.join(found) or 'none'}")
    if TEST not in found:
        return
    named, here = record["config"]["dataset"]["name"], _errors(found[TEST])
    rows = [row for row in record["metrics"] if (row["dataset"], row["condition"]) == (named, "")]
    for row in rows:
        value, n = here.get(row["metric"], (row["value"], row["n"]))
        if n != row["n"] or not math.isclose(value, row["value"], rel_tol=CLOSE, abs_tol=CLOSE):
            raise Foreign(
                f"its {row['metric']} on the test set is {value:.6g} over {n} points, the record has "
                f"{row['value']:.6g} over {row['n']}: they belong to another training"
            )


def check_parameters(path: Path, record: Record) -> None:
    """Raise Foreign unless a file holds the parameters of a record's training."""
    try:
        found = parameters.read(path, training_key(record["config"]))
    except parameters.DAMAGE as error:
        raise Foreign(f"expected parameters, found none: {message(error)[:200]}") from error
    theirs: Mapping[str, Any] = found.provenance | {"training_fingerprint": found.fingerprint}
    ours: Mapping[str, Any] = record["provenance"]
    for name in ("training_fingerprint", "commit", "started", "finished"):
        if name in ours and ours[name] != theirs.get(name):
            raise Foreign(
                f"expected {name} {ours[name]}, as the record says, found {theirs.get(name)}: of another training"
            )


def _errors(found: predictions.Predictions) -> dict[str, tuple[float, int]]:
    """Return metrics that need no data, by name: value and number of points."""
    if isinstance(found, predictions.ClassificationPredictions):
        p, y = np.exp(classification.log_softmax(found.logits.astype(np.float64))).mean(0), found.given_labels
        return {
            "accuracy": (classification.accuracy(p, y), len(y)),
            "brier": (classification.brier(p, y), len(y)),
        }
    error = regression.squared_error(found)
    return {"rmse": (float(np.sqrt(error.mean())) * found.y_std, error.size)}


def _own(record: Record, state: Path, left: list[str]) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yield the state folder's files that belong to a record, with SHA-256 and size."""
    for path, check in _places(state, record["key"]):
        if not path.is_file():
            continue
        try:
            check(path, record)
            yield f"{path.parent.name}/{path.name}", (sha256(path), path.stat().st_size)
        except Foreign as error:
            left.append(f"{path}: {error}")


def _places(state: Path, key: str) -> Iterator[tuple[Path, Callable[[Path, Record], None]]]:
    """Yield the paths of a run's files, existing or not, with the check that a file belongs to the record."""
    yield kept.predictions_path(state, key), check_predictions
    yield kept.parameters_path(state, key), check_parameters


def _take(archive: Archive, records: _Records, state: Path, asked: set[str] | None, found: Fetched) -> None:
    """Copy the wanted files of an archive. Raises ArchiveError if none of its records is here."""
    known = {key: record for key in archive.manifest.records if (record := records.get(key)) is not None}
    if not known:
        raise ArchiveError(
            f"{archive.path}: none of the {len(archive.manifest.records)} runs of its manifest has a record in "
            f"{records.store.root}: it belongs to other results"
        )
    seen: set[str] = set()  # runs share the parameters of their training
    for key, record in known.items():
        told = archive.manifest.records[key]
        for path, check in _places(state, key):
            name = f"{path.parent.name}/{path.name}"
            if name not in told["files"] or name in seen or (asked is not None and path.stem not in asked):
                continue
            seen.add(name)
            if path.exists():
                found.there += 1
                continue
            try:
                _check_origin(told["made"], record)
                with files.replacing(path) as out:
                    archive.copy(name, out)
                    out.flush()
                    check(Path(out.name), record)
            except Foreign as error:
                found.problems.append(f"{archive.path}: {name}: {error}: it was not taken")
            except ArchiveError as error:  # the message names both
                found.problems.append(f"{error}: it was not taken")
            else:
                found.taken, found.bytes = found.taken + 1, found.bytes + archive.manifest.files[name][1]


def _check_origin(told: Mapping[str, Any], record: Record) -> None:
    here = origin(record)
    for name in ORIGIN:
        if told.get(name) != here.get(name):
            raise Foreign(
                f"its manifest says {name} {str(told.get(name))[:80]}, the record here {str(here.get(name))[:80]}: "
                "they belong to another training, or to other data"
            )


class _Records:
    """Cache of records by key, each read once; None for a key without a record here."""

    def __init__(self, store: Store) -> None:
        self.store, self._paths = store, store.paths()

    def get(self, key: str) -> Record | None:
        try:
            return self.store.read(self._paths[key], curves=False) if key in self._paths else None
        except RecordError:
            return None


def _downloaded(url: str, digest: str | None, say: Callable[[str], None]) -> Path:
    """Return the archive of an address, in the cache. Raises ArchiveError."""
    if digest is None:
        raise ArchiveError(
            f"{url}: expected its SHA-256 behind the address, {url}#sha256=<64 digits>, found none: `artifacts pack` "
            f"writes it to {SUMS}"
        )
    folder, name = cache_folder() / "artifacts", f"{digest[:16]}{ENDING}"
    there = folder / name
    if there.exists() and sha256(there) == digest:
        return there
    if os.environ.get(OFFLINE_VARIABLE):
        raise ArchiveError(f"{url}: not fetched, since {OFFLINE_VARIABLE} is set; {there} does not exist")
    import pooch  # pooch is needed for downloads only

    say(f"fetching {url}")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        # Writes beside the target, compares the checksum, and only then renames.
        downloader = pooch.HTTPDownloader(timeout=TIMEOUT)
        pooch.retrieve(url, known_hash=f"sha256:{digest}", fname=name, path=folder, downloader=downloader)
    except Exception as error:  # any error is the reason
        raise ArchiveError(f"{url}: could not be fetched: {type(error).__name__}: {message(error)[:300]}") from error
    return there
