"""Tables of users: CSV, npz or Parquet, cut into random splits or by files of row numbers."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import cast

import numpy as np

from . import registry
from .checks import BadData, read_indices, reading, stamped
from .contract import Description, Split
from .fetch import absolute
from .notices import say
from .table_files import READERS, inputs, labels, numbers, spread
from .table_text import CORRECT, DECIMALS, DROP, REFUSE, Form, Table
from .tabular import LARGEST, assemble, stratified

TASKS = ("regression", "classification")
MOST = 20  # names in a summary
AS_INPUT = ": categories={0} for names, drop={0} to leave the column out"


@dataclass(frozen=True)
class Cut:
    """Rule that splits a user's table. It is part of the data version: changing it changes the run's key."""

    target: str | int | None
    task: str
    splits: int
    test: float
    validation: float
    standardise: bool
    form: Form = Form()

    @property
    def version(self) -> str:
        about = asdict(self) | {"form": self.form.changes}
        return "2-" + hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:8]


def add_table(
    name: str,
    path: str | os.PathLike,
    *,
    target: str | int | None = None,
    task: str = "regression",
    splits: int = 10,
    test: float = 0.1,
    validation: float = 0.0,
    test_rows: str | os.PathLike | Sequence[str | os.PathLike] = (),
    standardise: bool = True,
    header: bool | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    drop: Sequence[str | int] = (),
    missing: str = REFUSE,
    categories: Sequence[str | int] = (),
) -> None:
    """Add a data set of one file: .csv (separated by comma, semicolon, tab, bar or blanks), .npz (arrays x and y) or
    .parquet. At its first use a summary is printed: rows, inputs, target, classes, omissions and guesses.

    target: name or number of its column, or name of its array (default: the last column, array y); all others are
    inputs. splits: how many random ones, each with a share `test` of the rows as test subset (of each class its share),
    and a share `validation` of the rest held out, whatever the class. test_rows: a file of row numbers (from 0) for
    each split's test subset instead. standardise: by mean and standard deviation of the training subset, targets of
    regression too. header, delimiter, decimal ("." or ","): of a .csv file, guessed where they are None. drop: columns
    that are no inputs. missing: rows with empty cells, "?" or NA in an input or the target are refused, or left out
    ("drop"). categories: input columns of names, each of which becomes a column of 0 and 1. Raises ValueError for
    invalid options; the file is read on first use, and raises BadData.
    """
    if not isinstance(target, str | int | None) or isinstance(target, bool):
        raise ValueError(f"data set {name}: target: expected one column, its name or number, found {target!r}")
    if task not in TASKS:
        raise ValueError(f"data set {name}: task is {task!r}, expected {' or '.join(map(repr, TASKS))}")
    if not (0 < test < 1 and 0 <= validation < 1 and splits > 0):
        raise ValueError(
            f"data set {name}: expected 0 < test < 1, 0 <= validation < 1 and 1 split or more, "
            f"found test={test}, validation={validation}, splits={splits}"
        )
    if missing not in (REFUSE, DROP) or (missing == DROP and test_rows):
        raise ValueError(
            f"data set {name}: expected missing={REFUSE!r}, or {DROP!r} without test_rows (they number the "
            f"rows of the file), found {missing!r}"
        )
    if decimal not in (None, *DECIMALS) or (delimiter is not None and len(delimiter) != 1):
        raise ValueError(
            f"data set {name}: expected decimal '.' or ',' and a delimiter of one character, found {decimal!r} and "
            f"{delimiter!r}"
        )
    each_split = (test_rows,) if isinstance(test_rows, str | os.PathLike) else test_rows
    file, rows = absolute(path), tuple(map(absolute, each_split))
    if file.suffix.lower() not in READERS:
        raise ValueError(f"data set {name}: {file} is none of {', '.join(READERS)}; write it as one of these")
    left, text = ((each,) if isinstance(each, str | int) else tuple(each) for each in (drop, categories))
    form = Form(header, delimiter, decimal, left, missing, text)
    cut = Cut(target, task, len(rows) or splits, 0.0 if rows else test, validation, standardise, form)
    named = {"table": file, **{f"test-rows-{i}": each for i, each in enumerate(rows)}}
    files, source = [registry.UserFile(*each) for each in named.items()], (name, file, cut, rows)
    registry.add(name, partial(load, *source), splits=cut.splits, files=files, describe=partial(describe, *source))


def describe(name: str, path: Path, cut: Cut, test_rows: tuple[Path, ...]) -> Description:
    """Describe the table; the file is read once and cached. Raises BadData."""
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
    about = name, cut.task, cut.version, "", ("",), cut.splits, max(1, len(classes)), x.shape[1:]
    counts, source = (sizes[0]["train"], sizes[0]["test"]), f"user's table {path.name}"
    return Description(*about, *counts, source, (), redrawn=True, validated="validation" in sizes[0])


def load(name: str, path: Path, cut: Cut, test_rows: tuple[Path, ...], split: int) -> Split:
    """Return one split. Raises BadData."""
    x, y, classes = read(path, cut)
    rows = partition(path, cut, test_rows, split)
    return assemble(name, cut.version, split, "", x, y, rows, classes=len(classes), standardise=cut.standardise)


def partition(path: Path, cut: Cut, test_rows: tuple[Path, ...], split: int) -> dict[str, np.ndarray]:
    """Return row numbers of a split's subsets. Raises BadData."""
    _, y, classes = read(path, cut)
    if test_rows:
        test = read_indices(test_rows[split], len(y), CORRECT)
        train = np.random.RandomState(split).permutation(np.setdiff1d(np.arange(len(y)), test))
    elif classes:
        _check_sizes(path, y, classes, 3 if cut.validation else 2)
        train, test = stratified(y, split, 1 - cut.test, each=True).values()
    else:
        order, n = np.random.RandomState(split).permutation(len(y)), math.ceil(len(y) * cut.test)
        train, test = order[n:], order[:n]
    held = math.ceil(len(train) * cut.validation)
    if classes:
        last = [np.flatnonzero(y[train] == label)[-1:] for label in range(len(classes))]
        train = np.concatenate([np.delete(train, np.concatenate(last)), train[np.concatenate(last)]])
        held = min(held, len(train) - len(classes))  # one row of each class is left to train
    subsets = {"train": train[held:], "test": test} | ({"validation": train[:held]} if held > 0 else {})
    if not all(map(len, subsets.values())) or len(subsets["train"]) < 2:
        counts = ", ".join(f"{len(rows)} for {subset}" for subset, rows in subsets.items())
        expected = "rows for every subset and two or more to train"
        raise BadData(f"{path}: expected {expected}, found {len(y)} in all: {counts}; {CORRECT}")
    for subset in ("train", "test") if classes else ():
        lacking = np.setdiff1d(np.arange(len(classes)), y[subsets[subset]])
        if len(lacking):
            raise BadData(
                f"{test_rows[split] if test_rows else path}: expected every class in the {subset} subset, found "
                f"none of {_label(classes[lacking[0]])!r} ({(y == lacking[0]).sum()} in all); {CORRECT}"
            )
    return subsets


