"""A network: layers in sequence, the last of them the linear head."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from fvi_core.networks.layers import (
    SLOPED,
    Activation,
    BatchNorm,
    Conv2d,
    DropoutSite,
    Flatten,
    Linear,
    Masks,
    MaxPool,
    Parallel,
    Parameters,
    ParametricLayer,
    Residual,
)
from fvi_core.networks.normalisation import batch_norm
from fvi_core.networks.opaque import UnfitModule
from fvi_core.networks.pooling import InputMasks, Rectified, rectified, together
from fvi_core.networks.stand_in import Body
from fvi_core.precision import check, has_bfloat16
from fvi_core.random import Streams
from fvi_core.registry import NETWORKS, PartSpec


class Apply(Protocol):
    """Replaces a layer with parameters in a pass: ``apply(layer, parameters, a)`` returns outputs ``[R, samples, N,
    ...]`` for one set of parameters."""

    @property
    def samples(self) -> int: ...

    def __call__(self, layer: ParametricLayer, parameters: Parameters, a: Tensor, /) -> Tensor: ...


HEAD = "head"
MOMENTUM = 0.1
"""Share of the newest batch in running statistics (PyTorch's default; 1 minus the decay .9 of rudner2022's code)."""


@dataclass
class Tape:
    """Record of a forward pass for linearisation: each layer with parameters, its input and its output."""

    entries: list[tuple[ParametricLayer, Tensor, Tensor]] = field(default_factory=list)


@dataclass
class Pass:
    """Options of a forward pass: ``dropout(site, a)`` masks activations, ``apply(layer, parameters, a)`` replaces
    a layer with parameters, ``tape`` records the pass, ``statistics`` is filled with the batch's own statistics."""

    dropout: Masks | None = None
    apply: Apply | None = None
    tape: Tape | None = None
    statistics: Parameters | None = None


