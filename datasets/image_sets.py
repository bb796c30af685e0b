"""Image sets: splits by the schemes of the papers; rotated, corrupted and attacked images, and images of other sets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from fvi_core.telling import tell

from . import user_arrays
from .checks import BadData, DataNotFound
from .contract import Arrays, Description, EvaluationSet, Pool, Split, classified
from .fetch import Folder, registry
from .image_schemes import FOLDS, SCHEMES, SEED, SUBSETS, Scheme, some
from .image_transforms import rotate, standardised
from .images import SOURCES, Subset, context_subsets, read_subset, which_for_contexts

VERSION = "1"
REDUCED = r"(?:-of-([1-9]\d*))?"
SPELLINGS = {"notmnist": "not_mnist"}  # in the published tables
CORRUPTED = ("cifar10", "cifar100")
SEVERITIES = range(6)
EPSILONS = ("0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3")  # dirichlet2022 tables 14 to 16, 20 to 22


def reduction(evaluation_set: str) -> int | None:
    """Return the number of test images in a reduced evaluation set; None for a set of all."""
    match = re.fullmatch(f".*?{REDUCED}", evaluation_set)
    return int(match[1]) if match and match[1] else None


def partner(name: str, evaluation_set: str) -> str | None:
    """Return the partner of `name` in an evaluation set "ood-<partner>"; None for another form or image shape."""
    other = evaluation_set.removeprefix("ood-")
    fits = other not in (name, evaluation_set) and other in SOURCES and SOURCES[other].shape == SOURCES[name].shape
    return other if fits else None


class ImageSets(Mapping[str, Callable[[], EvaluationSet]]):
    """Evaluation sets by the form of their name, made when called. Iteration yields the paper's sets.

    rotation-<degrees>, nearest-rotation-<degrees> (pixels moved, none interpolated), ood-<set>, fgsm-<epsilon>,
    <set>_c-<severity> (all corruptions), <set>_c-<corruption>-<severity>. Corrupted and attacked sets may be reduced:
    <name>-of-<n> has n of the test images (see `some`).
    """

    def __init__(self, name: str, scheme: Scheme, test: Arrays, root: Folder) -> None:
        self.name, self.scheme, self.test, self.root = name, scheme, test, root

    def __iter__(self) -> Iterator[str]:
        yield from (f"ood-{partner}" for partner in self.scheme.ood)
        yield from (f"rotation-{angle}" for angle in self.scheme.angles)
        yield from (f"{self.name}_c-{severity}" for severity in SEVERITIES if self.scheme.corrupted)
        yield from (f"fgsm-{epsilon}" for epsilon in EPSILONS if self.scheme.attacked)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getitem__(self, name: str) -> Callable[[], EvaluationSet]:
        """Return the set's maker. Raises KeyError for another name, DataNotFound for a partner without files."""
        forms: list[tuple[str, Callable[..., Callable[[], EvaluationSet]]]] = [
            (r"(nearest-)?rotation-(\d+)", self._rotated),
            (r"ood-\w+", self._partner),
            (rf"fgsm-(\d+(?:\.\d+)?){REDUCED}", self._attacked),
        ]
        if self.name in CORRUPTED:
            forms.append((rf"{self.name}_c-(?:([a-z_]+)-)?([0-5]){REDUCED}", self._corrupted))
        for pattern, make in forms:
            if match := re.fullmatch(pattern, name):
                return make(name, *match.groups())
        raise KeyError(name)

    def _rotated(self, name: str, nearest: str | None, angle: str) -> Callable[[], EvaluationSet]:
        condition = f"shift={'nearest ' if nearest else ''}rotation;angle={int(angle)}"
        method = "nearest" if nearest else self.scheme.rotation
        return lambda: EvaluationSet(name, "shift", condition, rotate(self.test.x, int(angle), method), self.test.y)

    def _partner(self, name: str) -> Callable[[], EvaluationSet]:
        other = partner(self.name, name)
        if other is None:
            raise KeyError(name)
        subset = read_subset(other, self.scheme.ood_subset, self.root)
        scheme = self.scheme
        pool = context_subsets(other, self.root, scheme.whole_contexts) if other in scheme.contexts else []
        if any(each is subset for each in pool):
            raise DataNotFound(
                f"evaluation set {name}: contexts are drawn from it here ({subset.source}); leave it out, "
                "or get the partner's other subset (`make data`)"
            )
        condition = f"ood={SPELLINGS.get(other, other)}"

        def make() -> EvaluationSet:
            images, source = subset.images, subset.source
            if scheme.ood_subset == "train":
                images = images[: len(self.test)]
                source += f", of which the first {len(images)}"
            if scheme.pixels is None:
                images = standardised(images)
            return EvaluationSet(name, "ood", condition, images, None, source)

        return make

    def _corrupted(
        self, name: str, corruption: str | None, severity: str, count: str | None
    ) -> Callable[[], EvaluationSet]:
        from .corruptions import CORRUPTIONS, corrupted  # here, since scipy takes a second to load

        if corruption and corruption not in CORRUPTIONS:
            raise KeyError(name)
        which = f"corruption={corruption};" if corruption else ""
        condition = f"shift={self.name}_c;{which}severity={severity}"

        rows, note = self._some(name, count)

        def say(done: int, lacking: int) -> None:
            tell(f"corrupting images of {self.name}, severity {severity}: {done} of {lacking}")

        def make() -> EvaluationSet:
            images, source = corrupted(
                self.name,
                corruption,
                int(severity),
                self.test.x,
                self.test.y,
                self.root,
                rows=rows,
                say=say,
                own=self.scheme.tested if self.scheme.part else "",
            )
            labels = self.test.y if rows is None else self.test.y[rows]
            labels = np.tile(labels, len(images) // len(labels))
            return EvaluationSet(name, "shift", condition, images, labels, source + note)

        return make

    def _attacked(self, name: str, epsilon: str, count: str | None) -> Callable[[], EvaluationSet]:
        condition = f"shift=fgsm;epsilon={epsilon}"
        rows, note = self._some(name, count)
        if rows is None:
            return lambda: EvaluationSet(name, "attack", condition, self.test.x, self.test.y, epsilon=float(epsilon))
        source, x, y = f"{self.name}, {self.scheme.tested}{note}", self.test.x[rows], self.test.y[rows]
        return lambda: EvaluationSet(name, "attack", condition, x, y, source, float(epsilon))

    def _some(self, name: str, count: str | None) -> tuple[np.ndarray | None, str]:
        """Return rows of a reduced set's test images and a note for its source. Raises KeyError for a wrong count."""
        if count is None:
            return None, ""
        if not 0 < int(count) < len(self.test):
            raise KeyError(name)
        return some(self.test.y, int(count)), f", of which {count} drawn with seed {SEED}, of each class its share"


def describe(name: str, scheme: str) -> Description:
    source, chosen = SOURCES[name], SCHEMES[name][scheme]
    n_train = source.sizes.get("train", 0)
    files = dict.fromkeys(file for subset in chosen.subsets for file in source.files.get(subset, ()))
    if chosen.corrupted:
        files |= dict.fromkeys(file for file in registry() if file.startswith("frost/"))
    about = name, "classification", VERSION, scheme, tuple(SCHEMES[name]), chosen.n_splits, source.n_classes
    sizes = chosen.part or (n_train - chosen.n_held(n_train), source.sizes["test"])
    return Description(*about, source.shape, *sizes, source.origin, tuple(files), validated=bool(chosen.held_out))


def training_content(name: str, scheme: str, pools: Iterable[str]) -> dict[str, str]:
    """The user's arrays in place of the training subset, and of the subsets that contexts draw from."""
    chosen = SCHEMES[name][scheme]
    requested = [pool for pool in pools if pool in chosen.contexts]
    user_arrays.note_unread(SOURCES, SUBSETS)
    # Of pools without arrays of the user there is no need to look further.
    replaced = [pool for pool in requested if any(user_arrays.find(pool, subset) for subset in SUBSETS)]
    drawn = [(pool, each) for pool in replaced for each in which_for_contexts(pool, whole=chosen.whole_contexts)]
    return user_arrays.content([(name, "train"), *drawn])


def evaluation_content(name: str, scheme: str, sets: Iterable[str]) -> dict[str, str]:
    """Return digests of the user's arrays for the test subset and for scored partners."""
    others = [other for each in sets if (other := partner(name, each))]
    chosen = SCHEMES[name][scheme]
    return user_arrays.content([(name, chosen.subsets[-1]), *((other, chosen.ood_subset) for other in others)])


def load(name: str, split: int, scheme: str, root: Folder = None) -> Split:
    """Return a split; calls in one process share its arrays. Raises DataNotFound, BadData."""
    folder = None if root is None else os.fspath(root)
    read = (read_subset(name, subset, root) for subset in SCHEMES[name][scheme].subsets)
    return _assemble(name, split, scheme, folder, *read)


@lru_cache(maxsize=2 * FOLDS)
def _assemble(name: str, split: int, scheme: str, root: str | None, *read: Subset) -> Split:
    chosen = SCHEMES[name][scheme]
    subsets = {subset: Arrays(each.images, each.labels) for subset, each in zip(chosen.subsets, read)}
    every = subsets["train"]
    try:
        rows = chosen.rows(every.y, split)
    except ValueError as error:
        raise BadData(f"data set {name}, scheme {scheme}, training images: {error}") from error
    subsets |= {subset: Arrays(every.x[index], every.y[index]) for subset, index in rows.items()}
    if chosen.pixels is None:
        raw = subsets["train"].x
        subsets = {subset: replace(each, x=standardised(each.x, raw)) for subset, each in subsets.items()}
    evaluations = ImageSets(name, chosen, subsets["test"], root)
    pools = {pool: partial(_pool, pool, root, chosen) for pool in chosen.contexts}
    about, pixels = (name, VERSION, split, scheme, SOURCES[name].n_classes), chosen.pixels
    return classified(*about, subsets, rows=rows, evaluations=evaluations, pixels=pixels, pools=pools)


def _pool(name: str, root: str | None, scheme: Scheme) -> Pool:
    subsets = context_subsets(name, root, scheme.whole_contexts)
    source = " and ".join(each.source for each in subsets)
    return _scaled_pool(source, scheme.pixels is None, *subsets)


@lru_cache(maxsize=1)
def _scaled_pool(source: str, pixelwise: bool, *subsets: Subset) -> Pool:
    """Return a pool, made once and shared by all splits."""
    images = subsets[0].images if len(subsets) == 1 else np.concatenate([each.images for each in subsets])
    return Pool(standardised(images) if pixelwise else images, source)
