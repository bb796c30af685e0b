"""Tables of users: CSV, npz or Parquet, cut into random splits or by files of row numbers."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from . import registry
from .checks import BadData, read_indices, reading, stamped
from .contract import Description, Split
from .tabular import assemble, stratified

TASKS = ("regression", "classification")
CORRECT = "correct the file, or how add_table describes it"


@dataclass(frozen=True)
class Cut:
    """How a table becomes splits. All of it goes into the data set's version, so that another cut is another run."""

    target: str | int | None
    task: str
    splits: int
    test: float
    validation: float
    standardise: bool

    @property
    def version(self) -> str:
        return "1-" + hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]


def add_table(
    name: str,
    path: str | os.PathLike,
    *,
    target: str | int | None = None,
    task: str = "regression",
    splits: int = 10,
    test: float = 0.1,
    validation: float = 0.0,
    test_rows: Sequence[str | os.PathLike] = (),
    standardise: bool = True,
) -> None:
    """Add a data set of one file: .csv (separated by comma, semicolon, tab or blanks), .npz (arrays x and y) or
    .parquet.

    target: name or number of its column, or name of its array (default: the last column, array y); all others are
    inputs. splits: how many random ones, each with a share `test` of the rows as test subset and a share `validation`
    of the rest held out; of classes each its share. test_rows: a file of row numbers (from 0) for each split's test
    subset instead. standardise: by mean and standard deviation of the training subset, targets of regression too.
    Raises ValueError for options that cannot mean anything; the file is looked at when it is used, and raises BadData.
    """
    if task not in TASKS:
        raise ValueError(f"data set {name}: task is {task!r}, expected {' or '.join(map(repr, TASKS))}")
    if not (0 < test < 1 and 0 <= validation < 1 and splits > 0):
        raise ValueError(
            f"data set {name}: expected 0 < test < 1, 0 <= validation < 1 and 1 split or more, "
            f"found test={test}, validation={validation}, splits={splits}"
        )
    file, rows = _absolute(path), tuple(map(_absolute, test_rows))
    if file.suffix not in READERS:
        raise ValueError(f"data set {name}: {file} is none of {', '.join(READERS)}; write it as one of these")
    cut = Cut(target, task, len(rows) or splits, 0.0 if rows else test, validation, standardise)
    files = [
        registry.UserFile("table", file),
        *(registry.UserFile(f"test-rows-{i}", each) for i, each in enumerate(rows)),
    ]
    registry.add(
        name,
        partial(load, name, file, cut, rows),
        splits=cut.splits,
        files=files,
        describe=partial(describe, name, file, cut, rows),
    )


def describe(name: str, path: Path, cut: Cut, test_rows: tuple[Path, ...]) -> Description:
    """Looks at the file once. Raises BadData."""
    x, _, classes = read(path, cut)
    sizes = [
        {subset: len(rows) for subset, rows in partition(path, cut, test_rows, split).items()}
        for split in range(len(test_rows) or 1)
    ]
    for file, size in zip(test_rows, sizes):
        if size != sizes[0]:
            raise BadData(
                f"{file}: expected {sizes[0]['test']} test rows as in {test_rows[0]}, since splits are trained side by "
                f"side, found {size['test']}; {CORRECT}"
            )
    return Description(
        name,
        cut.task,
        cut.version,
        "",
        ("",),
        cut.splits,
        max(1, len(classes)),
        x.shape[1:],
        sizes[0]["train"],
        sizes[0]["test"],
        f"user's table {path.name}",
        (),
    )


def load(name: str, path: Path, cut: Cut, test_rows: tuple[Path, ...], split: int) -> Split:
    """One split. Raises BadData."""
    x, y, classes = read(path, cut)
    rows = partition(path, cut, test_rows, split)
    return assemble(name, cut.version, split, "", x, y, rows, classes=len(classes), standardise=cut.standardise)


def partition(path: Path, cut: Cut, test_rows: tuple[Path, ...], split: int) -> dict[str, np.ndarray]:
    """Row numbers of the subsets of a split. Raises BadData."""
    _, y, classes = read(path, cut)
    if test_rows:
        test = read_indices(test_rows[split], len(y), CORRECT)
        train = np.random.RandomState(split).permutation(np.setdiff1d(np.arange(len(y)), test))
    elif classes:
        train, test = stratified(y, split, 1 - cut.test).values()
    else:
        order, n = np.random.RandomState(split).permutation(len(y)), math.ceil(len(y) * cut.test)
        train, test = order[n:], order[:n]
    held = math.ceil(len(train) * cut.validation)
    found = {"train": train[held:], "test": test} | ({"validation": train[:held]} if held else {})
    if not all(map(len, found.values())):
        counts = ", ".join(f"{len(rows)} for {subset}" for subset, rows in found.items())
        raise BadData(f"{path}: expected rows for every subset, found {len(y)} in all: {counts}; {CORRECT}")
    return found


