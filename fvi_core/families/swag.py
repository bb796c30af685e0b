"""Stochastic weight averaging, Gaussian (Maddox et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fvi_core.families.base import FitData, buffers_of
from fvi_core.families.point import Point
from fvi_core.held import BUFFER
from fvi_core.networks import Network, Parameters
from fvi_core.products import product
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, checked

MEAN, SQUARE, DEVIATION = f"{BUFFER}swag_mean/", f"{BUFFER}swag_square/", f"{BUFFER}swag_deviation/"
COUNT, POINTS = f"{BUFFER}swag_count", f"{BUFFER}swag_points"


@FAMILIES.register("swag")
@dataclass(frozen=True)
class SWAG(Point):
    """A Gaussian fitted to the iterates of stochastic gradient descent at ends of epochs (Maddox et al. 2019 alg. 1):

    ``w = mean + scale (diag^(1/2) z1 / sqrt(2) + D z2 / sqrt(2 (K - 1)))``, z1, z2 standard normal, with the iterates'
    mean and variances (diag) and the last K <= ``rank`` deviations of an iterate from the mean at its time (D).

    Iterates are collected after the share ``start`` of the epochs, at every ``every``-th epoch; training is as for a
    point. ``scale`` 0 predicts with the mean alone (stochastic weight averaging). With batch normalisation each drawn
    network gets its own statistics (alg. 1), here over ``rank * points`` random training inputs, chosen after training.
    """

    rank: int = checked(20, least=2)
    start: float = checked(0.8, least=0, below=1)
    every: int = checked(1, least=1)
    scale: float = checked(1.0, least=0)
    points: int = checked(64, least=1)

    def init(self, network: Network, streams: Streams) -> Parameters:
        parameters = super().init(network, streams)
        moments = {COUNT: torch.zeros(len(streams), dtype=streams.dtype, device=streams.device)}
        for name in network.shapes:
            value = parameters[name]
            moments |= {
                MEAN + name: torch.zeros_like(value),
                SQUARE + name: torch.zeros_like(value),
                DEVIATION + name: value.new_zeros(len(value), self.rank, *value.shape[1:]),
            }
        return parameters | moments

    @torch.no_grad()
    def after_epoch(self, network: Network, parameters: Parameters, epoch: int, epochs: int) -> Parameters:
        past = epoch - int(round(self.start * epochs, 9))  # .29 * 100 is below 29
        if past < 1 or (past - 1) % self.every:
            return {}
        count = parameters[COUNT] + 1
        moved = {COUNT: count}
        for name in network.shapes:
            value, mean = parameters[name], parameters[MEAN + name]
            before = value - mean
            mean = mean + before / count.view(-1, *[1] * (value.dim() - 1))
            # Welford's sum of squares: the difference of two averages would lose a small variance to rounding.
            moved |= {
                MEAN + name: mean,
                SQUARE + name: parameters[SQUARE + name] + before * (value - mean),
                DEVIATION + name: torch.cat([parameters[DEVIATION + name][:, 1:], (value - mean).unsqueeze(1)], dim=1),
            }
        return moved

    def condition(self, parameters: Parameters, fitting: FitData) -> Parameters:
        if not fitting.network.buffers:
            return parameters
        return parameters | {POINTS: fitting.some(self.rank * self.points, fitting.streams.child("swag"))}

    def remarks(self, parameters: Parameters) -> list[str]:
        least = int(parameters[COUNT].min())
        if least > 1 or (least and not self.scale):
            return []
        outcome = "its covariance is zero, all draws are one network" if least else "the last weights are used"
        return [
            f"family {self.name!r}: {least or 'no'} iterate{'s' * (not least)} collected (start {self.start}, every "
            f"{self.every}): {outcome}; train for more epochs, start earlier or collect more often"
        ]

    def weights(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Parameters:
        """Draw weights ``[R, S, *shape]``. S = 1: the mean if ``scale`` is 0, or the point before the first iterate."""
        if COUNT not in parameters or not parameters[COUNT].any():
            names = [*network.shapes, *(name for name in network.buffers if name in parameters)]
            return {name: parameters[name].unsqueeze(1) for name in names}
        samples, count = samples if self.scale else 1, parameters[COUNT]
        columns = count.clamp(max=self.rank)
        mean, square, deviations = (
            network.flatten({k: parameters[prefix + k] for k in network.shapes}) for prefix in (MEAN, SQUARE, DEVIATION)
        )
        std = (square / count.unsqueeze(1)).clamp_min(0).sqrt()
        diagonal = std.unsqueeze(1) * streams.normal(samples, network.n_parameters)
        low_rank = product(streams.normal(samples, self.rank), deviations)
        low_rank = low_rank / (columns - 1).clamp_min(1).sqrt().view(-1, 1, 1)
        drawn = network.unflatten(mean.unsqueeze(1) + self.scale * (diagonal + low_rank) / 2**0.5)
        if not network.buffers:
            return drawn
        if POINTS not in parameters:  # during training: the iterates' own statistics
            return drawn | buffers_of({name: parameters[name] for name in network.buffers})
        x = parameters[POINTS]
        statistics = [network.statistics({k: v[:, s : s + 1] for k, v in drawn.items()}, x) for s in range(samples)]
        return drawn | {name: torch.cat([each[name] for each in statistics], dim=1) for name in network.buffers}
