"""Networks as pure functions of their parameters, over a replica axis R and a sample axis S.

A network is a sequence of layers. Parameters are a dict of tensors ``[R, S, *shape]``; inputs are ``[R, N, ...]``; outputs
are ``[R, S, N, Q]``. Nothing mixes replicas or samples, so a stack of replicas computes exactly what each computes alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from fvi_core.random import Streams
from fvi_core.registry import NETWORKS

Parameters = dict[str, Tensor]
Dropout = Callable[[str, Tensor], Tensor]
ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "gelu": F.gelu, "softplus": F.softplus}
HEAD = "head"


@dataclass
class Tape:
    """What linearisation needs of a forward pass: each parametrised layer with its input and its output."""

    entries: list[tuple[Linear | Conv2d, Tensor, Tensor]] = field(default_factory=list)


@dataclass(frozen=True)
class Linear:
    """``z = a W + b`` with ``W [in, out]``."""

    name: str
    inputs: int
    outputs: int

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {f"{self.name}.weight": (self.inputs, self.outputs), f"{self.name}.bias": (self.outputs,)}

    @property
    def fan_in(self) -> int:
        return self.inputs

    def __call__(self, parameters: Parameters, a: Tensor) -> Tensor:
        # Computed transposed, units before points: with few units and many points every product then runs along the longer
        # axis, and the layers of many samples that share their inputs are one product. Returned as a transposed view.
        weight, bias = parameters[f"{self.name}.weight"], parameters[f"{self.name}.bias"]
        samples = max(a.shape[1], weight.shape[1])
        if samples > 1 and a.shape[1] == 1:
            return self._shared_inputs(weight, bias, a).transpose(-1, -2)
        a = a.transpose(-1, -2).expand(-1, samples, -1, -1).flatten(0, 1)
        weight = weight.transpose(-1, -2).expand(-1, samples, -1, -1).flatten(0, 1)
        bias = bias.unsqueeze(-1).expand(-1, samples, -1, -1).flatten(0, 1)
        return torch.baddbmm(bias, weight, a).unflatten(0, (-1, samples)).transpose(-1, -2)

    def _shared_inputs(self, weight: Tensor, bias: Tensor, a: Tensor) -> Tensor:
        """``[R, S, out, N]`` for weights ``[R, S, in, out]`` and inputs ``[R, 1, N, in]`` that all S samples share."""
        a = torch.cat([a.squeeze(1).transpose(-1, -2), a.new_ones(a.shape[0], 1, a.shape[2])], dim=1)
        stacked = torch.cat([weight, bias.unsqueeze(-2)], dim=-2).transpose(1, 2).flatten(2)
        z = [torch.mm(w.t(), x) for w, x in zip(stacked, a, strict=True)]
        return (torch.stack(z) if len(z) > 1 else z[0].unsqueeze(0)).unflatten(1, (weight.shape[1], self.outputs))

@dataclass(frozen=True)
class Conv2d:
    """A convolution with ``W [out, in, k, k]`` and zero padding; one call per replica and sample."""

    name: str
    inputs: int
    outputs: int
    kernel: int = 3
    padding: int = 1
    stride: int = 1

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {f"{self.name}.weight": (self.outputs, self.inputs, self.kernel, self.kernel), f"{self.name}.bias": (self.outputs,)}

    @property
    def fan_in(self) -> int:
        return self.inputs * self.kernel**2

    def __call__(self, parameters: Parameters, a: Tensor) -> Tensor:
        weight, bias = parameters[f"{self.name}.weight"], parameters[f"{self.name}.bias"]
        lead = torch.broadcast_shapes(a.shape[:-4], weight.shape[:-4])
        flat = math.prod(lead)
        a = a.expand(*lead, *a.shape[-4:]).reshape(flat, *a.shape[-4:])
        weight = weight.expand(*lead, *weight.shape[-4:]).reshape(flat, *weight.shape[-4:])
        bias = bias.expand(*lead, bias.shape[-1]).reshape(flat, bias.shape[-1])
        z = [F.conv2d(a[i], weight[i], bias[i], stride=self.stride, padding=self.padding) for i in range(flat)]
        z = z[0].unsqueeze(0) if flat == 1 else torch.stack(z)
        return z.view(*lead, *z.shape[1:])


@dataclass(frozen=True)
class Activation:
    """An elementwise nonlinearity."""

    function: str

    def __call__(self, parameters: Parameters, a: Tensor) -> Tensor:
        return ACTIVATIONS[self.function](a)


@dataclass(frozen=True)
class MaxPool:
    """2x2 max-pooling with stride 2."""

    def __call__(self, parameters: Parameters, a: Tensor) -> Tensor:
        return F.max_pool2d(a.flatten(0, -4), 2).view(*a.shape[:-2], a.shape[-2] // 2, a.shape[-1] // 2)


@dataclass(frozen=True)
class Flatten:
    """Joins the axes of one input into one."""

    event: int

    def __call__(self, parameters: Parameters, a: Tensor) -> Tensor:
        return a.flatten(-self.event) if self.event > 1 else a


@dataclass(frozen=True)
class DropoutSite:
    """A place where the dropout family may mask activations; every other family passes."""

    name: str


class Network:
    """A sequence of layers whose last is the linear head; ``head(features(x))`` is the network by construction."""

    def __init__(self, layers: list, input_shape: tuple[int, ...]):
        self.layers = layers
        self.input_shape = input_shape
        self.parametrised = [layer for layer in layers if isinstance(layer, Linear | Conv2d)]
        self.head: Linear = layers[-1]
        self.shapes = {name: shape for layer in self.parametrised for name, shape in layer.shapes.items()}
        self.sizes = {name: math.prod(shape) for name, shape in self.shapes.items()}
        self.n_parameters = sum(self.sizes.values())
        self.n_outputs = self.head.outputs
        self.width = max(max(layer.inputs, layer.outputs) for layer in self.parametrised)
        hidden = [layer for layer in layers if not isinstance(layer, DropoutSite)]
        self.shallow = len(hidden) == 3 and hidden[1] == Activation("relu") and self.n_outputs == 1
        self.convolutional = any(isinstance(layer, Conv2d) for layer in layers)

    def init(self, streams: Streams) -> Parameters:
        """Weights and biases uniform on +-1/sqrt(fan_in) (PyTorch's default), ``[R, *shape]``."""
        parameters = {}
        for layer in self.parametrised:
            bound = 1 / math.sqrt(layer.fan_in)
            for name, shape in layer.shapes.items():
                parameters[name] = (streams.uniform(*shape) * 2 - 1) * bound
        return parameters

    def features(self, parameters: Parameters, x: Tensor, dropout: Dropout | None = None, tape: Tape | None = None) -> Tensor:
        """Inputs of the last layer, ``[R, S, N, F]``."""
        return self._run(self.layers[:-1], parameters, x.unsqueeze(1), dropout, tape)

    def __call__(self, parameters: Parameters, x: Tensor, dropout: Dropout | None = None, tape: Tape | None = None) -> Tensor:
        """Function values ``[R, S, N, Q]`` at inputs ``x [R, N, ...]``."""
        if x.shape[2:] != self.input_shape:
            raise ValueError(f"network expects inputs [R, N, {', '.join(map(str, self.input_shape))}], found {list(x.shape)}")
        return self._run(self.layers, parameters, x.unsqueeze(1), dropout, tape)

    def _run(self, layers, parameters: Parameters, a: Tensor, dropout: Dropout | None, tape: Tape | None) -> Tensor:
        for layer in layers:
            if isinstance(layer, DropoutSite):
                a = a if dropout is None else dropout(layer.name, a)
            elif tape is not None and isinstance(layer, Linear | Conv2d):
                z = layer(parameters, a)
                tape.entries.append((layer, a, z))
                a = z
            else:
                a = layer(parameters, a)
        return a

    def unflatten(self, flat: Tensor) -> Parameters:
        """Split ``[..., P]`` into named parameters ``[..., *shape]``, in the order of ``shapes``."""
        pieces = flat.split(list(self.sizes.values()), dim=-1)
        return {name: piece.unflatten(-1, shape) for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)}

    def flatten(self, parameters: Parameters) -> Tensor:
        """The inverse of :meth:`unflatten`, ``[..., P]``."""
        return torch.cat([parameters[name].flatten(-len(shape)) for name, shape in self.shapes.items()], dim=-1)


