"""All of a module before its head as one step of a network, its submodules replaced by stand-ins for layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn

from fvi_core.networks.layers import DropoutSite, Masks, ParametricLayer
from fvi_core.networks.opaque import HERE, Opaque, UnfitModule, plain_operations, plain_recurrence

Apply = Callable[[ParametricLayer, Tensor], Tensor]


@dataclass
class Now:
    """The pass that a body is in: its sizes (replicas, samples, inputs), and how often each layer was called."""

    apply: Apply
    dropout: Masks | None
    taped: bool
    sizes: tuple[int, int, int]
    calls: dict[str, int] = field(default_factory=dict)

    def apart(self, a: Tensor) -> Tensor:
        """Reshape rows ``[R S N, ...]`` to ``[R, S, N, ...]``, with S = 1 where all samples share the rows."""
        r, s, n = self.sizes
        if not a.dim() or a.shape[0] not in (r * n, r * s * n):
            raise UnfitModule(f"expected the {r * s * n} inputs in the first axis, found {list(a.shape)}")
        return a.unflatten(0, (r, s if a.shape[0] == r * s * n else 1, n))

    def leaf(self, layer: ParametricLayer | DropoutSite, a: Tensor, axes: int) -> Any:
        """Return a submodule's result at rows a: its layer's outputs, as rows. The layer's inputs have so many ``axes``
        more."""
        if isinstance(layer, DropoutSite) and self.dropout is None:
            return a
        a, call = self.apart(a), self.calls.get(layer.name, 0)
        self.calls[layer.name] = call + 1
        if isinstance(layer, DropoutSite):
            return DropoutSite(f"{layer.name}.{call}").masked(cast(Masks, self.dropout), a).flatten(0, 2)
        z = self.apply(layer, a[(..., *[None] * axes)])
        self.sizes = (self.sizes[0], max(self.sizes[1], z.shape[1]), self.sizes[2])  # factors may have more samples
        rows = z.flatten(0, 2)
        rows = rows.flatten(-1 - axes) if axes else rows
        rows = rows.clone() if self.taped else rows  # the module may change the tape's tensor in place
        extra = layer.extra if isinstance(layer, Opaque) else ()
        return (rows, *extra) if extra else rows


class Body:
    """A module without its head. ``leaves``: its layers with parameters and its dropout sites.

    Code between leaves (activations, sums, reshapes) sees one plain batch ``[R S N, ...]``. ``shared``: all samples
    share their inputs up to the first layer whose parameters have several. ``tokens``: type of inputs that are whole
    numbers, None for others.
    """

    def __init__(self, tokens: torch.dtype | None, shared: bool):
        self.tokens, self.shared = tokens, shared
        self.module: nn.Module = nn.Identity()
        self.leaves: list[ParametricLayer | DropoutSite] = []
        self.recurrent, self.device = False, torch.device("cpu")
        self.now: Any = None
        self.repeated: list[str] = []

    def stand_in(self, layer: ParametricLayer | DropoutSite, of: nn.Module, axes: int = 0) -> StandIn:
        """A module to put in the place of a submodule."""
        self.leaves.append(layer)
        return StandIn(self, layer, of, axes)

    def settle(self, module: nn.Module, of: nn.Module) -> None:
        """Take the module with its stand-ins, made from ``of``."""
        self.module = module
        self.recurrent = any(isinstance(each, nn.RNNBase) for each in of.modules())

    def __call__(
        self, apply: Apply, a: Tensor, samples: int, dropout: Masks | None, factors: bool, taped: bool, twice: bool
    ) -> Tensor:
        """Features ``[R, S or 1, N, F]`` at inputs a ``[R, 1, N, ...]``, for parameters of so many samples.

        ``factors``: some layers have samples by factors, which others lack; ``taped``: layers' outputs are recorded;
        ``twice``: values are differentiated more than once.
        """
        if dropout is not None or factors or not self.shared:  # masks and factors make samples anywhere
            a = a.expand(-1, max(samples, getattr(dropout, "samples", 1)), *a.shape[2:])
            samples = a.shape[1]
        if a.device != self.device:
            self.module.to(a.device)  # constants between leaves
            for leaf in self.leaves:
                if isinstance(leaf, Opaque):
                    leaf.module.to(a.device)
            self.device = a.device
        forwards = torch._C._are_functorch_transforms_active()
        before, self.now = self.now, Now(apply, dropout, taped, (a.shape[0], samples, a.shape[2]))
        try:
            with plain_recurrence(forwards and self.recurrent), plain_operations(twice or taped or forwards):
                rows = a.flatten(0, 2)
                phi = self.now.apart(self.module(rows if self.tokens is None else rows.to(self.tokens)))
            parametrised = {leaf.name for leaf in self.leaves if isinstance(leaf, ParametricLayer)}
            self.repeated = [name for name, count in self.now.calls.items() if count > 1 and name in parametrised]
        finally:
            self.now = before
        return phi


class StandIn(nn.Module):
    """A module in the place of a leaf of a body."""

    def __init__(self, body: Body, layer: Any, of: nn.Module, axes: int):
        super().__init__()
        self.__dict__.update(body=body, layer=layer, of=of, axes=axes)  # not as submodules

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.__dict__["of"], name)
        if isinstance(attribute, Tensor):
            raise UnfitModule(f"{name!r} of submodule {self.layer.name!r} is used outside of the submodule")
        return attribute

    def forward(self, *args: Any, **options: Any) -> Any:
        tensors = {id(v): v for v in (*args, *options.values()) if isinstance(v, Tensor)}
        if len(tensors) != 1:
            raise UnfitModule(
                f"submodule {self.layer.name!r}: expected one tensor as its argument, found {len(tensors)}"
            )
        if isinstance(self.layer, Opaque):
            self.layer.form = tuple(map(_here, args)), {name: _here(each) for name, each in options.items()}
        return self.body.now.leaf(self.layer, next(iter(tensors.values())), self.axes)


def _here(value: Any) -> Any:
    return HERE if isinstance(value, Tensor) else value
