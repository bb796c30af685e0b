"""Random numbers: seeds from named components, and one independent stream per replica."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor


def seed_from(*components: str | int) -> int:
    """A 63-bit seed from named components: equal names give equal seeds, any change gives an unrelated one."""
    text = "\x1f".join(str(component) for component in components)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


class Streams:
    """One ``torch.Generator`` per replica, so that a replica's numbers never depend on its neighbours.

    Every draw has shape ``[R, *shape]``; replica r's slice equals what a ``Streams`` holding only r would draw.
    """

    def __init__(self, seeds: Sequence[int], device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32):
        self.seeds = list(seeds)
        self.device = torch.device(device)
        self.dtype = dtype
        self.generators = [torch.Generator(device=self.device).manual_seed(seed) for seed in self.seeds]

    def __len__(self) -> int:
        return len(self.seeds)

    def child(self, name: str) -> Streams:
        """Streams for a named purpose, independent of this one's state and of every other name."""
        return Streams([seed_from(seed, name) for seed in self.seeds], self.device, self.dtype)

    def subset(self, indices: Sequence[int]) -> Streams:
        """The streams of some replicas, sharing their generators' state."""
        chosen = Streams([], self.device, self.dtype)
        chosen.seeds = [self.seeds[i] for i in indices]
        chosen.generators = [self.generators[i] for i in indices]
        return chosen

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers, ``[R, *shape]``."""
        return self._stack(lambda g: torch.randn(shape, generator=g, device=self.device, dtype=self.dtype))

    def uniform(self, *shape: int) -> Tensor:
        """Uniform numbers on [0, 1), ``[R, *shape]``."""
        return self._stack(lambda g: torch.rand(shape, generator=g, device=self.device, dtype=self.dtype))

    def uniform_into(self, replica: int, target: Tensor) -> Tensor:
        """Fill a tensor of ``dtype`` with one replica's uniform numbers; on a CPU, filling in pieces gives the same."""
        return target.uniform_(generator=self.generators[replica])

    def integers(self, high: int, *shape: int) -> Tensor:
        """Uniform integers in [0, high), ``[R, *shape]`` of int64."""
        return self._stack(lambda g: torch.randint(high, shape, generator=g, device=self.device))

    def permutation(self, n: int) -> Tensor:
        """A random order of range(n) for each replica, ``[R, n]``."""
        return self._stack(lambda g: torch.randperm(n, generator=g, device=self.device))

    def state(self) -> list[Tensor]:
        """The generators' states, for a checkpoint."""
        return [generator.get_state() for generator in self.generators]

    def restore(self, states: Sequence[Tensor]) -> None:
        """Continue from the states of :meth:`state`."""
        if len(states) != len(self.generators):
            raise ValueError(f"random state of {len(states)} replicas given to {len(self.generators)}")
        for generator, state in zip(self.generators, states, strict=True):
            generator.set_state(state)

    def _stack(self, draw) -> Tensor:
        if len(self.generators) == 1:
            return draw(self.generators[0]).unsqueeze(0)
        return torch.stack([draw(generator) for generator in self.generators])
