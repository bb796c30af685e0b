"""Small files of graded fundus photographs, in the layouts of their sources, that tests write."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from PIL import Image

from tests.datasets import tfds_files

HEAD = "Image name,Retinopathy grade,Risk of macular edema ,,"
MEDMNIST = {"train": 8, "validation": 4, "test": 6}
Files = dict[str, bytes]  # by their path in the user's folder


def medmnist(**changes: np.ndarray) -> bytes:
    """RetinaMNIST's file with a few random images."""
    random, arrays = np.random.default_rng(0), {}
    for part, n in zip(("train", "val", "test"), MEDMNIST.values()):
        arrays[f"{part}_images"] = random.integers(0, 256, (n, 28, 28, 3)).astype(np.uint8)
        arrays[f"{part}_labels"] = (np.arange(n) % 5).astype(np.uint8)[:, None]
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays | changes)
    return stream.getvalue()


def photograph(seed: int, height: int = 40, width: int = 60) -> np.ndarray:
    """A bright disc with some noise on black, [H, W, 3]."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    disc = np.hypot(y - height / 2 + 0.5, x - width / 2 + 0.5) < min(height, width) / 2 - 2
    return (disc[..., None] * random.integers(90, 250, (height, width, 3))).astype(np.uint8)


def encoded(image: np.ndarray, form: str = "PNG") -> bytes:
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, form)
    return stream.getvalue()


def table(header: str, rows: Iterable[tuple]) -> bytes:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows), ""]).encode()


def eyepacs(patients: int = 12, official: bool = False) -> Files:
    """Kaggle 2015: both eyes of each patient; with official parts one patient validates and three test."""
    eyes = [(f"{p}_{eye}", (p + i) % 5, p) for p in range(10, 10 + patients) for i, eye in enumerate(("left", "right"))]
    last = range(10 + patients - 4, 10 + patients)
    test = dict(zip(last, ("Public", *["Private"] * 3))) if official else {}
    files = {"eyepacs/trainLabels.csv": table("image,level", [(e, g) for e, g, p in eyes if p not in test])}
    if official:
        rows = [(e, g, test[p]) for e, g, p in eyes if p in test]
        files["eyepacs/retinopathy_solution.csv"] = table("image,level,Usage", rows)
    for i, (eye, _, patient) in enumerate(eyes):
        folder = "test" if patient in test else "train"
        files[f"eyepacs/{folder}/{eye}.jpeg"] = encoded(photograph(i), "JPEG")
    return files


def aptos(n: int = 60) -> Files:
    """Kaggle 2019."""
    names = [f"{i:012x}" for i in range(n)]
    files = {"aptos/train.csv": table("id_code,diagnosis", [(name, i % 5) for i, name in enumerate(names)])}
    return files | {f"aptos/train_images/{name}.png": encoded(photograph(i)) for i, name in enumerate(names)}


def idrid(train: int = 40, test: int = 20) -> Files:
    """IDRiD, part B, with the empty columns of its tables."""
    home, files = "idrid/B. Disease Grading", {}
    for n, images, title, first in (
        (train, "a. Training Set", "a. IDRiD_Disease Grading_Training Labels", 0),
        (test, "b. Testing Set", "b. IDRiD_Disease Grading_Testing Labels", 100),
    ):
        rows = [(f"IDRiD_{i + 1:03}", i % 5, 0, "", "") for i in range(n)]
        files[f"{home}/2. Groundtruths/{title}.csv"] = table(
            "Image name,Retinopathy grade,Risk of macular edema ,,", rows
        )
        for i, row in enumerate(rows):
            files[f"{home}/1. Original Images/{images}/{row[0]}.jpg"] = encoded(photograph(first + i), "JPEG")
    return files


def mosaics(name: str = "aptos", n: int = 35) -> Files:
    """A mosaic of n tiles of 256 pixels, 30 in a row, and the table that says what they are; names as in a mirror."""
    tiles = np.zeros((-(-n // 30) * 256, 30 * 256, 3), np.uint8)
    for i in range(n):
        top, left = i // 30 * 256, i % 30 * 256
        tiles[top : top + 256, left : left + 256] = np.kron(photograph(i, 16, 16), np.ones((16, 16, 1), np.uint8))
    rows = [(name, f"{i:04}", i % 5, f"{name}-0.webp", i) for i in range(n)]
    stream = io.BytesIO()
    Image.fromarray(tiles).save(stream, "WEBP", lossless=True, quality=0, method=0)
    return {"retina/labels.csv": table("set,id,grade,file,tile", rows), f"retina/{name}-0.webp": stream.getvalue()}


@cache
def prepared() -> Files:
    """EyePACS as tensorflow-datasets prepares it: 8 patients train, 1 validates, 2 test; 2_right has no grade."""

    def examples(patients: range) -> Iterator[tuple[str, dict]]:
        for eye in (f"{patient}_{side}" for patient in patients for side in ("left", "right")):
            seed = 2 * int(eye.split("_")[0]) + eye.endswith("right")
            image = io.BytesIO(encoded(photograph(seed)))
            yield eye, {"name": eye, "image": image, "label": -1 if eye == "2_right" else seed % 5}

    def columns(features: Any) -> dict[str, Any]:
        return {"name": features.Text(), "image": features.Image(), "label": features.ClassLabel(num_classes=5)}

    parts = {"train": range(8), "validation": range(8, 9), "test": range(9, 11)}
    splits = {part: partial(examples, patients) for part, patients in parts.items()}
    made = tfds_files.prepared("diabetic_retinopathy_detection", "3.0.0", ("original",), columns, splits)
    return {f"eyepacs/{path}": content for path, content in made.items()}