class Network:
    """A sequence of layers whose last is the linear head; ``head(features(x))`` is the network by construction.

    Parameters are a dict of tensors ``[R, S, *shape]``; inputs are ``[R, N, ...]``; outputs are ``[R, S, N, Q]``.
    Nothing mixes replicas or samples, so a stack of replicas computes exactly what each computes alone.
    ``shares_statistics``: in training, batch normalisation takes the statistics of the training batch and the context
    together, not of each separately. ``perceptron``: linear layers with known activations between them, and nothing
    else.
    """

    def __init__(self, layers: Sequence, input_shape: tuple[int, ...], shares_statistics: bool = False):
        self.layers = list(layers)
        self.steps = together(self.layers)
        self.input_shape = input_shape
        self.n_features = math.prod(input_shape)
        self.shares_statistics = shares_statistics
        self.parametrised = [layer for layer in _all(self.layers) if isinstance(layer, ParametricLayer)]
        self.head: ParametricLayer = self.layers[-1]
        self.shapes = {name: shape for layer in self.parametrised for name, shape in layer.shapes.items()}
        self.buffers = {name: shape for layer in self.parametrised for name, shape in layer.buffers.items()}
        self.sizes = {name: math.prod(shape) for name, shape in self.shapes.items()}
        self.n_parameters = sum(self.sizes.values())
        self.n_outputs = self.head.values
        hidden = [layer for layer in self.layers if not isinstance(layer, DropoutSite)]
        self.shallow = len(hidden) == 3 and hidden[1] == Activation("relu") and self.n_outputs == 1
        plain = hidden[isinstance(hidden[0], Flatten) :]
        self.perceptron = (
            len(plain) % 2 == 1
            and all(isinstance(layer, Linear) for layer in plain[::2])
            and all(isinstance(layer, Activation) and layer.function in SLOPED for layer in plain[1::2])
        )
        self.convolutional = any(isinstance(layer, Conv2d) for layer in self.parametrised)
        self.sites = any(isinstance(layer, DropoutSite) for layer in _all(self.layers))
        self.residual = any(isinstance(layer, Residual) for layer in self.layers)
        self.batch_statistics: Parameters | None = None
        self.reduced = False
        self.apart = False
        self._plain: Callable[[bool, Parameters, Tensor], tuple[Tensor, Parameters]] | None = None

    @cached_property
    def width(self) -> int:
        """Most numbers that a layer with parameters takes or gives for one input."""
        if not self.convolutional:
            return max(max(layer.inputs, layer.outputs) for layer in self.parametrised)
        return max(max(a.numel(), z.numel()) for _, a, z in self._shapes_of_one)

    @cached_property
    def multiplications(self) -> int:
        """Multiplications of weights in a pass of one input."""
        of = ((layer, z) for layer, _, z in self._shapes_of_one if not isinstance(layer, BatchNorm))
        return sum(z.numel() * layer.fan_in for layer, z in of)

    @cached_property
    def activations(self) -> int:
        """Numbers that layers with parameters give for one input."""
        return sum(z.numel() for _, _, z in self._shapes_of_one)

    @property
    def _shapes_of_one(self) -> list[tuple[ParametricLayer, Tensor, Tensor]]:
        """The tape of a pass of one input, without numbers."""
        tape = Tape()
        with torch.no_grad():
            shapes = self.shapes | self.buffers
            nothing = {name: torch.empty(1, 1, *shape, device="meta") for name, shape in shapes.items()}
            self(nothing, torch.empty(1, 1, *self.input_shape, device="meta"), tape=tape)
        return tape.entries

    def init(self, streams: Streams) -> Parameters:
        """Initial parameters of all layers, ``[R, *shape]``."""
        return {name: value for layer in self.parametrised for name, value in layer.init(streams).items()}

    def init_buffers(self, streams: Streams) -> Parameters:
        """Return running means 0 and variances 1, ``[R, *shape]``; empty for a network without batch normalisation."""

        def constant(shape: tuple[int, ...], value: float) -> Tensor:
            return torch.full((len(streams), *shape), value, dtype=streams.dtype, device=streams.device)

        return {name: constant(shape, float(name.endswith(".var"))) for name, shape in self.buffers.items()}

    def recording(self, statistics: Parameters) -> Network:
        """This network, whose first pass on a batch's own statistics leaves them in ``statistics``."""
        if not self.buffers:
            return self
        network = copy.copy(self)
        network.batch_statistics = statistics
        return network

    def in_precision(self, precision: str) -> Network:
        """Return this network, computing in "float32" like its inputs, or with products and convolutions in "bfloat16"
        on devices that have it, except on a tape.

        Parameters, statistics and values keep the type of the inputs. Raises ValueError for another.
        """
        check(precision)
        network = copy.copy(self)
        network.reduced = precision == "bfloat16"
        return network

    def layer_by_layer(self) -> Network:
        """Return this network with passes of single layers, which may be differentiated twice."""
        network = copy.copy(self)
        network.apart, network._plain = True, None
        return network

    def compiled(self) -> Network:
        """Return this network with plain passes compiled by ``torch.compile``: equal values up to rounding, minutes for
        the first pass of every shape. Passes with dropout, a tape or stand-ins for layers stay uncompiled."""
        network, layers = copy.copy(self), self.layers

        def plain(whole: bool, parameters: Parameters, a: Tensor) -> tuple[Tensor, Parameters]:
            statistics: Parameters = {}
            return self._run(layers if whole else layers[:-1], parameters, a, Pass(statistics=statistics)), statistics

        network._plain = torch.compile(plain, dynamic=False)
        return network

    def track(self, parameters: Parameters, statistics: Parameters) -> Parameters:
        """Move running statistics towards a batch's: ``0.9 running + 0.1 batch``.

        ``statistics``: ``[R, S, channels]`` (members of an ensemble in R or S); where a replica or member has several
        samples, its one running value moves towards their mean.
        """
        moved = {}
        for name, value in statistics.items():
            if name not in parameters:
                raise ValueError(f"{name}: init() of the family lacks it: add network.init_buffers(streams)")
            running = parameters[name]
            batch = value.reshape(*running.shape[:-1], -1, running.shape[-1]).mean(-2)
            moved[name] = torch.lerp(running, batch.to(running.dtype), MOMENTUM)
        return moved

    @torch.no_grad()
    def statistics(self, parameters: Parameters, x: Tensor) -> Parameters:
        """Return mean and variance at x ``[R, N, ...]`` of every normalised layer's inputs, under parameters ``[R, S,
        *shape]``."""
        statistics: Parameters = {}
        if self.buffers:
            self.recording(statistics).features({name: parameters[name] for name in self.shapes}, x)
        return statistics

    def features(self, parameters: Parameters, x: Tensor, dropout: Masks | None = None) -> Tensor:
        """Inputs of the last layer, ``[R, S, N, F]``."""
        return self._start(False, parameters, x, Pass(dropout, statistics=self.batch_statistics))

    def __call__(
        self,
        parameters: Parameters,
        x: Tensor,
        dropout: Masks | None = None,
        tape: Tape | None = None,
        apply: Apply | None = None,
    ) -> Tensor:
        """Function values ``[R, S, N, Q]`` at inputs ``x [R, N, ...]``."""
        if x.shape[2:] != self.input_shape:
            expected = ", ".join(map(str, self.input_shape))
            raise ValueError(f"network expects inputs [R, N, {expected}], found {list(x.shape)}")
        return self._start(True, parameters, x, Pass(dropout, apply, tape, self.batch_statistics))

    def _start(self, whole: bool, parameters: Parameters, x: Tensor, ride: Pass) -> Tensor:
        # Linearised passes use the precision of the inputs.
        if not self.reduced or ride.tape is not None or not has_bfloat16(x.device.type):
            return self._pass(whole, parameters, x.unsqueeze(1), ride)
        with torch.autocast(x.device.type, torch.bfloat16):
            return self._pass(whole, parameters, x.unsqueeze(1), ride).to(x.dtype)

    def _pass(self, whole: bool, parameters: Parameters, a: Tensor, ride: Pass) -> Tensor:
        if self._plain is None or ride != Pass(statistics=ride.statistics):
            # A step of several layers has no values of each for a tape; it is differentiated once, and backwards only.
            plain = self.apart or not (ride.tape is None and ride.apply is None)
            plain = plain or torch._C._are_functorch_transforms_active()
            lean = not plain and a.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
            layers = self.steps if lean else self.layers
            return self._run(layers if whole else layers[:-1], parameters, a, ride)
        f, statistics = self._plain(whole, parameters, a)
        if ride.statistics is not None:
            ride.statistics.update(statistics | ride.statistics)
        return f

    def _run(self, layers: Sequence, parameters: Parameters, a: Tensor, ride: Pass) -> Tensor:
        for layer in layers:
            if isinstance(layer, ParametricLayer):
                a = self._apply(layer, parameters, a, ride)
            elif isinstance(layer, DropoutSite):
                a = a if ride.dropout is None else layer.masked(ride.dropout, a)
            elif isinstance(layer, Residual):
                a = self._residual(layer, parameters, a, ride)
            elif isinstance(layer, Rectified):
                a = self._rectified(layer, parameters, a, ride)
            elif isinstance(layer, Parallel):
                a = torch.cat([self._run(branch, parameters, a, ride) for branch in layer.branches], dim=3)
            else:
                a = layer(parameters, a)
        return a

    def _residual(self, layer: Residual, parameters: Parameters, a: Tensor, ride: Pass) -> Tensor:
        return self._run(layer.body, parameters, a, ride) + self._run(layer.shortcut, parameters, a, ride)

    def _rectified(self, step: Rectified, parameters: Parameters, a: Tensor, ride: Pass) -> Tensor:
        layer, site, masks = step.layer, step.site, ride.dropout
        if site is not None and masks is not None:
            z = self._run([layer], parameters, a, ride)
            if isinstance(masks, InputMasks) and masks.streams.dtype == z.dtype:
                return masks.rectified(z, step.pool)
            a = site.masked(masks, torch.relu(z))
            return MaxPool()(parameters, a) if step.pool else a
        if isinstance(layer, Residual):
            return self._residual(layer, parameters, a, ride).relu_()
        if isinstance(layer, BatchNorm):
            return layer(parameters, a, ride.statistics, torch.relu_)
        return layer(parameters, a, _rectified_pool if step.pool else torch.relu_)

    def _apply(self, layer: ParametricLayer, parameters: Parameters, a: Tensor, ride: Pass) -> Tensor:
        if isinstance(layer, BatchNorm):
            z = layer(parameters, a, ride.statistics, batch_norm=batch_norm if self.apart else F.batch_norm)
        elif ride.apply is not None:
            z = ride.apply(layer, parameters, a)
        else:
            z = layer(parameters, a)
        if ride.tape is not None:
            ride.tape.entries.append((layer, a, z))
        return z

    def unflatten(self, flat: Tensor) -> Parameters:
        """Split ``[..., P]`` into named parameters ``[..., *shape]``, in the order of ``shapes``."""
        pieces = flat.split(list(self.sizes.values()), dim=-1)
        named = zip(self.shapes.items(), pieces, strict=True)
        return {name: piece.unflatten(-1, shape) for (name, shape), piece in named}

    def flatten(self, parameters: Parameters) -> Tensor:
        """The inverse of :meth:`unflatten`, ``[..., P]``."""
        return torch.cat([parameters[name].flatten(-len(shape)) for name, shape in self.shapes.items()], dim=-1)


