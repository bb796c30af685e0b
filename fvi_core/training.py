"""Training: the one loop, over stacked replicas, that every method runs through."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from fvi_core.contexts import Scene
from fvi_core.images import Augmentation, Scale
from fvi_core.networks import STATE, Parameters
from fvi_core.objective import Model, noise_of, take
from fvi_core.optimisers import ScheduleState
from fvi_core.priors.base import TrainingSet
from fvi_core.random import Streams
from fvi_core.registry import OPTIMISERS, SCHEDULES, TRAININGS, nested

DTYPES = {"float32": torch.float32, "float64": torch.float64}
VALIDATION_IMAGES = 500
"""Validation images looked at together: a convolutional network's activations at all of them need not fit in memory."""


@dataclass(frozen=True)
class Problem:
    """Training data of D replicas' data sets: ``x [D, N, ...]``, ``y [D, N]``; D is R, or 1 when all replicas share one.

    ``low``, ``high`` ``[D, ...]`` bound the training inputs; ``pools`` are named inputs ``[P, ...]`` that contexts draw from.
    ``validation`` holds one pair (x ``[V, ...]``, y ``[V]``) for each data set; their sizes may differ.
    Inputs, validation and pools may be pixels 0 to 255, of any type: then ``pixels`` makes inputs of the network of them.
    """

    x: Tensor
    y: Tensor
    low: Tensor
    high: Tensor
    validation: Sequence[tuple[Tensor, Tensor]] | None = None
    pools: Mapping[str, Tensor] = field(default_factory=dict)
    pixels: Scale | None = None

    def scale(self, x: Tensor) -> Tensor:
        """Data as the network takes them."""
        return x if self.pixels is None else self.pixels(x)


@dataclass(frozen=True)
class EarlyStopping:
    """Training ends when the validation loss, looked at every so many epochs, has not fallen for ``patience`` epochs."""

    patience: int
    every: int = 1


@TRAININGS.register("gradient")
@dataclass(frozen=True)
class Training:
    """How the objective is optimised, by stochastic gradients. ``samples``: function draws of the likelihood term in each step.

    ``early_stopping`` {"patience": epochs, "every": epochs} keeps the parameters of the lowest validation loss.
    ``clip``: largest absolute value of a gradient's element. ``augment`` {"crop": pixels, "flip": bool} changes training images.
    ``precision`` "bfloat16": products and convolutions of the network in that type, for a GPU; parameters stay in ``dtype``.
    ``compile``: the network's passes by torch.compile, for large networks on a GPU.
    """

    epochs: int
    batch_size: int
    optimiser: dict[str, Any] = nested(OPTIMISERS)
    schedule: dict[str, Any] = nested(SCHEDULES, {"name": "constant"})
    samples: int = 1
    early_stopping: dict[str, int] | None = nested(EarlyStopping, None)
    clip: float | None = None
    dtype: str = "float32"
    augment: dict[str, Any] | None = nested(Augmentation, None)
    precision: str = "float32"
    compile: bool = False


@dataclass
class Trained:
    """What training leaves of one replica: parameters ``[1, ...]``, or the reason why there are none."""

    parameters: Parameters | None
    epochs: int
    loss: list[float]
    reason: str | None = None


