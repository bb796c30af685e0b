"""Tests of all 19 corruptions: form, identity at severity 0, growth with severity, random numbers of each image."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from datasets import DataNotFound
from datasets.corruptions import CORRUPTIONS, GROWING, SEVERITIES, corrupt, generator
from tests.datasets.corrupting import frost_or_skip, photos

RANDOM = set(CORRUPTIONS) - {
    "gaussian_blur",
    "defocus_blur",
    "zoom_blur",
    "brightness",
    "contrast",
    "saturate",
    "pixelate",
    "jpeg_compression",
}


@pytest.fixture(params=CORRUPTIONS)
def name(request) -> str:
    """Every corruption; frost only where its files are within reach."""
    if request.param == "frost":
        frost_or_skip()
    return request.param


def test_there_are_the_nineteen_of_the_benchmark() -> None:
    assert len(CORRUPTIONS) == len(set(CORRUPTIONS)) == 19
    assert CORRUPTIONS[-4:] == ("speckle_noise", "gaussian_blur", "spatter", "saturate")  # its validation corruptions


def test_form_is_kept_and_the_images_are_not_touched(name: str) -> None:
    images = photos()[:3].copy()
    for severity in SEVERITIES:
        changed = corrupt(images, name, severity)
        assert changed.dtype == np.uint8 and changed.shape == images.shape
        assert (changed != images).mean() > 0.005 and changed.std() > 10
    assert np.array_equal(images, photos()[:3])


def test_severity_zero_is_the_identity(name: str) -> None:
    images = photos()[:3]
    same = corrupt(images, name, 0)
    assert np.array_equal(same, images) and not np.shares_memory(same, images)


@cache
def distances(name: str) -> dict[int, float]:
    """Mean squared distance from the clean images at every severity."""
    images = photos()
    return {severity: ((corrupt(images, name, severity) / 1.0 - images) ** 2).mean() for severity in SEVERITIES}


def test_distortion_grows_with_severity(name: str) -> None:
    """Distances grow with severity for thirteen corruptions, and in the order of their parameters for the other six."""
    found = [distances(name)[severity] for severity in GROWING[name]]
    assert all(further > 1.04 * nearer for nearer, further in itertools.pairwise(found)), found
    assert (GROWING[name] == SEVERITIES) == (
        name not in {"glass_blur", "motion_blur", "frost", "elastic_transform", "spatter", "saturate"}
    )


def test_an_image_is_the_same_in_every_batch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    images = photos()[::4]
    for severity in (1, 3, 5):
        whole = corrupt(images, name, severity)
        assert np.array_equal(corrupt(images[5:9], name, severity, numbers=range(5, 9)), whole[5:9])
        some = np.array([1, 4, 10])
        assert np.array_equal(corrupt(images[some], name, severity, numbers=some), whole[some])
        with monkeypatch.context() as in_threes:
            in_threes.setattr(generator, "CHUNK", 3)
            assert np.array_equal(corrupt(images, name, severity), whole)


def test_random_numbers_depend_on_seed_image_and_severity(name: str) -> None:
    images = np.repeat(photos()[:1], 3, 0)
    changed = corrupt(images, name, 4)
    assert np.array_equal(corrupt(images, name, 4, seed=0), changed)
    assert np.array_equal(changed[0], changed[1]) != (name in RANDOM)
    assert np.array_equal(corrupt(images, name, 4, seed=1), changed) != (name in RANDOM)


def test_corruptions_and_severities_draw_different_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(generator, "Draws", lambda names, numbers: seen.append(names) or NoNoise())
    for name in ("gaussian_noise", "speckle_noise"):
        for severity in SEVERITIES:
            corrupt(photos()[:1], name, severity, seed=3)
    assert len(set(seen)) == 10 and seen[0] == ("corruption", "1", 3, "gaussian_noise", 1)


class NoNoise:
    def normal(self, *shape: int) -> np.ndarray:
        return np.zeros((1, *shape))


def test_values_are_cut_off_not_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.arange(32 * 32 * 3, dtype=np.uint8).reshape(1, 32, 32, 3)
    below = np.maximum(images, 1) - 1
    for shift, expected in ((0.0, images), (0.9 / 255, images), (-0.1 / 255, below), (2.0, 255), (-2.0, 0)):
        moved = generator.Corruption(lambda x, draws, by: x + by, ((shift,),))
        monkeypatch.setitem(generator._CORRUPTIONS, "contrast", moved)
        assert np.array_equal(corrupt(images, "contrast", 1), np.broadcast_to(expected, images.shape)), shift


def test_wrong_names_severities_and_images_are_refused() -> None:
    images = photos()[:1]
    with pytest.raises(ValueError, match="no corruption 'gausian_noise'; did you mean 'gaussian_noise'"):
        corrupt(images, "gausian_noise", 1)
    for severity in (6, -1, 1.5, True):
        with pytest.raises(ValueError, match=f"fog: expected a severity from 0 .none. to 5, found {severity}"):
            corrupt(images, "fog", severity)
    for wrong in (images / 255, images[..., :1], images[:, :28, :28], images.transpose(0, 3, 1, 2)):
        with pytest.raises(ValueError, match=r"fog: expected uint8 images \[N, 32, 32, 3\], found (float64|uint8) \["):
            corrupt(wrong, "fog", 1)


def test_frost_without_its_files_says_which(places, register) -> None:
    generator.weather.frost_overlays.cache_clear()
    register(dict.fromkeys(generator.weather.FROST_FILES, b"not there"))
    with pytest.raises(DataNotFound, match="frost/frost1.png"):
        corrupt(photos()[:1], "frost", 1)
