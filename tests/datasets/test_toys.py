"""Toys: what the papers state of each, grids and boxes; Snelson also on small files that the tests write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.preprocessing import StandardScaler

from datasets import BadData, load, toys


@pytest.mark.parametrize(
    ("name", "n", "noise", "seed"),
    [("two_moons_rudner", 200, 0.2, 0), ("two_moons_dirichlet", 100, 0.2, 456), ("two_moons_cinquin", 100, 0.1, 0)],
)
@pytest.mark.parametrize("number", [0, 3])
def test_moons_are_those_of_the_papers(name: str, n: int, noise: float, seed: int, number: int) -> None:
    split = load(name, number)
    x, y = make_moons(n, noise=noise, random_state=seed + number)
    if name == "two_moons_cinquin":
        scaler = StandardScaler().fit(x)
        x = scaler.transform(x)
        test, _ = make_moons(1000, noise=noise, random_state=toys.TEST_SEED + seed + number)
        assert np.allclose(split.test.x, scaler.transform(test), atol=1e-6)
    assert np.allclose(split.train.x, x, rtol=0, atol=2e-7) and np.array_equal(split.train.y, y)
    assert np.bincount(split.train.y).tolist() == [n // 2, n // 2] and len(split.test) == 1000


@pytest.mark.parametrize(
    ("name", "n", "function", "std"),
    [
        ("pequignot_1d", 120, lambda x: np.cos(4 * (x + 0.2)), 0.1),
        ("cinquin_1d", 100, lambda x: np.sin(2 * np.pi * x), 0.1),
        ("cinquin_1d_noisy", 100, lambda x: np.sin(2 * np.pi * x), 1.0),
    ],
)
def test_curves_are_those_of_the_papers(name: str, n: int, function: Callable, std: float) -> None:
    split = load(name)
    assert len(split.train) == n and (split.y_mean, split.y_std) == (0, 1)
    for arrays in (split.train, split.test):
        x = arrays.x[:, 0].astype(np.float64)
        assert ((np.abs(x) >= 0.5) & (np.abs(x) <= 1)).all()
        assert 0.3 < (x < 0).mean() < 0.7
    noise = split.test.y - function(split.test.x[:, 0].astype(np.float64))
    assert abs(noise.mean()) < 4 * std / 1000**0.5
    assert noise.std() == pytest.approx(std, rel=4 / 2000**0.5)  # four standard errors


@pytest.mark.parametrize(
    ("name", "low", "high", "points"),
    [
        ("two_moons_rudner", [-4, -3.5], [5, 4], 37 * 31),
        ("two_moons_dirichlet", [-2.5, -2], [3.5, 2.5], 121 * 91),
        ("two_moons_cinquin", [-3.9, -3.9], [3.9, 3.9], 53 * 53),
        ("pequignot_1d", [-4], [2], 601),
        ("cinquin_1d", [-2], [2], 401),
        ("cinquin_1d_noisy", [-2], [2], 401),
    ],
)
def test_grid_covers_the_plotted_box(name: str, low: list, high: list, points: int) -> None:
    split = load(name)
    grid = split.evaluation("grid")
    assert grid.kind == "grid" and grid.x.shape == (points, len(low))
    assert split.low.tolist() == grid.x.min(0).tolist() == np.float32(low).tolist()
    assert split.high.tolist() == grid.x.max(0).tolist() == np.float32(high).tolist()
    assert np.array_equal(split.pool("grid").x, grid.x)


def test_grid_points_lie_one_step_apart_with_the_last_coordinate_fastest() -> None:
    grid = toys.grid((0.0, 0.0), (1.0, 0.5), 0.25)
    assert grid.shape == (15, 2) and grid[:4].tolist() == [[0, 0], [0, 0.25], [0, 0.5], [0.25, 0]]


def test_snelson_gap_is_the_test_subset(load_or_skip: Callable) -> None:
    split = load_or_skip("snelson")
    assert (len(split.train), len(split.test)) == (148, 52)
    gap = split.test.x[:, 0]
    assert gap.min() > -1 and gap.max() < 0.1  # the interval [-1, 0] of Rudner et al. 2021, sec. 4.1
    assert not ((gap.min() <= split.train.x[:, 0]) & (split.train.x[:, 0] <= gap.max())).any()
    grid = split.evaluation("grid").x
    assert grid.shape == (500, 1) and (grid.min(), grid.max()) == (-10, 10)
    assert (split.low, split.high) == (-8, 8)


@pytest.fixture
def small(mirror: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Snelson's two files with six pairs, in the mirror; x = 1.5 and x = 3 lie on the edge of the gap."""
    contents = {
        toys.SNELSON_FILES[0]: b"  0.5\n  1.5\n  2.0e+00\n  3.0\n  4.5\n  5.0\n",
        toys.SNELSON_FILES[1]: b" 1\n 2\n 3\n 4\n 5\n 9\n",
    }
    monkeypatch.setattr(toys, "SNELSON_ROWS", 6)
    return mirror(contents)


def test_small_snelson_is_cut_before_it_is_standardised(small: Path) -> None:
    split = toys.load_snelson()
    assert split.rows["train"].tolist() == [0, 4, 5] and split.rows["test"].tolist() == [1, 2, 3]
    assert split.y_mean == 5 and split.y_std == pytest.approx((32 / 3) ** 0.5)
    x = np.array([0.5, 4.5, 5.0])
    assert np.allclose(split.test.x[:, 0], (np.array([1.5, 2, 3]) - x.mean()) / x.std())


def test_snelson_of_another_length_is_refused(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toys, "SNELSON_ROWS", 7)
    with pytest.raises(BadData, match="train_inputs.dat: expected a table of 7 rows and 1 columns, found: "):
        toys.load_snelson()
