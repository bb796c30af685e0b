"""Rank-1 factors: the contract, explicit weight matrices, and how a batch is dealt out among the members."""

import pytest
import torch
import torch.nn.functional as F
from torch.distributions import Normal, kl_divergence

from fvi_core.contexts import ContextSource
from fvi_core.families.base import NotSupported
from fvi_core.objective import Model
from fvi_core.registry import FAMILIES, PRIORS
from fvi_core.training import Trainer, Training
from tests.fvi_core import small
from tests.fvi_core.contracts import FamilyContract, R
from tests.fvi_core.networks.test_residual import tiny

M = 2
ADAM = {"name": "adam"}


class TestRank1(FamilyContract):
    spec = {"name": "rank1", "size": M, "rho_init": -1.0}

    def test_parameters_of_members_are_explicit_products(self):
        family, network, parameters = self.family(), self.network(), self.parameters()
        drawn = family.weights(network, parameters, 2 * M, small.streams(R))
        factors = family.factors(network, parameters, 2, small.streams(R))
        for layer in network.parametrised:
            inputs, outputs = factors[layer.name]
            assert inputs.shape == (R, 2, M, layer.inputs) and outputs.shape == (R, 2, M, layer.outputs)
            for r in range(R):
                for s in range(2 * M):
                    matrix = torch.outer(inputs[r, s // M, s % M], outputs[r, s // M, s % M])
                    expected = parameters[f"{layer.name}.weight"][r] * matrix
                    torch.testing.assert_close(drawn[f"{layer.name}.weight"][r, s], expected)
                    assert torch.equal(drawn[f"{layer.name}.bias"][r, s], parameters[f"{layer.name}.bias"][r])

    def test_factors_have_the_moments_of_the_parameters(self):
        family, network, parameters = self.family(), self.network(), self.parameters()
        parameters = {k: v + 0.2 * small.streams(R, name=k).normal(*v.shape[1:]) for k, v in parameters.items()}
        for layer, sides in family.factors(network, parameters, 4000, small.streams(R)).items():
            for side, values in zip(("inputs", "outputs"), sides, strict=True):
                std = F.softplus(parameters[f"factor_rho/{layer}.{side}"])
                assert ((values.mean(1) - parameters[f"factor_mean/{layer}.{side}"]).abs() < 5 * std / 4000**0.5).all()
                torch.testing.assert_close(values.std(1), std, rtol=0.06, atol=0)


class TestRank1Signs(FamilyContract):
    spec = {"name": "rank1", "size": 1, "positive": 0.75}

    def test_means_start_at_random_signs(self):
        """Band et al. (2021): random_sign_init .75, the probability of 1."""
        means = [v for k, v in self.parameters().items() if k.startswith("factor_mean/")]
        assert {value.item() for mean in means for value in mean.unique()} == {-1.0, 1.0}
        network = small.network({"name": "mlp", "hidden": [4000]})
        many = self.family().init(network, small.streams(1))["factor_mean/hidden0.outputs"]
        assert (many > 0).double().mean().item() == pytest.approx(0.75, abs=0.03)

    def test_an_impossible_share_is_refused(self):
        with pytest.raises(ValueError, match="positive: expected 0 or more and 1 or less, found 1.5"):
            FAMILIES.build({"name": "rank1", "positive": 1.5})


class TestRank1Hidden(TestRank1):
    spec = {"name": "rank1", "size": M, "rho_init": -1.0, "layers": "hidden"}

    def test_parameters_of_members_are_explicit_products(self):
        drawn = self.family().weights(self.network(), self.parameters(), M, small.streams(R))
        assert torch.equal(drawn["head.weight"][:, 0], drawn["head.weight"][:, 1])
        assert not torch.equal(drawn["hidden0.weight"][:, 0], drawn["hidden0.weight"][:, 1])


def network_and_parameters(kind, layers, size=3):
    network = {"mlp": small.network(), "cnn": small.network(small.CNN), "resnet": tiny()}[kind]
    shape = network.input_shape
    family = FAMILIES.build({"name": "rank1", "size": size, "rho_init": -0.5, "layers": layers})
    parameters = family.init(network, small.streams(R))
    moved = {k: v + 0.1 * small.streams(R, name=k).uniform(*v.shape[1:]) for k, v in parameters.items()}
    return network, shape, family, moved


@pytest.mark.parametrize("layers", ["all", "hidden"])
@pytest.mark.parametrize("kind", ["mlp", "cnn", "resnet"])
def test_functions_are_networks_of_explicit_weights_of_every_kind_of_layer(kind, layers):
    network, shape, family, parameters = network_and_parameters(kind, layers)
    x = small.inputs(R, 5, shape)
    f = family.functions(network, parameters, 6, small.streams(R))(x)
    explicit = network(family.weights(network, parameters, 6, small.streams(R)), x)
    assert f.shape[1] == 6
    torch.testing.assert_close(f, explicit, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
@pytest.mark.parametrize("samples", [1, 2])
def test_in_training_each_point_goes_through_one_member(kind, samples):
    network, shape, family, parameters = network_and_parameters(kind, "all")
    x = small.inputs(R, 8, shape)
    f = family.functions(network, parameters, samples, small.streams(R))(x)
    members = family.weights(network, parameters, 3 * samples, small.streams(R))
    explicit = network(members, x).unflatten(1, (samples, 3))
    assert f.shape[1] == samples
    for n, member in enumerate([0, 0, 0, 1, 1, 1, 2, 2]):
        torch.testing.assert_close(f[:, :, n], explicit[:, :, member, n], rtol=1e-10, atol=1e-10)


def test_in_training_the_cost_is_that_of_one_network(monkeypatch):
    network, shape, family, parameters = network_and_parameters("cnn", "all")
    conv2d, seen = F.conv2d, []
    monkeypatch.setattr(F, "conv2d", lambda a, *rest, **options: seen.append(len(a)) or conv2d(a, *rest, **options))
    family.functions(network, parameters, 1, small.streams(R))(small.inputs(R, 8, shape))
    assert seen == [8] * R * 2


def test_the_divergence_is_that_of_the_factors_averaged_over_members():
    network, _, family, parameters = network_and_parameters("mlp", "hidden")
    value = family.weight_kl(network, parameters, 1.0, 0.01, None)
    prior, total = Normal(torch.ones((), dtype=torch.float64), 0.1), 0.0
    for key in (k for k in parameters if k.startswith("factor_mean/")):
        q = Normal(parameters[key], F.softplus(parameters[key.replace("factor_mean", "factor_rho")]))
        total = total + kl_divergence(q, prior).flatten(1).sum(1)
    torch.testing.assert_close(value, total / 3, rtol=1e-10, atol=0)
    assert PRIORS.build({"name": "gaussian_factors"}).gaussian_weights() == (1.0, 0.01)


BATCH, WIDER = {"name": "training_batch"}, {"name": "random_monochrome", "points": 24}
FVI = {"divergence": {"name": "dirichlet_kl"}, "prior": {"name": "dirichlet"}, "weight": {"factor": 0.0}}


@pytest.mark.parametrize("first", [True, False])
def test_with_a_wider_context_every_member_learns_from_the_batch(first):
    """In one pass with the context, the batch would be the run of the first or the last members alone."""
    data, gradients = small.training_data(R, 8, 3, small.SHAPES["cnn"]), []
    for context in (BATCH, {"name": "mixture", "parts": [BATCH, WIDER] if first else [WIDER, BATCH]}):
        family = {"name": "rank1", "size": 4}
        model = small.model({"network": small.CNN, "family": family, "context": context, **FVI}, 3)
        start = small.moved(model.family.init(model.network, small.streams(R)))
        means = {k: v.requires_grad_() for k, v in start.items() if k.startswith("factor_mean/")}
        source = ContextSource(data.x, data.low, data.high, data.pools)
        streams = {name: small.streams(R).child(label) for name, label in Trainer.streams.items()}
        loss = model.loss(start, {}, {}, data.x, data.y, 8, 1, source, streams)
        gradients.append(torch.autograd.grad(loss.sum(), list(means.values())))
    for alone, beside in zip(*gradients, strict=True):
        torch.testing.assert_close(beside, alone)
        assert alone.flatten(2).abs().sum(-1).all()


def test_statistics_shared_with_a_wider_context_are_refused():
    context = {"name": "mixture", "parts": [BATCH, WIDER]}
    network = {"name": "resnet18", "width": 2, "norm": "batch", "context_statistics": "shared"}
    parts = {"network": network, "family": {"name": "rank1"}, "context": context, **FVI}
    data = small.training_data(1, 8, 3, (3, 8, 8))
    trainer = Trainer(small.model(parts, 3, (3, 8, 8)), Training(1, 8, ADAM, dtype="float64"), data, small.streams(1))
    with pytest.raises(NotSupported, match="family 'rank1' divides the points of one pass among its members"):
        trainer.run()


@pytest.mark.parametrize("joint", [False, True])
def test_a_batch_of_all_points_is_dealt_out_anew_in_every_epoch(joint, monkeypatch):
    family = {"name": "rank1", "size": 2}
    family = {"name": "ensemble", "base": family, "size": 2, "joint": True} if joint else family
    data, loss, seen = small.training_data(R, 8), Model.loss, []
    monkeypatch.setattr(Model, "loss", lambda self, *given: seen.append(given[3]) or loss(self, *given))
    Trainer(small.model({"family": family}), Training(2, 8, ADAM, dtype="float64"), data, small.streams(R)).run()
    one, other = seen
    assert not torch.equal(one, other) and torch.equal(one.sort(1).values, other.sort(1).values)


def test_options_are_checked():
    with pytest.raises(ValueError, match="batch_size 3: family 'rank1' divides .* 4 members: use at least as many"):
        model = small.model({"family": {"name": "rank1"}})
        Trainer(model, Training(1, 3, ADAM, dtype="float64"), small.training_data(R, 8), small.streams(R))
    with pytest.raises(ValueError, match="size: expected 1 or more, found 0"):
        FAMILIES.build({"name": "rank1", "size": 0})
