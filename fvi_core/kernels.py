"""Covariance functions with a replica axis: each replica has its own hyper-parameters, all in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fvi_core.products import product
from fvi_core.registry import KERNELS, checked, later

Params = dict[str, Tensor]
FIELDS = {
    "helmholtz": ("potential", "stream"),
    "curl_free": ("potential",),
    "divergence_free": ("stream",),
}
"""Potentials of a field, by the field's name; their gradients sum to the field."""


@dataclass(frozen=True)
class Kernel:
    """k(x, x') with hyper-parameters in a dict of unconstrained (logarithmic) tensors.

    Inputs ``[R, N, ...]`` are flattened to features. ``kernel(params, x1, x2)`` -> ``[R, N, M]``,
    ``kernel.diagonal(params, x)`` -> ``[R, N]``, both float64. ``log_variance`` ``[R]`` is log sigma^2, the output
    scale. A ``vector`` kernel has values with as many numbers D as inputs have features: ``[R, N D, M D]`` and ``[R, N
    D]``, with the numbers at one input together.
    """

    vector: ClassVar[bool] = False

    def init(self, replicas: int, n_features: int, x: Tensor | None = None) -> Params:
        """Return unit hyper-parameters; length-scales from the median distance of ``x`` ``[R, N, ...]`` if given."""
        device = None if x is None else x.device
        return {"log_variance": torch.zeros(replicas, dtype=torch.float64, device=device)}

    def __call__(self, params: Params, x1: Tensor, x2: Tensor) -> Tensor:
        raise NotImplementedError

    def diagonal(self, params: Params, x: Tensor) -> Tensor:
        raise NotImplementedError


def among(kernel: Kernel, params: Params, x: Tensor) -> Tensor:
    """Return the kernel at all pairs of points ``[R, N, N]``. Raises ValueError where it has another shape."""
    value, size = kernel(params, x, x), x.shape[1] * (x[0, 0].numel() if kernel.vector else 1)
    if value.dim() != 3 or value.shape[1:] != (size, size):
        name = getattr(kernel, "name", type(kernel).__name__)
        raise ValueError(
            f"kernel {name!r}: expected values [R, N, M], here [{len(x)}, {size}, {size}], found {list(value.shape)}: "
            "keep the first axis of inputs and hyper-parameters, that of replicas"
        )
    return value


@dataclass(frozen=True)
class Stationary(Kernel):
    """sigma^2 rho(r), r = |(x - x') / lengthscale|.

    ``log_lengthscale`` is ``[R, D]``, one per feature, or ``[R, 1]`` without ``ard``. ``kinked``: rho has a slope at 0,
    which turns rounding of r^2 by 1e-14 into an error of rho of 1e-7.
    """

    kinked: ClassVar[bool] = False

    ard: bool = True

    def init(self, replicas: int, n_features: int, x: Tensor | None = None) -> Params:
        params = super().init(replicas, n_features, x)
        if x is None:
            size = n_features if self.ard else 1
            params["log_lengthscale"] = params["log_variance"].new_zeros(replicas, size)
        else:
            params["log_lengthscale"] = median_distance(x, self.ard).log()
        return params

    def __call__(self, params: Params, x1: Tensor, x2: Tensor) -> Tensor:
        a, b = self.embed(params, _features(x1)), self.embed(params, _features(x2))
        # Differences are exact at equal points; with many features products are faster, and precise enough but for a
        # kink and for features far from 0: at 1000 lengthscales the kernel errs by 1e-9, at a million by 1e-3.
        exact = self.kinked or a.shape[-1] <= 64
        mode = "donot_use_mm_for_euclid_dist" if exact else "use_mm_for_euclid_dist"
        # The gradient of cdist is zero at zero distance, where a square root's would not be finite.
        correlation = self.correlation(params, torch.cdist(a, b, compute_mode=mode))
        return params["log_variance"].exp()[:, None, None] * correlation

    def diagonal(self, params: Params, x: Tensor) -> Tensor:
        return params["log_variance"].exp()[:, None].expand(x.shape[:2])

    def embed(self, params: Params, x: Tensor) -> Tensor:
        """Map points to points whose Euclidean distance is r: ``[R, N, D]`` -> ``[R, N, D']``."""
        return x / params["log_lengthscale"].exp()[:, None]

    def correlation(self, params: Params, r: Tensor) -> Tensor:
        """rho(r), with rho(0) = 1."""
        raise NotImplementedError


@KERNELS.register("rbf")
@dataclass(frozen=True)
class RBF(Stationary):
    """sigma^2 exp(-r^2 / 2) (Rasmussen & Williams 2006, eq. 4.9)."""

    def correlation(self, params: Params, r: Tensor) -> Tensor:
        return _Bell.apply(r)


