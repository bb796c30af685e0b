"""Gaussian measures with a network as mean and the covariance of a sparse process (Wild et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.data import TrainingSet, rows
from fvi_core.families.base import NotSupported
from fvi_core.families.sparse_gp import FACTOR, INPUTS, InducedProcess, Inducing, InducingPoints
from fvi_core.gaussian_process import fit_kernel
from fvi_core.held import CONSTANT
from fvi_core.kernels import Params
from fvi_core.networks import Network, Parameters
from fvi_core.products import product
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, KERNELS, checked, later
from fvi_core.triangular import cholesky, solve_lower


@FAMILIES.register("gwi")
@dataclass(frozen=True)
class GWI(Inducing):
    """``f_k ~ GP(network_k, r_k)``, ``r(x, x') = k(x, x') - k_xZ K_ZZ^-1 k_Zx' + k_xZ L L^T k_Zx'`` (Wild et al. 2022
    sec. 4).

    Training moves the network and a lower triangular L of each output. Z, random training inputs, and the kernel are
    fixed before training: hyper-parameters maximise the marginal likelihood of the targets at Z by ``fit_steps`` of
    Adam at ``fit_lr`` (for labels, the targets of Milios et al. 2018 with ``alpha_eps``; ``fit_transform`` and
    ``fit_start`` as of :func:`~fvi_core.gaussian_process.fit_kernel`). At the start r is the posterior covariance of
    the optimal sparse process given as many further training inputs Z': ``L L^T = (K_ZZ + k_ZZ' N^-1 k_Z'Z)^-1`` with
    the fitted noise variances N.
    """

    label_likelihood = "robust_max"  # in closed form: by draws of the wide initial functions little is learned

    fit_steps: int = checked(100, least=0)
    fit_lr: float = checked(0.1, above=0)
    alpha_eps: float = checked(0.01, above=0)
    fit_transform: str = later("log", among=("log", "softplus"))
    fit_start: str = later("median", among=("median", "one"))

    def init(self, network: Network, streams: Streams) -> Parameters:
        features = network.n_features
        hyper = KERNELS.build(self.kernel).init(len(streams), features)
        z = streams.normal(self.points, features)  # placeholder until training inputs are known
        factor = torch.eye(self.points, dtype=z.dtype, device=z.device)
        return (
            network.init(streams)
            | network.init_buffers(streams)
            | _constants({name: value.to(streams.device) for name, value in hyper.items()} | {INPUTS: z})
            | {FACTOR: factor.expand(len(z), network.n_outputs, -1, -1).clone()}
        )

    def prepare(self, network: Network, parameters: Parameters, train: TrainingSet, streams: Streams) -> Parameters:
        kernel, (y, variances) = KERNELS.build(self.kernel), train.as_regression(self.alpha_eps)
        index, z = self.random_inputs(train, streams)
        other, further = self.random_inputs(train, streams)
        hyper, noise = fit_kernel(
            kernel,
            z,
            rows(y, index),
            streams,
            steps=self.fit_steps,
            lr=self.fit_lr,
            fixed_noise=None if variances is None else rows(variances, index),
            transform=self.fit_transform,
            start=self.fit_start,
        )
        noise = noise[:, None, None] if variances is None else rows(variances, other).mT  # [R, 1 or Q, 1 or M]
        cross = kernel(hyper, z, further).unsqueeze(1)
        information = torch.matmul(cross / noise.unsqueeze(-2), cross.mT)
        identity = torch.eye(z.shape[1], dtype=information.dtype, device=information.device)
        gram = (kernel(hyper, z, z) + self.jitter * identity).unsqueeze(1)
        factor = inverse_factor(gram + information)
        if factor.isnan().any():  # targets almost without noise: rounding of ``information`` exceeds the jitter
            precise = inverse_factor_of_sum(cholesky(gram), cross / noise.sqrt().unsqueeze(-2))
            factor = torch.where(factor.isnan(), precise, factor)
        dtype = parameters[FACTOR].dtype
        start = {FACTOR: factor.expand(-1, network.n_outputs, -1, -1).to(dtype)}
        return parameters | _constants(hyper | {INPUTS: z.to(dtype)}) | start

    def process(self, parameters: Parameters) -> InducedProcess:
        constants = {k.removeprefix(CONSTANT): v for k, v in parameters.items() if k.startswith(CONSTANT)}
        hyper = {k: v for k, v in constants.items() if k != INPUTS}
        points = InducingPoints(KERNELS.build(self.kernel), hyper, constants[INPUTS], self.jitter)
        factor = parameters[FACTOR].double().tril()
        root = points.factor.mT.unsqueeze(1).expand_as(factor)  # whitened root; k_xZ is a^T times it
        whitened = product(root.flatten(0, 1), factor.flatten(0, 1)).unflatten(0, factor.shape[:2])
        return InducedProcess(points, whitened.new_zeros(whitened.shape[:-1]), whitened)

    def inducing_values(self, parameters: Parameters) -> tuple[Tensor, Tensor]:
        raise NotSupported(
            f"the process of family {self.name!r} is about a network, so no divergence of values at inducing points is "
            "the whole process's; use 'gaussian_wasserstein'"
        )

    def mean_function(self, network: Network, parameters: Parameters, x: Tensor) -> Tensor:
        weights = {
            name: parameters[name].unsqueeze(1) for name in (*network.shapes, *network.buffers) if name in parameters
        }
        return network(weights, x).squeeze(1)


def inverse_factor(matrix: Tensor) -> Tensor:
    """Return lower L with ``L L^T = matrix^-1``, ``[..., M, M]``; all NaN if the matrix is not positive definite."""
    upper = cholesky(matrix.flip(-2, -1)).flip(-2, -1)  # matrix = upper upper^T
    identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device).expand_as(matrix)
    return solve_lower(upper.mT, identity)


def inverse_factor_of_sum(root: Tensor, rows: Tensor) -> Tensor:
    """Return :func:`inverse_factor` of ``root root^T + rows rows^T`` for a lower root ``[R, 1, M, M]`` and rows ``[R, 1
    or Q, M, N]``, without forming that sum: where rows are large it would round root away."""
    white = solve_lower(root, rows)
    whole = root @ cholesky(white @ white.mT, 1.0)
    identity = torch.eye(root.shape[-1], dtype=root.dtype, device=root.device).expand_as(whole)
    return torch.linalg.qr(solve_lower(whole, identity)).R.mT


def _constants(values: Params) -> Parameters:
    return {CONSTANT + name: value for name, value in values.items()}
