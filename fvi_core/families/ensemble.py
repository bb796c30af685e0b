"""Ensemble of any family."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from fvi_core.data import TrainingSet
from fvi_core.families.base import Family, FitData, Functions, buffers_of, for_members
from fvi_core.held import Held
from fvi_core.networks import Network, Parameters
from fvi_core.random import Streams, seed_from
from fvi_core.registry import FAMILIES, PartSpec, checked, nested


@FAMILIES.register("ensemble")
@dataclass(frozen=True)
class Ensemble(Family):
    """``q = 1/M sum_m q_m`` with members of the family ``base`` (Lakshminarayanan et al. 2017).

    ``joint`` False: members are trained independently, each with its own initialisation, batches and random numbers,
    and only predict together. ``joint`` True: members see the same batches and share one objective, whose divergence
    may compare them (dirichlet2022: the M members are the M samples of the predictive). Members trained with a noise of
    their own predict with one, of the mean of its parameters, where Lakshminarayanan et al. keep each member's.
    """

    base: PartSpec = nested(FAMILIES)
    size: int = checked(5, least=1)
    joint: bool = False

    @property
    def reads_numbers(self) -> bool:  # type: ignore[override]  # the kind of ensemble decides
        return self.joint  # the seeds of its members' draws

    @property
    def networks(self) -> int:  # type: ignore[override]  # a hyper-parameter
        return self.size * self.member.networks

    @property
    def shared_by(self) -> int:  # type: ignore[override]  # its members decide
        return self.member.shared_by

    @property
    def members(self) -> int:  # type: ignore[override]  # a hyper-parameter
        return self.size * self.member.members

    def independent(self) -> tuple[Family, int]:
        return (self, 1) if self.joint else (self.member, self.size)

    @property
    def member(self) -> Family:
        return FAMILIES.build(self.base)

    def member_streams(self, streams: Streams) -> Streams:
        return streams if self.joint else self.streams_of_members(streams)

    def joined(self, parameters: Parameters) -> Parameters:
        return parameters if self.joint else self.group(parameters)

    def streams_of_members(self, streams: Streams) -> Streams:
        """Return independent streams of R*M members, member m of replica r at r*M + m."""
        seeds = [seed_from(seed, "member", m) for seed in streams.seeds for m in range(self.size)]
        return Streams(seeds, streams.device, streams.dtype)

    def group(self, parameters: Parameters) -> Parameters:
        """Reshape members' parameters ``[R*M, ...]`` to an ensemble's ``[R, M, ...]``."""
        return {name: value.unflatten(0, (-1, self.size)) for name, value in parameters.items()}

    def init(self, network: Network, streams: Streams) -> Parameters:
        return self.group(self.member.init(network, self.streams_of_members(streams)))

    def prepare(self, network: Network, parameters: Parameters, train: TrainingSet, streams: Streams) -> Parameters:
        own = replace(train, x=for_members(train.x, self.size), y=for_members(train.y, self.size))
        return self.group(self.member.prepare(network, apart(parameters), own, self.streams_of_members(streams)))

    def initial_network(self, network: Network, parameters: Parameters) -> Parameters:
        return {}  # every member has its own

    def after_step(self, network: Network, parameters: Parameters, x: Tensor, y: Tensor) -> Parameters:
        x, y = for_members(x, self.size), for_members(y, self.size)
        return self.group(self.member.after_step(network, apart(parameters), x, y))

    def after_epoch(self, network: Network, parameters: Parameters, epoch: int, epochs: int) -> Parameters:
        return self.group(self.member.after_epoch(network, apart(parameters), epoch, epochs))

    def condition(self, parameters: Parameters, fitting: FitData) -> Parameters:
        family, likelihood, _ = Held.of(parameters)
        shared = {name: value.repeat_interleave(self.size, dim=0) for name, value in likelihood.items()}
        own = fitting.of_members(self.member, self.size, self.streams_of_members(fitting.streams))
        fitted = Held.of(self.member.condition(Held(apart(family), shared).flat(), own)).family
        return Held(self.group(fitted), likelihood).flat()

    def remarks(self, parameters: Parameters) -> list[str]:
        return self.member.remarks(apart(parameters))

    def weights(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Parameters:
        members, own, each = self._drawn_from(parameters, samples, streams)
        drawn = buffers_of(members) | self.member.weights(network, members, each, own)
        count = max(value.shape[1] for value in drawn.values())  # running statistics have one for all draws
        return {
            name: value.expand(-1, count, *value.shape[2:]).unflatten(0, (-1, self.size)).flatten(1, 2)
            for name, value in drawn.items()
        }

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        members, own, each = self._drawn_from(parameters, samples, streams)
        functions = self.member.functions(network, members, each, own)

        return lambda x: functions(for_members(x, self.size)).unflatten(0, (-1, self.size)).flatten(1, 2)

    def _drawn_from(self, parameters: Parameters, samples: int, streams: Streams) -> tuple[Parameters, Streams, int]:
        """Return members' parameters and streams ``[R*M, ...]``, and the number of samples drawn from each."""
        # Fresh seeds at every call: the member streams are rebuilt from the replica's own next integers.
        draws = streams.integers(2**62, self.size)
        own = Streams([int(s) for s in draws.flatten()], streams.device, streams.dtype)
        return apart(parameters), own, max(1, samples // self.size)


def apart(parameters: Parameters) -> Parameters:
    """Return an ensemble's parameters ``[R, M, ...]`` as its members', ``[R*M, ...]``."""
    return {name: value.flatten(0, 1) for name, value in parameters.items()}
