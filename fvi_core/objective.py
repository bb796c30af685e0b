"""The one objective: E_q[log p(y | f(X))] - weight * D(q || p), per training point and replica."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.contexts import Context, Scene
from fvi_core.divergences.base import Divergence, Step
from fvi_core.families.base import DrawnNetworks, Family, Functions, NotSupported
from fvi_core.networks import STATE, Network, Parameters
from fvi_core.priors.base import Prior
from fvi_core.random import Streams
from fvi_core.registry import nearest

SCALINGS = ("elbo", "batch", "context", "none")


@dataclass(frozen=True)
class Weight:
    """How much the divergence counts against the mean log-likelihood of a batch.

    ``scaling`` "elbo": ``factor / N``, the true ELBO with N training points (pequignot2020 eq. 8, cinquin2024 alg. 1);
    "batch": ``factor / B``, the divergence against the batch's summed log-likelihood (rudner2022 eq. 17 as its first code has
    it, dirichlet2022 App. B.1, Sun et al. 2019), N/B times the ELBO's; "context": ``factor / (B K)`` with K context points
    (the retinopathy code of rudner2022); "none": ``factor`` alone (the two moons of dirichlet2022, App. F). A ``factor`` other
    than 1 tempers.
    """

    scaling: str = "elbo"
    factor: float = 1.0

    def __post_init__(self):
        if self.scaling not in SCALINGS:
            raise ValueError(f"weight scaling {self.scaling!r} is not known; {nearest(self.scaling, SCALINGS)}")

    def __call__(self, n_train: int, batch: int, context: int) -> float:
        return self.factor / {"elbo": n_train, "batch": batch, "context": batch * context, "none": 1}[self.scaling]


@dataclass(frozen=True)
class Model:
    """The four parts, the likelihood and the weight of one method, built for one data set."""

    network: Network
    family: Family
    divergence: Divergence | None
    prior: Prior | None
    context: Context | None
    likelihood: object
    weight: Weight

    def _together(self, network: Network) -> bool:
        """Whether the training batch and a context are evaluated in one pass."""
        if self.divergence is None or self.context is None:
            return False
        return network.joint or (self.context.extends_batch() and not network.state)

    def expected_log_likelihood(self, parameters: Parameters, noise: Parameters, x: Tensor, y: Tensor, samples: int,
                                streams: Streams) -> Tensor:
        """Mean over points of E_q[log p(y | f(x))], ``[R]``: in closed form where there is one, else over a draw of functions."""
        if self.likelihood.has_closed_form:
            marginals = self.family.marginals(self.network, parameters, x)
            if marginals is not None:
                return self.likelihood.expected_log_prob_gaussian(noise, *marginals, y).mean(-1)
        functions = self.family.functions(self.network, parameters, samples, streams)
        return self.likelihood.data_term(noise, functions(x), y)

    def loss(self, parameters: Parameters, noise: Parameters, prior_state: dict[str, Tensor], x: Tensor, y: Tensor, n_train: int,
             samples: int, scene: Scene, streams: dict[str, Streams], seen: Parameters | None = None) -> Tensor:
        """``-(mean log-likelihood - weight D)`` of one batch, ``[R]``, in nats per training point.

        ``seen`` is told the statistics that batch normalisation met on the way to the likelihood's function values.
        """
        state = {k: v for k, v in parameters.items() if k.startswith(STATE)}
        parameters = {k: v for k, v in parameters.items() if k not in state}
        network = self.network.watched({} if seen is None else seen)
        if "raw_noise" in noise:
            evidence = self.family.log_evidence(network, parameters, self.likelihood.noise_std(noise), x, y)
            if evidence is not None:
                return -evidence / n_train
        context_size = 0

        def sample_context() -> Tensor:
            nonlocal context_size
            context = self.context(scene, streams["context"])
            context_size = context.shape[1]
            return context

        if self.likelihood.has_closed_form and self.family.closed_form:
            functions = values = None
            fit = self.expected_log_likelihood(parameters, noise, x, y, samples, streams["noise"])
        else:
            functions = self.family.functions(network, parameters, samples, streams["noise"])
            if self._together(network):
                functions = Together(functions, x, sample_context, self.context.extends_batch(), network.joint)
                sample_context = functions.next_context
            values = functions(x)
            fit = self.likelihood.data_term(noise, values, y)
        if self.divergence is None:
            return -fit
        step = Step(network, self.family, parameters, self.prior, prior_state, x, n_train, functions, values,
                    sample_context, streams["divergence"], streams["prior"], state)
        divergence = self.divergence(step)
        return -fit + self.weight(n_train, x.shape[1], context_size or 1) * divergence


class Together:
    """A draw of functions at the training batch and a context in one pass: normalised by common statistics, where the
    network is ``joint``, and without a second look at a batch that is the context's beginning (``extended``)."""

    def __init__(
        self, functions: Functions, x: Tensor, draw_context: Callable[[], Tensor], extended: bool, joint: bool
    ):
        self.functions, self.x, self.draw_context, self.joint = functions, x, draw_context, joint
        self.context, self.taken = draw_context(), False
        extended = extended or self.context is x
        self.first = 0 if extended else x.shape[1]
        points = self.context if extended else torch.cat([x, self.context], dim=1)
        self.phi = None
        if isinstance(functions, DrawnNetworks):
            self.phi = functions.network.features(functions.parameters, points)
            self.values = functions.network.head(functions.parameters, self.phi)
        else:
            self.values = functions(points)

    def next_context(self) -> Tensor:
        """The context that was evaluated already; after that others, unless statistics are joint."""
        if not self.taken:
            self.taken = True
            return self.context
        if self.joint:
            raise NotSupported("network: joint statistics are those of one context set in a step, found more")
        return self.draw_context()

    def __call__(self, points: Tensor) -> Tensor:
        known = self._known(points)
        return self.functions(points) if known is None else self.values[:, :, known]

    def features(self, points: Tensor) -> Tensor:
        """Inputs of the last layer in the first function, ``[R, N, F]``."""
        if self.phi is None:
            raise NotSupported("a last layer is linearised in networks of drawn parameters, which these are not")
        known = self._known(points)
        return self.functions.features(points) if known is None else self.phi[:, 0, known]

    def _known(self, points: Tensor) -> slice | None:
        if points is self.x:
            return slice(self.x.shape[1])
        return slice(self.first, None) if points is self.context else None


def noise_of(parameters: Parameters) -> tuple[Parameters, Parameters]:
    """Split trained tensors into the family's parameters and the likelihood's."""
    prefix = "likelihood/"
    family = {k: v for k, v in parameters.items() if not k.startswith(prefix)}
    return family, {k.removeprefix(prefix): v for k, v in parameters.items() if k.startswith(prefix)}


def take(x: Tensor, owner: Tensor, index: Tensor | None = None) -> Tensor:
    """Rows of ``x [D, N, ...]`` for replicas that own data set ``owner [R]``: ``[R, N, ...]``, or those of ``index [R, B]``."""
    if index is not None and x.shape[0] == 1:  # rows of one array are copied whole, much faster than by pairs of indices
        return x[0].index_select(0, index.flatten()).unflatten(0, index.shape)
    if index is not None:
        return x[owner[:, None], index]
    if x.shape[0] == 1:
        return x.expand(len(owner), *x.shape[1:])
    return x[owner] if not torch.equal(owner, torch.arange(len(x), device=owner.device)) else x