def read(path: Path, cut: Cut) -> tuple[np.ndarray, np.ndarray, tuple]:
    """Inputs [N, D] and targets [N], as float64 or as labels of these classes (none: regression). Raises BadData."""
    return _read(stamped(path, CORRECT), cut.target, cut.task)


@lru_cache(maxsize=8)
def _read(stamp: tuple[Path, int, int], target: str | int | None, task: str) -> tuple[np.ndarray, np.ndarray, tuple]:
    path = stamp[0]
    with reading(path, f"a {path.suffix} file", CORRECT):
        x, y = READERS[path.suffix](path, target)
    if len(y) == 0 or x.ndim != 2 or x.shape[1] == 0 or y.shape != x.shape[:1]:
        raise BadData(
            f"{path}: expected inputs [N, D] and a target for each, found inputs {list(x.shape)} and targets "
            f"{list(y.shape)}; {CORRECT}"
        )
    x = _numbers(x, path, "inputs")
    if task == "regression":
        return x, _numbers(y, path, "targets"), ()
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2 or (y.dtype.kind == "f" and (y != np.floor(y)).any()):
        what = "one class" if len(classes) < 2 else f"numbers such as {y[y != np.floor(y)][0]:g}"
        raise BadData(f"{path}: expected two classes or more as whole numbers or names, found {what}; {CORRECT}")
    return x, labels.astype(np.int64), tuple(classes.tolist())


def _numbers(values: np.ndarray, path: Path, what: str) -> np.ndarray:
    if values.dtype.kind not in "iufb":
        word = next((str(word) for word in values.flat if _number(str(word)) is None), str(values.flat[0]))
        raise BadData(f"{path}: expected numbers as {what}, found {word[:40]!r}; {CORRECT}")
    values = values.astype(np.float64)
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        raise BadData(
            f"{path}: expected finite numbers as {what}, found {values[tuple(wrong[0])]} in row {wrong[0][0]} (from "
            f"0); {CORRECT}"
        )
    return values


def _csv(path: Path, target: str | int | None) -> tuple[np.ndarray, np.ndarray]:
    lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    mark = next((mark for mark in ",;\t" if lines and mark in lines[0]), None)
    rows = (
        [[word.strip() for word in row] for row in csv.reader(lines, delimiter=mark)]
        if mark
        else [line.split() for line in lines]
    )
    named = bool(rows) and not any(map(_number, rows[0]))
    names = rows[0] if named else [str(i) for i in range(len(rows[0]) if rows else 0)]
    place = _place(
        path, names, target if named or not isinstance(target, str) else f"{target} (there is no line of names)"
    )
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            raise BadData(
                f"{path}, line {number} of those that are not empty: expected {len(names)} columns, found {len(row)}; "
                f"{CORRECT}"
            )
    body = rows[named:]
    for number, row in enumerate(body, start=1 + named):
        wrong = next((i for i, word in enumerate(row) if i != place and _number(word) is None), None)
        if wrong is not None:
            raise BadData(
                f"{path}, line {number} of those that are not empty, column {names[wrong]!r}: expected a number, found "
                f"{row[wrong][:40]!r}; {CORRECT}"
            )
    x = np.array([[float(word) for i, word in enumerate(row) if i != place] for row in body])
    words = [row[place] for row in body]
    return x, np.array(words if None in map(_number, words) else list(map(float, words)))


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _place(path: Path, names: list[str], target: str | int | None) -> int:
    place = -1 if target is None else target
    if isinstance(place, int) and -len(names) <= place < len(names):
        return place % len(names)
    if place not in names:
        raise BadData(
            f"{path}: expected the target column {place!r}, found {', '.join(names[:20]) or 'nothing'}; {CORRECT}"
        )
    return names.index(place)


def _npz(path: Path, target: str | int | None) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        wanted = "x", "y" if target is None else str(target)
        if not set(wanted) <= set(file.files):
            raise BadData(
                f"{path}: expected the arrays {' and '.join(wanted)}, found {', '.join(file.files) or 'none'}; "
                f"{CORRECT}"
            )
        return file[wanted[0]], file[wanted[1]]


def _parquet(path: Path, target: str | int | None) -> tuple[np.ndarray, np.ndarray]:
    import pandas  # here, since it takes a second to load

    try:
        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise BadData(
            f"{path}: Parquet needs the package pyarrow: install it, or write the table as .csv or .npz"
        ) from error
    names = [str(column) for column in frame.columns]
    place = _place(path, names, target)
    y = frame.iloc[:, place].to_numpy()
    return frame.drop(columns=frame.columns[place]).to_numpy(), y.astype(str) if y.dtype.kind == "O" else y


READERS: dict[str, Callable[[Path, str | int | None], tuple[np.ndarray, np.ndarray]]] = {
    ".csv": _csv,
    ".npz": _npz,
    ".parquet": _parquet,
}


def _absolute(path: str | os.PathLike) -> Path:
    return Path(os.path.abspath(os.path.expanduser(path)))
