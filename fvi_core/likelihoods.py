"""Likelihoods p(y | f): the data term of the objective, and predictions from a network's outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fvi_core.registry import LIKELIHOODS, checked, later
from fvi_core.scales import inverse_softplus, inverse_softplus_of

Params = dict[str, Tensor]
RHO = "rho"
NEAR_ONE = 1e-6
"""Least distance of a score from 1, so that the logarithm of 1 minus the score is finite."""
SMALL_POWER = 0.1
"""Powers of a likelihood below it are averaged in a form that keeps their digits."""


class Likelihood:
    """Contract of a likelihood of targets y ``[R, N]`` (or ``[R, N, D]``) given outputs f ``[R, S, N, Q]``.

    A subclass is a dataclass of hyper-parameters with :meth:`log_prob`; all other methods have defaults.
    """

    name: ClassVar[str]
    has_closed_form: ClassVar[bool] = False  # expected_log_prob_gaussian exists
    by_draws: ClassVar[bool] = True  # data_term has a gradient in f
    independent_outputs: ClassVar[bool] = False  # closed forms are wrong for outputs that depend on each other
    standardised: ClassVar[bool] = True  # a regression's targets may be (y - mean) / std; False for counts and the like

    @property
    def learned(self) -> bool:
        """Whether training changes the likelihood's parameters."""
        return False

    def outputs(self, targets: int) -> int:
        """Return the number of network outputs for ``targets`` classes, or numbers in a target."""
        return targets

    def init(self, replicas: int, dtype: torch.dtype = torch.float32) -> Params:
        """Return the likelihood's initial parameters, one for each replica."""
        return {}

    def log_prob(self, params: Params, f: Tensor, y: Tensor) -> Tensor:
        """log p(y | f), ``[R, S, N]``."""
        raise NotImplementedError

    def data_term(self, params: Params, f: Tensor, y: Tensor) -> Tensor:
        """Likelihood term of the objective, ``[R]``: the mean log-likelihood over samples and points."""
        values = self.log_prob(params, f, y)
        if values.shape != f.shape[:3]:  # f - y without an axis of samples in y would compare replicas
            raise ValueError(
                f"likelihood {self.name!r}: log_prob(): expected [R, S, N], here {list(f.shape[:3])}, found "
                f"{list(values.shape)}: f is [R, S, N, Q] and y [R, N], so use y[:, None]"
            )
        return values.mean((1, 2))

    @property
    def is_pointwise(self) -> bool:
        """Whether :meth:`data_term` is the plain mean of :meth:`log_prob`."""
        return type(self).data_term is Likelihood.data_term

    def expected_log_prob_gaussian(self, params: Params, mean: Tensor, var: Tensor, y: Tensor) -> Tensor:
        """E log p(y | f) for f ~ N(mean, var), ``[R, N]``. Raises NotImplementedError without ``has_closed_form``."""
        raise NotImplementedError(
            f"likelihood {self.name!r} has no closed-form expectation under a Gaussian; average log_prob over "
            "function samples"
        )

    def curvature_root(self, params: Params, f: Tensor) -> Tensor:
        """Return an L with ``L L^T = -d^2 log p(y | f) / df^2`` (or its mean over y), ``[R, S, N, Q, C]``.

        Generalised Gauss-Newton matrices use it. Raises NotImplementedError for a likelihood without it.
        """
        raise NotImplementedError(
            f"likelihood {self.name!r} has no root of its second derivative (curvature_root), which generalised "
            "Gauss-Newton matrices are made of; choose 'gaussian' or 'categorical', or add it"
        )

    def log_mean_power_gaussian(self, params: Params, mean: Tensor, var: Tensor, y: Tensor, alpha: float) -> Tensor:
        """``log E[p(y | f)^alpha] / alpha``, f ~ N(mean, var) of independent outputs, ``[R, N]``; as the one above."""
        raise NotImplementedError(
            f"likelihood {self.name!r} has no closed-form power expectation under a Gaussian; average over function "
            "samples"
        )

    def noise_std(self, params: Params) -> Tensor | None:
        """Return the standard deviation ``[R]`` of a target given the function; None for labels.

        Predictions of a regression need it, and its metrics take the noise for Gaussian.
        """
        return None

    @property
    def has_noise(self) -> bool:
        """Whether targets are numbers with noise (a regression) rather than labels."""
        return type(self).noise_std is not Likelihood.noise_std

    def joined(self, params: Params) -> Params:
        """Join parameters ``[R, M]`` of independently trained members to ``[R]``."""
        return {name: value.mean(1) for name, value in params.items()}

    def estimate_noise(self, params: Params, values: Iterator[Tensor], y: Tensor) -> Params:
        """Return the parameters after training; values: outputs ``[R, S, B, Q]`` at the training set y, by batches."""
        return params

    def values(self, f: Tensor) -> Tensor:
        """Turn outputs ``[..., Q]`` into predictions: logits of the classes, or values of the targets ``[..., D]``."""
        return f

    def predicted(self, f: Tensor, marginals: tuple[Tensor, Tensor] | None) -> Tensor:
        """Turn draws f ``[S, N, Q]`` into predictions ``[S or 1, N, D]``; ``marginals``: mean and variance ``[N, Q]``
        of the functions, if known."""
        return self.values(f)

    def scores(self, values: np.ndarray) -> Mapping[str, np.ndarray]:
        """Return the likelihood's own uncertainty scores ``[N]`` by name (high: out of distribution).

        ``values``: predictions ``[S, N, D]``. Own scores precede the scores common to all likelihoods of the kind; the
        first of all is the default.
        """
        return {}


