"""Data sets by name. A new data set is an Entry here and nothing elsewhere; plug-ins call `add`."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from fvi_core.printing import message
from fvi_core.spelling import nearest

from . import digits, image_sets, ocean, retina_mnist, toys, uci
from .checks import BadData, DataNotFound, UnknownDataset, UnknownSplit, check_split, reading, stamped
from .contract import Description, Split
from .fetch import Folder, sha256
from .fundus import splits as fundus


@dataclass(frozen=True)
class UserFile:
    """File of a user's data set: its name in the configuration of runs, and its path.

    of: the data that depend on the file, "training" (also if it holds the test subset too), "test", or an evaluation
    set's name.
    """

    name: str
    path: Path
    of: str = "training"


@dataclass(frozen=True)
class DatasetEntry:
    """Functions of one data set: load(split, scheme, root) -> Split, describe(scheme) -> Description.

    training_content(scheme, pools), evaluation_content(scheme, sets): digests of the user's files in use. schemes: the
    default first. files: files of a data set from outside; module: the module of its code (None: datasets/).
    """

    load: Callable[[int, str, Folder], Split]
    describe: Callable[[str], Description]
    schemes: tuple[str, ...] = ("",)
    training_content: Callable[[str, Iterable[str]], dict[str, str]] = lambda scheme, pools: {}
    evaluation_content: Callable[[str, Iterable[str]], dict[str, str]] = lambda scheme, sets: {}
    files: tuple[UserFile, ...] = ()
    module: str | None = None


def _of(module: Any, name: str, schemes: Iterable[str] = ("",), **content: Any) -> DatasetEntry:
    return DatasetEntry(partial(module.load, name), partial(module.describe, name), tuple(schemes), **content)


def _replaceable(module: Any, name: str, schemes: Iterable[str]) -> DatasetEntry:
    """Return the entry of a data set whose images a user may replace."""
    training, evaluation = partial(module.training_content, name), partial(module.evaluation_content, name)
    return _of(module, name, schemes, training_content=training, evaluation_content=evaluation)


ENTRIES: dict[str, DatasetEntry] = {
    "digits": _of(digits, "digits", digits.SCHEMES),
    retina_mnist.NAME: _of(retina_mnist, retina_mnist.NAME, retina_mnist.SCHEMES),
    ocean.NAME: _of(ocean, ocean.NAME, ocean.SCHEMES),
    **{name: _of(toys, name) for name in (toys.SNELSON, *toys.TOYS)},
    **{name: _of(uci, name, uci.SCHEMES) for name in uci.SOURCES},
    **{name: _replaceable(image_sets, name, image_sets.SCHEMES[name]) for name in image_sets.SCHEMES},
    **{name: _replaceable(fundus, name, fundus.SCHEMES) for name in fundus.NAMES},
}

WHERE = "put it there, or name the right file where the data set is added"


def names() -> list[str]:
    """Return the names of all data sets."""
    return list(ENTRIES)


def add(
    name: str,
    load: Callable[[int], Split],
    *,
    splits: int = 1,
    files: Iterable[UserFile] = (),
    describe: Callable[[], Description] | None = None,
) -> None:
    """Add a data set: load(split) returns each of its splits, with this name.

    files: the files that `load` reads. Their content is part of a run's key, and so is the source of `load`'s module
    outside datasets/. describe: returns the Description; without it split 0 is loaded once. Raises ValueError if the
    name is taken.
    """
    if name in ENTRIES:
        raise ValueError(f"two data sets are named {name!r}; give one of them another name")

    def loaded(split: int) -> Split:
        try:
            found = load(split)
        except (BadData, DataNotFound, UnknownDataset, UnknownSplit):
            raise
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[:2][-1]  # in load itself, not in a library that it calls
            raise BadData(
                f"data set {name}, split {split}: {place.filename}, line {place.lineno}: {type(error).__name__}: "
                f"{message(error)[:300]}; correct the function that loads it"
            ) from error
        if not isinstance(found, Split):
            raise BadData(
                f"data set {name}, split {split}: expected a datasets.Split of the function that loads it, found "
                f"{type(found).__name__}; return one, as docs/extend.md shows"
            )
        return found

    whose = getattr(getattr(load, "func", load), "__module__", type(load).__module__)
    module = None if whose.partition(".")[0] == __package__ else whose
    known = cache(describe or (lambda: _described(name, check_split(loaded(0)), splits)))
    ENTRIES[name] = DatasetEntry(
        lambda split, scheme, root: loaded(split), lambda scheme: known(), files=tuple(files), module=module
    )


def _described(name: str, split: Split, splits: int) -> Description:
    about, x = (name, split.task, split.version, "", ("",), splits, split.n_outputs), split.train.x
    sizes, validated = (len(x), len(split.test)), split.validation is not None
    return Description(*about, x.shape[1:], *sizes, "user's data", (), redrawn=True, validated=validated)


def made_by(name: str) -> str | None:
    """Return the module whose code makes a data set, or None for datasets/. Raises UnknownDataset."""
    return _entry(name).module


def describe(name: str, scheme: str | None = None) -> Description:
    """Return facts about a data set without loading it.

    Raises UnknownDataset, UnknownSplit (unknown scheme), DataNotFound for a missing file of the user.
    """
    entry = _entry(name)
    for file in entry.files:
        if not file.path.exists():
            raise DataNotFound(f"{file.path}: expected a file of data set {name}, found none; {WHERE}")
    return entry.describe(_scheme(name, entry, scheme))


def training_content(name: str, scheme: str | None = None, pools: Iterable[str] = ()) -> dict[str, str]:
    """Return digests of the user's files that training depends on.

    "<data set>/<subset>" -> first 16 digits of the file's SHA-256, for the training subset and the context pools
    (`Split.pool_names`); empty where all data are registered or generated. Nothing is loaded. Raises UnknownDataset,
    UnknownSplit, BadData for a file that cannot be read.
    """
    entry = _entry(name)
    return entry.training_content(_scheme(name, entry, scheme), pools) | _content(name, entry, {"training"})


def evaluation_content(name: str, scheme: str | None = None, sets: Iterable[str] = ()) -> dict[str, str]:
    """Return digests as `training_content`, for the test subset and the partners in these evaluation sets."""
    entry = _entry(name)
    sets = list(sets)
    return entry.evaluation_content(_scheme(name, entry, scheme), sets) | _content(name, entry, {"test", *sets})


def load(name: str, split: int = 0, *, scheme: str | None = None, root: Folder = None) -> Split:
    """Return split number `split` of a data set, cut by `scheme` (default: the first of describe(name).schemes).

    root: folder of the file cache instead of $FVI_DATA_CACHE.
    Raises UnknownDataset, UnknownSplit, DataNotFound, BadData.
    """
    entry = _entry(name)
    scheme = _scheme(name, entry, scheme)
    n_splits = entry.describe(scheme).n_splits
    if isinstance(split, bool) or not isinstance(split, int) or not 0 <= split < n_splits:
        which = f"{name}, scheme {scheme}" if scheme else name
        raise UnknownSplit(f"data set {which}: expected a split from 0 to {n_splits - 1}, found {split!r}")
    loaded = check_split(entry.load(split, scheme, root))
    return loaded if entry.module is None else loaded.copied()


def _content(name: str, entry: DatasetEntry, of: set[str]) -> dict[str, str]:
    digests = {}
    for file in entry.files:
        if file.of in of:
            stamp = stamped(file.path, WHERE)
            with reading(file.path, f"a file of data set {name}", WHERE):
                digests[f"{name}/{file.name}"] = sha256(*stamp)[:16]
    return digests


def _entry(name: str) -> DatasetEntry:
    if name not in ENTRIES:
        raise UnknownDataset(f"no data set '{name}'; {nearest(name, ENTRIES)}")
    return ENTRIES[name]


def _scheme(name: str, entry: DatasetEntry, scheme: str | None) -> str:
    scheme = entry.schemes[0] if scheme is None else scheme
    if scheme not in entry.schemes:
        known = ", ".join(repr(known) for known in entry.schemes)
        raise UnknownSplit(f"data set {name} has no scheme '{scheme}'; it has {known}")
    return scheme
