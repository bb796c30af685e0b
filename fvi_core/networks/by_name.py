"""Classification models of torchvision by their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from fvi_core.networks.module import ModuleNetwork, put
from fvi_core.networks.plain import images
from fvi_core.registry import NETWORKS, later
from fvi_core.spelling import check_known

SMALL = 64
"""Images of fewer pixels a side have a small stem."""


@NETWORKS.register("torchvision")
@dataclass(frozen=True)
class Torchvision:
    """A classification model of torchvision by its name ("resnet18", "vit_b_16"), initialised as torchvision does.

    ``stem`` "usual": torchvision's, for photographs; "small": the first convolution, where its windows overlap and its
    stride is above 1, has stride 1 and at most 3x3 pixels (7x7 ones become 3x3), and max-pooling between the first two
    convolutions is left out, as He et al. (2016) do for CIFAR; "by_size": small below 64 pixels a side. Models that cut
    images into patches (vit, swin, convnext) keep their stem. The first convolution has as many input channels as the
    images. Raises ImportError without torchvision, and ValueError for an unknown model.
    """

    model: str
    stem: str = later("by_size", among=("by_size", "small", "usual"))

    def build(self, input_shape: tuple[int, ...], n_outputs: int) -> ModuleNetwork:
        planes, height, width = images("torchvision", input_shape)
        small = self.stem == "small" or (self.stem == "by_size" and min(height, width) < SMALL)
        make = _maker(self.model, n_outputs, min(height, width))
        example = torch.randn(3, *input_shape, generator=torch.Generator().manual_seed(0))
        return ModuleNetwork(lambda: fitted(make(), planes, small), example)


def _maker(name: str, n_outputs: int, size: int) -> Any:
    try:
        from torchvision import models
    except (ImportError, RuntimeError) as error:  # its operators are for one version of torch, and raise RuntimeError
        raise ImportError(
            f"network 'torchvision' needs the package torchvision, made for torch {torch.__version__}; importing it "
            f"failed: {error}"
        ) from error
    check_known("network 'torchvision': model", name, models.list_models(module=models))
    options: dict[str, Any] = {"weights": None, "num_classes": n_outputs}
    if name in ("googlenet", "inception_v3"):
        options |= {"aux_logits": False, "init_weights": True}
    if name.startswith("vit_"):
        options["image_size"] = size
    return lambda: models.get_model(name, **options)


def fitted(module: nn.Module, planes: int, small: bool) -> nn.Module:
    """Return the module for images of so many channels, with a small stem where requested and possible."""
    convolutions = [(name, each) for name, each in module.named_modules() if isinstance(each, nn.Conv2d)]
    name, first = convolutions[0]
    shrunk = small and first.kernel_size[0] > first.stride[0] > 1
    if shrunk:
        for path, each in module.named_modules():
            if each is convolutions[1][1]:
                break
            if isinstance(each, nn.MaxPool2d):
                put(module, path, nn.Identity())
                break
    if shrunk or planes != first.in_channels:
        form: Any = (3, 1, 1) if shrunk else (first.kernel_size, first.stride, first.padding)
        changed = nn.Conv2d(planes, first.out_channels, *form)
        if first.bias is None:
            changed.bias = None
        deviation = (2 / (first.out_channels * changed.kernel_size[0] * changed.kernel_size[1])) ** 0.5
        nn.init.normal_(changed.weight, 0.0, deviation)  # He et al. 2015, by fan-out, as torchvision's models
        put(module, name, changed)
    return module
