"""Implicit distribution over network parameters: a generator fed with Gaussian latent variables (pequignot2020 sec.
3.2).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch

from fvi_core.families.base import AffineImage, Family, buffers_of
from fvi_core.networks import Network, Parameters
from fvi_core.products import product
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, checked


@FAMILIES.register("hypernetwork")
@dataclass(frozen=True)
class Hypernetwork(Family):
    """``theta = h(eps), eps ~ N(0, I_latent)`` with a ReLU network h that outputs all parameters of the predictor."""

    latent: int = checked(5, least=1)
    hidden: tuple[int, ...] = checked((20, 40), least=1)

    def init(self, network: Network, streams: Streams) -> Parameters:
        parameters = {}
        widths = [self.latent, *self.hidden, network.n_parameters]
        for i, (inputs, outputs) in enumerate(itertools.pairwise(widths)):
            bound = 1 / math.sqrt(inputs)
            parameters[f"generator{i}.weight"] = (streams.uniform(inputs, outputs) * 2 - 1) * bound
            parameters[f"generator{i}.bias"] = (streams.uniform(outputs) * 2 - 1) * bound
        return parameters | network.init_buffers(streams)

    def affine_image(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> AffineImage:
        h = streams.normal(samples, self.latent)
        last = len(self.hidden)
        for i in range(last):
            h = torch.relu(
                product(h, parameters[f"generator{i}.weight"], parameters[f"generator{i}.bias"].unsqueeze(1))
            )
        return AffineImage(h, parameters[f"generator{last}.weight"], parameters[f"generator{last}.bias"])

    def weights(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Parameters:
        drawn = self.affine_image(network, parameters, samples, streams).points()
        return network.unflatten(drawn) | buffers_of(parameters)
