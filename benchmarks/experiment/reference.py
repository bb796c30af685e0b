"""Distances between a run's functions and a reference's, point by point at one of its evaluation sets.

References are other trainings (such as the exact process in a figure), and the exact posterior of the run's own prior
and noise. Distances are between noise-free functions in standardised units; for a classifier between class
probabilities, each counting as a point.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from benchmarks.experiment.assembly import inputs_of
from benchmarks.experiment.fitted import FittedRun, Other
from benchmarks.experiment.prediction import NotFinite, Predicted, predict, predictions_of
from benchmarks.metrics import distances
from benchmarks.records.predictions import Predictions, RegressionPredictions
from benchmarks.shapes import MetricRow
from fvi_core.data import TrainingSet
from fvi_core.families.base import NotSupported
from fvi_core.gaussian_process import conditioned
from fvi_core.held import Held

EXACT = "exact_gp"
"""Label of the exact posterior under a run's own prior and noise."""


def reference_rows(own: FittedRun, predicted: Predicted, other: Other) -> list[MetricRow]:
    """Return metric rows of ``evaluation["reference"]`` for a run's predictions at the set that it names.

    ``other`` returns another training's result; rows are averaged over the trainings of a label. Raises
    :class:`NotFinite`, NotSupported.
    """
    asked, split = own.config["evaluation"]["reference"], own.split
    found: list[MetricRow] = []

    def add(label: str, references: list[Predictions]) -> None:
        each = [distances.between(predicted.sets[asked["set"]], reference) for reference in references]
        where = ";".join(filter(None, (f"reference={label}", chosen.condition)))
        for metric in each[0]:
            value = float(np.mean([values[metric] for values in each]))
            row: MetricRow = {"dataset": split.name, "condition": where, "metric": metric, "value": value, "n": n}
            found.append(row)

    chosen = split.evaluation(asked["set"])
    n, samples = len(chosen.x), own.config["evaluation"]["samples"]
    if asked["exact"]:
        add(EXACT, [exact(own, chosen.x, samples)])
    for label, trainings in sorted(asked["against"].items()):
        add(label, [_predictions(other(each), chosen.x, samples) for each in trainings])
    return found


def _predictions(fitted: FittedRun, x: np.ndarray, samples: int) -> Predictions:
    model, parameters, streams = fitted.model, fitted.parameters, fitted.streams

    def prepare(piece: Tensor) -> Tensor:  # a reference may have another data type than the run, whose data these are
        return inputs_of(fitted.data, piece).to(streams.dtype)

    f, marginals = predict(model, parameters, torch.from_numpy(x), samples, streams.child("functions"), prepare)
    noise = model.noise_std(parameters)
    return predictions_of(model, fitted.split, f, marginals, None if noise is None else float(noise[0]), None)


def exact(own: FittedRun, x: np.ndarray, samples: int) -> Predictions:
    """Return draws of the exact posterior at single points, under a run's prior and learned noise.

    The prior is the family's if it is a process with its own prior, else the method's as fitted before training. Raises
    :class:`NotFinite`, NotSupported.
    """
    split, noise = own.split, own.model.noise_std(own.parameters)
    if noise is None or split.n_outputs != 1:
        raise NotSupported("an exact posterior needs one output with Gaussian noise")
    everything = torch.cat([own.data.x, inputs_of(own.data, torch.from_numpy(x))[None]], dim=1)
    mean, covariance = prior_at(own, everything)
    y = own.data.y.double()
    mean, variance = conditioned(mean.double(), covariance.double(), noise.double().square(), y)
    if not (torch.isfinite(mean).all() and torch.isfinite(variance).all()):
        raise NotFinite("the exact posterior is not finite: its covariance with the noise is not positive definite")
    centre, std = mean[0].cpu(), variance[0].clamp_min(0).sqrt().cpu()
    draws = centre + std * own.streams.child("exact").normal(samples, len(centre))[0].double().cpu()
    moments = centre.numpy(), std.square().numpy()
    return RegressionPredictions(draws.numpy(), float(noise[0]), None, split.y_mean, split.y_std, *moments)


def prior_at(own: FittedRun, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean ``[1, K]`` and covariance ``[1, K, K]`` of a run's prior at x ``[1, K, ...]``. Raises
    NotSupported.
    """
    model, split, start = own.model, own.split, own.start
    if model.prior is None:
        process = model.family.process(Held.of(own.parameters).family)
        return x.new_zeros(x.shape[:2]), process.prior_covariance(x, x)
    if model.family.independent()[1] > 1:
        raise NotSupported("an exact posterior needs one prior, and members of an ensemble have their own")
    initial = model.family.initial_network(model.network, model.family.init(model.network, start.child("init")))
    train = TrainingSet(own.data.x, own.data.y, split.n_outputs, split.task == "classification")
    fitted = model.prior.init(model.network, initial, train, start.child("prior-fit"))
    mean, covariance = model.prior.moments(model.network, fitted, x, "full")
    return mean[:, 0], covariance[:, 0]
