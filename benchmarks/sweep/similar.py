"""Cost estimates from runs of the same method on other data or with other settings."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, NamedTuple

import datasets
from benchmarks.records.config import differences, stack_key
from benchmarks.records.hyperparameters import load_parts
from benchmarks.shapes import RunConfig
from datasets import Description

if TYPE_CHECKING:
    from fvi_core.networks import Network

SIMILAR = "records of similar runs, in proportion to the work"
# Costs in multiplications of float32: of a step, of an evaluated input, of each number that a layer gives, other types.
STEP, INPUT, VALUE, TYPES = 1e7, 1e6, 100, {"float64": 2.0, "bfloat16": 0.5}
SINGLE = ("point", "swag", "centroids")  # families that train one network, however many draws their setting has


class Clock(NamedTuple):
    """Processor on which seconds were measured; ``own``: as its own time, else as wall time, beside other work."""

    cpu: str = ""
    own: bool = False


@dataclass(frozen=True)
class Cost:
    """Seconds on one core, of one training and of one evaluation (None: not known), and their source in words.

    share: fraction of its epochs after which training is expected to end.
    """

    training: float
    evaluation: float | None = None
    source: str = SIMILAR
    share: float = 1.0


@dataclass(frozen=True)
class Recorded:
    """Cost of a recorded run, the fraction of epochs it took, its clock, the size of its stack, and the seconds of the
    cost of training that its fit part took."""

    config: RunConfig
    cost: Cost
    share: float = 1.0
    clock: Clock = Clock()
    stack: float = 1
    fit: float = 0.0


def passes(config: RunConfig) -> int:
    """Number of gradients of the whole training set: epochs, or leapfrog steps of a chain."""
    training = config["parts"]["training"]
    if (epochs := training.get("epochs")) is not None:
        return epochs
    moves = ((training.get("samples") or 1) + (training.get("warmup") or 0)) * (training.get("thinning") or 1)
    return moves * (training.get("leapfrogs") or 1)


def draws(config: RunConfig) -> int:
    """Return the number of networks that one member evaluates in a step, for the likelihood or the divergence: 1 for
    chains and families without draws."""
    training, family = config["parts"]["training"], config["parts"].get("family") or {}
    if not training.get("epochs") or (family.get("base") or family).get("name") in SINGLE:
        return 1
    return max(training.get("samples") or 1, (config["parts"].get("divergence") or {}).get("draws") or 1)


def context_points(context: dict[str, Any], batch: int) -> int:
    """Return the number of context points besides the training batch, summed over the parts of a mixture."""
    if context.get("name") == "grid":
        sides = [high - low for low, high in zip(context["low"], context["high"])]
        return math.prod(context.get("counts") or (int(side / context["step"] + 0.5) + 1 for side in sides))
    points = batch if context.get("name") == "rotated_batch" else context.get("points")
    own = points if isinstance(points, int) else 0
    return own + sum(context_points(part, batch) for part in context.get("parts") or ())


def networks(config: RunConfig) -> int:
    """Return the number of trained networks: the members of an ensemble, else 1."""
    family = config["parts"].get("family") or {}
    return family.get("size") or 1 if "base" in family else 1


def stops_early(config: RunConfig) -> bool:
    """Whether training may end before its last epoch."""
    training = config["parts"]["training"]
    return bool(training.get("early_stopping")) or (training.get("schedule") or {}).get("name") == "plateau"


def _patience(config: RunConfig) -> int:
    """Epochs that training goes on without a lower validation loss; 0 without early stopping."""
    return (config["parts"]["training"].get("early_stopping") or {}).get("patience", 0)


def _epochs(config: RunConfig, other: RunConfig, other_epochs: float) -> float | None:
    """Expected epochs of a training, of which another one made so many; None where training may end early and the other
    shows no end before. The lowest validation loss is expected after the same sum of learning rates."""
    if not stops_early(config):
        return passes(config)
    ours, theirs = ((each["parts"]["training"].get("optimiser") or {}).get("lr") or 1.0 for each in (config, other))
    end = max(0.0, other_epochs - _patience(other)) * theirs / ours + _patience(config)
    # The other's last epoch is a lower bound.
    unknown = not stops_early(other) or (other_epochs >= passes(other) and end < passes(config))
    return None if unknown else min(passes(config), end)


def work(config: RunConfig, stack: float = 1) -> tuple[float, int] | None:
    """Return the multiplications of a step, and the steps of a pass over the training data.

    None where the size of the data or network is not known. stack: trainings that share the fixed cost of a step.
    """
    about = _data(config)
    if about is None or not about.n_train:
        return None
    parts = config["parts"]
    training, family = parts["training"], parts.get("family") or {}
    batch = min(training.get("batch_size") or about.n_train, about.n_train)
    size = batch * (batch + VALUE) if family.get("name") == "exact_gp" else _size(config)  # a covariance for a network
    if size is None:
        return None
    reduced = training.get("precision") == "bfloat16"
    context = context_points(parts.get("context") or {}, batch)
    multiplications = draws(config) * (batch + context) * size * networks(config)
    multiplications *= TYPES.get("bfloat16" if reduced else training.get("dtype", ""), 1.0)
    return STEP / stack + multiplications, -(-about.n_train // batch)


def similar(config: RunConfig, known: Iterable[Recorded], stack: float = 1) -> Cost | None:
    """Return the cost of a run by records of its method, in proportion to the work.

    Seconds of an epoch, epochs, seconds of a fit and of an evaluation are medians over the kinds that show them, in
    which similar kinds weigh more: by work of a step, data, and number of different settings. A kind shows its lower
    quartile. None without such a record, or where the work of a run is not known.
    """
    own, kinds = work(config, stack), defaultdict(list)
    for one in known:
        if own and one.config["method"] == config["method"]:
            kinds[stack_key(one.config)].append(one)
    costs: list[tuple[float, float, float | None, float | None, float | None]] = []
    for every in kinds.values():
        same = [one for one in every if one.clock.own] or every
        other, recorded_epochs = same[0].config, fmean(one.share for one in same) * passes(same[0].config)
        theirs = work(other, same[0].stack)
        if own and theirs and recorded_epochs:
            other_data = other["dataset"]["name"] != config["dataset"]["name"]
            apart = 2 * (abs(math.log(own[0] / theirs[0])) + other_data + len(differences(config, other)))
            epoch = low([one.cost.training - one.fit for one in same]) / recorded_epochs
            epoch *= own[0] / theirs[0] * own[1] / theirs[1]
            fit = low([one.fit for one in same]) if other["parts"].get("fit") == config["parts"].get("fit") else None
            epochs, seconds = _epochs(config, other, recorded_epochs), evaluation(config, same)
            costs.append((apart, epoch, epochs, fit, seconds))
    if not costs:
        return None
    aparts, *columns = zip(*costs)
    epoch_seconds, ends, fits, evaluations = (_median(aparts, each) for each in columns)
    end = passes(config) if ends is None else ends
    share = end / passes(config) if passes(config) else 1.0
    return Cost((epoch_seconds or 0.0) * end + (fits or 0.0), evaluations, share=share)


def low(seconds: Sequence[float]) -> float:
    """Return the lower quartile, always one of the values: times are longer for runs trained beside other work."""
    return sorted(seconds)[(len(seconds) - 1) // 4]


def _median(aparts: Sequence[float], values: Sequence[float | None]) -> float | None:
    """Median of the values that are known, of which each weighs less by how far apart its kind is; None without any."""
    known = sorted((value, apart) for value, apart in zip(values, aparts) if value is not None)
    nearest = min((apart for _, apart in known), default=0.0)
    weights = list(accumulate(math.exp(nearest - apart) for _, apart in known))
    middle = [value for (value, _), low, high in zip(known, [0.0, *weights], weights) if low <= weights[-1] / 2 <= high]
    return fmean(middle) if middle else None


def paces(known: Iterable[Recorded]) -> dict[Clock, float]:
    """Return the logarithm of how slow each clock is, from kinds recorded by several.

    It is the median difference from the mean of a kind, once the paces are taken from the mean; a difference of 0 is
    added, so that a single kind tells half.
    """
    kinds: dict[str, dict[Clock, float]] = defaultdict(dict)
    for one in known:
        if one.cost.training and one.share:
            times = kinds[stack_key(one.config)]
            times[one.clock] = min(times.get(one.clock, math.inf), math.log(one.cost.training / one.share))
    several, found = [times for times in kinds.values() if len(times) > 1], dict[Clock, float]()
    for _ in range(10):  # converges
        apart: dict[Clock, list[float]] = defaultdict(lambda: [0.0])
        for times in several:
            usual = fmean(seconds - found.get(clock, 0.0) for clock, seconds in times.items())
            for clock, seconds in times.items():
                apart[clock].append(seconds - usual)
        found = {clock: median(values) for clock, values in apart.items()}
    return found


def evaluation(config: RunConfig, recorded: Iterable[Recorded]) -> float | None:
    """Seconds of an evaluation by the records of such ones on the same data; None without any."""
    seconds = [each for each in (_evaluation(config, one) for one in recorded) if each is not None]
    return low(seconds) if seconds else None


def _evaluation(config: RunConfig, one: Recorded) -> float | None:
    """Seconds of another evaluation, in proportion to its sets, its draws and the size of the network, or None."""
    same = config["dataset"]["name"] == one.config["dataset"]["name"]
    # Comparisons and fits take longer than metrics.
    same = same and config["evaluation"].keys() == one.config["evaluation"].keys()
    if not same or not one.cost.evaluation:
        return None
    alike = config["parts"] == one.config["parts"]
    own, theirs = (
        (1 if alike else INPUT + (_size(each) or 0) * networks(each))
        * each["evaluation"]["samples"]
        * len(each["evaluation"]["sets"])
        for each in (config, one.config)
    )
    return one.cost.evaluation * own / theirs if own and theirs else None


def _size(config: RunConfig) -> float | None:
    """Cost of a network at one input; 1 for a method without a network, None where it is not known here."""
    network, about = config["parts"].get("network"), _data(config)
    if not network:
        return 1.0
    built = _built(json.dumps(network, sort_keys=True), about.shape, about.n_outputs) if about else None
    return built.multiplications + VALUE * built.activations if built else None


@cache
def _built(network: str, shape: tuple[int, ...], outputs: int) -> Network | None:
    load_parts()  # imports torch, which most commands do without
    from fvi_core.networks import build_network

    try:
        built = build_network(json.loads(network), shape, outputs)
        return built if built.multiplications else None  # counted by a pass, which fails for other inputs
    except Exception:  # a plug-in's network raises anything, PyTorch RuntimeError; its run reports it
        return None


def _data(config: RunConfig) -> Description | None:
    """Description of a run's data; None for a user's data that are absent."""
    data = config["dataset"]
    try:
        return datasets.describe(data["name"], data["scheme"] or None)
    except (ValueError, LookupError, OSError):
        return None
