"""ReLU, masks and pooling in one step, against the layers one by one: the same bits, values and gradients."""

from __future__ import annotations

import pytest
import torch

from fvi_core.families.point import Dropout
from fvi_core.linearisation import linearised
from fvi_core.networks import Network, Tape, pooling
from fvi_core.networks.layers import Activation, Conv2d, MaxPool
from fvi_core.networks.pooling import InputMasks, Rectified, rectified
from fvi_core.random import Streams
from fvi_core.registry import NETWORKS

NETWORK_SPECS = (
    {"name": "cnn", "channels": [3, 4, 5], "pool": [1, 1, 0], "dense": [6]},
    {"name": "cnn", "channels": [3, 4], "pool": [0, 1], "dense": [6], "padding": 0},
    {"name": "resnet18", "width": 2},
    {"name": "resnet18", "width": 2, "norm": "none"},
)


def images(*shape: int, channels_last: bool = True) -> torch.Tensor:
    """Numbers of which many are the same, so that windows have several largest ones."""
    z = (torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 3).round() / 3
    return (z.movedim(-3, -1).contiguous().movedim(-1, -3) if channels_last else z).requires_grad_()


def pulled(value: torch.Tensor, at: torch.Tensor, channels_last: bool = False) -> torch.Tensor:
    """The gradient at some inputs of a weighted sum of the values."""
    weight = torch.randn(value.shape, generator=torch.Generator().manual_seed(2))
    if channels_last:
        weight = weight.movedim(-3, -1).contiguous().movedim(-1, -3)
    return torch.autograd.grad(value, at, weight)[0]


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(a, b) and a.dtype == b.dtype


@pytest.fixture(params=[20, 2**18])
def blocks(request, monkeypatch) -> None:
    """One image at a time, and all at once."""
    monkeypatch.setattr(pooling, "BLOCK_ELEMENTS", request.param)


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("size", [(6, 8), (7, 5)])
def test_pooling_before_the_relu_is_pooling_after_it(size, channels_last, blocks):
    z = images(2, 3, 5, 4, *size, channels_last=channels_last)
    expected = MaxPool()({}, torch.relu(z))
    found = rectified(z, pool=True)
    assert same(found, expected)
    assert same(pulled(found, z, channels_last), pulled(expected, z))
    with torch.no_grad():
        assert same(rectified(z, pool=True), expected)


@pytest.mark.parametrize("pool", [True, False])
@pytest.mark.parametrize("own", [1, 3])
def test_masks_are_those_of_the_plain_formula(pool, own, blocks):
    z = images(2, own, 5, 4, 6, 7)

    def masks() -> InputMasks:
        return InputMasks(0.3, 3, Streams([4, 5]))

    expected = masks()("site", torch.relu(z))
    expected = MaxPool()({}, expected) if pool else expected
    found = masks().rectified(z, pool)
    assert found.shape[:3] == (2, 3, 5) and not same(found[:, 0], found[:, 1])
    assert same(found, expected)
    assert same(pulled(found, z), pulled(expected, z))
    with torch.no_grad():
        assert same(masks().rectified(z, pool), expected)