def _rectified_pool(z: Tensor) -> Tensor:
    """Images ``[N, C, H, W]`` after ReLU and pooling."""
    return rectified(z[None, None], pool=True).flatten(0, 2)


def _all(layers: Sequence) -> Iterator[Any]:
    """Yield layers, and the layers in them, in the order of a forward pass."""
    for layer in layers:
        if isinstance(layer, Body):
            yield from layer.leaves
        elif isinstance(layer, Residual):
            yield from _all((*layer.body, *layer.shortcut))
        elif isinstance(layer, Parallel):
            yield from _all([each for branch in layer.branches for each in branch])
        else:
            yield layer


def build_network(spec: PartSpec, input_shape: tuple[int, ...], n_outputs: int) -> Network:
    """Build a network for inputs of a shape. Raises UnknownPart, UnfitModule with the network's name, TypeError where
    ``build`` of a part returns something else, and ValueError where its number of outputs is another.
    """
    try:
        built = NETWORKS.build(spec).build(input_shape, n_outputs)
    except UnfitModule as error:
        raise UnfitModule(f"network {spec['name']!r}: {error}") from error
    if not isinstance(built, Network):
        remedy = "; return ModuleNetwork(make, example)" if isinstance(built, torch.nn.Module) else ""
        raise TypeError(
            f"network {spec['name']!r}: expected build() to return a Network, found {type(built).__name__}{remedy}"
        )
    if built.n_outputs != n_outputs:
        raise ValueError(
            f"network {spec['name']!r}: expected as many outputs as n_outputs of build(), here {n_outputs}, found "
            f"{built.n_outputs}"
        )
    return built
