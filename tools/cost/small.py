"""Benchmark of a step of one small network over the loop that one writes in plain PyTorch for the same objective."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from fvi_core import interface, methods
from fvi_core.data import TrainingData
from fvi_core.networks import Parameters
from fvi_core.random import Streams
from fvi_core.registry import NETWORKS, TRAININGS
from fvi_core.training import ReplicaResult, Trainer
from tools.cost.modules import LR, data
from tools.cost.timing import Measurement, Work, interleave, ratio, threads

POINTS, BATCH, EPOCHS = 450, 50, 20
NAMES = ("hidden0.weight", "hidden0.bias", "head.weight", "head.bias")


def trainer(method: str, given: TrainingData, batch: int, epochs: int, log_var: float = -9.0) -> Trainer:
    """Return the training of MAP, or of MFVI with these initial log-variances, on a network with 50 hidden units."""
    parts: dict[str, Any] = methods.get(method).parts() | {"likelihood": {"name": "gaussian"}}
    if method == "MFVI":
        parts["family"] |= {"log_var_init": (log_var, log_var)}
    network = NETWORKS.build({"name": "mlp", "hidden": [50]}).build(given.x.shape[2:], 1)
    spec = {"name": "gradient", "epochs": epochs, "batch_size": batch, "optimiser": {"name": "adam", "lr": LR}}
    return TRAININGS.build(spec).start(interface.build(network, parts, {}), given, Streams([0]))


def plain(start: Parameters, given: TrainingData, batch: int, epochs: int) -> Callable[[], list[ReplicaResult]]:
    """Return the same training from the same parameters ``[1, ...]``, as a user writes it."""
    held = {name: value[0].detach().clone().requires_grad_() for name, value in start.items()}
    drawn = f"mean/{NAMES[0]}" in held
    means = [held[f"mean/{name}" if drawn else name] for name in NAMES]
    log_vars = [held[f"log_var/{name}"] for name in NAMES] if drawn else []
    descent = torch.optim.Adam(held.values(), LR)
    x, y = given.x[0], given.y[0]

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
        return penalty / given.x.shape[1] - density.mean()

    def run() -> list[ReplicaResult]:
        for _ in range(epochs):
            for rows in torch.randperm(len(x)).split(batch):
                descent.zero_grad()
                loss(x[rows], y[rows]).backward()
                descent.step()
        return [ReplicaResult({name: value.detach()[None] for name, value in held.items()}, epochs, [])]

    return run


def small(repeats: int) -> list[Measurement]:
    """Measure a step of MAP and of MFVI (one draw) over plain PyTorch's, on one thread: 13-50-1 units, batch 50."""
    given, found = data((13,), POINTS, 1), []
    for method in ("MAP", "MFVI"):
        names = f"{method}, 13-50-1", f"{method}, 13-50-1, plain loop"
        start = trainer(method, given, BATCH, EPOCHS).parameters
        works: dict[str, Work] = {
            names[0]: lambda: trainer(method, given, BATCH, EPOCHS).run,  # noqa: B023
            names[1]: lambda: plain(start, given, BATCH, EPOCHS),  # noqa: B023
        }
        with threads(1):
            times = interleave(works, repeats, EPOCHS * POINTS // BATCH)
        found.append(ratio("small", *names, times, 1, goal=1.3))
    return found
