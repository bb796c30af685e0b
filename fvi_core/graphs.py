"""Steps of training as CUDA graphs: captured once for each batch size, then replayed whole, by one call each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, cuda

from fvi_core.optimisers import Optimiser
from fvi_core.printing import message

WARM_UP = 3
"""Steps of each batch size before it is captured: what libraries set up at their first calls cannot be."""
DEVICES = ("cuda",)


class CaptureFailed(RuntimeError):
    """A step that is no fixed sequence of operations on the device."""


def check(device: torch.device, optimiser: Optimiser) -> None:
    """Raise ValueError for what is known beforehand to do part of a step on the host."""
    if device.type not in DEVICES:
        raise ValueError(f"training: graph: expected a GPU, found {device.type}; leave it off")
    if not optimiser.capturable:
        raise ValueError(
            f"training: graph: optimiser {optimiser.name!r} counts its steps on the host; use 'sgd', or leave graph off"
        )


class Graphs:
    """``step(index)``, the loss ``[R]`` of a step on rows ``index [R, B]``, as graphs.

    All that a step reads and writes must stay where it is in memory. The steps before a capture are steps of training
    like any other; the capture itself computes nothing. ``generators`` are those that a step draws from: each replay
    goes on where they are. The loss is overwritten by the next replay.
    """

    def __init__(self, step: Callable[[Tensor], Tensor], generators: Iterable[torch.Generator], device: torch.device):
        self.step, self.generators = step, list(generators)
        self.stream = cuda.Stream(device)
        self.taken: dict[int, int] = {}
        self.captured: dict[int, tuple[cuda.CUDAGraph, Tensor, Tensor]] = {}

    def __call__(self, index: Tensor) -> Tensor:
        """Raises CaptureFailed."""
        size = index.shape[1]
        if self.taken.get(size, 0) < WARM_UP:
            self.taken[size] = self.taken.get(size, 0) + 1
            return self._beside(index)
        if size not in self.captured:
            self.captured[size] = self._capture(index)
        graph, held, loss = self.captured[size]
        held.copy_(index)
        graph.replay()
        return loss

    def _beside(self, index: Tensor) -> Tensor:
        """A step on the stream that will be captured."""
        self.stream.wait_stream(cuda.current_stream())
        with cuda.stream(self.stream):
            loss = self.step(index)
        cuda.current_stream().wait_stream(self.stream)
        return loss

    def _capture(self, index: Tensor) -> tuple[cuda.CUDAGraph, Tensor, Tensor]:
        graph, held = cuda.CUDAGraph(), index.clone()
        for generator in self.generators:
            graph.register_generator_state(generator)
        try:
            with cuda.graph(graph, stream=self.stream):
                loss = self.step(held)
        except RuntimeError as error:
            reason = message(error)[:200]
            raise CaptureFailed(
                f"training: graph: a step of this run cannot be captured: {reason}; leave graph off"
            ) from error
        return graph, held, loss
