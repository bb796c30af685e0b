"""A guess at what a run costs, from runs of the same method on other data or with other settings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import datasets
from benchmarks.shapes import RunConfig
from benchmarks.state.costs import Cost


def work(config: RunConfig) -> float | None:
    """Points that a training passes, times networks drawn for each; None where the size of the data is not known."""
    data, training = config["dataset"], config["parts"]["training"]
    try:
        points = datasets.describe(data["name"], data["scheme"] or None).n_train
    except (ValueError, LookupError, OSError):  # data of the user's that are not there
        return None
    return float(points * (training.get("epochs") or 1) * (training.get("samples") or 1)) if points else None


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
