"""Small files of graded fundus photographs, in the layouts of their sources, that tests write."""

from __future__ import annotations

import io

import numpy as np

MEDMNIST = {"train": 8, "validation": 4, "test": 6}


def medmnist(**changes: np.ndarray) -> bytes:
    """RetinaMNIST's file with a few random images."""
    random, arrays = np.random.default_rng(0), {}
    for part, n in zip(("train", "val", "test"), MEDMNIST.values()):
        arrays[f"{part}_images"] = random.integers(0, 256, (n, 28, 28, 3)).astype(np.uint8)
        arrays[f"{part}_labels"] = (np.arange(n) % 5).astype(np.uint8)[:, None]
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays | changes)
    return stream.getvalue()