class _Bell(torch.autograd.Function):
    """``exp(-r^2 / 2)``, with the bits of autograd's gradient by fewer passes over r."""

    @staticmethod
    def forward(ctx: Any, r: Tensor) -> Tensor:
        value = r.square().mul_(-0.5).exp_()
        ctx.save_for_backward(r, value)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        r, value = ctx.saved_tensors
        return (gradient * value).mul_(r).neg_()


@KERNELS.register("matern12")
@dataclass(frozen=True)
class Matern12(Stationary):
    """sigma^2 exp(-r) (Rasmussen & Williams 2006, eq. 4.18); its gradient is taken as zero at r = 0."""

    kinked = True

    def correlation(self, params: Params, r: Tensor) -> Tensor:
        return (-r).exp()


@KERNELS.register("matern32")
@dataclass(frozen=True)
class Matern32(Stationary):
    """sigma^2 (1 + s) exp(-s), s = sqrt(3) r (Rasmussen & Williams 2006, eq. 4.17)."""

    def correlation(self, params: Params, r: Tensor) -> Tensor:
        s = math.sqrt(3) * r
        return (1 + s) * (-s).exp()


@KERNELS.register("matern52")
@dataclass(frozen=True)
class Matern52(Stationary):
    """sigma^2 (1 + s + s^2 / 3) exp(-s), s = sqrt(5) r (Rasmussen & Williams 2006, eq. 4.17)."""

    def correlation(self, params: Params, r: Tensor) -> Tensor:
        s = math.sqrt(5) * r
        return (1 + s + s.square() / 3) * (-s).exp()


@KERNELS.register("rational_quadratic")
@dataclass(frozen=True)
class RationalQuadratic(Stationary):
    """sigma^2 (1 + r^2 / (2 alpha))^-alpha (Rasmussen & Williams 2006, eq. 4.19); alpha, ``[R]``, begins at 1."""

    def init(self, replicas: int, n_features: int, x: Tensor | None = None) -> Params:
        params = super().init(replicas, n_features, x)
        return params | {"log_alpha": torch.zeros_like(params["log_variance"])}

    def correlation(self, params: Params, r: Tensor) -> Tensor:
        alpha = params["log_alpha"].exp()[:, None, None]
        return (-alpha * torch.log1p(r.square() / (2 * alpha))).exp()


@KERNELS.register("linear")
@dataclass(frozen=True)
class Linear(Kernel):
    """sigma^2 (1 + sum_d x_d x'_d / lengthscale_d^2): straight lines with a random offset (Rasmussen & Williams 2006,
    eq. 4.28). ``log_lengthscale`` as of stationary kernels; it begins at one, for standardised inputs.
    """

    ard: bool = True

    def init(self, replicas: int, n_features: int, x: Tensor | None = None) -> Params:
        params = super().init(replicas, n_features, x)
        size = n_features if self.ard else 1
        return params | {"log_lengthscale": params["log_variance"].new_zeros(replicas, size)}

    def __call__(self, params: Params, x1: Tensor, x2: Tensor) -> Tensor:
        scale = params["log_lengthscale"].exp()[:, None]
        slopes = product(_features(x1) / scale, (_features(x2) / scale).mT)
        return params["log_variance"].exp()[:, None, None] * (1 + slopes)

    def diagonal(self, params: Params, x: Tensor) -> Tensor:
        scaled = _features(x) / params["log_lengthscale"].exp()[:, None]
        return params["log_variance"].exp()[:, None] * (1 + scaled.square().sum(-1))


@KERNELS.register("periodic")
@dataclass(frozen=True)
class Periodic(RBF):
    """sigma^2 exp(-2 sum_i sin^2(pi d_i / p) / l_i^2), d = x - x' (Rasmussen & Williams 2006, eq. 4.31 in D features).

    Parameters are those of the RBF kernel, whose length-scales start at 1 here, and ``log_period`` ``[R, 1]``, the
    logarithm of p, which starts at the median distance.
    """

    def init(self, replicas: int, n_features: int, x: Tensor | None = None) -> Params:
        params = super().init(replicas, n_features)
        start = params["log_lengthscale"].new_zeros(replicas, 1)
        if x is None:
            return params | {"log_period": start}
        params = {name: value.to(x.device) for name, value in params.items()}
        return params | {"log_period": median_distance(x, per_feature=False).log()}

    def embed(self, params: Params, x: Tensor) -> Tensor:
        angle = 2 * math.pi * x / params["log_period"].exp()[:, None]
        scale = params["log_lengthscale"].exp()[:, None]
        return torch.cat([angle.sin() / scale, angle.cos() / scale], dim=-1)


