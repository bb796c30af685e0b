"""ResNet-50 against torchvision's."""

from __future__ import annotations

import re

import pytest
import torch
from torchvision.models import resnet50

from fvi_core.networks import BatchNorm, Conv2d
from fvi_core.registry import NETWORKS
from tests.fvi_core import small

INITS = ("uniform", "he", "zero_residual")


def torchvisions_name(name: str) -> str:
    """head.weight -> fc.weight, group0.block1.conv2.norm.scale -> layer1.1.bn3.weight."""
    kind = {"weight": "weight", "bias": "bias", "scale": "weight", "shift": "bias", "mean": "running_mean"}
    place, last = name.removeprefix("buffer/").rsplit(".", 1)
    norm, place = place.endswith(".norm"), place.removesuffix(".norm")
    last = kind.get(last, "running_var")
    if place == "head":
        return f"fc.{last}"
    if place == "stem":
        return f"{'bn1' if norm else 'conv1'}.{last}"
    group, block, layer = re.fullmatch(r"group(\d)\.block(\d)\.(conv\d|shortcut)", place).groups()
    layer = f"downsample.{int(norm)}" if layer == "shortcut" else f"{'bn' if norm else 'conv'}{int(layer[-1]) + 1}"
    return f"layer{int(group) + 1}.{block}.{layer}.{last}"


def test_resnet50_is_torchvisions() -> None:
    theirs = resnet50(weights=None, num_classes=2).double()
    torch.manual_seed(0)
    for name, value in theirs.state_dict().items():
        if value.is_floating_point():
            value.copy_(torch.rand_like(value) + 0.5 if "running_var" in name else 0.05 * torch.randn_like(value))
    network = NETWORKS.build({"name": "resnet50"}).build((3, 64, 64), 2)
    held = theirs.state_dict()
    parameters = {name: held[torchvisions_name(name)] for name in (*network.shapes, *network.buffers)}
    parameters["head.weight"] = parameters["head.weight"].t()
    assert network.n_parameters == sum(p.numel() for p in theirs.parameters()) == 23_512_130
    assert {n: tuple(v.shape) for n, v in parameters.items()} == {**network.shapes, **network.buffers}
    assert len([x for x in network.parametrised if isinstance(x, BatchNorm)]) == 53
    x = small.inputs(1, 2, (3, 64, 64), torch.float64)
    found = network({n: v[None, None] for n, v in parameters.items()}, x)
    with torch.no_grad():
        torch.testing.assert_close(found[0, 0], theirs.eval()(x[0]))


def test_dropout_is_called_after_every_relu() -> None:
    network, seen = NETWORKS.build({"name": "resnet50", "width": 1}).build((3, 32, 32), 2), []
    parameters = {n: v.unsqueeze(1) for n, v in network.init(small.streams(1)).items()}
    network(parameters, small.inputs(1, 2, (3, 32, 32)), dropout=lambda site, a: seen.append(site) or a)
    assert len(seen) == 49 and seen[:4] == ["stem", "group0.block0.conv0", "group0.block0.conv1", "group0.block0"]
    with pytest.raises(ValueError, match="'resnet50' expects images"):
        NETWORKS.build({"name": "resnet50"}).build((784,), 2)


def test_dropout_may_be_after_convolutions_and_in_shortcuts_as_in_retinas_code() -> None:
    """uncertainty_baselines/models/resnet50_dropout.py of google/uncertainty-baselines."""
    network, seen = (
        NETWORKS.build({"name": "resnet50", "width": 1, "dropout": "convolutions"}).build((3, 32, 32), 2),
        [],
    )
    parameters = {n: v.unsqueeze(1) for n, v in network.init(small.streams(1)).items()}
    network(parameters, small.inputs(1, 2, (3, 32, 32)), dropout=lambda site, a: seen.append(site) or a)
    assert seen.count("stem") == 1 and sum(site.endswith(".shortcut") for site in seen) == 4
    assert sum(site.endswith((".conv0", ".conv1")) for site in seen) == 2 * 16 == len(seen) - 5


def test_initial_parameters_may_be_those_of_retinas_code() -> None:
    """models/resnet50_deterministic.py: he_normal, head N(0, 0.01^2); models/resnet50_fsvi.py: bn_2's scale 0."""
    made = {
        init: NETWORKS.build({"name": "resnet50", "width": 16, "init": init}).build((3, 32, 32), 2) for init in INITS
    }
    start = {init: network.init(small.streams(2)) for init, network in made.items()}
    plain, he, zero = (start[init] for init in INITS)
    for layer in made["he"].parametrised:
        if isinstance(layer, Conv2d) and layer.fan_in * layer.outputs > 10_000:
            expected = (2 / layer.fan_in) ** 0.5
            assert he[f"{layer.name}.weight"].std().item() == pytest.approx(expected, rel=0.05)
    assert he["head.weight"].std().item() == pytest.approx(0.01, rel=0.1) and not he["head.bias"].any()
    zeros = {name for name, value in zero.items() if name.endswith(".scale") and not value.any()}
    assert zeros == {f"group{g}.block{b}.conv2.norm.scale" for g, n in enumerate((3, 4, 6, 3)) for b in range(n)}
    assert all(torch.equal(value, plain[name]) for name, value in zero.items() if name not in zeros)
    with pytest.raises(ValueError, match="init 'hee' is not known; did you mean 'he'"):
        NETWORKS.build({"name": "resnet50", "init": "hee"})
