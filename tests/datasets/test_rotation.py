"""Rotated images against scipy's rotation of each, exact moves of pixels, and a plane whose rotation is known."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import rotate as rotate_array

from datasets.image_transforms import METHODS, interpolated, rotate

IMAGES = np.random.RandomState(0).randint(0, 256, (5, 1, 28, 28)).astype(np.uint8)


@pytest.mark.parametrize("method", METHODS)
def test_right_angles_move_pixels_and_zero_moves_none(method: str) -> None:
    for angle in (0, 360):
        same = rotate(IMAGES, angle, method)
        assert np.array_equal(same, IMAGES) and np.shares_memory(same, IMAGES)  # not even copied
    for quarter in (1, 2, 3):
        turned = rotate(IMAGES, 90 * quarter, method)
        assert turned.dtype == np.uint8 and np.array_equal(turned, np.rot90(IMAGES, quarter, (2, 3)))
    assert np.array_equal(rotate(IMAGES, 180, method), IMAGES[:, :, ::-1, ::-1])


@pytest.mark.parametrize("angle", [1, 25, 30, 135, 359])
def test_every_image_is_turned_as_scipy_turns_it(angle: int) -> None:
    for image, bilinear, cubic in zip(IMAGES, rotate(IMAGES, angle, "bilinear"), rotate(IMAGES, angle, "cubic")):
        expected = rotate_array(image[0].astype(float), angle, reshape=False, order=1, mode="grid-constant")
        assert np.allclose(bilinear[0], expected, atol=1e-3)
        enlarged = rotate_array(image[0].astype(float), angle)
        row, column = (size // 2 - 14 for size in enlarged.shape)
        assert np.allclose(cubic[0], enlarged[row : row + 28, column : column + 28], atol=1e-2)
    assert bilinear.dtype == cubic.dtype == np.float32


def test_rotation_is_counter_clockwise_about_the_centre() -> None:
    plane = np.broadcast_to(100 + 2 * (np.arange(28) - 13.5), (1, 1, 28, 28))  # grows with the column
    turned = rotate(plane, 30, "bilinear")[0, 0]
    row, column = np.mgrid[:28, :28] - 13.5
    inside = np.hypot(row, column) < 13
    expected = 100 + 2 * (column * np.cos(np.pi / 6) - row * np.sin(np.pi / 6))
    assert np.allclose(turned[inside], expected[inside], atol=1e-3)


def test_interpolated_images_are_exact_at_right_angles_and_keep_their_background() -> None:
    images = np.random.RandomState(1).uniform(-1, 1, (3, 1, 8, 8)).astype(np.float32)
    for quarter in (1, 2, 3):  # numpy's rot90 turns counter-clockwise
        assert np.allclose(interpolated(images, 90 * quarter), np.rot90(images, quarter, (2, 3)), atol=1e-6)
    assert (interpolated(np.full((2, 1, 8, 8), -1.0, np.float32), 45, -1.0) == -1).all()
    plane = np.broadcast_to(np.arange(8, dtype=np.float64) - 3.5, (1, 1, 8, 8))  # value = column - centre
    row, column = np.mgrid[:8, :8] - 3.5
    inside = np.hypot(row, column) < 3.5
    expected = column * np.cos(np.pi / 6) - row * np.sin(np.pi / 6)  # at the source of (row, column)
    assert np.allclose(interpolated(plane, 30)[0, 0][inside], expected[inside], atol=1e-12)


def test_bilinear_stays_between_black_and_white_and_fills_with_black() -> None:
    turned = rotate(np.full((1, 1, 28, 28), 255, np.uint8), 45, "bilinear")[0, 0]
    assert turned.min() == 0 and turned.max() == pytest.approx(255)
    assert turned[0, 0] == turned[-1, 0] == 0 and turned[14, 14] == pytest.approx(255)


@pytest.mark.parametrize("method", METHODS)
def test_channels_turn_alike_and_batches_do_not_matter(method: str) -> None:
    colours = np.concatenate([IMAGES, IMAGES // 2, IMAGES // 3], axis=1)
    turned = rotate(colours, 20, method)
    for c in range(3):
        assert np.array_equal(turned[:, c : c + 1], rotate(colours[:, c : c + 1], 20, method))
    assert np.array_equal(rotate(IMAGES[2:3], 20, method), rotate(IMAGES, 20, method)[2:3])


@pytest.mark.parametrize("method", ["cubic", "spline"])
def test_splines_are_to_the_bit_those_of_scipy_in_double_precision(method: str) -> None:
    for image, turned in zip(IMAGES, rotate(IMAGES, 25, method)):
        whole = rotate_array(image[0].astype(float), 25, reshape=method == "cubic")
        row, column = (size // 2 - 14 for size in whole.shape)
        assert np.array_equal(turned[0], whole[row : row + 28, column : column + 28].astype(np.float32))


@pytest.mark.parametrize("angle", [1, 10, 45, 100, 170, 359])
def test_nearest_is_the_default_of_torchvision_on_pictures(angle: int) -> None:
    functional = pytest.importorskip("torchvision.transforms.functional", exc_type=ImportError)
    turned = rotate(np.concatenate([IMAGES, 255 - IMAGES], axis=1), angle, "nearest")
    assert turned.dtype == np.uint8
    for image, ours in zip(IMAGES, turned):
        for channel, pixels in zip(ours, (image[0], 255 - image[0])):
            assert np.array_equal(channel, np.asarray(functional.rotate(Image.fromarray(pixels), angle)))


def test_another_method_is_refused() -> None:
    with pytest.raises(ValueError, match="rotation by 'linear': expected one of bilinear, cubic, nearest"):
        rotate(IMAGES, 10, "linear")
