"""Training data of a stack of replicas; images are stored as bytes on the device, changed and scaled batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from fvi_core.random import Streams


@dataclass(frozen=True)
class Scale:
    """Pixels 0 to 255 in network units: ``(x / 255 - mean) / std``, one mean and std for each channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    dtype: torch.dtype = torch.float32

    def __call__(self, x: Tensor) -> Tensor:
        """``[..., C, H, W]`` of any type to the same shape of ``dtype``."""
        factor, shift = _affine(self, x.device)
        return x.to(self.dtype, copy=True).mul_(factor).add_(shift)


@lru_cache(maxsize=16)
def _affine(scale: Scale, device: torch.device) -> tuple[Tensor, Tensor] | tuple[float, float]:
    """Return factor and shift of pixels; cached on the device, since a copy to a device waits for it."""
    factors = [1 / (255 * std) for std in scale.std]
    shifts = [-mean / std for mean, std in zip(scale.mean, scale.std, strict=True)]
    if len(factors) == 1:  # numbers make a faster loop than tensors
        return factors[0], shifts[0]
    factor, shift = (
        torch.tensor(values, dtype=scale.dtype, device=device).view(-1, 1, 1) for values in (factors, shifts)
    )
    return factor, shift


@dataclass(frozen=True)
class Augmentation:
    """Training images shifted by up to ``crop`` pixels (padded with black), and randomly mirrored (He et al. 2016)."""

    crop: int = 0
    flip: bool = False

    def __call__(self, x: Tensor, streams: Streams) -> Tensor:
        """Change images ``[R, B, C, H, W]``, each independently."""
        batch = x.shape[1]
        if self.crop:
            corner = streams.integers(2 * self.crop + 1, batch, 2)
            x = crop(x, self.crop, corner[..., 0], corner[..., 1])
        if self.flip:
            mirrored = streams.integers(2, batch).bool().view(*x.shape[:2], 1, 1, 1)
            x = torch.where(mirrored, x.flip(-1), x)
        return x


def crop(x: Tensor, margin: int, top: Tensor, left: Tensor) -> Tensor:
    """Cut windows at corners ``top, left [R, B]`` from images ``[R, B, C, H, W]`` padded by ``margin`` black pixels."""
    height, width = x.shape[-2:]
    windows = F.pad(x, (margin,) * 4).unfold(3, height, 1).unfold(4, width, 1)
    replica = torch.arange(x.shape[0], device=x.device)[:, None]
    image = torch.arange(x.shape[1], device=x.device)
    return windows[replica, image, :, top, left]


def without_validation(part: str) -> str:
    """Return what to say where ``part`` needs validation data, and there are none."""
    return (
        f"{part}: expected validation data, found none: give fit() validation data, or choose a data set or a split "
        "scheme that has a validation subset"
    )


Batch = Tensor | tuple[Tensor, Tensor] | None
"""Rows ``[R, B]`` of the training data, None for all of them; or x ``[B, ...]`` and y ``[B]`` themselves."""