@LIKELIHOODS.register("gaussian")
@dataclass(frozen=True)
class Gaussian(Likelihood):
    """y = f(x) + noise, noise ~ N(0, std^2) with std = min_std + softplus(rho), one noise level per replica.

    Vectors y ``[R, N, D]`` have independent noise of this level in each of their numbers. ``init_std``: initial
    standard deviation; ``min_std``: floor that it never falls below, both in units of the targets in training (standard
    deviations, where these are standardised); ``learned=False`` fixes ``init_std``: neither gradients nor weight decay
    reach the parameter. ``scale`` "exp": ``std = min_std +
    exp(rho)``, which Adam moves faster from above 1 towards 0. Raises ValueError if init_std <= min_std.
    """

    init_std: float = checked(0.5, above=0)
    min_std: float = checked(0.0, least=0)
    learned: bool = True
    scale: str = later("softplus", among=("softplus", "exp"))

    has_closed_form = True

    def __post_init__(self) -> None:
        if self.init_std <= self.min_std:
            raise ValueError(
                f"likelihood 'gaussian': expected init_std > min_std, found {self.init_std} and {self.min_std}"
            )

    def init(self, replicas: int, dtype: torch.dtype = torch.float32) -> Params:
        """The unconstrained noise parameter, ``{"rho": [R]}``."""
        above = self.init_std - self.min_std
        rho = math.log(above) if self.scale == "exp" else inverse_softplus(above)
        return {RHO: torch.full((replicas,), rho, dtype=dtype)}

    def curvature_root(self, params: Params, f: Tensor) -> Tensor:
        """``I / std``."""
        identity = torch.eye(f.shape[-1], dtype=f.dtype, device=f.device)
        return (identity / self.noise_std(params)[:, None, None, None, None]).expand(*f.shape, -1)

    def noise_std(self, params: Params) -> Tensor:
        rho = params[RHO] if self.learned else params[RHO].detach()
        std = rho.exp() if self.scale == "exp" else torch.nn.functional.softplus(rho)
        return self.min_std + std if self.min_std else std

    def log_prob(self, params: Params, f: Tensor, y: Tensor) -> Tensor:
        """log N(y | f, std^2) of functions: f ``[R, S, N, D]``, y ``[R, N]`` or ``[R, N, D]`` -> ``[R, S, N]``."""
        std, y = self.noise_std(params).view(-1, 1, 1), y.unsqueeze(1)
        if y.dim() == 3:
            return self._log_density(std, (y - _single(f)).square())
        return self._log_density(std.unsqueeze(-1), (y - _vector(f, y)).square()).sum(-1)

    def expected_log_prob_gaussian(self, params: Params, mean: Tensor, var: Tensor, y: Tensor) -> Tensor:
        """E log N(y | f, std^2) for f ~ N(mean, var): ``[R, N, D]``, ``[R, N, D]``, y as in training -> ``[R, N]``.

        -1/2 log(2 pi std^2) - ((y - mean)^2 + var) / (2 std^2)  (cinquin2024, eq. B.2).
        """
        std = self.noise_std(params)[:, None]
        if y.dim() == 2:
            return self._log_density(std, (y - _single(mean)).square() + _single(var))
        return self._log_density(std.unsqueeze(-1), (y - _vector(mean, y)).square() + var).sum(-1)

    def log_mean_power_gaussian(self, params: Params, mean: Tensor, var: Tensor, y: Tensor, alpha: float) -> Tensor:
        """``[log N(y; mean, var + std^2 / alpha) + (1 - alpha)/2 log(2 pi std^2) - 1/2 log alpha] / alpha``, ``[R,
        N]``.

        For ``N(y; f, s^2)^a = (2 pi s^2)^((1 - a)/2) a^(-1/2) N(y; f, s^2 / a)``.
        """
        noise = self.noise_std(params)[:, None].square()
        if y.dim() == 2:
            gap, var = y - _single(mean), _single(var)
        else:
            gap, noise = y - _vector(mean, y), noise.unsqueeze(-1)
        if alpha < SMALL_POWER:  # equal to the other form, whose large numbers would cancel
            ratio = alpha * var / noise
            terms = self._log_density(noise.sqrt(), gap.square() / (1 + ratio)) - 0.5 * torch.log1p(ratio) / alpha
        else:
            spread = var + noise / alpha
            log_normal = -0.5 * (2 * math.pi * spread).log() - 0.5 * gap.square() / spread
            terms = (log_normal + (1 - alpha) / 2 * (2 * math.pi * noise).log() - 0.5 * math.log(alpha)) / alpha
        return terms if y.dim() == 2 else terms.sum(-1)

    @staticmethod
    def _log_density(std: Tensor, expected_square: Tensor) -> Tensor:
        return -0.5 * math.log(2 * math.pi) - std.log() - 0.5 * expected_square / std.square()


