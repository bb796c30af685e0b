"""Optimisers and learning-rate schedules of stacked replicas, each with its own learning rate and history."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

from fvi_core.registry import OPTIMISERS, SCHEDULES, checked

Tensors = list[Tensor]
OptimiserState = dict[str, Any]
"""State of an optimiser by name: numbers, lists of tensors and :class:`Moments`, one tensor for each parameter."""
JOINED = 2**13
"""Numbers of a tensor from which it is not joined with others: 32 KiB in float32."""


@dataclass
class Moments:
    """Tensors ``[R, ...]`` that an optimiser keeps, one for each parameter.

    Small ones of a type are views of one vector in ``joined``: an operation on them takes longer to begin than to
    compute. ``groups``: the places of the tensors in each vector.
    """

    each: list[Tensor]
    groups: list[list[int]]

    def __post_init__(self) -> None:
        self.joined = self.join(self.each)
        self.each = self.apart(self.joined, self.each)

    @classmethod
    def zeros(cls, parameters: Sequence[Tensor]) -> Moments:
        """Return zeros in the shapes of the parameters."""
        groups: dict[Any, list[int]] = {}
        for i, p in enumerate(parameters):
            groups.setdefault(p.dtype if p.numel() < JOINED else i, []).append(i)
        return cls([torch.zeros_like(p) for p in parameters], list(groups.values()))

    def join(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return such tensors as vectors like ``joined``."""
        some = ([tensors[i] for i in at] for at in self.groups)
        return [each[0] if len(each) == 1 else _flatten_dense_tensors(each) for each in some]

    def apart(self, vectors: Sequence[Tensor], like: Sequence[Tensor]) -> list[Tensor]:
        """Return vectors like ``joined`` as views in the shapes of these tensors."""
        tensors: dict[int, Tensor] = {}
        for at, vector in zip(self.groups, vectors, strict=True):
            parts = [vector] if len(at) == 1 else _unflatten_dense_tensors(vector, [like[i] for i in at])
            tensors |= zip(at, parts, strict=True)
        return [tensors[i] for i in range(len(like))]


class Optimiser:
    """Optimiser that updates a list of tensors ``[R, ...]`` in place. NaN raises nothing: the trainer checks the loss.

    Its state holds numbers and lists of tensors, so that it can be cut down to some replicas and saved.
    """

    name: ClassVar[str]
    lr: float
    weight_decay: float

    def start(self, parameters: Sequence[Tensor]) -> OptimiserState:
        """Return the initial state for these parameters."""
        raise NotImplementedError

    def step(self, parameters: Tensors, gradients: Tensors, state: OptimiserState, lr: Tensor) -> None:
        """Update parameters and state in place, with learning rates ``lr [R]``."""
        state["t"] += 1
        self.update(parameters, gradients, state, lr, *self.factors(state["t"]))

    def factors(self, t: int) -> tuple[float, ...]:
        """Return the numbers of ``update`` that depend on the count of steps, for the ``t``-th, from 1."""
        return ()

    def update(self, parameters: Tensors, gradients: Tensors, state: OptimiserState, lr: Tensor, *factors: Any) -> None:
        """Update as ``step``, but for the count. A graph reads ``factors`` from tensors on the device."""
        raise NotImplementedError

    def _decayed(self, parameters: list[Tensor], gradients: list[Tensor]) -> list[Tensor]:
        if not self.weight_decay:
            return gradients
        return list(torch._foreach_add(gradients, parameters, alpha=self.weight_decay))


def _move(parameters: list[Tensor], directions: Sequence[Tensor], lr: Tensor) -> None:
    rates: Any = lr.squeeze(0) if lr.shape[0] == 1 else [lr.view(-1, *[1] * (p.dim() - 1)) for p in parameters]
    torch._foreach_sub_(parameters, torch._foreach_mul(list(directions), rates))


