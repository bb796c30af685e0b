"""Stack of replicas that train side by side and independently, by the gradient loop or by a sampler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from fvi_core.data import TrainingData, TrainingSet, take
from fvi_core.held import Held
from fvi_core.networks import Parameters
from fvi_core.objective import Model
from fvi_core.random import Streams

# glibc gives memory back to the system after almost every tensor of some MB, and pays for its pages again at the next,
# until a block nearly as large as its limit (32 MB) has been freed once. No page of this one is ever touched.
torch.empty(2**25 - 2**13, dtype=torch.uint8)

FUNCTIONS_LABEL = "noise"
"""Label of the streams that draw functions; it is part of the seeds of all committed records."""
DTYPES = {"float32": torch.float32, "float64": torch.float64}
Report = Callable[[float, str], None]
SavedState = dict[str, Any]
"""Training state of tensors, numbers, lists and dicts only, as a checkpoint holds it."""


class Procedure:
    """Way of training, named by ``parts["training"]``. A subclass is a dataclass of hyper-parameters.

    ``dtype``: type of parameters and data.
    """

    name: ClassVar[str]
    dtype: str

    def start(
        self, model: Model, training_data: TrainingData, streams: Streams, state: SavedState | None = None
    ) -> Stack:
        """Return a stack with a replica for each of ``streams``, resumed from ``state`` (:meth:`Stack.state`)."""
        raise NotImplementedError


@dataclass
class ReplicaResult:
    """Result of training one replica: its parameters ``[1, ...]``, or why training failed.

    ``diagnostics``: numbers on how training went; ``warnings``: facts that a user of the parameters must know.
    """

    parameters: Parameters | None
    epochs: int
    loss: list[float]
    reason: str | None = None
    diagnostics: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


@dataclass
class State:
    """Everything that changes while replicas train. A subclass adds fields: numbers, tensors ``[R, ...]`` of the
    replicas still in training, streams, and lists, dicts and dataclasses of these.

    ``active``: the numbers of these replicas; ``owner [R]``: their data sets; ``prior``: the prior's constants. Losses
    of epochs and results of finished replicas are stored by replica number.
    """

    active: list[int]
    owner: Tensor
    streams: dict[str, Streams]
    parameters: Parameters
    prior: dict[str, Tensor]
    epoch: int = 0
    losses: dict[int, list[float]] = field(default_factory=dict)
    results: dict[int, ReplicaResult] = field(default_factory=dict)

    WHOLE: ClassVar[tuple[str, ...]] = ("epoch", "losses", "results")

    def subset(self, indices: Sequence[int]) -> Self:
        """Return the state of the replicas at these indices alone."""
        index = torch.tensor(indices, dtype=torch.long, device=self.owner.device)
        values = {name: subset_of(value, indices, index) for name, value in self._per_replica().items()}
        return replace(self, **values, active=[self.active[i] for i in indices])

    def saved(self) -> SavedState:
        """Return the state as tensors, numbers, lists and dicts only; nothing is copied."""
        return _saved(self)

    def restored(self, saved: SavedState) -> Self:
        """Return this initial state updated from the result of :meth:`saved`, which is copied."""
        start = self.subset([self.active.index(r) for r in saved["active"]])
        device = self.owner.device
        values = {name: _restored(value, saved[name], device) for name, value in start._per_replica().items()}
        results = {r: ReplicaResult(**_copied(result, device)) for r, result in saved["results"].items()}
        return replace(start, **values, epoch=saved["epoch"], losses=_copied(saved["losses"], device), results=results)

    def _per_replica(self) -> dict[str, Any]:
        names = (each.name for each in fields(self) if each.name not in ("active", *self.WHOLE))
        return {name: getattr(self, name) for name in names}


class Stack:
    """Replicas in training, each with its own data, random numbers and end.

    A replica that finishes or fails leaves the stack; the others' numbers do not depend on it. A subclass makes the
    first state (:meth:`begin`) and trains for an epoch (:meth:`advance`); the state holds everything else that it
    needs. ``streams``: purposes of random numbers, with the labels in their seeds.
    """

    streams: ClassVar[Mapping[str, str]] = {}
    unit: ClassVar[str] = "epoch"

    def __init__(
        self,
        model: Model,
        procedure: Procedure,
        training_data: TrainingData,
        streams: Streams,
        state: SavedState | None = None,
    ):
        self.family, self.procedure, self.training_data = model.family, procedure, training_data
        self.dtype = DTYPES[procedure.dtype]
        member, self.members = model.family.independent()
        self.model = replace(model, family=member)
        streams = model.family.member_streams(streams)
        replicas, device = len(streams), training_data.x.device
        shared = training_data.x.shape[0] == 1
        owner = (
            torch.zeros(replicas, dtype=torch.long, device=device)
            if shared
            else torch.arange(replicas, device=device) // self.members
        )
        labels = {**named_streams("init"), **self.streams}
        own_streams = {purpose: streams.child(label) for purpose, label in labels.items()}
        start = self.model.family.init(self.model.network, own_streams["init"])
        prior = {}
        if state is None:  # otherwise the state has everything fitted to the training set
            x, y, outputs = take(training_data.x, owner), take(training_data.y, owner), model.network.n_outputs
            train = TrainingSet(x, y, outputs, training_data.classification, training_data.scale)
            start = self.model.family.prepare(self.model.network, start, train, streams.child("prepare"))
            prior = self._fit_prior(start, train, streams.child("prior-fit"))
        likelihood = self.model.likelihood.init(replicas, self.dtype)
        start = Held(start, {name: value.to(device) for name, value in likelihood.items()}).flat()
        start = {name: value.detach().clone() for name, value in start.items()}
        active = list(range(replicas))
        self.explained: dict[int, str] = {}  # why losses are no numbers, by the number of the replica
        self.report: Report | None = None
        self.progress = 1.0  # share of all steps, with the one that is taken, where steps are counted
        self.stopped: dict[int, str] = {}  # replica -> the step at which it stopped being finite
        self.now = self.begin(State(active, owner, own_streams, start, prior, losses={r: [] for r in active}))
        if state is not None:
            self.restore(state)

    @property
    def epochs(self) -> int:
        """Number of epochs; the subclass defines an epoch."""
        raise NotImplementedError

    def begin(self, state: State) -> State:
        """Return the first state, made from the fields common to all ways of training."""
        return state

    def open(self) -> None:
        """Prepare the state once, before the first epoch."""

    def advance(self) -> Tensor:
        """Train for an epoch and return its loss, ``[R]``."""
        raise NotImplementedError

    def done(self, loss: Tensor) -> Tensor:
        """Return which replicas stop early, ``[R]`` bool, after an epoch with this loss."""
        return torch.zeros_like(loss, dtype=torch.bool)

    def outcome(self) -> Parameters:
        """Return the parameters ``[R, ...]`` with which replicas leave."""
        return self.now.parameters

    def diagnostics(self) -> dict[str, Tensor]:
        """Return diagnostics ``[R]`` of training by name, for the records of replicas that leave."""
        return {}

    def faults(self) -> dict[int, str]:
        """Return why the parameters of replicas that leave must not be used, by their index."""
        return {}

    def judged(self, trained: ReplicaResult, members: Sequence[ReplicaResult], replica: int) -> ReplicaResult:
        """Return a replica's result, with diagnostics that compare the members joined in it."""
        return trained

    @property
    def epoch(self) -> int:
        """Number of finished epochs."""
        return self.now.epoch

    @property
    def active(self) -> list[int]:
        """Numbers of the replicas still in training."""
        return self.now.active

    @property
    def parameters(self) -> Parameters:
        """Parameters ``[R, ...]`` of the replicas still in training."""
        return self.now.parameters

    @property
    def finished(self) -> bool:
        """Whether no replica has an epoch left."""
        return not self.now.active or self.now.epoch >= self.epochs

    def run(
        self, report: Report | None = None, checkpoint: Callable[[Stack], None] | None = None
    ) -> list[ReplicaResult]:
        """Train to the end and return one :class:`ReplicaResult` for each replica.

        ``report(fraction, text)`` is called after each epoch and within long ones. ``checkpoint(self)``, called after
        each epoch, may save :meth:`state`.
        """
        self.report = report
        if not self.epoch:
            self.open()
        while not self.finished:
            loss = self.advance()
            self.now.epoch += 1
            for r, value in zip(self.now.active, loss.tolist(), strict=True):
                self.now.losses[r].append(value)
            self._leave(loss, self.done(loss))
            if report:
                done = f"{self.unit} {self.epoch}/{self.epochs}"
                report(self.epoch / self.epochs, f"{done}, loss {loss.mean():.4g}")
            if checkpoint:
                checkpoint(self)
        return self.end()

    def end(self) -> list[ReplicaResult]:
        """Return results with the current parameters, or the best of early stopping, also for a stopped training."""
        self._finish(list(range(len(self.now.active))))
        results = [self.now.results[r] for r in sorted(self.now.results)]
        groups = [results[i : i + self.members] for i in range(0, len(results), self.members)]
        return [self.judged(self._join(group), group, r) for r, group in enumerate(groups)]

    def state(self) -> SavedState:
        """Return all that training needs to resume: tensors, numbers, lists and dicts only.

        They are not copies: save them before the next step changes them.
        """
        return self.now.saved()

    def restore(self, state: SavedState) -> None:
        """Continue from the :meth:`state` of a stack of equal configuration; the state is copied."""
        self.now = self.now.restored(state)

    def _fit_prior(self, start: Parameters, train: TrainingSet, streams: Streams) -> dict[str, Tensor]:
        model = self.model
        if model.prior is None:
            return {}
        return model.prior.init(model.network, model.family.initial_network(model.network, start), train, streams)

    def _leave(self, loss: Tensor, done: Tensor) -> None:
        """Take replicas that are done or no longer finite out of the stack."""
        now, count = self.now, loss.shape[0]
        every = [loss.detach(), *(value.detach() for value in now.parameters.values())]
        finite = torch.isfinite(torch.cat([value.reshape(count, -1) for value in every], 1)).all(1)
        leaving = (done | ~finite).tolist()
        if not any(leaving):
            return
        for i, ok in enumerate(finite.tolist()):
            if not ok:
                step = self.stopped.get(now.active[i], "")
                where = f"{step}{self.unit} {self.epoch} of {self.epochs}"
                reason = f"the loss or a parameter stopped being finite in {where}"
                reason = ": ".join(filter(None, (reason, self.explained.get(now.active[i]))))
                now.results[now.active[i]] = ReplicaResult(None, self.epoch, now.losses[now.active[i]], reason)
        self._finish([i for i, left in enumerate(leaving) if left and finite[i]])
        self.now = now.subset([i for i, left in enumerate(leaving) if not left])

    def _finish(self, places: list[int]) -> None:
        if not places:
            return
        outcome, diagnostics, faults = self.outcome(), self.diagnostics(), self.faults()
        for i in places:
            r = self.now.active[i]
            parameters = {name: value[i : i + 1].detach().clone() for name, value in outcome.items()}
            numbers = {name: value[i].item() for name, value in diagnostics.items()}
            usable = None if i in faults else parameters
            self.now.results[r] = ReplicaResult(usable, self.epoch, self.now.losses[r], faults.get(i), numbers)

    def _join(self, members: list[ReplicaResult]) -> ReplicaResult:
        """Join independently trained members, with their mean diagnostics; if one failed, the result has failed."""
        if len(members) == 1:
            return members[0]
        for m, member in enumerate(members):
            if member.reason:
                return ReplicaResult(None, member.epochs, member.loss, f"ensemble member {m}: {member.reason}")
        each = [member.parameters for member in members if member.parameters is not None]  # without a reason: all
        stacked = {name: torch.cat([parameters[name] for parameters in each]) for name in each[0]}
        family, likelihood, _ = Held.of(stacked)
        likelihood = {name: value.unflatten(0, (-1, self.members)) for name, value in likelihood.items()}
        losses = [sum(values) / len(values) for values in zip(*(m.loss for m in members), strict=False)]
        parameters = Held(self.family.joined(family), self.model.likelihood.joined(likelihood)).flat()
        names = members[0].diagnostics
        diagnostics = {name: sum(m.diagnostics[name] for m in members) / len(members) for name in names}
        warnings = list(dict.fromkeys(warning for m in members for warning in m.warnings))
        return ReplicaResult(parameters, max(m.epochs for m in members), losses, None, diagnostics, warnings)


