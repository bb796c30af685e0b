"""Samplers: Markov chains of network weights in the place of the gradient loop, one for each replica of a stack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from fvi_core.contexts import ContextSource
from fvi_core.families.base import NotSupported
from fvi_core.likelihoods import join_parameters, split_parameters
from fvi_core.networks import Parameters
from fvi_core.objective import Model
from fvi_core.problem import TrainingData, take
from fvi_core.random import Streams
from fvi_core.stack import Procedure, SavedState, Stack, State, named_streams

Memory = dict[str, Any]
"""What a chain remembers besides its position (step sizes, a momentum): tensors ``[R, ...]``, in lists and dicts."""


@dataclass(frozen=True)
class Sampler(Procedure):
    """The contract: a subclass is a dataclass, registered among TRAININGS, that moves the chains (:meth:`move`).

    After ``warmup`` rounds of ``thinning`` moves each, the positions after ``samples`` further rounds are kept.
    ``batch_size``: training points looked at together, all if None; it changes no energy but by rounding.

    The energy is N times the loss of the whole training set: minus the logarithm of the posterior density for
    divergence "weight_penalty" at weight "elbo". Divergences that draw contexts make it random, which a chain that
    compares energies does not allow for. Weights move, the likelihood's parameters stay where they start.
    """

    samples: int = 100
    thinning: int = 10
    warmup: int = 100
    dtype: str = "float32"
    batch_size: int | None = None

    def start(self, model: Model, problem: TrainingData, streams: Streams, state: SavedState | None = None) -> Chains:
        return Chains(model, self, problem, streams, state)

    def remember(self, position: Parameters) -> Memory:
        """What chains that begin here remember."""
        return {}

    def move(
        self, position: Parameters, energy: Tensor, memory: Memory, target: Target, streams: Streams, warming: bool
    ) -> tuple[Parameters, Tensor, Memory]:
        """The next position ``[R, 1, *shape]``, its energy ``[R]``, and what is remembered; nothing is changed in place."""
        raise NotImplementedError


@dataclass(frozen=True)
class Target:
    """What chains sample from: the energy of a position, for the replicas ``owner [R]`` of a problem."""

    model: Model
    problem: TrainingData
    state: State
    size: int | None

    def energy(self, position: Parameters) -> Tensor:
        """``[R]``."""
        with torch.no_grad():
            return cast(Tensor, sum(self._pieces(position)))

    def gradient(self, position: Parameters) -> tuple[Tensor, Parameters]:
        """The energy ``[R]`` and its gradient."""
        position = {name: value.detach().requires_grad_() for name, value in position.items()}
        total: Any = 0  # a tensor from the first piece on
        gradient = {name: torch.zeros_like(value) for name, value in position.items()}
        with torch.enable_grad():
            for piece in self._pieces(position):
                made = torch.autograd.grad(
                    piece.sum(), list(position.values()), allow_unused=True, materialize_grads=True
                )
                gradient = {name: value + each for (name, value), each in zip(gradient.items(), made, strict=True)}
                total = total + piece.detach()
        return total, gradient

    def _pieces(self, position: Parameters) -> Iterator[Tensor]:
        problem, now = self.problem, self.state
        n = problem.x.shape[1]
        size = self.size or n
        likelihood = split_parameters(now.parameters)[1]
        low, high = take(problem.low, now.owner), take(problem.high, now.owner)
        for start in range(0, n, size):
            x, y = (take(rows[:, start : start + size], now.owner) for rows in (problem.x, problem.y))
            x = problem.scale(x)
            source = ContextSource(x, low, high, problem.pools, problem.scale)
            loss = self.model.loss(position, likelihood, now.prior, x, y, n, 1, source, now.streams)
            yield loss * x.shape[1]


@dataclass
class ChainState(State):
    """Energies ``[R]``, what the sampler remembers, and the positions kept so far."""

    energy: Tensor = field(kw_only=True)
    memory: Memory = field(default_factory=dict)
    kept: list[Parameters] = field(default_factory=list)


class Chains(Stack):
    """Chains side by side; an epoch of theirs is a round of ``thinning`` moves. Raises ValueError, NotSupported for parts
    that cannot be sampled."""

    streams = named_streams("chain", "functions", "context", "divergence", "prior")
    unit = "round"
    now: ChainState

    def __init__(
        self,
        model: Model,
        sampler: Sampler,
        problem: TrainingData,
        streams: Streams,
        state: SavedState | None = None,
    ):
        if sampler.samples < 1 or sampler.thinning < 1 or sampler.warmup < 0:
            found = f"{sampler.samples}, {sampler.thinning} and {sampler.warmup}"
            raise ValueError(
                f"training {sampler.name!r}: expected samples and thinning 1 or more and warmup 0 or more, found {found}"
            )
        if model.likelihood.learned:
            raise ValueError(
                f"training {sampler.name!r} moves weights alone; give likelihood {model.likelihood.name!r} learned False"
            )
        if model.network.buffers:
            raise NotSupported(f"training {sampler.name!r} needs functions of single inputs: no batch normalisation")
        self.sampler = sampler
        super().__init__(model, problem, streams, sampler.dtype, state)

    @property
    def epochs(self) -> int:
        return self.sampler.warmup + self.sampler.samples

    def begin(self, state: State) -> ChainState:
        position = split_parameters(state.parameters)[0]
        self.model.family.sampled([position])  # raises now, not once all is done, where the family holds no samples
        energy = self._target(state).energy(position)
        return ChainState(**vars(state), energy=energy, memory=self.sampler.remember(position))

    def advance(self) -> Tensor:
        now, warming = self.now, self.epoch < self.sampler.warmup
        position, likelihood = split_parameters(now.parameters)
        target = self._target(now)
        for _ in range(self.sampler.thinning):
            position, now.energy, now.memory = self.sampler.move(
                position, now.energy, now.memory, target, now.streams["chain"], warming
            )
        now.parameters = join_parameters(position, likelihood)
        if not warming:
            now.kept.append(position)
        return now.energy.double() / self.problem.x.shape[1]

    def outcome(self) -> Parameters:
        return join_parameters(self.model.family.sampled(self.now.kept), split_parameters(self.now.parameters)[1])

    def _target(self, state: State) -> Target:
        return Target(self.model, self.problem, state, self.sampler.batch_size)
