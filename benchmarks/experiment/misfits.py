"""Compatibility of parts, found by trying: a training step on a few made-up points, with the network of the run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import torch

import datasets
from benchmarks.experiment.assembly import FittedRun, build_data, build_model, pool_names, run_streams
from benchmarks.experiment.prediction import predict_sets
from benchmarks.records.config import canonical_json, method_of
from benchmarks.records.hyperparameters import FITTING, context_pools, known, named, own_parts, resolve
from benchmarks.shapes import PartsConfig, RunConfig
from benchmarks.tables.simple import LIKELIHOODS
from datasets import Arrays, Pool, Split
from fvi_core.divergences import Divergence, Step
from fvi_core.families.base import Family, NotSupported
from fvi_core.networks import ModuleNetwork, build_network
from fvi_core.plugins import place_of
from fvi_core.printing import message
from fvi_core.priors.base import Prior
from fvi_core.registry import TRAININGS
from fvi_core.stack import DTYPES

TINY: dict[str, dict[str, Any]] = {
    "network": {"name": "mlp", "hidden": [3], "activation": "tanh"},
    "context": {"name": "uniform_box", "points": 4},
    "training": {
        "epochs": 1,
        "batch_size": 4,
        "optimiser": {"name": "adam"},
        "samples": 2,
        "dtype": "float64",
        "augment": None,  # the tiny data are no images
    },
}
FEWER = {"size": 2, "fit_steps": 1, "samples": 4, "rank": 2, "every": 1, "start": 0.0}
FEWER |= {"warmup": 1, "thinning": 1, "leapfrogs": 2, "map_steps": 1, "k": 1}
REQUIRED = {
    "family": {"ensemble": {"base": {"name": "mean_field"}}},
    "prior": {"gaussian_process": {"kernel": {"name": "rbf"}}},
}
"""Hyper-parameters without a default, where a part is tried by its name."""
POINTS, CLASSES, VECTOR = 4, 2, (2,)
REPLICAS = 3
"""Replicas with which plug-ins' parts are tried: unlike samples and points, so that axes are not mistaken."""
WEIGHTS, FITTED, PRODUCTS = 1_000_000, 5_000, 100_000_000
"""Most weights of a network with which parts are tried, the same with a fit part (whose matrices may have a row for
each weight), and most multiplications of the network's pass of one input."""


def misfits(configs: Iterable[RunConfig], say: Callable[[str], None] = print) -> list[str]:
    """Return a sentence for every reason why parts of these runs do not fit together, with methods and data sets.

    Says which networks are too large to be tried here, so that a tiny one takes their place.
    """
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    tried: dict[str, str] = {}
    large: dict[str, None] = {}
    too_large = cache(_too_large)
    for config in configs:
        data = config["dataset"]
        described = datasets.describe(data["name"], data["scheme"] or None)
        parts: Any = {**config["parts"], "fit": config["evaluation"].get("fit", config["parts"]["fit"])}
        # This project's parts treat vectors alike, whatever their length: one trial serves all such data.
        own = any(_is_own(kind, parts[kind]) for kind in ("network", "context"))
        shape = described.shape if own or len(described.shape) > 1 else VECTOR
        points = Points(described.task, described.n_outputs, described.validated is not False, shape)
        if size := too_large(canonical_json(parts["network"]), points, FITTED if parts["fit"] else WEIGHTS):
            where = f"{parts['network']['name']!r} on {data['name']}"
            large[f"not tried: network {where} has {size}; a tiny network takes its place"] = None
            parts, points = parts | {"network": TINY["network"]}, replace(points, shape=VECTOR)
        key = canonical_json([astuple(points), parts])
        if key not in tried:
            tried[key] = misfit(parts, points)
        if tried[key]:
            reasons.setdefault((method_of(config), tried[key]), {})[data["name"]] = None
    for line in large:
        say(line)
    methods: dict[tuple[str, str], list[str]] = {}
    for (method, reason), sets in reasons.items():
        methods.setdefault((", ".join(sets), reason), []).append(method)
    return [f"does not fit: {', '.join(names)} on {sets}: {reason}" for (sets, reason), names in methods.items()]


@dataclass(frozen=True)
class Points:
    """Made-up data: their targets and inputs, and whether there is a validation subset (``held``)."""

    task: str
    n_outputs: int = 1
    held: bool = True
    shape: tuple[int, ...] = VECTOR


def _too_large(network: str, points: Points, most: int) -> str:
    """Describe the size of a network that is too large to be tried; empty for others, and where none can be built."""
    try:
        built = build_network(json.loads(network), points.shape, points.n_outputs)
        weights, products = built.n_parameters, built.multiplications
    except Exception:  # the trial says why
        return ""
    if weights > most:
        return f"{weights:,} weights, of at most {most:,} in a trial{' of a fit part' * (most == FITTED)}"
    return f"{products:,} multiplications for an input, of at most {PRODUCTS:,} in a trial" * (products > PRODUCTS)


def _is_own(kind: str, part: Any) -> bool:
    """Return whether a part is of a plug-in."""
    return part is not None and part["name"] not in known()[kind]


