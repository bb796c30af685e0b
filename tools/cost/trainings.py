"""Trainings to time: methods with the settings of their tables, on random arrays of the data's shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import torch

import datasets
from benchmarks.experiment.assembly import build_data, build_model
from benchmarks.records.hyperparameters import resolve
from benchmarks.tables import cinquin_candidates, digits, pequignot
from benchmarks.tables.recipes import Parts, Recipe, merge
from benchmarks.tables.spec import Row
from datasets.contract import Arrays, Split
from fvi_core import methods
from fvi_core.random import Streams
from fvi_core.registry import TRAININGS
from fvi_core.stack import DTYPES, ReplicaResult
from tools.cost.timing import Work


def random_split(shape: Sequence[int], n_outputs: int, n: int, seed: int = 0) -> Split:
    """Return ``n`` random inputs with labels of ``n_outputs`` classes, or regression targets if it is 1."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, *shape), dtype=np.float32)
    y = rng.integers(n_outputs, size=n) if n_outputs > 1 else rng.standard_normal(n)
    task = "classification" if n_outputs > 1 else "regression"
    return Split("random", "1", seed, "", task, n_outputs, Arrays(x, y), Arrays(x, y), x.min(0), x.max(0))


CPU = torch.device("cpu")


def training_of(
    parts: Parts, splits: list[Split], device: torch.device = CPU, seeds: Sequence[int] | None = None
) -> Work:
    """Return the training of a method as one stack: a replica for each split, or for each of ``seeds`` on one split."""
    settings = TRAININGS.build({"name": "gradient", **parts["training"]})
    dtype = DTYPES[settings.dtype]
    model = build_model(resolve(parts), splits[0])
    training_data = build_data(model, splits, device, dtype)
    seeds = [split.split for split in splits] if seeds is None else seeds
    return lambda: settings.start(model, training_data, Streams(seeds, device, dtype)).run


def one_by_one(works: list[Work]) -> Work:
    """Join trainings into one work that runs them one after another."""

    def make() -> Callable[[], list[ReplicaResult]]:
        trainings = [work() for work in works]
        return lambda: [result for train in trainings for result in train()]

    return make


def fsvi_parts(method: str) -> Parts:
    """Return a method on rudner2022's FashionMNIST network: batch 128, one sample, 32 monochrome context images."""
    parts = merge(
        methods.get(method).parts(),
        {
            "network": {"name": "cnn", "channels": [32, 64], "pool": [1, 1], "dense": [256]},
            "likelihood": {"name": "categorical"},
            "training": {"epochs": 1, "batch_size": 128, "optimiser": {"name": "adam", "lr": 5e-4}},
        },
    )
    context = {"name": "random_monochrome", "points": 32}
    return merge(parts, {"context": context}) if parts["context"] else parts


def uci_parts(method: str, epochs: int) -> Parts:
    """Return a method on boston as in pequignot2020's table 5, or with its MC Dropout's settings and batches of 50."""
    listed = method in {row.method for row in pequignot.ROWS}
    row = Row(method, None, method if listed else "MC Dropout")
    own = cast(Recipe, pequignot.recipe(row, "boston", "paper")).parts  # every row has a recipe there
    if not listed:
        own = merge(
            {kind: own[kind] for kind in ("network", "likelihood", "training")}, {"training": {"batch_size": 50}}
        )
    return merge(merge(methods.get(method).parts(), own), {"training": {"epochs": epochs}})


def gfsvi_parts(points: int, epochs: int) -> Parts:
    """Return GFSVI on boston as in cinquin2024's table 1, whole batch; the prior's few fit steps are not timed."""
    recipe = cinquin_candidates.candidate("GFSVI", "rbf", "boston", "smoke")
    own = merge(methods.get("GFSVI").parts(), cast(Recipe, recipe).parts)
    return merge(own, {"context": {"points": points}, "training": {"epochs": epochs, "early_stopping": None}})


def boston(split: int = 0) -> Split:
    """Return random numbers in the shape of boston's training subset."""
    described = datasets.describe("boston", pequignot.PAPER)
    return random_split(described.shape, 1, described.n_train, split)


def digits_parts(method: str) -> Parts:
    """Return a method as in table ``digits``, one epoch; a prior's few fit steps are not timed."""
    recipe = digits.recipe(Row(method, None, method), "digits", "smoke")
    parts = merge(merge(methods.get(method).parts(), recipe.parts), {"training": {"epochs": 1}})
    spectral = (parts["divergence"] or {}).get("name") == "spectral_kl"  # compares draws with one another
    return merge(parts, {"training": {"samples": 10}}) if spectral else parts


def catalogue_parts() -> dict[str, Parts]:
    """Return every row of the catalogue except exact Gaussian processes, which have no network and no classes."""
    rows = methods.catalogue().values()
    return {row.name: digits_parts(row.name) for row in rows if row.family["name"] != "exact_gp"}
