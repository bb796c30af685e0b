"""Gradients through Jacobians of modules against finite differences: of linearised functions, of their variances."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fvi_core.linearisation import full_network_moments, linearised
from fvi_core.networks import ModuleNetwork
from fvi_core.random import Streams

R, S, N, STEP = 2, 3, 4, 1e-6


class Body(nn.Module):
    """Layers over points [N, 6, 3] or [N, 6], their mean over the middle axis if there is one, and a linear head."""

    def __init__(self, *layers: nn.Module, features: int = 8):
        super().__init__()
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(features, 2)

    def forward(self, x: Tensor) -> Tensor:
        phi = self.layers(x)
        return self.head(phi if phi.dim() == 2 else phi.mean(1))


MODULES = {
    "linear": (lambda: Body(nn.Linear(6, 8), nn.Tanh()), (6,)),
    "layer norm": (lambda: Body(nn.Linear(6, 8), nn.LayerNorm(8), nn.Tanh()), (6,)),
    "layer norm of tokens": (lambda: Body(nn.Linear(3, 8), nn.LayerNorm(8, bias=False), nn.Tanh()), (6, 3)),
    "instance norm": (lambda: Body(nn.Linear(3, 8), nn.InstanceNorm1d(6, affine=True), nn.Tanh()), (6, 3)),
    "transformer": (
        lambda: Body(nn.Linear(3, 8), nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)),
        (6, 3),
    ),
}


@pytest.fixture(params=MODULES)
def case(request):
    """A network in float64, means, another direction for each, and inputs."""
    make, shape = MODULES[request.param]
    torch.manual_seed(0)
    network, x = ModuleNetwork(make, torch.randn(N, *shape)), torch.randn(R, N, *shape, dtype=torch.float64)
    start = network.init(Streams(list(range(R)), dtype=torch.float64))
    mean = {name: value.double() + 0.1 * torch.randn_like(value.double()) for name, value in start.items()}
    return network, mean, {name: torch.randn_like(value) for name, value in mean.items()}, x


def check(value, mean, direction):
    """Compare the derivative of ``value`` along a direction of the means with a central difference."""
    here, above, below = (
        {name: (each + step * direction[name]).requires_grad_() for name, each in mean.items()}
        for step in (0.0, STEP, -STEP)
    )
    found = torch.autograd.grad(value(here), list(here.values()), allow_unused=True, materialize_grads=True)
    ours = sum((each * along).sum() for each, along in zip(found, direction.values(), strict=True))
    difference = (value(above) - value(below)).detach() / (2 * STEP)
    torch.testing.assert_close(ours.detach(), difference, rtol=1e-5, atol=1e-5)


def test_linearised_functions(case):
    network, mean, direction, x = case
    steps = {name: torch.randn(R, S, *value.shape[1:], dtype=torch.float64) for name, value in mean.items()}
    weights = torch.randn(R, S, N, 2, dtype=torch.float64)
    check(lambda at: (linearised(network, at, steps, {})(x) * weights).sum(), mean, direction)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_variances_of_the_linearised_network(case, covariance):
    network, mean, direction, x = case
    log_var = {name: torch.full_like(value, -1.0) for name, value in mean.items()}

    def value(at):
        f, cov = full_network_moments(network, at, log_var, x, covariance)
        return f.sum() + (cov * weights[: cov.numel()].view_as(cov)).sum()

    weights = torch.randn(R * 2 * N * N, dtype=torch.float64)
    check(value, mean, direction)


class Own(nn.Module):
    """A layer with a parameter of its own, which no layer of the package is."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(6))

    def reset_parameters(self) -> None:
        nn.init.ones_(self.scale)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x * self.scale)


def test_stopped_gradients_reach_no_mean_through_any_module():
    torch.manual_seed(0)
    network = ModuleNetwork(lambda: Body(Own(), nn.Linear(6, 8), nn.Tanh()), torch.randn(N, 6))
    x = torch.randn(R, N, 6, dtype=torch.float64)
    start = network.init(Streams(list(range(R)), dtype=torch.float64))
    mean = {name: value.double().requires_grad_() for name, value in start.items()}
    log_var = {name: torch.full_like(value, -1.0).detach().requires_grad_() for name, value in mean.items()}
    _, variance = full_network_moments(network, mean, log_var, x, "diagonal", stop_gradient=True)
    found = torch.autograd.grad(variance.sum(), [*mean.values(), *log_var.values()], allow_unused=True)
    assert all(each is None or not each.any() for each in found[: len(mean)])
    assert all(each is not None and each.any() for each in found[len(mean) :])