@NETWORKS.register("mlp")
@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron on flattened inputs; a dropout site after every hidden activation."""

    hidden: list[int]
    activation: str = "relu"

    def build(self, input_shape: tuple[int, ...], n_outputs: int) -> Network:
        layers: list = [Flatten(len(input_shape))] if len(input_shape) > 1 else []
        width = math.prod(input_shape)
        for i, units in enumerate(self.hidden):
            layers += [Linear(f"hidden{i}", width, units), Activation(self.activation), DropoutSite(f"hidden{i}")]
            width = units
        return Network([*layers, Linear(HEAD, width, n_outputs)], tuple(input_shape))


@NETWORKS.register("cnn")
@dataclass(frozen=True)
class CNN:
    """3x3 convolutions, each followed by a ReLU and (where ``pool`` says so) 2x2 max-pooling, then dense layers.

    rudner2022's four-layer network: channels [32, 64], pool [1, 1], dense [256]; cinquin2024's: channels [16, 32, 64],
    pool [1, 1, 0], dense [128]. Dropout sites: after each convolution's ReLU, before each dense layer and before the head.
    """

    channels: list[int]
    dense: list[int]
    pool: list[int]

    def build(self, input_shape: tuple[int, ...], n_outputs: int) -> Network:
        if len(input_shape) != 3:
            raise ValueError(f"network 'cnn' expects images [channels, height, width], found {list(input_shape)}")
        planes, height, width = input_shape
        layers: list = []
        for i, (channels, pool) in enumerate(zip(self.channels, self.pool, strict=True)):
            layers += [Conv2d(f"conv{i}", planes, channels), Activation("relu"), DropoutSite(f"conv{i}")]
            if pool:
                layers.append(MaxPool())
                height, width = height // 2, width // 2
            planes = channels
        layers.append(Flatten(3))
        units = planes * height * width
        for i, out in enumerate(self.dense):
            layers += [DropoutSite(f"dense{i}"), Linear(f"dense{i}", units, out), Activation("relu")]
            units = out
        return Network([*layers, DropoutSite(HEAD), Linear(HEAD, units, n_outputs)], tuple(input_shape))
