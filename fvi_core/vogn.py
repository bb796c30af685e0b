"""Variational online Gauss-Newton: natural gradients of a mean-field Gaussian from gradients of single examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor

from fvi_core.curvature import BLOCK, Gradient, from_matrix, record, weights
from fvi_core.data import Augmentation, Batch, TrainingData
from fvi_core.divergences.base import Divergence, Step
from fvi_core.families.base import NotSupported
from fvi_core.families.mean_field import LOG_VAR, MEAN, MeanField
from fvi_core.held import Held
from fvi_core.networks import BatchNorm, Conv2d, Linear, Network, Parameters
from fvi_core.objective import Model
from fvi_core.priors.base import Prior
from fvi_core.random import Streams
from fvi_core.registry import SCHEDULES, TRAININGS, PartSpec, checked, nested
from fvi_core.stack import DTYPES, Procedure, SavedState, State
from fvi_core.training import Trainer, Training, TrainingState


@TRAININGS.register("vogn")
@dataclass(frozen=True)
class VOGN(Procedure):
    """Variational online Gauss-Newton (Khan et al. 2018; Osawa et al. 2019, alg. 1) of family "mean_field".

    With N = ``data_factor`` times the training points, tau the factor of the divergence's weight, and the prior
    ``N(0, s^2)``, each step draws ``samples`` networks from ``q(w) = prod_i N(m_i, tau / (N p_i))`` and sets

        h <- (1 - newest) h + newest mean_n g_n^2,   v <- momentum v + mean_n g_n + tau m / (N s^2),
        p = h + damping + tau / (N s^2),   m <- m - lr v / p

    where g_n is the gradient of ``-log p(y_n | f(x_n))`` and means are over the batch's examples and the networks. h
    starts at 0. Batch normalisation has no prior, and takes the statistics of the batch, through which its examples
    depend on each other: g_n is then the gradient through a layer's n-th output.
    """

    epochs: int = checked(least=0)
    batch_size: int = checked(least=1)
    lr: float = checked(1e-3, above=0)
    momentum: float = checked(0.9, least=0, below=1)
    damping: float = checked(1e-3, least=0)
    newest: float = checked(0.999, above=0, most=1)
    data_factor: float = checked(1.0, above=0)
    samples: int = checked(5, least=1)
    schedule: PartSpec = nested(SCHEDULES, {"name": "constant"})
    augment: PartSpec | None = nested(Augmentation, None)
    dtype: str = checked("float32", among=DTYPES)

    def start(
        self, model: Model, training_data: TrainingData, streams: Streams, state: SavedState | None = None
    ) -> NaturalGradient:
        return NaturalGradient(model, self, training_data, streams, state)


@dataclass
class NaturalState(TrainingState):
    """``h`` and ``v`` of every weight, ``[R, *shape]``."""

    curvature: Parameters = field(default_factory=dict)
    velocity: Parameters = field(default_factory=dict)


class NaturalGradient(Trainer):
    """Replicas trained by :class:`VOGN`, with batches, schedules and all else as in the gradient loop.

    Raises ValueError, NotSupported for parts that do not fit.
    """

    now: NaturalState

    def __init__(
        self,
        model: Model,
        options: VOGN,
        training_data: TrainingData,
        streams: Streams,
        state: SavedState | None = None,
    ):
        _check(model)
        self.options = options
        self.size = options.data_factor * training_data.x.shape[1]
        training = Training(
            epochs=options.epochs,
            batch_size=options.batch_size,
            optimiser={"name": "sgd", "lr": options.lr},
            schedule=options.schedule,
            samples=options.samples,
            augment=options.augment,
            dtype=options.dtype,
        )
        super().__init__(model, training, training_data, streams, state)

    def begin(self, state: State) -> NaturalState:
        begun = super().begin(state)
        zeros = {name: torch.zeros_like(begun.parameters[MEAN + name]) for name in self.model.network.shapes}
        still = {name: value.clone() for name, value in zeros.items()}
        natural = NaturalState(**vars(begun), curvature=zeros, velocity=still)
        natural.parameters.update({LOG_VAR + name: self._log_variance(name, value) for name, value in zeros.items()})
        return natural

    def _stepper(self) -> Callable[[Batch], Tensor]:
        now, data, network = self.now, self.training_data, self.model.network

        @torch.no_grad()
        def step(batch: Batch) -> Tensor:
            x, y = data.at(now.owner, batch)
            x = data.scale(x if self.augment is None else self.augment(x, now.streams["augment"]))
            family, likelihood, _ = Held.of(now.parameters)
            drawn = self.model.family.weights(network, family, self.options.samples, now.streams["functions"])
            divergence = self._divergence(family, x)
            recorded: list[Parameters] = []
            results = [
                self._replica(
                    {name: drawn[name][r] for name in network.shapes},
                    {name: value[r : r + 1] for name, value in likelihood.items()},
                    x[r],
                    y[r],
                    recorded,
                )
                for r in range(len(x))
            ]
            losses, gradients, squares = zip(*results, strict=True)
            for name in network.shapes:
                self._move(name, *(torch.stack([each[name] for each in some]) for some in (gradients, squares)))
            statistics = {k: torch.cat([each[k] for each in recorded]) for k in recorded[0]}
            samples = self.options.samples
            statistics = {k: v.unflatten(0, (-1, samples)).flatten(1, 2) for k, v in statistics.items()}
            self._hold(network.track(now.parameters, statistics))
            return torch.stack(losses) + divergence

        return step

    def _replica(
        self, drawn: Parameters, likelihood: Parameters, x: Tensor, y: Tensor, recorded: list[Parameters]
    ) -> tuple[Tensor, Parameters, Parameters]:
        """Return one replica's negative mean log-likelihood, its gradient and the examples' mean squared gradients,
        each averaged over the networks ``drawn [S, *shape]``; ``recorded`` gains each network's batch statistics.
        """
        count, totals = self.options.samples, (dict[str, Tensor](), dict[str, Tensor]())
        loss = x.new_zeros(())
        for s in range(count):
            statistics: Parameters = {}
            network = self.model.network.recording(statistics)
            value, gradients = example_gradients(
                self.model, network, {k: v[s] for k, v in drawn.items()}, likelihood, x, y
            )
            loss = loss + value / count
            for name, gradient in gradients.items():
                for total, piece in zip(totals, means(network, name, gradient), strict=True):
                    total[name] = total.get(name, 0) + piece.to(x.dtype) / count
            recorded.append(statistics)
        return loss, *totals

    def _move(self, name: str, gradient: Tensor, squares: Tensor) -> None:
        now, options = self.now, self.options
        now.curvature[name] = torch.lerp(now.curvature[name], squares, options.newest)
        mean, rate = now.parameters[MEAN + name], now.schedule.lr.to(gradient.dtype)
        gradient = gradient + self._prior_precision(name) * mean
        now.velocity[name] = options.momentum * now.velocity[name] + gradient
        precision = self._precision(name, now.curvature[name])
        moved = mean - rate.view(-1, *[1] * (mean.dim() - 1)) * now.velocity[name] / precision
        self._hold({MEAN + name: moved, LOG_VAR + name: self._log_variance(name, now.curvature[name])})

    def _divergence(self, family: Parameters, x: Tensor) -> Tensor:
        """Divergence term of the loss, ``[R]``."""
        now, model = self.now, self.model
        weight_kl, prior = cast(Divergence, model.divergence), cast(Prior, model.prior)
        streams, prior_streams = now.streams["divergence"], now.streams["prior"]
        step = Step(
            model.network,
            model.family,
            family,
            prior,
            now.prior,
            x,
            round(self.size),
            None,
            None,
            lambda: x,
            streams,
            prior_streams,
        )
        return model.weight(round(self.size), 1, 1) * weight_kl(step)

    def _prior_precision(self, name: str) -> float:
        """``tau / (N s^2)``; 0 where there is no prior."""
        if any(name in layer.shapes for layer in self.model.network.parametrised if isinstance(layer, BatchNorm)):
            return 0.0
        variance = cast(Prior, self.model.prior).gaussian_weights()[1]
        return self.model.weight.factor / (self.size * variance)

    def _precision(self, name: str, curvature: Tensor) -> Tensor:
        return curvature + self.options.damping + self._prior_precision(name)

    def _log_variance(self, name: str, curvature: Tensor) -> Tensor:
        return (self.model.weight.factor / (self.size * self._precision(name, curvature))).log()


def example_gradients(
    model: Model, network: Network, parameters: Parameters, likelihood: Parameters, x: Tensor, y: Tensor
) -> tuple[Tensor, dict[str, Gradient]]:
    """Minus the mean log-likelihood at x ``[N, ...]``, y ``[N]`` of one network ``[*shape]``, and the gradients of each
    example's own.
    """
    recorded = record(network, parameters, x)
    f = recorded.outputs.detach().requires_grad_()
    with torch.enable_grad():
        log_likelihood = model.likelihood.log_prob(likelihood, f[None, None], y[None]).sum()
        (direction,) = torch.autograd.grad(-log_likelihood, f)
    return -log_likelihood.detach() / len(x), recorded.gradients(direction)


def means(network: Network, name: str, gradient: Gradient) -> tuple[Tensor, Tensor]:
    """The mean over examples of a parameter's gradients and of their squares, ``[*shape]`` each."""
    n = len(gradient.right)
    if gradient.left is None:
        return gradient.right.sum((0, 2)) / n, gradient.squares() / n
    left, right = gradient.left, gradient.right
    total = torch.matmul(left.transpose(0, 1).flatten(1), right.transpose(0, 1).flatten(1).mT)
    size = max(1, BLOCK // (left.shape[1] * right.shape[1]))
    pieces = zip(left.split(size), right.split(size), strict=True)
    squares = torch.stack([Gradient(a, d).squares() for a, d in pieces]).sum(0)
    layer = weights(network)[name]
    return from_matrix(layer, total / n), from_matrix(layer, squares / n)


def _check(model: Model) -> None:
    if not isinstance(model.family, MeanField):
        raise NotSupported(f"training 'vogn' moves family 'mean_field', found {model.family.name!r}")
    if model.divergence is None or model.divergence.name != "weight_kl" or model.weight.scaling != "elbo":
        raise NotSupported("training 'vogn' is for divergence 'weight_kl' and weight scaling 'elbo'")
    if model.weight.alpha or not model.likelihood.is_pointwise:
        raise NotSupported(
            "training 'vogn' moves by the mean log-likelihood of single points: use weight.alpha 0 and a likelihood "
            f"without class_weights or an error of its own, found {model.likelihood.name!r}"
        )
    if model.family.layers != "all" or model.weight.rise:
        raise NotSupported("training 'vogn' moves all layers by one weight; use family.layers 'all' and weight.rise 0")
    if not model.weight.factor:
        raise NotSupported("training 'vogn' draws weights of variance 0 at weight.factor 0; use a factor above 0")
    mean = cast(Prior, model.prior).gaussian_weights()[0]
    if mean:
        raise NotSupported(f"training 'vogn' is for priors of mean 0, found {mean}")
    if model.likelihood.learned:
        raise NotSupported(
            f"training 'vogn' moves weights alone; give likelihood {model.likelihood.name!r} learned False"
        )
    other = [layer for layer in model.network.parametrised if not isinstance(layer, Linear | Conv2d | BatchNorm)]
    if other:
        raise NotSupported(f"training 'vogn' needs linear and convolutional layers, and {other[0].described} is none")
