"""Changes of networks of images along many changes of their weights, against forward-mode differentiation."""

import pytest
import torch

from fvi_core import blocks, tangents
from fvi_core.linearisation import linearised
from fvi_core.networks import SLOPED, Network
from fvi_core.networks.layers import (
    Activation,
    AveragePool,
    BatchNorm,
    Conv2d,
    DropoutSite,
    Linear,
    MaxPool,
    Parallel,
    Residual,
)
from tests.fvi_core import small
from tests.fvi_core.test_linearisation import assert_close, gradients

R, S, N = 2, 3, 4
NETWORKS = {
    "pooled": ({"name": "cnn", "channels": [3, 4], "dense": [5], "pool": [1, 1], "activation": "tanh"}, (2, 7, 6)),
    "strided": ({"name": "cnn", "channels": [3, 2], "dense": [], "pool": [0, 1], "padding": 0}, (1, 8, 8)),
}
RESIDUAL = (
    Conv2d("first", 2, 4, bias=False), BatchNorm("norm", 4), Activation("relu"), MaxPool(3, 1),
    Residual(
        (Conv2d("body", 4, 3, stride=2, bias=False), BatchNorm("inner", 3), Activation("relu"), DropoutSite("site")),
        (Conv2d("short", 4, 3, 1, 0, 2, False), BatchNorm("outer", 3)),
    ),
    Residual((Conv2d("last", 3, 3), BatchNorm("end", 3))), AveragePool(), Linear("head", 3, 3),
)  # fmt: skip


def whole(network, centre, steps, kept, x):
    """``f(x; m) + J(x; m) d`` by torch.func.jvp of the network as a whole."""
    at = {name: centre[name].unsqueeze(1).expand_as(step).clone() for name, step in steps.items()}
    value, change = torch.func.jvp(lambda w: network(w | kept, x), (at,), (steps,))
    return value + change


def case(name, activation=None):
    if name == "residual":
        network, shape = Network(RESIDUAL, (2, 9, 8)), (2, 9, 8)
    else:
        spec, shape = NETWORKS[name]
        network = small.network(spec if activation is None else {**spec, "activation": activation}, 3, shape)
    draws = small.streams(R)
    centre = {key: value.requires_grad_() for key, value in network.init(draws).items()}
    steps = {key: draws.normal(S, *size).requires_grad_() for key, size in network.shapes.items()}
    start = network.init_buffers(draws)
    kept = {key: (value + 0.3 * draws.normal(*value.shape[1:]).abs()).unsqueeze(1) for key, value in start.items()}
    return network, centre, steps, kept, small.inputs(R, N, shape)


@pytest.mark.parametrize("name", [*NETWORKS, "residual"])
def test_values_and_gradients_are_those_of_the_whole_network(name):
    network, centre, steps, kept, x = case(name)
    assert tangents.fits(network) and bool(kept) == (name == "residual")
    actual, expected = linearised(network, centre, steps, kept)(x), whole(network, centre, steps, kept, x)
    assert actual.shape == (R, S, N, 3)
    scale = float(expected.detach().abs().max())
    assert_close([actual / scale], [expected / scale], 1e-12)
    found, wanted = (gradients([f / scale], centre, steps) for f in (actual, expected))
    for each, other in zip(found, wanted, strict=True):
        size = float(other.abs().max()) or 1.0
        assert_close([each / size], [other / size], 1e-9)


@pytest.mark.parametrize("activation", SLOPED)
def test_every_activation_has_its_slopes(activation):
    network, centre, steps, kept, x = case("pooled", activation)
    with torch.no_grad():
        found = linearised(network, centre, steps, kept)(x)
        assert_close([found], [whole(network, centre, steps, kept, x)], 1e-11)


def test_changes_in_blocks_are_the_changes(monkeypatch):
    network, centre, steps, kept, x = case("pooled")
    expected, taken = linearised(network, centre, steps, kept)(x), []
    monkeypatch.setattr(
        tangents, "changed", lambda *a, f=tangents.changed: taken.append(len(next(iter(a[2].values()))[0])) or f(*a)
    )
    monkeypatch.setattr(blocks, "CHANGES", 2 * R * N * network.width)
    assert_close([linearised(network, centre, steps, kept)(x)], [expected], 1e-12)
    assert taken == [2, 1]
    monkeypatch.setattr(blocks, "CHANGES", 1)
    assert_close([linearised(network, centre, steps, kept)(x)], [expected], 1e-12)


def test_one_change_and_layers_without_a_rule_are_left_to_forward_mode_differentiation(monkeypatch):
    monkeypatch.setattr(tangents, "changed", lambda *_: pytest.fail("nothing is shared here"))
    network, centre, steps, kept, x = case("pooled")
    one = {name: step[:, :1] for name, step in steps.items()}
    assert_close([linearised(network, centre, one, kept)(x)], [whole(network, centre, one, kept, x)], 1e-12)
    network.layers.insert(-1, Parallel(((), ())))
    assert not tangents.fits(network)


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_every_network_of_images_is_known(name):
    assert tangents.fits(small.network({"name": name}, 3, (3, 32, 32)))
