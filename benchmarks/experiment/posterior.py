"""Entropy of a posterior, and its divergence from others, estimated from draws of parameters and of functions.

pequignot2020 sec. 4.1 and App. C: nearest neighbours (k = 1) among parameters, and among function values at sets of
uniform inputs in the box of the training inputs, averaged over the sets. Every run of a split uses the same sets.
"""

from __future__ import annotations

from statistics import fmean

import torch
from torch import Tensor

from benchmarks.experiment.assembly import FittedRun, Other
from benchmarks.experiment.prediction import Predicted, predict
from benchmarks.shapes import MetricRow, PosteriorConfig
from fvi_core.data import TrainingData
from fvi_core.divergences.nearest_neighbour import nearest_neighbour_entropy, nearest_neighbour_kl, predictor_entropy
from fvi_core.families.base import NotSupported
from fvi_core.held import Held
from fvi_core.random import Streams, seed_from

FEWEST = 3
"""Smallest number of different draws for an estimate."""
PARAMETER, PREDICTOR = "parameter", "predictor"
Draws = dict[str, Tensor]
"""Draws by space: parameters ``[1, S, P]``, values ``[sets, S, T Q]`` of functions with Q outputs, without repeats."""


def posterior_rows(fitted: FittedRun, predicted: Predicted, other: Other) -> list[MetricRow]:
    """Return metric rows of ``evaluation["posterior"]``: entropies, and divergences from and to the trainings in
    ``against``, averaged over the trainings of a label. ``q``: the run itself; ``other`` returns another training's
    result.

    A space in which fewer than FEWEST draws differ has no rows.
    """
    settings, data = fitted.config["evaluation"]["posterior"], fitted.config["dataset"]
    seed = seed_from("posterior inputs", data["name"], data["scheme"], data["split"])
    x = uniform_inputs(settings, fitted.data, seed)
    q = draws_of(settings, fitted, x)

    def row(metric: str, condition: str, value: float, space: str) -> MetricRow:
        where, n = f"space={condition}", q[space].shape[1]
        return {"dataset": data["name"], "condition": where, "metric": metric, "value": value, "n": n}

    rows = [row("entropy", space, entropy(space, values, settings["points"]), space) for space, values in q.items()]
    for label, trainings in sorted(settings["against"].items()):
        others = [draws_of(settings, other(training), x) for training in trainings]
        for space, values in q.items():
            if not others or any(space not in each for each in others):
                continue
            to = fmean(divergence(values, each[space]) for each in others)
            rows.append(row("knn_kl", f"{space};pair=q->{label}", to, space))
            if label != "q":
                back = fmean(divergence(each[space], values) for each in others)
                rows.append(row("knn_kl", f"{space};pair={label}->q", back, space))
    return rows


def uniform_inputs(settings: PosteriorConfig, training_data: TrainingData, seed: int) -> Tensor:
    """Return inputs ``[sets * T, ...]``, uniform in the box of the training inputs."""
    streams = Streams([seed], training_data.low.device, training_data.low.dtype)
    unit = streams.uniform(settings["sets"] * settings["points"], *training_data.low.shape[1:])
    return (training_data.low.unsqueeze(1) + (training_data.high - training_data.low).unsqueeze(1) * unit)[0]


@torch.no_grad()
def draws_of(settings: PosteriorConfig, fitted: FittedRun, x: Tensor) -> Draws:
    """Return draws of one posterior; no parameters where the family draws none or a fit part changes the functions."""
    model, parameters, streams = fitted.model, fitted.parameters, fitted.streams
    draws: Draws = {}
    if model.fit is None:
        family = Held.of(parameters).family
        drawing = streams.child("posterior parameters")
        try:
            weights = model.family.weights(model.network, family, settings["draws"], drawing)
            draws[PARAMETER] = _different(model.network.flatten(weights).double())
        except NotSupported:
            pass
    f, _ = predict(model, parameters, x.to(streams.dtype), settings["draws"], streams.child("posterior functions"))
    draws[PREDICTOR] = _different(f.unflatten(1, (settings["sets"], -1)).flatten(2).movedim(0, 1))
    return {space: values for space, values in draws.items() if values.shape[1] >= FEWEST}


def entropy(space: str, values: Tensor, points: int) -> float:
    """Return the entropy in nats, the mean over sets of ``points`` inputs each."""
    if space == PARAMETER:
        return fmean(nearest_neighbour_entropy(each.double()).item() for each in values)
    return fmean(predictor_entropy(each.double(), inputs=points).item() for each in values)


def divergence(q: Tensor, p: Tensor) -> float:
    """Return KL(q || p) in nats, the mean over sets of inputs."""
    return fmean(nearest_neighbour_kl(a.double(), b.double()).item() for a, b in zip(q, p, strict=True))


def _different(values: Tensor) -> Tensor:
    """Return draws ``[sets, S, d]`` without those that repeat another in the first set: a chain may stand still."""
    _, place = torch.unique(values[0], dim=0, return_inverse=True)
    first = place.new_full((int(place.max()) + 1,), len(place)).scatter_reduce(
        0, place, torch.arange(len(place), device=place.device), "amin"
    )
    return values[:, first.sort().values]
