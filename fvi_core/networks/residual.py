"""Residual networks for small images (He et al. 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fvi_core.networks.convolutional import images
from fvi_core.networks.layers import Activation, AveragePool, BatchNorm, Conv2d, DropoutSite, Linear, Residual
from fvi_core.networks.network import HEAD, Network
from fvi_core.registry import NETWORKS
from fvi_core.spelling import check_known


@NETWORKS.register("resnet18")
@dataclass(frozen=True)
class ResNet18:
    """ResNet-18 for 32x32 images: a 3x3 stem without pooling, four groups of two basic blocks of ``width`` times 1, 2,
    4, 8 channels, the last three of stride 2 with a 1x1 convolution as the first block's shortcut, global average
    pooling, the head.

    ``norm`` "batch": batch normalisation after every convolution, which then has no bias (He et al. 2016;
    dirichlet2022); "none": none, and convolutions with bias. ``context_statistics`` in training: "separate": values at
    the training batch are normalised by the batch's statistics, values at a context by the context's; "shared": both by
    the statistics of all these points. Running statistics, for prediction, follow the statistics used for the batch.
    Dropout sites: after every ReLU.
    """

    width: int = 64
    norm: str = "batch"
    context_statistics: str = "separate"

    def __post_init__(self):
        for option, known in (("norm", ("batch", "none")), ("context_statistics", ("separate", "shared"))):
            check_known(f"network 'resnet18': {option}", getattr(self, option), known)

    def build(self, input_shape: tuple[int, ...], n_outputs: int) -> Network:
        norm, shared = self.norm == "batch", self.context_statistics == "shared"
        return residual_network(input_shape, n_outputs, self.width, (2, 2, 2, 2), norm, shared)


def residual_network(
    input_shape: tuple[int, ...], n_outputs: int, width: int, blocks: Sequence[int], norm: bool, shared: bool
) -> Network:
    """Groups of ``blocks`` basic blocks; each group but the first halves the image and doubles the channels."""
    planes = images("resnet18", input_shape)[0]
    layers = [*convolution("stem", planes, width, 3, 1, norm), Activation("relu"), DropoutSite("stem")]
    planes = width
    for g, count in enumerate(blocks):
        for b in range(count):
            layers += _block(f"group{g}.block{b}", planes, width * 2**g, 2 if g and not b else 1, norm)
            planes = width * 2**g
    return Network([*layers, AveragePool(), Linear(HEAD, planes, n_outputs)], tuple(input_shape), shared and norm)


def _block(name: str, planes: int, out: int, stride: int, norm: bool) -> list:
    body = (
        *convolution(f"{name}.conv0", planes, out, 3, stride, norm),
        Activation("relu"),
        DropoutSite(f"{name}.conv0"),
        *convolution(f"{name}.conv1", out, out, 3, 1, norm),
    )
    projected = () if planes == out and stride == 1 else convolution(f"{name}.shortcut", planes, out, 1, stride, norm)
    return [Residual(body, tuple(projected)), Activation("relu"), DropoutSite(name)]


def convolution(name: str, planes: int, out: int, kernel: int, stride: int, norm: bool = True) -> list:
    """Return a convolution that preserves the size of images up to its stride, normalised or with a bias."""
    conv = Conv2d(name, planes, out, kernel, kernel // 2, stride, bias=not norm)
    return [conv, BatchNorm(f"{name}.norm", out)] if norm else [conv]
