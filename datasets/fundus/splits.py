"""Retinopathy as a task: findings, country shift, severity shift.

A scheme names the task and the side of the images in pixels, "moderate-64": the finding is of grade 2 or more
("moderate", it threatens sight) or of grade 1 or more ("mild"). "severity" and "severity-mild" train and test on grades
up to the finding's first one; the images of higher grades are the shift, those of the training part among them (Band et
al. 2021). "outline", "outline-severity" and so on have the same findings but only outlines, which show where the eye
is.

A set without official parts is cut 70 : 10 : 20 (`source.parted`). Evaluation sets: "shift-<set>", another country's
images (of EyePACS its test part where it has official parts, of APTOS the first 2,929 by name as in RETINA, of IDRiD
all); "shift-severity".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from ..checks import BadData, DataNotFound
from ..contract import Arrays, Description, EvaluationSet, Pixels, Split, classified
from ..fetch import Folder
from . import FINDINGS, preprocessed, sources
from .source import PARTS, Source, check_apart, groups, parted
from .sources import NAMES

VERSION = "1"
SIDES = (64, 512)
RETINAS_APTOS = 2929
SHIFTS = {"aptos": ("eyepacs", "idrid"), "eyepacs": ("aptos", "idrid"), "idrid": ("aptos", "eyepacs")}
_ORIGINS = {
    "eyepacs": "Kaggle 2015, EyePACS (USA)",
    "aptos": "Kaggle 2019, Aravind (India)",
    "idrid": "Porwal et al. 2018 (India), CC BY 4.0",
}
_PIXELS = Pixels((0.0,) * 3, (1.0,) * 3)
_OUTLINE = Pixels((0.5,), (0.5,))


@dataclass(frozen=True)
class Task:
    """Task of a scheme: grades from `first` on are a finding, those after `last` a shift; side: of the images."""

    name: str
    first: int
    last: int
    side: int
    outline: bool = False


_GRADES = {name: (first, 4) for name, first in FINDINGS.items()}
_GRADES |= {"severity": (FINDINGS["moderate"], 2), "severity-mild": (FINDINGS["mild"], 1)}
TASKS = {f"{name}-{side}": Task(name, *grades, side) for side in SIDES for name, grades in _GRADES.items()} | {
    "outline" if name == "moderate" else f"outline-{name}": Task(name, *grades, preprocessed.OUTLINE, outline=True)
    for name, grades in _GRADES.items()
}
SCHEMES = tuple(TASKS)
# Training and test images of the known mosaics, for each task.
SIZES = {
    "eyepacs": {"moderate": (678, 188), "mild": (678, 188), "severity": (642, 179), "severity-mild": (541, 152)},
    "aptos": {"moderate": (2566, 731), "mild": (2566, 731), "severity": (2223, 634), "severity-mild": (1524, 433)},
    "idrid": {"moderate": (364, 100), "mild": (364, 100), "severity": (253, 71), "severity-mild": (134, 38)},
}


def describe(name: str, scheme: str) -> Description:
    """Looks at a user's tables, if there are any. Raises DataNotFound, BadData."""
    task = TASKS[scheme]
    if sources.folder_of(name):
        source = sources.find(name)
        part = parts_of(source)
        n_train, n_test = (int(((part == own) & (source.grades <= task.last)).sum()) for own in ("train", "test"))
        validated = bool((part == "validation").any())
    else:
        (n_train, n_test), validated = SIZES[name][task.name], True
    shape = (1 if task.outline else 3, task.side, task.side)
    about = name, "classification", VERSION, scheme, SCHEMES, 1, 2, shape
    return Description(*about, n_train, n_test, _ORIGINS[name], (), validated=validated)


def parts_of(source: Source) -> np.ndarray:
    """The part of each image, upstream's or cut here. Raises BadData for eyes of one patient in two parts."""
    together = groups(source.name, source.ids)
    if not source.official:
        return parted(together, source.grades)
    part = np.array(source.official)
    check_apart(source.origin, together, part)
    return part


