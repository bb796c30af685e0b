"""Damaged data are refused in words that say where, what was expected, what was found and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import datasets
from datasets import Arrays, BadData, Pixels, checks

GOOD = b"1 2.5 3\n4 5 6e-1\n\n7\t8  9 \n"


def test_a_whole_table_is_read(tmp_path: Path, write: Callable) -> None:
    table = checks.read_table(write(tmp_path, "data.txt", GOOD), rows=3, columns=3)
    assert np.array_equal(table, [[1, 2.5, 3], [4, 5, 0.6], [7, 8, 9]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1 2 3\n4 5 6\n", r"expected a table of 3 rows and 3 columns, found: ValueError: 2 rows and 3 columns"),
        (GOOD + b"1 2 3\n", r"found: ValueError: 4 rows and 3 columns"),
        (b"1 2\n4 5\n7 8\n", r"found: ValueError: 3 rows and 2 columns"),
        (b"1 2 3\n4 5\n7 8 9\n", r"columns changed from 3 to 2 at row 2"),
        (b"1 2 3\n4 5 6\n7 8 9 10\n", r"columns changed from 3 to 4 at row 3"),
        (b"1 2 3\n4 five 6\n7 8 9\n", r"could not convert string 'five' to float64 at row 1, column 2"),
        (b"1 2 3\n4 nan 6\n7 8 9\n", r"expected finite numbers, found nan at \[1, 1\] \(1 in all\)"),
        (b"1 2 3\n4 5 -inf\n7 8 inf\n", r"expected finite numbers, found -inf at \[1, 2\] \(2 in all\)"),
        (b"<html>not found</html>\n", r"could not convert string '<html>not'"),
        (b"\xff\xfe\x00 1 2\n", r"found: UnicodeDecodeError"),
        (b"", r"expected a table of 3 rows and 3 columns, found: "),
    ],
)
def test_damaged_tables_are_refused(tmp_path: Path, write: Callable, content: bytes, message: str) -> None:
    path = write(tmp_path, "data.txt", content)
    with pytest.raises(BadData, match=message) as caught:
        checks.read_table(path, rows=3, columns=3)
    assert str(path) in str(caught.value) and "make data" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"0\n1\n1\n", "expected distinct row numbers, found 1 repeated"),
        (b"0\n5\n", "expected row numbers from 0 to 4, found 5"),
        (b"-1\n", "found -1"),
        (b"0.5\n", "found 0.5"),
        (b"nan\n", "found nan"),
        (b"", "found an empty file"),
        (b"zero\n", "expected row numbers, found: .*zero"),
    ],
)
def test_damaged_row_numbers_are_refused(tmp_path: Path, write: Callable, content: bytes, message: str) -> None:
    path = write(tmp_path, "index.txt", content)
    with pytest.raises(BadData, match=message) as caught:
        checks.read_indices(path, below=5)
    assert str(path) in str(caught.value)


def test_a_folder_in_the_place_of_a_text_file_is_refused(tmp_path: Path) -> None:
    for read in (lambda: checks.read_table(tmp_path, 3, 3), lambda: checks.read_indices(tmp_path, 5)):
        with pytest.raises(BadData, match=f"^{tmp_path}: expected .*, found: IsADirectoryError: .*make data"):
            read()


def test_row_numbers_may_be_written_as_floats(tmp_path: Path, write: Callable) -> None:
    rows = checks.read_indices(write(tmp_path, "index.txt", b"4.000e+00\n0\n2.0\n"), below=5)
    assert rows.tolist() == [4, 0, 2] and rows.dtype == np.int64


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, 2, 3], "every label from 0 to 2, found 0, 1, 2, 3"),
        ([1, 2, 3], "found 1, 2, 3; subtract 1 from them"),
        ([0, 3], "found 0, 3; do labels and inputs belong together"),
        ([0, 1, 1], "every label from 0 to 2, found none of 2; do labels and inputs"),
        ([-1, 0, 1], "found -1, 0, 1"),
        ([0.0, 1.0, 2.0], "expected whole-number labels, found float64"),
        (np.array([0, 1, 2], "m8[s]"), "expected whole-number labels, found timedelta64"),
        (np.array([], int), "every label from 0 to 2, found none"),
    ],
)
def test_wrong_labels_are_refused(labels: list, message: str) -> None:
    with pytest.raises(BadData, match=message):
        checks.check_labels(np.array(labels), 3, "a file")


def test_a_part_need_not_have_every_label_if_it_may_be_small() -> None:
    checks.check_labels(np.array([1, 1]), 3, "a file", all_occur=False)
    for labels in ([-1, 0], [0, 3]):
        with pytest.raises(BadData, match="expected labels from 0 to 2, found"):
            checks.check_labels(np.array(labels), 3, "a file", all_occur=False)


def broken_splits() -> list[tuple[Callable[[datasets.Split], datasets.Split], str]]:
    def train(x: Callable = lambda x: x, y: Callable = lambda y: y) -> Callable:
        return lambda split: replace(split, train=Arrays(x(split.train.x), y(split.train.y)))

    def with_nan(x: np.ndarray) -> np.ndarray:
        return np.where(np.arange(len(x))[:, None] == 3, np.nan, x).astype(np.float32)

    return [
        (train(y=lambda y: y[:-1]), r"expected as many targets as inputs, found x .100, 2. and y .99,."),
        (train(y=lambda y: y[:, None]), "train: expected as many targets as inputs"),
        (train(lambda x: x[:0], lambda y: y[:0]), "train: expected as many targets as inputs"),
        (train(lambda x: x.astype(np.float64)), "expected x float32 and y int64, found float64 and int64"),
        (train(y=lambda y: y.astype(np.float64)), "x float32 and y int64, found float32 and float64"),
        (train(with_nan), r"train, x: expected finite numbers, found nan at \[3, 0\]"),
        (train(y=lambda y: y + 1), "train: expected every label from 0 to 1, found 1, 2"),
        (train(lambda x: x[:, :1]), r"test: expected inputs of shape \(1,\) as in train, found \(2,\)"),
        (lambda split: replace(split, low=split.high, high=split.low), "box: expected low <= high"),
        (lambda split: replace(split, low=split.low[:1]), r"box: expected low <= high of shape \(2,\)"),
        (lambda split: replace(split, pixels=Pixels((0.0,), (1.0,))), "expected x uint8 and y int64, found float32"),
    ]


@pytest.mark.parametrize("number", range(len(broken_splits())))
def test_broken_splits_are_refused(number: int) -> None:
    damage, message = broken_splits()[number]
    with pytest.raises(BadData, match=message) as caught:
        checks.check_split(damage(datasets.load("two_moons_cinquin")))
    assert "data set two_moons_cinquin, split 0" in str(caught.value)
