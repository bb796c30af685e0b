"""Currents of the Gulf of Mexico: how the files are read and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datasets import BadData, ocean
from datasets.checks import check_split, read_table

TRAIN = b",lon,lat,ubar,vbar\n0,-90,26.5,0.5,-0.25\n1,-88,25.5,0.125,1.5\n"
TEST = b",lon,lat,ubar,vbar,shape\n0,-91,24,0.5,1,3\n1,-89,24,0.25,2,1\n2,-87,28,0,3,0\n"


@pytest.fixture
def small(mirror: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of two and three rows in the mirror, whose folder is returned."""
    contents = dict(zip(ocean.FILES, (TRAIN, TEST), strict=True))
    monkeypatch.setattr(ocean, "SIZES", (2, 3))
    return mirror(contents)


def test_inputs_are_moved_and_not_scaled_and_targets_are_vectors_as_they_are(small: Path) -> None:
    split = check_split(ocean.load())
    assert split.train.x.tolist() == [[-1, 0.5], [1, -0.5]] and split.test.x.tolist() == [[-2, -2], [0, -2], [2, 2]]
    assert split.train.y.tolist() == [[0.5, -0.25], [0.125, 1.5]] and split.test.y.tolist() == [
        [0.5, 1],
        [0.25, 2],
        [0, 3],
    ]
    assert (split.n_outputs, split.y_mean, split.y_std) == (2, 0.0, 1.0)
    assert split.low.tolist() == [-2, -2] and split.high.tolist() == [2, 2]
    assert np.array_equal(split.evaluation("grid").x, split.test.x) and split.evaluation("grid").y is None


def test_scaled_inputs_are_by_the_training_points_and_velocities_by_the_test_points(small: Path) -> None:
    split = check_split(ocean.load(scheme="scaled"))
    lonlat = np.array([[-90, 26.5], [-88, 25.5]]), np.array([[-91, 24], [-89, 24], [-87, 28.0]])
    for found, x in zip((split.train.x, split.test.x), lonlat, strict=True):
        np.testing.assert_allclose(found, (x - lonlat[0].mean(0)) / lonlat[0].std(0), rtol=1e-6)
    velocities = np.array([[0.5, 1], [0.25, 2], [0, 3]])
    assert (split.y_mean, split.y_std) == pytest.approx((velocities.mean(), velocities.std()))
    np.testing.assert_allclose(split.test.y * split.y_std + split.y_mean, velocities)
    np.testing.assert_allclose(split.train.y * split.y_std + split.y_mean, [[0.5, -0.25], [0.125, 1.5]])


def test_upstreams_files_have_the_grid_that_is_plotted(load_or_skip: Callable) -> None:
    split = load_or_skip("gulf_drifters")
    assert [len(np.unique(column)) for column in split.test.x.T] == [34, 16]
    assert (split.low <= split.train.x.min(0)).all() and (split.train.x.max(0) <= split.high).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TRAIN.replace(b"26.5", b"26.5,1"), "columns changed from 6 to 5 at row 2"),
        (TRAIN.replace(b"26.5", b"north"), "could not convert string 'north' to float64 at row 0, column 3"),
        (TRAIN.replace(b"26.5", b"nan"), "expected finite numbers, found nan"),
        (TRAIN[:-24], "expected a table of 2 rows and 5 columns, found: ValueError: 1 rows and 5 columns"),
    ],
)
def test_another_table_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(BadData, match=message.replace("(", r"\(")):
        read_table(path, 2, 5, ",", skip=1)


def test_vectors_of_another_length_are_refused(small: Path) -> None:
    with pytest.raises(
        BadData, match=r"expected as many targets of 3 numbers as inputs, found x \(2, 2\) and y \(2, 2\)"
    ):
        check_split(replace(ocean.load(), n_outputs=3))
