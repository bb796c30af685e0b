"""Splits of image sets, by the schemes of the papers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from . import user_arrays
from .contract import Arrays, Description, Pool, Split, classified
from .fetch import Folder, registry
from .image_schemes import FOLDS, SCHEMES, Scheme
from .image_sets import ImageSets, partner
from .images import SOURCES, SUBSETS, Subset, context_subsets, read_subset, which_for_contexts
from .standardisation import standardised

VERSION = "1"


def describe(name: str, scheme: str) -> Description:
    source, chosen = SOURCES[name], SCHEMES[name][scheme]
    n_train = source.sizes.get("train", 0)
    files = dict.fromkeys(file for subset in SUBSETS for file in source.files.get(subset, ()))
    if chosen.corrupted:
        files |= dict.fromkeys(file for file in registry() if file.startswith("frost/"))
    about = name, "classification", VERSION, scheme, tuple(SCHEMES[name]), chosen.n_splits, source.n_classes
    sizes = n_train - chosen.n_held(n_train), source.sizes["test"]
    return Description(*about, source.shape, *sizes, source.origin, tuple(files))


def training_content(name: str, scheme: str, pools: Iterable[str]) -> dict[str, str]:
    """The user's arrays in place of the training subset, and of the subsets that contexts draw from."""
    chosen = SCHEMES[name][scheme]
    asked = [pool for pool in pools if pool in chosen.contexts]
    # Of pools without arrays of the user there is no need to look further.
    replaced = [pool for pool in asked if any(user_arrays.find(pool, subset) for subset in SUBSETS)]
    drawn = [(pool, each) for pool in replaced for each in which_for_contexts(pool, whole=chosen.whole_contexts)]
    return user_arrays.content([(name, "train"), *drawn])


def evaluation_content(name: str, scheme: str, sets: Iterable[str]) -> dict[str, str]:
    """Return digests of the user's arrays for the test subset and for scored partners."""
    others = [other for each in sets if (other := partner(name, each))]
    return user_arrays.content([(name, "test"), *((other, SCHEMES[name][scheme].ood_subset) for other in others)])


def load(name: str, split: int, scheme: str, root: Folder = None) -> Split:
    """Return a split; calls in one process share its arrays. Raises DataNotFound, BadData."""
    folder = None if root is None else os.fspath(root)
    return _assemble(name, split, scheme, folder, *(read_subset(name, subset, root) for subset in SUBSETS))


@lru_cache(maxsize=2 * FOLDS)
def _assemble(name: str, split: int, scheme: str, root: str | None, train: Subset, test: Subset) -> Split:
    chosen, rows = SCHEMES[name][scheme], {}
    subsets = {"train": Arrays(train.images, train.labels), "test": Arrays(test.images, test.labels)}
    if chosen.held_out:
        held, every = chosen.held(len(train.images), split), subsets["train"]
        rows = {"train": np.flatnonzero(~held), "validation": np.flatnonzero(held)}
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
