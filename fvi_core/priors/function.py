"""Priors on function values: independent Gaussians, Gaussian processes, Dirichlets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fvi_core.data import TrainingSet
from fvi_core.families.base import Functions, NotSupported
from fvi_core.gaussian_process import fit_kernel
from fvi_core.kernels import Kernel, among
from fvi_core.linearisation import joint_of_independent
from fvi_core.networks import Network, Parameters
from fvi_core.priors.base import Prior
from fvi_core.products import product
from fvi_core.random import Streams
from fvi_core.registry import KERNELS, PRIORS, PartSpec, checked, later, nested
from fvi_core.triangular import cholesky


@PRIORS.register("gaussian_functions")
@dataclass(frozen=True)
class GaussianFunctions(Prior):
    """``f(x) ~ N(mean, variance)`` independently for every output and context point (rudner2021 alg. 1)."""

    variance: float = checked(10.0, least=0)
    mean: float = 0.0

    def moments(self, network: Network, parameters: Parameters, x: Tensor, covariance: str) -> tuple[Tensor, Tensor]:
        values = x.shape[1] * (network.n_outputs if covariance == "joint" else 1)
        mean = x.new_full((x.shape[0], 1, values), self.mean)
        if covariance == "diagonal":
            return mean, x.new_full(mean.shape, self.variance)
        return mean, self.variance * torch.eye(values, dtype=x.dtype, device=x.device).expand(x.shape[0], 1, -1, -1)


@PRIORS.register("gaussian_process")
@dataclass(frozen=True)
class GaussianProcess(Prior):
    """A zero-mean Gaussian process on every output, with one kernel (cinquin2024 sec. 3.1).

    Kernel hyper-parameters maximise the marginal likelihood of random batches of the training set before training
    (``fit_steps`` Adam steps on batches of ``fit_batch``), or are ``parameters``, the logarithms of the
    hyper-parameters, a list where there is one for each feature. Classification: the labels become regression targets
    of fixed noise, centred (Milios et al. 2018, ``alpha_eps``). ``fit_transform``, ``fit_start``: what Adam moves, and
    where it starts (:func:`~fvi_core.gaussian_process.fit_kernel`).
    """

    kernel: PartSpec = nested(KERNELS, {"name": "rbf", "ard": False})
    fit_steps: int = checked(500, least=0)
    fit_batch: int = checked(256, least=1)
    fit_lr: float = checked(0.05, above=0)
    alpha_eps: float = checked(0.01, above=0)
    fit_transform: str = later("log", among=("log", "softplus"))
    fit_start: str = later("median", among=("median", "one"))
    parameters: dict[str, float | list[float]] | None = None

    def init(self, network: Network, initial: Parameters, train: TrainingSet, streams: Streams) -> dict[str, Tensor]:
        kernel = self._kernel(network, train.x)
        if self.parameters is not None:
            fitted = kernel.init(train.x.shape[0], train.x[0, 0].numel())
            unknown = set(self.parameters) - set(fitted)
            if unknown:
                raise ValueError(
                    f"prior 'gaussian_process': kernel {self.kernel['name']!r} has {sorted(fitted)}, found "
                    f"{sorted(unknown)}"
                )
            for name, values in self.parameters.items():
                fitted[name].copy_(fitted[name].new_tensor(values))
            return {name: values.to(train.x.device) for name, values in fitted.items()}
        y, variances = train.as_regression(self.alpha_eps)
        fitted, _ = fit_kernel(
            kernel,
            train.x,
            y,
            streams,
            steps=self.fit_steps,
            lr=self.fit_lr,
            batch_size=self.fit_batch,
            fixed_noise=variances,
            scale=train.scale,
            transform=self.fit_transform,
            start=self.fit_start,
        )
        return fitted

    def moments(self, network: Network, parameters: Parameters, x: Tensor, covariance: str) -> tuple[Tensor, Tensor]:
        kernel = self._kernel(network, x)
        cov: Any = kernel.diagonal(parameters, x) if covariance == "diagonal" else among(kernel, parameters, x)
        cov = cov.unsqueeze(1)
        if covariance == "joint":
            cov = cov if kernel.vector else joint_of_independent(cov.expand(-1, network.n_outputs, -1, -1))
        elif kernel.vector:  # one process per output
            each = range(network.n_outputs)
            cov = torch.cat([cov[(..., *[slice(i, None, len(each))] * (cov.dim() - 2))] for i in each], dim=1)
        return cov.new_zeros(*cov.shape[:2], cov.shape[-1]), cov

    def _kernel(self, network: Network, x: Tensor) -> Kernel:
        """Return the kernel. Raises NotSupported for one of vectors that are not the network's outputs."""
        kernel = KERNELS.build(self.kernel)
        if kernel.vector and network.n_outputs != x[0, 0].numel():
            found = f"{network.n_outputs} outputs and {x[0, 0].numel()} features"
            raise NotSupported(
                f"prior {self.name!r}: kernel {self.kernel['name']!r} gives vector fields (gradients), found {found}"
            )
        return kernel

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        def draw(x: Tensor) -> Tensor:
            if KERNELS.build(self.kernel).vector:
                _, covariance = self.moments(network, parameters, x, "joint")
                epsilon = streams.normal(samples, covariance.shape[-1]).double()
                values = product(epsilon, cholesky(covariance.squeeze(1), 1e-8, "the prior's covariance").mT)
                return values.unflatten(-1, (x.shape[1], network.n_outputs)).to(x.dtype)
            _, covariance = self.moments(network, parameters, x, "full")
            epsilon = streams.normal(x.shape[1], samples * network.n_outputs)
            values = cholesky(covariance.squeeze(1), 1e-8, "the prior's covariance") @ epsilon.double()
            return values.unflatten(-1, (samples, network.n_outputs)).movedim(2, 1).to(x.dtype)

        return draw


@PRIORS.register("dirichlet")
@dataclass(frozen=True)
class Dirichlet(Prior):
    """``softmax f(x) ~ Dir(beta)`` at every x: one number for all classes, or one for each (dirichlet2022 sec. 3.3,
    fig. 3).
    """

    concentrations: float | tuple[float, ...] = checked(1.0, above=0)

    def init(self, network: Network, initial: Parameters, train: TrainingSet, streams: Streams) -> Parameters:
        if not train.classification:
            raise NotSupported("prior 'dirichlet' is over class probabilities; the data set has no classes")
        return {}

    def concentration(self, n_classes: int, device: torch.device | str = "cpu") -> Tensor:
        if isinstance(self.concentrations, int | float):
            return torch.full((n_classes,), float(self.concentrations), device=device)
        if len(self.concentrations) != n_classes:
            raise ValueError(
                f"prior 'dirichlet': {len(self.concentrations)} concentrations given for {n_classes} classes"
            )
        return torch.tensor(self.concentrations, dtype=torch.get_default_dtype(), device=device)