@LIKELIHOODS.register("residual_gaussian")
@dataclass(frozen=True)
class ResidualGaussian(Gaussian):
    """Gaussian noise for a network trained on root mean square error alone (ensembles of pequignot2020, App. E).

    Training minimises sqrt(mean (y - f)^2) of a batch, or with ``error`` "mean_square" its square; the noise is then
    set to the residuals of the training set.
    """

    learned: bool = False
    error: str = later("root_mean_square", among=("root_mean_square", "mean_square"))

    def data_term(self, params: Params, f: Tensor, y: Tensor) -> Tensor:
        """Return the negative training error, ``[R]``."""
        y = _as_vectors(y)
        squares = (y.unsqueeze(1) - _vector(f, y)).square().mean((1, 2, 3))
        return -(squares.sqrt() if self.error == "root_mean_square" else squares)

    def estimate_noise(self, params: Params, values: Iterator[Tensor], y: Tensor) -> Params:
        """Set the noise to the root mean square residual of the mean function at the training set.

        It is at least ``min_std + 1e-6``.
        """
        y = _as_vectors(y)
        mean = torch.cat([_vector(f, y).mean(1) for f in values], dim=1)
        residual = (y - mean).square().mean((1, 2)).sqrt()
        above = (residual - self.min_std).clamp_min(1e-6)
        rho = above.log() if self.scale == "exp" else inverse_softplus_of(above)
        return {RHO: rho.to(params[RHO])}


