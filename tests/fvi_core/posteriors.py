"""Small data and modules to fit."""

import torch
from torch import nn

QUICK = {"epochs": 2, "progress": False}
HERE = {"context": {"name": "training_batch"}}


def labels(n: int) -> torch.Tensor:
    return torch.arange(n) % 3


def line(n: int = 40) -> tuple[torch.Tensor, torch.Tensor]:
    """A regression in large units."""
    x = torch.linspace(-1, 1, n)[:, None]
    return x, 300 + 50 * x[:, 0] + 5 * torch.randn(n, generator=torch.Generator().manual_seed(0))


def regressor(outputs: int = 1) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, outputs))
