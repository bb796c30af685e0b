"""Tests of Graham's preprocessing: which pixels count as the eye, and how far local averages reach."""

from __future__ import annotations

import numpy as np

from datasets.fundus.preprocessed import eye_box, graham


def test_the_eye_is_brighter_than_a_tenth_of_the_mean_in_a_fiftieth_of_a_line() -> None:
    image = np.zeros((100, 100, 3), np.uint8)
    image[20:80, 20:80] = 200
    image[10:20, 50] = 200  # a hundredth of these rows: none of the eye's
    image[80:90, 50:53] = 200  # three hundredths: the eye's
    image[20:80, 10:20] = 5  # 7 % of the mean
    image[20:80, 80:90] = 10  # 14 %
    mean = image.mean()
    assert mean / 20 < 5 < mean / 10 < 10 < mean / 5
    assert eye_box(image) == (20, 20, 90, 90)


def test_an_eye_has_a_tenth_of_the_images_sides() -> None:
    for width, height, is_one in ((9, 6, True), (7, 6, False), (9, 4, False)):
        image = np.zeros((50, 80, 3), np.uint8)
        image[20 : 20 + height, 30 : 30 + width] = 90
        assert eye_box(image) == ((30, 20, 30 + width, 20 + height) if is_one else (0, 0, 80, 50))


def test_local_averages_reach_three_deviations_far() -> None:
    side, sigma, reach = 200, 200 / 60, 10
    image = np.zeros((1, 3, side, side), np.uint8)
    image[..., 100:] = 255
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    blurred = np.convolve(image[0, 0, 0], weights / weights.sum(), "same")
    expected = np.clip(np.rint(128 + 4 * (image[0, 0, 0] - blurred)), 0, 255)
    # Nothing that is seen is nearer than three deviations to the image's border: what continues it plays no part.
    found = graham(image)[0, :, 95:105, 10:-10]
    assert (found == expected[10:-10]).all()
    near, far = 100 - reach, 100 - reach - 1
    assert expected[near] == 127 and expected[far] == 128
