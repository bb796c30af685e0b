"""Thirteen kinds of module that users bring, small."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev
from torch.nn.attention import SDPBackend, sdpa_kernel

from fvi_core.networks import ModuleNetwork, Parameters

F = nn.functional
Q = 3


class Perceptron(nn.Module):
    """Two hidden layers; with ``drop`` an nn.Dropout after each."""

    def __init__(self, features: int = 4, outputs: int = Q, width: int = 8, drop: float = 0.0) -> None:
        super().__init__()
        self.a, self.b, self.fc = nn.Linear(features, width), nn.Linear(width, width), nn.Linear(width, outputs)
        self.drop = nn.Dropout(drop) if drop else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.drop(torch.relu(self.b(self.drop(torch.relu(self.a(x)))))))


class Convolutional(nn.Module):
    """Two convolutions with pooling, a dense layer, the head; written with functions and a view."""

    def __init__(self, channels: tuple[int, int] = (4, 6), dense: int = 8, size: int = 8, outputs: int = Q) -> None:
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, channels[0], 3, padding=1), nn.Conv2d(*channels, 3, padding=1)
        self.d, self.fc = nn.Linear(channels[1] * (size // 4) ** 2, dense), nn.Linear(dense, outputs)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = torch.max_pool2d(self.c2(x).relu(), 2)
        return self.fc(torch.relu(self.d(x.view(x.size(0), -1))))


class GroupNormed(nn.Module):
    """A residual block with group normalisation and a grouped convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4)
        self.grouped, self.fc = nn.Conv2d(4, 4, 3, padding=1, groups=2), nn.Linear(4, Q)

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.norm(self.stem(x)))
        return self.fc((x + self.grouped(x)).mean((2, 3)))


class BatchNormed(nn.Module):
    """A residual block with BatchNorm2d, ReLU in place, and a momentum that is not PyTorch's default."""

    def __init__(self, momentum: float = 0.2) -> None:
        super().__init__()
        self.stem, self.first = nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4, momentum=momentum)
        self.conv, self.second = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4, momentum=momentum)
        self.relu, self.fc = nn.ReLU(inplace=True), nn.Linear(4, Q)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.first(self.stem(x)))
        z = self.second(self.conv(x))
        z += x
        return self.fc(F.relu(z, inplace=True).mean((2, 3)))


class Text(nn.Module):
    """Tokens through an embedding and a transformer layer, batch first or sequence first."""

    def __init__(self, first: bool = True, drop: float = 0.0) -> None:
        super().__init__()
        self.first, self.embed, self.fc = first, nn.Embedding(20, 8), nn.Linear(8, Q)
        self.layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=drop, batch_first=first)

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        return self.fc(self.layer(h).mean(1) if self.first else self.layer(h.transpose(0, 1)).mean(0))


class Vision(nn.Module):
    """Patches, a class token, positions and attention: parameters at the root of the module."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.fc = nn.Conv2d(1, 8, 4, 4), nn.Linear(8, Q)
        self.token, self.position = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(0.1 * torch.randn(1, 5, 8))
        self.norm, self.attention = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        h = self.patch(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.token.expand(len(h), -1, -1), h], 1) + self.position
        normed = self.norm(h)
        return self.fc((h + self.attention(normed, normed, normed, need_weights=False)[0])[:, 0])


class Attentive(nn.Module):
    """Self-attention over the features of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.lift, self.attention = nn.Linear(1, 8), nn.MultiheadAttention(8, 2, batch_first=True)
        self.fc = nn.Linear(8, Q)

    def forward(self, x: Tensor) -> Tensor:
        h = self.lift(x.unsqueeze(-1))
        return self.fc((h + self.attention(h, h, h, need_weights=False)[0]).mean(1))


class Bag(nn.Module):
    """The mean of an embedding, between layers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.hidden, self.fc = nn.Embedding(20, 6), nn.Linear(6, 8), nn.Linear(8, Q)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(torch.tanh(self.hidden(self.embed(x).mean(1))))


class Recurrent(nn.Module):
    """The last state of an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.fc = nn.LSTM(1, 6, batch_first=True), nn.Linear(6, Q)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.cell(x.unsqueeze(-1))[0][:, -1])


class Reused(nn.Module):
    """A layer that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.lift, self.again, self.fc = nn.Linear(4, 6), nn.Linear(6, 6), nn.Linear(6, Q)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.lift(x))
        return self.fc(torch.tanh(self.again(torch.tanh(self.again(h)))))


def batch_normed_perceptron() -> nn.Module:
    """BatchNorm1d between linear layers."""
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ELU(), nn.Linear(8, Q))


def table(n: int, seed: int = 0) -> Tensor:
    """Features ``[n, 4]``."""
    return torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))


def images(n: int, seed: int = 0) -> Tensor:
    """Images ``[n, 1, 8, 8]``."""
    return torch.randn(n, 1, 8, 8, generator=torch.Generator().manual_seed(seed))


def tokens(n: int, seed: int = 0) -> Tensor:
    """Whole numbers ``[n, 5]``."""
    return torch.randint(20, (n, 5), generator=torch.Generator().manual_seed(seed))


KINDS: dict[str, tuple[Callable[[], nn.Module], Callable[..., Tensor], str]] = {
    "perceptron": (Perceptron, table, "translated"),
    "dropout": (lambda: Perceptron(drop=0.2), table, "translated"),
    "convolutional": (Convolutional, images, "translated"),
    "group norm": (GroupNormed, images, "leaves"),
    "batch norm": (BatchNormed, images, "leaves"),
    "batch norm 1d": (batch_normed_perceptron, table, "leaves"),
    "transformer": (Text, tokens, "leaves"),
    "sequence first": (lambda: Text(first=False), tokens, "whole"),
    "vision": (Vision, images, "whole"),
    "attention": (Attentive, table, "leaves"),
    "embedding bag": (Bag, tokens, "leaves"),
    "lstm": (Recurrent, table, "whole"),
    "reused": (Reused, table, "whole"),
}
"""A function that makes the module, one that makes inputs, and the way in which it becomes a network."""


def network(kind: str) -> ModuleNetwork:
    """Return a module of a kind as a network."""
    make, inputs, _ = KINDS[kind]
    torch.manual_seed(0)
    return ModuleNetwork(make, inputs(3))


def brute_jacobian(net: ModuleNetwork, parameters: Parameters, x: Tensor) -> Tensor:
    """``[N, Q, P]`` in float64 by reverse-mode differentiation of ``functional_call``, in the order of
    ``net.shapes``.
    """
    module = copy.deepcopy(net.module).double()
    state = net.state_of({name: value[:, None].double() for name, value in parameters.items()})
    trained = {net.states[name].name for name in net.shapes}
    fixed = {name: value for name, value in state.items() if name not in trained}
    inputs = x.double() if net.tokens is None else x

    def value(own: dict[str, Tensor]) -> Tensor:
        return functional_call(module, own | fixed, inputs)

    with sdpa_kernel(SDPBackend.MATH):
        found = jacrev(value)({name: state[name] for name in trained})
    rows = {name: found[net.states[name].name] for name in net.shapes}
    return torch.cat([(j.mT if net.states[name].transposed else j).flatten(2) for name, j in rows.items()], -1)
