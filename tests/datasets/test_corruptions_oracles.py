"""Noises, blurs, colours and geometry against cases worked out by hand, or against another way to compute them."""

from __future__ import annotations

import colorsys
import math

import numpy as np
import pytest
from scipy import ndimage

from datasets.corruptions import effects, filters
from tests.datasets.corrupting import Given, dot, draws, flat, parameters, photos


@pytest.mark.parametrize("severity", [1, 5])
def test_gaussian_noise_has_its_deviation_everywhere(severity: int) -> None:
    (std,) = parameters("gaussian_noise", severity)
    for value in (0.1, 0.9):
        difference = effects.gaussian_noise(flat(value, 20), draws(20), std) - value
        assert abs(difference.mean()) < 5 * std / math.sqrt(difference.size)
        assert difference.std() == pytest.approx(std, rel=0.02)
        assert abs(np.corrcoef(difference[..., 0].ravel(), difference[..., 1].ravel())[0, 1]) < 0.03


def test_speckle_noise_is_proportional_to_the_value() -> None:
    (std,) = parameters("speckle_noise", 3)
    for value in (0.0, 0.2, 0.8):
        difference = effects.speckle_noise(flat(value, 20), draws(20), std) - value
        assert difference.std() == pytest.approx(std * value, rel=0.02)


def test_shot_noise_counts_photons() -> None:
    (photons,) = parameters("shot_noise", 5)
    for value in (0.0, 0.3, 1.0):
        counts = effects.shot_noise(flat(value, 20), draws(20), photons) * photons
        assert np.allclose(counts, np.rint(counts)) and counts.min() >= 0
        assert counts.mean() == pytest.approx(value * photons, rel=0.01)
        assert counts.var() == pytest.approx(value * photons, rel=0.03)  # Poisson: variance equals mean


def test_impulse_noise_is_as_much_salt_as_pepper() -> None:
    (share,) = parameters("impulse_noise", 5)
    changed = effects.impulse_noise(flat(0.4, 50), draws(50), share)
    assert set(np.unique(changed)) == {0.0, 0.4, 1.0}
    for value in (0.0, 1.0):
        assert (changed == value).mean() == pytest.approx(share / 2, rel=0.05)
    alone = (changed != 0.4).sum(-1) == 1  # of the three channels
    assert alone.mean() == pytest.approx(3 * share * (1 - share) ** 2, rel=0.1)


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_gaussian_blur_of_a_dot_is_a_bell(severity: int) -> None:
    (sigma,) = parameters("gaussian_blur", severity)
    reach = int(4 * sigma + 0.5)
    bell = np.array([math.exp(-(i**2) / (2 * sigma**2)) for i in range(-reach, reach + 1)])
    bell /= bell.sum()
    expected = dot()
    expected[0, 16 - reach : 17 + reach, 16 - reach : 17 + reach] = np.outer(bell, bell)[..., None]
    assert np.allclose(effects.gaussian_blur(dot(), None, sigma), expected, atol=1e-12)
    corner = effects.gaussian_blur(dot(0, 0), None, sigma)[0, 0, 0, 0]
    assert corner == pytest.approx(bell[: reach + 1].sum() ** 2)  # the border is repeated


def test_defocus_kernels() -> None:
    side = 1 / (1 + 2 * math.exp(-1 / (2 * 0.4**2)))  # weight of the middle of three, sigma 0.4
    edge = (1 - side) / 2
    # At 4, a Gaussian of 0.2 has exp(-12.5) to the side: the plus of five pixels stays.
    kernels = {
        1: np.outer([edge, side, edge], [edge, side, edge]),
        5: np.ones((3, 3)) / 9,
        4: np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]]) / 5,
    }
    for severity, kernel in kernels.items():
        found = effects.defocus_blur(dot(), None, *parameters("defocus_blur", severity))[0, ..., 0]
        assert np.allclose(found[15:18, 15:18], kernel, atol=1e-5) and found.sum() == pytest.approx(1)
    corner = effects.defocus_blur(dot(0, 0), None, 1.5, 0.1)[0, ..., 0]
    assert np.allclose(corner[:2, :2], 1 / 9)  # mirrored about the border pixel: it is seen once


