"""Graded photographs of any origin, their parts, and EyePACS as prepared by tensorflow-datasets, without TensorFlow.

Both eyes of a patient, and known duplicates, stay in one part. See docs/retinopathy.md.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import BadData, DataNotFound, reading
from ..prepared import latest, opened, shards

if TYPE_CHECKING:
    from PIL import Image

PARTS = ("train", "validation", "test")
AGAIN = "correct it, or get it again from its provider, as docs/retinopathy.md says"  # no command fetches it
_ENDS = (0.7, 0.8)  # of the training and the validation part


@cache
def duplicates() -> dict[tuple[str, str], str]:
    """Return the group of every known duplicate, by set and id."""
    with Path(__file__).with_name("duplicates.csv").open(newline="") as file:
        return {(row["set"], row["id"]): f"duplicates {row['group']}" for row in csv.DictReader(file)}


def groups(name: str, ids: Sequence[str]) -> list[str]:
    """Return the group of each image, never cut apart: both eyes of a patient ("10_left"), or duplicates."""
    if name == "eyepacs":
        return [image.rpartition("_")[0] or image for image in ids]
    known = duplicates()
    return [known.get((name, image), image) for image in ids]


def parted(together: Sequence[str], grades: np.ndarray) -> np.ndarray:
    """Return the part of each image, which depends on names and grades alone.

    Groups of equal worst grade are ordered by a hash of their names: groups that begin in the first 70 % of these
    images are for training, in the next 10 % for validation, the rest for testing.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for i, group in enumerate(together):
        members[group].append(i)
    strata: dict[int, list[str]] = defaultdict(list)
    for group, rows in members.items():
        strata[int(grades[rows].max())].append(group)
    part = np.empty(len(together), dtype="<U10")
    for stratum in strata.values():
        n, before = sum(len(members[group]) for group in stratum), 0
        for group in sorted(stratum, key=lambda group: hashlib.sha256(group.encode()).digest()):
            part[members[group]] = PARTS[sum(before >= end * n for end in _ENDS)]
            before += len(members[group])
    return part


def check_apart(where: str, together: Sequence[str], part: np.ndarray) -> None:
    """Raise BadData if images of one group are in two parts."""
    parts: dict[str, str] = {}
    for group, own in zip(together, part):
        if parts.setdefault(group, own) != own:
            raise BadData(
                f"{where}: expected all images of {group} in one part, found some in {parts[group]} and some in {own}; "
                "correct the table that says which part they are in"
            )


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
        raise BadData(f"{where}: expected graded images, found none; {AGAIN}")
    for image, grade in rows:
        if grade.strip() not in map(str, range(GRADES)) or not image:
            raise BadData(
                f"{where}: expected a grade from 0 to {GRADES - 1} of every image, found {grade!r} of {image!r}; "
                f"{AGAIN}"
            )
    rows = sorted(rows)
    ids = tuple(image for image, _ in rows)
    if len(set(ids)) < len(ids):
        twice = next(a for a, b in itertools.pairwise(ids) if a == b)
        raise BadData(f"{where}: expected every image once, found {twice!r} twice; {AGAIN}")
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

    graded_images: dict[str, tuple[str, str, int]] = {}
    files = {part: shards(where, part) for part in splits}
    for part, rows in splits.items():
        for i in range(len(rows)):
            with reading(files[part], f"image {i} of split {part}", AGAIN):
                name, label = rows[i]["name"], int(rows[i]["label"])
            name = name.decode() if isinstance(name, bytes) else str(name)
            if name in graded_images:
                raise BadData(f"{where}: expected every image once, found {name!r} twice; {AGAIN}")
            if label >= 0:
                graded_images[name] = (str(label), part, i)
    ids, grades = graded(str(where), [(name, grade) for name, (grade, _, _) in graded_images.items()])
    places = [graded_images[name][1:] for name in ids]

    def image(i: int) -> Image.Image:
        part, row = places[i]
        with reading(files[part], f"image {row} of split {part}", AGAIN):
            return Image.fromarray(np.asarray(splits[part][row]["image"]))

    about = hashlib.sha256()
    for path in sorted(where.iterdir()) if where.is_dir() else ():
        about.update(f"\0{path.name} {path.stat().st_size}".encode())
        about.update(path.read_bytes() if path.suffix == ".json" else b"")
    official, origin = tuple(part for part, _ in places), "eyepacs, prepared by tensorflow-datasets"
    return Source("eyepacs", origin, ids, grades, image, official, digest=about.hexdigest()[:16])