def _check_sizes(path: Path, y: np.ndarray, classes: tuple, least: int) -> None:
    sizes = np.bincount(y)
    if sizes.min() < least:
        few = ", ".join(f"{_label(classes[i])!r} ({sizes[i]})" for i in np.flatnonzero(sizes < least)[:MOST])
        raise BadData(
            f"{path}: expected {least} rows or more of every class, one for each subset, found fewer of "
            f"{few}; join or drop these classes in the file, or get more rows"
        )


def read(path: Path, cut: Cut) -> tuple[np.ndarray, np.ndarray, tuple]:
    """Return inputs [N, D], targets [N] (float64, or labels) and classes (none: regression). Raises BadData."""
    return _read(stamped(path, CORRECT), cut.target, cut.task, cut.form)


@lru_cache(maxsize=8)
def _read(
    stamp: tuple[Path, int, int], target: str | int | None, task: str, form: Form
) -> tuple[np.ndarray, np.ndarray, tuple]:
    path = stamp[0]
    with reading(path, f"a {path.suffix} file", CORRECT):
        table = READERS[path.suffix.lower()](path, target, form)
    place = table.place(target)
    columns = spread(table, inputs(table, place, form), [table.place(name) for name in form.categories])
    if not columns or not len(table.columns):
        raise BadData(f"{path}: expected inputs and rows, found {len(columns)} and {len(table.columns)}; {CORRECT}")
    x = np.column_stack(
        [cast(np.ndarray, numbers(table, i, remedy=AS_INPUT.format([table.names[i]]))) for i in columns]
    )
    if task == "regression":
        y = cast(np.ndarray, numbers(table, place, remedy=": task='classification' for labels"))
        absent = np.isnan(y)
    else:
        y, absent = labels(table, place)
    rows = _complete_rows(table, np.column_stack([np.isnan(x), absent]), [*columns, place], form)
    x, y = x[rows], y[rows]
    _finite(table, x, columns, rows)
    for i in [i for i, values in zip(columns, x.T) if len(x) > 1 and (values == values[0]).all()]:
        table.notes.append(f"{table.names[i]!r} has one value in every row")
    if task == "regression":
        _finite(table, y[:, None], [place], rows)
        if len(y) > 1 and (y == y[0]).all():
            raise BadData(
                f"{path}: expected targets that differ, found {y[0]:g} in all {len(y)} rows of {table.names[place]!r}; "
                f"{CORRECT}"
            )
        _tell(table, columns, place, len(y), "")
        return x, y, ()
    classes, numbered, sizes = np.unique(y, return_inverse=True, return_counts=True)
    no_label = y[(y != np.floor(y)) | np.isinf(y)] if y.dtype.kind == "f" else y[:0]
    if len(classes) < 2 or len(no_label):
        what = f"numbers such as {no_label[0]:g}" if len(no_label) else "one class" if len(classes) else "no class"
        raise BadData(f"{path}: expected two classes or more as whole numbers or names, found {what}; {CORRECT}")
    shown = [f"{_label(c)} ({n})" for c, n in zip(classes[:MOST], sizes)]
    more = f" and {len(classes) - MOST} more" if len(classes) > MOST else ""
    _tell(table, columns, place, len(y), f" with {len(classes)} classes (rows): {', '.join(shown)}{more}")
    return x, numbered.astype(np.int64), tuple(classes.tolist())


