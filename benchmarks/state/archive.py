"""Archives of what trained runs left in a state folder: zip files, whose members count by digests that are committed.

``artifacts.sha256`` in the folder of records has a line for each file that was packed: its SHA-256 and its name,
``artifacts/<run key>.npz`` or ``parameters/<training key>.npz`` as in the state folder (:mod:`benchmarks.state.kept`).
Nothing else of an archive is believed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import files
from benchmarks.errors import BenchmarkError, UsageError
from benchmarks.records.store import Store
from benchmarks.state import kept
from datasets.fetch import OFFLINE_VARIABLE, cache_folder, offline, retrieve
from fvi_core.printing import message

DIGESTS = "artifacts.sha256"
VARIABLE = "FVI_ARTIFACTS"
ENDING = ".zip"
LINE = re.compile(
    rf"([0-9a-f]{{64}})  ({kept.PREDICTIONS}/[0-9a-f]{{16}}-[0-9a-f]{{8}}\.npz|{kept.PARAMETERS}/[0-9a-f]{{16}}\.npz)"
)
ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^#]+)(?:#(.*))?")
BEHIND = re.compile(r"sha256=([0-9a-f]{64})", re.IGNORECASE)
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can hold
CHUNK = 2**20
AGAIN = "fetch or copy it again, or have it packed again"


class ArchiveError(BenchmarkError):
    """Error: a damaged archive, or a file of it without the committed digest."""


@dataclass
class Fetched:
    """Result of fetching.

    taken: copied files; there: files already in the state folder; problems: files not taken, with the reason.
    """

    taken: int = 0
    there: int = 0
    bytes: int = 0
    removed: int = 0
    problems: list[str] = field(default_factory=list)


def digests(root: Path) -> dict[str, str]:
    """Return the committed SHA-256 of files by name. Raises ArchiveError for another line."""
    path = root / DIGESTS
    if not path.is_file():
        return {}
    lines = [(LINE.fullmatch(line), line) for line in path.read_text("utf-8", "replace").splitlines()]
    for match, line in lines:
        if not match:
            raise ArchiveError(
                f"{path}: expected lines of a SHA-256 and a name, found {line[:100]!r}: restore it with git"
            )
    return {match[2]: match[1] for match, _ in lines if match}


def write_digests(root: Path, known: Mapping[str, str]) -> None:
    """Write the digests, in the order of their names."""
    files.write(root / DIGESTS, "".join(f"{digest}  {name}\n" for name, digest in sorted(known.items())))


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(path: Path, state: Path, names: Iterable[str]) -> None:
    """Write an archive of files of a state folder, whole or not at all; the same files give the same bytes."""
    with files.replacing(path) as out, zipfile.ZipFile(out, "w") as archive:
        for name in sorted(names):
            info = zipfile.ZipInfo(name, EPOCH)
            info.create_system, info.external_attr = 3, (stat.S_IFREG | 0o644) << 16
            info.file_size = (state / name).stat().st_size
            with (state / name).open("rb") as file, archive.open(info, "w") as member:
                shutil.copyfileobj(file, member, CHUNK)


def fetch(
    store: Store,
    state: Path,
    places: Iterable[str],
    keys: set[str] | None = None,
    say: Callable[[str], None] = print,
) -> Fetched:
    """Copy missing files with a committed digest from archives; keys: limit to these runs and trainings.

    places: paths, folders of archives, and addresses "https://...#sha256=...". What is wrong is a problem, and stops no
    other file.
    """
    fetched, known = Fetched(), digests(store.root)
    fetched.problems += for_each(places, lambda path, archive: _take(path, archive, known, keys, state, fetched), say)
    if fetched.taken:
        fetched.removed = kept.bound(state)
    return fetched


def places() -> list[str]:
    """Return the archives that $FVI_ARTIFACTS names: paths, folders and addresses, quoted as in a shell. Raises
    UsageError.
    """
    text = os.environ.get(VARIABLE, "")
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(
            f"{VARIABLE} is {text!r}, expected paths and addresses, quoted as in a shell: {error}"
        ) from error


def for_each(
    places: Iterable[str], use: Callable[[Path, zipfile.ZipFile], None], say: Callable[[str], None] = print
) -> list[str]:
    """Open every archive of paths, folders and addresses for ``use``; return why some could not be used."""
    problems = []
    for place in places:
        try:
            paths = list(located(place, say))
        except (ArchiveError, OSError) as error:
            problems.append(str(error))
            continue
        for path in paths:
            try:
                with reading(path) as archive:
                    use(path, archive)
            except (ArchiveError, OSError) as error:
                problems.append(str(error))
    return problems


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


@contextmanager
def reading(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive. Whatever zipfile makes of damage, in here too, is an ArchiveError."""
    try:
        with open(path, "rb", opener=files.regular) as opened, zipfile.ZipFile(opened) as archive:
            yield archive
    except FileNotFoundError:
        raise ArchiveError(f"{path}: there is no such archive") from None
    except BenchmarkError:
        raise
    except OSError as error:
        raise ArchiveError(f"{path}: cannot be read or copied ({error.strerror or error}): {AGAIN}") from error
    except Exception as error:  # the bytes are anybody's
        reason = message(error)[:200] or type(error).__name__
        raise ArchiveError(
            f"{path}: expected a whole zip file, found a truncated or other one ({reason}): {AGAIN}"
        ) from error


