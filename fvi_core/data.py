"""Training data of a stack of replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from fvi_core.images import Scale

Batch = Tensor | tuple[Tensor, Tensor] | None
"""Rows ``[R, B]`` of the training data, None for all of them; or x ``[B, ...]`` and y ``[B]`` themselves."""


@dataclass(frozen=True)
class TrainingData:
    """Training data of D replicas' data sets: ``x [D, N, ...]``, ``y [D, N]``, or ``y [D, N, Q]`` for vectors of Q
    targets; D is R, or 1 when all replicas share one.

    ``low``, ``high`` ``[D, ...]`` bound the training inputs; ``pools`` are named inputs ``[P, ...]`` that contexts draw
    from. ``validation`` holds one pair (x ``[V, ...]``, y ``[V]``) for each data set; their sizes may differ. Inputs,
    validation and pools may be pixels 0 to 255, of any type: then ``pixels`` makes inputs of the network of them.

    ``batches``: gives the ``steps`` batches x ``[B, ...]``, y ``[B]`` of an epoch, the same for all replicas, where
    data are read anew at each epoch; x and y are then :class:`fvi_core.reading.Unheld`.
    """

    x: Tensor
    y: Tensor
    low: Tensor
    high: Tensor
    validation: Sequence[tuple[Tensor, Tensor]] | None = None
    pools: Mapping[str, Tensor] = field(default_factory=dict)
    pixels: Scale | None = None
    batches: Callable[[int], Iterator[tuple[Tensor, Tensor]]] | None = None
    steps: int = 0

    def scale(self, x: Tensor) -> Tensor:
        """Data as the network takes them."""
        return x if self.pixels is None else self.pixels(x)

    def at(self, owner: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """A batch ``x [R, B, ...]``, ``y [R, B]`` for replicas that own data set ``owner [R]``."""
        if isinstance(batch, tuple):
            x, y = (each.expand(len(owner), *each.shape) for each in batch)
            return x, y
        return take(self.x, owner, batch), take(self.y, owner, batch)

    @property
    def classification(self) -> bool:
        """Whether targets are labels."""
        return not self.y.is_floating_point()

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by a name for messages."""
        found = {f"training data {name}": getattr(self, name) for name in ("x", "y", "low", "high")}
        for pair in self.validation or ():
            found |= {f"validation data {name}": tensor for name, tensor in zip("xy", pair)}
        return found | {f"context pool {name!r}": pool for name, pool in self.pools.items()}

    def of(self, replica: int) -> TrainingData:
        """The training data of one replica of the stack."""
        if self.x.shape[0] == 1:
            return self
        tensors = {name: getattr(self, name)[replica : replica + 1] for name in ("x", "y", "low", "high")}
        held = None if self.validation is None else [self.validation[replica]]
        return replace(self, **tensors, validation=held)


def take(x: Tensor, owner: Tensor, index: Tensor | None = None) -> Tensor:
    """Rows of ``x [D, N, ...]`` for replicas that own data set ``owner [R]``: ``[R, N, ...]``, or those of ``index [R,
    B]``.
    """
    if index is not None:
        return rows(x, index, owner)
    if not isinstance(x, Tensor):  # read anew at each epoch: what needs its values is refused there
        return x
    if x.shape[0] == 1:
        return x.expand(len(owner), *x.shape[1:])
    return x[owner] if not torch.equal(owner, torch.arange(len(x), device=owner.device)) else x


def rows(x: Tensor, index: Tensor, owner: Tensor | None = None) -> Tensor:
    """Rows ``index [R, B]`` of ``x [D, N, ...]``: those of replica r from x[owner[r]], or from x[r]; of one x for
    all.
    """
    if len(x) == 1:  # rows of one array are copied whole, much faster than by pairs of indices
        return x[0].index_select(0, index.flatten()).unflatten(0, index.shape)
    owner = torch.arange(len(x), device=x.device) if owner is None else owner
    return x[owner[:, None], index]