def training_content(name: str, scheme: str, pools: Iterable[str]) -> dict[str, str]:
    return sources.content(name)


def evaluation_content(name: str, scheme: str, sets: Iterable[str]) -> dict[str, str]:
    return {key: value for own in (name, *_others(sets)) for key, value in sources.content(own).items()}


def lacking(name: str, sets: Iterable[str], root: Folder = None) -> dict[str, str]:
    """Return which of this data set and those in evaluation sets are missing, and why."""
    return {own: why for own in dict.fromkeys((name, *_others(sets))) if (why := sources.at_hand(own, root))}


def _others(sets: Iterable[str]) -> list[str]:
    return [other for each in sets if (other := each.removeprefix("shift-")) in NAMES and other != each]


def load(name: str, split: int, scheme: str, root: Folder = None) -> Split:
    """Return the only split. Raises DataNotFound, BadData."""
    return _assemble(name, scheme, None if root is None else os.fspath(root), sources.find(name, root))


@lru_cache(maxsize=2)
def _assemble(name: str, scheme: str, root: str | None, source: Source) -> Split:
    task = TASKS[scheme]
    images, part = _images(source, scheme, root), parts_of(source)
    known = source.grades <= task.last
    rows = {own: np.flatnonzero((part == own) & known) for own in PARTS}
    arrays = {own: Arrays(images[index], _findings(source, index, task)) for own, index in rows.items()}
    for own in ("train", "test"):
        without, found = np.bincount(arrays[own].y, minlength=2)
        if not (without and found):
            raise BadData(
                f"data set {name}, scheme {scheme}: expected {own} images with and without the finding, found {found} "
                f"with and {without} without it among {len(source.ids)} images in all; add graded images"
            )
    evaluations: dict[str, Callable[[], EvaluationSet]]
    if known.all():
        evaluations = {f"shift-{other}": partial(_country, other, scheme, root) for other in SHIFTS[name]}
    else:
        severe = np.flatnonzero(~known & (part != "validation"))
        rows, evaluations = {}, {"shift-severity": partial(_severe, images, source, severe, task)}
    subsets = {own: array for own, array in arrays.items() if len(array) or own != "validation"}
    rows = {own: index for own, index in rows.items() if len(index)}
    about, pixels = (name, VERSION, 0, scheme, 2), _OUTLINE if task.outline else _PIXELS
    return classified(*about, subsets, rows=rows, evaluations=evaluations, pixels=pixels, screens=True)


def _images(source: Source, scheme: str, root: str | None) -> np.ndarray:
    task = TASKS[scheme]
    if task.outline:
        return preprocessed.eye_outlines(source, root)
    if task.side > source.largest:
        raise DataNotFound(
            f"data set {source.name}, scheme {scheme}: expected images of {task.side} pixels, found mosaics of "
            f"{source.largest}; set {sources.VARIABLE} to a folder with the original ones (docs/retinopathy.md)"
        )
    return preprocessed.images(source, task.side, root)


def _findings(source: Source, rows: np.ndarray, task: Task) -> np.ndarray:
    return (source.grades[rows] >= task.first).astype(np.int64)


def _country(other: str, scheme: str, root: str | None) -> EvaluationSet:
    source = sources.find(other, root)
    images, rows = _images(source, scheme, root), np.arange(len(source.ids))
    if source.official:
        rows = np.flatnonzero(parts_of(source) == "test")
    elif other == "aptos":
        rows = rows[:RETINAS_APTOS]
    about = f"{source.origin}, {len(rows)} images"
    y = _findings(source, rows, TASKS[scheme])
    return EvaluationSet(f"shift-{other}", "shift", f"shift=country;to={other}", images[rows], y, about)


def _severe(images: np.ndarray, source: Source, rows: np.ndarray, task: Task) -> EvaluationSet:
    about = f"{source.origin}, {len(rows)} images of higher grades"
    y = _findings(source, rows, task)
    return EvaluationSet("shift-severity", "shift", "shift=severity", images[rows], y, about)
