"""Temperature scaling of logits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.data import without_validation
from fvi_core.families.base import Family, FitData, Functions
from fvi_core.fitting import PREFIX, Fit, FitFailed
from fvi_core.held import Held
from fvi_core.networks import Network, Parameters
from fvi_core.random import Streams
from fvi_core.registry import FITS, checked, later

SHRINK = (math.sqrt(5) - 1) / 2


@FITS.register("temperature")
@dataclass(frozen=True)
class Temperature(Fit):
    """Logits divided by one number T (Guo et al. 2017), which maximises the likelihood of the validation subset, or of
    the training subset where there is none, under the mean of the class probabilities of ``samples`` functions.

    T lies between 1 / ``most`` and ``most``. ``held_out``: require a validation subset. Raises FitFailed for a
    regression, for likelihood "robust_max", for a data set without the required subset, and for a likelihood that is
    NaN.
    """

    samples: int = checked(20, least=1)
    most: float = checked(100.0, above=1)
    held_out: bool = later(False)

    @property
    def needs_validation(self) -> bool:
        return self.held_out

    @torch.no_grad()
    def __call__(self, parameters: Parameters, fitting: FitData) -> Parameters:
        if not fitting.classification:
            raise FitFailed("fit 'temperature': it divides the logits of classes, found a regression; take it out")
        if not fitting.likelihood.by_draws:
            name = fitting.likelihood.name
            raise FitFailed(f"fit 'temperature': likelihood {name!r} does not change with it; take it out")
        held = fitting.validation is not None
        if self.held_out and not held:
            raise FitFailed(without_validation("fit 'temperature'"))
        streams = fitting.streams.child("temperature")
        drawn = fitting.functions_at(parameters, streams, self.samples, validation=held)
        f = torch.cat(list(drawn), dim=2).double()
        y = fitting.y if fitting.validation is None else fitting.validation[1]
        likelihood = Held.of(parameters).likelihood

        def loss(log_temperature: Tensor) -> Tensor:
            scaled = f / log_temperature.exp().view(-1, 1, 1, 1)
            log = fitting.likelihood.log_prob(likelihood, scaled, y).logsumexp(1).mean(1)
            if log.isnan().any():
                fault = f"the likelihood of its {f.shape[2]} points is NaN, as logits are not finite there"
                raise FitFailed(f"fit 'temperature': {fault}: scale the inputs as in training, or use dtype 'float64'")
            return math.log(f.shape[1]) - log

        end = f.new_full((len(f),), math.log(self.most))
        best = golden_section(loss, -end, end)
        return parameters | {PREFIX + "log_temperature": best}

    def numbers(self, own: Parameters) -> dict[str, float]:
        return {"temperature": float(own["log_temperature"][0].exp())}

    def functions(
        self, network: Network, family: Family, parameters: Parameters, own: Parameters, samples: int, streams: Streams
    ) -> Functions:
        functions = family.functions(network, parameters, samples, streams)

        def scaled(x: Tensor) -> Tensor:
            f = functions(x)
            return f / own["log_temperature"].exp().to(f).view(-1, 1, 1, 1)

        return scaled

    def marginals(
        self, network: Network, family: Family, parameters: Parameters, own: Parameters, x: Tensor
    ) -> tuple[Tensor, Tensor] | None:
        return None


def golden_section(function, low: Tensor, high: Tensor, steps: int = 60) -> Tensor:
    """Return the minimiser ``[R]`` of a unimodal function ``[R] -> [R]`` between ``low`` and ``high``."""
    a, b = high - SHRINK * (high - low), low + SHRINK * (high - low)
    at_a, at_b = function(a), function(b)
    for _ in range(steps):
        left = at_a < at_b
        low, high = torch.where(left, low, a), torch.where(left, b, high)
        point = torch.where(left, high - SHRINK * (high - low), low + SHRINK * (high - low))
        value = function(point)
        a, b, at_a, at_b = (
            torch.where(left, point, b),
            torch.where(left, a, point),
            torch.where(left, value, at_b),
            torch.where(left, at_a, value),
        )
    return (low + high) / 2
