"""Passes through compiled networks: one graph, the same values, and the same training."""

from functools import partial

import pytest
import torch

from fvi_core.networks import Tape
from fvi_core.networks.residual import residual_network
from fvi_core.training import Trainer, Training
from tests.fvi_core import small
from tests.fvi_core.test_training import KINDS, N, train

SHAPE = (3, 8, 8)


@pytest.fixture(autouse=True)
def traced(monkeypatch):
    """torch.compile as far as its graphs, which then run as they are: no compiler is needed, and values are the
    same."""
    made = []

    def run_as_it_is(graph, inputs):
        made.append(graph)
        return graph

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=run_as_it_is, fullgraph=True))
    torch.compiler.reset()
    yield made
    torch.compiler.reset()


def residual():
    network = residual_network(SHAPE, 4, 8, (1, 1), True, False)
    streams = small.streams(1, torch.float32)
    return network, network.init(streams), network.init_buffers(streams)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_values_gradients_and_statistics_are_the_same(precision, traced):
    network, parameters, _ = residual()
    network = network.in_precision(precision)
    parameters = {k: v.unsqueeze(1).requires_grad_() for k, v in parameters.items()}
    x, found = small.inputs(1, 16, SHAPE, torch.float32), []
    for one in (network, network.compiled()):
        seen = {}
        watched = one.recording(seen)
        f, phi = watched(parameters, x), watched.features(parameters, x[:, :5])
        gradients = torch.autograd.grad(f.square().sum() + phi.sum(), list(parameters.values()))
        assert list(seen) == list(network.buffers)
        found.append([f, phi, *gradients, *seen.values()])
    assert len(traced) == 2
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_passes_that_are_not_plain_stay_as_they_are(traced):
    network, parameters, state = residual()
    parameters = {k: v.unsqueeze(1) for k, v in (parameters | state).items()}
    x, tape, compiled = small.inputs(1, 4, SHAPE, torch.float32), Tape(), network.compiled()
    f = network(parameters, x)
    assert torch.equal(compiled(parameters, x, tape=tape), f) and len(tape.entries) == len(network.parametrised)
    assert not compiled(parameters, x, apply=lambda layer, own, a: 0 * layer(own, a)).any()
    assert not compiled(parameters, x, dropout=lambda site, a: 0 * a).equal(f) and not traced
    assert torch.equal(compiled(parameters, x), f) and len(traced) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_method_trains_to_the_same_numbers(kind, traced):
    def train_it(compiled):
        outputs = 3 if "fVI" in kind else 1
        options = (
            {"dtype": "float64"} if kind == "GFSVI" else {"dtype": "float64", "batch_size": N} if kind == "GP" else {}
        )
        found = train(KINDS[kind], outputs=outputs, epochs=2, compile=compiled, **options)
        return [(r.reason, r.loss) for r in found]

    plain = train_it(False)
    assert not traced
    assert train_it(True) == plain and plain[0][0] is None


@pytest.mark.parametrize(("kind", "graphs"), [("MAP", 1), ("MC Dropout", 0), ("FSVI", 3)])
def test_a_shape_is_compiled_once(kind, graphs, traced):
    data = small.training_data(2, 12, 3, small.SHAPES["cnn"], torch.float32)
    model = small.model({**KINDS[kind], "network": small.CNN}, 3)
    options = Training(3, 4, {"name": "adam"}, compile=True)
    assert Trainer(model, options, data, small.streams(2, torch.float32)).run()[0].reason is None
    assert len(traced) == graphs


def test_later_trainings_of_the_same_network_compile_nothing(traced):
    def train_one():
        data = small.training_data(1, 12, 3, small.SHAPES["cnn"], torch.float32)
        model = small.model({**KINDS["MAP"], "network": small.CNN}, 3)
        return Trainer(
            model, Training(1, 4, {"name": "adam"}, compile=True), data, small.streams(1, torch.float32)
        ).run()

    losses = [train_one()[0].loss for _ in range(3)]
    assert len(traced) == 1 and losses[0] == losses[1] == losses[2]
