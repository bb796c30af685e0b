"""Log-likelihood of data under a run's own prior process."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from benchmarks.experiment.assembly import inputs_of
from benchmarks.experiment.fitted import FittedRun, Other
from benchmarks.experiment.prediction import NotFinite, Predicted
from benchmarks.experiment.reference import prior_at
from benchmarks.shapes import MetricRow
from datasets.contract import EvaluationSet
from fvi_core.families.base import NotSupported
from fvi_core.families.sparse_gp import SparseGP, collapsed
from fvi_core.held import Held


def evidence_rows(own: FittedRun, predicted: Predicted, other: Other) -> list[MetricRow]:
    """Return the metric row of ``evaluation["evidence"]``, the name of a set: log N(y; m, K + sigma^2 I) / N of its N
    targets, in nats, with mean m and covariance K of the run's prior at its inputs (cinquin2024 App. C.3, taken
    literally).

    Hyper-parameters and noise are the trained ones; the process is not conditioned on the training data. Raises
    :class:`NotFinite`, NotSupported.
    """
    name = own.config["evaluation"]["evidence"]
    chosen, x, y, variance = _asked(own, name)
    mean, covariance = (each[0].double().cpu() for each in prior_at(own, x))
    return [_row(own, chosen, "log_marginal_likelihood", _joint(name, mean, covariance, variance, y) / len(y), len(y))]


def bound_rows(own: FittedRun, predicted: Predicted, other: Other) -> list[MetricRow]:
    """Return the metric row of ``evaluation["bound"]``, the name of a set: the collapsed bound on the log marginal
    likelihood of its N targets (Titsias 2009), divided by N, in nats.

    ``log N(y; 0, Q + sigma^2 I) - tr(K - Q) / (2 sigma^2)`` with ``Q = K_xz (K_zz + jitter I)^-1 K_zx``: trained
    kernel, noise and inducing points z of a sparse process, without its values at z. Raises :class:`NotFinite`,
    NotSupported.
    """
    name, family = own.config["evaluation"]["bound"], own.model.family
    if not isinstance(family, SparseGP):
        raise NotSupported(f"bound of {name!r}: wanted family 'sparse_gp', found {family.name!r}")
    chosen, x, y, variance = _asked(own, name)
    points = family.inducing_points(Held.of(own.parameters).family)
    noise, targets = (torch.as_tensor(each, dtype=torch.float64, device=x.device)[None] for each in (variance, y))
    value = collapsed(points, noise, x, targets)[0].item()
    if not math.isfinite(value):
        raise NotFinite(f"bound of {name!r}: the covariance of the inducing points is not positive definite")
    return [_row(own, chosen, "collapsed_bound", value / len(y), len(y))]


def _asked(own: FittedRun, name: str) -> tuple[EvaluationSet, Tensor, Tensor, float]:
    """Return the set, its inputs ``[1, N, ...]`` and targets ``[N]``, and the variance of the noise. Raises
    NotSupported.
    """
    chosen, noise = own.split.evaluation(name), own.model.noise_std(own.parameters)
    if noise is None or own.split.n_outputs != 1 or chosen.y is None:
        raise NotSupported(f"log marginal likelihood of {name!r}: wanted one output with targets and Gaussian noise")
    x = inputs_of(own.data, torch.from_numpy(chosen.x))[None]
    return chosen, x, torch.as_tensor(chosen.y).double(), noise[0].double().square().item()


def _joint(name: str, mean: Tensor, covariance: Tensor, variance: float, y: Tensor) -> float:
    """Return ``log N(y; mean, covariance + variance I)``. Raises :class:`NotFinite`."""
    covariance = covariance + variance * torch.eye(len(mean), dtype=torch.float64)
    try:
        return MultivariateNormal(mean, covariance).log_prob(y).item()
    except ValueError as error:  # torch raises it for a matrix without a Cholesky factor
        raise NotFinite(f"log marginal likelihood of {name!r}: the covariance is not positive definite") from error


def _row(own: FittedRun, chosen: EvaluationSet, metric: str, value: float, n: int) -> MetricRow:
    return {"dataset": own.split.name, "condition": chosen.condition, "metric": metric, "value": value, "n": n}
