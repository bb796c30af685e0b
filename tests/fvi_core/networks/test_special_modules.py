"""Modules with a submodule under two names, padded embeddings, dropout of rate 0 or beside parameters, a body without a
gradient, a head whose bias is frozen, and inputs that zeros or normal numbers are not."""

import copy

import pytest
import torch
from torch import nn

import fvi_core as fvi
from fvi_core.families.base import NotSupported
from fvi_core.networks import ModuleNetwork, UnfitModule
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES
from tests.fvi_core.networks.modules import table, tokens

R, S = 2, 3
QUICK = {"epochs": 3, "progress": False}


def named_twice():
    shared = nn.Linear(4, 4)
    return nn.Sequential(shared, nn.Tanh(), shared, nn.ReLU(), nn.Linear(4, 3))


class Padded(nn.Module):
    """Tokens, the first of which is padding; the embedding is also the weight of a linear layer."""

    def __init__(self, tied=False):
        super().__init__()
        self.embed, self.out, self.fc = nn.Embedding(20, 6, padding_idx=0), nn.Linear(6, 20), nn.Linear(20, 3)
        if tied:
            self.out.weight = self.embed.weight

    def forward(self, x):
        return self.fc(torch.tanh(self.out(self.embed(x).mean(1))))


CASES = {
    "a submodule under two names": (named_twice, table(6)),
    "padding": (Padded, tokens(6) * (tokens(6, 1) > 8)),
    "padding of a tied embedding": (lambda: Padded(tied=True), tokens(6) * (tokens(6, 1) > 8)),
}


@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_are_those_of_copies_of_the_module(case):
    make, x = CASES[case]
    torch.manual_seed(0)
    made = make()
    before = copy.deepcopy(made.state_dict())
    net = ModuleNetwork(made, x[:3])
    assert all(torch.equal(value, before[name]) for name, value in made.state_dict().items())
    generator = torch.Generator().manual_seed(1)
    parameters = {
        name: (0.4 * torch.randn(R, S, *shape, generator=generator, dtype=torch.float64)).requires_grad_()
        for name, shape in net.shapes.items()
    }
    assert {place.name for place in net.states.values()} == {name for name, _ in made.named_parameters()}
    given = torch.stack([x, x.flip(0)]).double()
    f = net(parameters, given)
    found = torch.autograd.grad(f.square().sum(), list(parameters.values()))
    for r in range(R):
        for s in range(S):
            module = copy.deepcopy(made).double()
            with torch.no_grad():
                for name, value in net.state_of(parameters, r, s).items():
                    module.get_parameter(name).copy_(value)
            own = module(given[r] if x.is_floating_point() else given[r].long())
            torch.testing.assert_close(f[r, s], own)
            own.square().sum().backward()
            for (name, place), slope in zip(net.states.items(), (g[r, s] for g in found), strict=True):
                expected = module.get_parameter(place.name).grad
                torch.testing.assert_close(
                    slope.mT if place.transposed else slope, expected, msg=lambda m, n=name: f"{n}: {m}"
                )


@pytest.mark.parametrize("tied", [False, True])
def test_the_padding_row_stays_in_every_member_and_forwards_as_backwards(tied):
    make, x = CASES["padding of a tied embedding" if tied else "padding"]
    members = fvi.fit(make, (x, torch.arange(6) % 3), "Deep Ensemble", family={"size": 3}, **QUICK).modules(3)
    assert all(bool(each.embed.weight[0].any()) == tied for each in members)
    torch.manual_seed(0)
    net = ModuleNetwork(make(), x[:3])
    at = {name: torch.randn(1, 1, *shape, dtype=torch.float64) for name, shape in net.shapes.items()}
    along = {name: torch.randn_like(value) for name, value in at.items()}
    _, forwards = torch.func.jvp(lambda own: net(own, x[None].double()), (at,), (along,))
    _, back = torch.func.vjp(lambda own: net(own, x[None].double()), at)
    for n, q in ((0, 0), (5, 2)):
        one = torch.zeros_like(forwards)
        one[0, 0, n, q] = 1
        (slopes,) = back(one)
        torch.testing.assert_close(forwards[0, 0, n, q], sum((slopes[k] * along[k]).sum() for k in along))