class Trainer:
    """Trains all replicas together and independently: each has its own data, batches, noise, learning rate and end.

    A replica that finishes or fails leaves the stack; the others go on with the numbers that they would have had without it.
    With a ``state`` (see :meth:`restore`) training goes on from there, and the prior is not fitted again.
    """

    def __init__(self, model: Model, training: Training, problem: Problem, streams: Streams, state: dict[str, Any] | None = None):
        self.model, self.training, self.problem = model, training, problem
        self.whole = model.family
        member, self.members = model.family.apart()
        if member is not model.family:
            self.model = replace(model, family=member)
            streams = model.family.member_streams(streams)
        if training.precision != "float32":
            self.model = replace(self.model, network=self.model.network.in_precision(training.precision))
        if training.compile:
            self.model = replace(self.model, network=self.model.network.compiled())
        replicas = len(streams)
        device = problem.x.device
        shared = problem.x.shape[0] == 1
        self.owner = torch.zeros(replicas, dtype=torch.long, device=device) if shared else \
            torch.arange(replicas, device=device) // self.members
        self.active = list(range(replicas))
        names = ("init", "batch", "augment", "noise", "context", "divergence", "prior", "validation")
        self.streams = {name: streams.child(name) for name in names}
        self.optimiser = OPTIMISERS.build(training.optimiser)
        self.schedule = SCHEDULES.build(training.schedule)
        self.augment = Augmentation(**training.augment) if training.augment else None
        self.results: dict[int, Trained] = {}
        self.losses: dict[int, list[float]] = {r: [] for r in self.active}
        self.epoch = 0
        self._start(replicas, streams, device, fit=state is None)
        if state is not None:
            self.restore(state)

    def _start(self, replicas: int, streams: Streams, device: torch.device, fit: bool) -> None:
        model, problem = self.model, self.problem
        family = model.family.init(model.network, self.streams["init"])
        noise = model.likelihood.init(replicas, DTYPES[self.training.dtype])
        start = family | {f"likelihood/{k}": v.to(device) for k, v in noise.items()}
        self.prior_state: dict[str, Tensor] = {}
        if model.prior is not None and fit:
            initial = {k.removeprefix("mean/"): v for k, v in family.items() if not k.startswith("log_var/")}
            train = TrainingSet(take(problem.x, self.owner), take(problem.y, self.owner), model.network.n_outputs,
                                not problem.y.is_floating_point(), problem.scale)
            self.prior_state = model.prior.init(model.network, initial, train, streams.child("prior-fit"))
        self.parameters = {name: value.detach().clone().requires_grad_() for name, value in start.items()}
        self.optimiser_state = self.optimiser.start(self._trained())
        self.schedule_state = ScheduleState.start(self.optimiser.lr, replicas, device)
        self.best = {"loss": torch.full((replicas,), math.inf, device=device, dtype=torch.float64),
                     "age": torch.zeros(replicas, device=device, dtype=torch.long)}
        self.best_parameters = {k: v.detach().clone() for k, v in self.parameters.items()} if self.training.early_stopping else {}

    def _trained(self) -> list[Tensor]:
        """What the optimiser moves; the rest of the parameters is kept."""
        return [value for name, value in self.parameters.items() if not name.startswith(STATE)]

    @property
    def finished(self) -> bool:
        """Whether no replica has an epoch left."""
        return not self.active or self.epoch >= self.training.epochs

    def run(self, report: Callable[[float, str], None] | None = None, checkpoint: Callable[[Trainer], None] | None = None) -> list[Trained]:
        """Train to the end and return one :class:`Trained` for each replica.

        ``report(fraction, text)`` hears of progress after each epoch; ``checkpoint(self)`` may save :meth:`state`.
        """
        while not self.finished:
            loss = self._one_epoch()
            self.epoch += 1
            for r, value in zip(self.active, loss.tolist(), strict=True):
                self.losses[r].append(value)
            self.schedule.after_epoch(self.schedule_state, self.epoch, self.training.epochs, loss, self.optimiser.lr)
            self._validate()
            self._leave(loss)
            if report:
                report(self.epoch / self.training.epochs, f"epoch {self.epoch}/{self.training.epochs}, loss {loss.mean():.4g}")
            if checkpoint:
                checkpoint(self)
        self._finish(list(range(len(self.active))))
        replicas = [self.results[r] for r in sorted(self.results)]
        return [self._join(replicas[i : i + self.members]) for i in range(0, len(replicas), self.members)]

    def _one_epoch(self) -> Tensor:
        problem, size, n = self.problem, self.training.batch_size, self.problem.x.shape[1]
        total = torch.zeros(len(self.active), dtype=torch.float64, device=problem.x.device)
        order = self.streams["batch"].permutation(n) if size < n else None
        low, high = take(problem.low, self.owner), take(problem.high, self.owner)
        tensors = self._trained()
        for start in range(0, n, size):
            index = None if order is None else order[:, start : start + size]
            x, y = take(problem.x, self.owner, index), take(problem.y, self.owner, index)
            x = problem.scale(x if self.augment is None else self.augment(x, self.streams["augment"]))
            family, noise = noise_of(self.parameters)
            scene = Scene(x, low, high, problem.pools, problem.scale)
            seen: Parameters = {}
            loss = self.model.loss(family, noise, self.prior_state, x, y, n, self.training.samples, scene, self.streams, seen)
            made = torch.autograd.grad(loss.sum(), tensors, allow_unused=True, materialize_grads=True)
            # Some come as transposed views; laid out as their parameters they make the elementwise updates twice as fast.
            gradients = [gradient.contiguous() for gradient in made]
            if self.training.clip is not None:
                gradients = [g.clamp(-self.training.clip, self.training.clip) for g in gradients]
            self.optimiser.step(tensors, gradients, self.optimiser_state, self.schedule_state.lr.to(x.dtype))
            self._hold(self.model.network.track(self.parameters, seen))
            total += loss.detach() * x.shape[1]
        self._hold(self.model.family.after_epoch(self.model.network, noise_of(self.parameters)[0], self.epoch + 1, self.training.epochs, x))
        return total / n

    def _hold(self, values: Parameters) -> None:
        self.parameters.update({name: value.detach() for name, value in values.items()})

    @torch.no_grad()
    def _validate(self) -> None:
        rule = self.training.early_stopping
        if not rule or (self.epoch % rule.get("every", 1) and self.epoch < self.training.epochs):
            return
        if self.problem.validation is None:
            raise ValueError("training asks for early stopping, but the data set has no validation part; choose another split scheme")
        loss = torch.cat([self._validation_loss(i, owner) for i, owner in enumerate(self.owner.tolist())])
        better = loss < self.best["loss"]
        self.best["loss"] = torch.where(better, loss.double(), self.best["loss"])
        self.best["age"] = torch.where(better, torch.zeros_like(self.best["age"]), self.best["age"] + rule.get("every", 1))
        for name, value in self.parameters.items():
            mask = better.view(-1, *[1] * (value.dim() - 1))
            self.best_parameters[name] = torch.where(mask, value.detach(), self.best_parameters[name])
        self.schedule_state.done |= self.best["age"] >= rule["patience"]

    def _validation_loss(self, place: int, owner: int) -> Tensor:
        """Minus the mean log-likelihood of one replica's validation part, ``[1]``, with the same noise at every look."""
        family, noise = noise_of({name: value[place : place + 1] for name, value in self.parameters.items()})
        x, y = (part.unsqueeze(0) for part in self.problem.validation[owner])
        size = x.shape[1] if self.problem.pixels is None else VALIDATION_IMAGES
        loss = 0
        for part, targets in zip(x.split(size, 1), y.split(size, 1), strict=True):
            fixed = self.streams["validation"].subset([place]).child("fixed")
            fit = self.model.expected_log_likelihood(
                family, noise, self.problem.scale(part), targets, max(10, self.training.samples), fixed)
            loss = loss - fit * (part.shape[1] / x.shape[1])
        return loss

    def _leave(self, loss: Tensor) -> None:
        """Take replicas that are done or no longer finite out of the stack."""
        finite = torch.isfinite(loss)
        for name, value in self.parameters.items():
            finite &= torch.isfinite(value.detach().reshape(len(loss), -1)).all(1)
        gone = (self.schedule_state.done | ~finite).tolist()
        if not any(gone):
            return
        for i, ok in enumerate(finite.tolist()):
            if not ok:
                reason = f"the loss or a parameter stopped being finite in epoch {self.epoch} of {self.training.epochs}"
                self.results[self.active[i]] = Trained(None, self.epoch, self.losses[self.active[i]], reason)
        self._finish([i for i, left in enumerate(gone) if left and finite[i]])
        self._keep([i for i, left in enumerate(gone) if not left])

    def _keep(self, kept: list[int]) -> None:
        index = torch.tensor(kept, dtype=torch.long, device=self.owner.device)
        self.active = [self.active[i] for i in kept]
        self.owner = self.owner[index]
        self.streams = {name: s.subset(kept) for name, s in self.streams.items()}
        self.parameters = {k: v.detach()[index].requires_grad_() for k, v in self.parameters.items()}
        self.optimiser_state = {k: [t[index] for t in v] if isinstance(v, list) else v for k, v in self.optimiser_state.items()}
        self.schedule_state = self.schedule_state.subset(index)
        self.prior_state = {k: v[index] for k, v in self.prior_state.items()}
        self.best = {k: v[index] for k, v in self.best.items()}
        self.best_parameters = {k: v[index] for k, v in self.best_parameters.items()}

    def _finish(self, places: list[int]) -> None:
        source = self.best_parameters if self.training.early_stopping else self.parameters
        for i in places:
            r = self.active[i]
            self.results[r] = Trained({k: v[i : i + 1].detach().clone() for k, v in source.items()}, self.epoch, self.losses[r])

    def _join(self, members: list[Trained]) -> Trained:
        """Members of an independent ensemble as one ensemble; one failed member fails it."""
        if self.model.family is self.whole:
            return members[0]
        for m, member in enumerate(members):
            if member.reason:
                return Trained(None, member.epochs, member.loss, f"ensemble member {m}: {member.reason}")
        stacked = {k: torch.cat([m.parameters[k] for m in members]) for k in members[0].parameters}
        losses = [sum(values) / len(values) for values in zip(*(m.loss for m in members), strict=False)]
        return Trained(self.whole.group(stacked), max(m.epochs for m in members), losses)

    def state(self) -> dict[str, Any]:
        """Everything that training needs to go on from here: tensors, numbers, lists and dicts only.

        They are the trainer's own, not copies: save them before the next step changes them.
        """
        return {
            "epoch": self.epoch, "active": self.active, "losses": self.losses, "owner": self.owner,
            "parameters": {k: v.detach() for k, v in self.parameters.items()}, "optimiser": self.optimiser_state,
            "schedule": self.schedule_state.tensors(), "prior": self.prior_state, "best": self.best,
            "best_parameters": self.best_parameters, "streams": {k: s.state() for k, s in self.streams.items()},
            "results": {r: vars(result) for r, result in self.results.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from :meth:`state`, made by a trainer of the same configuration; what is given is copied."""
        self._keep([self.active.index(r) for r in state["active"]])
        for name, states in state["streams"].items():
            self.streams[name].restore(states)
        state = _copied({k: v for k, v in state.items() if k != "streams"}, self.problem.x.device)
        self.epoch, self.losses, self.owner = state["epoch"], state["losses"], state["owner"]
        self.parameters = {k: v.requires_grad_() for k, v in state["parameters"].items()}
        self.optimiser_state, self.prior_state = state["optimiser"], state["prior"]
        self.schedule_state = ScheduleState(**state["schedule"])
        self.best, self.best_parameters = state["best"], state["best_parameters"]
        self.results = {r: Trained(**fields) for r, fields in state["results"].items()}


def _copied(value: Any, device: torch.device) -> Any:
    """A copy, in depth, with its tensors on the device."""
    if isinstance(value, Tensor):
        return value.to(device, copy=True)
    if isinstance(value, dict):
        return {k: _copied(v, device) for k, v in value.items()}
    return [_copied(v, device) for v in value] if isinstance(value, list) else value
