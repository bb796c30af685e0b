"""Graded photographs of any origin."""

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
