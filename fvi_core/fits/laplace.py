"""Laplace approximations: a Gaussian about the trained weights of one network."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fvi_core.blocks import rows_at_once
from fvi_core.curvature import inputs_at_once, record
from fvi_core.families.base import DrawnNetworks, Family, FitData, Functions, NotSupported
from fvi_core.fits.dense import Dense, LastLayer, Subnetwork
from fvi_core.fits.factored import Factored
from fvi_core.fits.posterior import Around, Posterior, Tensors
from fvi_core.fitting import PREFIX, Fit, FitFailed
from fvi_core.held import Held
from fvi_core.likelihoods import Likelihood, Params
from fvi_core.linearisation import linearised
from fvi_core.networks import Network, Parameters
from fvi_core.random import Streams
from fvi_core.registry import FITS, checked, later
from fvi_core.spelling import check_known
from fvi_core.telling import counted

STRUCTURES: dict[str, Posterior] = {
    "full": Dense(),
    "diagonal": Factored(),
    "kronecker": Factored(kronecker=True),
    "last_layer": LastLayer(),
}
CHOSEN = "prior_precision"
LOW, HIGH = 1e-10, 1e10  # bounds of a precision of largest evidence
STEPS = 70  # halvings: after 62 the bounds are neighbouring floating-point numbers


@dataclass(frozen=True)
class GaussianFit(Fit):
    """Laplace approximation ``w ~ N(w*, (H + delta I)^-1)`` at the trained weights w*; the posterior defines H.

    ``precision`` delta: "prior", the precision of the Gaussian prior used in training; "evidence", which maximises the
    Laplace evidence (:func:`evidence`); "validation", which maximises the log-likelihood of the validation subset among
    ``steps`` numbers from ``low`` to ``high``, equally spaced in their logarithms; or a number. It never changes the
    trained weights. Weight decay of an optimiser is no prior: give its number.

    ``criterion`` of "validation": "predictive", ``log E_f p(y | f(x))``; "expected", ``E_f log p(y | f(x))``, which
    charges the variance of f to the noise (cinquin2024, App. C.3).

    ``predictive`` "glm": the network linearised about w*, ``f(x; w*) + J(x) (w - w*)`` (Immer et al. 2021, eq. 8), for
    regression with moments in closed form; "probit": for classes, one function, the mean logits divided by
    ``sqrt(1 + pi/8 v)`` with their variances v; "weights": the network itself at draws of w. ``samples``: draws that
    evaluate a validation subset.
    """

    precision: str | float = "prior"
    predictive: str = checked("glm", among=("glm", "probit", "weights"))
    low: float = checked(1e-4, above=0)
    high: float = checked(1e4, above=0)
    steps: int = checked(21, least=2)
    samples: int = checked(30, least=1)
    criterion: str = later("predictive", among=("predictive", "expected"))

    def __post_init__(self) -> None:
        if isinstance(self.precision, str):
            check_known(f"fit {self.name!r}: precision", self.precision, ("prior", "evidence", "validation"))
        elif not 0 < self.precision < math.inf:
            raise ValueError(f"fit {self.name!r}: expected a precision above 0, found {self.precision}")
        if self.low >= self.high:
            raise ValueError(f"fit {self.name!r}: expected low < high, found {self.low} and {self.high}")

    @property
    def needs_validation(self) -> bool:
        return self.precision == "validation"

    @property
    def families(self) -> tuple[str, ...]:
        """Families whose trained network may be approximated."""
        return ("point",)

    @property
    def posterior(self) -> Posterior:
        """Return the posterior's structure."""
        raise NotImplementedError

    def check(self, network: Network, family: Family) -> None:
        if family.name not in self.families:
            expected = " or ".join(map(repr, self.families))
            raise NotSupported(
                f"fit {self.name!r} is about one network: expected family {expected}, found {family.name!r}"
            )
        try:
            self.posterior.check(network)
        except ValueError as error:
            raise ValueError(f"fit {self.name!r}: {error}") from None

    @torch.no_grad()
    def __call__(self, parameters: Parameters, fitting: FitData) -> Parameters:
        if self.predictive == "probit" and not fitting.classification:
            raise ValueError(f"fit {self.name!r}: predictive 'probit' is for classes, found a regression; choose 'glm'")
        own = []
        for r in range(len(fitting.streams)):
            alone = {name: value[r : r + 1] for name, value in parameters.items()}
            own.append(self._of_replica(alone, fitting.of_replica(r)))
        return parameters | {PREFIX + name: torch.stack([each[name] for each in own]) for name in own[0]}

    def numbers(self, own: Parameters) -> dict[str, float]:
        return {CHOSEN: float(own[CHOSEN][0])}

    def _of_replica(self, parameters: Parameters, fitting: FitData) -> Tensors:
        family, likelihood, _ = Held.of(parameters)
        try:
            curvature = self.posterior.curvature(Around(_of(family, 0), likelihood, fitting))
            precision = self._precision(curvature, family, likelihood, fitting)
            fitted = self.posterior.fitted(curvature, precision)
        except FitFailed as error:
            raise FitFailed(f"fit {self.name!r}: {error}") from None
        return fitted | {CHOSEN: torch.tensor(precision, dtype=torch.float64, device=fitting.held.device)}

    def _precision(self, curvature: Tensors, family: Parameters, likelihood: Params, fitting: FitData) -> float:
        if not isinstance(self.precision, str):
            return float(self.precision)
        if self.precision == "validation":
            return self._validated(curvature, family, likelihood, fitting)
        mean, precision = fitting.weight_prior or (0.0, math.nan)
        if self.precision == "prior":
            if math.isnan(precision):
                raise NotSupported(
                    f"fit {self.name!r}: precision 'prior' needs an objective with a Gaussian prior on the weights "
                    "(divergence 'weight_penalty', scaling 'elbo'); choose 'evidence', 'validation' or a number"
                )
            return precision
        flat = self.posterior.chosen(fitting.network.flatten(_of(family, 0)).double(), curvature)
        return best(self.posterior.eigenvalues(curvature), float((flat - mean).square().sum()))

    def _validated(self, curvature: Tensors, family: Parameters, likelihood: Params, fitting: FitData) -> float:
        """Return the first precision of the grid with the lowest loss. Raises FitFailed if no loss is a number."""
        if self.posterior.head:
            curvature, family, fitting = _of_last_layer(curvature, family, fitting)
        ends, losses = (math.log(self.low), math.log(self.high)), {}
        for step in counted("validation of precision", range(self.steps), [1.0] * self.steps):
            precision = math.exp(ends[0] + (ends[1] - ends[0]) * step / (self.steps - 1))
            with contextlib.suppress(FitFailed):  # too small a precision; a larger one may do
                fitted = self.posterior.fitted(curvature, precision)
                own = {name: value.unsqueeze(0) for name, value in fitted.items()}
                loss = self._validation_loss(own, family, likelihood, fitting)
                if not math.isnan(loss):
                    losses[precision] = loss
        if not losses:
            raise FitFailed(
                f"no prior precision from {self.low:g} to {self.high:g} has a validation loss that is a number; choose "
                "larger ones"
            )
        return min(losses, key=lambda precision: losses[precision])

    def _validation_loss(self, own: Parameters, family: Parameters, likelihood: Params, fitting: FitData) -> float:
        """Return the negative mean log-likelihood of the validation subset; every call draws the same numbers."""
        network, streams = fitting.network, fitting.streams.child("laplace")
        functions = self.functions(network, fitting.family, family, own, self.samples, streams)
        total, count = 0.0, 0
        for x, y in fitting.batches(rows_at_once(network, self.samples, fitting.held.device), validation=True):
            closed = fitting.likelihood.has_closed_form
            moments = self.marginals(network, fitting.family, family, own, x) if closed else None
            if self.criterion == "predictive":
                log = _log_predictive(fitting.likelihood, likelihood, moments, functions, x, y)
            elif moments is None:
                log = fitting.likelihood.log_prob(likelihood, functions(x), y).mean(1)
            else:
                log = fitting.likelihood.expected_log_prob_gaussian(likelihood, *moments, y)
            total, count = total - float(log.double().sum()), count + y.shape[1]
        return total / count

    def functions(
        self, network: Network, family: Family, parameters: Parameters, own: Parameters, samples: int, streams: Streams
    ) -> Functions:
        if self.predictive == "probit":
            return lambda x: self._moderated(network, parameters, own, x)
        if self.predictive == "weights" or self.posterior.head:
            return DrawnNetworks(network, self.weights(network, parameters, own, samples, streams))
        buffers = {name: parameters[name].unsqueeze(1) for name in network.buffers}
        return linearised(network, parameters, self._steps(network, parameters, own, samples, streams), buffers)

    def weights(
        self, network: Network, parameters: Parameters, own: Parameters, samples: int, streams: Streams
    ) -> Parameters:
        steps = self._steps(network, parameters, own, samples, streams)
        at = {name: parameters[name].unsqueeze(1) for name in (*network.shapes, *network.buffers)}
        return at | {name: at[name] + step for name, step in steps.items()}

    def _steps(
        self, network: Network, parameters: Parameters, own: Parameters, samples: int, streams: Streams
    ) -> Parameters:
        """Draw steps ``[R, S, *shape]`` away from the trained weights."""
        drawn = [self.posterior.draw(network, _of(own, r), samples, streams.subset([r])) for r in range(len(streams))]
        return {name: torch.stack([each[name] for each in drawn]).to(parameters[name]) for name in drawn[0]}

    def marginals(
        self, network: Network, family: Family, parameters: Parameters, own: Parameters, x: Tensor
    ) -> tuple[Tensor, Tensor] | None:
        return self._moments(network, parameters, own, x) if self.predictive == "glm" else None

    def _moderated(self, network: Network, parameters: Parameters, own: Parameters, x: Tensor) -> Tensor:
        mean, variance = self._moments(network, parameters, own, x)
        return (mean * (1 + math.pi / 8 * variance).rsqrt()).to(x.dtype).unsqueeze(1)

    def _moments(self, network: Network, parameters: Parameters, own: Parameters, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance ``[R, N, Q]`` of the linearised network, in float64."""
        moments = [self._moments_of_one(network, _of(parameters, r), _of(own, r), x[r]) for r in range(len(x))]
        mean, variance = (torch.stack(each) for each in zip(*moments, strict=True))
        return mean, variance

    def _moments_of_one(
        self, network: Network, parameters: Parameters, own: Tensors, x: Tensor
    ) -> tuple[Tensor, Tensor]:
        means, variances = [], []
        for piece in x.split(inputs_at_once(network, self.posterior.numbers(network))):
            recorded = record(network, parameters, piece, self.posterior.head)
            directions = torch.eye(network.n_outputs, dtype=piece.dtype, device=piece.device)
            each = [self.posterior.variance(network, own, recorded, d.expand(len(piece), -1)) for d in directions]
            variances.append(torch.stack(each, dim=-1))
            means.append(recorded.outputs.double() if recorded.differentiable else recorded.outputs.detach().double())
        return torch.cat(means), torch.cat(variances)


@FITS.register("laplace")
@dataclass(frozen=True)
class Laplace(GaussianFit):
    """A Laplace approximation about one trained network: its precision is the generalised Gauss-Newton matrix and
    delta.

    ``structure`` "full": all of the matrix; "diagonal": its exact diagonal; "kronecker": a pair of factors for each
    layer (:class:`~fvi_core.fits.factored.Factored`); "last_layer": the full matrix over the last layer, the others
    fixed. Further options: :class:`GaussianFit`.
    """

    structure: str = checked("diagonal", among=STRUCTURES)

    @property
    def posterior(self) -> Posterior:
        return STRUCTURES[self.structure]


@FITS.register("subnetwork_laplace")
@dataclass(frozen=True)
class SubnetworkLaplace(GaussianFit):
    """A Laplace approximation over the ``size`` weights of largest marginal variance, the others fixed (Daxberger et
    al. 2021).

    ``variances`` "diagonal": from the diagonal Laplace approximation; "swag": from the iterates of family 'swag'
    (:class:`~fvi_core.fits.dense.Subnetwork`). Further options: :class:`GaussianFit`.
    """

    size: int = checked(1000, least=1)
    variances: str = checked("diagonal", among=("diagonal", "swag"))

    @property
    def families(self) -> tuple[str, ...]:
        return ("swag",) if self.variances == "swag" else ("point",)

    @property
    def posterior(self) -> Posterior:
        return Subnetwork(self.size, self.variances)


def _of(values: Parameters, r: int) -> Tensors:
    """Return the values of replica r, without the axis of replicas."""
    return {name: value[r] for name, value in values.items()}


def _of_last_layer(curvature: Tensors, family: Parameters, fitting: FitData) -> tuple[Tensors, Parameters, FitData]:
    """Return the last layer as a network of its own on the features of the validation subset, which no precision
    changes; its weights' curvature; and its trained weights."""
    network, device = fitting.network, fitting.held.device
    weights = {name: family[name].unsqueeze(1) for name in (*network.shapes, *network.buffers)}
    pairs = fitting.batches(rows_at_once(network, 1, device), validation=True)
    features, targets = zip(*((network.features(weights, x).squeeze(1), y) for x, y in pairs))
    head = Network([network.head], (network.head.inputs,)).in_precision("bfloat16" if network.reduced else "float32")
    validation = torch.cat(features, 1), torch.cat(targets, 1)
    own = {name: family[name] for name in head.shapes}
    index = torch.arange(head.n_parameters, device=device)
    return curvature | {"index": index}, own, replace(fitting, network=head, validation=validation, pixels=None)


def _log_predictive(
    likelihood: Likelihood,
    params: Params,
    moments: tuple[Tensor, Tensor] | None,
    functions: Functions,
    x: Tensor,
    y: Tensor,
) -> Tensor:
    """Return log p(y | x) ``[R, N]``: in closed form for Gaussian noise and moments of f, number by number of a vector
    target; else from drawn functions."""
    std = likelihood.noise_std(params)
    if moments is None or std is None:
        log = likelihood.log_prob(params, functions(x), y)
        return log.logsumexp(1) - math.log(log.shape[1])
    mean, variance = moments
    predictive = torch.distributions.Normal(mean, (variance + std.square()[:, None, None]).sqrt(), validate_args=False)
    return predictive.log_prob(y if y.dim() == 3 else y.unsqueeze(-1)).sum(-1)


def evidence(eigenvalues: Tensor, distance: float, precision: float) -> float:
    """Return the terms of the Laplace log evidence that depend on the prior precision; ``distance``: |w - m|^2.

        log p(D) ~ log p(D | w) + 1/2 [ P log delta - sum_i log(l_i + delta) - delta |w - m|^2 ]

    at the trained weights w, with the curvature's eigenvalues l_i and the prior N(m, I / delta) of the P weights that
    have a posterior (MacKay 1992; Immer et al. 2021, sec. 2).
    """
    complexity = (eigenvalues + precision).log().sum()
    return 0.5 * (len(eigenvalues) * math.log(precision) - float(complexity) - precision * distance)


def slope(eigenvalues: Tensor, distance: float, precision: float) -> float:
    """Return the derivative of :func:`evidence` in the logarithm of the prior precision.

    It decreases monotonically: there is at most one maximum.
    """
    return 0.5 * (float((eigenvalues / (eigenvalues + precision)).sum()) - precision * distance)


def best(eigenvalues: Tensor, distance: float) -> float:
    """Return the prior precision of largest evidence. Raises :class:`FitFailed` if it is not between LOW and HIGH."""
    low, high = math.log(LOW), math.log(HIGH)
    if slope(eigenvalues, distance, LOW) <= 0 or slope(eigenvalues, distance, HIGH) >= 0:
        raise FitFailed(
            f"the marginal likelihood has no maximum at a prior precision between {LOW:g} and {HIGH:g} (the squared "
            f"norm of the weights is {distance:.3g}, the trace of the curvature {float(eigenvalues.sum()):.3g}); give "
            "the precision"
        )
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(eigenvalues, distance, math.exp(middle)) > 0 else (low, middle)
    return math.exp((low + high) / 2)
