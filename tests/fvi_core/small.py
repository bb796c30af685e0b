"""Small models and problems that the tests of the core share."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import fvi_core.divergences
import fvi_core.fits
import fvi_core.priors  # noqa: F401
from fvi_core.contexts import ContextSource
from fvi_core.data import TrainingData, TrainingSet
from fvi_core.divergences.base import Step
from fvi_core.likelihoods import LIKELIHOODS
from fvi_core.networks import Network, Parameters
from fvi_core.objective import Model, Weight
from fvi_core.random import Streams, seed_from
from fvi_core.registry import CONTEXTS, DIVERGENCES, FAMILIES, FITS, NETWORKS, PRIORS
from fvi_core.training import ReplicaResult

TANH = {"name": "mlp", "hidden": [4, 3], "activation": "tanh"}
RELU = {"name": "mlp", "hidden": [5], "activation": "relu"}
CNN = {"name": "cnn", "channels": [2, 3], "dense": [4], "pool": [1, 0]}
SHAPES = {"mlp": (2,), "cnn": (2, 4, 4), "vector_field": (2,)}


def streams(replicas: int = 3, dtype: torch.dtype = torch.float64, name: str = "test") -> Streams:
    """Streams of replicas 0, 1, ..."""
    return Streams([seed_from(name, r) for r in range(replicas)], dtype=dtype)


def moved(parameters: Parameters, size: float = 0.3) -> Parameters:
    """Return parameters moved at random from their start, constants too, in double precision."""
    noise = streams(len(next(iter(parameters.values()))), name="moved")
    return {k: v.double() + size * noise.normal(*v.shape[1:]) for k, v in parameters.items()}


def network(spec: dict[str, Any] = TANH, outputs: int = 2, shape: tuple[int, ...] | None = None) -> Network:
    """A network for inputs of two features, or for 4x4 images of two channels, unless the shape is given."""
    return NETWORKS.build(spec).build(shape or SHAPES[spec["name"]], outputs)


def draws(network: Network, replicas: int, samples: int, dtype: torch.dtype = torch.float64) -> Parameters:
    """Random parameters [R, S, *shape] that track gradients."""
    values = streams(replicas, dtype).normal(samples, network.n_parameters) * 0.7
    return network.unflatten(values.requires_grad_())


def inputs(replicas: int, points: int, shape: tuple[int, ...] = (2,), dtype: torch.dtype = torch.float64) -> Tensor:
    """Inputs [R, N, *shape] between -1 and 1."""
    return streams(replicas, dtype, "inputs").uniform(points, *shape) * 2 - 1


def model(parts: dict[str, Any], outputs: int = 1, shape: tuple[int, ...] | None = None) -> Model:
    """Return a model of described parts; without a description a part is absent, the network has tanh, and the
    likelihood depends on ``outputs``."""
    spec = {"network": TANH, "divergence": None, "prior": None, "context": None, "weight": {}, "fit": None} | parts
    spec.setdefault("likelihood", {"name": "gaussian" if outputs == 1 else "categorical"})
    registries = (("divergence", DIVERGENCES), ("prior", PRIORS), ("context", CONTEXTS), ("fit", FITS))
    *optional, fit = (None if spec[kind] is None else registry.build(spec[kind]) for kind, registry in registries)
    likelihood = LIKELIHOODS.build(spec["likelihood"])
    made = network(spec["network"], likelihood.outputs(outputs), shape)
    return Model(made, FAMILIES.build(spec["family"]), *optional, likelihood, Weight(**spec["weight"]), fit)


def training_data(
    replicas: int = 3,
    points: int = 10,
    outputs: int = 1,
    shape: tuple[int, ...] = (2,),
    dtype: torch.dtype = torch.float64,
    validation: int = 0,
) -> TrainingData:
    """A training set for each replica: a smooth target with noise, or labels."""
    x = inputs(replicas, points + validation, shape, dtype)
    z = x.flatten(2).sum(-1) + 0.3 * streams(replicas, dtype, "targets").normal(points + validation)
    y = z.sin() if outputs == 1 else (z > 0).long() + (z > 0.8).long() * (outputs > 2)
    ends = torch.ones(replicas, *shape, dtype=dtype)
    held = list(zip(x[:, points:], y[:, points:], strict=True)) if validation else None
    return TrainingData(x[:, :points], y[:, :points], -ends, ends, held, pools={"other": x[0] * 10})


def step(
    model: Model,
    parameters: Parameters,
    data: TrainingData,
    streams: Streams,
    samples: int = 4,
    start: Parameters | None = None,
) -> Step:
    """Return one training step on all points; the prior sees ``start``, or the parameters."""
    start = start or parameters
    initial = model.family.initial_network(model.network, {name: value.detach() for name, value in start.items()})
    train = TrainingSet(data.x, data.y, model.network.n_outputs, not data.y.is_floating_point())
    state = {} if model.prior is None else model.prior.init(model.network, initial, train, streams.child("fit"))
    source = ContextSource(data.x, data.low, data.high, data.pools)
    functions = model.family.functions(model.network, parameters, samples, streams.child("noise"))
    context = streams.child("context")
    return Step(
        model.network,
        model.family,
        parameters,
        model.prior,
        state,
        data.x,
        data.x.shape[1],
        functions,
        functions(data.x),
        lambda: model.context(source, context),
        streams.child("divergence"),
        streams.child("prior"),
    )


def assert_same(one: ReplicaResult, other: ReplicaResult) -> None:
    """Check that two trainings of a replica have the same parameters, bit for bit, and the same reports."""
    assert (one.epochs, one.reason, one.loss) == (other.epochs, other.reason, other.loss)
    assert (one.diagnostics, one.warnings) == (other.diagnostics, other.warnings)
    assert (one.parameters is None) == (other.parameters is None)
    parameters, others = one.parameters or {}, other.parameters or {}
    assert parameters.keys() == others.keys()
    for name, value in others.items():
        assert torch.equal(parameters[name], value), name


def one(values: Any, r: int) -> Any:
    """Return replica r of a tensor, a dict of tensors or training data."""
    if isinstance(values, TrainingData):
        tensors = (values.x, values.y, values.low, values.high, values.validation)
        return TrainingData(*(None if t is None else t[r : r + 1] for t in tensors), pools=values.pools)
    if isinstance(values, dict):
        return {name: value[r : r + 1] for name, value in values.items()}
    return values[r : r + 1]
