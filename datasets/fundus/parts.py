"""Parts of fundus sets: both eyes of a patient, and known duplicates, stay in one part."""

from __future__ import annotations

import csv
import hashlib
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from ..checks import BadData

PARTS = ("train", "validation", "test")
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
    found: dict[str, str] = {}
    for group, own in zip(together, part):
        if found.setdefault(group, own) != own:
            raise BadData(
                f"{where}: expected all images of {group} in one part, found some in {found[group]} and some in {own}; "
                "correct the table that says which part they are in"
            )
