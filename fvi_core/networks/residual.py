"""Residual networks (He et al. 2016): of basic blocks for small images, of bottleneck blocks for large ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fvi_core.networks.layers import (
    Activation,
    AveragePool,
    BatchNorm,
    Conv2d,
    DropoutSite,
    Linear,
    MaxPool,
    Residual,
    initialised,
)
from fvi_core.networks.network import HEAD, Network
from fvi_core.networks.plain import images
from fvi_core.registry import NETWORKS, checked, later

BLOCKS18, BLOCKS50 = (2, 2, 2, 2), (3, 4, 6, 3)  # in each group
_WIDER = 4  # a block's outputs are so many times its inner channels


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

    width: int = checked(64, least=1)
    norm: str = checked("batch", among=("batch", "none"))
    context_statistics: str = checked("separate", among=("separate", "shared"))

    def build(self, input_shape: tuple[int, ...], n_outputs: int) -> Network:
        norm, shared = self.norm == "batch", self.context_statistics == "shared"
        return residual_network(input_shape, n_outputs, self.width, BLOCKS18, norm, shared)


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


@NETWORKS.register("resnet50")
@dataclass(frozen=True)
class ResNet50:
    """ResNet-50: a 7x7 stem of stride 2, 3x3 max-pooling of stride 2, groups of 3, 4, 6 and 3 bottleneck blocks of
    ``width`` times 1, 2, 4, 8 inner channels, global average pooling, the head.

    The last three groups have stride 2, in the 3x3 convolution of their first block, as in torchvision and in Band et
    al. (2021). Batch normalisation follows every convolution; a context is normalised by its own statistics.

    ``init`` "uniform": PyTorch's; "he": kernels ``N(0, 2 / fan_in)``, the head's weights ``N(0, 0.01^2)`` and biases 0;
    "zero_residual": PyTorch's, but the scale of a block's last normalisation starts at 0. ``dropout``: dropout sites
    after "every_relu", so also after a block's sum, or after every normalised convolution but the last of a block,
    "convolutions", so also in its shortcut (both of Band et al. 2021).
    """

    width: int = checked(64, least=1)
    init: str = later("uniform", among=("uniform", "he", "zero_residual"))
    dropout: str = later("every_relu", among=("every_relu", "convolutions"))

    def build(self, input_shape: tuple[int, ...], n_outputs: int) -> Network:
        planes = images("resnet50", input_shape)[0]
        layers = [*self._convolution("stem", planes, self.width, 7, 2), Activation("relu"), DropoutSite("stem")]
        layers.append(MaxPool(3, 1))
        planes = self.width
        for g, count in enumerate(BLOCKS50):
            inner = self.width * 2**g
            for b in range(count):
                layers += self._block(f"group{g}.block{b}", planes, inner, 2 if g and not b else 1)
                planes = _WIDER * inner
        head = Linear(HEAD, planes, n_outputs, 0.01 if self.init == "he" else None)
        return Network([*layers, AveragePool(), head], tuple(input_shape))

    def _block(self, name: str, planes: int, inner: int, stride: int) -> list:
        out, sparse = _WIDER * inner, self.dropout == "convolutions"
        body = (
            *self._convolution(f"{name}.conv0", planes, inner, 1, 1),
            Activation("relu"),
            DropoutSite(f"{name}.conv0"),
            *self._convolution(f"{name}.conv1", inner, inner, 3, stride),
            Activation("relu"),
            DropoutSite(f"{name}.conv1"),
            *self._convolution(f"{name}.conv2", inner, out, 1, 1, last=True),
        )
        shortcut: tuple = ()
        if planes != out or stride > 1:
            site = [DropoutSite(f"{name}.shortcut")] if sparse else []
            shortcut = (*self._convolution(f"{name}.shortcut", planes, out, 1, stride), *site)
        return [Residual(body, shortcut), Activation("relu"), *([] if sparse else [DropoutSite(name)])]

    def _convolution(self, name: str, planes: int, out: int, kernel: int, stride: int, last: bool = False) -> list:
        conv, norm = convolution(name, planes, out, kernel, stride)
        if self.init == "he":
            conv = initialised(conv, "he")
        return [conv, replace(norm, start=0.0) if last and self.init == "zero_residual" else norm]


def convolution(name: str, planes: int, out: int, kernel: int, stride: int, norm: bool = True) -> list:
    """Return a convolution that preserves the size of images up to its stride, normalised or with a bias."""
    conv = Conv2d(name, planes, out, kernel, kernel // 2, stride, bias=not norm)
    return [conv, BatchNorm(f"{name}.norm", out)] if norm else [conv]
