"""Archives of predictions and parameters from a state folder: written with checksums, read as if hostile.

An archive is a zip file without compression: ``artifacts/<run key>.npz`` and ``parameters/<training key>.npz`` as in
the state folder (:mod:`benchmarks.state.kept`), and ``manifest.json`` with the SHA-256 and size of each file and, by
run key, the run's files and its record's provenance. The same content gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
import struct
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks import files
from benchmarks.errors import BenchmarkError
from benchmarks.state.kept import PARAMETERS, PREDICTIONS
from fvi_core.printing import message

FORMAT = 1
MANIFEST = "manifest.json"
MEMBER = re.compile(rf"{PREDICTIONS}/[0-9a-f]{{16}}-[0-9a-f]{{8}}\.npz|{PARAMETERS}/[0-9a-f]{{16}}\.npz")
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can hold
CHUNK = 2**20
LARGEST = 2**26  # most bytes of a manifest
AGAIN = "fetch or copy it again, or have it packed again"


class Sink(Protocol):
    """Object that bytes are written to."""

    def write(self, chunk: bytes, /) -> int: ...


class ArchiveError(BenchmarkError):
    """Error: an archive is damaged or holds unexpected files; nothing is extracted from the file it names."""


@dataclass(frozen=True)
class Manifest:
    """files: SHA-256 and size by name; records: by run key, its "files" and provenance ("made")."""

    files: Mapping[str, tuple[str, int]]
    records: Mapping[str, Mapping[str, Any]]

    def text(self) -> str:
        """JSON text, unique for the content."""
        listed = {name: {"sha256": digest, "bytes": size} for name, (digest, size) in self.files.items()}
        told = {"format": FORMAT, "files": listed, "records": dict(self.records)}
        return json.dumps(told, sort_keys=True, indent=1, allow_nan=False) + "\n"

    @property
    def bytes(self) -> int:
        """Total bytes of the files."""
        return sum(size for _, size in self.files.values())


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(path: Path, manifest: Manifest, source: Callable[[str], Path]) -> bool:
    """Write an archive whole or not at all; return False where it exists already. source: the path of each name.

    Raises OSError, and ArchiveError for a file that changes while it is copied.
    """
    text = manifest.text()
    if _holds(path, text):
        return False
    with files.replacing(path) as out, zipfile.ZipFile(out, "w") as archive:
        archive.writestr(_info(MANIFEST), text)
        for name, (digest, size) in sorted(manifest.files.items()):
            info, found = _info(name), hashlib.sha256()
            info.file_size = size
            with source(name).open("rb") as file, archive.open(info, "w") as member:
                while chunk := file.read(CHUNK):
                    found.update(chunk)
                    member.write(chunk)
            if found.hexdigest() != digest:
                raise ArchiveError(f"{source(name)}: changed while it was packed: pack again")
    return True


class Archive:
    """Archive open for reading. Its list of files is checked when it is opened, each file when it is copied."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self._zip = path, archive
        self.manifest = self._manifest()
        self._check_names()

    def copy(self, name: str, out: Sink) -> None:
        """Copy a file. Raises ArchiveError if it differs from the manifest; discard the output then."""
        digest, size = self.manifest.files[name]
        found, count = hashlib.sha256(), 0
        for chunk in self._chunks(name):
            count += len(chunk)
            if count > size:
                break
            found.update(chunk)
            out.write(chunk)
        if count != size or found.hexdigest() != digest:
            raise ArchiveError(
                f"{self.path}: {name}: expected the SHA-256 {digest[:12]}... of its manifest, found "
                f"{found.hexdigest()[:12]}... ({size} bytes expected): it is damaged: {AGAIN}"
            )

    def _chunks(self, name: str) -> Iterator[bytes]:
        with _told(self.path, name), self._zip.open(name) as member:
            while chunk := member.read(CHUNK):
                yield chunk

    def _manifest(self) -> Manifest:
        try:
            info = self._zip.getinfo(MANIFEST)
        except KeyError:
            raise ArchiveError(
                f"{self.path}: expected {MANIFEST} in it, found none: it is truncated, or no archive of `benchmarks "
                f"artifacts pack`: {AGAIN}"
            ) from None
        if info.file_size > LARGEST or info.compress_type != zipfile.ZIP_STORED:
            raise ArchiveError(
                f"{self.path}: {MANIFEST}: expected at most {LARGEST} bytes without compression: {AGAIN}"
            )
        with _told(self.path, MANIFEST):
            told = files.parse(self._zip.read(info))
            if told["format"] != FORMAT:
                raise ArchiveError(f"{self.path}: format {told['format']!r}, this code reads {FORMAT}: update the code")
            listed = {str(name): (str(each["sha256"]), int(each["bytes"])) for name, each in told["files"].items()}
            runs = {
                str(key): {"made": dict(about["made"]), "files": [str(name) for name in about["files"]]}
                for key, about in told["records"].items()
            }
            for key, about in runs.items():
                for name in set(about["files"]) - set(listed):
                    raise ValueError(f"run {key[:40]} has {name[:80]!r}, which it does not list")
            return Manifest(listed, runs)

    def _check_names(self) -> None:
        """Raise ArchiveError unless the archive holds exactly the manifest's files, and only plain files."""
        infos = self._zip.infolist()
        names = Counter(info.filename for info in infos)
        for info in infos:
            wrong = self._wrong(info)
            if wrong:
                raise ArchiveError(f"{self.path}: {info.filename[:100]!r}: {wrong}: nothing was taken from it")
        twice = {name for name, count in names.items() if count > 1}
        absent = set(self.manifest.files) - set(names)
        if twice or absent:
            what = (
                f"{min(twice)!r} is in it twice" if twice else f"its manifest names {min(absent)[:100]!r}, it lacks it"
            )
            raise ArchiveError(f"{self.path}: {what}: nothing was taken from it: {AGAIN}")

    def _wrong(self, info: zipfile.ZipInfo) -> str:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG) or info.is_dir():
            return "expected plain files, found a link, a folder or something else"
        if info.filename == MANIFEST:
            return ""
        if not MEMBER.fullmatch(info.filename):
            return "expected artifacts/<run key>.npz or parameters/<training key>.npz"
        if info.filename not in self.manifest.files:
            return "its manifest does not name it"
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            return "expected no compression and no encryption"
        size = self.manifest.files[info.filename][1]
        return "" if info.file_size == size else f"expected {size} bytes, found {info.file_size}"


