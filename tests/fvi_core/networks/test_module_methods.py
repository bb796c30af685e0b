"""Every method of the catalogue on a module of attention and tokens, which no layer of this package is."""

from unittest.mock import Mock

import pytest
import torch
from torch import nn

import fvi_core as fvi
from fvi_core.families.base import NotSupported
from fvi_core.methods import catalogue
from fvi_core.networks import UnfitModule
from fvi_core.networks.module import _anew
from fvi_core.random import Streams
from tests.fvi_core.networks.modules import Text, table, tokens

REFUSED = {
    "GP": "needs Gaussian noise, which likelihood 'categorical' has not",
    "DUQ": "inputs are whole numbers",
    **dict.fromkeys(("Rank1", "Rank1 Ensemble", "Rank1 fVI"), "needs linear and convolutional layers with factors"),
    "VOGN": "needs linear and convolutional layers, and submodule .*Embedding, is none",
}
OPTIONS = {
    "HMC": {
        "epochs": None,
        "family": {"size": 2},
        "training": {"samples": 4, "thinning": 1, "leapfrogs": 2, "map_steps": 2},
    },
    "Subnetwork Laplace": {"fit": {"size": 10}},
}
IMAGES = ("rotated_batch", "images", "random_monochrome")


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("method", catalogue())
def test_a_method_trains_and_predicts_or_says_why_not(method):
    make, inputs = (lambda: Text(drop=0.1)) if "Dropout" in method else Text, tokens
    x, y = inputs(12), torch.arange(12) % 3
    options = {"epochs": 1, "validation": (x, y), "progress": False, **OPTIONS.get(method, {})}
    context = catalogue()[method].context
    if context and context["name"] in IMAGES:
        options["context"] = {"name": "training_batch"}
    if method in REFUSED:
        with pytest.raises((NotSupported, ValueError), match=REFUSED[method]):
            fvi.fit(make, (x, y), method, **options)
        return
    found = fvi.fit(make, (x, y), method, **options).predict(x, samples=4)
    assert found.values.shape[1:] == (12, 3) and torch.isfinite(found.values).all()
    torch.testing.assert_close(found.probabilities.sum(-1), torch.ones(12))


class Skip(nn.Module):
    """The head sees the inputs again, joined or added."""

    def __init__(self, joined: bool) -> None:
        super().__init__()
        self.joined, self.a, self.fc = joined, nn.Linear(3, 3), nn.Linear(6 if joined else 3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.a(x))
        return self.fc(torch.cat([h, x], -1) if self.joined else h + x)


@pytest.mark.parametrize("joined", [True, False])
def test_members_of_a_rank1_network_with_a_skip_are_modules_with_scaled_weights(joined):
    x, y = torch.randn(12, 3), torch.arange(12) % 3
    fitted = fvi.fit(Skip(joined), (x, y), "Rank1", epochs=1, progress=False)
    assert fitted.predict(x, samples=4).values.shape == (4, 12, 3)
    network, family, parameters = fitted.model.network, fitted.model.family, fitted.parameters
    drawn = family.weights(network, parameters, 4, Streams([0]))
    values = family.functions(network, parameters, 4, Streams([0]))(x[None])
    for s in range(4):
        torch.testing.assert_close(values[0, s], network.module_of(drawn, s)(x))


class Branches(nn.Module):
    """A linear layer beside a table of vectors, which has no factors."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.table, self.fc = nn.Linear(2, 3), nn.Embedding(4, 3), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(torch.cat([torch.relu(self.a(x[:, :2])), self.table(x[:, 2].long().clamp(0, 3))], -1))


def test_members_of_a_rank1_network_may_join_layers_with_factors_and_others():
    x, y = torch.cat([torch.randn(12, 2), torch.arange(12.0)[:, None] % 4], 1), torch.arange(12) % 3
    fitted = fvi.fit(Branches(), (x, y), "Rank1", epochs=1, progress=False)
    network, family, parameters = fitted.model.network, fitted.model.family, fitted.parameters
    drawn = family.weights(network, parameters, 4, Streams([0]))
    values = family.functions(network, parameters, 4, Streams([0]))(x[None])
    for s in range(4):
        torch.testing.assert_close(values[0, s], network.module_of(drawn, s)(x))


class Attention(nn.Module):
    """The encoder of torch, from vectors to one, with its own dropout."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.encoder, self.fc = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.encoder(x).mean(1))


def test_members_of_an_ensemble_of_torchs_encoder_start_as_its_constructor_does():
    module = Attention()
    anew = _anew(module)
    own, drawn = module.encoder.layers[0].self_attn, anew.encoder.layers[0].self_attn
    assert not torch.equal(own.in_proj_weight, drawn.in_proj_weight)
    assert drawn.in_proj_weight.abs().max() <= (6 / (4 + 12)) ** 0.5, "Xavier's bound"
    assert not drawn.in_proj_bias.any() and not drawn.out_proj.bias.any()
    assert not torch.equal(own.out_proj.weight, drawn.out_proj.weight) and drawn.out_proj.weight.abs().max() <= 0.5
    x, y = torch.randn(12, 5, 4), torch.arange(12) % 3
    found = fvi.fit(module, (x, y), "Deep Ensemble", epochs=1, progress=False).predict(x)
    assert torch.isfinite(found.values).all()