@KERNELS.register("helmholtz")
@dataclass(frozen=True)
class Helmholtz(Kernel):
    """The covariance of ``grad Phi + rot Psi``, ``rot = (d_2, -d_1)``, for independent Phi and Psi with RBF kernels
    (Berlinghieri et al. 2023 eq. 6): with the displacement ``d = x - x'``

    ``cov(d_i k, d'_j k) = sigma^2 / l^2 (delta_ij - d_i d_j / l^2) exp(-|d|^2 / (2 l^2))``, rotated for Psi.

    ``field`` "helmholtz": both; "curl_free": ``grad Phi``, in any dimension; "divergence_free": ``rot Psi``, in two.
    Parameters are those of the RBF kernels, with one length-scale, or with ``ard`` one for each feature, after
    ``potential.`` (Phi) and ``stream.`` (Psi). With l_i: ``sigma^2 / l_i^2 (delta_ij - d_i d_j / l_j^2)`` and so on.
    """

    field: str = checked("helmholtz", among=FIELDS)
    ard: bool = later(False)

    vector = True

    def init(self, replicas: int, n_features: int, x: Tensor | None = None) -> Params:
        if n_features != 2 and self.field != "curl_free":
            raise ValueError(f"kernel 'helmholtz': rotated gradients need 2 features, found {n_features}")
        hyper = RBF(ard=self.ard).init(replicas, n_features, x)
        return {f"{part}.{name}": value.clone() for part in FIELDS[self.field] for name, value in hyper.items()}

    def __call__(self, params: Params, x1: Tensor, x2: Tensor) -> Tensor:
        difference = _features(x1)[:, :, None] - _features(x2)[:, None]  # [R, N, M, D]
        parts = [self._of(part, params, difference) for part in FIELDS[self.field]]
        return cast(Tensor, sum(parts)).transpose(2, 3).flatten(3).flatten(1, 2)

    def diagonal(self, params: Params, x: Tensor) -> Tensor:
        slopes = [_variances_of_slopes(params, part) for part in FIELDS[self.field]]
        summed = cast(Tensor, sum(slopes))
        return summed.expand(-1, x[0, 0].numel()).repeat(1, x.shape[1])

    def _of(self, part: str, params: Params, difference: Tensor) -> Tensor:
        """Return the covariance of one potential's gradient, ``[R, N, M, D, D]``."""
        square = (2 * params[f"{part}.log_lengthscale"]).exp()[:, None, None]  # [R, 1, 1, 1 or D]
        outer = difference.unsqueeze(-1) * difference.unsqueeze(-2) / square.unsqueeze(-2)
        slopes = torch.eye(difference.shape[-1], dtype=difference.dtype, device=difference.device) - outer
        if part == "stream":  # rows and columns are those of (d_2, -d_1)
            turn = 2 * torch.eye(2, dtype=slopes.dtype, device=slopes.device) - 1
            slopes = slopes.flip(-2, -1) * turn
        if square.shape[-1] == 1:
            decay = (-0.5 * difference.square().sum(-1, keepdim=True) / square).exp()
        else:
            decay = (-0.5 * (difference.square() / square).sum(-1, keepdim=True)).exp()
        return (_variances_of_slopes(params, part)[:, None, None] * decay).unsqueeze(-1) * slopes


def _variances_of_slopes(params: Params, part: str) -> Tensor:
    """Return variances of a gradient's components ``[R, 1 or D]``, in their order in the field."""
    variances = (params[f"{part}.log_variance"][:, None] - 2 * params[f"{part}.log_lengthscale"]).exp()
    return variances.flip(-1) if part == "stream" else variances


def evenly_spaced(x: Tensor, most: int = 256) -> Tensor:
    """Return at most ``most`` of the points ``[R, N, ...]``, evenly spaced from the first to the last."""
    return x[:, torch.linspace(0, x.shape[1] - 1, min(most, x.shape[1]), device=x.device).round().long()]


def median_distance(x: Tensor, per_feature: bool) -> Tensor:
    """Return the median distance of pairs of points ``[R, N, ...]`` -> ``[R, 1]``, or ``[R, D]`` times sqrt(D).

    The factor sqrt(D) makes the scaled distance of typical points order 1 in any dimension. Taken over
    evenly spaced points; a zero median (a constant or mostly equal feature) becomes 1.
    """
    x = _features(evenly_spaced(x))
    i, j = torch.triu_indices(x.shape[1], x.shape[1], offset=1, device=x.device)
    if per_feature:
        distances = [(column[:, i] - column[:, j]).abs().median(-1).values for column in x.unbind(-1)]
        median = torch.stack(distances, dim=-1) * math.sqrt(x.shape[-1])
    else:
        median = torch.cdist(x, x)[:, i, j].median(-1, keepdim=True).values
    return torch.where(median > 0, median, torch.ones_like(median))


def _features(x: Tensor) -> Tensor:
    return x.double().flatten(2)
