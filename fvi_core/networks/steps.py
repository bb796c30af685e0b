"""Layers that are computed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fvi_core.networks.layers import Activation, BatchNorm, Conv2d, DropoutSite, MaxPool, Residual


@dataclass(frozen=True)
class Rectified:
    """Convolution, normalisation or sum, followed by ReLU, its dropout site, and with ``pool`` pooling: one step that
    stores fewer tensors."""

    layer: Conv2d | BatchNorm | Residual
    site: DropoutSite | None
    pool: bool


def together(layers: Sequence) -> list:
    """Return the layers, with each followed by a rectifier joined to it in a :class:`Rectified` where possible."""
    found: list = []
    rest = list(layers)
    while rest:
        layer = rest.pop(0)
        if isinstance(layer, Residual):
            layer = Residual(tuple(together(layer.body)), tuple(together(layer.shortcut)))
        if isinstance(layer, Conv2d | BatchNorm | Residual) and rest[:1] == [Activation("relu")]:
            del rest[0]
            site = rest.pop(0) if rest and type(rest[0]) is DropoutSite else None
            pool = isinstance(layer, Conv2d) and rest[:1] == [MaxPool()]
            if pool:
                del rest[0]
            layer = Rectified(layer, site, pool)
        found.append(layer)
    return found