def test_a_module_with_a_parameter_of_its_own_says_that_it_cannot_draw_it():
    module = Attention()
    module.token = nn.Parameter(torch.zeros(4))
    with pytest.raises(UnfitModule, match="^the module has no reset_parameters"):
        _anew(module)


@pytest.mark.filterwarnings("ignore:.*torch.jit")
@pytest.mark.parametrize(
    ("wrapped", "message"),
    [
        (nn.DataParallel, "DataParallel is not evaluated: give the module in it, its attribute 'module'"),
        (torch.jit.script, "a ScriptModule cannot be changed: give the module that it was made from"),
        (torch.compile, "the module is one of torch.compile: give the module that it was made from"),
        (lambda module: nn.Sequential(torch.compile(module[0]), module[2]), "submodule '0' is one of torch.compile"),
    ],
)
def test_a_module_that_stands_for_another_one_says_which_to_give(wrapped, message):
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
    with pytest.raises(UnfitModule, match=message):
        fvi.fit(wrapped(module), (torch.randn(12, 3), torch.arange(12) % 3), "MAP", epochs=1, progress=False)


class Plain(nn.Module):
    """A perceptron written as operations that no layer of this package is."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.fc = nn.ParameterList([torch.randn(3, 4)]), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(torch.tanh(x @ self.first[0]))


class Bag(nn.Module):
    """Sums of vectors of tokens in one operation."""

    def __init__(self) -> None:
        super().__init__()
        self.bag, self.fc = nn.EmbeddingBag(24, 4), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.bag(x))


JACOBIANS = {"GFSVI": {"epochs": 2, "context": {"points": 6}}, "laplace": {}}


def values_of(module: nn.Module, method: str, tokens: bool = False) -> torch.Tensor:
    """Function draws after training, the same for the same module."""
    torch.manual_seed(0)
    x, y = torch.arange(24).reshape(12, 2) if tokens else torch.randn(12, 3), torch.arange(12) % 3
    return fvi.fit(module, (x, y), method, progress=False, **JACOBIANS[method]).predict(x, samples=4).values


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("method", JACOBIANS)
def test_jacobians_of_operations_without_forward_mode_are_made_by_two_backward_passes(method, monkeypatch):
    """torch has no forward mode of weight normalisation."""
    normed = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), nn.Tanh(), nn.Linear(4, 3))
    assert torch.isfinite(values_of(normed, method)).all()
    module = Plain()
    expected = values_of(module, method)
    monkeypatch.setattr(torch.func, "jvp", Mock(side_effect=NotImplementedError))
    torch.testing.assert_close(values_of(module, method), expected)


class Tanh(torch.autograd.Function):
    """A function with a backward pass and no forward mode."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return torch.tanh(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return g * (1 - z**2)


@pytest.mark.parametrize("method", JACOBIANS)
def test_jacobians_of_a_function_of_the_user_with_a_backward_pass_alone_are_those_of_torch(method, monkeypatch):
    module = Plain()
    expected = values_of(module, method)
    monkeypatch.setattr(Plain, "forward", lambda self, x: self.fc(Tanh.apply(x @ self.first[0])))
    torch.testing.assert_close(values_of(module, method), expected)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("method", JACOBIANS)
def test_jacobians_that_torch_has_neither_way_are_said_to_be_lacking(method):
    with pytest.raises(UnfitModule, match="torch has no derivative that Jacobians of the module need: .*embedding_bag"):
        values_of(Bag(), method, tokens=True)


@pytest.mark.parametrize("method", ["Rank1", "VOGN"])
def test_a_linear_layer_without_a_bias_is_named_where_it_cannot_serve(method):
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4, bias=False), nn.Tanh(), nn.Linear(4, 3))
    x, y = torch.randn(12, 3), torch.arange(12) % 3
    with pytest.raises(NotSupported, match="submodule '2', Linear .without a bias"):
        fvi.fit(module, (x, y), method, epochs=1, progress=False)


@pytest.mark.parametrize("method", ["MAP", "MFVI", "GFSVI", "SWAG"])
@pytest.mark.parametrize("frozen", [False, True])
def test_training_in_another_type_is_that_of_the_module_in_that_type(method, frozen, tmp_path):
    made = []
    for module, training in ((table_net(frozen), {"dtype": "float64"}), (table_net(frozen).double(), {})):
        options = {"epochs": 2, "training": training, "progress": False}
        made.append(fvi.fit(module, (table(12).double(), table(12, 1).double()[:, :2]), method, **options))
        assert {value.dtype for value in made[-1].parameters.values()} == {torch.float64}
    x, module = table(5).double() / 3, table_net(frozen)
    found, expected = (each.predict(x, samples=2).values for each in made)
    assert torch.equal(found, expected)
    made[0].save(tmp_path / "mine.fvi")
    assert torch.equal(fvi.load(tmp_path / "mine.fvi", module).predict(x, samples=2).values, expected)


def table_net(frozen: bool) -> nn.Sequential:
    """A perceptron, the same at each call, perhaps with a constant first layer."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))
    net[0].requires_grad_(not frozen)
    return net
