"""Read EyePACS as prepared by tensorflow-datasets (`diabetic_retinopathy_detection`), without TensorFlow.

See docs/retinopathy.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ..checks import GET_AGAIN, BadData, DataNotFound, reading
from ..prepared import latest, opened, shards
from .parts import PARTS
from .source import Source, graded

BUILDER, CONFIG = "diabetic_retinopathy_detection", "original"


def prepared(folder: Path) -> Source:
    """EyePACS as tensorflow-datasets keeps it: folder holds diabetic_retinopathy_detection/original/<version>.

    Images without a grade (label -1) are left out, as upstream's split "sample" is. Raises DataNotFound, BadData.
    """
    home = folder / BUILDER / CONFIG
    version = latest(home)
    if version is None:
        raise DataNotFound(
            f"{folder}: expected Kaggle's trainLabels.csv and train/, or {BUILDER}/{CONFIG}/<version> as "
            "tensorflow-datasets prepares it, found neither; docs/retinopathy.md says how they are got"
        )
    return of_splits(version, {part: opened(version, part) for part in PARTS})


def of_splits(where: Path, splits: dict[str, Sequence[dict[str, Any]]]) -> Source:
    """The graded images of splits that give image, label and name. Raises BadData."""
    found: dict[str, tuple[str, str, int]] = {}
    files = {part: shards(where, part) for part in splits}
    for part, rows in splits.items():
        for i in range(len(rows)):
            with reading(files[part], f"image {i} of split {part}"):
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
        with reading(files[part], f"image {row} of split {part}"):
            return Image.fromarray(np.asarray(splits[part][row]["image"]))

    about = hashlib.sha256()
    for path in sorted(where.iterdir()) if where.is_dir() else ():
        about.update(f"\0{path.name} {path.stat().st_size}".encode())
        about.update(path.read_bytes() if path.suffix == ".json" else b"")
    official, origin = tuple(part for part, _ in places), "eyepacs, prepared by tensorflow-datasets"
    return Source("eyepacs", origin, ids, grades, image, official, digest=about.hexdigest()[:16])