def _take(
    path: Path, archive: zipfile.ZipFile, known: Mapping[str, str], keys: set[str] | None, state: Path, fetched: Fetched
) -> None:
    """Copy the wanted files of an archive."""
    members = [info for info in archive.infolist() if info.filename in known]
    if not members:
        raise ArchiveError(f"{path}: none of its {len(archive.infolist())} files has a digest in {DIGESTS} here")
    for info in members:
        target = state / info.filename
        if keys is not None and target.stem not in keys:
            continue
        if target.exists():
            fetched.there += 1
            continue
        try:
            with files.replacing(target) as out:
                _copy(archive, info, out.write, known[info.filename])
        except (ArchiveError, zipfile.BadZipFile, EOFError) as error:
            fetched.problems.append(f"{path}: {info.filename}: {error}: it was not taken: {AGAIN}")
        else:
            fetched.taken, fetched.bytes = fetched.taken + 1, fetched.bytes + info.file_size


def _copy(archive: zipfile.ZipFile, info: zipfile.ZipInfo, write: Callable[[bytes], int], digest: str) -> None:
    """Copy a member. Raises ArchiveError unless it has the digest; a compressed one is not read."""
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
        raise ArchiveError("expected no compression and no encryption")
    copied = hashlib.sha256()
    with archive.open(info) as member:
        while chunk := member.read(CHUNK):
            copied.update(chunk)
            write(chunk)
    if copied.hexdigest() != digest:
        raise ArchiveError(f"expected the SHA-256 {digest[:12]}... of {DIGESTS}, found {copied.hexdigest()[:12]}...")


def _downloaded(url: str, behind: str | None, say: Callable[[str], None]) -> Path:
    """Return the archive of an address, in the cache; behind: what follows its "#". Raises ArchiveError."""
    match = BEHIND.fullmatch(behind or "")
    if match is None:
        found = repr(behind[:100]) if behind else "none"
        raise ArchiveError(
            f"{url}: expected its SHA-256 behind the address, {url}#sha256=<64 digits>, found {found}: "
            "`artifacts pack` prints it"
        )
    digest = match[1].lower()
    there = cache_folder() / "artifacts" / f"{digest[:16]}{ENDING}"
    if there.exists() and sha256(there) == digest:
        return there
    if offline():
        raise ArchiveError(f"{url}: not fetched, since {OFFLINE_VARIABLE} is set; {there} does not exist")
    say(f"fetching {url}")
    if fault := retrieve(url, digest, there):
        raise ArchiveError(f"{url}: could not be fetched: {fault}")
    return there
