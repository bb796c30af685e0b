"""Contexts: distributions of the inputs at which functions are compared (index sets, measurement points)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fvi_core.data import rows
from fvi_core.random import Streams
from fvi_core.registry import CONTEXTS, PartSpec, checked, later, nested


@dataclass(frozen=True)
class ContextSource:
    """Inputs that a context may draw from: the training batch ``x [R, B, ...]``, the box ``low, high [R, ...]`` of the
    training inputs, and named pools of other inputs ``[P, ...]``, which ``scale`` turns into inputs of the network.
    """

    x: Tensor
    low: Tensor
    high: Tensor
    pools: Mapping[str, Tensor]
    scale: Callable[[Tensor], Tensor] = field(default=lambda x: x)


class Context:
    """Distribution of context sets ``[R, K, ...]``. A subclass is a dataclass of hyper-parameters."""

    name: ClassVar[str]

    def __call__(self, source: ContextSource, streams: Streams) -> Tensor:
        raise NotImplementedError

    def pools(self) -> set[str]:
        """Return the names of the pools that the context draws from."""
        return set()

    def is_batch(self) -> bool:
        """Return whether the context is the training batch itself, the very tensor."""
        return False

    def extends_batch(self) -> bool:
        """Return whether the context begins with the whole training batch."""
        return False


@CONTEXTS.register("uniform_box")
@dataclass(frozen=True)
class UniformBox(Context):
    """K points uniform on the box of the training inputs, widened on each side by ``margin`` times its width.

    ``low`` and ``high``, when given, replace the box's bounds by one number for all features, or by a list of one each.
    """

    points: int = checked(least=1)
    margin: float = checked(0.0, least=0)
    low: float | list[float] | None = None
    high: float | list[float] | None = None

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and not np.all(np.less(self.low, self.high)):
            raise ValueError(f"context {self.name!r}: expected low below high, found {self.low} and {self.high}")

    def _bound(self, own: float | list[float] | None, box: Tensor) -> Tensor:
        if own is None:
            return box
        if not isinstance(own, list | tuple):
            return torch.full_like(box, own)
        if [len(own)] != list(box.shape[1:]):
            raise ValueError(f"context {self.name!r}: expected a bound for each of {list(box.shape[1:])}, found {own}")
        # Filled on the device: a CUDA graph holds no copies from the host.
        return torch.stack([box.new_full((), each) for each in own]).expand_as(box)

    def __call__(self, source: ContextSource, streams: Streams) -> Tensor:
        low, high = self._bound(self.low, source.low), self._bound(self.high, source.high)
        width = high - low
        low, width = low - self.margin * width, width * (1 + 2 * self.margin)
        return low.unsqueeze(1) + width.unsqueeze(1) * streams.uniform(self.points, *source.x.shape[2:])


@CONTEXTS.register("grid")
@dataclass(frozen=True)
class Grid(Context):
    """Regular grid over [low_d, high_d] in every dimension d, by ``step`` (dirichlet2022 App. F) or ``counts``, the
    number of points in each dimension; not random. Raises ValueError unless exactly one of the two is set.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    step: float | None = checked(None, above=0)
    counts: tuple[int, ...] | None = later(None, least=1)

    def __post_init__(self) -> None:
        if (self.step is None) == (self.counts is None):
            raise ValueError(f"context 'grid': expected step or counts, found {self.step} and {self.counts}")

    def __call__(self, source: ContextSource, streams: Streams) -> Tensor:
        bounds = list(zip(self.low, self.high, strict=True))
        if self.step is not None:
            half, step = 0.5 * self.step, self.step
            axes = [torch.arange(a, b + half, step, dtype=source.x.dtype) for a, b in bounds]
        else:
            ends = zip(bounds, self.counts or (), strict=True)
            axes = [torch.linspace(a, b, count, dtype=source.x.dtype) for (a, b), count in ends]
        points = torch.cartesian_prod(*axes).reshape(-1, len(axes)).to(source.x.device)
        return points.expand(source.x.shape[0], -1, -1)


@CONTEXTS.register("training_batch")
@dataclass(frozen=True)
class TrainingBatch(Context):
    """Training batch itself, or ``points`` of it drawn without replacement."""

    points: int | None = checked(None, least=1)

    def __call__(self, source: ContextSource, streams: Streams) -> Tensor:
        if self.points is None:
            return source.x
        index = streams.permutation(source.x.shape[1])[:, : self.points]
        return rows(source.x, index)

    def is_batch(self) -> bool:
        return self.points is None


