"""Files come from the cache, then mirrors, then URLs. Only a file with the registered SHA-256 is used."""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from fvi_core.printing import message
from fvi_core.spelling import nearest, switched
from fvi_core.telling import plural

from .checks import BadData, DataNotFound, UnknownDataset

Folder = str | os.PathLike | None  # of the file cache; None: $FVI_DATA_CACHE
CACHE_VARIABLE = "FVI_DATA_CACHE"
MIRROR_VARIABLE = "FVI_DATA_MIRROR"
OFFLINE_VARIABLE = "FVI_OFFLINE"  # set on machines without a network, so that commands do not wait for answers
TIMEOUT = 60  # seconds without an answer
ABANDONED = 86400  # seconds in which nothing was written to the part of a download
PATIENCE, PAUSE = 600.0, 0.2  # seconds to wait for another process's download, and between two looks
UNREACHABLE = "cannot be reached"
ABSENT = "not there"

BY_HAND = {"song": "it is made of 1,176 lines of YearPredictionMSD.txt (UCI, data set 203)"}
"""Files without a download address, and how to make them."""


@dataclass(frozen=True)
class File:
    """Registered file: name relative to the cache and to every mirror, SHA-256, size in bytes, URLs."""

    name: str
    sha256: str
    size: int
    urls: tuple[str, ...] = ()


def listed(path: Path) -> list[list[str]]:
    """Return the words of each line of a list, without comments."""
    lines = path.read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


@cache
def registry() -> dict[str, File]:
    """Return all registered files by name, from registry.txt (name, SHA-256, size) and addresses.txt."""
    addresses = {place: templates for place, *templates in listed(Path(__file__).with_name("addresses.txt"))}

    def urls(name: str) -> tuple[str, ...]:
        parts = name.split("/")
        templates = addresses.get(name) or addresses.get(parts[0], [])
        return tuple(f"{address.format(*parts)}/{parts[-1]}" for address in templates)

    rows = listed(Path(__file__).with_name("registry.txt"))
    return {name: File(name, sha256, int(size), urls(name)) for name, sha256, size in rows}


def cache_folder(root: Folder = None) -> Path:
    """Return the folder of fetched files: ``root``, else $FVI_DATA_CACHE, else ~/.cache/fvi-bench.

    A user without a home folder that can be written (in a container, a user id without an account) gets a temporary
    folder, which a warning names.
    """
    chosen = root or os.environ.get(CACHE_VARIABLE)
    if chosen:
        return absolute(chosen)
    usual = Path(os.path.expanduser("~"), ".cache", "fvi-bench")  # "~" stays where no home folder is known
    above = next(folder for folder in (usual, *usual.parents) if os.path.exists(folder))
    if usual.is_absolute() and os.access(above, (os.R_OK if above == usual else os.W_OK) | os.X_OK):
        return usual
    return _temporary(usual)


@cache
def _temporary(usual: Path) -> Path:
    folder = Path(tempfile.gettempdir(), f"fvi-bench-{os.getuid()}")
    why = "cannot be made" if usual.is_absolute() else "is not known: this user has no home folder"
    warnings.warn(
        f"the folder of fetched data, {usual}, {why}; {folder} is used, "
        f"set {CACHE_VARIABLE} to a folder that stays and that you may write",
        stacklevel=3,
    )
    return folder


def mirror_folders() -> list[Path]:
    folders = os.environ.get(MIRROR_VARIABLE, "").split(os.pathsep)
    return [absolute(folder) for folder in folders if folder]


def absolute(path: str | os.PathLike) -> Path:
    """Return the path that a user wrote, with ~ and the current folder filled in."""
    return Path(os.path.abspath(os.path.expanduser(path)))


def users_folder(variable: str) -> Path | None:
    """Return the folder of a user's own data that an environment variable names, or None. Raises BadData for no folder:
    the registered files would take the place of the user's.
    """
    named = os.environ.get(variable)
    if named and not os.path.isdir(absolute(named)):
        raise BadData(f"{variable} is {named!r}: expected a folder of your data, found none; correct it or unset it")
    return absolute(named) if named else None


def locate(name: str, root: Folder = None, download: bool = True) -> Path:
    """Path of the registered file `name`.

    In the cache (`root`, or $FVI_DATA_CACHE, or ~/.cache/fvi-bench), else in a mirror ($FVI_DATA_MIRROR, used
    in place), else downloaded into the cache. A file that does not match is reported and passed over.
    Raises DataNotFound with every place that was tried, UnknownDataset for a name that is not registered.
    """
    if name not in registry():
        raise UnknownDataset(f"no file '{name}' is registered; {nearest(name, registry())}")
    file, target = registry()[name], cache_folder(root) / name
    tried: list[str] = []
    mirrors = mirror_folders()
    for folder in (cache_folder(root), *mirrors):
        fault = check_file(folder / name, file)
        if fault is None:
            return folder / name
        if fault == ABSENT and folder in mirrors and not folder.is_dir():
            tried.append(f"{folder}: no such folder, though {MIRROR_VARIABLE} names it")
            continue
        tried.append(f"{folder / name}: {fault}")
        if fault != ABSENT:
            warnings.warn(f"{folder / name}: {fault}; trying the next place", stacklevel=2)
    if offline():
        tried.append(f"the network: not used, since {OFFLINE_VARIABLE} is set; unset it to download")
    elif download:
        for url in file.urls:
            fault = retrieve(url, file.sha256, target)
            if fault is None:
                return target
            tried.append(f"{url}: {fault}")
        _remove_empty_folders(target.parent, cache_folder(root))
    if name.split("/")[0] in BY_HAND:
        tried.append(f"no address has it: {BY_HAND[name.split('/')[0]]}")
    places = "\n  ".join(tried)
    raise DataNotFound(
        f"file '{name}' was not found. Tried:\n  {places}\n"
        f"Run `make data` on a machine with network access, or copy the file to {target}, "
        f"or set {MIRROR_VARIABLE} to a folder that holds {name} (several: joined by '{os.pathsep}')."
    )


