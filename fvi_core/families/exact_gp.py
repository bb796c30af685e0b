"""Exact Gaussian process regression: the reference that needs no approximation."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.families.base import Family, FitData, Functions, NotSupported
from fvi_core.gaussian_process import log_evidence, posterior
from fvi_core.held import Held
from fvi_core.kernels import Kernel
from fvi_core.likelihoods import Gaussian, Likelihood
from fvi_core.networks import Network, Parameters
from fvi_core.products import product
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, KERNELS, PartSpec, nested
from fvi_core.triangular import cholesky


@FAMILIES.register("exact_gp")
@dataclass(frozen=True)
class ExactGP(Family):
    """``f ~ GP(0, k)`` conditioned on the training set; its objective is the log marginal likelihood (Rasmussen &
    Williams eq. 2.30).

    Trained parameters are the logarithms of the kernel's hyper-parameters; the noise belongs to the likelihood. Numbers
    of a vector target are independent processes with one kernel, or one process with a kernel of vectors.
    """

    pointwise = False

    kernel: PartSpec = nested(KERNELS, {"name": "rbf", "ard": False})

    def init(self, network: Network, streams: Streams) -> Parameters:
        hyper = KERNELS.build(self.kernel).init(len(streams), network.n_features)
        return {name: value.to(streams.device) for name, value in hyper.items()}

    def log_evidence(self, held: Held, likelihood: Likelihood, x: Tensor, y: Tensor) -> Tensor:
        variance, kernel = noise_variance(self, likelihood, held.likelihood), KERNELS.build(self.kernel)
        if kernel.vector and y.shape[2:] != x.shape[2:]:
            found = f"targets {list(y.shape[2:])} and inputs {list(x.shape[2:])}"
            raise NotSupported(
                f"family {self.name!r}: kernel {self.kernel['name']!r} gives vector fields (gradients), found {found}"
            )
        return log_evidence(kernel, held.family, variance, x, y)

    def condition(self, parameters: Parameters, fitting: FitData) -> Parameters:
        variance = noise_variance(self, fitting.likelihood, Held.of(parameters).likelihood).detach()
        return parameters | {"train/x": fitting.x, "train/y": fitting.y, "train/noise": variance}

    def _posterior(self, parameters: Parameters, x: Tensor, full: bool) -> tuple[Tensor, Tensor]:
        hyper, data = _split(parameters)
        return posterior(KERNELS.build(self.kernel), hyper, *data, x, full)

    def process(self, parameters: Parameters) -> ExactProcess:
        kernel = KERNELS.build(self.kernel)
        if kernel.vector:
            raise NotSupported(
                f"family {self.name!r}: kernel {self.kernel['name']!r} gives gradients, no scalar process"
            )
        return ExactProcess(kernel, *_split(parameters))

    def marginals(self, network: Network, parameters: Parameters, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, variance = self._posterior(parameters, x, full=False)
        if mean.dim() == 2:
            mean, variance = mean.unsqueeze(-1), variance.unsqueeze(-1)
        return mean, variance.clamp_min(0)

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        def evaluate(x: Tensor) -> Tensor:
            mean, covariance = self._posterior(parameters, x, full=True)
            if covariance.dim() == 3:  # one process of numbers or vectors; else an independent one for each output
                covariance = covariance.unsqueeze(1)
            epsilon = streams.normal(covariance.shape[1], samples, covariance.shape[-1]).to(mean.dtype)
            drawn = product(epsilon.flatten(0, 1), cholesky(covariance, jitter=1e-6).mT.flatten(0, 1))
            drawn = drawn.unflatten(0, epsilon.shape[:2]).movedim(1, -1).unflatten(2, (x.shape[1], -1)).flatten(3)
            return mean.reshape(len(mean), 1, x.shape[1], -1) + drawn

        return evaluate


@dataclass(frozen=True)
class ExactProcess:
    """Process conditioned on training data, and its prior; see :class:`Process`."""

    kernel: Kernel
    hyper: Parameters
    data: tuple[Tensor, Tensor, Tensor]

    def covariance(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Posterior covariance ``[R, Q, N, M]`` of each output at x1 ``[R, N, ...]`` and x2 ``[R, M, ...]``."""
        _, covariance = posterior(self.kernel, self.hyper, *self.data, torch.cat([x1, x2], dim=1), full=True)
        covariance = covariance if covariance.dim() == 4 else covariance.unsqueeze(1)
        return covariance[..., : x1.shape[1], x1.shape[1] :]

    def prior_covariance(self, x1: Tensor, x2: Tensor) -> Tensor:
        """``[R, N, M]``."""
        return self.kernel(self.hyper, x1, x2)

    def prior_variance(self, x: Tensor) -> Tensor:
        """``[R, N]``."""
        return self.kernel.diagonal(self.hyper, x)


def _split(parameters: Parameters) -> tuple[Parameters, tuple[Tensor, Tensor, Tensor]]:
    """Split parameters into the kernel's hyper-parameters and noise, inputs and targets of the training data.

    Raises NotSupported before the process is conditioned on them.
    """
    if "train/noise" not in parameters:
        raise unconditioned(ExactGP.name)
    hyper = {name: value for name, value in parameters.items() if "train/" not in name}
    return hyper, (parameters["train/noise"], parameters["train/x"], parameters["train/y"])


def noise_variance(family: Family, likelihood: Likelihood, likelihood_parameters: Parameters) -> Tensor:
    """Variance of Gaussian noise, ``[R]``. Raises NotSupported for a likelihood of another density."""
    std = likelihood.noise_std(likelihood_parameters)
    if std is None or type(likelihood).log_prob is not Gaussian.log_prob:
        raise NotSupported(f"family {family.name!r} needs Gaussian noise, which likelihood {likelihood.name!r} has not")
    return std.square()


def unconditioned(family: str) -> NotSupported:
    """Return the error of a process that would predict before it is conditioned on the training data."""
    return NotSupported(
        f"family {family!r} has no predictions before the end of training, as early stopping by validation likelihood "
        "(without \"objective\": true), likelihood 'residual_gaussian' and joint ensembles need them: leave these out"
    )
