"""Samplers: Markov chains of network weights instead of the gradient loop, one for each replica of a stack."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor

from fvi_core import convergence
from fvi_core.contexts import ContextSource
from fvi_core.data import TrainingData, take
from fvi_core.families.base import NotSupported
from fvi_core.held import Held
from fvi_core.kernels import evenly_spaced
from fvi_core.networks import Parameters
from fvi_core.objective import Model
from fvi_core.random import Streams
from fvi_core.registry import checked
from fvi_core.stack import DTYPES, Procedure, ReplicaResult, SavedState, Stack, State, named_streams

Memory = dict[str, Any]
"""State of a chain besides its position (step sizes, a momentum): tensors ``[R, ...]``, in lists and dicts."""
CONVERGED = 1.05
"""R-hat above which chains count as not converged."""
LOOKED_AT = 50
"""Number of training points at whose predictions R-hat is computed."""


@dataclass(frozen=True)
class Sampler(Procedure):
    """Contract of a sampler: a subclass is a dataclass, registered in TRAININGS, that moves the chains (:meth:`move`).

    After ``warmup`` rounds of ``thinning`` moves each, the positions after ``samples`` further rounds are the draws.
    ``batch_size``: training points evaluated together, all if None; it changes energies only by rounding.

    The energy is N times the loss of the whole training set: minus the logarithm of the posterior density for
    divergence "weight_penalty" at weight "elbo". Divergences that draw contexts make it random, which is wrong for a
    chain that compares energies. Weights move, the likelihood's parameters stay at their initial values.
    """

    samples: int = checked(100, least=1)
    thinning: int = checked(10, least=1)
    warmup: int = checked(100, least=0)
    dtype: str = checked("float32", among=DTYPES)
    batch_size: int | None = checked(None, least=1)

    def start(
        self, model: Model, training_data: TrainingData, streams: Streams, state: SavedState | None = None
    ) -> Chains:
        """Raises ValueError, NotSupported for parts that cannot be sampled."""
        if model.likelihood.learned:
            raise ValueError(
                f"training {self.name!r} moves weights alone; give likelihood {model.likelihood.name!r} learned False"
            )
        if model.network.buffers:
            raise NotSupported(f"training {self.name!r} needs functions of single inputs: no batch normalisation")
        if self.batch_size and model.weight.scaling in ("batch", "context"):
            raise ValueError(
                f"training {self.name!r}: batch_size would change the posterior under weight scaling "
                f"{model.weight.scaling!r}, which counts the points of a batch; use scaling 'elbo'"
            )
        if self.batch_size and not model.likelihood.is_pointwise:
            raise ValueError(
                f"training {self.name!r}: batch_size would change the posterior under likelihood "
                f"{model.likelihood.name!r}, whose terms depend on the other points of a batch: leave it out"
            )
        return Chains(model, self, training_data, streams, state)

    def place(self, position: Parameters, target: Target, streams: Streams) -> Parameters:
        """Return the first positions of chains, given the family's initial networks ``[R, 1, *shape]``."""
        return position

    def remember(self, position: Parameters) -> Memory:
        """Return the memory of chains that begin at a position."""
        return {}

    def move(
        self, position: Parameters, energy: Tensor, memory: Memory, target: Target, streams: Streams, warming: bool
    ) -> tuple[Parameters, Tensor, Memory]:
        """Return the next position ``[R, 1, *shape]``, its energy ``[R]`` and the memory; nothing changes in place."""
        raise NotImplementedError

    def diagnostics(self, memory: Memory) -> dict[str, Tensor]:
        """Return diagnostics ``[R]`` of each chain by name, for its record."""
        return {}

    def faults(self, memory: Memory) -> dict[int, str]:
        """Return why finished chains must not be used, by their index."""
        return {}


@dataclass(frozen=True)
class Target:
    """Density that chains sample, as the energy of a position under one set of training data."""

    model: Model
    training_data: TrainingData
    state: State
    size: int | None

    def energy(self, position: Parameters) -> Tensor:
        """Return the energy ``[R]``."""
        with torch.no_grad():
            return cast(Tensor, sum(self._pieces(position)))

    def gradient(self, position: Parameters) -> tuple[Tensor, Parameters]:
        """Return the energy ``[R]`` and its gradient."""
        position = {name: value.detach().requires_grad_() for name, value in position.items()}
        total: Any = 0  # a tensor from the first piece on
        gradient = {name: torch.zeros_like(value) for name, value in position.items()}
        with torch.enable_grad():
            for piece in self._pieces(position):
                slopes = torch.autograd.grad(
                    piece.sum(), list(position.values()), allow_unused=True, materialize_grads=True
                )
                gradient = {name: value + each for (name, value), each in zip(gradient.items(), slopes, strict=True)}
                total = total + piece.detach()
        return total, gradient

    def _pieces(self, position: Parameters) -> Iterator[Tensor]:
        training_data, now = self.training_data, self.state
        n = training_data.x.shape[1]
        size = self.size or n
        likelihood = Held.of(now.parameters).likelihood
        low, high = take(training_data.low, now.owner), take(training_data.high, now.owner)
        for start in range(0, n, size):
            x, y = (take(rows[:, start : start + size], now.owner) for rows in (training_data.x, training_data.y))
            x = training_data.scale(x)
            source = ContextSource(x, low, high, training_data.pools, training_data.scale)
            loss = self.model.loss(position, likelihood, now.prior, x, y, n, 1, source, now.streams)
            yield loss * x.shape[1]


