"""Moments of linearised networks against Jacobians that torch.func computes whole."""

import pytest
import torch
from torch.func import jacrev

from fvi_core import grams
from fvi_core.linearisation import full_network_moments, last_layer_moments, linearised
from fvi_core.networks import ACTIVATIONS, SLOPED, Linear
from tests.fvi_core import small

POOLED = {**small.CNN, "pool": [1, 1]}
CASES = [(small.TANH, 1), (small.TANH, 3), (small.RELU, 2), (POOLED, 2), (small.CNN, 1)]
R, N = 2, 5


def gaussian(network, dtype=torch.float64):
    """Means and log-variances of a mean-field Gaussian over the weights; both track gradients."""
    flat = small.streams(R, dtype).normal(2, network.n_parameters)
    mean, log_var = network.unflatten(flat[:, 0] * 0.7), network.unflatten(flat[:, 1] - 1)
    return tuple({k: v.contiguous().requires_grad_() for k, v in p.items()} for p in (mean, log_var))


def jacobian(network, parameters, x, names):
    """Values [Q, N] and Jacobian [Q, N, P] of one replica in the parameters of these names."""
    sizes = [network.sizes[name] for name in names]

    def f(flat):
        pieces = flat.split(sizes)
        moved = parameters | {k: p.view(network.shapes[k]) for k, p in zip(names, pieces, strict=True)}
        return network({k: v[None, None] for k, v in moved.items()}, x[None])[0, 0].T

    flat = torch.cat([parameters[name].flatten() for name in names])
    return f(flat), jacrev(f)(flat)


def expected_moments(network, at, mean, log_var, x, names, covariance):
    """f and J S J^T, with J at the parameters ``at`` and S the variances of the named parameters."""
    values, spreads = [], []
    for r in range(len(x)):
        f, j = jacobian(network, {k: v[r] for k, v in at.items()}, x[r], names)
        variance = torch.cat([log_var[name][r].exp().flatten() for name in names])
        spread = (j * variance) @ j.mT
        values.append(f)
        spreads.append(spread if covariance == "full" else spread.diagonal(dim1=-2, dim2=-1))
    return torch.stack(values), torch.stack(spreads)


def gradients(moments, *parameters):
    """Gradients of an arbitrary function of both moments."""
    weights = [torch.linspace(-1, 2, m.numel(), dtype=m.dtype).view_as(m) for m in moments]
    total = sum((w * m).sum() for w, m in zip(weights, moments, strict=True))
    leaves = [v for p in parameters for v in p.values()]
    return torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)


def assert_close(actual, expected, tolerance=1e-9):
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize(("spec", "outputs"), CASES)
def test_full_network_moments_are_those_of_the_jacobian(spec, outputs, covariance):
    network = small.network(spec, outputs)
    (mean, log_var), x = gaussian(network), small.inputs(R, N, small.SHAPES[spec["name"]])
    actual = full_network_moments(network, mean, log_var, x, covariance)
    expected = expected_moments(network, mean, mean, log_var, x, list(network.shapes), covariance)
    assert actual[1].shape == (R, outputs, N) + ((N,) if covariance == "full" else ())
    assert_close(actual, expected)
    assert_close(gradients(actual, mean, log_var), gradients(expected, mean, log_var))


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize(("spec", "outputs"), CASES)
def test_last_layer_moments_are_those_of_the_jacobian_in_the_head(spec, outputs, covariance):
    network = small.network(spec, outputs)
    (mean, log_var), x = gaussian(network), small.inputs(R, N, small.SHAPES[spec["name"]])
    inner = {k: v.contiguous().requires_grad_() for k, v in network.init(small.streams(R, name="inner")).items()}
    head = ["head.weight", "head.bias"]
    at = inner | {k: mean[k] for k in head}
    actual = last_layer_moments(network, inner, mean, log_var, x, covariance)
    expected = expected_moments(network, at, mean, log_var, x, head, covariance)
    assert actual[1].shape == (R, outputs, N) + ((N,) if covariance == "full" else ())
    assert_close(actual, expected)
    assert_close(gradients(actual, inner, mean, log_var), gradients(expected, inner, mean, log_var))


FIELD = {"name": "vector_field", "hidden": [4, 3]}