@LIKELIHOODS.register("categorical")
@dataclass(frozen=True)
class Categorical(Likelihood):
    """y ~ Cat(softmax f(x)); no parameters.

    ``class_weights`` "batch": training weighs each point of a class k by ``1 / (K p_k)``, p_k the share of the class in
    the batch, so that all classes in the batch count alike (Band et al. 2021).
    """

    class_weights: str = later("none", among=("none", "batch"))

    @property
    def is_pointwise(self) -> bool:
        return self.class_weights == "none"

    def data_term(self, params: Params, f: Tensor, y: Tensor) -> Tensor:
        if self.is_pointwise:
            return super().data_term(params, f, y)
        shares = torch.nn.functional.one_hot(y, f.shape[-1]).to(f.dtype).mean(1)
        weights = 1 / (f.shape[-1] * shares.gather(1, y))
        return (weights.unsqueeze(1) * self.log_prob(params, f, y)).mean((1, 2))

    def log_prob(self, params: Params, f: Tensor, y: Tensor) -> Tensor:
        """log softmax(f)_y: f ``[R, S, N, K]``, y ``[R, N]`` long -> ``[R, S, N]`` (cinquin2024, eq. B.3).

        Normalised in float32 at least, whatever the precision of the network.
        """
        f = f.float() if f.dtype in (torch.float16, torch.bfloat16) else f
        labels = y[:, None, :, None].expand(*f.shape[:-1], 1)
        return f.gather(-1, labels)[..., 0] - f.logsumexp(-1)

    def curvature_root(self, params: Params, f: Tensor) -> Tensor:
        """Columns ``sqrt(p_c) (e_c - p)``, one for each class: their outer products sum to ``diag p - p p^T``.

        Raises NotImplementedError with ``class_weights``, by which a point's curvature depends on its batch.
        """
        if not self.is_pointwise:
            raise NotImplementedError(
                "likelihood 'categorical' with class_weights has no root of its second derivative (curvature_root): "
                "weights depend on the other points of a batch; leave class_weights out"
            )
        p = f.softmax(-1)
        identity = torch.eye(p.shape[-1], dtype=p.dtype, device=p.device)
        return (identity - p.unsqueeze(-1)) * p.sqrt().unsqueeze(-2)


@LIKELIHOODS.register("kernel_scores")
@dataclass(frozen=True)
class KernelScores(Likelihood):
    """Outputs ``f_c = log K_c``, logarithms of scores between 0 and 1, one for each class.

    Training minimises the binary cross-entropy of the scores, ``-mean_c [1(y = c) log K_c + 1(y != c) log(1 - K_c)]``
    (van Amersfoort et al. 2020, eq. 2). Scores do not sum to 1, so predictions hold the normalised ones, ``K_c / sum
    K``. The uncertainty is minus the logarithm of the largest score; logarithms distinguish scores that round to 0.
    """

    def log_prob(self, params: Params, f: Tensor, y: Tensor) -> Tensor:
        return Categorical().log_prob(params, f, y)

    def data_term(self, params: Params, f: Tensor, y: Tensor) -> Tensor:
        own = torch.nn.functional.one_hot(y, f.shape[-1]).bool().unsqueeze(1)
        f = f.float() if f.dtype in (torch.float16, torch.bfloat16) else f
        others = (-torch.expm1(f.clamp_max(-NEAR_ONE))).log()
        return torch.where(own, f, others).mean((1, 2, 3))

    def scores(self, values: np.ndarray) -> Mapping[str, np.ndarray]:
        return {"largest_kernel_score": -values.max(-1).mean(0)}