@pytest.mark.parametrize("severity", [1, 2, 5])
def test_glass_blur_is_a_sequence_of_copies(severity: int) -> None:
    """Pixel by pixel from the lower right, as the published arrays were made: swaps of views, which only copy."""
    sigma, reach, repeats = parameters("glass_blur", severity)
    x = photos()[:2] / 255
    expected, given = [], draws(2)
    offsets = [given.integers(0, reach + 1, 2, 30, 30) for _ in range(repeats)]
    for number, image in enumerate(x):
        smoothed = ndimage.gaussian_filter(image, (sigma, sigma, 0), mode="nearest")
        levels = np.floor(smoothed * 255 + 1e-6).astype(np.uint8)
        for offset in offsets:
            for h in range(31, 1, -1):
                for w in range(31, 1, -1):
                    up, left = offset[number, :, h - 2, w - 2]
                    levels[h, w], levels[h - up, w - left] = levels[h - up, w - left], levels[h, w]
        expected.append(ndimage.gaussian_filter(levels / 255, (sigma, sigma, 0), mode="nearest"))
    assert np.allclose(effects.glass_blur(x, draws(2), sigma, reach, repeats), expected, atol=1e-12)


def test_motion_blur_of_a_dot_is_half_a_bell_along_the_angle() -> None:
    weights = np.array([math.exp(-(i**2) / 8) for i in range(13)])
    weights /= weights.sum()
    levels = np.rint(weights * 255)
    for angle, (down, right) in {0: (0, 1), 90: (1, 0), -90: (-1, 0), 180: (0, -1)}.items():
        found = filters.motion_blur(dot(), 6, 2, np.array([angle]))[0, ..., 1] * 255
        trace = [found[16 - i * down, 16 - i * right] for i in range(13)]  # pixel p looks at p + i u
        assert np.allclose(trace, levels) and found.sum() == pytest.approx(levels.sum())


def test_motion_blur_rounds_offsets_and_repeats_the_border() -> None:
    x = np.random.default_rng(0).random((2, 32, 32))
    angles = np.array([30.0, -40.0])
    weights = np.exp(-(np.arange(13) ** 2) / 2)
    for image, angle, found in zip(x, angles, filters.motion_blur(x, 6, 1, angles), strict=True):
        down, right = (np.ceil(np.arange(13) * side(math.radians(angle)) - 0.5) for side in (math.sin, math.cos))
        for row, column in ((0, 0), (5, 30), (31, 31), (12, 17)):
            rows, columns = (np.clip(place, 0, 31).astype(int) for place in (row + down, column + right))
            seen = [image[place] for place in zip(rows, columns, strict=True)]
            assert found[row, column] == pytest.approx(round(np.average(seen, weights=weights) * 255) / 255)
    turned = effects.motion_blur(x[..., None], Given(uniform=[[0.25, 0.75]]), 6, 1)  # of the range -45 to 45
    assert np.allclose(turned[..., 0], filters.motion_blur(x, 6, 1, np.array([-22.5, 22.5])))


@pytest.mark.parametrize(("severity", "factors"), [(1, np.arange(1, 1.06, 0.01)), (5, np.arange(1, 1.26, 0.01))])
def test_zoom_blur_is_the_mean_of_enlargements(severity: int, factors: np.ndarray) -> None:
    image = photos()[7] / 255
    enlarged = []
    for factor in factors:
        kept = math.ceil(32 / factor)
        top = (32 - kept) // 2
        zoomed = ndimage.zoom(image[top : top + kept, top : top + kept], (factor, factor, 1), order=1)
        start = (len(zoomed) - 32) // 2
        enlarged.append(zoomed[start : start + 32, start : start + 32])
    expected = (image + sum(enlarged)) / (len(factors) + 1)
    assert np.allclose(effects.zoom_blur(image[None], None, *parameters("zoom_blur", severity))[0], expected, atol=1e-9)


@pytest.mark.parametrize("severity", [1, 5])
def test_brightness_and_saturation_against_colorsys(severity: int) -> None:
    x = np.random.default_rng(severity).random((1, 8, 8, 3))
    x[0, 0, :4] = [[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.5], [1, 0, 0]]
    x[0, 0, 4:] = [[0, 0.2, 0.2], [0.9, 0.9, 0.1], [0, 0, 0.01], [1, 0, 1]]
    (more,), (factor, added) = parameters("brightness", severity), parameters("saturate", severity)
    bright, saturated = effects.brightness(x, None, more), effects.saturate(x, None, factor, added)
    for place in np.ndindex(1, 8, 8):
        hue, saturation, value = colorsys.rgb_to_hsv(*x[place])
        assert np.allclose(bright[place], colorsys.hsv_to_rgb(hue, saturation, min(value + more, 1)))
        changed = min(saturation * factor + added, 1)
        assert np.allclose(saturated[place], colorsys.hsv_to_rgb(hue, changed, value))


def test_contrast_shrinks_about_each_channels_mean() -> None:
    x = flat(0.2, 2)
    x[0, :16], x[1, :, :8, 2] = 0.6, 1.0
    changed = effects.contrast(x, None, *parameters("contrast", 5))
    assert np.allclose(changed[0, :16], 0.4 + 0.15 * 0.2) and np.allclose(changed[0, 16:], 0.4 - 0.15 * 0.2)
    assert np.allclose(changed[1, ..., :2], 0.2) and np.allclose(changed[1, :, :8, 2], 0.4 + 0.15 * 0.6)


