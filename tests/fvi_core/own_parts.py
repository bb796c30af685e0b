"""Parts as somebody else might bring them: a sampler, a likelihood with its own data term, head and score, a fit
part."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import torch
from torch.nn.functional import softplus

from fvi_core.fitting import PREFIX, Fit
from fvi_core.likelihoods import Likelihood
from fvi_core.registry import FITS, LIKELIHOODS, TRAININGS
from fvi_core.samplers import Sampler


@dataclass(frozen=True)
class Metropolis(Sampler):
    """Random-walk Metropolis on all weights; while it warms up each chain learns its step."""

    name = "metropolis"
    step: float = 0.3

    def remember(self, position):
        energy = next(iter(position.values()))
        return {
            "log_step": energy.new_full((len(energy),), math.log(self.step)),
            "accepted": energy.new_zeros(len(energy)),
        }

    def move(self, position, energy, memory, target, streams, warming):
        step = memory["log_step"].exp()
        proposal = {
            name: value + step.view(-1, *[1] * (value.dim() - 1)) * streams.normal(*value.shape[1:])
            for name, value in position.items()
        }
        proposed = target.energy(proposal)
        accepted = streams.uniform().log() < energy - proposed
        moved = {
            name: torch.where(accepted.view(-1, *[1] * (value.dim() - 1)), proposal[name], value)
            for name, value in position.items()
        }
        log_step = memory["log_step"] + 0.05 * (accepted.to(step) - 0.3) if warming else memory["log_step"]
        memory = {"log_step": log_step, "accepted": memory["accepted"] + accepted.to(step)}
        return moved, torch.where(accepted, proposed, energy), memory


@dataclass(frozen=True)
class AlphaEnergy(Likelihood):
    """A Gaussian whose level of noise is a second output, trained on ``1/alpha log mean_s p(y | f_s)^alpha``."""

    name = "alpha_energy"
    alpha: float = 0.5
    offset: float = 0.1

    def outputs(self, targets):
        return 2 * targets

    def log_prob(self, params, f, y):
        std = softplus(f[..., 1]) + self.offset
        return torch.distributions.Normal(f[..., 0], std).log_prob(y[:, None])

    def data_term(self, params, f, y):
        log = self.alpha * self.log_prob(params, f, y)
        return (log.logsumexp(1) - math.log(f.shape[1])).mean(1) / self.alpha

    def noise_std(self, params):
        return torch.full((1,), self.offset)

    def values(self, f):
        return f[..., :1]

    def scores(self, values):
        return {"range": values.max(0) - values.min(0)}


@dataclass(frozen=True)
class Shift(Fit):
    """Adds the mean of the training targets, once for each time that it is fitted, to all functions."""

    name = "shift"

    def __call__(self, parameters, fitting):
        before = parameters.get(PREFIX + "mean", 0)
        assert fitting.n_train == fitting.y.shape[1] == sum(len(y[0]) for _, y in fitting.batches(7))
        return parameters | {PREFIX + "mean": before + fitting.y.mean(1)}

    def functions(self, network, family, parameters, own, samples, streams):
        functions = family.functions(network, parameters, samples, streams)
        return lambda x: functions(x) + own["mean"].view(-1, 1, 1, 1)

    def marginals(self, network, family, parameters, own, x):
        return None


PARTS = ((TRAININGS, Metropolis), (LIKELIHOODS, AlphaEnergy), (FITS, Shift))


@contextmanager
def registered() -> Iterator[None]:
    """Register these parts for the block."""
    with ExitStack() as stack:
        for registry, cls in PARTS:
            stack.enter_context(patch.dict(registry.classes, {cls.name: cls}))
        yield