def test_uniform_numbers_in_pieces_are_those_drawn_at_once():
    whole = Streams([4, 5]).uniform(7, 3)
    streams = Streams([4, 5])
    pieces = [streams.uniform_into(1, torch.empty(n, 3)) for n in (2, 4, 1)]
    assert torch.equal(torch.cat(pieces), whole[1])


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("spec", NETWORK_SPECS, ids=str)
def test_steps_of_several_layers_give_what_the_layers_give(spec, samples):
    network = NETWORKS.build(spec).build((2, 10, 12), 3)
    streams = Streams([6, 7])
    parameters = {
        k: v.unsqueeze(1) + 0.1 * streams.normal(samples, *v.shape[1:]) for k, v in network.init(streams).items()
    }
    for value in parameters.values():
        value.requires_grad_()
    x = streams.normal(4, 2, 10, 12).requires_grad_()
    assert any(isinstance(step, Rectified) for step in network.steps)
    plain = network(parameters, x, tape=Tape())  # a tape has every layer's values, so each stands for itself
    found = network(parameters, x)
    assert same(found, plain)
    weight = torch.randn(found.shape)
    ends = [*parameters.values(), x]
    for a, b in zip(torch.autograd.grad(found, ends, weight), torch.autograd.grad(plain, ends, weight), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("spec", NETWORK_SPECS, ids=str)
def test_dropout_in_steps_is_dropout_layer_by_layer(spec):
    network = NETWORKS.build(spec).build((2, 10, 12), 3)
    family = Dropout(rate=0.3)
    parameters = {name: value.requires_grad_() for name, value in family.init(network, Streams([6, 7])).items()}
    x, weight = Streams([8, 9]).normal(4, 2, 10, 12), torch.randn(2, 3, 4, 3)
    trained = [parameters[name] for name in network.shapes]

    def drawn(one: Network) -> tuple[torch.Tensor, ...]:
        own = {name: parameters[name] for name in network.shapes}
        f = family.functions(one, own, 3, Streams([10, 11]))(x)
        return f, *torch.autograd.grad(f, trained, weight)

    found = drawn(network)
    network.steps = network.layers
    expected = drawn(network)
    assert same(found[0], expected[0])
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_layers_before_the_first_mask_are_computed_once_for_all_draws(monkeypatch):
    network = NETWORKS.build(NETWORK_SPECS[0]).build((2, 10, 12), 3)
    family = Dropout(rate=0.3)
    seen: list[tuple[int, ...]] = []
    convolve = Conv2d.__call__

    def recorded(self, parameters, a, after=None):
        seen.append((self.name, *a.shape[:3]))
        return convolve(self, parameters, a, after)

    monkeypatch.setattr(Conv2d, "__call__", recorded)
    for _ in range(2):
        family.functions(network, family.init(network, Streams([6])), 3, Streams([10]))(torch.randn(1, 4, 2, 10, 12))
    # Samples that share weights are one batch of 12 images, in a call of its own.
    assert seen[: len(seen) // 2].count(("conv0", 1, 1, 4)) == 1
    assert ("conv0", 1, 3, 4) not in seen and ("conv1", 1, 3, 4) in seen


@pytest.mark.parametrize("options", [{}, {"kernel": 1, "padding": 0, "stride": 2}])
def test_gradients_of_images_are_laid_out_channels_last(options):
    conv = Conv2d("conv", 3, 4, **options)
    parameters = {name: torch.randn(1, 2, *shape) for name, shape in conv.shapes.items()}
    a = images(1, 2, 5, 3, 6, 6)
    gradient = pulled(conv(parameters, a), a, channels_last=True)
    assert gradient.movedim(-3, -1).is_contiguous()


def test_which_layers_go_together():
    steps = NETWORKS.build(NETWORK_SPECS[0]).build((2, 12, 12), 3).steps
    assert [(step.site.name, step.pool) for step in steps[:3]] == [("conv0", True), ("conv1", True), ("conv2", False)]
    assert not any(isinstance(step, Rectified) for step in steps[3:]) and Activation("relu") in steps


def test_a_network_of_such_steps_can_be_linearised():
    network = NETWORKS.build(NETWORK_SPECS[0]).build((2, 10, 12), 3)
    streams = Streams([6], dtype=torch.float64)
    centre, x = network.init(streams), streams.normal(4, 2, 10, 12)
    steps = {name: streams.normal(2, *shape) for name, shape in network.shapes.items()}
    found = linearised(network, centre, steps, {})(x)
    at, moved = ({k: v.unsqueeze(1) + h * steps[k] for k, v in centre.items()} for h in (0.0, 1e-6))
    slope = (network(moved, x) - network(at, x)) / 1e-6
    torch.testing.assert_close(found, network(at, x) + slope, rtol=1e-4, atol=1e-3)
