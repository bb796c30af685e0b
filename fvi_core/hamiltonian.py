"""Hamiltonian Monte Carlo: leapfrog trajectories over all weights (Neal 2011), the reference of pequignot2020's
experiment 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from fvi_core.held import where
from fvi_core.networks import Parameters
from fvi_core.optimisers import Adam
from fvi_core.priors.base import Prior
from fvi_core.random import Streams, seed_from
from fvi_core.registry import TRAININGS, checked
from fvi_core.samplers import Memory, Sampler, Target

DIVERGENT = 1000.0
"""Energy that a trajectory may gain before it counts as divergent: the bound of Stan."""
GAMMA, T0, KAPPA = 0.05, 10.0, 0.75  # constants of dual averaging from Hoffman and Gelman (2014)
Gradient = Callable[[Parameters], tuple[Tensor, Parameters]]


def leapfrog(
    gradient: Gradient, position: Parameters, momentum: Parameters, step: Tensor, steps: int
) -> tuple[Parameters, Parameters, Tensor]:
    """Position and momentum after so many steps of sizes ``step [R]``, and the energy there ``[R]`` (Neal 2011, eq.
    2.28 to 2.30).

    Unit mass. Reversing the momentum retraces the trajectory.
    """
    sizes = {name: step.view(-1, *[1] * (value.dim() - 1)) for name, value in position.items()}
    energy, force = gradient(position)
    for i in range(steps):
        momentum = {name: value - sizes[name] * force[name] * (1 if i else 0.5) for name, value in momentum.items()}
        position = {name: value + sizes[name] * momentum[name] for name, value in position.items()}
        energy, force = gradient(position)
    return position, {name: value - 0.5 * sizes[name] * force[name] for name, value in momentum.items()}, energy


def kinetic(momentum: Parameters) -> Tensor:
    """``|p|^2 / 2``, ``[R]``."""
    return 0.5 * torch.stack([value.flatten(1).square().sum(1) for value in momentum.values()]).sum(0)


@TRAININGS.register("hmc")
@dataclass(frozen=True)
class HamiltonianMonteCarlo(Sampler):
    """Hamiltonian Monte Carlo with unit mass; each member of an ensemble of family "samples" is a chain.

    A trajectory has ``round(2 u leapfrogs)`` steps, at least one, with u uniform on [0, 1) and the same for all chains,
    so that no chain waits for another. During warm-up each chain adapts its step by dual averaging (Hoffman and Gelman
    2014, eq. 6) from ``step``, until the mean probability of acceptance is ``acceptance``; then it uses the averaged
    step. ``start_at``: "map", the result of ``map_steps`` of Adam at ``map_lr`` from the initial network; "prior", a
    draw from it; or "initial". A chain fails if it gains more energy than DIVERGENT in more than ``most_divergent`` of
    the trajectories after warm-up.
    """

    leapfrogs: int = checked(50, least=1)
    step: float = checked(0.002, above=0)
    acceptance: float = checked(0.8, above=0, below=1)
    start_at: str = checked("map", among=("map", "prior", "initial"))
    map_steps: int = checked(1000, least=0)
    map_lr: float = checked(0.01, above=0)
    most_divergent: float = checked(0.05, least=0, most=1)

    def place(self, position: Parameters, target: Target, streams: Streams) -> Parameters:
        if self.start_at == "prior":
            prior = cast(Prior, target.model.prior)  # a method without a prior fails here
            return prior.weights(target.model.network, 1, streams)
        if self.start_at == "map":
            return self._mode(position, target)
        return position

    def _mode(self, position: Parameters, target: Target) -> Parameters:
        position = {name: value.clone() for name, value in position.items()}
        tensors, optimiser = list(position.values()), Adam()
        state, rate = optimiser.start(tensors), tensors[0].new_full((len(tensors[0]),), self.map_lr)
        for _ in range(self.map_steps):
            _, gradient = target.gradient(position)
            optimiser.step(tensors, list(gradient.values()), state, rate)
        return position

    def remember(self, position: Parameters) -> Memory:
        like = next(iter(position.values()))
        zeros = like.new_zeros(len(like))
        log_step = torch.full_like(zeros, math.log(self.step))
        return {
            "log_step": log_step,
            "averaged": log_step.clone(),
            **{name: zeros.clone() for name in ("shortfall", "moves", "kept", "accepted", "divergent")},
        }

    def move(
        self, position: Parameters, energy: Tensor, memory: Memory, target: Target, streams: Streams, warming: bool
    ) -> tuple[Parameters, Tensor, Memory]:
        momentum = {name: streams.normal(*value.shape[1:]) for name, value in position.items()}
        step = memory["log_step" if warming else "averaged"].exp()
        steps = self.length(int(memory["moves"][0]))
        proposal, final, proposed = leapfrog(target.gradient, position, momentum, step, steps)
        gain = (proposed + kinetic(final)) - (energy + kinetic(momentum))
        gain = torch.where(torch.isfinite(gain), gain, torch.inf)
        accepted = streams.uniform().log() < -gain
        position = where(accepted, proposal, position)
        probability = (-gain).clamp(max=0).exp()
        memory = memory | {"moves": memory["moves"] + 1}
        if warming:
            memory |= self._adapted(memory, probability)
        else:
            memory["kept"] = memory["kept"] + 1
            memory["accepted"] = memory["accepted"] + probability
            memory["divergent"] = memory["divergent"] + (gain > DIVERGENT).to(gain)
        return position, torch.where(accepted, proposed, energy), memory

    def length(self, move: int) -> int:
        """Return the number of steps of a trajectory, the same in every chain."""
        u = torch.rand((), generator=torch.Generator().manual_seed(seed_from("leapfrogs", move))).item()
        return max(1, round(2 * u * self.leapfrogs))

    def _adapted(self, memory: Memory, probability: Tensor) -> Memory:
        """One step of dual averaging, after ``moves`` trajectories."""
        m = memory["moves"]
        shortfall = memory["shortfall"] + (self.acceptance - probability - memory["shortfall"]) / (m + T0)
        log_step = math.log(10 * self.step) - m.sqrt() / GAMMA * shortfall
        return {
            "shortfall": shortfall,
            "log_step": log_step,
            "averaged": torch.lerp(memory["averaged"], log_step, m**-KAPPA),
        }

    def diagnostics(self, memory: Memory) -> dict[str, Tensor]:
        trajectories = memory["kept"].clamp(min=1)
        return {
            "acceptance": memory["accepted"] / trajectories,
            "divergent": memory["divergent"] / trajectories,
            "step": memory["averaged"].exp(),
        }

    def faults(self, memory: Memory) -> dict[int, str]:
        # In float64: in float32 5 of 100 are more than 5 %.
        shares = (memory["divergent"].double() / memory["kept"].clamp(min=1)).tolist()
        return {
            place: f"{100 * share:.0f} % of the trajectories after warm-up gained more energy than {DIVERGENT:g}, "
            f"above the {100 * self.most_divergent:g} % allowed: warm up longer, or ask for a higher acceptance"
            for place, share in enumerate(shares)
            if share > self.most_divergent
        }
