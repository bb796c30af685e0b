"""Digits: class balance, pixel scale, rotations and patches of photographs."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.datasets

from datasets import digits, load
from datasets.image_transforms import interpolated

COUNTS = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_images_and_labels_are_the_known_ones() -> None:
    x, y = digits.images_and_labels()
    assert np.bincount(y).tolist() == COUNTS
    assert x.shape == (1797, 1, 8, 8) and x.min() == -1 and x.max() == 1
    assert np.array_equal((x[:, 0] + 1) * 8, sklearn.datasets.load_digits().images)


@pytest.mark.parametrize("number", [0, 9])
def test_split_is_stratified(number: int) -> None:
    split = load("digits", number)
    train, test = np.bincount(split.train.y), np.bincount(split.test.y)
    assert (train + test).tolist() == COUNTS
    assert np.abs(train - 0.7 * np.array(COUNTS)).max() <= 0.5
    assert len(np.unique(split.train.y[:100])) == 10  # in random order
    zeros = np.random.RandomState(number).permutation(np.flatnonzero(digits.images_and_labels()[1] == 0))
    assert set(split.rows["train"]) >= set(zeros[:125]) and set(split.rows["test"]) >= set(zeros[125:])


def test_rows_belong_to_the_images() -> None:
    split, (x, y) = load("digits", 2), digits.images_and_labels()
    assert np.array_equal(split.test.x, x[split.rows["test"]])
    assert np.array_equal(split.test.y, y[split.rows["test"]])


def test_rotated_sets_keep_labels_and_conditions() -> None:
    split = load("digits")
    names = [name for name in split.evaluation_sets() if name.startswith("rotation")]
    assert names == [f"rotation-{angle}" for angle in range(15, 181, 15)]
    rotated = split.evaluation("rotation-45")
    assert (rotated.kind, rotated.condition) == ("shift", "shift=rotation;angle=45")
    assert np.array_equal(rotated.y, split.test.y)
    assert np.array_equal(rotated.x, interpolated(split.test.x, 45, -1.0))
    assert rotated.x[:, :, 0, 0].max() == -1  # nothing was there


def test_photographs_of_contexts_and_of_the_test_differ() -> None:
    split = load("digits")
    ood, contexts = split.evaluation("ood-photos"), split.pool("photos")
    assert ood.x.shape == split.test.x.shape and ood.condition == "ood=photos"
    tests = {patch.tobytes() for patch in digits.patches(digits.OOD_PHOTO)}
    assert {patch.tobytes() for patch in ood.x} <= tests
    assert not {patch.tobytes() for patch in contexts.x} & tests
    assert digits.CONTEXT_PHOTO != digits.OOD_PHOTO
    assert np.array_equal(load("digits", 1).evaluation("ood-photos").x, ood.x)


def test_patches_are_cut_from_the_reduced_photograph() -> None:
    photo = sklearn.datasets.load_sample_image("flower.jpg").astype(float)
    grey = photo @ [0.299, 0.587, 0.114] / 127.5 - 1
    patches = digits.patches("flower.jpg")
    assert -1 <= patches.min() < -0.9 and 0.5 < patches.max() <= 1
    columns = ((640 // 4) - 8) // 2 + 1
    patch = patches[3 * columns + 5, 0]  # its corner: row 2 * 3, column 2 * 5 of the reduced photograph
    assert patch[1, 2] == pytest.approx(grey[28:32, 48:52].mean(), abs=1e-6)


def test_held_out_images_come_from_the_training_images() -> None:
    whole, held = load("digits", 3), load("digits", 3, scheme="validation")
    assert held.validation is not None and len(held.validation) == 250 and len(held.train) == 1258 - 250
    assert np.array_equal(held.test.x, whole.test.x) and np.array_equal(held.test.y, whole.test.y)
    kept, aside = held.rows["train"], held.rows["validation"]
    assert sorted([*kept, *aside]) == sorted(whole.rows["train"]) and not set(aside) & set(held.rows["test"])
    assert np.abs(np.bincount(held.validation.y) - 0.2 * np.bincount(whole.train.y)).max() <= 0.5
    assert whole.fingerprint == load("digits", 3, scheme="").fingerprint != held.fingerprint
