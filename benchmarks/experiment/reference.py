"""Metric rows of a run beyond its evaluation sets: distances from other functions, and log-likelihoods of data.

Distances are between a run's functions and a reference's, point by point at one of its evaluation sets. References are
other trainings (such as the exact process in a figure), and the exact posterior of the run's own prior and noise.
Functions are noise-free and in standardised units; for a classifier they are class probabilities, each counting as a
point. Log-likelihoods are those of a set under the run's own prior process.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from benchmarks.experiment.assembly import FittedRun, Other, inputs_of
from benchmarks.experiment.prediction import NotFinite, Predicted, predict, predictions_of
from benchmarks.metrics import distances
from benchmarks.metrics.registry import metric_rows
from benchmarks.records.predictions import Predictions, RegressionPredictions
from benchmarks.shapes import MetricRow
from datasets.contract import EvaluationSet
from fvi_core.data import TrainingSet
from fvi_core.families.base import NotSupported
from fvi_core.families.sparse_gp import SparseGP, collapsed
from fvi_core.gaussian_process import conditioned
from fvi_core.held import Held

EXACT = "exact_gp"
"""Label of the exact posterior under a run's own prior and noise."""


def reference_rows(fitted: FittedRun, predicted: Predicted, other: Other) -> list[MetricRow]:
    """Return metric rows of ``evaluation["reference"]`` for a run's predictions at the set that it names.

    ``other`` returns another training's result; rows are averaged over the trainings of a label. Raises
    :class:`NotFinite`, NotSupported.
    """
    settings, split = fitted.config["evaluation"]["reference"], fitted.split
    chosen, samples = split.evaluation(settings["set"]), fitted.config["evaluation"]["samples"]
    rows: list[MetricRow] = []

    def add(label: str, references: list[Predictions]) -> None:
        each = [distances.between(predicted.sets[settings["set"]], reference) for reference in references]
        means = {metric: float(np.mean([values[metric] for values in each])) for metric in each[0]}
        where = ";".join(filter(None, (f"reference={label}", chosen.condition)))
        rows.extend(metric_rows(split.name, where, means, len(chosen.x)))

    if settings["exact"]:
        add(EXACT, [exact(fitted, chosen.x, samples)])
    for label, trainings in sorted(settings["against"].items()):
        add(label, [_predictions(other(each), chosen.x, samples) for each in trainings])
    return rows


def _predictions(fitted: FittedRun, x: np.ndarray, samples: int) -> Predictions:
    model, parameters, streams = fitted.model, fitted.parameters, fitted.streams

    def prepare(piece: Tensor) -> Tensor:  # a reference may have another data type than the run, whose data these are
        return inputs_of(fitted.data, piece).to(streams.dtype)

    f, marginals = predict(model, parameters, torch.from_numpy(x), samples, streams.child("functions"), prepare)
    noise = model.noise_std(parameters)
    return predictions_of(model, fitted.split, f, marginals, None if noise is None else float(noise[0]), None)


def exact(fitted: FittedRun, x: np.ndarray, samples: int) -> Predictions:
    """Return draws of the exact posterior at single points, under a run's prior and learned noise.

    The prior is the family's if it is a process with its own prior, else the method's as fitted before training. Raises
    :class:`NotFinite`, NotSupported.
    """
    split, noise = fitted.split, fitted.model.noise_std(fitted.parameters)
    if noise is None or split.n_outputs != 1:
        raise NotSupported("an exact posterior needs one output with Gaussian noise")
    everything = torch.cat([fitted.data.x, inputs_of(fitted.data, torch.from_numpy(x))[None]], dim=1)
    mean, covariance = prior_at(fitted, everything)
    y = fitted.data.y.double()
    mean, variance = conditioned(mean.double(), covariance.double(), noise.double().square(), y)
    if not (torch.isfinite(mean).all() and torch.isfinite(variance).all()):
        raise NotFinite("the exact posterior is not finite: its covariance with the noise is not positive definite")
    centre, std = mean[0].cpu(), variance[0].clamp_min(0).sqrt().cpu()
    draws = centre + std * fitted.streams.child("exact").normal(samples, len(centre))[0].double().cpu()
    moments = centre.numpy(), std.square().numpy()
    return RegressionPredictions(draws.numpy(), float(noise[0]), None, split.y_mean, split.y_std, *moments)