def joint_of(network, at, mean, log_var, x, names):
    """f and J S J^T of all outputs at all inputs, the outputs of one input together."""
    values, spreads = [], []
    for r in range(len(x)):
        f, j = jacobian(network, {k: v[r] for k, v in at.items()}, x[r], names)
        j = j.movedim(0, 1).flatten(0, 1)
        values.append(f.mT.flatten())
        spreads.append((j * torch.cat([log_var[name][r].exp().flatten() for name in names])) @ j.mT)
    return torch.stack(values)[:, None], torch.stack(spreads)[:, None]


@pytest.mark.parametrize(("spec", "outputs"), [(small.TANH, 3), (POOLED, 2), (FIELD, 2)])
def test_joint_moments_are_those_of_the_jacobian_of_all_outputs(spec, outputs):
    shape = small.SHAPES[spec["name"]]
    network, x = small.network(spec, outputs, shape), small.inputs(R, N, shape)
    mean, log_var = gaussian(network)
    actual = full_network_moments(network, mean, log_var, x, "joint")
    expected = joint_of(network, mean, mean, log_var, x, list(network.shapes))
    assert actual[1].shape == (R, 1, outputs * N, outputs * N)
    assert_close(actual, expected)
    assert_close(gradients(actual, mean, log_var), gradients(expected, mean, log_var))
    inner, head = network.init(small.streams(R, name="inner")), list(network.head.shapes)
    actual = last_layer_moments(network, inner, mean, log_var, x, "joint")
    assert_close(actual, joint_of(network, inner | {k: mean[k] for k in head}, mean, log_var, x, head))


@pytest.mark.parametrize("spec", [small.TANH, POOLED])
def test_moments_in_float32_are_good_to_five_digits(spec):
    network = small.network(spec)
    x = small.inputs(R, N, small.SHAPES[spec["name"]])
    exact = gaussian(network)
    rounded = [{k: v.detach().float().requires_grad_() for k, v in p.items()} for p in exact]
    expected = expected_moments(network, exact[0], *exact, x, list(network.shapes), "full")
    actual = full_network_moments(network, *rounded, x.float(), "full")
    assert_close([a.double() for a in actual], expected, 1e-5)


@pytest.mark.parametrize("way", [grams._RowsGram, grams._SharedGram])
def test_grams_of_linear_layers_are_those_of_their_jacobians(way):
    a, delta, log_var = (
        small.streams(R, name=f"gram {shape}").normal(*shape).requires_grad_() for shape in ((5, 3), (2, 5, 4), (3, 4))
    )
    rows = torch.einsum("rni,rqnj,rij->rqnij", a, delta, (0.5 * log_var).exp()).flatten(3)
    torch.testing.assert_close(way.apply(a, delta, log_var), rows @ rows.mT)
    assert torch.autograd.gradcheck(way.apply, (a, delta, log_var))


@pytest.mark.parametrize("points", [3, 5])
def test_few_inputs_share_their_products_between_outputs(monkeypatch, points):
    used = []
    for way in (grams._RowsGram, grams._SharedGram):
        monkeypatch.setattr(way, "forward", lambda *a, w=way, f=way.forward: used.append(w) or f(*a))
    network = small.network({**small.TANH, "hidden": [4]}, 3)
    full_network_moments(network, *gaussian(network), small.inputs(R, points))
    assert used == [grams._SharedGram if points == 3 else grams._RowsGram]  # two features and the bias make three


@pytest.mark.parametrize("spec", [small.TANH, POOLED])
def test_layers_in_blocks_are_the_layers(monkeypatch, spec):
    network, points = small.network(spec), 7
    (mean, log_var), x = gaussian(network), small.inputs(R, points, small.SHAPES[spec["name"]])
    whole = full_network_moments(network, mean, log_var, x)
    whole_gradients = gradients(whole, mean, log_var)
    blocks = []
    monkeypatch.setattr(grams, "_rows", lambda *a, f=grams._rows: blocks.append(a[0].shape[-1]) or f(*a))
    monkeypatch.setattr(grams, "BLOCK", 1)
    monkeypatch.setattr(grams, "TILE", 3)
    blocked = full_network_moments(network, mean, log_var, x)
    units = sum(x.inputs + 1 for x in network.parametrised[:-1] if isinstance(x, Linear))
    assert blocks == [1] * (R * network.n_outputs * units)
    assert_close(blocked, whole, 1e-12)
    assert_close(gradients(blocked, mean, log_var), whole_gradients, 1e-12)


