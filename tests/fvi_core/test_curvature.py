"""Gradients layer by layer, and roots of second derivatives, against automatic differentiation."""

import pytest
import torch
from torch.func import hessian, jacrev

from fvi_core import curvature
from fvi_core.curvature import as_matrix, from_matrix, inputs_at_once, jacobian, record, weights
from fvi_core.likelihoods import Categorical, Gaussian
from tests.fvi_core import small
from tests.fvi_core.networks.test_residual import SHAPE, tiny

N = 5
NETWORKS = {
    "mlp": (small.network(small.TANH, 2), (2,)),
    "cnn": (small.network({**small.CNN, "pool": [1, 1]}, 3), (2, 4, 4)),
    "valid convolution": (small.network({**small.CNN, "padding": 0, "pool": [0, 0]}, 2, (2, 6, 6)), (2, 6, 6)),
    "residual": (tiny(), SHAPE),
}
every = pytest.mark.parametrize("name", NETWORKS)


def case(name):
    """A network, its parameters and running statistics without axes for replicas, and inputs."""
    network, shape = NETWORKS[name]
    flat = small.streams(1).normal(network.n_parameters)[0] * 0.7
    statistics = {k: v[0] + 0.3 for k, v in network.init_buffers(small.streams(1)).items()}
    return network, network.unflatten(flat) | statistics, small.inputs(1, N, shape)[0]


def all_columns(network):
    return {name: torch.arange(size) for name, size in network.sizes.items()}


def expected_jacobian(network, parameters, x):
    """[N, Q, P]"""
    kept = {k: v for k, v in parameters.items() if k in network.buffers}

    def f(flat):
        own = network.unflatten(flat) | kept
        return network({k: v[None, None] for k, v in own.items()}, x[None])[0, 0]

    return jacrev(f)(network.flatten(parameters))


@every
def test_gradients_are_rows_of_the_jacobian(name):
    network, parameters, x = case(name)
    expected, recorded = expected_jacobian(network, parameters, x), record(network, parameters, x)
    direction = small.streams(1, name="direction").normal(N, network.n_outputs)[0]
    actual = jacobian(network, recorded.gradients(direction), all_columns(network))
    torch.testing.assert_close(actual, torch.einsum("nq,nqp->np", direction, expected), rtol=1e-9, atol=1e-10)
    assert not actual.requires_grad and not any(value.requires_grad for value in parameters.values())


@every
def test_some_columns_are_those_of_all(name):
    network, parameters, x = case(name)
    gradients = record(network, parameters, x).gradients(torch.ones(N, network.n_outputs, dtype=torch.float64))
    whole, index = jacobian(network, gradients, all_columns(network)), torch.arange(1, network.n_parameters, 3)
    chosen, start = {}, 0
    for parameter, size in network.sizes.items():
        inside = index[(index >= start) & (index < start + size)] - start
        chosen |= {parameter: inside} if len(inside) else {}
        start += size
    assert torch.equal(jacobian(network, gradients, chosen), whole[:, index])


@every
def test_squares_and_quadratic_forms_are_those_of_the_values(name):
    network, parameters, x = case(name)
    direction = small.streams(1, name="direction").normal(N, network.n_outputs)[0]
    layers = weights(network)
    for parameter, gradient in record(network, parameters, x).gradients(direction).items():
        values = gradient.values()
        shape = as_matrix(layers[parameter], parameters[parameter]).shape if parameter in layers else values.shape[1:]
        assert values.shape == (N, *shape)
        torch.testing.assert_close(gradient.squares(), values.square().sum(0))
        weight = torch.linspace(1, 2, values[0].numel(), dtype=torch.float64).view(shape)
        torch.testing.assert_close(gradient.quadratic(weight), (values.square() * weight).flatten(1).sum(1))
        if parameter in layers:
            left, right = (torch.linalg.qr(small.streams(1).normal(n, n)[0]).Q for n in shape)
            torch.testing.assert_close(gradient.rotated(left, right).values(), left.mT @ values @ right)
            matrix = as_matrix(layers[parameter], parameters[parameter])
            assert torch.equal(from_matrix(layers[parameter], matrix), parameters[parameter])


@every
def test_the_last_layer_alone_is_that_of_the_whole(name):
    network, parameters, x = case(name)
    ones = torch.ones(N, network.n_outputs, dtype=torch.float64)
    whole, head = record(network, parameters, x), record(network, parameters, x, head=True)
    assert torch.equal(whole.outputs, head.outputs)
    found = head.gradients(ones)
    assert list(found) == list(network.head.shapes)
    for parameter, gradient in found.items():
        torch.testing.assert_close(gradient.values(), whole.gradients(ones)[parameter].values())


@pytest.mark.parametrize("head", [False, True])
def test_gradients_may_be_differentiated_in_the_inputs(head):
    network, parameters, x = case("mlp")
    columns = {name: torch.arange(network.sizes[name]) for name in (network.head.shapes if head else network.shapes)}

    def squares(inputs):
        gradients = record(network, parameters, inputs, head).gradients(torch.ones(N, 2, dtype=torch.float64))
        return jacobian(network, gradients, columns).square().sum()

    actual = torch.autograd.grad(squares(x.requires_grad_()), x)[0]
    x = x.detach()
    for place in ((0, 0), (3, 1)):
        step = torch.zeros_like(x)
        step[place] = 1e-6
        slope = (squares(x + step) - squares(x - step)) / 2e-6
        torch.testing.assert_close(actual[place], slope, rtol=1e-6, atol=1e-6)


def test_pieces_are_bounded(monkeypatch):
    network = NETWORKS["mlp"][0]
    monkeypatch.setattr(curvature, "BLOCK", 100)
    assert [inputs_at_once(network, n) for n in (1, 10, 1000)] == [100 // network.width, 10, 1]


@pytest.mark.parametrize("likelihood", [Gaussian(init_std=0.3), Categorical()], ids=["gaussian", "categorical"])
def test_roots_are_of_second_derivatives(likelihood):
    f, params = small.streams(2).normal(3, N, 4), likelihood.init(2, torch.float64)
    root = likelihood.curvature_root(params, f)
    vectors = isinstance(likelihood, Gaussian)
    y = f[:, 0] + 1 if vectors else torch.arange(2 * N).view(2, N) % 4
    for r, s, n in ((0, 0, 0), (1, 2, 4)):
        alone = {name: value[r : r + 1] for name, value in params.items()}
        second = hessian(lambda z: likelihood.log_prob(alone, z[None, None, None], y[r : r + 1, n : n + 1]).sum())
        torch.testing.assert_close(root[r, s, n] @ root[r, s, n].mT, -second(f[r, s, n]), rtol=1e-9, atol=1e-12)


def test_a_likelihood_without_a_root_says_so():
    class Other(Gaussian):
        name = "other"
        curvature_root = Gaussian.__mro__[1].curvature_root

    with pytest.raises(NotImplementedError, match="likelihood 'other' has no root of its second derivative"):
        Other().curvature_root({}, torch.zeros(1, 1, 1, 1))
    with pytest.raises(NotImplementedError, match="'categorical' with class_weights has no root of its second"):
        Categorical(class_weights="batch").curvature_root({}, torch.zeros(1, 1, 1, 2))
