"""Function values at a training batch and at a context from one forward pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from fvi_core.families.base import DrawnNetworks, Functions, NotSupported


@dataclass
class SharedPass:
    """A draw of functions at the training batch and a context in one pass: normalised by common statistics, where the
    network is ``shares_statistics``, and without evaluating a batch twice that is the context's beginning
    (``extended``).

    ``layered``: the functions are networks of drawn parameters, whose last layer is evaluated separately.
    """

    functions: Functions
    x: Tensor
    draw_context: Callable[[], Tensor]
    extended: bool
    shares_statistics: bool
    layered: bool

    def __post_init__(self) -> None:
        self.context, self.taken = self.draw_context(), False
        self.first = 0 if self.extended else self.x.shape[1]
        points = self.context if self.extended else torch.cat([self.x, self.context], dim=1)
        self.phi: Tensor | None = None
        if self.layered:
            drawn = cast(DrawnNetworks, self.functions)
            self.phi = drawn.network.features(drawn.parameters, points)
            self.values = drawn.network.head(drawn.parameters, self.phi)
        else:
            self.values = self.functions(points)

    def next_context(self) -> Tensor:
        """The context that was evaluated already; after that others, unless statistics are shared."""
        if not self.taken:
            self.taken = True
            return self.context
        if self.shares_statistics:
            raise NotSupported("network: shared statistics need one context set per step, found more")
        return self.draw_context()

    def __call__(self, points: Tensor) -> Tensor:
        known = self._known(points)
        return self.functions(points) if known is None else self.values[:, :, known]

    @property
    def features(self) -> Callable[[Tensor], Tensor] | None:
        """Function of points that returns the inputs of the last layer in the first function, ``[R, N, F]``; None where
        the functions have none."""
        if self.layered:
            return self._features
        if self.shares_statistics:
            raise NotSupported("a last layer is linearised in networks of drawn parameters, which these are not")
        return getattr(self.functions, "features", None)  # of the functions, which were evaluated as a whole

    def _features(self, points: Tensor) -> Tensor:
        known, phi = self._known(points), cast(Tensor, self.phi)
        return cast(DrawnNetworks, self.functions).features(points) if known is None else phi[:, 0, known]

    def _known(self, points: Tensor) -> slice | None:
        if points is self.x:
            return slice(self.x.shape[1])
        return slice(self.first, None) if points is self.context else None
