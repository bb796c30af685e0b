"""What tensorflow-datasets has prepared, read without TensorFlow: EyePACS as `diabetic_retinopathy_detection`.

It has to be prepared in a format of random access (`download_and_prepare(file_format="array_record")`); see
docs/retinopathy.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ..checks import GET_AGAIN, BadData, DataNotFound, reading
from .source import Source, graded

SPLITS = {"train": "train", "validation": "validation", "test": "test"}
BUILDER, CONFIG = "diabetic_retinopathy_detection", "original"


def prepared(folder: Path) -> Source:
    """EyePACS as tensorflow-datasets keeps it: folder holds diabetic_retinopathy_detection/original/<version>.

    Images without a grade (label -1) are left out, as upstream's split "sample" is. Raises DataNotFound, BadData.
    """
    home = folder / BUILDER / CONFIG
    versions = sorted(path for path in home.glob("*") if (path / "dataset_info.json").exists())
    if not versions:
        raise DataNotFound(
            f"{folder}: expected Kaggle's trainLabels.csv and train/, or {BUILDER}/{CONFIG}/<version> as "
            "tensorflow-datasets prepares it, found neither; docs/retinopathy.md says how they are got"
        )
    return of_splits(versions[-1], {part: opened(versions[-1], split) for part, split in SPLITS.items()})


def of_splits(where: Path, splits: dict[str, Sequence[dict[str, Any]]]) -> Source:
    """The graded images of splits that give image, label and name. Raises BadData."""
    found: dict[str, tuple[str, str, int]] = {}
    for part, rows in splits.items():
        for i in range(len(rows)):
            with reading(_shards(where, part), f"image {i} of split {part}"):
                name, label = rows[i]["name"], int(rows[i]["label"])
            name = name.decode() if isinstance(name, bytes) else str(name)
            if name in found:
                raise BadData(f"{where}: expected every image once, found {name!r} twice; {GET_AGAIN}")
            if label >= 0:
                found[name] = (str(label), part, i)
    ids, grades = graded(str(where), [(name, grade) for name, (grade, _, _) in found.items()])
    places = [found[name][1:] for name in ids]

    def image(i: int) -> Image.Image:
        part, row = places[i]
        with reading(_shards(where, part), f"image {row} of split {part}"):
            return Image.fromarray(np.asarray(splits[part][row]["image"]))

    about = hashlib.sha256()
    for path in sorted(where.iterdir()) if where.is_dir() else ():
        about.update(f"\0{path.name} {path.stat().st_size}".encode())
        about.update(path.read_bytes() if path.suffix == ".json" else b"")
    official = tuple(part for part, _ in places)
    return Source(
        "eyepacs",
        "eyepacs, prepared by tensorflow-datasets",
        ids,
        grades,
        image,
        official,
        digest=about.hexdigest()[:16],
    )


def _shards(where: Path, split: str) -> str:
    """The files of a split and the one that describes them, in words."""
    names = sorted(path.name for path in where.glob(f"*-{split}.*")) if where.is_dir() else []
    more = f" or another of its {len(names)} files" if len(names) > 1 else ""
    return ", ".join([str(where / "dataset_info.json"), *(f"{name}{more}" for name in names[:1])])


def opened(folder: Path, split: str) -> Sequence[dict[str, Any]]:
    """The rows of one split. Raises BadData for files that were prepared in another format."""
    import tensorflow_datasets as tfds  # here, since it takes seconds to load

    with reading(
        _shards(folder, split),
        f"split {split} in the format array_record",
        "prepare it with file_format='array_record'",
    ):
        return tfds.builder_from_directory(folder).as_data_source(split)
