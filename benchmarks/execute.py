"""From configurations to outcomes: data, training, predictions, metrics. The only place where the rooms meet."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import datasets
import fvi_core.divergences  # noqa: F401  (registers its parts)
import fvi_core.priors  # noqa: F401
from benchmarks import config as run_config
from benchmarks import predictions as stored
from benchmarks.checkpoints import Checkpoints, Saver, code_digest
from benchmarks.metrics import SetInfo, evaluate
from datasets import EvaluationSet, Split
from fvi_core.attacks import fgsm
from fvi_core.images import Scale
from fvi_core.likelihoods import LIKELIHOODS
from fvi_core.networks import Parameters
from fvi_core.objective import Model, Weight, noise_of
from fvi_core.random import Streams, seed_from
from fvi_core.registry import CONTEXTS, DIVERGENCES, FAMILIES, NETWORKS, PRIORS
from fvi_core.training import DTYPES, Problem, Trained, Trainer, Training

CHUNK = 2**24
"""Most values of a layer computed at once in prediction."""
ON_GPU = 8
"""Times as many on a GPU, which small pieces leave idle."""
KEPT = 16
"""Layers whose values a gradient needs: so many times fewer inputs are attacked at once than predicted."""
COSTS = ("training_seconds", "peak_memory_bytes")
"""Metrics of the training itself; all others are computed from the predictions."""
TRAINING_POINTS = "train/points"
"""The curve that holds a toy's training data."""

CODE = code_digest([
    *(Path(room.__file__).parent for room in (datasets, fvi_core)), Path(__file__),
    *(path for name in os.environ.get("FVI_METHODS", "").split(os.pathsep) if (path := Path(name)).is_file()),
])
"""Names the code that makes numbers, as it was when this process loaded it."""


@dataclass
class Outcome:
    """What became of one run: metric rows, curves and provenance, or the reason of its failure."""

    config: dict[str, Any]
    status: str
    metrics: list[dict[str, Any]] = field(default_factory=list)
    curves: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    reason: str | None = None


def execute(
    configs: list[dict[str, Any]], *, state: Path, report: Callable[[float, str], None] = lambda fraction, text: None
) -> list[Outcome]:
    """Train and evaluate runs that share everything but seed and split, as one stack; outcomes in the order given.

    Predictions go to ``state/artifacts/<key>.npz``. A run whose numbers stop being finite fails with its reason; its
    neighbours are not touched. Data that cannot be had, or a part that does not exist, raises: then the whole stack fails.

    Runs with a checkpoint go on from it, so those of different checkpoints are trained one group after another.
    """
    for config in configs:
        run_config.validate_config(config)
    by_key = {run_config.run_key(config): config for config in configs}
    outcomes: dict[str, Outcome] = {}
    parts = Checkpoints(state).parts(by_key)
    for i, keys in enumerate(parts):

        def told(fraction: float, text: str, i: int = i) -> None:
            report((i + fraction) / len(parts), text)

        outcomes |= _train_and_evaluate({key: by_key[key] for key in keys}, state, told)
    return [outcomes[run_config.run_key(config)] for config in configs]


