"""Sparse variational Gaussian processes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fvi_core.data import TrainingSet
from fvi_core.families.base import NotSupported
from fvi_core.families.inducing import INPUTS, InducedProcess, Inducing, InducingPoints
from fvi_core.gaussian_process import fit_kernel
from fvi_core.held import CONSTANT
from fvi_core.kernels import Params, evenly_spaced
from fvi_core.networks import Network, Parameters
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, KERNELS, later
from fvi_core.triangular import lower_triangle

MEAN, FACTOR = "inducing/mean", "inducing/factor"


@FAMILIES.register("sparse_gp")
@dataclass(frozen=True)
class SparseGP(Inducing):
    """A Gaussian process of variational values ``u ~ N(L m, L C C^T L^T)`` at trained inducing points (Hensman et al.
    2013).

    ``L L^T = K_ZZ + jitter I``: m and C are whitened, and start at 0 and I, the prior. Inducing points start at random
    training inputs, length-scales at the median distance; points, m, C, the logarithms of the kernel's hyper-parameters
    and the likelihood's noise are trained together. The objective is the evidence bound with divergence "inducing_kl".
    Only the shapes of the network's inputs and outputs are used.

    ``fit_steps`` above 0: hyper-parameters are fixed before training, as for a prior "gaussian_process", by so many
    steps of Adam at ``fit_lr`` on the marginal likelihood of all training data. Not for classes.
    """

    fit_steps: int = later(0)
    fit_lr: float = later(0.05)

    def init(self, network: Network, streams: Streams) -> Parameters:
        features = network.n_features
        hyper = KERNELS.build(self.kernel).init(len(streams), features)
        values = streams.normal(self.points, features)  # placeholder until training inputs are known
        hyper = {name: value.to(streams.device) for name, value in hyper.items()}
        return self._named(hyper) | self._start(values, network.n_outputs)

    def prepare(self, network: Network, parameters: Parameters, train: TrainingSet, streams: Streams) -> Parameters:
        kernel, (_, z) = KERNELS.build(self.kernel), self.random_inputs(train, streams)
        if not self.fit_steps:
            hyper = kernel.init(len(z), z.shape[-1], train.scale(evenly_spaced(train.x)))
        elif train.classification:
            raise NotSupported(f"family {self.name!r}: fit_steps: a kernel is fitted to numbers, not to classes")
        else:
            hyper, _ = fit_kernel(
                kernel, train.x, train.y, streams, steps=self.fit_steps, lr=self.fit_lr, scale=train.scale
            )
        return self._named(hyper) | self._start(z.to(parameters[INPUTS].dtype), network.n_outputs)

    def _start(self, z: Tensor, outputs: int) -> Parameters:
        r, m = z.shape[:2]
        return {INPUTS: z, MEAN: z.new_zeros(r, outputs, m), FACTOR: z.new_zeros(r, outputs, m, m)}

    def _named(self, hyper: Params) -> Parameters:
        """Name hyper-parameters as trained parameters, or as constants."""
        return {(CONSTANT + name if self.fit_steps else name): value for name, value in hyper.items()}

    def inducing_points(self, parameters: Parameters) -> InducingPoints:
        """Return the prior process given its values at the inducing points."""
        own = {name: value for name, value in parameters.items() if not name.startswith("inducing/")}
        hyper = {name.removeprefix(CONSTANT): value for name, value in own.items()}
        return InducingPoints(KERNELS.build(self.kernel), hyper, parameters[INPUTS], self.jitter)

    def process(self, parameters: Parameters) -> InducedProcess:
        values = parameters[MEAN].double(), lower_triangle(parameters[FACTOR].double())
        return InducedProcess(self.inducing_points(parameters), *values)
