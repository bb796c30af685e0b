"""Files of graded fundus photographs to damage."""

from __future__ import annotations

import io
import zipfile

import numpy as np

from datasets import retina_mnist
from datasets.fetch import locate
from tests.datasets.fundus_files import medmnist
from tests.datasets.mutations import TERA, Contents, Format, archive, marked, npy


def _retina_mnist() -> Contents:
    return {retina_mnist.FILE: medmnist()}


def _graded() -> list[np.ndarray]:
    parts = retina_mnist.read(locate(retina_mnist.FILE))
    return [array for part in parts.values() for array in part]


def _misleading() -> list[bytes]:
    held = {"test_labels": np.full((6, 1), 5, np.uint8), "val_labels": np.zeros((4, 1))}
    held |= {"train_images": np.zeros((8, 28, 28), np.uint8), "test_images": np.zeros((6, 28, 28, 3), np.int8)}
    whole = zipfile.ZipFile(io.BytesIO(medmnist()))
    arrays = {name: whole.read(name) for name in whole.namelist()}
    headers = [npy("|u1", (TERA, 28, 28, 3)), npy("|u1", (8, 28, 28, 3), bytes(9)), npy("|O", (8, 28, 28, 3))]
    return [
        *(medmnist(**{name: array}) for name, array in held.items()),
        *(archive(arrays | {"train_images.npy": header}) for header in headers),
        archive({name: array for name, array in arrays.items() if name != "val_images.npy"}),
        marked(archive(arrays), 2, 99),
        archive(arrays | {"test_images.npy": arrays["test_images.npy"] + bytes(9)}),
    ]


FUNDUS = [Format("RetinaMNIST", _retina_mnist, _graded, _misleading, checked=True)]
