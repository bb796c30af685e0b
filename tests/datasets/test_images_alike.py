"""Test images of a user that do not belong to the training images are refused by the name of their file."""

from __future__ import annotations

import numpy as np
import pytest

import datasets
from datasets import BadData, registry

IMAGES, LABELS = np.arange(96, dtype=np.uint8).reshape(6, 1, 4, 4), np.arange(6) % 3


@pytest.mark.parametrize(
    ("test", "message"),
    [
        (
            (IMAGES.astype(np.float32), LABELS),
            r"expected images uint8 \[N, 1, 4, 4\] as .* found float32 \[6, 1, 4, 4\]",
        ),
        (
            (IMAGES.reshape(6, 1, 8, 2), LABELS),
            r"expected images uint8 \[N, 1, 4, 4\] as .* found uint8 \[6, 1, 8, 2\]",
        ),
        ((IMAGES, LABELS % 2), "expected every label from 0 to 2, found none of 2"),
    ],
)
def test_test_images_of_another_kind_are_named_with_their_file(tmp_path, monkeypatch, test, message) -> None:
    monkeypatch.setattr(registry, "ENTRIES", dict(registry.ENTRIES))
    for subset, (images, labels) in (("train", (IMAGES, LABELS)), ("test", test)):
        np.savez(tmp_path / f"{subset}.npz", images=images, labels=labels)
    datasets.add_images("alike", train=tmp_path / "train.npz", test=tmp_path / "test.npz", classes=3)
    with pytest.raises(BadData, match=f"test.npz: {message}"):
        datasets.load("alike")
