"""Submodules as the layers of this package that they are, and whole modules that are a chain of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
import torch.fx
from torch import Tensor, nn
from torch.fx.passes.shape_prop import ShapeProp

from fvi_core.networks.layers import (
    Activation,
    BatchNorm,
    Conv2d,
    DropoutSite,
    Flatten,
    Linear,
    MaxPool,
    ParametricLayer,
)
from fvi_core.networks.network import HEAD
from fvi_core.networks.opaque import NORMS, SIDES, Opaque

F = nn.functional
CALLS: dict[Any, str] = {
    each: name
    for name, calls in {
        "relu": (torch.relu, F.relu, "relu", nn.ReLU),
        "tanh": (torch.tanh, F.tanh, "tanh", nn.Tanh),
        "sigmoid": (torch.sigmoid, F.sigmoid, "sigmoid", nn.Sigmoid),
    }.items()
    for each in calls
}
"""Activations by the functions, methods and modules that compute them."""
IDENTITY = object()
"""Stands for a module that returns its input."""
POOL = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")


@dataclass(frozen=True)
class Place:
    """Where a parameter is in a module's state, and whether it is transposed there."""

    name: str
    transposed: bool = False


def places(layer: Any, path: str) -> dict[str, Place]:
    """Return the places of a layer's parameters and running statistics in the state of a module with it at ``path``."""
    prefix = f"{path}." if path else ""
    if isinstance(layer, Opaque):
        own = {full: Place(prefix + key) for full, key in zip(layer.shapes, layer.own, strict=True)}
        running = (f"{prefix}{key}.running_{side}" for key in layer.norms for side in SIDES)
        return own | {full: Place(name) for full, name in zip(layer.buffers, running, strict=True)}
    if isinstance(layer, BatchNorm):
        names = ("weight", "bias", "running_mean", "running_var")
        return {full: Place(prefix + name) for full, name in zip((*layer.shapes, *layer.buffers), names, strict=True)}
    if not isinstance(layer, ParametricLayer):
        return {}
    own_names = {full: full.rpartition(".")[2] for full in layer.shapes}
    return {
        full: Place(prefix + name, isinstance(layer, Linear) and name == "weight") for full, name in own_names.items()
    }


def known(path: str, m: nn.Module, rank: int, vectorised: bool = True) -> tuple[Any, int]:
    """The layer of this package that a submodule is, or an opaque one; and how many axes its inputs lack for it."""
    name = f"{HEAD}_" if path == HEAD else path
    if type(m) is nn.Dropout:
        return DropoutSite(name), 0
    if all(value.requires_grad for value in m.parameters()):
        if type(m) is nn.Linear and m.bias is not None and rank == 2:
            return Linear(name, m.in_features, m.out_features), 0
        if type(m) is nn.Conv2d and m.groups == 1 and m.dilation == (1, 1) and m.padding_mode == "zeros" and rank == 4:
            kernel, stride, padding = m.kernel_size, m.stride, m.padding
            if isinstance(padding, tuple) and all(a == b for a, b in (kernel, stride, padding)):
                options = (kernel[0], int(padding[0]), stride[0], m.bias is not None)
                return Conv2d(name, m.in_channels, m.out_channels, *options), 0
        if isinstance(m, NORMS[:2]) and m.affine and m.track_running_stats:
            return BatchNorm(name, m.num_features, m.eps), 4 - rank
    return Opaque(name, m, vectorised), 0


def leaves(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Yield submodules with trained parameters of their own, batch normalisation, and dropout, by name."""
    for name, each in module.named_children():
        own = any(value is not None and value.requires_grad for value in each._parameters.values())
        if own or (type(each) is nn.Dropout and each.p):
            yield prefix + name, each
        else:
            yield from leaves(each, f"{prefix}{name}.")


def chain(module: nn.Module, head: str, example: Tensor) -> tuple[list[Any], dict[str, Place]] | None:
    """Return all layers before the head, and the places of their parameters, of a module that is a sequence of known
    layers; else None."""
    try:
        traced = torch.fx.symbolic_trace(module)
        with torch.no_grad():
            ShapeProp(traced).propagate(example)
    except Exception:  # modules that cannot be traced are called instead
        return None
    nodes = [node for node in traced.graph.nodes if _shape(node) is not None and node.op != "output"]
    if nodes[0].op != "placeholder" or nodes[-1].target != head or not all(map(_follows, nodes, nodes[1:])):
        return None
    layers: list[Any] = []
    where: dict[str, Place] = {}
    for before, node in pairwise(nodes[:-1]):
        layer = _layer(module, before, node)
        own = {} if layer is None else places(layer, str(node.target))
        if layer is None or isinstance(layer, Opaque) or own.keys() & where.keys() or node.target == head:
            return None
        if isinstance(layer, DropoutSite):
            layer = DropoutSite(node.name)
        layers += [] if layer is IDENTITY else [layer]
        where |= own
    held = dict(module.named_parameters())
    trained = [value for place in where.values() if (value := held.get(place.name)) is not None and value.requires_grad]
    with torch.enable_grad():  # a trace has lost torch.no_grad(), which leaves parameters without a gradient
        slopes = torch.autograd.grad(module(example).sum(), trained, allow_unused=True) if trained else ()
    return None if any(slope is None for slope in slopes) else (layers, where)


def _shape(node: torch.fx.Node) -> torch.Size | None:
    """The shape of a node's value where that is a tensor."""
    return getattr(node.meta.get("tensor_meta"), "shape", None)


def _follows(before: torch.fx.Node, node: torch.fx.Node) -> bool:
    """Return whether a node depends only on the one before it, which no other node uses."""
    takes = [each for each in node.all_input_nodes if _shape(each) is not None]
    used = [each for each in before.users if _shape(each) is not None and each.op != "output"]
    return takes == [before] and used == [node]


def _layer(module: nn.Module, before: torch.fx.Node, node: torch.fx.Node) -> Any:
    """The layer that a node of a traced module is, or None."""
    target, shape, rank = node.target, _shape(node), len(_shape(before) or ())
    m = module.get_submodule(str(target)) if node.op == "call_module" else None
    kind, arguments = (target if m is None else type(m)), len(node.args) + len(node.kwargs.keys() - {"inplace"})
    if kind in CALLS and arguments == 1:
        return Activation(CALLS[kind])
    if kind is nn.Identity or (kind is nn.Dropout and not m.p):  # type: ignore[union-attr]
        return IDENTITY
    if kind in (nn.Flatten, torch.flatten, "flatten", "view", "reshape"):
        before_shape = tuple(_shape(before) or (0,))
        return Flatten(rank - 1) if shape == (before_shape[0], math.prod(before_shape[1:])) else None
    if kind in (nn.MaxPool2d, torch.max_pool2d, F.max_pool2d):
        options = {k: getattr(m, k) for k in POOL} if m is not None else dict(zip(POOL, node.args[1:])) | node.kwargs
        size, stride = options.pop("kernel_size"), options.pop("stride", None)
        halves = size in (2, (2, 2)) and stride in (None, 2, (2, 2))
        return MaxPool() if halves and all(each in (0, 1, False) for each in options.values()) else None
    if m is None:
        return None
    layer, axes = known(str(target), m, rank)
    return None if axes else layer
