"""Functions drawn from a trained model, at its evaluation sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.experiment.assembly import FittedRun, inputs_of
from benchmarks.metrics import SetInfo, evaluate
from benchmarks.metrics.evaluate import Scores
from benchmarks.records import predictions as stored
from benchmarks.shapes import Curves, MetricRow
from datasets import EvaluationSet, Split
from fvi_core.attacks import fgsm
from fvi_core.blocks import rows_at_once
from fvi_core.data import TrainingData
from fvi_core.families.base import NotSupported, points_at_once
from fvi_core.networks import Parameters
from fvi_core.objective import Model
from fvi_core.random import Streams
from fvi_core.telling import Parts, counted

ATTACK_SHARE = 8
"""Factor by which attacks take fewer inputs at once than predictions: a gradient needs the values of all layers."""

TRAINING_POINTS = "train/points"
"""Name of the curve with a toy's training data."""


class NotFinite(ValueError):
    """Raised for predictions that are not finite."""


@dataclass
class Predicted:
    """Predictions of a model on its evaluation sets, with facts on these sets for metrics.

    ``sources``: the origin of inputs, where it is not obvious; ``fingerprints``: hashes of each set's data.
    """

    sets: dict[str, stored.Predictions] = field(default_factory=dict)
    infos: list[SetInfo] = field(default_factory=list)
    inputs: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    fingerprints: dict[str, str] = field(default_factory=dict)
    noise_std: float | None = None

    def note(self, chosen: EvaluationSet) -> None:
        """Add the facts on a set that metrics and records need."""
        self.infos.append(set_info(chosen))
        if chosen.kind == "grid":
            self.inputs[chosen.name] = chosen.x
        if chosen.source:
            self.sources[chosen.name] = chosen.source
        self.fingerprints[chosen.name] = chosen.fingerprint


def measured(split: Split, predicted: Predicted, scores: Scores = lambda values: {}) -> tuple[list[MetricRow], Curves]:
    """Return metrics and curves of predictions, with a likelihood's ``scores``; for a toy also its training points."""
    gridded = any(info.kind == "grid" for info in predicted.infos)
    training = split.train.x if gridded else None
    metrics, curves = evaluate(
        split.task, split.name, predicted.infos, predicted.sets, predicted.inputs, scores, split.screens, training
    )
    if gridded:
        y = split.train.y * split.y_std + split.y_mean if split.task == "regression" else split.train.y
        curves[TRAINING_POINTS] = {"x": split.train.x.tolist(), "y": y.tolist()}
    return metrics, curves


def predict_sets(fitted: FittedRun) -> Predicted:
    """Predict the evaluation sets of a run with its trained and fitted replica.

    Raises :class:`NotFinite`, NotSupported.
    """
    split, model, training_data = fitted.split, fitted.model, fitted.data
    parameters, streams = fitted.parameters, fitted.streams
    samples, std = fitted.config["evaluation"]["samples"], model.noise_std(parameters)
    predicted = Predicted(noise_std=None if std is None else float(std[0]))
    prepare = partial(inputs_of, training_data)
    names = fitted.config["evaluation"]["sets"]
    sets = Parts(len(names))
    for i, name in enumerate(names):
        what = f"{name} (set {i + 1} of {len(names)})" if len(names) > 1 else name
        with sets.part(i):
            chosen = split.evaluation(name)
            # Every set uses the same functions, so that in- and out-of-distribution scores come from one model.
            functions = streams.child("functions")
            if chosen.kind == "attack":
                changed = attack(model, parameters, training_data, chosen, samples, streams.child("functions"))
                f, marginals = predict(model, parameters, changed, samples, functions, what=what)
            else:
                f, marginals = predict(model, parameters, torch.from_numpy(chosen.x), samples, functions, prepare, what)
        if not torch.isfinite(f).all():
            raise NotFinite(f"predictions on {name!r} are not finite")
        predicted.note(chosen)
        predicted.sets[name] = predictions_of(model, split, f, marginals, predicted.noise_std, chosen.y)
    return predicted


def predictions_of(
    model: Model, split: Split, f: Tensor, marginals: tuple[Tensor, Tensor] | None, noise_std: float | None, y: Any
) -> stored.Predictions:
    """Return function samples ``[S, N, Q]`` at inputs with labels or targets y, in stored precision. Raises
    :class:`NotFinite`, NotSupported."""
    values = model.likelihood.predicted(f, marginals).float().cpu().numpy()
    if split.task == "classification":
        return stored.ClassificationPredictions(values, y)
    if noise_std is None:
        raise NotSupported(
            f"predictions of a regression hold Gaussian noise, which likelihood {model.likelihood.name!r} has not"
        )
    if not np.isfinite(values).all():
        raise NotFinite("predictions are beyond the range of float32, in which they are stored")
    in_closed_form = () if marginals is None else (m.cpu().numpy() for m in marginals)
    values, *moments = (each[..., 0] if split.n_outputs == 1 else each for each in (values, *in_closed_form))
    return stored.RegressionPredictions(values, noise_std, y, split.y_mean, split.y_std, *moments)


@torch.no_grad()
def predict(
    model: Model,
    parameters: Parameters,
    x: Tensor,
    samples: int,
    streams: Streams,
    prepare: Callable[[Tensor], Tensor] = lambda x: x,
    what: str = "points",
) -> tuple[Tensor, tuple | None]:
    """Return function samples ``[S, N, Q]`` at ``x [N, ...]`` of one replica, and closed-form marginals ``[N, Q]``
    where useful.

    ``prepare`` converts pieces of x to inputs of the network; ``what``: name of x in progress messages.
    """
    functions = model.functions(parameters, samples, streams)
    device = next(iter(parameters.values())).device
    rows = points_at_once(functions, model.network, samples, device) if model.family.pointwise else len(x)
    pieces = x.split(rows)
    reported = counted(f"predictions at {what}: piece", pieces, list(map(len, pieces)))
    values = [functions(prepare(piece).unsqueeze(0))[0] for piece in reported]
    marginals = model.marginals(parameters, prepare(x).unsqueeze(0)) if model.likelihood.has_closed_form else None
    return torch.cat(values, dim=1), None if marginals is None else tuple(m[0].double() for m in marginals)


def attack(
    model: Model,
    parameters: Parameters,
    training_data: TrainingData,
    clean: EvaluationSet,
    samples: int,
    streams: Streams,
) -> Tensor:
    """Return the images of an evaluation set after an attack on the functions that ``predict`` draws from the same
    streams.

    In network units ``[N, C, H, W]``, as is ``epsilon``; clipped to the range from black to white.
    """
    functions = model.functions(parameters, samples, streams)
    x, y = (torch.from_numpy(array).to(training_data.x.device) for array in (clean.x, clean.y))
    low, high = (training_data.scale(torch.full_like(x[0, :, :1, :1], end)) for end in (0, 255))
    chunk = max(1, rows_at_once(model.network, samples, x.device) // ATTACK_SHARE)
    return fgsm(functions, training_data.scale(x)[None], y[None], clean.epsilon, low, high, chunk=chunk)[0]


def set_info(chosen: EvaluationSet) -> SetInfo:
    """Return the facts on an evaluation set that metrics need; an attack counts as a shift."""
    return SetInfo(chosen.name, "shift" if chosen.kind == "attack" else chosen.kind, chosen.condition)
