"""RetinaMNIST: findings, outlines, and what its file has to hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import datasets
from datasets import BadData, retina_mnist
from datasets.checks import stamped
from datasets.image_transforms import outlines
from tests.datasets.fundus_files import MEDMNIST, medmnist

GRADES = {  # of MedMNIST's file
    "train": [486, 128, 206, 194, 66],
    "validation": [54, 12, 28, 20, 6],
    "test": [174, 46, 92, 68, 20],
}


@pytest.fixture
def small(places: tuple[Path, Path], register: Callable, write: Callable, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a small RetinaMNIST."""
    monkeypatch.setattr(retina_mnist, "SIZES", MEDMNIST)
    register({retina_mnist.FILE: medmnist()})
    return write(places[1], retina_mnist.FILE, medmnist())


def test_findings_begin_at_their_grade(small: Path) -> None:
    grades = {part: np.arange(n) % 5 for part, n in MEDMNIST.items()}
    for scheme, first in (("moderate", 2), ("mild", 1), ("outline", 2)):
        split = datasets.load("retina_mnist", scheme=scheme)
        assert split.screens and split.n_outputs == 2
        for part, found in grades.items():
            assert getattr(split, part).y.tolist() == (found >= first).astype(int).tolist()
    assert datasets.load("retina_mnist").scheme == "moderate"


def test_images_have_their_channels_first(small: Path) -> None:
    with np.load(small) as held:
        expected = held["test_images"]
    split = datasets.load("retina_mnist")
    assert np.array_equal(split.test.x.transpose(0, 2, 3, 1), expected)
    assert datasets.load("retina_mnist", scheme="outline").test.x.shape == (6, 1, 14, 14)


def test_outlines_are_shares_of_pixels_above_a_tenth_of_the_mean() -> None:
    image = np.zeros((2, 3, 4, 4), np.uint8)
    image[0, :, :2, :2] = 100  # the mean brightness is 75, a tenth of it 7.5
    image[0, 0, 2, 2], image[0, 0, 2, 3] = 8, 7
    found = outlines(image, 2)
    assert found.shape == (2, 1, 2, 2) and found.dtype == np.uint8
    assert found[0, 0].tolist() == [[255, 0], [0, 63]] and not found[1].any()


def test_grades_beyond_the_scale_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retina_mnist, "SIZES", MEDMNIST)
    path = tmp_path / "retinamnist.npz"
    path.write_bytes(medmnist(test_labels=np.array([[0], [1], [2], [3], [4], [5]], np.uint8)))
    with pytest.raises(BadData, match=r"retinamnist.npz, test_labels: expected labels from 0 to 4, found .*5"):
        retina_mnist.read(*stamped(path))
    path.write_bytes(medmnist(train_images=np.zeros((8, 28, 27, 3), np.uint8)))
    with pytest.raises(BadData, match=r"train: images uint8 \(8, 28, 27, 3\)"):
        retina_mnist.read(*stamped(path))


def test_real_file_holds_what_is_known_of_it(load_or_skip: Callable) -> None:
    load_or_skip("retina_mnist")
    parts = retina_mnist.read(*stamped(datasets.fetch.locate(retina_mnist.FILE)))
    assert {part: np.bincount(grades).tolist() for part, (_, grades) in parts.items()} == GRADES
