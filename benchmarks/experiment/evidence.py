"""How likely a run's own prior process makes data, alone and jointly."""

from __future__ import annotations

import torch
from torch.distributions import MultivariateNormal

from benchmarks.experiment.assembly import inputs_of
from benchmarks.experiment.fitted import Fitted, Other
from benchmarks.experiment.prediction import NotFinite, Predicted
from benchmarks.experiment.reference import prior_at
from benchmarks.shapes import MetricRow
from fvi_core.families.base import NotSupported


def evidence_rows(own: Fitted, predicted: Predicted, other: Other) -> list[MetricRow]:
    """The metric row of ``evaluation["evidence"]``, the name of a set: log N(y; m, K + sigma^2 I) / N of its N targets,
    in nats, where m and K are those of the run's prior at its inputs (cinquin2024 App. C.3, taken by the word).

    Hyper-parameters and noise are the trained ones; the process is not conditioned on the training data. Raises
    :class:`NotFinite`, NotSupported.
    """
    name, split = own.config["evaluation"]["evidence"], own.split
    chosen, noise = split.evaluation(name), own.model.noise_std(own.parameters)
    if noise is None or split.n_outputs != 1 or chosen.y is None:
        raise NotSupported(f"log marginal likelihood of {name!r}: wanted one output with targets and Gaussian noise")
    x = inputs_of(own.data, torch.from_numpy(chosen.x))[None]
    mean, covariance = (each[0].double().cpu() for each in prior_at(own, x))
    covariance = covariance + noise[0].double().cpu().square() * torch.eye(len(mean), dtype=torch.float64)
    y = torch.as_tensor(chosen.y).double()
    try:
        value = MultivariateNormal(mean, covariance).log_prob(y).item() / len(y)
    except ValueError as error:  # of torch, for a matrix without a Cholesky factor
        raise NotFinite(f"log marginal likelihood of {name!r}: the covariance is not positive definite") from error
    return [
        {
            "dataset": split.name,
            "condition": chosen.condition,
            "metric": "log_marginal_likelihood",
            "value": value,
            "n": len(y),
        }
    ]