@dataclass(frozen=True)
class TrainingData:
    """Training data of D replicas' data sets: ``x [D, N, ...]``, ``y [D, N]``, or ``y [D, N, Q]`` for vectors of Q
    targets; D is R, or 1 when all replicas share one.

    ``low``, ``high`` ``[D, ...]`` bound the training inputs; ``pools`` are named inputs ``[P, ...]`` that contexts draw
    from. ``validation`` holds one pair (x ``[V, ...]``, y ``[V]``) for each data set; their sizes may differ. Inputs,
    validation and pools may be pixels 0 to 255, of any type, which ``pixels`` turns into inputs of the network.

    ``batches(epoch)``, for data read again at each epoch, yields its ``steps`` batches x ``[B, ...]``, y ``[B]``, equal
    for all replicas; x and y are then :class:`fvi_core.reading.Unheld`.
    """

    x: Tensor
    y: Tensor
    low: Tensor
    high: Tensor
    validation: Sequence[tuple[Tensor, Tensor]] | None = None
    pools: Mapping[str, Tensor] = field(default_factory=dict)
    pixels: Scale | None = None
    batches: Callable[[int], Iterator[tuple[Tensor, Tensor]]] | None = None
    steps: int = 0

    def scale(self, x: Tensor) -> Tensor:
        """Turn stored inputs into inputs of the network."""
        return x if self.pixels is None else self.pixels(x)

    def at(self, owner: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return a batch ``x [R, B, ...]``, ``y [R, B]`` for replicas with data sets ``owner [R]``."""
        if isinstance(batch, tuple):
            x, y = (each.expand(len(owner), *each.shape) for each in batch)
            return x, y
        return take(self.x, owner, batch), take(self.y, owner, batch)

    @property
    def classification(self) -> bool:
        """Whether targets are labels."""
        return not self.y.is_floating_point()

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors by names for messages."""
        tensors = {f"training data {name}": getattr(self, name) for name in ("x", "y", "low", "high")}
        for pair in self.validation or ():
            tensors |= {f"validation data {name}": tensor for name, tensor in zip("xy", pair)}
        return tensors | {f"context pool {name!r}": pool for name, pool in self.pools.items()}

    def of(self, replica: int) -> TrainingData:
        """Return the training data of one replica of the stack."""
        if self.x.shape[0] == 1:
            return self
        tensors = {name: getattr(self, name)[replica : replica + 1] for name in ("x", "y", "low", "high")}
        validation = None if self.validation is None else [self.validation[replica]]
        return replace(self, **tensors, validation=validation)


@dataclass(frozen=True)
class TrainingSet:
    """Training data for fitting a prior: inputs ``[R, N, ...]``, targets ``[R, N]``, number of outputs.

    ``scale`` converts any of the x, which may be pixels, to inputs of the network.
    """

    x: Tensor
    y: Tensor
    n_outputs: int
    classification: bool
    scale: Callable[[Tensor], Tensor] = lambda x: x

    def as_regression(self, alpha_eps: float) -> tuple[Tensor, Tensor | None]:
        """Return targets for a zero-mean process, for labels those of Milios et al. (2018), centred, with their noise
        variances.
        """
        if not self.classification:
            return self.y, None
        y, variances = milios_targets(self.y, self.n_outputs, alpha_eps)
        return y - y.mean((1, 2), keepdim=True), variances


def milios_targets(labels: Tensor, n_classes: int, alpha_eps: float = 0.01) -> tuple[Tensor, Tensor]:
    """Log-normal targets and noise variances of class labels (Milios et al. 2018, sec. 4).

    With a_k = alpha_eps + [y = k], the Gamma(a_k, 1) variable of the Dirichlet is matched in mean and
    variance by a log-normal one: variance_k = log(1 / a_k + 1), target_k = log a_k - variance_k / 2.

    Labels ``[R, N]`` (long) -> targets, variances ``[R, N, n_classes]`` in float64. A zero-mean process needs centred
    targets (their mean is negative). Raises ValueError for a label outside [0, n_classes) or alpha_eps <= 0.
    """
    if alpha_eps <= 0:
        raise ValueError(f"alpha_eps: expected a number above 0, found {alpha_eps}")
    if labels.numel() and (labels.min() < 0 or labels.max() >= n_classes):
        raise ValueError(
            f"labels: expected integers in [0, {n_classes}), found {int(labels.min())} to {int(labels.max())}"
        )
    alpha = F.one_hot(labels, n_classes).double() + alpha_eps
    variances = (1 / alpha + 1).log()
    return alpha.log() - variances / 2, variances


def take(x: Tensor, owner: Tensor, index: Tensor | None = None) -> Tensor:
    """Return x of each replica's data set, ``[R, N, ...]`` from ``[D, N, ...]`` by ``owner [R]``, or its rows ``index
    [R, B]``.
    """
    if index is not None:
        return rows(x, index, owner)
    if not isinstance(x, Tensor):  # Unheld: raises NotSupported if its values are needed
        return x
    if x.shape[0] == 1:
        return x.expand(len(owner), *x.shape[1:])
    return x[owner] if not torch.equal(owner, torch.arange(len(x), device=owner.device)) else x


def rows(x: Tensor, index: Tensor, owner: Tensor | None = None) -> Tensor:
    """Return rows ``index [R, B]`` of ``x [D, N, ...]``, for replica r of x[owner[r]], else x[r]; x[0] if D = 1."""
    if x.shape[0] == 1:  # copying whole rows of one array is much faster than pairs of indices
        return x.index_select(1, index.flatten()).view(*index.shape, *x.shape[2:])
    owner = torch.arange(len(x), device=x.device) if owner is None else owner
    return x[owner[:, None], index]
