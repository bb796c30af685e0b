"""Steps as graphs, on a device that is pretended: a capture notes the operations and computes nothing, a replay makes
them again in the same memory."""

import copy
from contextlib import contextmanager, nullcontext
from itertools import chain
from types import SimpleNamespace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fvi_core import graphs
from fvi_core.data import Scale, TrainingData
from fvi_core.graphs import WARM_UP, CaptureFailed
from fvi_core.likelihoods import Categorical
from fvi_core.optimisers import Moments
from fvi_core.training import Trainer, Training
from tests.fvi_core import small

HOST = ("aten::_local_scalar_dense", "aten::equal", "aten::nonzero", "aten::is_nonzero", "aten::lift_fresh")
"""Operations in which the host waits for the device, or gives it numbers of its own."""


class Noted(TorchDispatchMode):
    """Notes operations; refuses those for which the host would wait, and random numbers of unknown generators."""

    def __init__(self, generators):
        super().__init__()
        self.made, self.seeds = [], {generator.initial_seed() for generator in generators}

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        if operation.name() in HOST:
            raise RuntimeError(f"operation {operation.name()} not permitted when stream is capturing")
        generator = (kwargs or {}).get("generator")
        assert generator is None or generator.initial_seed() in self.seeds, "not registered with the graph"
        result = operation(*args, **(kwargs or {}))
        fresh = not any(each.alias_info for each in operation._schema.returns)
        self.made.append((operation, args, kwargs or {}, result if fresh else None))
        return result


def _tensors(result):
    """Return the tensors among the results of an operation."""
    several = result if isinstance(result, list | tuple) else [result]
    return [each for each in several if isinstance(each, torch.Tensor)]


class PretendedGraph:
    """Captured operations of a CPU. ``trainer``: whose state a capture leaves as it was."""

    trainer = None
    captures = 0
    replays = 0

    def __init__(self):
        self.generators = []

    def register_generator_state(self, generator):
        self.generators.append(generator)

    @contextmanager
    def capture(self):
        now, noted = self.trainer.now, Noted(self.generators)
        moments = [m.joined if isinstance(m, Moments) else m for m in now.optimiser.values() if not isinstance(m, int)]
        tensors = [*now.parameters.values(), *chain(*moments)]
        before = [tensor.detach().clone() for tensor in tensors]
        drawn = [generator.get_state() for generator in self.generators]
        with noted:
            yield
        for tensor, value in zip(tensors, before, strict=True):
            tensor.detach().copy_(value)
        for generator, state in zip(self.generators, drawn, strict=True):
            generator.set_state(state)
        self.made = noted.made
        PretendedGraph.captures += 1

    def replay(self):
        with torch.no_grad():
            for operation, args, kwargs, result in self.made:
                again = operation(*args, **kwargs)
                for held, value in zip(_tensors(result), _tensors(again), strict=False):
                    held.detach().copy_(value)
        PretendedGraph.replays += 1


@pytest.fixture
def pretended(monkeypatch):
    stream = SimpleNamespace(wait_stream=lambda other: None)
    device = SimpleNamespace(
        CUDAGraph=PretendedGraph,
        Stream=lambda device: stream,
        current_stream=lambda: stream,
        stream=lambda stream: nullcontext(),
        graph=lambda graph, stream: graph.capture(),
    )
    monkeypatch.setattr(graphs, "cuda", device)
    monkeypatch.setattr(graphs, "DEVICES", ("cpu",))
    monkeypatch.setattr(PretendedGraph, "captures", 0)
    monkeypatch.setattr(PretendedGraph, "replays", 0)


POINT = {"family": {"name": "point"}, "network": small.CNN}
FSVI = {
    "family": {"name": "mean_field"},
    "divergence": {"name": "gaussian_kl"},
    "prior": {"name": "gaussian_weights"},
    "context": {"name": "random_monochrome", "points": 4},
    "network": {"name": "resnet18", "width": 2, "context_statistics": "shared"},
}
KINDS = {
    "MAP": POINT,
    "FSVI": FSVI,
    "MC Dropout": {"family": {"name": "dropout", "rate": 0.2, "masks": "function"}, "network": small.CNN},
    "Radial": {"family": {"name": "radial"}, "network": small.CNN},
    "SWAG": {**POINT, "family": {"name": "swag", "rank": 2, "start": 0.0}},
}
SHAPE, N, BATCH, EPOCHS, R = (2, 4, 4), 14, 4, 5, 2
OPTIONS = {
    "optimiser": {"name": "sgd", "lr": 0.05, "momentum": 0.9},
    "schedule": {"name": "one_cycle"},
    "augment": {"crop": 1, "flip": True},
    "clip": 1.0,
}


