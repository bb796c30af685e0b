"""Small networks with weights in closed form, and what a Laplace approximation about them is by brute force."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.func import jacrev

from fvi_core.data import TrainingData
from fvi_core.families.base import FitData
from fvi_core.fits.posterior import Around
from fvi_core.held import Held
from fvi_core.networks import Network, Parameters
from fvi_core.objective import Model
from tests.fvi_core import small

N, STD, DELTA = 12, 0.3, 0.7
PRIOR = {"divergence": {"name": "weight_penalty"}, "prior": {"name": "gaussian_weights", "variance": 1 / DELTA}}
OUTPUTS = {"mlp": 2, "cnn": 3}
KINDS = tuple(OUTPUTS)


def wave(count: int, amplitude: float, frequency: float) -> Tensor:
    """``amplitude sin(frequency i)`` for i = 1, 2, ..."""
    return amplitude * torch.sin(frequency * torch.arange(1, count + 1, dtype=torch.float64))


def inputs(kind: str) -> Tensor:
    shape = small.SHAPES[kind]
    return wave(N * math.prod(shape), 1.0, 2.3).view(N, *shape)


def training_data(kind: str, validation: bool = False) -> TrainingData:
    """Vectors of two targets for the perceptron, three classes for the convolutional network."""
    x = inputs(kind)
    sums = x.flatten(1).sum(1)
    y = torch.stack([sums.sin(), sums.cos()], -1) if kind == "mlp" else (torch.arange(N) * 2) % 3
    held = [(x[:5] * 0.9, y[:5])] if validation else None
    return TrainingData(x[None], y[None], x[None].amin(1), x[None].amax(1), held)


def model(kind: str, fit: dict[str, Any] | None, **parts: Any) -> Model:
    likelihood = {"name": "gaussian", "init_std": STD} if kind == "mlp" else {"name": "categorical"}
    network = small.TANH if kind == "mlp" else small.CNN
    spec = {"family": {"name": "point"}, "network": network, "likelihood": likelihood, "fit": fit, **PRIOR}
    return small.model(spec | parts, OUTPUTS[kind])


def parameters(of: Model, replicas: int = 1) -> Parameters:
    """Return weights in closed form in place of trained ones; those of further replicas are smaller."""
    own = of.network.unflatten(wave(of.network.n_parameters, 0.8, 1.7))
    scale = 1 - 0.1 * torch.arange(replicas, dtype=torch.float64)
    found = {k: v[None] * scale.view(-1, *[1] * v.dim()) for k, v in own.items()}
    return Held(found, of.likelihood.init(replicas, torch.float64)).flat()


def fitted(kind: str, fit: dict[str, Any]) -> tuple[Model, Parameters, Parameters]:
    """A model, its family's parameters, and those of its fit part, after it was fitted."""
    made = model(kind, fit)
    after = made.after_training(parameters(made), training_data(kind, validation=True), small.streams(1))
    return made, Held.of(after).family, Held.of(after).fit


def curvature_of(kind: str, fit: dict[str, Any]) -> tuple[Model, Parameters]:
    """Return a model, and the curvature that its fit part sums over the training data."""
    made = model(kind, fit)
    family, likelihood, _ = Held.of(parameters(made))
    fitting = FitData.of(made.network, made.family, made.likelihood, training_data(kind), small.streams(1))
    around = Around({k: v[0] for k, v in family.items()}, likelihood, fitting)
    return made, made.fit.posterior.curvature(around)


def jacobian(network: Network, at: Parameters, x: Tensor) -> Tensor:
    """[N, Q, P] by automatic differentiation of the whole network; ``at [1, *shape]``."""

    def f(flat: Tensor) -> Tensor:
        return network({k: v[None, None] for k, v in network.unflatten(flat).items()}, x[None])[0, 0]

    return jacrev(f)(network.flatten(at)[0])


def second(kind: str, f: Tensor) -> Tensor:
    """The second derivative of ``-log p(y | f)``, [N, Q, Q]."""
    if kind == "mlp":
        return torch.eye(2, dtype=torch.float64).expand(len(f), 2, 2) / STD**2
    p = f.softmax(-1)
    return torch.diag_embed(p) - p[:, :, None] * p[:, None, :]


def ggn(kind: str, of: Model) -> tuple[Tensor, Tensor]:
    """The whole generalised Gauss-Newton matrix [P, P], and the flat weights [P]."""
    at = {k: v for k, v in parameters(of).items() if k in of.network.shapes}
    x = inputs(kind)
    j, f = jacobian(of.network, at, x), of.network({k: v[:, None] for k, v in at.items()}, x[None])[0, 0]
    return torch.einsum("nap,nab,nbq->pq", j, second(kind, f), j), of.network.flatten(at)[0]


def covariance(of: Model, own: Parameters, samples: int = 40000) -> Tensor:
    """Return the covariance [P, P] of drawn steps away from the trained weights; zero where nothing is drawn."""
    drawn = of.fit.posterior.draw(of.network, {k: v[0] for k, v in own.items()}, samples, small.streams(1))
    steps = {k: drawn.get(k, torch.zeros(samples, *shape).double()) for k, shape in of.network.shapes.items()}
    return torch.cov(of.network.flatten(steps).T)
