"""Training by stochastic gradients: the loop over stacked replicas for every method that does not sample."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor

from fvi_core import graphs, precision
from fvi_core.contexts import ContextSource
from fvi_core.data import Augmentation, Batch, TrainingData, take, without_validation
from fvi_core.graphs import Graphs
from fvi_core.held import Held, trained_names, where
from fvi_core.networks import Parameters
from fvi_core.objective import Model
from fvi_core.optimisers import OptimiserState, ScheduleState
from fvi_core.precision import PRECISIONS
from fvi_core.random import Streams
from fvi_core.registry import OPTIMISERS, SCHEDULES, TRAININGS, PartSpec, checked, later, nested
from fvi_core.stack import DTYPES, Procedure, ReplicaResult, SavedState, Stack, State, named_streams
from fvi_core.telling import due
from fvi_core.triangular import Factorisation, first_cause, watched

__all__ = ["DTYPES", "EarlyStopping", "ReplicaResult", "Trainer", "Training", "TrainingData"]

LONG = 5.0
"""Seconds of an epoch after which its steps are reported too."""
VALIDATION_IMAGES = 500
"""Validation images looked at together: a convolutional network's activations at all of them need not fit in memory."""


@dataclass(frozen=True)
class EarlyStopping:
    """Rule that ends training when the validation loss, computed every ``every`` epochs, has not fallen for
    ``patience`` epochs.

    The validation loss is minus the mean log-likelihood of the validation subset. With ``objective`` it is the whole
    objective with the validation subset as training data: the subset's size also scales the divergence (images come in
    pieces of VALIDATION_IMAGES, each of which is one batch).
    """

    patience: int = checked(least=1)
    every: int = checked(1, least=1)
    objective: bool = later(False)


@TRAININGS.register("gradient")
@dataclass(frozen=True)
class Training(Procedure):
    """Optimisation by stochastic gradients. ``samples``: function draws of the likelihood term in each step.

    ``early_stopping`` {"patience": epochs, "every": epochs} keeps the parameters of the lowest validation loss, which
    is the whole objective's with "objective": true.
    ``clip``: largest absolute value of a gradient's element. ``augment`` {"crop": pixels, "flip": bool} changes
    training images. ``precision`` "bfloat16": products and convolutions of the network in that type, in prediction
    too, where the device has it (see :mod:`fvi_core.precision`); parameters, statistics of batches, likelihood and
    divergence stay in ``dtype``. ``compile``: the network's passes by torch.compile, for large networks on a GPU.
    ``graph``: steps captured as CUDA graphs (see :mod:`fvi_core.graphs`), the same operations in the same order;
    failures then lack the cause of a failed Cholesky factorisation.
    """

    epochs: int = checked(least=0)
    batch_size: int = checked(least=1)
    optimiser: PartSpec = nested(OPTIMISERS)
    schedule: PartSpec = nested(SCHEDULES, {"name": "constant"})
    samples: int = checked(1, least=1)
    early_stopping: dict[str, int] | None = nested(EarlyStopping, None)
    clip: float | None = checked(None, above=0)
    dtype: str = checked("float32", among=DTYPES)
    augment: PartSpec | None = nested(Augmentation, None)
    precision: str = checked("float32", among=PRECISIONS)
    compile: bool = False
    graph: bool = later(False)

    def start(
        self, model: Model, training_data: TrainingData, streams: Streams, state: SavedState | None = None
    ) -> Trainer:
        return Trainer(model, self, training_data, streams, state)


@dataclass
class Best:
    """Lowest validation loss ``[R]``, the epochs since, and its parameters (none without early stopping)."""

    loss: Tensor
    age: Tensor
    parameters: Parameters


@dataclass
class TrainingState(State):
    """State of gradient training: optimiser, learning-rate schedule and early stopping."""

    _: KW_ONLY
    optimiser: OptimiserState
    schedule: ScheduleState
    best: Best