def misfit(parts: PartsConfig, points: Points) -> str:
    """Return why parts do not fit together, tried on made-up data; empty if they fit."""
    spec: dict[str, Any] = {kind: _fewer(part) for kind, part in parts.items()} | {"network": parts["network"]}
    if _is_own("context", parts["context"]):
        spec["context"] |= {"points": POINTS} if "points" in spec["context"] else {}
    elif parts["context"] is not None:
        spec["context"] = TINY["context"]
    training = parts["training"]
    tiny = TINY["training"] | {"dtype": training.get("dtype", TINY["training"]["dtype"])}
    if training.get("name", "gradient") == "gradient":
        stopping = {"early_stopping": {"patience": 1}} if training.get("early_stopping") else {}
        spec["training"] = tiny | stopping | {"samples": min(training.get("samples", 1), tiny["samples"])}
    else:
        spec["training"] |= {key: value for key, value in tiny.items() if key in training}
    try:
        with torch.random.fork_rng(devices=[]):
            _try(resolve(spec), points)
    except Exception as error:
        lacks = [kind for kind in ("prior", "context") if parts["divergence"] is not None and parts[kind] is None]
        if lacks and isinstance(error, TypeError | AttributeError) and "'NoneType' object" in message(error):
            divergence = (parts["divergence"] or {})["name"]
            return f"divergence {divergence!r} needs a {' or a '.join(lacks)}, and the method has none"
        return f"{type(error).__name__}: {message(error)[:300]}{place_of(error)}"
    return ""


def _try(parts: PartsConfig, points: Points) -> None:
    split = made_up(points, context_pools(parts["context"]))
    tiny = {"method": "tiny", "dataset": {"name": "tiny", "split": 0}, "seed": 0, "parts": parts}
    config = cast(RunConfig, {**tiny, "evaluation": {"samples": 2, "sets": ["test"], "content": {}}})
    model, training = build_model(parts, split), TRAININGS.build(parts["training"])
    if isinstance(model.network, ModuleNetwork):  # its own example, which may be tokens
        x = model.network.example[torch.arange(POINTS) % len(model.network.example)].float().numpy()
        split = made_up(points, pool_names(model), x)
    device, dtype = torch.device("cpu"), DTYPES[parts["training"].get("dtype", "float64")]
    replicas = 1 if all(name in known()[kind] for kind, name in named(parts)) else REPLICAS
    training_data, streams = build_data(model, [split], device, dtype), run_streams([config] * replicas, device, dtype)
    trial = None if model.divergence is None else Trial(model.divergence)
    model = replace(model, divergence=trial)
    trained = training.start(model, training_data, streams.child("train"), None).run()[0]
    if trial is not None and not trial.times:
        raise NotSupported(f"family {parts['family']['name']!r} has its own objective and uses no divergence")
    if trained.parameters is not None:
        evaluating = run_streams([config], device, dtype).child("evaluate")
        fitted = model.after_training(trained.parameters, training_data, evaluating)
        predict_sets(FittedRun(config, split, training_data, model, fitted, evaluating))


def made_up(points: Points, pools: Iterable[str], x: np.ndarray | None = None) -> Split:
    """Return a split whose subsets and pools are POINTS points, at these inputs or random ones."""
    if x is None:
        x = np.random.RandomState(0).uniform(-1, 1, (POINTS, *points.shape)).astype(np.float32)
    vectors = (points.n_outputs,) if points.n_outputs > 1 else ()
    values = np.arange(POINTS * points.n_outputs, dtype=np.float64).reshape(POINTS, *vectors)  # may be counts
    arrays = Arrays(x, np.arange(POINTS) % points.n_outputs if points.task == "classification" else values)
    about = "(made up)", "1", 0, "", points.task, points.n_outputs
    own = {name: lambda: Pool(x, "made up") for name in pools}
    return Split(*about, arrays, arrays, x.min(0), x.max(0), arrays if points.held else None, pools=own)


class Trial(Divergence):
    """Divergence that counts its calls."""

    def __init__(self, divergence: Divergence) -> None:
        self.divergence, self.times = divergence, 0

    def __call__(self, step: Step) -> torch.Tensor:
        self.times += 1
        return self.divergence(step)

    def check(self, family: Family, draws: int) -> None:
        self.divergence.check(family, draws)

    def weight_prior(self, prior: Prior) -> tuple[float, float] | None:
        return self.divergence.weight_prior(prior)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.divergence, name)


def triples(own: bool, only: Mapping[str, str] = MappingProxyType({})) -> list[tuple[str, ...]]:
    """Return the triples of family, divergence and prior that fit with their defaults, for either task.

    own: those that contain a part of a plug-in, instead of those of this project's parts alone. only: the only part of
    a kind.
    """
    new = own_parts()
    parts = ([only[kind]] if kind in only else [*known()[kind], *new[kind]] for kind in FITTING)
    return [
        names
        for names in product(*parts)
        if own == any(name in new[kind] for kind, name in zip(FITTING, names))
        and any(not _misfit_of(names, task) for task in LIKELIHOODS)
    ]


def _misfit_of(names: tuple[str, ...], task: str) -> str:
    """Return why parts do not fit, with a context and without: a divergence of weights refuses one."""
    spec = {kind: {"name": name} | REQUIRED.get(kind, {}).get(name, {}) for kind, name in zip(FITTING, names)}
    spec |= {"likelihood": {"name": LIKELIHOODS[task]}}
    try:
        points = Points(task, CLASSES if task == "classification" else 1)
        why = misfit(resolve(TINY | spec), points)
        return why and misfit(resolve(TINY | spec | {"context": None}), points)
    except ValueError as error:  # a hyper-parameter without a default
        return str(error)


def _fewer(part: Any) -> Any:
    """Return a cheaper version of a part, for a trial."""
    if isinstance(part, list):
        return [_fewer(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        key: min(value, FEWER[key]) if key in FEWER and isinstance(value, int | float) else _fewer(value)
        for key, value in part.items()
    }
