"""Residual networks for large images (He et al. 2016), of bottleneck blocks."""

from __future__ import annotations

from dataclasses import dataclass

from fvi_core.networks.convolutional import images
from fvi_core.networks.layers import (
    Activation,
    AveragePool,
    DropoutSite,
    Linear,
    MaxPool,
    Residual,
)
from fvi_core.networks.network import HEAD, Network
from fvi_core.networks.residual import convolution
from fvi_core.registry import NETWORKS

BLOCKS = (3, 4, 6, 3)
_WIDER = 4  # a block's outputs are so many times its inner channels


@NETWORKS.register("resnet50")
@dataclass(frozen=True)
class ResNet50:
    """ResNet-50: a 7x7 stem of stride 2, 3x3 max-pooling of stride 2, groups of 3, 4, 6 and 3 bottleneck blocks of
    ``width`` times 1, 2, 4, 8 inner channels, global average pooling, the head.

    The last three groups have stride 2, in the 3x3 convolution of their first block, as in torchvision and in Band et
    al. (2021). Batch normalisation follows every convolution; a context is normalised by its own statistics. Dropout
    sites: after every ReLU.
    """

    width: int = 64

    def build(self, input_shape: tuple[int, ...], n_outputs: int) -> Network:
        planes = images("resnet50", input_shape)[0]
        layers = [*convolution("stem", planes, self.width, 7, 2), Activation("relu"), DropoutSite("stem")]
        layers.append(MaxPool(3, 1))
        planes = self.width
        for g, count in enumerate(BLOCKS):
            inner = self.width * 2**g
            for b in range(count):
                layers += _block(f"group{g}.block{b}", planes, inner, 2 if g and not b else 1)
                planes = _WIDER * inner
        return Network([*layers, AveragePool(), Linear(HEAD, planes, n_outputs)], tuple(input_shape))


def _block(name: str, planes: int, inner: int, stride: int) -> list:
    out = _WIDER * inner
    body = (
        *convolution(f"{name}.conv0", planes, inner, 1, 1),
        Activation("relu"),
        DropoutSite(f"{name}.conv0"),
        *convolution(f"{name}.conv1", inner, inner, 3, stride),
        Activation("relu"),
        DropoutSite(f"{name}.conv1"),
        *convolution(f"{name}.conv2", inner, out, 1, 1),
    )
    shortcut = () if planes == out and stride == 1 else tuple(convolution(f"{name}.shortcut", planes, out, 1, stride))
    return [Residual(body, shortcut), Activation("relu"), DropoutSite(name)]