def named_streams(*purposes: str) -> dict[str, str]:
    """Return labels of streams by purpose."""
    return {purpose: FUNCTIONS_LABEL if purpose == "functions" else purpose for purpose in purposes}


def subset_of(value: Any, indices: Sequence[int], index: Tensor) -> Any:
    """Cut a value of a state down to the replicas at these ``indices``, also given as the tensor ``index``."""
    return _mapped(value, lambda each: each.subset(indices) if isinstance(each, Streams) else each.detach()[index])


def _saved(value: Any) -> Any:
    return _mapped(value, lambda each: each.state() if isinstance(each, Streams) else each.detach(), plain=True)


def _restored(value: Any, saved: Any, device: torch.device) -> Any:
    """Return ``saved`` in the structure of ``value``; random streams are restored in place."""
    if isinstance(value, Streams):
        value.restore(saved)
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{name: _restored(getattr(value, name), each, device) for name, each in saved.items()})
    if isinstance(value, dict) and value.keys() == saved.keys():
        return {name: _restored(value[name], each, device) for name, each in saved.items()}
    return _copied(saved, device)


def _copied(value: Any, device: torch.device) -> Any:
    """Return a deep copy with its tensors on the device."""
    return _mapped(value, lambda each: each.to(device, copy=True))


def _mapped(value: Any, change: Callable[[Any], Any], plain: bool = False) -> Any:
    """Change every tensor and every stream in dicts, lists and dataclasses; ``plain``: dataclasses become dicts."""
    if isinstance(value, Tensor | Streams):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(each, change, plain) for name, each in value.items()}
    if isinstance(value, list):
        return [_mapped(each, change, plain) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        held = {each.name: _mapped(getattr(value, each.name), change, plain) for each in fields(value)}
        return held if plain else replace(value, **held)
    return value
