"""A guess at what a run costs, from runs of the same method on other data or with other settings."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import datasets
from benchmarks.records.hyperparameters import load_parts
from benchmarks.shapes import RunConfig
from benchmarks.state.costs import Cost
from datasets import Description
from fvi_core.registry import NETWORKS

Parts = dict[str, Any]


def passes(config: RunConfig) -> int:
    """Gradients of the whole training set that a training takes: by epochs, or by the leapfrog steps of a chain."""
    training = config["parts"]["training"]
    draws = training.get("samples") or 1  # networks for each step; of a chain, the positions that are kept
    if epochs := training.get("epochs"):
        return epochs * draws
    moves = (draws + (training.get("warmup") or 0)) * (training.get("thinning") or 1)
    return moves * (training.get("leapfrogs") or 1)


def networks(config: RunConfig) -> int:
    """How many networks are trained: the members of an ensemble, whose family is of another."""
    family = config["parts"].get("family") or {}
    return family.get("size") or 1 if "base" in family else 1


def work(config: RunConfig) -> float | None:
    """Gradients of single points that a training takes, over all its networks; None where the size of the data is not
    known.
    """
    about = _data(config)
    return float(about.n_train * passes(config) * networks(config)) if about and about.n_train else None


def similar(config: RunConfig, known: Iterable[tuple[RunConfig, Cost]]) -> Cost | None:
    """The cost of the run with the same method and kind of network whose work is nearest, in proportion to the work
    and to the multiplications of their networks.

    None where there is no such run, or no telling how large one of them is. Precisions are not told apart.
    """
    own, found = work(config), []
    for other, cost in known:
        alike = other["method"] == config["method"] and _network(other).get("name") == _network(config).get("name")
        theirs = work(other) if alike else None
        size = _relative_size(config, other) if own and theirs else None
        if own and theirs and size:
            times = own / theirs * size
            found.append((abs(math.log(times)), times, cost))
    if not found:
        return None
    _, times, cost = min(found, key=lambda one: one[0])
    evaluation = None if cost.evaluation is None else cost.evaluation * times
    return replace(cost, training=cost.training * times, evaluation=evaluation)


def _network(config: RunConfig) -> Parts:
    return config["parts"].get("network") or {}


def _relative_size(config: RunConfig, other: RunConfig) -> float | None:
    """Multiplications of one network over those of another; None where they differ and one cannot be counted."""
    same = _network(config) == _network(other)
    if same and config["dataset"]["name"] == other["dataset"]["name"]:
        return 1.0
    own, theirs = _multiplications(config), _multiplications(other)
    return own / theirs if own and theirs else 1.0 if same else None


def _multiplications(config: RunConfig) -> int | None:
    """Of a network at one input; 1 for a method without a network, None where it or its data are not known here."""
    network, about = _network(config), _data(config)
    if not network:
        return 1
    if about is None:
        return None
    return _counted(json.dumps(network, sort_keys=True), about.shape, about.n_outputs)


@cache
def _counted(network: str, shape: tuple[int, ...], outputs: int) -> int | None:
    load_parts()  # torch with them, which most commands do without
    try:
        return NETWORKS.build(json.loads(network)).build(shape, outputs).multiplications
    except (ValueError, LookupError, TypeError):
        return None


def _data(config: RunConfig) -> Description | None:
    """What is known of a run's data; None where these are a user's that are not there."""
    data = config["dataset"]
    try:
        return datasets.describe(data["name"], data["scheme"] or None)
    except (ValueError, LookupError, OSError):
        return None