@dataclass
class ChainState(State):
    """Energies ``[R]``, the sampler's memory, and the positions drawn so far."""

    energy: Tensor = field(kw_only=True)
    memory: Memory = field(default_factory=dict)
    kept: list[Parameters] = field(default_factory=list)


class Chains(Stack):
    """Stack of chains; an epoch is a round of ``thinning`` moves."""

    streams = named_streams("chain", "place", "functions", "context", "divergence", "prior")
    unit = "round"
    now: ChainState
    procedure: Sampler

    @property
    def epochs(self) -> int:
        return self.procedure.warmup + self.procedure.samples

    def begin(self, state: State) -> ChainState:
        position = Held.of(state.parameters).family
        self.model.family.sampled([position])  # raises now, not once all is done, where the family holds no samples
        return ChainState(**vars(state), energy=torch.zeros(len(state.active)).to(position[next(iter(position))]))

    def open(self) -> None:
        now, target = self.now, self._target(self.now)
        position, likelihood, _ = Held.of(now.parameters)
        position = self.procedure.place(position, target, now.streams["place"])
        now.energy, now.memory = target.energy(position), self.procedure.remember(position)
        now.parameters = Held(position, likelihood).flat()

    def advance(self) -> Tensor:
        now, warming = self.now, self.epoch < self.procedure.warmup
        position, likelihood, _ = Held.of(now.parameters)
        target = self._target(now)
        for _ in range(self.procedure.thinning):
            position, now.energy, now.memory = self.procedure.move(
                position, now.energy, now.memory, target, now.streams["chain"], warming
            )
        now.parameters = Held(position, likelihood).flat()
        if not warming:
            now.kept.append(position)
        return now.energy.double() / self.training_data.x.shape[1]

    def outcome(self) -> Parameters:
        return Held(self.model.family.sampled(self.now.kept), Held.of(self.now.parameters).likelihood).flat()

    def diagnostics(self) -> dict[str, Tensor]:
        return self.procedure.diagnostics(self.now.memory)

    def faults(self) -> dict[int, str]:
        return self.procedure.faults(self.now.memory)

    def judged(self, trained: ReplicaResult, members: Sequence[ReplicaResult], replica: int) -> ReplicaResult:
        """Add R-hat and effective sample sizes of the log density and of predictions, the worst of these."""
        if trained.parameters is None:
            return trained
        draws = min(len(member.loss) for member in members) - self.procedure.warmup  # fewer if stopped
        if draws < convergence.FEWEST:
            few = f"convergence is not judged: chains of {max(draws, 0)} draws, expected {convergence.FEWEST} or more"
            return replace(trained, warnings=[*trained.warnings, few])
        diagnostics, warnings = dict(trained.diagnostics), list(trained.warnings)
        energies = torch.tensor([member.loss[-draws:] for member in members], dtype=torch.float64)
        for name, scalars in (("log_density", [energies]), ("predictions", self._predictions(members, replica))):
            worst = max(map(convergence.r_hat, scalars))
            if worst == math.inf:
                return ReplicaResult(None, trained.epochs, trained.loss, "no trajectory of the chains was accepted")
            diagnostics[f"r_hat_{name}"] = worst
            diagnostics[f"ess_bulk_{name}"] = min(map(convergence.bulk_ess, scalars))
            diagnostics[f"ess_tail_{name}"] = min(map(convergence.tail_ess, scalars))
            if worst >= CONVERGED:
                warnings.append(
                    f"not converged: R-hat of {name.replace('_', ' ')} is {worst:.2f}, not below {CONVERGED}"
                )
        return replace(trained, diagnostics=diagnostics, warnings=warnings)

    @torch.no_grad()
    def _predictions(self, members: Sequence[ReplicaResult], replica: int) -> list[Tensor]:
        """Draws ``[C, S]`` of each output at some training points."""
        training_data, network = self.training_data.of(replica), self.model.network
        x = training_data.scale(evenly_spaced(training_data.x, LOOKED_AT))
        chains = [Held.of(cast(Parameters, member.parameters)).family for member in members]
        f = torch.cat([self.model.likelihood.values(network(chain, x)) for chain in chains])
        return list(f.flatten(2).unbind(-1))

    def _target(self, state: State) -> Target:
        return Target(self.model, self.training_data, state, self.procedure.batch_size)
