"""KL divergence between weight distributions (the ordinary ELBO)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fvi_core.divergences.base import Divergence, Step
from fvi_core.families.base import NotSupported
from fvi_core.gaussian import sum_of_squares
from fvi_core.priors.base import Prior
from fvi_core.registry import DIVERGENCES, checked


@DIVERGENCES.register("weight_kl")
@dataclass(frozen=True)
class WeightKL(Divergence):
    """``KL(q(w) || N(prior mean, prior variance))`` summed over all weights: in closed form where the family has it
    (Blundell et al. 2015), or as the family estimates it."""

    def __call__(self, step: Step) -> Tensor:
        return step.family.weight_kl(step.network, step.parameters, *step.prior.gaussian_weights(), step.functions)


@DIVERGENCES.register("tied_weight_kl")
@dataclass(frozen=True)
class TiedWeightKL(Divergence):
    """``KL(q(w) || N(m, gain / fan_in))`` summed over the random weights, with m the means of q: it regularises only
    the variances (MFVI and radial MFVI of Band et al. 2021, whose standard deviation is He's, of gain 2)."""

    gain: float = checked(2.0, above=0)

    def __call__(self, step: Step) -> Tensor:
        return step.family.tied_weight_kl(step.network, step.parameters, self.gain)


@DIVERGENCES.register("weight_penalty")
@dataclass(frozen=True)
class WeightPenalty(Divergence):
    """``-log p(w)`` up to a constant, ``sum_i w_i^2 / (2 variance)``: the KL of a point up to a constant (MAP).

    Raises NotSupported for a family with other parameters than the network's weights, such as log-variances.
    """

    def __call__(self, step: Step) -> Tensor:
        mean, variance = step.prior.gaussian_weights()
        if others := sorted(step.parameters.keys() - step.network.shapes.keys()):
            raise NotSupported(
                f"divergence {self.name!r} is the penalty of trained weights, and parameters of family "
                f"{step.family.name!r} are others ({others[0]!r}): use 'weight_kl'"
            )
        away = step.parameters.values() if mean == 0 else (v - mean for v in step.parameters.values())
        # A joint ensemble's likelihood is the mean over its networks, and so is its penalty.
        return sum_of_squares(away) / (2 * variance * step.family.networks)

    def weight_prior(self, prior: Prior) -> tuple[float, float]:
        mean, variance = prior.gaussian_weights()
        return mean, 1 / variance