def trainer(parts, batch=BATCH, **options):
    pixels = torch.randint(256, (1, N, *SHAPE), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    y = torch.arange(N)[None] % 3
    ends = torch.ones(1, *SHAPE)
    data = TrainingData(pixels, y, -ends, ends, pixels=Scale((0.5,) * 2, (0.5,) * 2))
    training = Training(**{"epochs": EPOCHS, "batch_size": batch, **OPTIONS, **options})
    made = Trainer(small.model(parts, 3, SHAPE), training, data, small.streams(R, torch.float32))
    PretendedGraph.trainer = made
    return made


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.reason is None
        small.assert_same(one, other)


@pytest.mark.parametrize("optimiser", [OPTIONS["optimiser"], {"name": "adam", "weight_decay": 0.1}])
@pytest.mark.parametrize("kind", KINDS)
def test_replayed_steps_give_the_numbers_of_plain_ones(kind, optimiser, pretended):
    found, expected = (trainer(KINDS[kind], graph=graph, optimiser=optimiser).run() for graph in (True, False))
    assert_same(found, expected)
    # Batches of 4, and one of 2 that ends each epoch: a graph of each, after so many steps as they are.
    assert PretendedGraph.captures == 2 and PretendedGraph.replays == EPOCHS * 4 - 2 * WARM_UP


def test_a_learning_rate_that_falls_between_epochs_reaches_the_graph(pretended):
    options = {"schedule": {"name": "plateau", "patience": 0, "threshold": 0.5, "min_lr": 0.0}, "batch": N}
    found, expected = (trainer(POINT, graph=graph, epochs=8, **options).run() for graph in (True, False))
    assert_same(found, expected)
    assert PretendedGraph.captures == 1 and PretendedGraph.replays == 8 - WARM_UP


def test_when_a_replica_leaves_the_others_are_captured_anew(pretended, monkeypatch):
    done = Trainer.done

    def leave(self, loss):
        return done(self, loss) | (torch.tensor([r == 0 for r in self.now.active]) & (self.epoch == 3))

    monkeypatch.setattr(Trainer, "done", leave)
    found, expected = (trainer(POINT, graph=graph, epochs=6).run() for graph in (True, False))
    assert_same(found, expected)
    assert [each.epochs for each in found] == [3, 6] and PretendedGraph.captures == 2


def test_training_goes_on_from_a_saved_state(pretended):
    first, saved = trainer(POINT, graph=True), {}
    first.run(checkpoint=lambda stack: saved.setdefault(stack.epoch, copy.deepcopy(stack.state())))
    second = trainer(POINT, graph=True)
    second.restore(saved[3])
    assert_same(second.run(), trainer(POINT).run())


def test_a_step_that_asks_the_device_fails_with_the_reason_and_what_to_do(pretended, monkeypatch):
    data_term = Categorical.data_term

    def asking(self, parameters, f, y):
        return data_term(self, parameters, f, y) * (2.0 if float(f.detach().sum()) > 1e9 else 1.0)

    monkeypatch.setattr(Categorical, "data_term", asking)
    message = "cannot be captured: operation aten::_local_scalar_dense not permitted.*; leave graph off"
    with pytest.raises(CaptureFailed, match=message):
        trainer(POINT, graph=True).run()
    assert trainer(POINT).run()[0].reason is None


def test_what_cannot_be_captured_is_refused_before_training(pretended):
    joint = {"family": {"name": "ensemble", "base": POINT["family"], "size": 2, "joint": True}}
    spectral = {"divergence": {"name": "spectral_kl"}, "prior": {"name": "gaussian_functions"}}
    cases = {
        "the divergence's weight changes at every step, with rise 1": FSVI | {"weight": {"rise": 1.0}},
        "divergence 'spectral_kl' reads numbers from the device in each step": FSVI | spectral,
        "family 'ensemble' reads numbers from the device in each step": FSVI | joint,
    }
    for message, parts in cases.items():
        with pytest.raises(ValueError, match=f"training: graph: {message}; leave graph off"):
            trainer(parts, graph=True)


def test_without_a_gpu_it_is_refused_and_not_left_out():
    with pytest.raises(ValueError, match="graph: expected a GPU, found cpu; leave graph off"):
        trainer(POINT, graph=True)
