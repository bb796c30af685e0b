"""Changes of a network's values along changes of its weights, ``J(x; m) d``: forward-mode differentiation, layer by
layer.

Many changes d at one point m share their values and slopes, and each convolution takes all of them at once: those of
its weights as further channels of one set of images, those of its inputs as further images. ``torch.func.jvp`` repeats
the values for every change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fvi_core.networks import Network, Tape
from fvi_core.networks.layers import (
    SLOPED,
    Activation,
    AveragePool,
    BatchNorm,
    Conv2d,
    DropoutSite,
    Flatten,
    Linear,
    MaxPool,
    Parameters,
    ParametricLayer,
    Residual,
)
from fvi_core.products import product

KNOWN = (Conv2d, Linear, BatchNorm, Activation, MaxPool, AveragePool, Flatten, DropoutSite)
Wave = tuple[Tensor, Tensor | None]
"""Activations ``[R, 1, N, ...]`` and their changes ``[R, S, N, ...]``; None before the first layer with parameters."""


def fits(network: Network) -> bool:
    """Return whether :func:`changed` knows every layer of a network, which is one of images."""
    return type(network) is Network and network.convolutional and _known(network.layers)


def changed(network: Network, at: Parameters, steps: Parameters, x: Tensor) -> Tensor:
    """Return ``f(x; m) + J(x; m) d`` ``[R, S, N, Q]`` for weights m, and running statistics, in ``at [R, 1, *shape]``,
    and changes d in ``steps [R, S, *shape]``, at inputs ``x [R, N, ...]``."""
    value, change = _run(network.layers, at, steps, (x.unsqueeze(1), None))
    return value if change is None else value + change


def change_of_perceptron(network: Network, at: Parameters, steps: Parameters, tape: Tape) -> Tensor:
    """Return ``J(x; m) d`` of a perceptron, by the operations of forward-mode differentiation in the same order, from
    the tape of a pass."""
    functions = [layer.function for layer in network.layers if isinstance(layer, Activation)]
    change: Any = None  # tangents of the layer's inputs, transposed; None for the first layer
    for i, (layer, a, z) in enumerate(tape.entries):
        weight, bias = layer.shapes
        if change is None and z.shape[1] > a.shape[1]:
            moved = layer(steps, a).mT
        else:
            at_a = product(steps[weight].mT.flatten(0, 1), a.mT.flatten(0, 1)).unflatten(0, z.shape[:2])
            moved = steps[bias].unsqueeze(-1) + at_a
        if change is not None:
            moved = moved + product(at[weight].mT.flatten(0, 1), change.flatten(0, 1)).unflatten(0, z.shape[:2])
        if layer is not network.head:
            change = SLOPED[functions[i]](moved, z.mT, tape.entries[i + 1][1].mT)
    return moved.mT


def _known(layers: Iterable) -> bool:
    return all(
        _known((*layer.body, *layer.shortcut)) if isinstance(layer, Residual) else type(layer) in KNOWN
        for layer in layers
    )


def _run(layers: Sequence, at: Parameters, steps: Parameters, wave: Wave) -> Wave:
    for layer in layers:
        if isinstance(layer, Residual):
            pairs = (_run(branch, at, steps, wave) for branch in (layer.body, layer.shortcut))
            values, changes = zip(*pairs, strict=True)
            wave = sum(values), _sum(*changes)
        elif isinstance(layer, ParametricLayer):
            wave = _parametric(layer, at, steps, *wave)
        elif not isinstance(layer, DropoutSite):
            wave = _without_parameters(layer, *wave)
    return wave


def _parametric(layer: ParametricLayer, at: Parameters, steps: Parameters, a: Tensor, change: Tensor | None) -> Wave:
    """A layer that is linear in its parameters at a fixed input, and in its input, but for the bias, at fixed ones."""
    value, own = layer(at, a), _of_weights(layer, at, steps, a)
    if change is None:
        return value, own
    still = {
        name: at[name] if _scales(name) else torch.zeros_like(at[name]) for name in (*layer.shapes, *layer.buffers)
    }
    through = layer(still, _one_batch(change)).unflatten(2, change.shape[1:3]).squeeze(1)
    return value, through + own


def _one_batch(change: Tensor) -> Tensor:
    """Changes ``[R, S, N, ...]`` as ``[R, 1, S N, ...]``; images laid out channels last, as convolutions take them."""
    if change.dim() == 4:
        return change.flatten(1, 2).unsqueeze(1)
    return change.movedim(-3, -1).flatten(1, 2).unsqueeze(1).movedim(-1, -3)


def _of_weights(layer: ParametricLayer, at: Parameters, steps: Parameters, a: Tensor) -> Tensor:
    """The change of a layer's outputs by those of its parameters."""
    named = {name: steps[name] for name in layer.shapes}
    samples = next(iter(named.values())).shape[1]
    if isinstance(layer, Conv2d):
        channels = {name: value.flatten(1, 2).unsqueeze(1) for name, value in named.items()}
        return layer(channels, a).unflatten(3, (samples, -1)).movedim(3, 1).squeeze(2)
    if isinstance(layer, Linear):
        weight, bias = (value.flatten(0, 1) for value in named.values())
        inputs = a.expand(-1, samples, *a.shape[2:]).flatten(0, 1)
        return product(inputs, weight, bias.unsqueeze(1)).unflatten(0, (-1, samples))
    return layer(named | {name: at[name] for name in layer.buffers}, a)


def _scales(name: str) -> bool:
    """Whether an input's change is multiplied by this parameter or statistic of a layer."""
    return name.endswith((".weight", ".scale", ".var"))


def _without_parameters(layer: Any, a: Tensor, change: Tensor | None) -> Wave:
    """A layer without parameters: an activation, a pooling, or a reshape."""
    value = layer({}, a)
    if change is None:
        return value, None
    if isinstance(layer, Activation):
        return value, SLOPED[layer.function](change, a, value)
    if not isinstance(layer, MaxPool):
        return value, layer({}, change)
    _, largest = F.max_pool2d(a.flatten(0, -4), layer.size, 2, layer.padding, return_indices=True)
    pixels = change.movedim(-3, -1).flatten(3, 4)
    chosen = largest.unflatten(0, a.shape[:-3]).movedim(-3, -1).flatten(3, 4).expand(-1, change.shape[1], -1, -1, -1)
    return value, pixels.gather(3, chosen).unflatten(3, value.shape[-2:]).movedim(-1, -3)


def _sum(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    return second if first is None else first if second is None else first + second