@CONTEXTS.register("rotated_batch")
@dataclass(frozen=True)
class RotatedBatch(Context):
    """Training batch turned counter-clockwise by each of A ``angles``, ``[R, B A, ...]`` (dirichlet2022 sec. 4.3).

    Angles are multiples of 90 degrees, so that nothing is interpolated. Raises ValueError for other angles, and for a
    batch without square images ``[R, B, C, H, H]``.
    """

    angles: tuple[int, ...]

    def __post_init__(self):
        if not self.angles or any(angle % 90 for angle in self.angles):
            found = list(self.angles)
            raise ValueError(f"context 'rotated_batch': angles must be one or more multiples of 90, found {found}")

    def __call__(self, source: ContextSource, streams: Streams) -> Tensor:
        if source.x.dim() != 5 or source.x.shape[-1] != source.x.shape[-2]:
            found = list(source.x.shape)
            raise ValueError(f"context 'rotated_batch': expected square images [R, B, C, H, H], found {found}")
        return torch.cat([torch.rot90(source.x, angle // 90, (-2, -1)) for angle in self.angles], dim=1)


@CONTEXTS.register("random_pixel")
@dataclass(frozen=True)
class RandomPixel(Context):
    """Every pixel copied from the same position of a random image of the batch (cinquin2024 App. C.4)."""

    points: int = checked(least=1)

    def __call__(self, source: ContextSource, streams: Streams) -> Tensor:
        x = source.x.flatten(2)
        index = streams.integers(x.shape[1], self.points, x.shape[2])
        return torch.gather(x, 1, index).unflatten(2, source.x.shape[2:])


@CONTEXTS.register("random_monochrome")
@dataclass(frozen=True)
class RandomMonochrome(Context):
    """Monochrome images in the colour of a random pixel of the training batch (rudner2022 sec. 3.3).

    ``channels`` "joint": the colour of one pixel; "independent": each channel's value from another pixel.
    """

    points: int = checked(least=1)
    channels: str = checked("joint", among=("joint", "independent"))

    def __call__(self, source: ContextSource, streams: Streams) -> Tensor:
        r, b, c, h, w = source.x.shape
        pixels = source.x.movedim(2, -1).reshape(r, b * h * w, c)
        draws = 1 if self.channels == "joint" else c
        index = streams.integers(pixels.shape[1], self.points, draws).expand(-1, -1, c)
        return torch.gather(pixels, 1, index)[..., None, None].expand(-1, -1, -1, h, w).contiguous()


@CONTEXTS.register("uniform_noise")
@dataclass(frozen=True)
class UniformNoise(Context):
    """Every pixel uniform on [min - margin * range, max + margin * range] of the training set (cinquin2024 App.
    C.4).
    """

    points: int = checked(least=1)
    margin: float = checked(0.5, least=0)

    def __call__(self, source: ContextSource, streams: Streams) -> Tensor:
        low, high = source.low.flatten(1).amin(1), source.high.flatten(1).amax(1)
        width = high - low
        shape = (-1,) + (1,) * (source.x.dim() - 1)
        unit = streams.uniform(self.points, *source.x.shape[2:])
        return (low - self.margin * width).view(shape) + ((1 + 2 * self.margin) * width).view(shape) * unit


@CONTEXTS.register("images")
@dataclass(frozen=True)
class Images(Context):
    """Random images of another data set: the pool of that name (rudner2022: KMNIST, CIFAR-100)."""

    points: int = checked(least=1)
    pool: str = checked()

    def __call__(self, source: ContextSource, streams: Streams) -> Tensor:
        pool = source.pools[self.pool]
        return source.scale(pool[streams.integers(pool.shape[0], self.points)])

    def pools(self) -> set[str]:
        return {self.pool}


@CONTEXTS.register("mixture")
@dataclass(frozen=True)
class Mixture(Context):
    """Union of several contexts, drawn independently; fractions follow from their numbers of points."""

    parts: tuple[PartSpec, ...] = nested(CONTEXTS)

    def __call__(self, source: ContextSource, streams: Streams) -> Tensor:
        return torch.cat([CONTEXTS.build(part)(source, streams) for part in self.parts], dim=1)

    def pools(self) -> set[str]:
        return set().union(*(CONTEXTS.build(part).pools() for part in self.parts))

    def extends_batch(self) -> bool:
        return CONTEXTS.build(self.parts[0]).is_batch()
