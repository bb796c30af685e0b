"""Images, published arrays and random numbers that the tests of corruptions share."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from datasets import DataNotFound, digits, fetch
from datasets.corruptions import SEVERITIES, corrupt, generator
from datasets.corruptions.filters import Draws
from tests.datasets import tfds_files
from tests.datasets.fundus_files import encoded

N = 12
LABELS = np.arange(N) % 5


@cache
def photos() -> np.ndarray:
    """Natural images, uint8 [45, 32, 32, 3]: windows, 16 pixels apart, of a photograph at a quarter of its size."""
    from sklearn.datasets import load_sample_image

    photo = load_sample_image(digits.CONTEXT_PHOTO)[:424].reshape(106, 4, 160, 4, 3).mean((1, 3))
    corners = [(y, x) for y in range(0, 75, 16) for x in range(0, 129, 16)]
    return np.stack([photo[y : y + 32, x : x + 32] for y, x in corners]).astype(np.uint8)


def frost_or_skip() -> None:
    for file in generator.weather.FROST_FILES:
        try:
            fetch.locate(file, download=False)
        except DataNotFound:
            pytest.skip(f"{file} is neither in the cache nor in a mirror ({fetch.MIRROR_VARIABLE})")


class Given:
    """Random generator that returns stored draws: one list of arrays for each kind."""

    def __init__(self, **values: list) -> None:
        self.values = {kind: list(arrays) for kind, arrays in values.items()}

    def normal(self, *shape: int) -> np.ndarray:
        return self._next("normal", shape)

    def uniform(self, low: float, high: float, *shape: int) -> np.ndarray:
        return low + (high - low) * self._next("uniform", shape)

    def integers(self, low: int, high: int, *shape: int) -> np.ndarray:
        return self._next("integers", shape)

    def _next(self, kind: str, shape: tuple[int, ...]) -> np.ndarray:
        array = np.asarray(self.values[kind].pop(0))
        assert array.shape[1:] == shape
        return array


def parameters(name: str, severity: int) -> tuple:
    return generator._CORRUPTIONS[name].parameters[severity - 1]


def flat(value: float, count: int = 1) -> np.ndarray:
    return np.full((count, 32, 32, 3), value)


def dot(row: int = 16, column: int = 16) -> np.ndarray:
    """Return images of a white pixel on black."""
    x = flat(0.0)
    x[0, row, column] = 1
    return x


def draws(count: int = 1) -> Draws:
    return Draws(("test",), range(count))


def clean() -> np.ndarray:
    """Test images [12, 3, 32, 32]."""
    return np.ascontiguousarray(photos()[:N].transpose(0, 3, 1, 2))


@cache
def published(seed: int = 7) -> dict[str, np.ndarray]:
    """Arrays of the published form, of another seed than the generator's."""
    arrays = {
        f"{name}.npy": np.concatenate([corrupt(photos()[:N], name, severity, seed) for severity in SEVERITIES])
        for name in ("gaussian_noise", "contrast", "saturate")
    }
    return arrays | {"labels.npy": np.tile(LABELS, 5).astype(np.uint8)}


def as_npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def as_tar(contents: dict[str, bytes], form: str = "w") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=form) as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(f"CIFAR-10-C/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def files(**changes: np.ndarray | bytes | None) -> dict[str, bytes]:
    """Return the published files; a change replaces one of them, None leaves it out."""
    arrays: dict = published() | {f"{name}.npy": value for name, value in changes.items()}
    return {
        name: value if isinstance(value, bytes) else as_npy(value)
        for name, value in arrays.items()
        if value is not None
    }


@cache
def prepared(labels: tuple[int, ...] = tuple(LABELS), shape: tuple[int, ...] = (32, 32, 3)) -> dict[str, bytes]:
    """Noise of severity 2 and blur by glass of severity 1 as tensorflow-datasets prepares them, by their path."""

    def examples() -> Iterator[tuple[int, dict]]:
        for i, (image, label) in enumerate(zip(published()["gaussian_noise.npy"][N : 2 * N], labels)):
            yield i, {"image": io.BytesIO(encoded(image[: shape[0]])), "label": label}

    def columns(features: Any) -> dict[str, Any]:
        return {"image": features.Image(shape=(None, None, 3)), "label": features.ClassLabel(num_classes=10)}

    configs = ("gaussian_noise_2", "frosted_glass_blur_1")
    made = tfds_files.prepared("cifar10_corrupted", "1.0.0", configs, columns, {"test": examples})
    return {f"cifar10_c/{path}": content for path, content in made.items()}
