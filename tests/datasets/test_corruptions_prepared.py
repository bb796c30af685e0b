"""CIFAR-10-C as tensorflow-datasets prepares it: in another order, read without TensorFlow, refused when damaged."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from datasets import BadData
from datasets.corruptions import corrupt, corrupted, upstream
from datasets.corruptions.source import published
from tests.datasets import corrupting
from tests.datasets.corrupting import LABELS, N, as_tar, clean, files, photos


@pytest.fixture
def lay(write: Callable) -> Callable[..., None]:
    def lay(root: Path, inside: str = "cifar10_c/", **changes) -> None:
        for name, content in corrupting.prepared(**changes).items():
            write(root, f"{inside}{name.removeprefix('cifar10_c/')}", content)

    return lay


@pytest.mark.parametrize("place", ["cache", "mirror", "own"])
def test_images_come_in_the_order_of_the_test_set(
    places: tuple[Path, Path], lay: Callable, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place == "own":
        monkeypatch.setenv(upstream.VARIABLE, str(tmp_path / "tfds"))
        lay(tmp_path / "tfds", inside="")
    else:
        lay(places[place == "mirror"])
    assert published("cifar10") and not published("cifar100")
    images, whose = corrupted("cifar10", "gaussian_noise", 2, clean(), LABELS)
    expected = corrupt(photos()[:N], "gaussian_noise", 2, seed=7).transpose(0, 3, 1, 2)
    assert whose == "CIFAR-10-C, prepared by tensorflow-datasets"
    assert images.dtype == np.uint8 and np.array_equal(images, expected)
    assert np.array_equal(corrupted("cifar10", "glass_blur", 1, clean(), LABELS)[0], expected)
    rows = np.array([1, 4, 11])
    assert np.array_equal(corrupted("cifar10", "gaussian_noise", 2, clean(), LABELS, rows=rows)[0], expected[rows])
    assert not list(places[0].rglob("*generated*"))


def test_the_order_is_that_of_the_library() -> None:
    from tensorflow_datasets.core import hashing

    hasher = hashing.Hasher("test")
    hashed = sorted(range(1000), key=hasher.hash_key)
    assert [upstream._places(1000)[number] for number in hashed] == list(range(1000))


def test_arrays_of_the_authors_go_first(places: tuple[Path, Path], lay: Callable, write: Callable) -> None:
    lay(places[1])
    write(places[1], "cifar10_c/CIFAR-10-C.tar", as_tar(files()))
    assert corrupted("cifar10", "gaussian_noise", 2, clean(), LABELS)[1] == "CIFAR-10-C, published arrays"


def test_what_is_not_prepared_or_of_other_images_is_refused(places: tuple[Path, Path], lay: Callable) -> None:
    def read(severity: int = 2, labels: np.ndarray = LABELS) -> None:
        corrupted("cifar10", "gaussian_noise", severity, clean()[: len(labels)], labels)

    lay(places[1])
    with pytest.raises(BadData, match="gaussian_noise_3: expected the folder of a version .*, found none"):
        read(severity=3)
    with pytest.raises(BadData, match="expected 11 images, found 12"):
        read(labels=LABELS[:-1])
    with pytest.raises(BadData, match="expected label 1 of test image 0 at place .*, found 0: the images are not in"):
        read(labels=LABELS + 1)
    lay(places[1], shape=(31, 32, 3))
    with pytest.raises(BadData, match=r"expected images uint8 \[32, 32, 3\], found uint8 \[31, 32, 3\]"):
        read()


def test_no_tensorflow_is_needed(places: tuple[Path, Path], lay: Callable) -> None:
    lay(places[0])
    program = (
        "import sys, datasets.corruptions; from tests.datasets.corrupting import LABELS, clean; "
        "print(datasets.corruptions.corrupted('cifar10', 'gaussian_noise', 2, clean(), LABELS)[0].shape, "
        "'tensorflow' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.split("\n")[0] == "(12, 3, 32, 32) False"