@pytest.mark.parametrize("first", [[nn.Linear(4, 6)], [nn.Linear(4, 6), nn.LayerNorm(6)]], ids=["translated", "leaves"])
def test_dropout_of_rate_0_masks_nothing(first):
    torch.manual_seed(0)
    module = nn.Sequential(*first, nn.Dropout(0.0), nn.Tanh(), nn.Linear(6, 20), nn.Dropout(0.4), nn.Linear(20, 2))
    net = ModuleNetwork(module, table(3))
    assert net.way == ("translated" if len(first) == 1 else "leaves")
    family = FAMILIES.build({"name": "dropout", "rate": 0.4})
    parameters = net.init(Streams([0]))
    drawn = family.functions(net, parameters, 4000, Streams([1]))(table(1)[None])[0, :, 0]
    module.load_state_dict(net.module_of({k: v[:, None] for k, v in parameters.items()}, 0).state_dict())
    with torch.no_grad():
        own = module.train()(table(1).expand(4000, -1))
    torch.testing.assert_close(drawn.std(0), own.std(0), rtol=0.08, atol=0)


class Scaled(nn.Module):
    """A block with a parameter of its own beside dropout."""

    def __init__(self):
        super().__init__()
        self.inner, self.drop, self.gamma = nn.Linear(8, 8), nn.Dropout(0.5), nn.Parameter(torch.ones(8))

    def forward(self, x):
        return x + self.gamma * self.drop(torch.relu(self.inner(x)))


def test_dropout_that_cannot_be_masked_is_named():
    module = nn.Sequential(nn.Linear(4, 8), Scaled(), nn.Dropout(0.5), nn.Linear(8, 2))
    data = table(30), torch.arange(30) % 2
    with pytest.raises(UnfitModule, match="1.drop: nn.Dropout beside parameters of the same"):
        fvi.fit(module, data, "MC Dropout", **QUICK)
    with pytest.warns(UserWarning, match="leaves the module's nn.Dropout out"):
        fvi.fit(module, data, "MAP", **QUICK)


class Still(nn.Module):
    """A body without a gradient."""

    def __init__(self):
        super().__init__()
        self.body, self.fc = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        with torch.no_grad():
            h = self.body(x)
        return self.fc(torch.relu(h))


def test_a_body_without_a_gradient_stays():
    module = Still()
    (trained,) = fvi.fit(
        module, (table(30), torch.arange(30) % 2), "MAP", divergence=None, prior=None, **QUICK
    ).modules(1)
    assert torch.equal(trained.body.weight, module.body.weight)
    assert not torch.equal(trained.fc.weight, module.fc.weight)


def test_a_head_whose_bias_is_frozen_is_refused():
    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    module[2].bias.requires_grad_(False)
    with pytest.raises(UnfitModule, match="head '2' is frozen"):
        ModuleNetwork(module, table(3))


def test_functions_that_are_the_module_at_zero_alone_are_no_modules():
    module = nn.Sequential(nn.Linear(4, 8, bias=False), nn.ReLU(), nn.Dropout(0.4), nn.Linear(8, 2))
    posterior = fvi.fit(module, (table(30), torch.arange(30) % 2), "MC Dropout", **QUICK)
    with pytest.raises(NotSupported, match="are not the module at drawn weights; use predict"):
        posterior.modules(2)


class Logarithm(nn.Sequential):
    def forward(self, x):
        return super().forward(torch.log(x))


def test_a_module_of_positive_inputs_is_loaded_at_some_of_them(tmp_path):
    x, module = table(30).exp(), Logarithm(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    posterior = fvi.fit(module, (x, torch.arange(30) % 2), "MFVI", **QUICK)
    posterior.save(tmp_path / "own.fvi")
    with pytest.raises(
        UnfitModule, match=r"gives no finite numbers .*; give load\(\) some of its inputs, as load\(path, mod"
    ):
        fvi.load(tmp_path / "own.fvi", module)
    again = fvi.load(tmp_path / "own.fvi", module, x)
    assert torch.equal(again.predict(x).values, posterior.predict(x).values)