@OPTIMISERS.register("adam")
@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam (Kingma and Ba 2015, algorithm 1) with an L2 penalty in the gradient, as ``torch.optim.Adam``."""

    lr: float = checked(1e-3, least=0)
    weight_decay: float = checked(0.0, least=0)
    beta1: float = checked(0.9, least=0, below=1)
    beta2: float = checked(0.999, least=0, below=1)
    eps: float = checked(1e-8, least=0)

    def start(self, parameters: Sequence[Tensor]) -> OptimiserState:
        return {"t": 0, "m": Moments.zeros(parameters), "v": Moments.zeros(parameters)}

    def factors(self, t: int) -> tuple[float, ...]:
        return 1 - self.beta1**t, math.sqrt(1 - self.beta2**t)

    @torch.no_grad()
    def update(self, parameters: Tensors, gradients: Tensors, state: OptimiserState, lr: Tensor, *factors: Any) -> None:
        correction, root = factors
        moments: Moments = state["m"]
        directions, gradients = list[Tensor](), moments.join(self._decayed(parameters, gradients))
        rates = lr / correction
        for gradient, m, v in zip(gradients, moments.joined, state["v"].joined, strict=True):
            m.lerp_(gradient, 1 - self.beta1)
            v.mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
            scale = v.sqrt().div_(root).add_(self.eps)
            direction = torch.div(m, scale, out=scale)
            directions.append(direction.mul_(rates) if len(rates) == 1 else direction)  # of several, in _move
        apart = moments.apart(directions, parameters)
        if len(rates) == 1:
            torch._foreach_sub_(parameters, apart)
        else:
            _move(parameters, apart, rates)


@OPTIMISERS.register("sgd")
@dataclass(frozen=True)
class SGD(Optimiser):
    """Stochastic gradient descent with (Nesterov) momentum and an L2 penalty, as ``torch.optim.SGD``."""

    lr: float = checked(1e-2, least=0)
    weight_decay: float = checked(0.0, least=0)
    momentum: float = checked(0.0, least=0, below=1)
    nesterov: bool = False

    def start(self, parameters: Sequence[Tensor]) -> OptimiserState:
        return {"t": 0, "m": [torch.zeros_like(p) for p in parameters] if self.momentum else []}

    @torch.no_grad()
    def update(self, parameters: Tensors, gradients: Tensors, state: OptimiserState, lr: Tensor, *factors: Any) -> None:
        gradients = self._decayed(parameters, gradients)
        if self.momentum:
            torch._foreach_mul_(state["m"], self.momentum)
            torch._foreach_add_(state["m"], gradients)
            directions = torch._foreach_add(gradients, state["m"], alpha=self.momentum) if self.nesterov else state["m"]
        else:
            directions = gradients
        _move(parameters, directions, lr)


@dataclass
class ScheduleState:
    """Learning rates ``[R]``, whether each replica is done, and the state of a plateau schedule."""

    lr: Tensor
    done: Tensor
    best: Tensor
    bad_epochs: Tensor

    @classmethod
    def start(cls, lr: float, replicas: int, device: torch.device) -> ScheduleState:
        return cls(
            torch.full((replicas,), lr, device=device, dtype=torch.float64),
            torch.zeros(replicas, device=device, dtype=torch.bool),
            torch.full((replicas,), math.inf, device=device, dtype=torch.float64),
            torch.zeros(replicas, device=device, dtype=torch.long),
        )


class Schedule:
    """Schedule that changes learning rates after each epoch, or before each step."""

    def before_step(self, state: ScheduleState, step: int, steps: int, base_lr: float) -> None:
        """Update before step number ``step``, from 0, of the ``steps`` of all epochs."""

    def after_epoch(self, state: ScheduleState, epoch: int, epochs: int, loss: Tensor, base_lr: float) -> None:
        """Update after ``epoch`` of ``epochs``, the last with mean training loss ``loss [R]``."""


@SCHEDULES.register("constant")
@dataclass(frozen=True)
class Constant(Schedule):
    """Constant learning rate."""


@SCHEDULES.register("plateau")
@dataclass(frozen=True)
class Plateau(Schedule):
    """Multiply by ``factor`` after more than ``patience`` epochs without a relative improvement of ``threshold`` in the
    training loss (the rule of ``torch.optim.lr_scheduler.ReduceLROnPlateau``); a replica is done once its rate is at
    most ``min_lr``.
    """

    factor: float = checked(0.7, above=0, most=1)
    patience: int = checked(30, least=0)
    threshold: float = checked(1e-4, least=0)
    min_lr: float = checked(1e-4, least=0)

    def after_epoch(self, state: ScheduleState, epoch: int, epochs: int, loss: Tensor, base_lr: float) -> None:
        loss = loss.double()
        better = loss < state.best * (1 - self.threshold)
        better |= torch.isinf(state.best)
        state.best = torch.where(better, loss, state.best)
        state.bad_epochs = torch.where(better, torch.zeros_like(state.bad_epochs), state.bad_epochs + 1)
        reduce = state.bad_epochs > self.patience
        state.lr = torch.where(reduce, state.lr * self.factor, state.lr)
        state.bad_epochs = torch.where(reduce, torch.zeros_like(state.bad_epochs), state.bad_epochs)
        state.done |= state.lr <= self.min_lr


@SCHEDULES.register("multistep")
@dataclass(frozen=True)
class MultiStep(Schedule):
    """Multiply by ``factor`` once each of these fractions of the epochs is over."""

    at: tuple[float, ...] = checked((0.5, 0.75), least=0, most=1)
    factor: float = checked(0.1, above=0)

    def after_epoch(self, state: ScheduleState, epoch: int, epochs: int, loss: Tensor, base_lr: float) -> None:
        passed = sum(epoch >= round(fraction * epochs, 9) for fraction in self.at)  # .55 * 100 is above 55
        state.lr.fill_(base_lr * self.factor**passed)


@SCHEDULES.register("linear")
@dataclass(frozen=True)
class LinearSchedule(Schedule):
    """Base rate for the share ``start`` of the epochs, then linear to ``final`` times it at ``end``, then constant.

    Maddox et al. (2019), who average iterates after a share s of the epochs: start 0.5 s, end 0.9 s, final the quotient
    of their two rates.
    """

    final: float = checked(least=0)
    start: float = checked(0.4, least=0, most=1)
    end: float = checked(0.72, least=0, most=1)

    def __post_init__(self):
        if self.start >= self.end:
            raise ValueError(f"schedule 'linear': expected start < end, found {self.start} and {self.end}")

    def after_epoch(self, state: ScheduleState, epoch: int, epochs: int, loss: Tensor, base_lr: float) -> None:
        done = min(max((epoch / epochs - self.start) / (self.end - self.start), 0.0), 1.0)
        state.lr.fill_(base_lr * (1 + (self.final - 1) * done))


@SCHEDULES.register("cosine")
@dataclass(frozen=True)
class Cosine(Schedule):
    """Half a cosine from the base rate to ``final`` times it (Loshchilov and Hutter 2017), once an epoch."""

    final: float = checked(0.0, least=0)

    def after_epoch(self, state: ScheduleState, epoch: int, epochs: int, loss: Tensor, base_lr: float) -> None:
        state.lr.fill_(base_lr * (self.final + (1 - self.final) * 0.5 * (1 + math.cos(math.pi * epoch / epochs))))


@SCHEDULES.register("one_cycle")
@dataclass(frozen=True)
class OneCycle(Schedule):
    """From ``start`` times the base rate up to it over the share ``rise`` of all steps, then down to ``final`` times
    it, both on half a cosine (Smith and Topin 2018, as ``torch.optim.lr_scheduler.OneCycleLR`` has it; momentum stays).
    """

    rise: float = checked(0.3, least=0, most=1)
    start: float = checked(0.04, least=0)
    final: float = checked(4e-6, least=0)

    def before_step(self, state: ScheduleState, step: int, steps: int, base_lr: float) -> None:
        top, last = self.rise * steps - 1, steps - 1
        if step <= top:
            low, above = self.start, step / top if top else 1.0
        else:
            low, above = self.final, (last - step) / (last - top)
        state.lr.fill_(base_lr * (low + (1 - low) * 0.5 * (1 - math.cos(math.pi * above))))