def prior_at(fitted: FittedRun, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean ``[1, K]`` and covariance ``[1, K, K]`` of a run's prior at x ``[1, K, ...]``. Raises
    NotSupported.
    """
    model, split, start = fitted.model, fitted.split, fitted.start
    if model.prior is None:
        process = model.family.process(Held.of(fitted.parameters).family)
        return x.new_zeros(x.shape[:2]), process.prior_covariance(x, x)
    if model.family.independent()[1] > 1:
        raise NotSupported("an exact posterior needs one prior, and members of an ensemble have their own")
    initial = model.family.initial_network(model.network, model.family.init(model.network, start.child("init")))
    train = TrainingSet(fitted.data.x, fitted.data.y, split.n_outputs, split.task == "classification")
    fitted_prior = model.prior.init(model.network, initial, train, start.child("prior-fit"))
    mean, covariance = model.prior.moments(model.network, fitted_prior, x, "full")
    return mean[:, 0], covariance[:, 0]


def evidence_rows(fitted: FittedRun, predicted: Predicted, other: Other) -> list[MetricRow]:
    """Return the metric row of ``evaluation["evidence"]``, the name of a set: log N(y; m, K + sigma^2 I) / N of its N
    targets, in nats, with mean m and covariance K of the run's prior at its inputs (cinquin2024 App. C.3, taken
    literally).

    Hyper-parameters and noise are the trained ones; the process is not conditioned on the training data. Raises
    :class:`NotFinite`, NotSupported.
    """
    name = fitted.config["evaluation"]["evidence"]
    chosen, x, y, variance = _set_and_noise(fitted, name)
    mean, covariance = (each[0].double().cpu() for each in prior_at(fitted, x))
    value = _joint(name, mean, covariance, variance, y) / len(y)
    return metric_rows(fitted.split.name, chosen.condition, {"log_marginal_likelihood": value}, len(y))


def bound_rows(fitted: FittedRun, predicted: Predicted, other: Other) -> list[MetricRow]:
    """Return the metric row of ``evaluation["bound"]``, the name of a set: the collapsed bound on the log marginal
    likelihood of its N targets (Titsias 2009), divided by N, in nats.

    ``log N(y; 0, Q + sigma^2 I) - tr(K - Q) / (2 sigma^2)`` with ``Q = K_xz (K_zz + jitter I)^-1 K_zx``: trained
    kernel, noise and inducing points z of a sparse process, without its values at z. Raises :class:`NotFinite`,
    NotSupported.
    """
    name, family = fitted.config["evaluation"]["bound"], fitted.model.family
    if not isinstance(family, SparseGP):
        raise NotSupported(f"bound of {name!r}: wanted family 'sparse_gp', found {family.name!r}")
    chosen, x, y, variance = _set_and_noise(fitted, name)
    points = family.inducing_points(Held.of(fitted.parameters).family)
    noise, targets = (torch.as_tensor(each, dtype=torch.float64, device=x.device)[None] for each in (variance, y))
    value = collapsed(points, noise, x, targets)[0].item()
    if not math.isfinite(value):
        raise NotFinite(f"bound of {name!r}: the covariance of the inducing points is not positive definite")
    return metric_rows(fitted.split.name, chosen.condition, {"collapsed_bound": value / len(y)}, len(y))


def _set_and_noise(fitted: FittedRun, name: str) -> tuple[EvaluationSet, Tensor, Tensor, float]:
    """Return the set, its inputs ``[1, N, ...]`` and targets ``[N]``, and the variance of the noise. Raises
    NotSupported.
    """
    chosen, noise = fitted.split.evaluation(name), fitted.model.noise_std(fitted.parameters)
    if noise is None or fitted.split.n_outputs != 1 or chosen.y is None:
        raise NotSupported(f"log marginal likelihood of {name!r}: wanted one output with targets and Gaussian noise")
    x = inputs_of(fitted.data, torch.from_numpy(chosen.x))[None]
    return chosen, x, torch.as_tensor(chosen.y).double(), noise[0].double().square().item()


def _joint(name: str, mean: Tensor, covariance: Tensor, variance: float, y: Tensor) -> float:
    """Return ``log N(y; mean, covariance + variance I)``. Raises :class:`NotFinite`."""
    covariance = covariance + variance * torch.eye(len(mean), dtype=torch.float64)
    try:
        return MultivariateNormal(mean, covariance).log_prob(y).item()
    except ValueError as error:  # torch raises it for a matrix without a Cholesky factor
        raise NotFinite(f"log marginal likelihood of {name!r}: the covariance is not positive definite") from error
