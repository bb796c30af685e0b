"""Modules whose weights are drawn from a Laplace approximation, against the Gaussian written out in full."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, jacrev

import fvi_core as fvi
from fvi_core.families.base import NotSupported

DELTA, COUNT = 2.0, 3000
STRUCTURES = ("full", "diagonal", "kronecker", "last_layer")


def flat(module):
    return torch.cat([value.detach().flatten() for value in module.parameters()]).double()


@pytest.fixture(scope="module")
def trained():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))
    x = torch.randn(30, 2)
    return net, x, (x.sum(1) > 0).long()


def precision(net, x, structure):
    """The generalised Gauss-Newton matrix of a structure plus DELTA, of the weights in PyTorch's order."""
    weights, x = {name: value.detach().double() for name, value in net.named_parameters()}, x.double()
    jacobians = jacrev(lambda w: functional_call(net, w, (x,)))(weights)
    j = torch.cat([value.flatten(2) for value in jacobians.values()], dim=2)  # [N, Q, P]
    p = functional_call(net, weights, (x,)).softmax(-1)
    second = torch.diag_embed(p) - p[:, :, None] * p[:, None]
    whole = torch.einsum("nap,nab,nbq->pq", j, second, j)
    if structure == "diagonal":
        whole = whole.diagonal().diag()
    if structure == "kronecker":
        hidden = torch.tanh(x @ weights["0.weight"].mT + weights["0.bias"])
        blocks = []
        for layer, a in (("0", x), ("2", hidden)):
            d = jacobians[f"{layer}.bias"]
            b = torch.einsum("nai,nab,nbj->ij", d, second, d)
            blocks += [torch.kron(b, a.mT @ a / len(a)), b]
        whole = torch.block_diag(*blocks)
    return whole + DELTA * torch.eye(len(whole), dtype=torch.float64)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_weights_of_many_modules_have_the_covariance_of_the_approximation(structure, trained):
    net, x, y = trained
    posterior = fvi.fit(net, (x, y), "laplace", fit={"structure": structure, "precision": DELTA}, progress=False)
    steps = torch.stack([flat(module) for module in posterior.modules(COUNT)]) - flat(net)
    whole = precision(net, x, structure)
    first = 9 if structure == "last_layer" else 0
    assert not steps[:, :first].any()
    expected = torch.linalg.inv(whole[first:, first:])
    scale, steps = expected.diagonal().sqrt(), steps[:, first:]
    assert (steps.mean(0) / scale).abs().max() < 5 / COUNT**0.5
    gap = (torch.cov(steps.T) - expected) / scale[:, None] / scale
    assert gap.abs().max() < 5 * (2 / COUNT) ** 0.5


@pytest.mark.parametrize(
    ("structure", "predictive"), [("last_layer", "glm"), ("kronecker", "weights"), ("kronecker", "glm")]
)
def test_modules_are_the_functions_of_predict_unless_these_are_linearised(structure, predictive, trained):
    net, x, y = trained
    options = {"structure": structure, "predictive": predictive, "precision": DELTA}
    posterior = fvi.fit(net, (x, y), "laplace", fit=options, progress=False)
    pairs = list(zip(posterior.modules(3), posterior.predict(x, samples=3).values, strict=True))
    equal = [torch.allclose(module(x), value, rtol=1e-4, atol=1e-5) for module, value in pairs]
    assert equal == [structure == "last_layer" or predictive == "weights"] * 3


def test_a_temperature_has_no_modules(trained):
    net, x, y = trained
    with pytest.raises(NotSupported, match="'temperature' are not the module at drawn weights"):
        fvi.fit(net, (x, y), "temperature", progress=False).modules(2)
