"""Read a user's arrays of images: `<folder>/<data set>/<subset>.npz`, with FVI_ARRAYS naming the folder.

The arrays replace the data set's own files. The digest of the file (`content`) and the fingerprint of the data
distinguish different arrays of one name.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np

from fvi_core.spelling import nearest

from .checks import BadData, check_one_label_each, reading, stamped
from .fetch import sha256, users_folder
from .notices import say
from .npy import Header, array, member, read_header

VARIABLE = "FVI_ARRAYS"
NAMES = ("images", "labels")
WRITE_AGAIN = "write it with numpy.savez"


def find(name: str, subset: str) -> Path | None:
    """Return the path of the user's arrays for a subset, or None; the file may turn out unreadable. Raises BadData if
    FVI_ARRAYS names no folder.
    """
    folder = users_folder(VARIABLE)
    if folder is None:
        return None
    path = folder / name / f"{subset}.npz"
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:  # the file may exist; reading it raises the reason
        pass
    return path


def note_unread(names: Collection[str], subsets: Collection[str]) -> None:
    """Say which .npz files of the user's folder belong to no subset of these data sets, or that it has none: registered
    files would take the place of misspelt ones. Raises BadData as :func:`find`.
    """
    folder = users_folder(VARIABLE)
    if folder is None:
        return
    files = sorted(folder.glob("*/*.npz"))
    if not files:
        found = ", ".join(sorted(path.name for path in folder.glob("*"))[:8]) or "nothing"
        above = f"; name {folder.parent}" if folder.name in names else ""
        say(f"note: nothing of {folder} is read: expected <data set>/<subset>.npz in {VARIABLE}, found {found}{above}")
    unread = [path for path in files if path.parent.name not in names or path.stem not in subsets]
    if unread:
        path, own = unread[0], len(unread) > 1
        known, part = (names, path.parent.name) if path.parent.name not in names else (subsets, path.stem)
        say(
            f"note: nothing reads {path}{f' and {len(unread) - 1} more' * own}, expected "
            f"<data set>/<subset>.npz in {VARIABLE}; for {part!r}: {nearest(part, known)}"
        )


def content(subsets: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return digests of the user's arrays among subsets (data set, subset): "<data set>/<subset>" -> 16 digits.

    Digests (SHA-256) are cached until a file changes. Raises BadData for a file that cannot be read.
    """
    digests = {}
    for name, subset in subsets:
        path = find(name, subset)
        if path:
            with reading(path, "a file", WRITE_AGAIN):
                digests[f"{name}/{subset}"] = sha256(*stamped(path, WRITE_AGAIN))[:16]
    return digests


def how(name: str, subset: str, shape: tuple[int, int, int]) -> str:
    """Return in words how to give arrays for a subset."""
    return f"give arrays: set {VARIABLE} to a folder with {name}/{subset}.npz that holds {_forms(shape)} and labels [N]"


def read(path: Path, shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return images uint8 [N, C, H, W] and labels int64 [N]; shape is C, H, W, channels may come last in the file.

    Other arrays in the file are ignored; headers are checked before values are read. Raises BadData.
    """
    with reading(path, "an npz file of plain arrays", WRITE_AGAIN), zipfile.ZipFile(path) as archive:
        stored = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        if not set(NAMES) <= set(stored):
            raise BadData(
                f"{path}: expected the arrays images and labels, found {', '.join(stored) or 'none'}; {WRITE_AGAIN}"
            )
        headers: dict[str, Header] = {}
        for name in NAMES:
            with member(archive, name) as stream:
                headers[name] = read_header(stream)
        about = headers["images"]
        if about.dtype != np.uint8 or about.shape[1:] not in _shapes(shape):
            raise BadData(f"{path}: expected {_forms(shape)}, found {about}")
        check_one_label_each(headers["labels"], about.shape[0], str(path), WRITE_AGAIN)
        images, labels = (array(archive, name) for name in NAMES)
    channels, height, width = shape
    if images.shape[1:] == (height, width, channels) != shape:
        images = images.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(images.reshape(-1, *shape)), labels.astype(np.int64)


def _shapes(shape: tuple[int, int, int]) -> tuple[tuple[int, ...], ...]:
    channels, height, width = shape
    return (shape, (height, width, channels), *(((height, width),) if channels == 1 else ()))


def _forms(shape: tuple[int, int, int]) -> str:
    return "images uint8 " + " or ".join(f"[N, {', '.join(map(str, form))}]" for form in _shapes(shape))