@contextmanager
def reading(path: Path) -> Iterator[Archive]:
    """Open an archive. Raises ArchiveError: the file, what was expected, and what to do."""
    with ExitStack() as stack:
        with _told(path):
            opened = stack.enter_context(open(path, "rb", opener=files.regular))
            archive = stack.enter_context(zipfile.ZipFile(opened))
        yield Archive(path, archive)


@contextmanager
def _told(path: Path, name: str = "") -> Iterator[None]:
    """Turn any of zipfile's errors into ArchiveError."""
    where = f"{path}: {name}" if name else f"{path}"
    try:
        yield
    except FileNotFoundError:
        raise ArchiveError(f"{where}: there is no such archive") from None
    except (zipfile.BadZipFile, EOFError, struct.error, NotImplementedError, RuntimeError) as error:
        raise ArchiveError(
            f"{where}: expected a whole zip file, found a truncated or other one ({error}): {AGAIN}"
        ) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = message(error)[:200] or type(error).__name__
        raise ArchiveError(
            f"{where}: expected an archive of `benchmarks artifacts pack`, found another file ({reason}): {AGAIN}"
        ) from error
    except OSError as error:
        if error.filename is not None and Path(error.filename) != path:
            raise
        raise ArchiveError(f"{where}: cannot be read ({error.strerror or error}): {AGAIN}") from error


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, EPOCH)
    info.create_system, info.external_attr = 3, (stat.S_IFREG | 0o644) << 16
    return info


def _holds(path: Path, manifest: str) -> bool:
    """Whether a whole archive with this manifest exists."""
    try:
        with reading(path) as found:
            if found.manifest.text() != manifest:
                return False
            for name in found.manifest.files:
                found.copy(name, _Nowhere())
    except ArchiveError:
        return False
    return True


class _Nowhere:
    """Sink for checks, which discards all bytes."""

    def write(self, chunk: bytes, /) -> int:
        return len(chunk)