def at_hand(name: str, root: Folder = None) -> bool:
    """Whether a registered file is in the cache or a mirror."""
    try:
        locate(name, root, download=False)
    except DataNotFound:
        return False
    return True


def check_file(path: Path, file: File) -> str | None:
    """Return the fault of `path` as a copy of `file`, in words; None when size and SHA-256 are right."""
    try:
        stat = path.stat()
        if stat.st_size != file.size:
            short = "truncated: " if stat.st_size < file.size else "another file: "
            return f"{short}expected {file.size} bytes, found {stat.st_size}"
        found = sha256(path, stat.st_size, stat.st_mtime_ns)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if found != file.sha256:
        return f"wrong checksum: expected SHA-256 {file.sha256}, found {found}"
    return None


@lru_cache(maxsize=4096)
def sha256(path: Path, size: int, modified: int) -> str:
    """Return the SHA-256 of a file, cached by size and time of change. Raises OSError."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def offline() -> bool:
    """Return whether $FVI_OFFLINE forbids the network. Raises UnfitValue for a word that is neither on nor off."""
    return switched(OFFLINE_VARIABLE)


def retrieve(url: str, sha256: str, target: Path) -> str | None:
    """Download a file of this SHA-256, whole or not at all. Return the fault in words, or None."""
    if not reachable(url):
        return UNREACHABLE
    try:
        import pooch  # here, since cache and mirrors must serve machines without it
    except ImportError:
        return "not tried, the package pooch is not installed"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for part in target.parent.glob("tmp????????"):  # left by a process that was killed while it downloaded
            with suppress(OSError):  # another process may remove it too
                if part.stat().st_mtime < time.time() - ABANDONED:
                    part.unlink()
        pooch.get_logger().setLevel("WARNING")
        # pooch writes beside the target, compares the checksum, and only then renames
        downloader = pooch.HTTPDownloader(timeout=TIMEOUT)
        with _turn(target.parent):  # a file that another process has fetched meanwhile is not fetched again
            pooch.retrieve(url, f"sha256:{sha256}", target.name, target.parent, downloader=downloader)
    except Exception as error:  # after any failure the next place is tried and the reason reported
        if isinstance(error, OSError) and getattr(error, "response", error) is None:  # requests had no answer
            return UNREACHABLE
        return f"{type(error).__name__}: {message(error)[:300]}"
    return None


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Wait until no other process downloads into a folder, at most PATIENCE seconds, and keep others waiting within the
    context. The lock is the folder's own: it leaves no file, and ends with its process.
    """
    descriptor, limit = os.open(folder, os.O_RDONLY), time.monotonic() + PATIENCE
    try:
        with suppress(OSError):  # a file system without locks
            while not _locked(descriptor) and time.monotonic() < limit:
                time.sleep(PAUSE)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def reachable(url: str) -> bool:
    """Whether the host of an address is known here, or a proxy is to know it. Without a network none is."""
    from urllib.request import getproxies  # here, since it loads ssl, and most commands fetch nothing

    return bool(getproxies()) or _known(urlsplit(url).hostname or "localhost")


@cache
def _known(host: str) -> bool:
    with suppress(OSError):
        return bool(socket.getaddrinfo(host, None))
    return False


def _remove_empty_folders(folder: Path, root: Path) -> None:
    while folder != root:
        try:
            folder.rmdir()
        except OSError:  # not empty
            return
        folder = folder.parent


def fetch(
    groups: Mapping[str, Iterable[str]], root: Folder, say: Callable[[str], None], lost: Mapping[str, str] = {}
) -> list[str]:
    """Fetch the files of every group (data set -> file names), with a line on each. Return the incomplete groups.

    lost: why a group is not available that no file of the registry can complete.
    """
    failed = []
    for number, (group, names) in enumerate(groups.items(), start=1):
        names = list(names)
        head, folders, missing = f"[{number}/{len(groups)}] {group}", set(), []
        for name in names:
            try:
                folders.add(str(locate(name, root)).removesuffix(name))
            except DataNotFound as error:
                missing.append(error)
        if group in lost:
            failed.append(group)
            say(f"{head}: NOT AVAILABLE. {lost[group]}")
        elif missing:
            failed.append(group)
            others = f" ({len(missing)} of its {len(names)} files are missing)" if len(missing) > 1 else ""
            say(f"{head}: NOT AVAILABLE. {missing[0]}{others}")
        else:
            found = f"{plural(len(names), 'file')} in {', '.join(sorted(folders))}" if names else "nothing to fetch"
            say(f"{head}: {found}")
    return failed
