"""How far a run's functions are from those of a reference, point by point at one of its evaluation sets.

References are other trainings (the exact process that a figure shows beside a network, say), and the exact posterior of
the run's own prior and noise. Distances are of the function itself, without noise, in standardised units; of a
classifier of the probabilities of its classes, each of which counts as a point.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from benchmarks.experiment.assembly import inputs_of, run_streams
from benchmarks.experiment.posterior import Fitted
from benchmarks.experiment.prediction import NotFinite, predict, predictions_of
from benchmarks.metrics import distances
from benchmarks.records.predictions import Predictions, RegressionPredictions
from benchmarks.shapes import MetricRow, RunConfig, TrainingConfig
from datasets import Split
from fvi_core.data import TrainingData
from fvi_core.families.base import NotSupported
from fvi_core.fitting import own_of
from fvi_core.gaussian_process import conditioned
from fvi_core.likelihoods import split_parameters
from fvi_core.priors.base import TrainingSet
from fvi_core.random import Streams

EXACT = "exact_gp"
"""The label of the exact posterior of a run's own prior and noise."""


def reference_rows(
    config: RunConfig,
    split: Split,
    predicted: Predictions,
    training_data: TrainingData,
    own: Fitted,
    other: Callable[[TrainingConfig], Fitted],
) -> list[MetricRow]:
    """Metric rows of ``evaluation["reference"]`` for what a run predicts at the set that it names.

    ``other`` gives what was trained of a training; several of one label are averaged over. Raises
    :class:`NotFinite`, NotSupported.
    """
    asked = config["evaluation"]["reference"]
    found: list[MetricRow] = []

    def add(label: str, references: list[Predictions]) -> None:
        each = [distances.between(predicted, reference) for reference in references]
        where = ";".join(filter(None, (f"reference={label}", chosen.condition)))
        for metric in each[0]:
            value = float(np.mean([values[metric] for values in each]))
            row: MetricRow = {"dataset": split.name, "condition": where, "metric": metric, "value": value, "n": n}
            found.append(row)

    chosen = split.evaluation(asked["set"])
    n, samples = len(chosen.x), config["evaluation"]["samples"]
    if asked["exact"]:
        start = run_streams([config], own[2].device, own[2].dtype).child("train")
        add(EXACT, [exact(split, chosen.x, samples, training_data, own, start)])
    for label, trainings in sorted(asked["against"].items()):
        add(label, [_predictions(split, chosen.x, samples, training_data, other(each)) for each in trainings])
    return found


def _predictions(split: Split, x: np.ndarray, samples: int, training_data: TrainingData, fitted: Fitted) -> Predictions:
    model, parameters, streams = fitted

    def prepare(piece: Tensor) -> Tensor:  # the reference may be of another data type than the run
        return inputs_of(training_data, piece).to(streams.dtype)

    f, marginals = predict(model, parameters, torch.from_numpy(x), samples, streams.child("functions"), prepare)
    noise = model.noise_std(parameters)
    return predictions_of(model, split, f, marginals, None if noise is None else float(noise[0]), None)


def exact(
    split: Split, x: np.ndarray, samples: int, training_data: TrainingData, own: Fitted, start: Streams
) -> Predictions:
    """Draws of the exact posterior at single points, under the prior of a run and the noise that it learned.

    The prior is that of the family if this is a process with a prior of its own, else the method's as it was fitted
    before training; ``start`` are the streams that training began with. Raises :class:`NotFinite`, NotSupported.
    """
    model, parameters, streams = own
    noise = model.noise_std(parameters)
    if noise is None or split.n_outputs != 1:
        raise NotSupported("an exact posterior is of one output with Gaussian noise")
    everything = torch.cat([training_data.x, inputs_of(training_data, torch.from_numpy(x))[None]], dim=1)
    mean, covariance = prior_at(split, everything, training_data, own, start)
    y = training_data.y.double()
    mean, variance = conditioned(mean.double(), covariance.double(), noise.double().square(), y)
    if not (torch.isfinite(mean).all() and torch.isfinite(variance).all()):
        raise NotFinite("the exact posterior is not finite: its covariance with the noise is not positive definite")
    centre, std = mean[0].cpu(), variance[0].clamp_min(0).sqrt().cpu()
    draws = centre + std * streams.child("exact").normal(samples, len(centre))[0].double().cpu()
    moments = centre.numpy(), std.square().numpy()
    return RegressionPredictions(draws.numpy(), float(noise[0]), None, split.y_mean, split.y_std, *moments)


def prior_at(
    split: Split, x: Tensor, training_data: TrainingData, own: Fitted, start: Streams
) -> tuple[Tensor, Tensor]:
    """Mean ``[1, K]`` and covariance ``[1, K, K]`` of a run's prior at x ``[1, K, ...]``. Raises NotSupported."""
    model, parameters, _ = own
    if model.prior is None:
        process = model.family.process(split_parameters(own_of(parameters)[0])[0])
        return x.new_zeros(x.shape[:2]), process.prior_covariance(x, x)
    if model.family.independent()[1] > 1:
        raise NotSupported("an exact posterior is of one prior, and members of an ensemble have their own")
    initial = model.family.initial_network(model.network, model.family.init(model.network, start.child("init")))
    train = TrainingSet(training_data.x, training_data.y, split.n_outputs, split.task == "classification")
    fitted = model.prior.init(model.network, initial, train, start.child("prior-fit"))
    mean, covariance = model.prior.moments(model.network, fitted, x, "full")
    return mean[:, 0], covariance[:, 0]
