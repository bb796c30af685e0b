"""Objective of every method: E_q[log p(y | f(X))] - weight * D(q || p), per training point and replica."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

from torch import Tensor

from fvi_core.contexts import Context, ContextSource
from fvi_core.data import TrainingData
from fvi_core.divergences.base import Divergence, Step
from fvi_core.families.base import Family, FitData, Functions, NotSupported, buffers_of
from fvi_core.fitting import Fit
from fvi_core.held import Held, only_buffers
from fvi_core.likelihoods import SMALL_POWER, Likelihood
from fvi_core.networks import Network, Parameters
from fvi_core.priors.base import Prior
from fvi_core.random import Streams
from fvi_core.registry import checked, later
from fvi_core.shared_pass import SharedPass
from fvi_core.spelling import check_known

SCALINGS = ("elbo", "batch", "context", "none")


@dataclass(frozen=True)
class Weight:
    """Weight of the divergence against the mean log-likelihood of a batch.

    ``scaling`` "elbo": ``factor / N``, the true ELBO with N training points (pequignot2020 eq. 8, cinquin2024 alg. 1);
    "batch": ``factor / B``, the divergence against the batch's summed log-likelihood (rudner2022 eq. 17 in its first
    code, dirichlet2022 App. B.1, Sun et al. 2019), N/B times the ELBO's; "context": ``factor / (B K)`` with K context
    points (the retinopathy code of rudner2022); "none": ``factor`` alone (the two moons of dirichlet2022, App. F). A
    ``factor`` other than 1 tempers the posterior. ``alpha`` above 0: the likelihood counts by ``log E_q[p(y | f)^alpha]
    / alpha`` of every point in place of its limit ``E_q[log p(y | f)]`` (Hernandez-Lobato et al. 2016, Ma et al. 2019);
    over S draws an estimate from below, whose bias falls with S; one draw gives the limit. In closed form a vector
    target's numbers count as points, as if outputs were independent.
    ``rise``: share of the gradient steps over which the factor rises linearly from 0 (Bowman et al. 2016).
    """

    scaling: str = "elbo"
    factor: float = checked(1.0, least=0)
    alpha: float = later(0.0)
    rise: float = later(0.0)

    def __post_init__(self):
        if not 0 <= self.rise <= 1:
            raise ValueError(f"weight: rise must lie in [0, 1], found {self.rise}")
        if self.alpha < 0:
            raise ValueError(f"weight: alpha must be 0 or more, found {self.alpha}")
        check_known("weight scaling", self.scaling, SCALINGS)

    def __call__(self, n_train: int, batch: int, context: int, progress: float = 1.0) -> float:
        """Return the weight. ``progress``: share of all steps, including the current one."""
        factor = self.factor * min(1.0, progress / self.rise) if self.rise else self.factor
        return factor / {"elbo": n_train, "batch": batch, "context": batch * context, "none": 1}[self.scaling]


@dataclass(frozen=True)
class Model:
    """Method built for one data set: its four parts, likelihood, weight and fit part.

    ``precision``: precision of the networks that prediction draws (see :meth:`Network.in_precision`); fits, and a fit
    part's own functions, use the precision of the inputs.
    """

    network: Network
    family: Family
    divergence: Divergence | None
    prior: Prior | None
    context: Context | None
    likelihood: Likelihood
    weight: Weight
    fit: Fit | None = None
    precision: str = "float32"

    def __post_init__(self) -> None:
        if self.fit is not None:
            self.fit.check(self.network, self.family)
        if self.weight.alpha and not self.likelihood.is_pointwise:
            raise NotSupported(
                f"weight: alpha {self.weight.alpha} is for the mean log-likelihood of points, found likelihood "
                f"{self.likelihood.name!r} with class_weights or an error of its own"
            )
        member = self.family.independent()[0]
        if self.likelihood.independent_outputs and not member.independent_outputs:
            raise NotSupported(
                f"likelihood {self.likelihood.name!r} is for independent outputs, and those of family {member.name!r} "
                "share random weights: use likelihood 'categorical', or family 'sparse_gp' or 'gwi'"
            )
        if self.divergence is None:
            self._refuse_context("the method has no divergence")

    @property
    def weight_prior(self) -> tuple[float, float] | None:
        """Mean and precision of the objective's Gaussian prior of every weight, against the summed log-likelihood.

        None if there is no such prior, or its scaling is not "elbo".
        """
        if self.divergence is None or self.prior is None or self.weight.scaling != "elbo":
            return None
        prior = self.divergence.weight_prior(self.prior)
        return None if prior is None else (prior[0], prior[1] * self.weight.factor)

    def after_training(self, parameters: Parameters, training_data: TrainingData, streams: Streams) -> Parameters:
        """Return the parameters for prediction, fitted from one replica's ``[1, ...]`` (:mod:`fvi_core.fitting`)."""
        fitting = FitData.of(self.network, self.family, self.likelihood, training_data, streams, self.weight_prior)
        values = fitting.functions_at(parameters, fitting.streams.child("calibrate"))
        noise = self.likelihood.estimate_noise(Held.of(parameters).likelihood, values, fitting.y)
        parameters = self.family.condition(parameters | Held({}, noise).flat(), fitting)
        return parameters if self.fit is None else self.fit(parameters, fitting)

    def refitted(
        self, fit: Fit, parameters: Parameters, training_data: TrainingData, streams: Streams
    ) -> tuple[Model, Parameters]:
        """Return the model with another fit part, and its fitted parameters ``[1, ...]``.

        Raises ValueError for a model that has a fit part already, FitFailed, and errors of the part's ``check``.
        """
        if self.fit is not None:
            raise ValueError(f"fit {fit.name!r}: expected a model without a fit part, found {self.fit.name!r}")
        fitting = FitData.of(self.network, self.family, self.likelihood, training_data, streams, self.weight_prior)
        return replace(self, fit=fit), fit(parameters, fitting)

    def fit_numbers(self, parameters: Parameters) -> dict[str, float]:
        """Return the numbers of one replica's fit part for its record."""
        return {} if self.fit is None else self.fit.numbers(Held.of(parameters).fit)

    def functions(self, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        """Draw functions for prediction from fitted parameters."""
        family, _, own = Held.of(parameters)
        if self.fit is None:
            network = self.network if self.precision == "float32" else self.network.in_precision(self.precision)
            return self.family.functions(network, family, samples, streams)
        return self.fit.functions(self.network, self.family, family, own, samples, streams)

    def weights(self, parameters: Parameters, samples: int, streams: Streams) -> Parameters:
        """Draw network parameters ``[R, S or 1, *shape]`` from fitted parameters. Raises NotSupported."""
        family, _, own = Held.of(parameters)
        if self.fit is None:
            return {**buffers_of(family), **self.family.weights(self.network, family, samples, streams)}
        return self.fit.weights(self.network, family, own, samples, streams)

    @property
    def closed_form(self) -> bool:
        """Whether training takes the expected log-likelihood in closed form, the expectation of ``log_prob``."""
        return self.likelihood.has_closed_form and self.likelihood.is_pointwise and self.family.closed_form

    def marginals(self, parameters: Parameters, x: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return mean and variance ``[R, N, Q]`` of the functions in closed form, if useful, else None."""
        if not self.likelihood.has_closed_form:
            return None
        family, _, own = Held.of(parameters)
        if self.fit is None:
            return self.family.marginals(self.network, family, x)
        return self.fit.marginals(self.network, self.family, family, own, x)

    def noise_std(self, parameters: Parameters) -> Tensor | None:
        """Return the standard deviation ``[R]`` of Gaussian noise, or None."""
        return self.likelihood.noise_std(Held.of(parameters).likelihood)

    def _refuse_context(self, why: str) -> None:
        if self.context is not None:
            raise NotSupported(f"context {self.context.name!r} would not be used, as {why}: leave it out")

    def _context_in_same_pass(self, network: Network) -> Context | None:
        """Return the context if it is evaluated in one pass with the training batch, else None."""
        if self.divergence is None or self.context is None:
            return None
        if self.family.shared_by > 1 and not self.context.is_batch():
            if network.shares_statistics:
                raise NotSupported(
                    f"family {self.family.name!r} divides the points of one pass among its members: with a context in "
                    "that pass (context_statistics 'shared') some members would never see the training batch"
                )
            return None
        shared = network.shares_statistics or (self.context.extends_batch() and not network.buffers)
        return self.context if shared else None

    def expected_log_likelihood(
        self,
        parameters: Parameters,
        likelihood_parameters: Parameters,
        x: Tensor,
        y: Tensor,
        samples: int,
        streams: Streams,
    ) -> Tensor:
        """Return the mean over points of E_q[log p(y | f(x))], ``[R]``, in closed form or over a draw of functions."""
        if self.likelihood.has_closed_form:
            marginals = self.family.marginals(self.network, parameters, x)
            if marginals is not None:
                return self.likelihood.expected_log_prob_gaussian(likelihood_parameters, *marginals, y).mean(-1)
        functions = self.family.functions(self.network, parameters, samples, streams)
        return self.likelihood.data_term(likelihood_parameters, functions(x), y)

    def _closed_form_term(
        self, likelihood_parameters: Parameters, marginals: tuple[Tensor, Tensor], y: Tensor
    ) -> Tensor:
        """Likelihood term of the objective, ``[R]``, in closed form from the family's marginals."""
        if not self.weight.alpha:
            return self.likelihood.expected_log_prob_gaussian(likelihood_parameters, *marginals, y).mean(-1)
        alpha = self.weight.alpha
        return self.likelihood.log_mean_power_gaussian(likelihood_parameters, *marginals, y, alpha).mean(-1)

    def _sampled_term(self, likelihood_parameters: Parameters, values: Tensor, y: Tensor) -> Tensor:
        """Likelihood term of the objective, ``[R]``, over drawn functions with values ``[R, S, N, Q]``."""
        alpha = self.weight.alpha
        if not alpha:
            return self.likelihood.data_term(likelihood_parameters, values, y)
        each = self.likelihood.log_prob(likelihood_parameters, values, y)
        if alpha < SMALL_POWER:  # equal to the other form, whose large numbers would cancel
            largest = each.detach().amax(1, keepdim=True)
            return (largest[:, 0] + (alpha * (each - largest)).expm1().mean(1).log1p() / alpha).mean(1)
        powers = alpha * each
        return (powers.logsumexp(1) - math.log(values.shape[1])).mean(1) / alpha

    def loss(
        self,
        parameters: Parameters,
        likelihood_parameters: Parameters,
        prior_parameters: dict[str, Tensor],
        x: Tensor,
        y: Tensor,
        n_train: int,
        samples: int,
        source: ContextSource,
        streams: dict[str, Streams],
        statistics: Parameters | None = None,
        progress: float = 1.0,
    ) -> Tensor:
        """Return ``-(mean log-likelihood - weight D)`` of one batch, ``[R]``, in nats per training point.

        ``progress``: share of all training steps, including this one, which the divergence's weight may depend on.
        ``statistics``: filled with the batch-normalisation statistics of the pass that computes the likelihood term.

        Raises :class:`NotSupported` for a family with an evidence of its own where the batch is not all of the data,
        and for a context at which nothing is compared.
        """
        buffers = only_buffers(parameters)
        parameters = {k: v for k, v in parameters.items() if k not in buffers}
        network = self.network.recording({} if statistics is None else statistics)
        evidence = self.family.log_evidence(Held(parameters, likelihood_parameters), self.likelihood, x, y)
        if evidence is not None:
            if x.shape[1] != n_train:
                raise NotSupported(
                    f"family {self.family.name!r} is trained by the evidence of all {n_train} training points at once, "
                    f"found a batch of {x.shape[1]}; set batch_size to at least {n_train}"
                )
            self._refuse_context("the evidence needs none")
            return -evidence / n_train
        context_size = 0

        def sample_context() -> Tensor:
            nonlocal context_size
            if self.context is None:
                divergence = cast(Divergence, self.divergence).name
                raise NotSupported(f"divergence {divergence!r} needs a context, and the method has none: add one")
            context = self.context(source, streams["context"])
            _check_context(self.context.name, context, x)
            context_size = context.shape[1]
            return context

        functions = values = marginals = None
        if self.closed_form:
            # closed_form families have marginals
            marginals = cast(tuple[Tensor, Tensor], self.family.marginals(network, parameters, x))
            log_likelihood = self._closed_form_term(likelihood_parameters, marginals, y)
        elif not self.likelihood.by_draws:
            raise NotSupported(
                f"likelihood {self.likelihood.name!r} is trained on moments of f(x) in closed form, "
                f"which family {self.family.name!r} has not"
            )
        else:
            functions = self.family.functions(network, parameters, samples, streams["functions"])
            shared = self._context_in_same_pass(network)
            if shared is not None:
                extended = shared.is_batch() or shared.extends_batch()
                functions = SharedPass(
                    functions, x, sample_context, extended, network.shares_statistics, self.family.draws_networks
                )
                sample_context = functions.next_context
            values = functions(x)
            log_likelihood = self._sampled_term(likelihood_parameters, values, y)
        _check_replicas(f"likelihood {self.likelihood.name!r}", log_likelihood, len(x))
        if self.divergence is None:
            return -log_likelihood
        prior = cast(Prior, self.prior)  # None if the divergence needs no prior
        step = Step(
            network,
            self.family,
            parameters,
            prior,
            prior_parameters,
            x,
            n_train,
            functions,
            values,
            sample_context,
            streams["divergence"],
            streams["prior"],
            buffers,
            marginals,
        )
        divergence = self.divergence(step)
        _check_replicas(f"divergence {self.divergence.name!r}", divergence, len(x))
        if log_likelihood.requires_grad and not divergence.requires_grad:
            raise NotSupported(
                f"divergence {self.divergence.name!r}: expected a value with a gradient in the trained parameters, "
                "found none, so that training would not notice it: leave out detach(), no_grad() and the like"
            )
        if not context_size:
            self._refuse_context(f"divergence {self.divergence.name!r} compares no functions")
        return self.weight(n_train, x.shape[1], context_size or 1, progress) * divergence - log_likelihood


def _check_replicas(part: str, value: Tensor, replicas: int) -> None:
    """Raise ValueError for a term of another shape than ``[R]``, which would be broadcast or fail elsewhere."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{part}: expected a tensor, the term of the objective [R], found {type(value).__name__}")
    if value.shape != (replicas,):
        raise ValueError(
            f"{part}: expected a term of the objective [R], one number for each of {replicas} replicas, found shape "
            f"{list(value.shape)}: sum or average over the other axes"
        )


def _check_context(name: str, value: Tensor, x: Tensor) -> None:
    """Raise TypeError or ValueError for context points that are no inputs ``[R, K, ...]`` like those of the batch."""
    if not isinstance(value, Tensor):
        raise TypeError(f"context {name!r}: expected a tensor of inputs, found {type(value).__name__}")
    if value.dim() != x.dim() or not value.shape[1] or (value.shape[0], *value.shape[2:]) != (len(x), *x.shape[2:]):
        expected = ", ".join([str(len(x)), "K", *map(str, x.shape[2:])])
        raise ValueError(f"context {name!r}: expected K >= 1 inputs [{expected}], found shape {list(value.shape)}")
