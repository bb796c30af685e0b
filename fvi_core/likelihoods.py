"""Likelihoods p(y | f): what the data term of the objective is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.registry import LIKELIHOODS

Params = dict[str, Tensor]



@LIKELIHOODS.register("gaussian")
@dataclass(frozen=True)
class Gaussian:
    """y = f(x) + noise, noise ~ N(0, std^2) with std = min_std + softplus(raw), one noise level per replica.

    ``init_std``: initial standard deviation; ``min_std``: floor that it never falls below, both in units of
    the targets; ``learned=False`` keeps ``init_std``: no gradient then reaches the parameter. Raises
    ValueError if init_std <= min_std.
    """

    init_std: float = 0.5
    min_std: float = 0.0
    learned: bool = True

    has_closed_form = True

    def __post_init__(self) -> None:
        if not self.init_std > self.min_std >= 0:
            raise ValueError(
                f"likelihood 'gaussian': expected init_std > min_std >= 0, found init_std={self.init_std}, "
                f"min_std={self.min_std}"
            )

    def init(self, replicas: int, dtype: torch.dtype = torch.float32) -> Params:
        """The unconstrained noise parameter, ``{"raw_noise": [R]}``."""
        above = self.init_std - self.min_std
        # Inverse of softplus, written so that it neither overflows nor cancels.
        return {"raw_noise": torch.full((replicas,), above + math.log(-math.expm1(-above)), dtype=dtype)}

    def noise_std(self, params: Params) -> Tensor:
        """Standard deviation of the noise, ``[R]``."""
        raw = params["raw_noise"] if self.learned else params["raw_noise"].detach()
        return self.min_std + torch.nn.functional.softplus(raw)

    def log_prob(self, params: Params, f: Tensor, y: Tensor) -> Tensor:
        """log N(y | f, std^2) of function samples: f ``[R, S, N, 1]``, y ``[R, N]`` -> ``[R, S, N]``."""
        return self._log_density(self.noise_std(params)[:, None, None], (y[:, None] - _single(f)).square())

    def data_term(self, params: dict[str, Tensor], f: Tensor, y: Tensor) -> Tensor:
        """Mean log-likelihood over samples and points, ``[R]``: what training maximises."""
        return self.log_prob(params, f, y).mean((1, 2))

    def expected_log_prob_gaussian(self, params: Params, mean: Tensor, var: Tensor, y: Tensor) -> Tensor:
        """E log N(y | f, std^2) for f ~ N(mean, var): ``[R, N, 1]``, ``[R, N, 1]``, ``[R, N]`` -> ``[R, N]``.

        -1/2 log(2 pi std^2) - ((y - mean)^2 + var) / (2 std^2)  (cinquin2024, eq. B.2).
        """
        return self._log_density(self.noise_std(params)[:, None], (y - _single(mean)).square() + _single(var))

    @staticmethod
    def _log_density(std: Tensor, expected_square: Tensor) -> Tensor:
        return -0.5 * math.log(2 * math.pi) - std.log() - 0.5 * expected_square / std.square()


@LIKELIHOODS.register("residual_gaussian")
@dataclass(frozen=True)
class ResidualGaussian(Gaussian):
    """Gaussian noise for a network trained on the root mean square error alone (the ensembles of pequignot2020, App. E).

    Training minimises sqrt(mean (y - f)^2) of a batch; ``calibrate`` then sets the noise to the residuals of the training set.
    """

    learned: bool = False

    def data_term(self, params: dict[str, Tensor], f: Tensor, y: Tensor) -> Tensor:
        """Minus the root mean square error, ``[R]``."""
        return -(y[:, None] - _single(f)).square().mean((1, 2)).sqrt()

    def calibrate(self, params: dict[str, Tensor], f: Tensor, y: Tensor) -> dict[str, Tensor]:
        """Noise parameters whose standard deviation is the root mean square residual of the mean function.

        Where residuals are below ``min_std + 1e-6``, it is that.
        """
        residual = (y - _single(f).mean(1)).square().mean(1).sqrt()
        above = (residual - self.min_std).clamp_min(1e-6)
        return {"raw_noise": (above + torch.log(-torch.expm1(-above))).to(params["raw_noise"])}


@LIKELIHOODS.register("categorical")
@dataclass(frozen=True)
class Categorical:
    """y ~ Cat(softmax f(x)); no parameters."""

    has_closed_form = False

    def init(self, replicas: int, dtype: torch.dtype = torch.float32) -> Params:
        """No parameters: an empty dict."""
        return {}

    def log_prob(self, params: Params, f: Tensor, y: Tensor) -> Tensor:
        """log softmax(f)_y: f ``[R, S, N, K]``, y ``[R, N]`` long -> ``[R, S, N]`` (cinquin2024, eq. B.3).

        Normalised in float32 at least, whatever the precision of the network.
        """
        f = f.float() if f.dtype in (torch.float16, torch.bfloat16) else f
        labels = y[:, None, :, None].expand(*f.shape[:-1], 1)
        return f.gather(-1, labels)[..., 0] - f.logsumexp(-1)

    def data_term(self, params: dict[str, Tensor], f: Tensor, y: Tensor) -> Tensor:
        """Mean log-likelihood over samples and points, ``[R]``: what training maximises."""
        return self.log_prob(params, f, y).mean((1, 2))

    def expected_log_prob_gaussian(self, params: Params, mean: Tensor, var: Tensor, y: Tensor) -> Tensor:
        """Has no closed form: raises NotImplementedError. Ask ``has_closed_form`` first."""
        raise NotImplementedError(
            "likelihood 'categorical' has no closed-form expectation under a Gaussian; "
            "average log_prob over function samples"
        )


def _single(values: Tensor) -> Tensor:
    if values.shape[-1] != 1:
        raise ValueError(f"likelihood 'gaussian': expected one output, found shape {tuple(values.shape)}")
    return values[..., 0]
