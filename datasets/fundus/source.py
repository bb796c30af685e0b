"""Graded photographs of any origin, and EyePACS as prepared by tensorflow-datasets, without TensorFlow.

See docs/retinopathy.md.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import GET_AGAIN, BadData, DataNotFound, reading
from ..prepared import latest, opened, shards
from .parts import PARTS

if TYPE_CHECKING:
    from PIL import Image

GRADES = 5
BUILDER, CONFIG = "diabetic_retinopathy_detection", "original"


@dataclass(frozen=True, eq=False)
class Source:
    """Graded images, in the order of their ids.

    official: upstream's part of each image, empty without parts. image: reads the i-th image, fastest in order.
    cut: whether the eye's box must still be cut out. largest: largest side in pixels that images suffice for.
    digest: digest of a user's folder, empty for known files.
    """

    name: str
    origin: str
    ids: tuple[str, ...]
    grades: np.ndarray
    image: Callable[[int], Image.Image] = field(repr=False)
    official: tuple[str, ...] = ()
    cut: bool = True
    largest: int = 1 << 30
    digest: str = ""


def graded(where: str, rows: list[tuple[str, str]]) -> tuple[tuple[str, ...], np.ndarray]:
    """Return distinct ids and grades 0 to 4 of a table's pairs (id, grade), sorted by id. Raises BadData."""
    if not rows:
        raise BadData(f"{where}: expected graded images, found none; {GET_AGAIN}")
    for image, grade in rows:
        if grade.strip() not in map(str, range(GRADES)) or not image:
            raise BadData(
                f"{where}: expected a grade from 0 to {GRADES - 1} of every image, found {grade!r} of {image!r}; "
                f"{GET_AGAIN}"
            )
    rows = sorted(rows)
    ids = tuple(image for image, _ in rows)
    if len(set(ids)) < len(ids):
        twice = next(a for a, b in itertools.pairwise(ids) if a == b)
        raise BadData(f"{where}: expected every image once, found {twice!r} twice; {GET_AGAIN}")
    return ids, np.array([int(grade) for _, grade in rows], np.int64)


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
    from PIL import Image

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
