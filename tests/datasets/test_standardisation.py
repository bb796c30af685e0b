"""Scheme cinquin2024-pixelwise: pixels standardised each by itself, against numpy, and the sets that it makes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.ndimage import rotate as rotate_array

import datasets
from datasets import image_sets
from datasets.checks import check_split
from datasets.image_schemes import SCHEMES
from datasets.image_transforms import pixel_moments, standardised

SCHEME = "cinquin2024-pixelwise"
"""Scheme of the code of the first author's next paper: standardize_image_data, OOD detection, angles and KMNIST."""


def by_definition(images: np.ndarray, of: np.ndarray) -> np.ndarray:
    x, of = images / 255, of / 255
    return (x - of.mean(0)) / (of.std(0) + 1e-10)


@pytest.fixture(autouse=True)
def fresh_pools() -> None:
    image_sets._scaled_pool.cache_clear()


@pytest.mark.parametrize("channels", [1, 3])
def test_each_pixel_has_a_scale_of_its_own(channels: int) -> None:
    random = np.random.RandomState(0)
    of = random.randint(0, 256, (50, channels, 5, 5)).astype(np.uint8)
    images = random.randint(0, 256, (7, channels, 5, 5)).astype(np.uint8)
    mean, std = pixel_moments(of)
    np.testing.assert_allclose(mean, (of / 255).mean(0), rtol=1e-14)
    np.testing.assert_allclose(std, (of / 255).std(0), rtol=1e-12)
    found = standardised(images, of)
    assert found.dtype == np.float32 and found.shape == images.shape
    np.testing.assert_allclose(found, by_definition(images, of), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(standardised(of).mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(standardised(of).std(0), 1, atol=1e-5)


def test_a_pixel_that_never_changes_is_zero_and_huge_where_it_does() -> None:
    of = np.random.RandomState(0).randint(0, 256, (20, 1, 2, 2)).astype(np.uint8)
    of[:, 0, 0, 0] = 0
    other = of[:1].copy()
    other[0, 0, 0, 0] = 24  # as test image 7024 of MNIST
    assert (standardised(of)[:, 0, 0, 0] == 0).all()
    assert standardised(other, of)[0, 0, 0, 0] == pytest.approx(24 / 255 / 1e-10, rel=1e-6)


def test_images_of_the_set_are_standardised_by_its_training_part(bring: Callable) -> None:
    train, test = bring("mnist", "train", 60), bring("mnist", "test", 20)
    split = check_split(datasets.load("mnist", 2, scheme=SCHEME))
    assert split.pixels is None and split.version == "1"
    raw = train["images"][split.rows["train"]]
    for found, images in (
        (split.train.x, raw),
        (split.validation.x, train["images"][split.rows["validation"]]),
        (split.test.x, test["images"]),
    ):
        np.testing.assert_allclose(found, by_definition(images, raw), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(split.low, split.train.x.min(0))
    np.testing.assert_array_equal(split.high, split.train.x.max(0))


def test_the_partner_is_its_first_training_images_by_their_own_pixels(bring: Callable) -> None:
    for name in ("mnist", "fashion_mnist"):
        train = bring(name, "train", 40)
        bring(name, "test", 20)
    other = datasets.load("mnist", scheme=SCHEME).evaluation("ood-fashion_mnist")
    images = train["images"][:20]
    np.testing.assert_allclose(other.x, by_definition(images, images), rtol=1e-5, atol=1e-5)
    assert other.y is None and other.condition == "ood=fashion_mnist"
    assert other.source == "fashion_mnist, train part, brought as arrays, 40 images, of which the first 20"


def test_contexts_are_all_images_of_kmnist_by_their_own_pixels(bring: Callable) -> None:
    bring("mnist", "train", 60), bring("mnist", "test", 20)
    test = bring("kmnist", "test", 20)
    alone = datasets.load("mnist", scheme=SCHEME).pool("kmnist")  # where no training images are at hand
    np.testing.assert_allclose(alone.x, by_definition(test["images"], test["images"]), rtol=1e-5, atol=1e-5)
    train = bring("kmnist", "train", 30)
    pools = [datasets.load("mnist", split, scheme=SCHEME).pool("kmnist") for split in range(2)]
    images = np.concatenate([train["images"], test["images"]])
    np.testing.assert_allclose(pools[0].x, by_definition(images, images), rtol=1e-5, atol=1e-5)
    assert pools[0] is pools[1], "made once"
    part = "kmnist, {} part, brought as arrays, {} images"
    assert pools[0].source == f"{part.format('train', 30)} and {part.format('test', 20)}"
    assert set(datasets.training_content("mnist", SCHEME, ["kmnist"])) == {"mnist/train", "kmnist/train", "kmnist/test"}
    with pytest.raises(datasets.DataNotFound, match="contexts are drawn from it here"):
        datasets.load("mnist", scheme=SCHEME).evaluation("ood-kmnist")


@pytest.mark.parametrize("angle", [0, 20, 100, 180])
def test_standardised_images_are_turned_by_splines_that_leave_zero(bring: Callable, angle: int) -> None:
    bring("mnist", "train", 60), bring("mnist", "test", 20)
    split = datasets.load("mnist", scheme=SCHEME)
    found = split.evaluation(f"rotation-{angle}")
    expected = rotate_array(split.test.x.astype(np.float64), angle, axes=(2, 3), reshape=False)
    np.testing.assert_allclose(found.x, expected, atol=1e-3)
    assert found.condition == f"shift=rotation;angle={angle}"


def test_angles_are_those_of_figure_13() -> None:
    assert list(SCHEMES["mnist"][SCHEME].angles) == [0, 20, 40, 60, 80, 100, 120, 140, 160, 180]
    assert SCHEMES["mnist"][SCHEME].angles == SCHEMES["fashion_mnist"][SCHEME].angles
