"""Every combination of parts of the image tables, digits and UCI, on a GPU that is pretended: nothing is computed, but
operations on tensors of different devices fail as they would on a real one, and those that a CUDA graph could not
replay. Residual networks have three blocks, of every kind that the whole ones have."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks import tables
from benchmarks.experiment.assembly import build_data, build_model, inputs_of
from benchmarks.experiment.prediction import attack, predict
from benchmarks.tables.cinquin_candidates import labels
from benchmarks.tables.recipes import merge
from datasets import describe
from fvi_core.graphs import obstacle
from fvi_core.networks import residual
from fvi_core.random import Streams
from fvi_core.registry import TRAININGS
from fvi_core.stack import DTYPES
from fvi_core.training import Trainer
from tests.fvi_core.test_graphs import HOST
from tools.cost.images import random_images, table_parts
from tools.cost.trainings import random_split

SHOWN = {
    "digits": "digits",
    "uci": "boston",
    "cinquin2024-1-selection": "boston",
    "rotated-mnist": "mnist",
    "rudner2021-1": "fashion_mnist",
    "rudner2022-1": "fashion_mnist",
    "rudner2022-2": "cifar10",
    "cinquin2024-2": "mnist",
    "cinquin2024-figure-6": "cinquin_1d",
    "dirichlet2022-11": "cifar10",
    "retinopathy": "eyepacs",
}
RESNETS = ("MAP", "FSVI (monochrome)", "SWAG", "MAP fVI", "MC Dropout fVI", "Ensemble fVI", "Radial fVI", "Rank1 fVI")
"""The rows that are tried on CIFAR-10: the others' parts were tried on other networks, but VOGN, which was
not tried on this device.
"""
RETINAL = ("MAP", "FSVI")
"""The rows that are tried on the retina: radial and rank-1 weights are tried on CIFAR-10."""
NAMED = ("family", "divergence", "prior", "context", "fit", "likelihood")


def kinds(table, label, dataset):
    """Return the names of a row's parts, and of its optimiser."""
    parts = table_parts(table, label, dataset, {})
    named = [parts[part]["name"] if parts[part] else None for part in NAMED]
    return (*named, parts["training"]["optimiser"]["name"])


_ALL = [
    (table, row.label, dataset)
    for table, dataset in SHOWN.items()
    for row in tables.get(table).rows
    if row.method
    and (dataset != "cifar10" or row.label in RESNETS)
    and (table != "retinopathy" or row.label in RETINAL)
    and (not table.endswith("selection") or row.variant == labels(row.method)[0])
]
ROWS = list({kinds(*row): row for row in reversed(_ALL)}.values())[::-1]
"""The first row of each combination of parts."""
MODE = FakeTensorMode()
"""One for all tests: means and deviations of pixels are kept between them."""
POOLS = ("kmnist", "cifar100", "svhn")
IMAGES, SAMPLES, CLASSES = 8, 2, 3


class Values(TorchDispatchMode):
    """Answers for what only values can tell: no condition holds, numbers are 1, integers 0, a mask keeps
    everything."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation.name()
        if name == "aten::_local_scalar_dense":
            return False if args[0].dtype == torch.bool else 1.0 if args[0].is_floating_point() else 0
        if name == "aten::equal":
            return True
        if name == "aten::index.Tensor" and any(index is not None and index.dtype == torch.bool for index in args[1]):
            return args[0]
        return operation(*args, **(kwargs or {}))


class Captured(TorchDispatchMode):
    """Refuses what a graph cannot hold: numbers that the host reads or makes, and copies between devices."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation.name()
        result = operation(*args, **(kwargs or {}))
        source = {"aten::copy_": args[1:2], "aten::_to_copy": args[:1]}.get(name, (result,))[0]
        assert name not in HOST, f"{name} needs the host"
        assert not isinstance(result, torch.Tensor) or source.device == result.device, f"{name} from another device"
        return result


