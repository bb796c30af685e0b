"""Frost, fog, snow and spatter against cases worked out by hand, or against another way to compute them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import Image

from datasets import fetch
from datasets.corruptions import filters, weather
from tests.datasets.corrupting import Given, draws, flat, frost_or_skip, parameters, photos


def test_frost_is_a_weighted_sum_with_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    x = photos()[:2] / 255
    overlays = tuple(np.random.default_rng(k).random((40 + k, 50, 3)) for k in range(2))
    given = Given(integers=[[1, 0]], uniform=[[[0.0, 0.99], [0.5, 0.0]]])
    found = weather.frost(x, given, 0.85, 0.4, overlays)
    assert np.allclose(found[0], 0.85 * x[0] + 0.4 * overlays[1][:32, 17:49])
    assert np.allclose(found[1], 0.85 * x[1] + 0.4 * overlays[0][4:36, :32])


def test_frost_overlays_are_every_fifth_pixel() -> None:
    frost_or_skip()
    shapes = [(120, 180, 3), (63, 112, 3), (63, 112, 3), (70, 105, 3), (99, 132, 3)]
    overlays = weather.frost_overlays()
    assert [overlay.shape for overlay in overlays] == shapes
    for file, overlay in zip(weather.FROST_FILES, overlays, strict=True):
        with Image.open(fetch.locate(file)) as image:
            red, green, blue = image.split()[:3]  # transparency plays no part
            place = (2 + 5 * 40, 2 + 5 * 30)  # column, row
            assert (overlay[30, 40] * 255).round().tolist() == [band.getpixel(place) for band in (red, green, blue)]


def test_fog_is_scaled_back_to_the_largest_value() -> None:
    x = photos()[:2] / 255
    cloud = weather.plasma(draws(2).uniform(-1, 1, 32, 32), 2)
    largest = x.max((1, 2, 3))
    found = weather.fog(x, draws(2), 1.5, 2)
    for i in (0, 1):
        assert np.allclose(found[i], (x[i] + 1.5 * cloud[i, ..., None]) * largest[i] / (largest[i] + 1.5))


@pytest.mark.parametrize("decay", [3, 1.75])
def test_plasma_point_by_point(decay: float) -> None:
    side, given = 8, np.random.default_rng(0).uniform(-1, 1, (2, 8, 8))
    for found, noise in zip(weather.plasma(given, decay), given, strict=True):
        height, step, amplitude = {(0, 0): 0.0}, side, 100.0
        while step > 1:
            half = step // 2
            corners = [(row, column) for row in range(0, side, step) for column in range(0, side, step)]
            for diagonal in (True, False):  # squares, then diamonds
                places = (
                    [(r + half, c + half) for r, c in corners]
                    if diagonal
                    else [place for r, c in corners for place in ((r, c + half), (r + half, c))]
                )
                around = (
                    [(a, b) for a in (-half, half) for b in (-half, half)]
                    if diagonal
                    else [(half, 0), (-half, 0), (0, half), (0, -half)]
                )
                for row, column in places:
                    mean = sum(height[(row + a) % side, (column + b) % side] for a, b in around) / 4
                    height[row, column] = mean + amplitude**2 * noise[row, column]
            step, amplitude = half, amplitude / decay
        values = np.array([[height[row, column] for column in range(side)] for row in range(side)])
        assert np.allclose(found, (values - values.min()) / np.ptp(values))


def test_snow_without_flakes_whitens() -> None:
    mean, std, zoom, threshold, radius, sigma, keep = parameters("snow", 4)
    pixel = np.array([0.1, 0.5, 0.2])
    grey = 0.299 * 0.1 + 0.587 * 0.5 + 0.114 * 0.2
    expected = [keep * value + (1 - keep) * max(value, 1.5 * grey + 0.5) for value in pixel]
    given = Given(normal=[np.zeros((1, 32, 32))], uniform=[[0.5]])
    found = weather.snow(flat(1.0) * pixel, given, mean, std, zoom, threshold, radius, sigma, keep)
    assert np.allclose(found, expected)


def test_snow_flakes_are_blurred_and_fall_in_two_directions() -> None:
    mean, std, zoom, threshold, radius, sigma, keep = parameters("snow", 1)  # not enlarged
    normal = np.zeros((1, 32, 32))
    normal[0, 20, 10] = (0.7 - mean) / std
    normal[0, 5, 5] = (threshold - 0.01 - mean) / std  # no flake
    given = Given(normal=[normal], uniform=[[0.5]])
    found = weather.snow(flat(0.0), given, mean, std, zoom, threshold, radius, sigma, keep)
    flakes = found[0, ..., 0] - (1 - keep) * 0.5
    weights = np.exp(-(np.arange(17) ** 2) / (2 * sigma**2))
    levels = np.rint(math.floor(0.7 * 255) * weights / weights.sum()) / 255
    expected = np.zeros((32, 32))
    expected[20:32, 10] = levels[:12]  # at -90 degrees, pixel p looks up: a flake falls
    assert np.allclose(flakes, expected + expected[::-1, ::-1])


def test_snow_flakes_are_enlarged_from_the_middle() -> None:
    matrix = filters.zoom_matrix(32, 2.0)  # 16 pixels on 32 points
    assert np.allclose(matrix.sum(1), 1) and np.allclose(matrix @ np.arange(32), np.linspace(8, 23, 32))


def test_mud_covers_where_the_liquid_is() -> None:
    mean, std, sigma, threshold, _, mud = parameters("spatter", 5)
    normal = np.full((1, 32, 32), -5.0)
    normal[0, 10:22, 10:22] = 5.0
    found = weather.spatter(flat(0.9), Given(normal=[normal]), mean, std, sigma, threshold, 0.6, mud)[0]
    assert np.allclose(found[16, 16], np.array([63, 42, 20]) / 255, atol=1e-6)
    assert np.allclose(found[2, 2], 0.9)
    # Smoothed by a Gaussian of 0.6, an edge has a cover of 0.83, a corner of 0.69, a neighbour of 0.17.
    assert (np.abs(found - 0.9).max(-1) > 1e-9).sum() == 12**2 - 4


def test_water_adds_turquoise_up_to_its_amount() -> None:
    x = flat(0.1, 3)
    mean, std, sigma, threshold, amount, mud = parameters("spatter", 2)
    found = weather.spatter(x, draws(3), mean, std, sigma, threshold, amount, mud) - x
    assert np.allclose(found, found[..., :1] / 175 * np.array([175, 238, 238]))
    assert np.allclose(found.max((1, 2, 3)), amount * 238 / 255) and found.min() == 0
    dry = Given(normal=[np.full((3, 32, 32), -9.0)])
    assert np.array_equal(weather.spatter(x, dry, mean, std, sigma, threshold, amount, mud), x)


def test_canny_finds_edges_one_pixel_wide() -> None:
    levels = np.zeros((1, 20, 20), np.uint8)
    levels[0, :, 8:] = 60  # a step of 60: |g| = 4 * 60
    edges = filters.canny(levels, 50, 150)[0]
    assert edges[:, 7].all() and edges.sum() == 20  # of two equally steep columns, the first
    assert np.array_equal(filters.canny(levels.transpose(0, 2, 1), 50, 150)[0], edges.T)


def test_canny_keeps_weak_edges_that_touch_strong_ones() -> None:
    levels = np.zeros((3, 20, 20), np.uint8)
    levels[0, :, 8:] = np.where(np.arange(20) < 10, 60, 20)[:, None]  # strong above, weak (80) below
    levels[1, :, 8:] = 20  # weak everywhere
    levels[2, :, 8:] = 10  # below both
    edges = filters.canny(levels, 50, 150)
    assert edges[0, :9, 7].all() and edges[0, 12:, 7].all()
    assert not edges[1:].any()
    assert np.array_equal(filters.canny(levels[:1], 50, 150)[0], edges[0])  # neighbouring images play no part


def test_canny_thins_diagonals() -> None:
    rows, columns = np.mgrid[:20, :20]
    for falling in (rows + columns, rows - columns + 19):
        edges = filters.canny((255 / (1 + np.exp(-(falling - 19.0)))).astype(np.uint8)[None], 50, 150)[0]
        middle = edges[5:15, 5:15]
        assert (middle.sum(0) <= 2).all() and (middle.sum(0) >= 1).all()


def test_chamfer_distance_is_the_shortest_path() -> None:
    edges = np.zeros((3, 15, 15), bool)
    edges[0, 7, 7] = True
    edges[1, 0, 0] = edges[1, 14, 14] = True
    found = weather.chamfer_distance(edges, 20.0)
    by_hand = {
        (0, 5): 5,
        (3, 3): 3 * 1.4,
        (1, 2): 2.1969,
        (2, 4): 2 * 2.1969,
        (3, 4): 2 * 1.4 + 2.1969,
        (1, 5): 3 + 2.1969,
    }
    for (dy, dx), length in by_hand.items():
        assert found[0, 7 + dy, 7 - dx] == pytest.approx(length) and found[0, 7 - dx, 7 + dy] == pytest.approx(length)
    assert found[1, 0, 3] == 3 and found[1, 14, 10] == 4
    assert (found[2] == 20).all() and weather.chamfer_distance(edges, 2.0).max() == 2
    rows, columns = np.mgrid[-7:8, -7:8]
    assert np.abs(found[0] - np.hypot(rows, columns)).max() < 0.02 * 10


def test_equalisation_spreads_cumulative_counts() -> None:
    levels = np.array([[3, 3, 3, 3], [5, 5, 9, 9]])  # cumulative counts 4, 6, 8: after the lowest, 0, 2, 4 of 4
    assert weather.equalised(levels).tolist() == [[0, 0, 0, 0], [128, 128, 255, 255]]
    assert np.array_equal(weather.equalised(np.full((2, 2), 20)), np.full((2, 2), 20))


def test_relief_of_a_drop_is_lit_from_one_side() -> None:
    levels = np.zeros((2, 32, 32), np.uint8)
    levels[0, 8:24, 8:24] = 200
    found = weather.relief(levels)
    assert found[0].min() == 0 and found[0].max() == 255
    assert found[0, 10:15, 10:15].mean() > 2 * found[0, 17:22, 17:22].mean()
    assert (found[1] == 20).all()  # no edge: the largest distance everywhere
