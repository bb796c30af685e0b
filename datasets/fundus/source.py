"""Graded photographs, wherever they come from."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..checks import GET_AGAIN, BadData

if TYPE_CHECKING:
    from PIL import Image

GRADES = 5


@dataclass(frozen=True, eq=False)
class Source:
    """Graded images, in the order of their ids.

    official: the part that upstream puts each image in, empty where it has none. image: the i-th, to be read in order.
    cut: whether the eye's box is still to be cut out. largest: side in pixels that images are large enough for.
    digest: of a user's folder, empty for known files.
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
    """Distinct ids and grades 0 to 4 of a table's pairs (id, grade), in the order of the ids. Raises BadData."""
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