def test_pixelate_takes_means_of_blocks() -> None:
    x = photos()[:2]
    along_rows = np.floor(x.reshape(2, 32, 16, 2, 3).mean(3) + 0.5)  # rounded along both axes, halves up
    means = np.floor(along_rows.reshape(2, 16, 2, 16, 3).mean(2) + 0.5)
    assert np.array_equal(effects.pixelate(x / 255, None, 0.5) * 255, means.repeat(2, 1).repeat(2, 2))
    ramp = np.broadcast_to(np.arange(32)[:, None, None] / 32, (1, 32, 32, 3))
    for severity, side in zip((1, 2, 3, 4, 5), (30, 28, 27, 24, 20), strict=True):
        assert len(np.unique(effects.pixelate(ramp, None, *parameters("pixelate", severity)))) == side


def test_jpeg_quantises_the_mean_of_blocks_by_the_standard_table() -> None:
    """A flat block is its mean alone: 8 (value - 128), in steps of the luminance table's first entry, 16, scaled."""
    for severity, step in zip((1, 2, 3, 4, 5), (6, 11, 13, 16, 20), strict=True):
        (quality,) = parameters("jpeg_compression", severity)
        assert step == (16 * (200 - 2 * quality if quality >= 50 else 5000 // quality) + 50) // 100
        for value in (4, 78, 132, 250):
            found = effects.jpeg_compression(flat(value / 255), None, quality) * 255
            assert np.abs(found - 128 - round(8 * (value - 128) / step) * step / 8).max() <= 0.51


def test_elastic_transform_moves_and_mirrors() -> None:
    x = photos()[:1] / 255
    still = np.zeros((1, 2, 32, 32))
    half = np.full((1, 3, 2), 0.5)  # the middle of the range: no move
    assert np.allclose(effects.elastic_transform(x, Given(uniform=[half, still + 0.5]), 2.0, 1.0, 3.0), x)
    right = half + np.array([0.25, 0.0])  # 0.25 of the range from -4 to 4: two pixels to the right
    moved = effects.elastic_transform(x, Given(uniform=[right, still + 0.5]), 2.0, 1.0, 4.0)
    assert np.allclose(moved[:, :, 2:], x[:, :, :-2]) and np.allclose(moved[:, :, 0], x[:, :, 2])
    down = np.stack([still[:, 0] + 0.5, still[:, 1] + 1], 1)
    shifted = effects.elastic_transform(x, Given(uniform=[half, down]), 1.5, 1.0, 0.0)
    between = (x[:, 1:-1] + x[:, 2:]) / 2  # places 1.5 rows below
    assert np.allclose(shifted[:, :-2], between)
    assert np.allclose(shifted[:, -1], (x[:, -1] + x[:, -2]) / 2)  # rows 32 and 33 mirror 31 and 30


def test_elastic_transform_is_the_affine_map_of_three_points() -> None:
    given = np.random.default_rng(1).random((1, 3, 2))
    corners = np.array([[26, 26], [26, 6], [6, 6]])  # (x, y)
    bump = np.zeros((1, 32, 32, 3))
    bump[0, 6, 26], bump[0, 6, 6] = [1, 0, 0], [0, 1, 0]
    bump = ndimage.gaussian_filter(bump, (0, 1, 1, 0))
    moved = effects.elastic_transform(bump, Given(uniform=[given, np.full((1, 2, 32, 32), 0.5)]), 0.0, 1.0, 2.0)[0]
    for channel, corner in ((0, 1), (1, 2)):
        weights = moved[..., channel] / moved[..., channel].sum()
        rows, columns = np.mgrid[:32, :32]
        centre = np.array([(weights * columns).sum(), (weights * rows).sum()])
        assert np.allclose(centre, corners[corner] + 4 * given[0, corner] - 2, atol=0.05)


def test_elastic_transform_of_smooth_noise_against_map_coordinates() -> None:
    x, given = photos()[:1] / 255, np.random.default_rng(2).random((1, 2, 32, 32))
    amount, sigma, _ = parameters("elastic_transform", 4)
    found = effects.elastic_transform(x, Given(uniform=[np.full((1, 3, 2), 0.5), given]), amount, sigma, 1.0)[0]
    right, down = (
        amount * ndimage.gaussian_filter(2 * noise - 1, sigma, mode="reflect", truncate=3) for noise in given[0]
    )
    rows, columns = np.mgrid[:32, :32]
    for channel in range(3):
        expected = ndimage.map_coordinates(x[0, ..., channel], [rows + down, columns + right], order=1, mode="reflect")
        assert np.allclose(found[..., channel], expected, atol=1e-9)
