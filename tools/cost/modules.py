"""A step on a user's module over the same step on the built-in network, and over a plain PyTorch loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fvi_core import interface, methods
from fvi_core.data import TrainingData
from fvi_core.networks import ModuleNetwork, Network
from fvi_core.random import Streams
from fvi_core.registry import NETWORKS, TRAININGS
from fvi_core.training import Trained
from tools.cost.timing import Measurement, Work, interleave, ratio, threads

CONTEXT = {"FSVI": {"name": "random_pixel", "points": 10}, "GFSVI": {"name": "training_batch", "points": 20}}
LR = 1e-3


def perceptron() -> nn.Module:
    """8-50-50-1."""
    return nn.Sequential(nn.Linear(8, 50), nn.ReLU(), nn.Linear(50, 50), nn.ReLU(), nn.Linear(50, 1))


def convolutional() -> nn.Module:
    """rudner2022's FashionMNIST network."""
    first = (nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    second = (nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(*first, *second, nn.Linear(64 * 49, 256), nn.ReLU(), nn.Linear(256, 10))


def group_normed() -> nn.Module:
    """A convolutional network with group normalisation."""
    first = (nn.Conv2d(1, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2))
    second = (nn.Conv2d(16, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(*first, *second, nn.Linear(32 * 49, 10))


class Attentive(nn.Module):
    """Tokens, or patches of images, through a transformer layer."""

    def __init__(self, lift: nn.Module, units: int = 32) -> None:
        super().__init__()
        self.lift, self.fc = lift, nn.Linear(units, 10)
        self.layer = nn.TransformerEncoderLayer(units, 4, 64, dropout=0.0, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        h = self.lift(x)
        h = h.flatten(2).transpose(1, 2) if h.dim() == 4 else h
        return self.fc(self.layer(h).mean(1))


class Recurrent(nn.Module):
    """The last state of an LSTM over the rows of images."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.fc = nn.LSTM(28, 32, batch_first=True), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.cell(x.squeeze(1))[0][:, -1])


def data(shape: Sequence[int], n: int, outputs: int, tokens: int = 0) -> TrainingData:
    """Random inputs, with labels or, for one output, numbers as targets."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, n, *shape, generator=generator)
    x = torch.randint(tokens, x.shape, generator=generator).float() if tokens else x
    y = x.flatten(2)[..., 0] if outputs == 1 else torch.randint(outputs, (1, n), generator=generator)
    return TrainingData(x, y, x.amin(1), x.amax(1))


def training(network: Network, method: str, given: TrainingData, steps: int, samples: int = 1) -> Work:
    """So many steps of a method on all of the data."""
    parts: dict[str, Any] = methods.get(method).parts()
    parts["likelihood"] = {"name": "categorical" if given.classification else "gaussian"}
    if parts["context"] is not None:
        parts["context"] = CONTEXT.get(method, parts["context"])
    spec = {"name": "gradient", "epochs": steps, "batch_size": given.x.shape[1], "samples": samples}
    settings = TRAININGS.build({**spec, "optimiser": {"name": "adam", "lr": LR}})
    model = interface.build(network, parts, {})
    return lambda: settings.start(model, given, Streams([0])).run


def plain(make: Callable[[], nn.Module], given: TrainingData, steps: int, tokens: bool) -> Work:
    """The loop that a user writes for MAP: cross-entropy, a penalty on weights, Adam."""

    def begin() -> Callable[[], list[Trained]]:
        module, n = make(), given.x.shape[1]
        descent = torch.optim.Adam(module.parameters(), LR)
        x, y = given.x[0].long() if tokens else given.x[0], given.y[0]

        def run() -> list[Trained]:
            for _ in range(steps):
                descent.zero_grad()
                penalty = sum(value.square().sum() for value in module.parameters()) / (2 * n)
                (nn.functional.cross_entropy(module(x), y) + penalty).backward()
                descent.step()
            return [Trained({}, steps, [])]

        return run

    return begin


def _pair(built: Network, make: Callable[[], nn.Module], way: str, method: str, given: TrainingData, steps: int,
          samples: int, repeats: int, goal: float, what: str) -> Measurement:  # fmt: skip
    names = f"{method}, {what} {way}", f"{method}, built-in"
    networks = ModuleNetwork(make, given.x[0], way=way), built
    works = {name: training(each, method, given, steps, samples) for name, each in zip(names, networks, strict=True)}
    return ratio("modules", *names, interleave(works, repeats, steps), 1, goal=goal)


def modules(repeats: int) -> list[Measurement]:
    """Steps on modules over steps on the built-in networks that they equal, and over plain PyTorch, on one thread."""
    table, image, colour = data((8,), 100, 1), data((1, 28, 28), 64, 10), data((3, 32, 32), 8, 10)
    mlp = NETWORKS.build({"name": "mlp", "hidden": [50, 50]}).build((8,), 1)
    cnn = NETWORKS.build({"name": "cnn", "channels": [32, 64], "pool": [1, 1], "dense": [256]}).build((1, 28, 28), 10)
    resnet = NETWORKS.build({"name": "resnet18"}).build((3, 32, 32), 10)
    theirs = NETWORKS.build({"name": "torchvision", "model": "resnet18"}).build((3, 32, 32), 10)
    found = []
    with threads(1):
        for method, samples in (("MAP", 1), ("MFVI", 10), ("FSVI", 1), ("GFSVI", 1)):
            about = method, table, 30, samples, repeats
            found.append(_pair(mlp, perceptron, "translated", *about, 1.03, "MLP"))
        for way, goal in (("translated", 1.03), ("leaves", 1.25)):
            for method, samples in (("MAP", 1), ("MFVI", 3), ("FSVI", 1)):
                about = method, image, 2, samples, repeats
                found.append(_pair(cnn, convolutional, way, *about, goal, "CNN"))
        for method in ("MAP", "FSVI"):
            found.append(_pair(resnet, theirs.make, "leaves", method, colour, 1, 1, repeats, 1.10, "ResNet-18"))
        for name, make, given in (
            ("CNN with GroupNorm", group_normed, image),
            ("transformer", lambda: Attentive(nn.Embedding(100, 32)), data((16,), 64, 10, tokens=100)),
            ("ViT", lambda: Attentive(nn.Conv2d(1, 32, 7, 7)), image),
            ("LSTM", Recurrent, image),
        ):
            tokens = given.x.dim() == 3
            example = given.x[0].long() if tokens else given.x[0]
            names = f"MAP, {name}", f"MAP, {name}, plain loop"
            steps = 10
            works = (training(ModuleNetwork(make, example), "MAP", given, steps), plain(make, given, steps, tokens))
            times = interleave(dict(zip(names, works, strict=True)), repeats, steps)
            found.append(ratio("modules", *names, times, 1, goal=1.3))
    return found