class Trainer(Stack):
    """Replicas trained by gradients: each has its own batches, random numbers and learning rate.

    With a ``state``, training resumes from it without fitting the prior again.
    """

    streams = named_streams("batch", "augment", "functions", "context", "divergence", "prior", "validation")
    now: TrainingState

    def __init__(
        self,
        model: Model,
        training: Training,
        training_data: TrainingData,
        streams: Streams,
        state: SavedState | None = None,
    ):
        self.training = training
        self.optimiser = OPTIMISERS.build(training.optimiser)
        self.schedule = SCHEDULES.build(training.schedule)
        self.augment = Augmentation(**training.augment) if training.augment else None
        network = model.network
        self.precision = precision.used(training.precision, training_data.x.device)
        if training.precision != "float32":
            network = network.in_precision(training.precision)
        if training.compile:
            network = network.compiled()
        if training.graph and (obstacle := graphs.obstacle(model, training_data)):
            raise ValueError(f"training: graph: {obstacle}; leave graph off")
        if training.batch_size < model.family.shared_by:
            raise ValueError(
                f"training: batch_size {training.batch_size}: family {model.family.name!r} divides the points of a "
                f"batch among {model.family.shared_by} members: use at least as many points"
            )
        if training.early_stopping and training_data.validation is None:
            raise ValueError(without_validation("early stopping"))
        if model.divergence is not None and training.epochs:
            member = model.family.independent()[0]
            draws = 0 if replace(model, family=member).closed_form else max(training.samples, member.members)
            model.divergence.check(member, draws)
        self.graphs: tuple[TrainingState, Graphs, Tensor, Tensor] | None = None
        super().__init__(replace(model, network=network), training, training_data, streams, state)

    @property
    def epochs(self) -> int:
        return self.training.epochs

    def begin(self, state: State) -> TrainingState:
        replicas, device = len(state.active), state.owner.device
        best = Best(
            torch.full((replicas,), math.inf, device=device, dtype=torch.float64),
            torch.zeros(replicas, device=device, dtype=torch.long),
            {name: value.clone() for name, value in state.parameters.items()} if self.training.early_stopping else {},
        )
        names = trained_names(state.parameters, self.model.likelihood.learned)
        moments = self.optimiser.start([state.parameters[name] for name in names])
        return TrainingState(
            **vars(state),
            optimiser=moments,
            best=best,
            schedule=ScheduleState.start(self.optimiser.lr, replicas, device),
        )

    def judged(self, trained: ReplicaResult, members: Sequence[ReplicaResult], replica: int) -> ReplicaResult:
        warnings, weight = list(trained.warnings), self.model.weight
        if self.precision != self.training.precision:
            warnings.append(precision.instead(self.training_data.x.device.type))
        if weight.alpha and self.training.samples == 1 and not self.model.closed_form:
            warnings.append(f"weight: alpha {weight.alpha} has no effect with one draw in training (samples 1)")
        if trained.parameters is not None:
            warnings += self.family.remarks(Held.of(trained.parameters).family)
        return replace(trained, warnings=warnings)

    def outcome(self) -> Parameters:
        if not self.training.early_stopping:
            return self.now.parameters
        best = self.now.best
        return where(best.loss < torch.inf, best.parameters, self.now.parameters)

    def faults(self) -> dict[int, str]:
        if not self.training.early_stopping:
            return {}
        best = self.now.best
        unseen = (best.loss.isinf() & (best.age > 0)).tolist()
        return {i: "no validation loss of early stopping was a finite number" for i, bad in enumerate(unseen) if bad}

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return self.training_data.steps or -(-self.training_data.x.shape[1] // self.training.batch_size)

    def advance(self) -> Tensor:
        now, losses, counts = self.now, list[Tensor](), list[int]()
        take_step, before, begun = self._stepper(), self.epoch * self.steps, time.monotonic()
        for step, (batch, count) in enumerate(self._batches()):
            if self.report and due(step, self.steps) and time.monotonic() - begun > LONG:
                text = f"{self.unit} {self.epoch + 1}/{self.epochs}, step {step + 1} of {self.steps}"
                self.report((before + step) / (self.epochs * self.steps), text)
            self.schedule.before_step(now.schedule, before + step, self.epochs * self.steps, self.optimiser.lr)
            self.progress = (before + step + 1) / (self.epochs * self.steps)
            losses.append(take_step(batch))
            counts.append(count)
        every = torch.stack(losses)
        # Summed in order, like one loss after another.
        total = (every * every.new_tensor(counts).unsqueeze(1)).double().cumsum(0)[-1]
        self._note_step(every, total)
        family = Held.of(now.parameters).family
        self._hold(self.model.family.after_epoch(self.model.network, family, self.epoch + 1, self.epochs))
        return total / sum(counts)

    def _batches(self) -> Iterator[tuple[Batch, int]]:
        """Yield the batches of an epoch, with their sizes."""
        n, size = self.training_data.x.shape[1], self.training.batch_size
        if self.training_data.batches is not None:
            yield from ((batch, len(batch[0])) for batch in self.training_data.batches(self.epoch))
            return
        order = self.now.streams["batch"].permutation(n) if size < n or self.model.family.shared_by > 1 else None
        for start in range(0, n, size):
            yield None if order is None else order[:, start : start + size], min(size, n - start)

    def _stepper(self) -> Callable[[Batch], Tensor]:
        """Return a function that takes a step on a batch and returns its loss ``[R]``."""
        now, training_data, n = self.now, self.training_data, self.training_data.x.shape[1]
        if self.graphs is not None and self.graphs[0] is now:
            return self._replayed
        low, high = take(training_data.low, now.owner), take(training_data.high, now.owner)
        names = trained_names(now.parameters, self.model.likelihood.learned)
        tensors = [now.parameters[name].requires_grad_() for name in names]
        rate = now.schedule.lr.clone() if self.training.graph else None
        factors: Any = None  # as the rate, in memory that a graph reads
        if self.training.graph:
            factors = torch.tensor(self.optimiser.factors(1), device=now.owner.device, dtype=torch.float64)

        def step(batch: Batch) -> Tensor:
            x, y = training_data.at(now.owner, batch)
            x = training_data.scale(x if self.augment is None else self.augment(x, now.streams["augment"]))
            family, likelihood, _ = Held.of(now.parameters)
            source = ContextSource(x, low, high, training_data.pools, training_data.scale)
            statistics: Parameters = {}
            with watched() as tried:
                samples, progress = self.training.samples, self.progress
                loss = self.model.loss(
                    family, likelihood, now.prior, x, y, n, samples, source, now.streams, statistics, progress
                )
            self._note_cause(loss, tried)
            del tried  # frees its matrices before the gradients are computed
            each = torch.ones_like(loss) if len(loss) > 1 else None  # None, for one number, is faster
            raw = torch.autograd.grad(loss, tensors, each, allow_unused=True, materialize_grads=True)
            # Some come as transposed views; laid out as their parameters they make the elementwise updates twice as
            # fast.
            gradients = [gradient.contiguous() for gradient in raw]
            if self.training.clip is not None:
                gradients = [g.clamp(-self.training.clip, self.training.clip) for g in gradients]
            if rate is None:
                self.optimiser.step(tensors, gradients, now.optimiser, now.schedule.lr.to(x.dtype))
            else:
                self.optimiser.update(tensors, gradients, now.optimiser, rate.to(x.dtype), *factors.unbind())
            if statistics:
                self._hold(self.model.network.track(now.parameters, statistics))
                family = Held.of(now.parameters).family
            self._hold(self.model.family.after_step(self.model.network, family, x, y))
            return loss.detach()

        if rate is None:
            return step
        generators = [each for streams in now.streams.values() for each in streams.generators]
        self.graphs = now, Graphs(step, generators, training_data.x.device), rate, factors
        return self._replayed

    def _replayed(self, batch: Batch) -> Tensor:
        now, captured, rate, factors = cast(tuple[TrainingState, Graphs, Tensor, Tensor], self.graphs)
        rate.copy_(now.schedule.lr)  # a schedule may put another tensor in its place
        now.optimiser["t"] += 1
        factors.copy_(torch.tensor(self.optimiser.factors(now.optimiser["t"]), dtype=torch.float64))
        if batch is None:
            rows = torch.arange(self.training_data.x.shape[1], device=rate.device)
            batch = rows.expand(len(now.active), -1)
        return captured(cast(Tensor, batch)).clone()  # the next replay overwrites it

    def done(self, loss: Tensor) -> Tensor:
        self.schedule.after_epoch(self.now.schedule, self.epoch, self.epochs, loss, self.optimiser.lr)
        self._validate()
        return self.now.schedule.done

    def _note_step(self, losses: Tensor, total: Tensor) -> None:
        """Store the first step at which a loss ``[steps, R]`` was not finite, for replicas whose epoch's loss is
        not."""
        if all(map(math.isfinite, total.tolist())):
            return
        finite = torch.isfinite(losses).tolist()
        for place, r in enumerate(self.now.active):
            bad = [step for step, row in enumerate(finite, 1) if not row[place]]
            if bad:
                self.stopped.setdefault(r, f"step {bad[0]} of {len(losses)} of ")

    def _note_cause(self, loss: Tensor, tried: Sequence[Factorisation]) -> None:
        """Store the failed factorisation behind a loss that is not finite, before the step spoils parameters."""
        if not tried or self.training.graph or torch.isfinite(loss).all():
            return
        for place, (r, finite) in enumerate(zip(self.now.active, torch.isfinite(loss).tolist(), strict=True)):
            if not finite and (cause := first_cause(tried, place)):
                self.explained.setdefault(r, cause)

    def _hold(self, values: Parameters) -> None:
        """Store new values; with graphs, which use the same memory at every replay, in place of the old."""
        held = self.now.parameters
        for name, value in values.items():
            if self.training.graph and name in held and held[name].shape == value.shape:
                held[name].copy_(value.detach())
            else:
                held[name] = value.detach()

    @torch.no_grad()
    def _validate(self) -> None:
        rule = self.training.early_stopping
        if not rule or (self.epoch % rule.get("every", 1) and self.epoch < self.epochs):
            return
        held = cast(Sequence[tuple[Tensor, Tensor]], self.training_data.validation)
        now, best = self.now, self.now.best
        loss = torch.cat([self._validation_loss(i, *held[owner]) for i, owner in enumerate(now.owner.tolist())])
        better = loss < best.loss
        best.loss = torch.where(better, loss.double(), best.loss)
        best.age = torch.where(better, torch.zeros_like(best.age), best.age + rule.get("every", 1))
        best.parameters = where(better, now.parameters, best.parameters)
        now.schedule.done |= best.age >= rule["patience"]

    def _validation_loss(self, place: int, x: Tensor, y: Tensor) -> Tensor:
        """Return the validation loss ``[1]`` of one replica at x, y; every call uses the same random numbers."""
        replica = slice(place, place + 1)
        family, likelihood, _ = Held.of({name: value[replica] for name, value in self.now.parameters.items()})
        prior = {name: value[replica] for name, value in self.now.prior.items()}
        low, high = (take(box, self.now.owner[replica]) for box in (self.training_data.low, self.training_data.high))
        x, y = x.unsqueeze(0), y.unsqueeze(0)
        size = VALIDATION_IMAGES if x.dim() > 3 else x.shape[1]
        loss: Any = 0  # a tensor from the first piece on
        for piece, targets in zip(x.split(size, 1), y.split(size, 1), strict=True):
            fixed = self.now.streams["validation"].subset([place]).child("fixed")
            inputs, samples = self.training_data.scale(piece), max(10, self.training.samples)
            if (self.training.early_stopping or {}).get("objective"):
                # the validation subset stands for the training data
                source = ContextSource(inputs, low, high, self.training_data.pools, self.training_data.scale)
                streams, n = {name: fixed.child(name) for name in self.now.streams}, x.shape[1]
                value = self.model.loss(family, likelihood, prior, inputs, targets, n, samples, source, streams)
            else:
                value = -self.model.expected_log_likelihood(family, likelihood, inputs, targets, samples, fixed)
            loss = loss + value * (piece.shape[1] / x.shape[1])
        return loss
