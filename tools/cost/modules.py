"""Benchmarks of a step: on a user's module over the built-in network's, and on both over a loop in plain PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fvi_core import interface, methods
from fvi_core.data import TrainingData
from fvi_core.networks import ModuleNetwork, Network, Parameters
from fvi_core.random import Streams
from fvi_core.registry import NETWORKS, TRAININGS
from fvi_core.training import ReplicaResult, Trainer
from tools.cost.timing import Measurement, Work, interleave, ratio, threads

CONTEXT = {"FSVI": {"name": "random_pixel", "points": 10}, "GFSVI": {"name": "training_batch", "points": 20}}
LR = 1e-3
POINTS, BATCH, EPOCHS = 450, 50, 20
NAMES = ("hidden0.weight", "hidden0.bias", "head.weight", "head.bias")  # of the layers of the dense network


def perceptron() -> nn.Module:
    """Return an 8-50-50-1 network."""
    return nn.Sequential(nn.Linear(8, 50), nn.ReLU(), nn.Linear(50, 50), nn.ReLU(), nn.Linear(50, 1))


def convolutional() -> nn.Module:
    """Return rudner2022's FashionMNIST network."""
    first = (nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    second = (nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(*first, *second, nn.Linear(64 * 49, 256), nn.ReLU(), nn.Linear(256, 10))


def group_normed() -> nn.Module:
    """Return a convolutional network with group normalisation."""
    first = (nn.Conv2d(1, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2))
    second = (nn.Conv2d(16, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(*first, *second, nn.Linear(32 * 49, 10))


class Attentive(nn.Module):
    """Transformer layer over tokens or patches of images."""

    def __init__(self, lift: nn.Module, units: int = 32) -> None:
        super().__init__()
        self.lift, self.fc = lift, nn.Linear(units, 10)
        self.layer = nn.TransformerEncoderLayer(units, 4, 64, dropout=0.0, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        h = self.lift(x)
        h = h.flatten(2).transpose(1, 2) if h.dim() == 4 else h
        return self.fc(self.layer(h).mean(1))


class Recurrent(nn.Module):
    """Classifier on the last state of an LSTM over the rows of images."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.fc = nn.LSTM(28, 32, batch_first=True), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.cell(x.squeeze(1))[0][:, -1])


def data(shape: Sequence[int], n: int, outputs: int, tokens: int = 0) -> TrainingData:
    """Return random inputs, with labels or, for one output, numbers as targets."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, n, *shape, generator=generator)
    x = torch.randint(tokens, x.shape, generator=generator).float() if tokens else x
    y = x.flatten(2)[..., 0] if outputs == 1 else torch.randint(outputs, (1, n), generator=generator)
    return TrainingData(x, y, x.amin(1), x.amax(1))


def training(network: Network, method: str, train: TrainingData, batch: int, samples: int = 1) -> Work:
    """Return one epoch of a method as timed work."""
    parts: dict[str, Any] = methods.get(method).parts()
    parts["likelihood"] = {"name": "categorical" if train.classification else "gaussian"}
    if parts["context"] is not None:
        parts["context"] = CONTEXT.get(method, parts["context"])
    spec = {"name": "gradient", "epochs": 1, "batch_size": batch, "samples": samples}
    settings = TRAININGS.build({**spec, "optimiser": {"name": "adam", "lr": LR}})
    model = interface.build(network, parts, {})
    return lambda: settings.start(model, train, Streams([0])).run


def steps(
    weights: Mapping[str, Tensor],
    loss: Callable[[Tensor, Tensor], Tensor],
    x: Tensor,
    y: Tensor,
    batch: int,
    epochs: int = 1,
) -> Callable[[], list[ReplicaResult]]:
    """Return training as a user writes it in plain PyTorch: Adam on a loss of random batches."""
    descent = torch.optim.Adam(weights.values(), LR)

    def run() -> list[ReplicaResult]:
        for _ in range(epochs):
            for rows in torch.randperm(len(x)).split(batch):
                descent.zero_grad()
                loss(x[rows], y[rows]).backward()
                descent.step()
        return [ReplicaResult(dict(weights), epochs, [])]

    return run


def plain(make: Callable[[], nn.Module], train: TrainingData, batch: int, tokens: bool) -> Work:
    """Return an epoch as a user writes it for MAP: cross-entropy, a penalty on weights, Adam."""

    def begin() -> Callable[[], list[ReplicaResult]]:
        module, x = make(), train.x[0].long() if tokens else train.x[0]

        def loss(x: Tensor, y: Tensor) -> Tensor:
            penalty = sum(value.square().sum() for value in module.parameters()) / (2 * train.x.shape[1])
            return nn.functional.cross_entropy(module(x), y) + penalty

        return steps(dict(module.named_parameters()), loss, x, train.y[0], batch)

    return begin


def _pair(
    name: str, way: str, make: Callable[[], nn.Module], built: Network, train: TrainingData, batch: int, goal: float
) -> Callable[[str, int, int], Measurement]:
    """Return a function (method, samples, repeats) that measures the module's step over the built-in network's."""
    network = ModuleNetwork(make, train.x[0, :3], way=way)

    def measured(method: str, samples: int, repeats: int) -> Measurement:
        names = f"{method}, {name} {way}", f"{method}, {name} built-in"
        works = {
            x: training(each, method, train, batch, samples) for x, each in zip(names, (network, built), strict=True)
        }
        return ratio("modules", *names, interleave(works, repeats, train.x.shape[1] // batch), 1, goal=goal)

    return measured


def modules(repeats: int) -> list[Measurement]:
    """Measure steps on modules over steps on equal built-in networks, and over plain PyTorch, on one thread."""
    table, image, colour = data((8,), 3000, 1), data((1, 28, 28), 128, 10), data((3, 32, 32), 8, 10)
    mlp = NETWORKS.build({"name": "mlp", "hidden": [50, 50]}).build((8,), 1)
    cnn = NETWORKS.build({"name": "cnn", "channels": [32, 64], "pool": [1, 1], "dense": [256]}).build((1, 28, 28), 10)
    resnet = NETWORKS.build({"name": "resnet18"}).build((3, 32, 32), 10)
    theirs = NETWORKS.build({"name": "torchvision", "model": "resnet18"}).build((3, 32, 32), 10).make
    found = []
    with threads(1):
        for measure, methods_of in (
            (
                _pair("MLP", "translated", perceptron, mlp, table, 100, 1.03),
                {"MAP": 1, "MFVI": 10, "FSVI": 1, "GFSVI": 1},
            ),
            (_pair("CNN", "translated", convolutional, cnn, image, 64, 1.03), {"MAP": 1, "MFVI": 3, "FSVI": 1}),
            (_pair("CNN", "leaves", convolutional, cnn, image, 64, 1.25), {"MAP": 1, "MFVI": 3, "FSVI": 1}),
            (_pair("ResNet-18", "leaves", theirs, resnet, colour, 8, 1.10), {"MAP": 1, "FSVI": 1}),
        ):
            found += [measure(method, samples, repeats) for method, samples in methods_of.items()]
        rows = data((1, 28, 28), 640, 10)
        for name, make, train in (
            ("CNN with GroupNorm", group_normed, rows),
            ("transformer", lambda: Attentive(nn.Embedding(100, 32)), data((16,), 640, 10, tokens=100)),
            ("ViT", lambda: Attentive(nn.Conv2d(1, 32, 7, 7)), rows),
            ("LSTM", Recurrent, rows),
        ):
            tokens, names = train.x.dim() == 3, (f"MAP, {name}", f"MAP, {name}, plain loop")
            network = ModuleNetwork(make, train.x[0, :3].long() if tokens else train.x[0, :3])
            works = training(network, "MAP", train, 64), plain(make, train, 64, tokens)
            found.append(ratio("modules", *names, interleave(dict(zip(names, works)), repeats, 10), 1, goal=1.3))
    return found


def dense(method: str, train: TrainingData, batch: int, epochs: int, log_var: float = -9.0) -> Trainer:
    """Return the training of MAP, or of MFVI with these initial log-variances, on a network with 50 hidden units."""
    parts: dict[str, Any] = methods.get(method).parts() | {"likelihood": {"name": "gaussian"}}
    if method == "MFVI":
        parts["family"] |= {"log_var_init": (log_var, log_var)}
    network = NETWORKS.build({"name": "mlp", "hidden": [50]}).build(train.x.shape[2:], 1)
    spec = {"name": "gradient", "epochs": epochs, "batch_size": batch, "optimiser": {"name": "adam", "lr": LR}}
    return TRAININGS.build(spec).start(interface.build(network, parts, {}), train, Streams([0]))


def plain_dense(start: Parameters, train: TrainingData, batch: int, epochs: int) -> Callable[[], list[ReplicaResult]]:
    """Return the same training from the same parameters ``[1, ...]``, as a user writes it."""
    held = {name: value[0].detach().clone().requires_grad_() for name, value in start.items()}
    drawn = f"mean/{NAMES[0]}" in held
    means = [held[f"mean/{name}" if drawn else name] for name in NAMES]
    log_vars = [held[f"log_var/{name}"] for name in NAMES] if drawn else []

    def loss(x: Tensor, y: Tensor) -> Tensor:
        penalty = sum(m.square().sum() for m in means) / 2
        weights = means
        if drawn:
            weights = [m + torch.exp(v / 2) * torch.randn_like(m) for m, v in zip(means, log_vars, strict=True)]
            penalty = penalty + sum((v.exp() - 1 - v).sum() for v in log_vars) / 2
        w, b, u, c = weights
        f = torch.addmm(c, torch.relu(torch.addmm(b, x, w)), u)[:, 0]
        std = nn.functional.softplus(held["likelihood/rho"])
        density = -0.5 * math.log(2 * math.pi) - std.log() - (y - f).square() / (2 * std.square())
        return penalty / train.x.shape[1] - density.mean()

    return steps(held, loss, train.x[0], train.y[0], batch, epochs)


def small(repeats: int) -> list[Measurement]:
    """Measure a step of MAP and of MFVI (one draw) over plain PyTorch's, on one thread: 13-50-1 units, batch 50."""
    train, found = data((13,), POINTS, 1), []
    for method in ("MAP", "MFVI"):
        names = f"{method}, 13-50-1", f"{method}, 13-50-1, plain loop"
        start = dense(method, train, BATCH, EPOCHS).parameters
        works: dict[str, Work] = {
            names[0]: lambda: dense(method, train, BATCH, EPOCHS).run,  # noqa: B023
            names[1]: lambda: plain_dense(start, train, BATCH, EPOCHS),  # noqa: B023
        }
        with threads(1):
            times = interleave(works, repeats, EPOCHS * POINTS // BATCH)
        found.append(ratio("small", *names, times, 1, goal=1.3))
    return found
