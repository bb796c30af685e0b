"""Files of graded fundus photographs to damage."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from datasets import retina_mnist
from datasets.checks import stamped
from datasets.fetch import locate
from datasets.fundus import preprocessed, sources
from tests.datasets.fundus_files import aptos, encoded, eyepacs, idrid, medmnist, mosaics, prepared
from tests.datasets.mutations import TERA, Contents, Format, archive, marked, npy


def _retina_mnist() -> Contents:
    return {retina_mnist.FILE: medmnist()}


def _graded() -> list[np.ndarray]:
    parts = retina_mnist.read(*stamped(locate(retina_mnist.FILE)))
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


def _photographs(files: Contents, victim: str) -> Callable[[], Contents]:
    first = next(name for name in files if name.endswith(victim))
    return lambda: {first: files[first], **files}


def _source(name: str) -> Callable[[], list[np.ndarray]]:
    def read() -> list[np.ndarray]:
        source = sources.find(name)
        sources.forget()
        return [preprocessed._squares(source, 16, range(len(source.ids))), source.grades]

    return read


def _format(name: str, files: Contents, victim: str, **options: Any) -> Format:
    return Format(f"{name} {victim}", _photographs(files, victim), _source(name), seeds=3, **options)


def _prepared(victim: str) -> Callable[[], Contents]:
    return lambda: _photographs(prepared(), victim)()


def _tables() -> list[bytes]:
    return [b"image,level\n", b"image,level\n10_left\n", b'image,level\n"10_left,0\n', b"\xff\xfe" * 40]


def _mosaics() -> list[bytes]:
    return [encoded(np.zeros(shape, np.uint8), "WEBP") for shape in ((256, 7679, 3), (255, 7680, 3), (256, 256, 3))]


FUNDUS = [
    Format("RetinaMNIST", _retina_mnist, _graded, _misleading, checked=True, seeds=3),
    _format("eyepacs", eyepacs(3), "10_left.jpeg"),
    _format("eyepacs", eyepacs(3), "trainLabels.csv", misleading=_tables),
    Format("prepared records", _prepared("train.array_record-00000-of-00001"), _source("eyepacs"), seeds=3),
    Format("prepared description", _prepared("dataset_info.json"), _source("eyepacs"), seeds=3),
    _format("aptos", aptos(5), "000000000002.png"),
    _format("aptos", aptos(5), "train.csv"),
    _format("idrid", idrid(4, 2), "IDRiD_003.jpg"),
    _format("idrid", idrid(4, 2), "Testing Labels.csv"),
    _format("aptos", mosaics("aptos", 9), "aptos-0.webp", misleading=_mosaics),
    _format("aptos", mosaics("aptos", 9), "labels.csv", checked=True, registered=mosaics("aptos", 9)),
]
