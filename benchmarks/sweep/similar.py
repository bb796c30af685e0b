"""A guess at what a run costs, from runs of the same method on other data or with other settings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import datasets
from benchmarks.shapes import RunConfig
from benchmarks.state.costs import Cost


def passes(config: RunConfig) -> int:
    """Gradients of the whole training set that a training takes: by epochs, or by the leapfrog steps of a chain."""
    training = config["parts"]["training"]
    draws = training.get("samples") or 1  # networks for each step; of a chain, the positions that are kept
    if epochs := training.get("epochs"):
        return epochs * draws
    moves = (draws + (training.get("warmup") or 0)) * (training.get("thinning") or 1)
    return moves * (training.get("leapfrogs") or 1)


def work(config: RunConfig) -> float | None:
    """Gradients of single points that a training takes; None where the size of the data is not known."""
    data = config["dataset"]
    try:
        points = datasets.describe(data["name"], data["scheme"] or None).n_train
    except (ValueError, LookupError, OSError):  # data of the user's that are not there
        return None
    return float(points * passes(config)) if points else None


def similar(config: RunConfig, known: Iterable[tuple[RunConfig, Cost]]) -> Cost | None:
    """The cost of the run with the same method and network whose work is nearest, in proportion to the work.

    None where there is no such run, or no telling how large one of them is.
    """
    own, found = work(config), []
    for other, cost in known:
        alike = other["method"] == config["method"] and _network(other) == _network(config)
        theirs = work(other) if alike else None
        if own and theirs:
            found.append((abs(math.log(own / theirs)), own / theirs, cost))
    if not found:
        return None
    _, times, cost = min(found, key=lambda one: one[0])
    evaluation = None if cost.evaluation is None else cost.evaluation * times
    return replace(cost, training=cost.training * times, evaluation=evaluation)


def _network(config: RunConfig) -> str | None:
    return (config["parts"].get("network") or {}).get("name")
