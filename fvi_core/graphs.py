"""Training steps as CUDA graphs: captured once for each batch size, then replayed by one call each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, cuda

from fvi_core.data import TrainingData
from fvi_core.objective import Model
from fvi_core.printing import message

WARM_UP = 3
"""Steps of each batch size before its capture, since set-up in libraries' first calls cannot be captured."""
DEVICES = ("cuda",)


class CaptureFailed(RuntimeError):
    """Error: the step is not a fixed sequence of operations on the device."""


def obstacle(model: Model, data: TrainingData) -> str:
    """Return why steps of this training cannot be captured, as far as it is known before they are tried, or ""."""
    if data.x.device.type not in DEVICES:
        return f"expected a GPU, found {data.x.device.type}"
    if model.weight.rise:
        return f"the divergence's weight changes at every step, with rise {model.weight.rise:g}"
    if data.batches is not None:
        return "batches are read from files"
    for kind, part in (("family", model.family), ("divergence", model.divergence)):
        if part and part.reads_numbers:
            return f"{kind} {part.name!r} reads numbers from the device in each step"
    return ""


@contextmanager
def _cusolver() -> Iterator[None]:
    """Let torch take cuSOLVER for linear algebra: MAGMA, its choice for stacks of inverses, waits for the device."""
    before = torch.backends.cuda.preferred_linalg_library()
    torch.backends.cuda.preferred_linalg_library("cusolver")
    try:
        yield
    finally:
        torch.backends.cuda.preferred_linalg_library(before)


class Graphs:
    """Graphs of ``step(index)``, which returns the loss ``[R]`` of a step on rows ``index [R, B]``.

    All tensors that a step reads and writes must keep their memory. Steps before a capture are ordinary training steps;
    the capture itself computes nothing. ``generators``: the random generators of a step, which each replay continues.
    The next replay overwrites the loss.
    """

    def __init__(self, step: Callable[[Tensor], Tensor], generators: Iterable[torch.Generator], device: torch.device):
        self.step, self.generators = step, list(generators)
        self.stream = cuda.Stream(device)
        self.taken = Counter[int]()
        self.captured: dict[int, tuple[cuda.CUDAGraph, Tensor, Tensor]] = {}

    def __call__(self, index: Tensor) -> Tensor:
        """Raises CaptureFailed."""
        size = index.shape[1]
        if self.taken[size] < WARM_UP:
            self.taken[size] += 1
            return self._beside(index)
        if size not in self.captured:
            self.captured[size] = self._capture(index)
        graph, held, loss = self.captured[size]
        held.copy_(index)
        graph.replay()
        return loss

    def _beside(self, index: Tensor) -> Tensor:
        """Run a step on the stream that will be captured."""
        self.stream.wait_stream(cuda.current_stream())
        with cuda.stream(self.stream), _cusolver():
            loss = self.step(index)
        cuda.current_stream().wait_stream(self.stream)
        return loss

    def _capture(self, index: Tensor) -> tuple[cuda.CUDAGraph, Tensor, Tensor]:
        graph, held = cuda.CUDAGraph(), index.clone()
        for generator in self.generators:
            graph.register_generator_state(generator)
        try:
            with cuda.graph(graph, stream=self.stream), _cusolver():
                loss = self.step(held)
        except RuntimeError as error:
            reason = message(error)[:200]
            raise CaptureFailed(
                f"training: graph: a step of this run cannot be captured: {reason}; leave graph off"
            ) from error
        return graph, held, loss
