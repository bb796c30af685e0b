"""Functions drawn from a trained model, at its evaluation sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.experiment.assembly import inputs_of
from benchmarks.metrics import SetInfo
from benchmarks.records import predictions as stored
from datasets import EvaluationSet, Split
from fvi_core.attacks import fgsm
from fvi_core.networks import Parameters
from fvi_core.objective import Model, noise_of
from fvi_core.random import Streams
from fvi_core.training import Problem

CHUNK = 2**24
"""Most values of a layer computed at once in prediction."""
ON_GPU = 8
"""Times as many on a GPU, which small pieces leave idle."""
KEPT = 16
"""Layers whose values a gradient needs: so many times fewer inputs are attacked at once than predicted."""


class NotFinite(ValueError):
    """Predictions that are no numbers."""


@dataclass
class Predicted:
    """What a model says of its evaluation sets, and what metrics need to know of these.

    ``sources``: whose inputs, where a reader could not know; ``fingerprints``: of each set's data.
    """

    sets: dict[str, stored.Predictions] = field(default_factory=dict)
    infos: list[SetInfo] = field(default_factory=list)
    inputs: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    fingerprints: dict[str, str] = field(default_factory=dict)
    noise_std: float | None = None


def predict_sets(evaluation: dict[str, Any], split: Split, model: Model, problem: Problem, parameters: Parameters,
                 streams: Streams) -> Predicted:
    """What one trained replica says of the evaluation sets that a run asks for. Raises :class:`NotFinite`."""
    parameters, noise = noise_of(parameters)
    samples = evaluation["samples"]
    if noise and noise["raw_noise"].dim() > 1:  # members of an ensemble, each with its own noise
        noise = {"raw_noise": noise["raw_noise"].mean(1)}
    if hasattr(model.likelihood, "calibrate"):
        with torch.no_grad():
            f = model.family.functions(model.network, parameters, samples, streams.child("calibrate"))(problem.x)
        noise = model.likelihood.calibrate(noise, f, problem.y)
    found = Predicted(noise_std=float(model.likelihood.noise_std(noise)[0]) if noise else None)
    if noise:
        parameters = model.family.condition(parameters, model.likelihood.noise_std(noise).detach(), problem.x, problem.y)
    prepare = partial(inputs_of, problem)
    for name in evaluation["sets"]:
        chosen = split.evaluation(name)
        # The same functions are drawn for every set, so that in- and out-of-distribution scores come from one model.
        functions = streams.child("functions")
        if chosen.kind == "attack":
            changed = attack(model, parameters, problem, chosen, samples, streams.child("functions"))
            f, marginals = predict(model, parameters, changed, samples, functions)
        else:
            f, marginals = predict(model, parameters, torch.from_numpy(chosen.x), samples, functions, prepare)
        if not torch.isfinite(f).all():
            raise NotFinite(f"predictions on {name!r} are not finite")
        found.infos.append(set_info(chosen))
        found.fingerprints[name] = chosen.fingerprint
        if chosen.kind == "grid":
            found.inputs[chosen.name] = chosen.x
        if chosen.source:
            found.sources[chosen.name] = chosen.source
        if split.task == "classification":
            found.sets[name] = stored.ClassificationPredictions(f.float().cpu().numpy(), chosen.y)
        else:
            mean, variance = (None, None) if marginals is None else (m.cpu().numpy() for m in marginals)
            found.sets[name] = stored.RegressionPredictions(
                f[..., 0].float().cpu().numpy(), found.noise_std, chosen.y, split.y_mean, split.y_std, mean, variance)
    return found


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


def set_info(chosen: EvaluationSet) -> SetInfo:
    """What the metrics of an evaluation set need to know of it: an attack is a shift."""
    return SetInfo(chosen.name, "shift" if chosen.kind == "attack" else chosen.kind, chosen.condition)
