"""Read users' tables (CSV, npz, Parquet) as pandas frames, and list the guesses made."""

from __future__ import annotations

import re
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from . import table_text
from .checks import BadData
from .npy import array
from .table_text import CORRECT, Form, Table

if TYPE_CHECKING:
    import pandas

MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "nan", "null", "<na>"})
TRUTH = {"true": 1.0, "false": 0.0}
INDEX = ("index", "level_0")
EXACT = 2.0**53  # from here on float64 does not hold every whole number
ZEROS = re.compile(r"[+-]?0\d")  # 007 is a name


def inputs(table: Table, target: int, form: Form) -> list[int]:
    """Return the numbers of input columns. Raises BadData for a nameless column that may be an index."""
    left, spread_out = ([table.place(name) for name in columns] for columns in (form.drop, form.categories))
    if left:
        table.leave_out(left, "as drop says")
    for option, own, others in (("drop", left, [target]), ("categories", spread_out, [target, *left])):
        for i in set(own).intersection(others):
            what = "the target" if i == target else "the dropped"
            raise BadData(f"{table.path}: expected other columns in {option} than {what} {table.names[i]!r}; {CORRECT}")
    for i, name in enumerate(table.names):
        if i == target or i in left:
            continue
        values, nameless = table.columns.iloc[:, i], not name or name.startswith("Unnamed: ")
        if nameless and all(missing(values)):
            left.append(i)
            table.leave_out([i], "it has neither name nor values")
        elif nameless or name in INDEX:
            if _counts(table, i) or (
                nameless and set(range(i)) <= set(left) and values.is_unique and not _real(table, i)
            ):
                left.append(i)
                table.leave_out([i], "it numbers the rows, as an index that pandas wrote")
            elif nameless:
                raise BadData(
                    f"{table.path}: expected a name for every input, found column {i} without one, which may be an "
                    f"index; name it in the file, or pass drop=[{i}] to add_table"
                )
        elif (counts := _counts(table, i, sort=True)) or _long(table, i):
            why = "counts the rows" if counts else "has over 15 digits"
            table.notes.append(f"{name!r} is an input though it {why}; pass drop=[{name!r}] if it should not be")
    columns = [i for i in range(len(table.names)) if i != target and i not in left]
    names = Counter(table.names[i] for i in columns)
    table.notes += [f"{count} inputs are named {name!r}" for name, count in names.items() if count > 1]
    return columns


def _counts(table: Table, i: int, sort: bool = False) -> bool:
    """Return whether a column counts the rows, from any number on; sort: in any order."""
    values = numbers(table, i, strict=False)
    if values is None or len(values) < 3:
        return False
    return bool((np.diff(np.sort(values) if sort else values) == 1).all())


def _long(table: Table, i: int) -> bool:
    """Return whether a column has whole numbers that float64 does not tell apart, as long identifiers."""
    values = numbers(table, i, strict=False)
    return values is not None and not _real(table, i) and bool((np.abs(values) >= EXACT).any())


def _real(table: Table, i: int) -> bool:
    values = numbers(table, i, strict=False)
    return values is not None and not bool((values == np.floor(values)).all())


def missing(values: pandas.Series) -> np.ndarray:
    """Return which cells are empty or a word for a missing value."""
    absent = values.isna().to_numpy(dtype=bool, copy=True)
    if _is_text(values):
        absent |= np.array([isinstance(v, str) and v.strip().lower() in MISSING for v in values], dtype=bool)
    return absent


def _is_text(values: pandas.Series) -> bool:
    return not hasattr(values.dtype, "categories") and (values.dtype.kind == "O" or str(values.dtype).startswith("str"))


def spread(table: Table, columns: list[int], categories: list[int]) -> list[int]:
    """Replace input columns of names by a column of 0 and 1 for each name; return the numbers of input columns."""
    places: list[int] = []
    for i in columns:
        if i not in categories:
            places.append(i)
            continue
        gaps, words = missing(table.columns.iloc[:, i]), np.array([_word(v) for v in table.columns.iloc[:, i]])
        for word in np.unique(words[~gaps]):
            places.append(len(table.names))
            table.names.append(f"{table.names[i]}={word}")
            table.columns[table.names[-1]] = np.where(gaps, np.nan, words == word)
    return places


