"""Models of torchvision by their names."""

import sys

import pytest
import torch
from torch import nn

from fvi_core.networks.by_name import fitted
from fvi_core.registry import NETWORKS
from tests.fvi_core import small

models = pytest.importorskip("torchvision.models", exc_type=ImportError)


def built(name: str, shape=(3, 32, 32), **options):
    return NETWORKS.build({"name": "torchvision", "model": name, **options}).build(shape, 10)


def test_resnet18_for_small_images_is_the_built_in_one():
    network, own = built("resnet18"), NETWORKS.build({"name": "resnet18"}).build((3, 32, 32), 10)
    theirs, ours = network.init(small.streams(1)), own.init(small.streams(1))
    assert network.way == "leaves" and network.n_parameters == own.n_parameters and not network.random
    assert sorted(map(tuple, network.shapes.values())) == sorted(map(tuple, own.shapes.values()))

    def renamed(name: str) -> str:
        """layer2.0.downsample.1.scale -> group1.block0.shortcut.norm.scale, bn1.shift -> stem.norm.shift."""
        place, last = name.removeprefix("buffer/").rsplit(".", 1)
        place = place.replace("downsample.0", "shortcut").replace("downsample.1", "shortcut.norm")
        for i in (1, 2):
            place = place.replace(f"bn{i}", f"conv{i - 1}.norm").replace(f"conv{i}", f"conv{i - 1}")
        if place.startswith("layer"):
            group, block, *rest = place.split(".")
            place = ".".join([f"group{int(group[5]) - 1}", f"block{block}", *rest])
        place = place if place.startswith(("group", "head")) else place.replace("conv0", "stem")
        return f"{'buffer/' if name.startswith('buffer/') else ''}{place}.{last}"

    both = theirs | network.init_buffers(small.streams(1))
    parameters = {renamed(name): value.unsqueeze(1) for name, value in both.items()}
    assert parameters.keys() == ours.keys() | own.buffers.keys()
    x = small.inputs(1, 3, (3, 32, 32), torch.float64)
    with torch.no_grad():
        found = network({name: value.unsqueeze(1) for name, value in both.items()}, x)
        torch.testing.assert_close(found, own(parameters, x), rtol=1e-8, atol=1e-8)


def test_stems_follow_the_size_of_images():
    def of(name: str, small_stem: bool) -> nn.Module:
        return fitted(models.get_model(name, weights=None, num_classes=10), 1, small_stem)

    resnet, dense = of("resnet18", True), of("densenet121", True).features
    assert resnet.conv1.kernel_size == (3, 3) and isinstance(resnet.maxpool, nn.Identity)
    assert dense.conv0.stride == (1, 1) and isinstance(dense.pool0, nn.Identity)
    assert of("mobilenet_v2", True).features[0][0].stride == (1, 1)
    usual, patches = of("resnet18", False), of("swin_t", True)
    assert usual.conv1.kernel_size == (7, 7) and isinstance(usual.maxpool, nn.MaxPool2d)
    assert usual.conv1.in_channels == 1 and patches.features[0][0].stride == (4, 4)
    assert isinstance(of("vgg11", True).features[2], nn.MaxPool2d), "no stride in its first convolution: its own stem"


def test_a_small_stem_is_that_of_small_images():
    for size, kernel in ((32, 3), (64, 7)):
        network = built("resnet18", (1, size, size))
        assert network.shapes["conv1.weight"] == (64, 1, kernel, kernel)
    assert built("resnet18", (1, 64, 64), stem="small").shapes["conv1.weight"] == (64, 1, 3, 3)


def test_what_cannot_be_built_is_named(monkeypatch):
    with pytest.raises(ValueError, match="model 'resnet19' is not known; did you mean 'resnet"):
        built("resnet19")
    with pytest.raises(ValueError, match="stem 'smal' is not known; did you mean 'small'"):
        built("resnet18", stem="smal")
    with pytest.raises(ValueError, match="'torchvision' expects images"):
        built("resnet18", (784,))
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(ImportError, match="needs the package torchvision, made for torch "):
        built("resnet18")
