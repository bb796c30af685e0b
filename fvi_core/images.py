"""Images on the device: stored as bytes, changed and scaled batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
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
