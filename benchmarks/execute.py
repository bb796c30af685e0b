"""From configurations to outcomes: data, training, predictions, metrics. The only place where the rooms meet."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from dataclasses import dataclass, field
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
from datasets import Split
from fvi_core.likelihoods import LIKELIHOODS
from fvi_core.networks import Parameters
from fvi_core.objective import Model, Weight, noise_of
from fvi_core.random import Streams, seed_from
from fvi_core.registry import CONTEXTS, DIVERGENCES, FAMILIES, NETWORKS, PRIORS
from fvi_core.training import DTYPES, Problem, Trained, Trainer, Training

CHUNK = 2**24
"""Most function values computed at once in prediction."""

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

    Training goes on from the checkpoint of an interrupted one if there is one. Its stack may hold more runs; they are
    trained along, so that the numbers are those of an uninterrupted training, and only what is asked is evaluated.
    """
    for config in configs:
        run_config.validate_config(config)
    asked = {run_config.run_key(config): config for config in configs}
    splits = {key: _load(config) for key, config in asked.items()}
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    made = {"code": CODE, "torch": str(torch.__version__), "device": device.type, "threads": torch.get_num_threads()}
    checkpoints = Checkpoints(state)
    found = checkpoints.find({key: split.fingerprint for key, split in splits.items()}, made)
    stack = {run_config.run_key(config): config for config in found.configs} | asked if found else asked
    splits = {key: splits.get(key) or _load(config) for key, config in stack.items()}
    training = Training(**configs[0]["parts"]["training"])
    dtype = DTYPES[training.dtype]
    model = build_model(configs[0], next(iter(splits.values())))
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
            Problem(*(t[i : i + 1] for t in (problem.x, problem.y, problem.low, problem.high)), pools=problem.pools)
        noise = streams.subset([i]).child("evaluate")
        outcomes[key] = _evaluate(config, split, model, own, result, noise, provenance, state)
    return [outcomes[run_config.run_key(config)] for config in configs]


def _load(config: dict[str, Any]) -> Split:
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
    """Training tensors of a stack; splits with the same data are held once."""
    shared = len({split.fingerprint for split in splits}) == 1
    used = splits[:1] if shared else splits
    if len({len(split.train) for split in used}) > 1:
        raise ValueError(f"splits of different sizes cannot train together: {[len(split.train) for split in used]}")

    def stack(arrays: list[np.ndarray]) -> Tensor:
        tensor = torch.from_numpy(np.stack(arrays)).to(device)
        return tensor.to(dtype) if tensor.is_floating_point() else tensor

    pools = {name: stack([used[0].pool(name)])[0] for name in (model.context.pools() if model.context else ())}
    return Problem(
        stack([s.train.x for s in used]), stack([s.train.y for s in used]), stack([s.low for s in used]), stack([s.high for s in used]),
        [(stack([s.validation.x])[0], stack([s.validation.y])[0]) for s in used] if used[0].validation is not None else None, pools,
    )


@torch.no_grad()
def predict(model: Model, parameters: Parameters, x: Tensor, samples: int, streams: Streams) -> tuple[Tensor, tuple | None]:
    """Function samples ``[S, N, Q]`` at ``x [N, ...]`` of one replica, and its closed-form marginals if it has them."""
    functions = model.family.functions(model.network, parameters, samples, streams)
    rows = max(1, CHUNK // (samples * max(model.network.width, 1)))
    pieces = [functions(part.unsqueeze(0))[0] for part in (x.split(rows) if model.family.pointwise else [x])]
    marginals = model.family.marginals(model.network, parameters, x.unsqueeze(0))
    return torch.cat(pieces, dim=1), None if marginals is None else tuple(m[0, :, 0].double() for m in marginals)


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
    predicted, infos, inputs = {}, [], {}
    for name in config["evaluation"]["sets"]:
        chosen = split.evaluation(name)
        x = torch.from_numpy(chosen.x).to(problem.x)
        # The same functions are drawn for every set, so that in- and out-of-distribution scores come from one model.
        f, marginals = predict(model, parameters, x, samples, streams.child("functions"))
        infos.append(SetInfo(chosen.name, chosen.kind, chosen.condition))
        inputs[chosen.name] = chosen.x
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
        curves["train/points"] = {"x": split.train.x.tolist(), "y": y.tolist()}
    for metric, value in (("training_seconds", provenance["seconds"]), ("peak_memory_bytes", provenance["peak_memory_bytes"])):
        metrics.append({"dataset": split.name, "condition": "", "metric": metric, "value": float(value), "n": 1})
    path = state / "artifacts" / f"{run_config.run_key(config)}.npz"
    for left in path.parent.glob(f".{path.name}.*.tmp"):  # of a process that was killed
        left.unlink(missing_ok=True)
    stored.save(path, predicted)
    if noise_std is not None:
        provenance["noise_std"] = noise_std
    return Outcome(config, "done", metrics, curves, provenance)


def peak_memory(device: torch.device) -> int:
    """Bytes: the device's peak allocation on CUDA, else the process's largest resident size so far."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
