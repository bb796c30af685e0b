"""Errors of the data layer and the checks that raise them: where, what was expected, what was found."""

from __future__ import annotations

import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from fvi_core.printing import message

from .contract import Arrays, Split
from .npy import Header

GET_AGAIN = "delete it and fetch it again (`make data`), or correct its source folder"
WHOLE = "iu"  # kinds of dtype; np.timedelta64 is a subtype of np.integer


class UnknownDataset(KeyError):
    """No data set of that name."""

    __str__ = Exception.__str__  # KeyError would print the message as a quoted key


class UnknownSplit(ValueError):
    """The data set has no such split or scheme."""


class BadData(ValueError):
    """Error: a file or array does not have the contents that its data set requires."""


class DataNotFound(FileNotFoundError):
    """A file is in none of the places where it was looked for."""

    __str__ = Exception.__str__


@contextmanager
def reading(where: Path | str, expected: str, remedy: str = GET_AGAIN) -> Iterator[None]:
    """Turn any exception of a file's reader into BadData, since readers' errors on damaged files are undocumented."""
    try:
        yield
    except BadData:
        raise
    except Exception as error:
        found = f"{type(error).__name__}: {message(error)[:300]}"
        raise BadData(f"{where}: expected {expected}, found: {found}; {remedy}") from error


def decoded(path: Path) -> str:
    """Return the text of a UTF-8 file, or of a UTF-16 file with a byte-order mark, without the mark.

    Composed and decomposed accents become the same characters. Raises ValueError for other encodings and zero bytes.
    """
    content = path.read_bytes()
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        error.reason += "; save the file as text in UTF-8"
        raise
    if "\0" in text:
        raise ValueError("zero bytes, as in UTF-16 without a byte-order mark; save the file as UTF-8")
    return unicodedata.normalize("NFC", text)


def stamped(path: Path, remedy: str = GET_AGAIN) -> tuple[Path, int, int]:
    """Return the path with its file's size and time of change, a key for caches of its content. Raises BadData."""
    with reading(path, "a file", remedy):
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # a pipe would be waited for
            raise IsADirectoryError("a folder") if stat.S_ISDIR(about.st_mode) else OSError("no regular file")
        return path, about.st_size, about.st_mtime_ns


def read_table(path: Path, rows: int, columns: int, separator: str | None = None, skip: int = 0) -> np.ndarray:
    """Return the numbers of a text file, [rows, columns] float64, after `skip` lines. Raises BadData.

    Columns are separated by white space, or by `separator`.
    """
    with reading(path, f"a table of {rows} rows and {columns} columns"):
        text = path.read_text(encoding="utf-8")
        values = np.loadtxt(text.splitlines()[skip:], comments=None, delimiter=separator, ndmin=2)
        if values.shape != (rows, columns):
            raise ValueError(f"{len(values)} rows and {values.shape[1]} columns")
    check_finite(values, str(path))
    return values


def read_indices(path: Path, below: int, remedy: str = GET_AGAIN) -> np.ndarray:
    """Return row numbers, int64, of a text file. Raises BadData unless they are distinct and in [0, below)."""
    with reading(path, "row numbers", remedy):
        values = np.array([float(word) for word in decoded(path).split()])
    wrong = values[~((values >= 0) & (values < below) & (values == np.floor(values)))]
    if len(values) == 0 or len(wrong):
        found = f"{wrong[0]:g}" if len(wrong) else "an empty file"
        raise BadData(f"{path}: expected row numbers from 0 to {below - 1}, found {found}; {remedy}")
    repeated = len(values) - len(np.unique(values))
    if repeated:
        raise BadData(f"{path}: expected distinct row numbers, found {repeated} repeated; {remedy}")
    return values.astype(np.int64)


def check_finite(values: np.ndarray, where: str, remedy: str = GET_AGAIN) -> None:
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        first = ", ".join(str(i) for i in bad[0])
        found = f"found {values[tuple(bad[0])]} at [{first}] ({len(bad)} in all)"
        raise BadData(f"{where}: expected finite numbers, {found}; {remedy}")


def check_one_label_each(labels: np.ndarray | Header, n: int, where: str, remedy: str) -> None:
    """Raise BadData unless an array, or the header of one, has a whole number for each of n images."""
    if labels.shape != (n,) or labels.dtype.kind not in WHOLE:
        found = f"{labels.dtype} {list(labels.shape)}"
        raise BadData(f"{where}: expected whole-number labels [{n}], one for each image, found {found}; {remedy}")


def check_labels(y: np.ndarray, n_classes: int, where: str, all_occur: bool = True) -> None:
    """Raise BadData unless labels are whole, lie in [0, n_classes), and, with all_occur, every class occurs."""
    if y.dtype.kind not in WHOLE:
        raise BadData(f"{where}: expected whole-number labels, found {y.dtype}")
    present = np.unique(y)
    inside = len(present) > 0 and present[0] >= 0 and present[-1] < n_classes
    if not inside or (all_occur and len(present) != n_classes):
        named = np.setdiff1d(np.arange(n_classes), present) if inside else present
        shown = ("none of " if inside else "") + ", ".join(str(label) for label in named[:20]) or "none"
        from_one = len(present) > 0 and present[0] == 1 and present[-1] == n_classes
        remedy = "subtract 1 from them" if from_one else "do labels and inputs belong together?"
        raise BadData(
            f"{where}: expected {'every label' if all_occur else 'labels'} from 0 to {n_classes - 1}, "
            f"found {shown}; {remedy}"
        )


def check_split(split: Split) -> Split:
    """Return the split after checking shapes, types, labels and box against the contract. Raises BadData."""
    shape = split.train.x.shape[1:]
    for subset in ("train", "validation", "test"):
        arrays: Arrays | None = getattr(split, subset)
        if arrays is None:
            continue
        where = f"data set {split.name}, split {split.split}, {subset}"
        target = np.dtype(np.int64 if split.task == "classification" else np.float64)
        x, y = arrays.x, arrays.y
        vectors = (split.n_outputs,) if split.task == "regression" and split.n_outputs > 1 else ()
        if len(x) != len(y) or y.shape[1:] != vectors or len(x) == 0:
            each = f" of {split.n_outputs} numbers" if vectors else ""
            raise BadData(f"{where}: expected as many targets{each} as inputs, found x {x.shape} and y {y.shape}")
        if x.shape[1:] != shape:
            raise BadData(f"{where}: expected inputs of shape {shape} as in train, found {x.shape[1:]}")
        expected = np.dtype(np.uint8 if split.pixels else np.float32)
        if x.dtype != expected or y.dtype != target:
            raise BadData(f"{where}: expected x {expected} and y {target}, found {x.dtype} and {y.dtype}")
        if not split.pixels:
            check_finite(x, f"{where}, x")
        check_finite(y, f"{where}, y")
        if split.task == "classification":
            check_labels(y, split.n_outputs, where, all_occur=subset != "validation")
    if split.pixels and not len(split.pixels.mean) == len(split.pixels.std) == shape[0]:
        found = f"{len(split.pixels.mean)} and {len(split.pixels.std)}"
        raise BadData(
            f"data set {split.name}: expected a pixel mean and std for each of {shape[0]} channels, found {found}"
        )
    if split.low.shape != shape or split.high.shape != shape or (split.low > split.high).any():
        where = f"data set {split.name}, split {split.split}, box"
        raise BadData(f"{where}: expected low <= high of shape {shape}, found {split.low} and {split.high}")
    return split