def _complete_rows(table: Table, gaps: np.ndarray, columns: list[int], form: Form) -> np.ndarray:
    """Return the numbers of rows without missing values. Raises BadData for missing values unless they are dropped."""
    lacking = gaps.any(1)
    if lacking.any():
        row = int(np.flatnonzero(lacking)[0])
        place = columns[int(np.flatnonzero(gaps[row])[0])]
        count = f"{lacking.sum()} of {len(gaps)} rows"
        if form.missing == REFUSE:
            value = table.columns.iloc[row, place]
            raise BadData(
                f"{table.where(row, place)}: expected a value, found {str(value)!r}, as in {count}; "
                f"{CORRECT}: missing='drop' leaves these rows out"
            )
        table.notes.append(f"dropped {count} that lack a value, the first at {table.where(row, place)}")
    return np.flatnonzero(~lacking)


def _finite(table: Table, values: np.ndarray, columns: list[int], rows: np.ndarray) -> None:
    wrong = np.argwhere(~np.isfinite(values) | (np.abs(values) > LARGEST))
    if len(wrong):
        row, column = wrong[0]
        raise BadData(
            f"{table.where(int(rows[row]), columns[column])}: expected finite numbers up to {LARGEST:g}, found "
            f"{values[row, column]:g}; {CORRECT}"
        )


def _tell(table: Table, columns: list[int], target: int, rows: int, classes: str) -> None:
    names = ", ".join(" ".join(table.names[i].split()) for i in columns[:MOST])
    more = f" and {len(columns) - MOST} more" if len(columns) > MOST else ""
    say(
        f"{table.path}: {rows} rows, {len(columns)} inputs ({names}{more}), target {table.names[target]}{classes}"
        + "".join(f"; {note}" for note in table.notes)
    )


def _label(label: object) -> str:
    return f"{label:.0f}" if isinstance(label, float) else " ".join(str(label).split())