@pytest.fixture
def cuda(monkeypatch):
    """A device of which tensors have shapes and types only; gradients are zeros, arrays come from this side."""
    kind = {np.dtype(name): getattr(torch, name) for name in ("float32", "float64", "int64", "uint8", "bool")}

    def gradients(outputs, inputs, *_, create_graph=False, **__):
        every = [inputs] if isinstance(inputs, torch.Tensor) else inputs
        return tuple(0.0 * x if create_graph else torch.zeros_like(x) for x in every)

    def init(self, seeds, device="cpu", dtype=torch.float32):
        self.seeds, self.device, self.dtype = list(seeds), torch.device(device), dtype
        self.generators = [None] * len(self.seeds)

    for name in ("BLOCKS18", "BLOCKS50"):
        monkeypatch.setattr(residual, name, (2, 1))
    monkeypatch.setattr(Streams, "__init__", init)
    monkeypatch.setattr(torch, "from_numpy", lambda array: torch.empty(array.shape, dtype=kind[array.dtype]))
    monkeypatch.setattr(torch.autograd, "grad", gradients)
    monkeypatch.setattr(torch.Tensor, "backward", lambda self: None)
    with MODE, Values():
        yield torch.device("cuda", 0)


def data_of(dataset):
    scheme = "moderate-512" if dataset == "eyepacs" else None
    about = describe(dataset, scheme)
    if len(about.shape) == 3:
        split = random_images(dataset, IMAGES, pools=POOLS, scheme=scheme)
    else:
        split = random_split(about.shape, about.n_outputs, IMAGES)
    # full Jacobians take the same operations for every class, so three classes show what ten do
    return replace(split, validation=split.test, n_outputs=min(split.n_outputs, CLASSES))


def test_a_tensor_left_behind_is_found(cuda):
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2, device=cuda) + torch.ones(2)


def trainer_of(table, label, dataset, device):
    """Return model, split and training data of a row, and what trains two replicas of it."""
    parts = table_parts(table, label, dataset, {"training": {"batch_size": 5, "epochs": 2}})
    if parts["family"]["name"] == "exact_gp":
        parts = merge(parts, {"training": {"batch_size": IMAGES, "epochs": 4}})  # of one step each
    if parts["prior"] and parts["prior"]["name"] == "gaussian_process":
        parts = merge(parts, {"prior": {"fit_steps": 2}})
    if "steps" in (parts["fit"] or {}):
        parts = merge(parts, {"fit": {"steps": 2}})
    for part, count in (("family", "size"), ("divergence", "draws"), ("context", "points")):
        if count in (parts[part] or {}):
            parts = merge(parts, {part: {count: 2}})
    split, training = data_of(dataset), TRAININGS.build({"name": "gradient", **parts["training"]})
    dtype = DTYPES[training.dtype]
    model = build_model(parts, split)
    training_data = build_data(model, [split], device, dtype)
    return model, split, training_data, training.start(model, training_data, Streams([0, 1], device, dtype))


@pytest.fixture
def steps(monkeypatch):
    """The losses of all steps, of which those after the first two, which fill what is kept, are taken as in a graph."""
    stepper, taken = Trainer._stepper, []

    def captured(self):
        step = stepper(self)
        graphs = not obstacle(self.model, self.training_data)

        def take(batch):
            inside = graphs and len(taken) >= 2
            if inside:
                monkeypatch.setattr(Trainer, "_note_cause", lambda *_: None)  # left out with graphs
            with Captured() if inside else nullcontext():
                taken.append(step(batch))
            return taken[-1]

        return take

    monkeypatch.setattr(Trainer, "_stepper", captured)
    return taken


@pytest.mark.parametrize(("table", "label", "dataset"), ROWS)
def test_training_in_a_graph_prediction_and_attack_stay_on_the_device(table, label, dataset, cuda, steps):
    model, split, training_data, trainer = trainer_of(table, label, dataset, cuda)
    first, _ = trainer.run()
    assert first.reason is None and len(steps) > 2
    streams = Streams([5], cuda, DTYPES[trainer.training.dtype])
    parameters = model.after_training(first.parameters, training_data.of(0), streams)
    assert {value.device for value in parameters.values()} == {cuda}
    f, _ = predict(
        model, parameters, torch.from_numpy(split.test.x), SAMPLES, streams, partial(inputs_of, training_data)
    )
    assert f.device == cuda and f.shape[1:] == (IMAGES, split.n_outputs)
    if split.pixels is not None:
        clean = SimpleNamespace(x=split.test.x, y=split.test.y, epsilon=0.1)
        changed = attack(model, parameters, training_data, clean, SAMPLES, streams)
        assert changed.device == cuda and changed.shape == split.test.x.shape