def numbers(table: Table, i: int, strict: bool = True, remedy: str = "") -> np.ndarray | None:
    """Return a column as float64, NaN for missing cells. For other text raise BadData, or return None if not strict."""
    import pandas

    values = table.columns.iloc[:, i]
    kind = str(values.dtype)
    if pandas.api.types.is_numeric_dtype(values) and not pandas.api.types.is_complex_dtype(values):
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    if _is_text(values):
        absent = missing(values)
        cells = [np.nan if gap else _number(value, table.decimal) for value, gap in zip(values, absent)]
        wrong = next((row for row, value in enumerate(cells) if value is None), None)
        if wrong is None:
            return np.array(cells, np.float64)
        word, at = str(values.iloc[wrong]), table.where(wrong, i)
    else:
        word, at = str(values.iloc[0]), f"{table.where(0, i)} ({kind})"
    if strict:
        raise BadData(f"{at}: expected a number, found {word[:40]!r}; {CORRECT}{remedy}")
    return None


def _number(value: object, decimal: str | None) -> float | None:
    if isinstance(value, str):
        word = value.strip()
        return TRUTH.get(word.lower(), table_text.number(word, decimal))
    try:
        return float(value)  # type: ignore[arg-type]  # bool, int, decimal.Decimal
    except (TypeError, ValueError):
        return None


def labels(table: Table, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a column as labels, whole numbers or names, and which are missing."""
    import pandas

    values, absent = table.columns.iloc[:, i], missing(table.columns.iloc[:, i])
    if pandas.api.types.is_bool_dtype(values) and not _is_text(values):
        return values.fillna(False).to_numpy(dtype=bool), absent
    words = [_word(v) if not gap else "" for v, gap in zip(values, absent)]
    by_name = {word.lower() for word in words} <= {*TRUTH, ""} or any(map(ZEROS.match, words))
    whole = None if by_name else numbers(table, i, strict=False)
    if whole is not None and not ((np.abs(whole) >= EXACT) & (np.abs(whole) < np.inf)).any():
        return np.where(absent, 0.0, whole), absent
    return np.array(words), absent


def _word(value: object) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return unicodedata.normalize("NFC", text.strip())


def read_npz(path: Path, target: str | int | None, form: Form) -> Table:
    """Read arrays x [N, D] and y [N], the latter under the target's name. Raises BadData."""
    import pandas

    wanted = "x", "y" if target is None else str(target)
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        if not set(wanted) <= set(names):
            raise BadData(
                f"{path}: expected the arrays {' and '.join(wanted)}, found {', '.join(names) or 'none'}; {CORRECT}"
            )
        left = [f"left out the array {name!r}" for name in names if name not in wanted]
        x, y = (array(archive, name) for name in wanted)
    if x.ndim != 2 or 0 in x.shape or y.shape != x.shape[:1]:
        raise BadData(
            f"{path}: expected inputs [N, D] and a target for each, found inputs {list(x.shape)} and targets "
            f"{list(y.shape)}; {CORRECT}"
        )
    frame = pandas.concat([pandas.DataFrame(x), pandas.Series(y)], axis=1)
    return Table(path, frame, [f"x[{i}]" for i in range(x.shape[1])] + [wanted[1]], [], notes=left)


def read_parquet(path: Path, target: str | int | None, form: Form) -> Table:
    """Read columns of numbers or text. Raises BadData."""
    import pandas  # here, since it takes a second to load

    try:
        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise BadData(
            f"{path}: Parquet needs the package pyarrow: install it, or write the table as .csv or .npz"
        ) from error
    index = ", ".join(repr(str(name)) for name in frame.index.names if name is not None)
    notes = (
        [f"left out {index}: the index of the frame; reset_index before to_parquet makes it an input"] if index else []
    )
    return Table(path, frame, [str(column) for column in frame.columns], [], notes=notes)


READERS: dict[str, Callable[[Path, str | int | None, Form], Table]] = {
    ".csv": table_text.read,
    ".npz": read_npz,
    ".parquet": read_parquet,
}
