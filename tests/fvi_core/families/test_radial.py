"""Radial weights: the contract, closed-form moments, and a divergence that is Gaussian in one dimension."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.distributions import Normal, kl_divergence

from fvi_core.families.base import NotSupported
from fvi_core.families.radial import unit_entropy
from fvi_core.registry import FAMILIES
from tests.fvi_core import small
from tests.fvi_core.contracts import FamilyContract, R
from tests.fvi_core.networks.test_residual import tiny

WEIGHTS = {"name": "gaussian_weights", "variance": 0.7}


class TestRadial(FamilyContract):
    spec = {"name": "radial", "rho_init": -1.0}

    def test_draws_have_the_moments_and_the_radius_of_the_definition(self):
        family, network, parameters, samples = self.family(), self.network(), self.parameters(), 20000
        drawn = family.weights(network, parameters, samples, small.streams(R))
        for layer in network.parametrised:
            size = sum(network.sizes[name] for name in layer.shapes)
            unit = []
            for name in layer.shapes:
                std = F.softplus(parameters[f"rho/{name}"]).unsqueeze(1)
                unit.append(((drawn[name] - parameters[f"mean/{name}"].unsqueeze(1)) / std).flatten(2))
                mean, expected = drawn[name].mean(1), parameters[f"mean/{name}"]
                assert ((mean - expected).abs() < 5 * std.squeeze(1) / math.sqrt(size * samples)).all()
                # E[(eps_i / |eps|)^2 r^2] = 1 / size
                torch.testing.assert_close(drawn[name].var(1), std.squeeze(1).square() / size, rtol=0.12, atol=0)
            radius = torch.cat(unit, -1).norm(dim=-1)
            assert radius.mean(1).tolist() == pytest.approx([math.sqrt(2 / math.pi)] * R, rel=0.03)
            assert radius.square().mean(1).tolist() == pytest.approx([1.0] * R, rel=0.05)
            assert (radius > 1.64485).double().mean().item() == pytest.approx(0.1, abs=0.01)

    def test_each_layer_has_a_radius_of_its_own(self):
        family, network, parameters = self.family(), self.network(), self.parameters()
        drawn = family.weights(network, parameters, 5000, small.streams(R))
        names = ("hidden0.weight", "head.weight")
        steps = [(drawn[name] - parameters[f"mean/{name}"].unsqueeze(1)).flatten(2).norm(dim=-1) for name in names]
        for r in range(R):
            assert torch.corrcoef(torch.stack([step[r] for step in steps]))[0, 1].abs() < 0.06


class TestRadialHidden(FamilyContract):
    spec = {"name": "radial", "rho_init": -1.0, "layers": "hidden"}

    def test_the_last_layer_and_normalisation_are_points(self):
        for network in (self.network(), tiny()):
            parameters = self.family().init(network, small.streams(R))
            drawn = self.family().weights(network, parameters, 3, small.streams(R))
            varies = {name for name in network.shapes if not torch.equal(drawn[name][:, 0], drawn[name][:, 1])}
            expected = {
                name
                for layer in network.parametrised
                if layer is not network.head
                for name in layer.shapes
                if not name.endswith((".scale", ".shift"))
            }
            assert varies == expected == {k.removeprefix("rho/") for k in parameters if k.startswith("rho/")}

    def test_a_network_without_hidden_layers_is_refused(self):
        with pytest.raises(NotSupported, match="layers 'hidden': the network has none"):
            self.family().init(small.network({**small.TANH, "hidden": []}), small.streams(R))


def kl(parameters, network, samples=20000, **options):
    family = FAMILIES.build({"name": "radial", **options})
    draw = family.functions(network, parameters, samples, small.streams(1))
    return family.weight_kl(network, parameters, 0.0, 0.7, draw), draw


def test_the_unit_entropy_in_one_dimension_is_that_of_a_normal_number():
    assert unit_entropy(1) == pytest.approx(0.5 * math.log(2 * math.pi * math.e), rel=1e-12)


@pytest.mark.parametrize("size", [2, 3, 7])
def test_the_unit_entropy_is_that_of_the_density(size):
    """In polar coordinates: minus the mean of log p(|r|) - log(A |r|^(size - 1)), by quadrature over the radius."""
    log_radius = torch.linspace(-30, 3, 20_001, dtype=torch.float64)
    radius = log_radius.exp()
    density = 2 * torch.exp(Normal(0.0, 1.0).log_prob(radius))
    area = 2 * math.pi ** (size / 2) / math.gamma(size / 2)
    log_density = density.clamp_min(1e-300).log() - math.log(area) - (size - 1) * radius.log()
    expected = -torch.trapezoid(density * log_density * radius, log_radius).item()
    assert unit_entropy(size) == pytest.approx(expected, rel=1e-6)


def test_the_divergence_is_the_mean_of_log_q_over_p():
    network = small.network({"name": "mlp", "hidden": []}, 1)  # one layer of three parameters
    family = FAMILIES.build({"name": "radial", "rho_init": -0.5})
    parameters = {k: v + 0.3 for k, v in family.init(network, small.streams(1)).items()}
    value, draw = kl(parameters, network)
    w = network.flatten(draw.parameters)
    mean, std = (network.flatten({k: parameters[p + k] for k in network.shapes}) for p in ("mean/", "rho/"))
    std = F.softplus(std)
    radius = ((w - mean.unsqueeze(1)) / std.unsqueeze(1)).norm(dim=-1)
    log_unit = (2 * Normal(0.0, 1.0).log_prob(radius).exp() / (4 * math.pi * radius.square())).log()
    log_q = log_unit - std.log().sum(1, keepdim=True)
    log_p = Normal(0.0, 0.7**0.5).log_prob(w).sum(-1)
    torch.testing.assert_close(value, (log_q - log_p).mean(1), rtol=0.02, atol=0.02)


def test_the_gaussian_divergence_is_that_of_torch_distributions_over_the_drawn_layers():
    network = small.network()
    options = {"layers": "hidden", "kl": "gaussian", "rho_init": -1.0}
    parameters = FAMILIES.build({"name": "radial", **options}).init(network, small.streams(1))
    value, _ = kl(parameters, network, samples=1, **options)
    names = [k for k in network.shapes if not k.startswith("head")]
    prior = Normal(torch.zeros((), dtype=torch.float64), 0.7**0.5)
    drawn = [Normal(parameters[f"mean/{name}"], F.softplus(parameters[f"rho/{name}"])) for name in names]
    expected = sum(kl_divergence(q, prior).sum() for q in drawn)
    torch.testing.assert_close(value, expected.view(1), rtol=1e-10, atol=0)


def test_the_tied_divergence_is_the_mean_of_log_q_over_a_prior_about_the_means():
    """One layer of 2 inputs: log q as above, p = N(m, gain / 2)."""
    network, gain = small.network({"name": "mlp", "hidden": []}, 1), 0.6
    family = FAMILIES.build({"name": "radial", "rho_init": -0.5})
    parameters = {k: v + 0.3 for k, v in family.init(network, small.streams(1)).items()}
    _, draw = kl(parameters, network)
    step = network.flatten(draw.parameters) - network.flatten({k: parameters["mean/" + k] for k in network.shapes})
    std = F.softplus(network.flatten({k: parameters["rho/" + k] for k in network.shapes}))
    radius = (step / std.unsqueeze(1)).norm(dim=-1)
    log_unit = (2 * Normal(0.0, 1.0).log_prob(radius).exp() / (4 * math.pi * radius.square())).log()
    log_q = log_unit - std.log().sum(1, keepdim=True)
    expected = (log_q - Normal(0.0, (gain / 2) ** 0.5).log_prob(step).sum(-1)).mean(1)
    torch.testing.assert_close(family.tied_weight_kl(network, parameters, gain), expected, rtol=0.02, atol=0.02)
    parameters["mean/head.weight"] += 1.0
    torch.testing.assert_close(family.tied_weight_kl(network, parameters, gain), expected, rtol=0.02, atol=0.02)


def test_weighted_layers_are_all_but_normalisation():
    network = tiny()
    parameters = FAMILIES.build({"name": "radial", "layers": "weighted"}).init(network, small.streams(1))
    drawn = {k.removeprefix("rho/") for k in parameters if k.startswith("rho/")}
    assert drawn == {k for k in network.shapes if not k.endswith((".scale", ".shift"))}


def test_the_divergence_uses_the_likelihoods_draw():
    family = {"name": "radial", "rho_init": -1.0}
    model = small.model({"family": family, "divergence": {"name": "weight_kl"}, "prior": WEIGHTS})
    parameters = {k: v.requires_grad_() for k, v in model.family.init(model.network, small.streams(R)).items()}
    step = small.step(model, parameters, small.training_data(R), small.streams(R), 4)
    value = model.divergence(step)
    expected = model.family.weight_kl(model.network, parameters, 0.0, 0.7, step.functions)
    assert torch.equal(value, expected)
    gradients = torch.autograd.grad(value.sum(), list(parameters.values()))
    assert all(torch.isfinite(g).all() and g.abs().max() > 0 for g in gradients)
    step.functions = None
    with pytest.raises(NotSupported, match="needs its drawn networks"):
        model.divergence(step)


def test_options_are_checked():
    with pytest.raises(ValueError, match="layers 'convs' is not known; known: all, hidden, weighted"):
        FAMILIES.build({"name": "radial", "layers": "convs"})
