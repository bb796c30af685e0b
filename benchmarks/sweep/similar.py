"""Cost estimates from runs of the same method on other data or with other settings."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

import datasets
from benchmarks.records.config import kind_key
from benchmarks.records.hyperparameters import load_parts
from benchmarks.shapes import RunConfig
from datasets import Description
from fvi_core.registry import NETWORKS

Parts = dict[str, Any]
SIMILAR = "records of similar runs, in proportion to the work"
STEP = 1e6  # fixed cost of a step, in multiplications
SINGLE = ("point", "swag", "centroids")  # families that train one network, however many draws their setting has
NEAREST = 3  # number of similar kinds whose median is used


@dataclass(frozen=True)
class Cost:
    """Seconds on one core, of one training and of one evaluation (None: not known), and their source in words."""

    training: float
    evaluation: float | None = None
    source: str = SIMILAR


@dataclass(frozen=True)
class Recorded:
    """Cost of a recorded run, the fraction of epochs it took, and its processor."""

    config: RunConfig
    cost: Cost
    share: float = 1.0
    cpu: str = ""


@dataclass(frozen=True)
class Work:
    """Work of a training in multiplications: of one step, and in total."""

    step: float
    whole: float


def passes(config: RunConfig) -> int:
    """Number of gradients of the whole training set: epochs, or leapfrog steps of a chain."""
    training = config["parts"]["training"]
    if epochs := training.get("epochs"):
        return epochs
    moves = ((training.get("samples") or 1) + (training.get("warmup") or 0)) * (training.get("thinning") or 1)
    return moves * (training.get("leapfrogs") or 1)


def draws(config: RunConfig) -> int:
    """Return the number of networks that one member evaluates in a step: 1 for chains and families without draws."""
    training, family = config["parts"]["training"], config["parts"].get("family") or {}
    if not training.get("epochs") or (family.get("base") or family).get("name") in SINGLE:
        return 1
    return training.get("samples") or 1


def context_points(context: Parts) -> int:
    """Return the number of context points, summed over the parts of a mixture."""
    points = context.get("points")
    own = points if isinstance(points, int) else 0
    return own + sum(context_points(part) for part in context.get("parts") or ())


def networks(config: RunConfig) -> int:
    """Return the number of trained networks: the members of an ensemble, else 1."""
    family = config["parts"].get("family") or {}
    return family.get("size") or 1 if "base" in family else 1


def stops_early(config: RunConfig) -> bool:
    """Whether training may end before its last epoch."""
    training = config["parts"]["training"]
    return bool(training.get("early_stopping")) or (training.get("schedule") or {}).get("name") == "plateau"


def work(config: RunConfig) -> Work | None:
    """Return the work of a training over all its networks; None where the size of its data or network is not known."""
    about, size = _data(config), _multiplications(config)
    if about is None or not about.n_train or size is None:
        return None
    training, context = config["parts"]["training"], config["parts"].get("context") or {}
    batch = min(training.get("batch_size") or about.n_train, about.n_train)
    step = STEP + draws(config) * (batch + context_points(context)) * size
    steps = passes(config) * -(-about.n_train // batch)
    return Work(step, step * steps * networks(config))


def similar(config: RunConfig, known: Iterable[Recorded]) -> Cost | None:
    """Return the cost of a run by records of its method, in proportion to the work.

    It is the median over the three most similar kinds: by work of a step, total work, data and network. None without
    such a record, or where the work of a run is not known. Precisions are not distinguished.
    """
    own, kinds = work(config), defaultdict(list)
    for one in known:
        if own and one.config["method"] == config["method"]:
            kinds[kind_key(one.config)].append(one)
    found: list[tuple[float, float, float | None]] = []
    for same in kinds.values():
        other = same[0].config
        if own and (theirs := work(other)):
            times = own.whole / theirs.whole
            apart = abs(math.log(own.step / theirs.step)) + 0.3 * abs(math.log(times))
            apart += other["dataset"]["name"] != config["dataset"]["name"]
            apart += _network(other).get("name") != _network(config).get("name")
            one = min(same, key=lambda one: one.cost.training / one.share)
            training = one.cost.training / (1.0 if stops_early(config) else one.share)
            found.append((apart, training * times, _evaluation(config, one)))
    nearest = sorted(found, key=lambda each: each[0])[:NEAREST]
    evaluations = [seconds for *_, seconds in nearest if seconds is not None]
    if not nearest:
        return None
    return Cost(median(seconds for _, seconds, _ in nearest), median(evaluations) if evaluations else None)


def _network(config: RunConfig) -> Parts:
    return config["parts"].get("network") or {}


def _evaluation(config: RunConfig, one: Recorded) -> float | None:
    """Seconds of the same evaluation of another network, in proportion to draws and multiplications; else None."""
    own, theirs = ((_multiplications(each) or 0) * networks(each) for each in (config, one.config))
    asked, other = config["evaluation"], one.config["evaluation"]
    same = config["dataset"]["name"] == one.config["dataset"]["name"] and asked["sets"] == other["sets"]
    if one.cost.evaluation is None or not same or not own or not theirs:
        return None
    return one.cost.evaluation * own / theirs * asked["samples"] / other["samples"]


def _multiplications(config: RunConfig) -> int | None:
    """Multiplications of a network at one input; 1 for a method without a network, None where it is not known here."""
    network, about = _network(config), _data(config)
    if not network:
        return 1
    if about is None:
        return None
    return _counted(json.dumps(network, sort_keys=True), about.shape, about.n_outputs)


@cache
def _counted(network: str, shape: tuple[int, ...], outputs: int) -> int | None:
    load_parts()  # imports torch, which most commands do without
    try:
        return NETWORKS.build(json.loads(network)).build(shape, outputs).multiplications
    except (ValueError, LookupError, TypeError):
        return None


def _data(config: RunConfig) -> Description | None:
    """Description of a run's data; None for a user's data that are absent."""
    data = config["dataset"]
    try:
        return datasets.describe(data["name"], data["scheme"] or None)
    except (ValueError, LookupError, OSError):
        return None