def _train_and_evaluate(asked: dict[str, dict], state: Path, report: Callable[[float, str], None]) -> dict[str, Outcome]:
    """The outcomes of runs, by key. If their checkpoint is of a larger stack, the others are trained along, so that the
    numbers are those of an uninterrupted training, but not evaluated."""
    splits = {key: load_split(config) for key, config in asked.items()}
    for key, config in asked.items():
        splits[key].require(config["evaluation"]["sets"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    made = {"code": CODE, "torch": str(torch.__version__), "device": device.type, "threads": torch.get_num_threads()}
    checkpoints = Checkpoints(state)
    found = checkpoints.find({key: split.fingerprint for key, split in splits.items()}, made)
    stack = {run_config.run_key(config): config for config in found.configs} | asked if found else asked
    splits = {key: splits.get(key) or load_split(config) for key, config in stack.items()}
    first = next(iter(stack.values()))
    training = Training(**first["parts"]["training"])
    dtype = DTYPES[training.dtype]
    model = build_model(first, next(iter(splits.values())))
    problem = build_problem(model, list(splits.values()), device, dtype)
    seeds = [seed_from(c["method"], c["dataset"]["name"], c["dataset"]["split"], c["seed"]) for c in stack.values()]
    streams = Streams(seeds, device, dtype)
    fingerprints = [split.fingerprint for split in splits.values()]
    about = {"keys": list(stack), "configs": list(stack.values()), "fingerprints": fingerprints, **made}
    saver = Saver(checkpoints, about, list(asked), found)
    trainer = Trainer(model, training, problem, streams.child("train"), found.state if found else None)
    trained = trainer.run(report, saver)
    seconds = saver.seconds / len(stack)
    outcomes = {}
    for i, ((key, config), result) in enumerate(zip(stack.items(), trained, strict=True)):
        if key not in asked:
            continue
        split = splits[key]
        provenance = {"fingerprint": split.fingerprint, "seconds": seconds, "stack": len(stack), "epochs": result.epochs,
                      "peak_memory_bytes": peak_memory(device)}
        if found:
            provenance["resumed"] = saver.resumed
        if result.reason:
            outcomes[key] = Outcome(config, "failed", provenance=provenance, reason=result.reason)
            continue
        own = problem if problem.x.shape[0] == 1 else \
            Problem(*(t[i : i + 1] for t in (problem.x, problem.y, problem.low, problem.high)), pools=problem.pools, pixels=problem.pixels)
        noise = streams.subset([i]).child("evaluate")
        outcomes[key] = _evaluate(config, split, model, own, result, noise, provenance, state)
    return outcomes


def load_split(config: dict[str, Any]) -> Split:
    """The data that a run asks for. Raises ValueError for another version of them, and what loading raises."""
    wanted = config["dataset"]
    split = datasets.load(wanted["name"], wanted["split"], scheme=wanted["scheme"])
    if split.version != wanted["version"]:
        raise ValueError(f"data set {split.name} is at version {split.version}, the run asks for {wanted['version']}")
    return split


def build_model(config: dict[str, Any], split: Split) -> Model:
    """The method's parts, built for the shape of one data set."""
    parts = config["parts"]
    network = NETWORKS.build(parts["network"]).build(split.train.x.shape[1:], split.n_outputs)
    optional = [None if parts[kind] is None else registry.build(parts[kind])
                for kind, registry in (("divergence", DIVERGENCES), ("prior", PRIORS), ("context", CONTEXTS))]
    return Model(network, FAMILIES.build(parts["family"]), *optional, LIKELIHOODS.build(parts["likelihood"]), Weight(**parts["weight"]))


def build_problem(model: Model, splits: list[Split], device: torch.device, dtype: torch.dtype) -> Problem:
    """Training tensors of a stack; splits with the same data are held once, images as the bytes they are."""
    shared = len({split.fingerprint for split in splits}) == 1
    used = splits[:1] if shared else splits
    if len({len(split.train) for split in used}) > 1:
        raise ValueError(f"splits of different sizes cannot train together: {[len(split.train) for split in used]}")

    def tensor(array: np.ndarray) -> Tensor:
        held = torch.from_numpy(array).to(device)
        return held.to(dtype) if held.is_floating_point() else held

    def stack(arrays: list[np.ndarray]) -> Tensor:
        return tensor(arrays[0])[None] if len(arrays) == 1 else tensor(np.stack(arrays))

    x, pixels = stack([s.train.x for s in used]), used[0].pixels
    pools = {}
    for name in model.context.pools() if model.context else ():
        pool = used[0].pool(name).x
        if not all(np.array_equal(other.pool(name).x, pool) for other in used[1:]):
            raise ValueError(f"splits whose pools {name!r} differ cannot train together; train them one by one")
        pools[name] = x[0] if pool is used[0].train.x else tensor(pool)
    return Problem(
        x, stack([s.train.y for s in used]), stack([s.low for s in used]), stack([s.high for s in used]),
        [(tensor(s.validation.x), tensor(s.validation.y)) for s in used] if used[0].validation is not None else None, pools,
        None if pixels is None else Scale(pixels.mean, pixels.std, dtype),
    )


def inputs_of(problem: Problem, x: Tensor) -> Tensor:
    """Inputs of the network, where the problem's data are, made of data that are still as they were loaded."""
    return x.to(problem.x) if problem.pixels is None else problem.scale(x.to(problem.x.device))


@torch.no_grad()
def predict(model: Model, parameters: Parameters, x: Tensor, samples: int, streams: Streams,
            prepare: Callable[[Tensor], Tensor] = lambda x: x) -> tuple[Tensor, tuple | None]:
    """Function samples ``[S, N, Q]`` at ``x [N, ...]`` of one replica, and its closed-form marginals where they are of use.

    ``prepare`` makes inputs of the network of x, a piece at a time.
    """
    functions = model.family.functions(model.network, parameters, samples, streams)
    rows = rows_of(model, samples, next(iter(parameters.values())).device) if model.family.pointwise else len(x)
    pieces = [functions(prepare(part).unsqueeze(0))[0] for part in x.split(rows)]
    marginals = model.family.marginals(model.network, parameters, prepare(x).unsqueeze(0)) if model.likelihood.has_closed_form else None
    return torch.cat(pieces, dim=1), None if marginals is None else tuple(m[0, :, 0].double() for m in marginals)


def rows_of(model: Model, samples: int, device: torch.device) -> int:
    """How many inputs are predicted at once."""
    chunk = CHUNK * ON_GPU if device.type == "cuda" else CHUNK
    return max(1, chunk // (samples * max(model.network.width, 1)))


def attack(model: Model, parameters: Parameters, problem: Problem, clean: EvaluationSet, samples: int, streams: Streams) -> Tensor:
    """The images of an evaluation set after an attack on the functions that ``predict`` draws from the same streams.

    In network units ``[N, C, H, W]``, as is ``epsilon``; kept between black and white.
    """
    functions = model.family.functions(model.network, parameters, samples, streams)
    x, y = (torch.from_numpy(array).to(problem.x.device) for array in (clean.x, clean.y))
    low, high = (problem.scale(torch.full_like(x[0, :, :1, :1], end)) for end in (0, 255))
    chunk = max(1, rows_of(model, samples, x.device) // KEPT)
    return fgsm(functions, problem.scale(x)[None], y[None], clean.epsilon, low, high, chunk=chunk)[0]


def _evaluate(config: dict[str, Any], split: Split, model: Model, problem: Problem, result: Trained, streams: Streams,
              provenance: dict[str, Any], state: Path) -> Outcome:
    parameters, noise = noise_of(result.parameters)
    samples = config["evaluation"]["samples"]
    if noise and noise["raw_noise"].dim() > 1:  # members of an ensemble, each with its own noise
        noise = {"raw_noise": noise["raw_noise"].mean(1)}
    if hasattr(model.likelihood, "calibrate"):
        with torch.no_grad():
            f = model.family.functions(model.network, parameters, samples, streams.child("calibrate"))(problem.x)
        noise = model.likelihood.calibrate(noise, f, problem.y)
    noise_std = float(model.likelihood.noise_std(noise)[0]) if noise else None
    if noise:
        parameters = model.family.condition(parameters, model.likelihood.noise_std(noise).detach(), problem.x, problem.y)
    predicted, infos, inputs, sources = {}, [], {}, {}
    prepare = partial(inputs_of, problem)
    for name in config["evaluation"]["sets"]:
        chosen = split.evaluation(name)
        # The same functions are drawn for every set, so that in- and out-of-distribution scores come from one model.
        if chosen.kind == "attack":
            changed = attack(model, parameters, problem, chosen, samples, streams.child("functions"))
            f, marginals = predict(model, parameters, changed, samples, streams.child("functions"))
        else:
            f, marginals = predict(model, parameters, torch.from_numpy(chosen.x), samples, streams.child("functions"), prepare)
        infos.append(set_info(chosen))
        if chosen.kind == "grid":
            inputs[chosen.name] = chosen.x
        if chosen.source:
            sources[chosen.name] = chosen.source
        if not torch.isfinite(f).all():
            return Outcome(config, "failed", provenance=provenance, reason=f"predictions on {name!r} are not finite")
        if split.task == "classification":
            predicted[name] = stored.ClassificationPredictions(f.float().cpu().numpy(), chosen.y)
        else:
            mean, variance = (None, None) if marginals is None else (m.cpu().numpy() for m in marginals)
            predicted[name] = stored.RegressionPredictions(
                f[..., 0].float().cpu().numpy(), noise_std, chosen.y, split.y_mean, split.y_std, mean, variance)
    metrics, curves = evaluate(split.task, split.name, infos, predicted, inputs)
    if any(info.kind == "grid" for info in infos):  # a toy: its figure shows the training points
        y = split.train.y * split.y_std + split.y_mean if split.task == "regression" else split.train.y
        curves[TRAINING_POINTS] = {"x": split.train.x.tolist(), "y": y.tolist()}
    for metric, value in zip(COSTS, (provenance["seconds"], provenance["peak_memory_bytes"])):
        metrics.append({"dataset": split.name, "condition": "", "metric": metric, "value": float(value), "n": 1})
    stored.save(stored.path_of(state, run_config.run_key(config)), predicted)
    if noise_std is not None:
        provenance["noise_std"] = noise_std
    sources |= {f"context {name}": split.pool(name).source for name in (model.context.pools() if model.context else ())}
    if sources:
        provenance["sources"] = sources
    return Outcome(config, "done", metrics, curves, provenance)


def set_info(chosen: EvaluationSet) -> SetInfo:
    """What the metrics of an evaluation set need to know of it: an attack is a shift."""
    return SetInfo(chosen.name, "shift" if chosen.kind == "attack" else chosen.kind, chosen.condition)


def peak_memory(device: torch.device) -> int:
    """Bytes: the device's peak allocation on CUDA, else the process's largest resident size so far."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