@LIKELIHOODS.register("robust_max")
@dataclass(frozen=True)
class RobustMax(Likelihood):
    """``p(y | f) = 1 - epsilon`` if f_y is the largest output, else ``epsilon / (K - 1)`` (Hernandez-Lobato et al.
    2011).

    Its expectation under independent Gaussian outputs is an integral over one of them, by ``points`` of Gauss-Hermite
    quadrature (50: errors up to 0.03 where its deviation is 10 times the others', 0.06 at 30 times; more points lower
    them); single functions have no gradient. It predicts one distribution of classes, the mean over functions.
    """

    epsilon: float = checked(0.01, above=0, below=1)
    points: int = checked(50, least=1)

    has_closed_form = True
    by_draws = False
    independent_outputs = True

    def log_prob(self, params: Params, f: Tensor, y: Tensor) -> Tensor:
        return self.values(f).gather(-1, y[:, None, :, None].expand(*f.shape[:-1], 1))[..., 0]

    def expected_log_prob_gaussian(self, params: Params, mean: Tensor, var: Tensor, y: Tensor) -> Tensor:
        """``S log(1 - epsilon) + (1 - S) log(epsilon / (K - 1))``, S the probability that f_y is the largest."""
        won, (high, low) = self.winning(mean, var, y), self._logits(mean.shape[-1])
        return won * high + (1 - won) * low

    def log_mean_power_gaussian(self, params: Params, mean: Tensor, var: Tensor, y: Tensor, alpha: float) -> Tensor:
        """``log[S (1 - epsilon)^alpha + (1 - S) (epsilon / (K - 1))^alpha] / alpha``, S as above."""
        won, (high, low) = self.winning(mean, var, y), self._logits(mean.shape[-1])
        return (won * math.exp(alpha * high) + (1 - won) * math.exp(alpha * low)).log() / alpha

    def winning(self, mean: Tensor, var: Tensor, y: Tensor) -> Tensor:
        """``P(f_y > f_l for all l != y) = E_{f_y}[ prod_l Phi((f_y - m_l) / sqrt(v_l)) ]``: mean and variance
        ``[..., N, K]``, y ``[..., N]`` -> ``[..., N]``."""
        mean, std = mean.double(), var.double().clamp_min(1e-12).sqrt()
        nodes, weights = _quadrature(self.points, mean.device)
        own = y.unsqueeze(-1)
        f = mean.gather(-1, own) + math.sqrt(2) * std.gather(-1, own) * nodes  # [..., N, H]
        below = torch.special.log_ndtr((f.unsqueeze(-2) - mean.unsqueeze(-1)) / std.unsqueeze(-1))
        others = torch.ones_like(mean).scatter(-1, own, 0.0).unsqueeze(-1)
        return ((below * others).sum(-2).exp() * weights).sum(-1) / math.sqrt(math.pi)

    def values(self, f: Tensor) -> Tensor:
        """Return logits of each function's class probabilities."""
        high, low = self._logits(f.shape[-1])
        largest = torch.nn.functional.one_hot(f.argmax(-1), f.shape[-1]).bool()
        return torch.where(largest, high, low).to(f.dtype)

    def predicted(self, f: Tensor, marginals: tuple[Tensor, Tensor] | None) -> Tensor:
        if marginals is None:
            return self.values(f)
        k = f.shape[-1]
        won = [self.winning(*marginals, torch.full(f.shape[1:2], c, device=f.device)) for c in range(k)]
        p = torch.stack(won, dim=-1)
        return ((1 - self.epsilon) * p + self.epsilon / (k - 1) * (1 - p)).log().unsqueeze(0)

    def _logits(self, k: int) -> tuple[float, float]:
        return math.log(1 - self.epsilon), math.log(self.epsilon / (k - 1))


@lru_cache(maxsize=16)
def _quadrature(points: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return nodes and weights of Gauss-Hermite quadrature; cached, since a copy to a device waits for it."""
    nodes, weights = (torch.from_numpy(a).to(device) for a in np.polynomial.hermite.hermgauss(points))
    return nodes, weights


def _single(values: Tensor) -> Tensor:
    if values.shape[-1] != 1:
        raise ValueError(f"likelihood 'gaussian': expected one output, found shape {tuple(values.shape)}")
    return values.squeeze(-1)


def _as_vectors(y: Tensor) -> Tensor:
    return y if y.dim() == 3 else y.unsqueeze(-1)


def _vector(values: Tensor, y: Tensor) -> Tensor:
    if values.shape[-1] != y.shape[-1]:
        raise ValueError(
            f"likelihood 'gaussian': expected {y.shape[-1]} outputs, one for each number of a target, found "
            f"{values.shape[-1]}"
        )
    return values
