"""Vector fields that are derivatives of networks, against derivatives that autograd takes."""

import pytest
import torch
from torch.func import jacrev

from fvi_core.networks.field import SLOPES
from fvi_core.registry import FAMILIES, NETWORKS
from tests.fvi_core import small
from tests.fvi_core.test_linearisation import assert_close, expected_moments, gaussian, gradients

R, S, N = 2, 3, 5
FIELD = {"name": "vector_field", "hidden": [4, 3]}
WIDE = {"name": "mean_field", "log_var_init": [-3.0, -1.0]}
FAMILY = [
    {"name": "point"},
    WIDE,
    {**WIDE, "name": "linearised_mean_field"},
    {"name": "dropout", "rate": 0.4, "masks": "function"},
    {"name": "ensemble", "base": WIDE, "size": 3, "joint": True},
    {"name": "hypernetwork", "latent": 3, "hidden": [6]},
    {"name": "radial"},
    {"name": "rank1", "size": 3},
]


def made(field="helmholtz", features=2, **options):
    return NETWORKS.build({**FIELD, "field": field, **options}).build((features,), features)


def potential(weights, name, x, activation="tanh"):
    """One scalar network of one replica and sample, written out, at x [D]."""
    a = x
    for i in range(2):
        a = getattr(torch.nn.functional, activation)(a @ weights[f"{name}{i}.weight"] + weights[f"{name}{i}.bias"])
    head = weights["head.weight"][:, 0]
    own = head[-3:] if name == "stream" else head[:3]
    return a @ own


@pytest.mark.parametrize("activation", SLOPES)
@pytest.mark.parametrize("field", ["helmholtz", "curl_free", "divergence_free"])
def test_values_are_gradients_and_rotated_gradients_by_autograd(field, activation):
    network, x = made(field, activation=activation), small.inputs(R, N)
    drawn = network.unflatten(small.streams(R).normal(S, network.n_parameters))
    f = network(drawn, x)
    for r in range(R):
        for s in range(S):
            weights, total = {k: v[r, s] for k, v in drawn.items()}, torch.zeros(N, 2).double()
            for name, kind in (("potential", "curl_free"), ("stream", "divergence_free")):
                if field in ("helmholtz", kind):
                    slope = torch.stack([jacrev(lambda z: potential(weights, name, z, activation))(z) for z in x[r]])
                    total += slope if kind == "curl_free" else slope.flip(-1) * torch.tensor([1.0, -1.0])
            torch.testing.assert_close(f[r, s], total, rtol=1e-10, atol=1e-10)


def slopes(functions, x):
    """d f_i / d x_j of every function at every input, [R, S, N, i, j]."""
    x = x.clone().requires_grad_()
    f = functions(x)
    rows = []
    for i in range(f.shape[-1]):
        each = [torch.autograd.grad(f[:, s, :, i].sum(), x, retain_graph=True)[0] for s in range(f.shape[1])]
        rows.append(torch.stack(each, dim=1))
    return torch.stack(rows, dim=-2)


@pytest.mark.parametrize("spec", FAMILY, ids=lambda spec: spec["name"])
def test_functions_of_every_family_have_no_curl_or_no_divergence(spec):
    x = small.inputs(R, N)
    for field in ("curl_free", "divergence_free"):
        network, family = made(field), FAMILIES.build(spec)
        parameters = family.init(network, small.streams(R))
        own = {k: v + 0.3 * small.streams(R, name=k).normal(*v.shape[1:]) for k, v in parameters.items()}
        found = slopes(family.functions(network, own, S, small.streams(R)), x)
        curl, divergence = found[..., 0, 1] - found[..., 1, 0], found[..., 0, 0] + found[..., 1, 1]
        none, some = (curl, divergence) if field == "curl_free" else (divergence, curl)
        assert none.abs().max() < 1e-12 * some.abs().max() and some.abs().max() > 1e-3


def test_a_curl_free_field_may_have_any_dimension():
    network = made("curl_free", 3)
    drawn = network.unflatten(small.streams(R).normal(S, network.n_parameters))
    found = slopes(lambda x: network(drawn, x), small.inputs(R, N, (3,)))
    torch.testing.assert_close(found, found.mT, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("field", ["helmholtz", "curl_free", "divergence_free"])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_moments_are_those_of_the_jacobian(field, covariance):
    from fvi_core.linearisation import full_network_moments, last_layer_moments

    network, x = made(field), small.inputs(R, N)
    (mean, log_var), inner = gaussian(network), network.init(small.streams(R, name="inner"))
    actual = full_network_moments(network, mean, log_var, x, covariance)
    expected = expected_moments(network, mean, mean, log_var, x, list(network.shapes), covariance)
    assert_close(actual, expected)
    assert_close(gradients(actual, mean, log_var), gradients(expected, mean, log_var))
    actual = last_layer_moments(network, inner, mean, log_var, x, covariance)
    at = inner | {"head.weight": mean["head.weight"]}
    assert_close(actual, expected_moments(network, at, mean, log_var, x, ["head.weight"], covariance))


def test_options_and_shapes_are_checked():
    for wrong, message in (
        ({"field": "curlfree"}, "field 'curlfree' is not known; did you mean 'curl_free'"),
        (
            {"activation": "relu"},
            "expected one of tanh, sigmoid, softplus, gelu, and a hidden layer or more, found 'relu'",
        ),
        ({"hidden": []}, "and a hidden layer or more"),
    ):
        with pytest.raises(ValueError, match=message):
            NETWORKS.build(FIELD | wrong)
    for field, shape, outputs in (("curl_free", (2,), 1), ("helmholtz", (3,), 3), ("helmholtz", (1, 2), 2)):
        with pytest.raises(
            ValueError, match="'vector_field': expected inputs.* and as many numbers in a target, found"
        ):
            NETWORKS.build({**FIELD, "field": field}).build(shape, outputs)
