"""Splits of image sets, by the schemes of the papers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from . import user_arrays
from .contract import Arrays, Description, Pool, Split
from .fetch import registry
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
    return Description(
        name,
        "classification",
        VERSION,
        scheme,
        tuple(SCHEMES[name]),
        chosen.n_splits,
        source.n_classes,
        source.shape,
        n_train - chosen.n_held(n_train),
        source.sizes["test"],
        source.origin,
        tuple(files),
    )


def training_content(name: str, scheme: str, pools: Iterable[str]) -> dict[str, str]:
    """The user's arrays in place of the training subset, and of the subsets that contexts draw from."""
    chosen = SCHEMES[name][scheme]
    asked = [pool for pool in pools if pool in chosen.contexts]
    replaced = [
        pool for pool in asked if any(user_arrays.find(pool, subset) for subset in SUBSETS)
    ]  # else no need to look further
    drawn = [(pool, each) for pool in replaced for each in which_for_contexts(pool, whole=chosen.whole_contexts)]
    return user_arrays.content([(name, "train"), *drawn])


def evaluation_content(name: str, scheme: str, sets: Iterable[str]) -> dict[str, str]:
    """Return digests of the user's arrays for the test subset and for scored partners."""
    others = [other for each in sets if (other := partner(name, each))]
    return user_arrays.content([(name, "test"), *((other, SCHEMES[name][scheme].ood_subset) for other in others)])


def load(name: str, split: int, scheme: str, root: str | os.PathLike | None = None) -> Split:
    """Return a split; calls in one process share its arrays. Raises DataNotFound, BadData."""
    folder = None if root is None else os.fspath(root)
    return _assemble(name, split, scheme, folder, *(read_subset(name, subset, root) for subset in SUBSETS))


@lru_cache(maxsize=2 * FOLDS)
def _assemble(name: str, split: int, scheme: str, root: str | None, train: Subset, test: Subset) -> Split:
    chosen = SCHEMES[name][scheme]
    fitted, asked = Arrays(train.images, train.labels), Arrays(test.images, test.labels)
    validation, rows = None, {}
    if chosen.held_out:
        held = chosen.held(len(fitted), split)
        rows = {"train": np.flatnonzero(~held), "validation": np.flatnonzero(held)}
        fitted, validation = (Arrays(fitted.x[index], fitted.y[index]) for index in rows.values())
    if chosen.pixels is None:
        raw = fitted.x
        fitted, asked = (replace(each, x=standardised(each.x, raw)) for each in (fitted, asked))
        validation = validation and replace(validation, x=standardised(validation.x, raw))
    low, high = fitted.x.min(0), fitted.x.max(0)
    if chosen.pixels is not None:
        low, high = chosen.pixels(low), chosen.pixels(high)
    return Split(
        name,
        VERSION,
        split,
        scheme,
        "classification",
        SOURCES[name].n_classes,
        fitted,
        asked,
        low,
        high,
        validation,
        rows=rows,
        evaluations=ImageSets(name, chosen, asked, root),
        pixels=chosen.pixels,
        pools={pool: partial(_pool, pool, root, chosen) for pool in chosen.contexts},
    )


def _pool(name: str, root: str | None, scheme: Scheme) -> Pool:
    subsets = context_subsets(name, root, scheme.whole_contexts)
    source = " and ".join(each.source for each in subsets)
    return _scaled_pool(source, scheme.pixels is None, *subsets)


@lru_cache(maxsize=1)
def _scaled_pool(source: str, pixelwise: bool, *subsets: Subset) -> Pool:
    """Return a pool, made once and shared by all splits."""
    images = subsets[0].images if len(subsets) == 1 else np.concatenate([each.images for each in subsets])
    return Pool(standardised(images) if pixelwise else images, source)