@pytest.mark.parametrize("activation", SLOPED)
def test_slopes_are_those_of_autograd(activation):
    z = small.inputs(1, 20).flatten().requires_grad_()
    gradient = torch.linspace(-1, 2, len(z), dtype=z.dtype).requires_grad_()
    a = ACTIVATIONS[activation](z)
    (expected,) = torch.autograd.grad(a, z, gradient, create_graph=True)
    actual = SLOPED[activation](gradient, z, a)
    assert torch.equal(actual, expected)
    ends = (torch.autograd.grad(made.square().sum(), (gradient, z), retain_graph=True) for made in (actual, expected))
    assert_close(*ends, 1e-12)


@pytest.mark.parametrize("hidden", [[], [4], [4, 3, 5]])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "joint"])
@pytest.mark.parametrize("activation", SLOPED)
def test_outputs_of_a_perceptron_are_differentiated_as_those_of_any_network(hidden, activation, covariance):
    network = small.network({"name": "mlp", "hidden": hidden, "activation": activation}, 3)
    (mean, log_var), x = gaussian(network), small.inputs(R, N)
    assert network.perceptron
    actual = full_network_moments(network, mean, log_var, x, covariance)
    network.perceptron = False
    expected = full_network_moments(network, mean, log_var, x, covariance)
    assert_close(actual, expected, 1e-12)
    assert_close(gradients(actual, mean, log_var), gradients(expected, mean, log_var), 1e-11)


@pytest.mark.parametrize(("samples", "hidden"), [(1, [4, 3]), (3, [4, 3]), (3, []), (1, [])])
@pytest.mark.parametrize("activation", SLOPED)
def test_linearised_perceptrons_are_those_of_forward_mode_differentiation(activation, samples, hidden):
    network = small.network({"name": "mlp", "hidden": hidden, "activation": activation})
    for replicas, dtype in ((1, torch.float32), (R, torch.float32), (1, torch.float64)):
        draws = small.streams(replicas, dtype)
        centre = {name: draws.normal(*shape).requires_grad_() for name, shape in network.shapes.items()}
        steps = {name: draws.normal(samples, *shape).requires_grad_() for name, shape in network.shapes.items()}
        x, made = small.inputs(replicas, N, dtype=dtype), []
        for network.perceptron in (True, False):
            f = linearised(network, centre, steps, {})(x)
            made.append([f, *gradients([f], centre, steps)])
        assert activation == "gelu" or torch.equal(made[0][0], made[1][0])
        assert_close(*made, 1e-12 if dtype == torch.float64 else 1e-5)


def test_a_stopped_jacobian_has_the_same_moments_and_no_gradient_in_the_mean_through_the_covariance():
    network = small.network(small.TANH)
    (mean, log_var), x = gaussian(network), small.inputs(R, N)
    for covariance in ("full", "diagonal"):
        free = full_network_moments(network, mean, log_var, x, covariance)
        held = full_network_moments(network, mean, log_var, x, covariance, stop_gradient=True)
        assert_close(held, free, 0)
        assert all(g.abs().max() == 0 for g in gradients(held[1:], mean))
        assert_close(gradients(held[:1], mean), gradients(free[:1], mean))
        assert_close(gradients(held[1:], log_var), gradients(free[1:], log_var))


def test_moments_are_there_without_gradients_too():
    network = small.network(small.TANH)
    (mean, log_var), x = gaussian(network), small.inputs(R, N)
    expected = [m.detach() for m in full_network_moments(network, mean, log_var, x)]
    with torch.no_grad():
        actual = full_network_moments(network, mean, log_var, x)
    assert not any(m.requires_grad for m in actual)
    assert_close(actual, expected, 0)


@pytest.mark.parametrize("spec", [small.TANH, POOLED, FIELD])
def test_replicas_together_are_bitwise_the_same_as_alone(spec):
    shape = small.SHAPES[spec["name"]]
    network, x = small.network(spec, 2, shape), small.inputs(R, N, shape)
    mean, log_var = gaussian(network)
    for moments in (
        lambda m, v, z: full_network_moments(network, m, v, z),
        lambda m, v, z: full_network_moments(network, m, v, z, "joint"),
        lambda m, v, z: last_layer_moments(network, m, m, v, z),
        lambda m, v, z: last_layer_moments(network, m, m, v, z, "joint"),
    ):
        together = moments(mean, log_var, x)
        for r in range(R):
            alone = moments(small.one(mean, r), small.one(log_var, r), x[r : r + 1])
            assert all(torch.equal(a, t[r : r + 1]) for a, t in zip(alone, together, strict=True))
