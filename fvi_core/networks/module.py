"""Any ``torch.nn.Module`` as a network.

Three ways are tried in order, and each is compared with the module, at parameters that differ between replicas and
samples, before it is used. "translated": a module that is a sequence of known layers becomes these layers. "leaves":
each submodule with parameters becomes a layer of this package where possible, or else is called at the parameters of
each replica and sample; code between them runs unchanged. "whole": the module before its head is called at the
parameters of each replica and sample.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fvi_core.held import BUFFER
from fvi_core.networks import checks
from fvi_core.networks.layers import Linear, Parameters, ParametricLayer, apart
from fvi_core.networks.network import HEAD, MOMENTUM, Network, Pass, Tape
from fvi_core.networks.opaque import NORMS, Opaque, UnfitModule, aliases, by_every_name
from fvi_core.networks.stand_in import Body
from fvi_core.networks.translate import Place, chain, known, leaves, places
from fvi_core.random import Streams

Make = Callable[[], nn.Module]
LARGE = 10_000_000
"""Number of parameters above which one replica is compared rather than two."""
WAYS = (("translated", True, True), ("leaves", True, True), ("leaves", False, True), ("leaves", False, False)) + (
    ("whole", True, True),
    ("whole", True, False),
)
"""Ways to a network: whether samples share their inputs, and whether opaque modules are vectorised over samples."""


class ModuleNetwork(Network):
    """Network ``head(body(x))`` of a module: its last linear layer, and everything before it.

    ``module``: an nn.Module, whose values the first replica starts from, or a function that makes one, initialised
    anew. ``example``: two or more of its inputs ``[N, ...]``. ``head``: the name of the last layer, where it is not the
    nn.Linear whose output the module returns. ``way``: the only one to try. Parameters without ``requires_grad`` are
    constants. The module is evaluated as in ``eval()``; batch normalisation alone has a training mode. Raises
    :class:`UnfitModule`; warns where random numbers of a module in training are left out.
    """

    def __init__(self, module: nn.Module | Make, example: Tensor, head: str | None = None, way: str | None = None):
        self.original = module if isinstance(module, nn.Module) else None
        self.make: Make = partial(_anew, module) if isinstance(module, nn.Module) else module
        self.module = checks.copied(self.make() if self.original is None else self.original).cpu().eval()
        checks.refuse_kind(self.module)
        self.example = example = example[:3].detach().cpu().clone()
        self.tokens = None if example.is_floating_point() else example.dtype
        own = next((value.dtype for value in self.module.parameters()), torch.float32)
        example = example.to(own) if self.tokens is None else example
        for each in self.module.modules():
            if getattr(each, "inplace", False):
                each.inplace = False  # type: ignore[assignment]
        self.head_name, self.widest, self.ranks = checks.look(self.module, example, head)
        checks.refuse_state(self.module, example)
        checks.refuse_pursuit(self.module, example)
        self.random = checks.random_in_training(self.module, example)
        norms = {name: each for name, each in self.module.named_modules() if isinstance(each, NORMS)}
        self.momenta = checks.momenta(norms)
        self.refused: list[str] = []
        for name, shared, vectorised in WAYS:
            if way not in (None, name):
                continue
            try:
                self._build(name, shared, vectorised, example)
                self._compare(example)
            except Exception as error:  # reported if no way works
                self.refused.append(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
            else:
                self.way = name
                break
        else:
            raise UnfitModule(f"the module cannot be a network: {'; '.join(dict.fromkeys(self.refused))}")
        if self.random:
            warnings.warn(self.random, stacklevel=2)

    def _build(self, way: str, shared: bool, vectorised: bool, example: Tensor) -> None:
        last = self.module.get_submodule(self.head_name)
        assert isinstance(last, nn.Linear)
        body = copy.deepcopy(self.module)
        if way == "translated":
            translation = chain(body, self.head_name, example)
            if translation is None:
                raise UnfitModule("it is no sequence of known layers alone")
            layers, where = translation
        else:
            layers, where = self._stand_ins(body, way, shared, vectorised)
        head = Linear(HEAD, last.in_features, last.out_features)
        self.states: dict[str, Place] = where | places(head, self.head_name)
        super().__init__([*layers, head], tuple(example.shape[1:]))

    def _stand_ins(
        self, module: nn.Module, way: str, shared: bool, vectorised: bool
    ) -> tuple[list[Any], dict[str, Place]]:
        """Return a body whose submodules are stand-ins, and the places of its layers' parameters."""
        body, where = Body(self.tokens, shared), dict[str, Place]()
        put(module, self.head_name, nn.Identity())
        own = [name for name, value in module._parameters.items() if value is not None and value.requires_grad]
        if way == "whole":
            layer = Opaque("", module, vectorised)
            body.settle(body.stand_in(layer, module), module)
            return [body], places(layer, "")
        if own:
            raise UnfitModule(f"parameters {', '.join(own)} are in no submodule")
        for path, submodule in list(leaves(module)):
            layer, axes = known(path, submodule, self.ranks.get(path, 0), vectorised)
            put(module, path, body.stand_in(layer, submodule, axes))
            where |= places(layer, path)
        body.settle(module, self.module)
        return [body], where

    @cached_property
    def width(self) -> int:
        """Most numbers that a submodule takes or gives for one input."""
        return self.widest if isinstance(self.layers[0], Body) else super().width

    @property
    def _shapes_of_one(self) -> list[tuple[ParametricLayer, Tensor, Tensor]]:
        if not isinstance(self.layers[0], Body):
            return super()._shapes_of_one
        tape, shapes = Tape(), self.shapes | self.buffers  # with numbers: a module's constants have them
        with torch.no_grad():
            zeros = {name: torch.zeros(1, 1, *shape) for name, shape in shapes.items()}
            self(zeros, torch.zeros(1, 1, *self.input_shape), tape=tape)
        return tape.entries

    @property
    def buried(self) -> list[str]:
        """Names of nn.Dropout modules within submodules that are called as a whole, where nothing is masked."""
        opaque = [layer for layer in self.parametrised if isinstance(layer, Opaque)]
        inside = ((f"{each.name}.{key}".strip("."), m) for each in opaque for key, m in each.module.named_modules())
        return [name for name, m in inside if type(m) is nn.Dropout and m.p]

    @property
    def constants(self) -> dict[str, Tensor]:
        """Frozen parameters and buffers of the module that are no running statistics, by name."""
        held = {place.name for place in self.states.values()}
        counters = {f"{name.removeprefix(BUFFER).rpartition('.')[0]}.num_batches_tracked" for name in self.buffers}
        state = dict(self.module.named_parameters()) | dict(self.module.named_buffers())
        return {name: value.detach() for name, value in state.items() if name not in held | counters}

    def constants_in(self, dtype: torch.dtype) -> None:
        """Turn what passes read beside parameters, frozen parameters and buffers of the module's type, into ``dtype``;
        ``constants`` and ``module_of`` keep the module's own."""
        if isinstance(body := self.layers[0], Body):
            own = next(self.module.parameters()).dtype
            for each in (body.module, *(leaf.module for leaf in body.leaves if isinstance(leaf, Opaque))):
                each._apply(lambda value: value.to(dtype) if value.dtype == own else value)

    # parameters to and from modules

    def parameters_of(self, module: nn.Module) -> Parameters:
        """Return ``[*shape]`` of each parameter and running statistic of a module of this structure."""
        state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        values = {name: state[place.name].detach() for name, place in self.states.items()}
        return {name: value.mT if self.states[name].transposed else value for name, value in values.items()}

    def state_of(self, parameters: Parameters, r: int = 0, s: int = 0) -> dict[str, Tensor]:
        """Return the module's state of one replica and sample of parameters ``[R, S, *shape]``."""
        state = {}
        for name, place in self.states.items():
            if name in parameters:
                value = parameters[name][min(r, len(parameters[name]) - 1), min(s, parameters[name].shape[1] - 1)]
                state[place.name] = value.mT if place.transposed else value
        return state

    def module_of(self, parameters: Parameters, s: int = 0) -> nn.Module:
        """Return a plain module with the weights of one sample of parameters ``[1, S, *shape]``."""
        module = copy.deepcopy(self.module)
        with torch.no_grad():
            own = dict(module.named_parameters()) | dict(module.named_buffers())
            for name, value in self.state_of(parameters, 0, s).items():
                own[name].copy_(value)
        return module

    def init(self, streams: Streams) -> Parameters:
        seeds, drawn = streams.integers(2**31, 1).flatten().tolist(), []
        for r, seed in enumerate(seeds):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                drawn.append(self.parameters_of(self.original if r == 0 and self.original is not None else self.make()))
        stacked = {name: torch.stack([each[name] for each in drawn]) for name in self.shapes}
        return {name: value.to(streams.device, streams.dtype).contiguous() for name, value in stacked.items()}

    def init_buffers(self, streams: Streams) -> Parameters:
        fresh = super().init_buffers(streams)
        if self.original is not None:
            own = self.parameters_of(self.original)
            for name, value in fresh.items():
                value[0] = own[name]
        return fresh

    def track(self, parameters: Parameters, statistics: Parameters) -> Parameters:
        moved = super().track(parameters, statistics)
        for name, share in self.momenta.items():
            if name in moved and share != MOMENTUM:
                moved[name] = torch.lerp(parameters[name], moved[name], share / MOMENTUM)
        return moved

    # passes

    def _run(self, layers: Sequence, parameters: Parameters, a: Tensor, ride: Pass) -> Tensor:
        if not layers or not isinstance(layers[0], Body):
            return super()._run(layers, parameters, a, ride)
        # Samples of the head alone share the body's features.
        own = self.shapes if ride.dropout is not None else self.shapes.keys() - self.head.shapes.keys()
        samples = max((parameters[name].shape[1] for name in own if name in parameters), default=1)
        samples = samples if ride.apply is None else max(samples, ride.apply.samples)
        lead = len(a), samples
        if self.convolutional and math.prod(lead) > 1 and ride == Pass(statistics=ride.statistics):
            phi = self._one_by_one(layers[0], parameters, a, lead, ride)
        else:
            phi = self._features(layers[0], parameters, a, samples, ride)
        return super()._run(layers[1:], parameters, phi, ride)

    def _features(self, body: Body, parameters: Parameters, a: Tensor, samples: int, ride: Pass) -> Tensor:
        def apply(layer: ParametricLayer, a: Tensor) -> Tensor:
            return self._apply(layer, parameters, a, ride)

        factors = ride.apply is not None
        phi = body(apply, a, samples, ride.dropout, factors, ride.tape is not None, self.apart)
        if phi.dim() != 4 or phi.shape[-1] != self.head.inputs:
            raise UnfitModule(f"expected features [N, {self.head.inputs}] before the head, found {list(phi.shape[2:])}")
        return phi

    def _one_by_one(self, body: Body, parameters: Parameters, a: Tensor, lead: tuple[int, int], ride: Pass) -> Tensor:
        """Return features of one replica and sample after another, without joining their images: a quarter faster."""
        parts = {name: apart(value, lead) for name, value in parameters.items() if name not in self.head.shapes}
        features, statistics = [], list[Parameters]()
        for i, inputs in enumerate(apart(a, lead)):
            own = {name: values[i][None, None] for name, values in parts.items()}
            statistics.append({})
            features.append(self._features(body, own, inputs[None, None], 1, Pass(statistics=statistics[-1]))[0, 0])
        if ride.statistics is not None:
            for name in statistics[0]:
                ride.statistics.setdefault(
                    name, torch.cat([each[name] for each in statistics]).squeeze(1).unflatten(0, lead)
                )
        return torch.stack(features).unflatten(0, lead)

    def _apply(self, layer: ParametricLayer, parameters: Parameters, a: Tensor, ride: Pass) -> Tensor:
        if not isinstance(layer, Opaque):
            return super()._apply(layer, parameters, a, ride)
        z = layer(parameters, a, ride.statistics)
        if ride.tape is not None:
            ride.tape.entries.append((layer, a, z))
        return z

    def compiled(self) -> Network:
        if isinstance(self.layers[0], Body):
            raise UnfitModule("training option 'compile' is for translated modules; leave it False")
        return super().compiled()

    @torch.no_grad()
    def _compare(self, x: Tensor) -> None:
        """Raise UnfitModule unless values are the module's, at two replicas and two samples."""
        replicas = 2 if self.n_parameters < LARGE else 1
        x = x if self.tokens is None else x.to(torch.float32)
        x = torch.stack([x, x.flip(0)])[:replicas]
        generator = torch.Generator().manual_seed(0)
        at = {}
        for name, value in self.parameters_of(self.module).items():
            noise = torch.rand((replicas, 2, *value.shape), generator=generator, dtype=value.dtype)
            at[name] = value * (0.9 + 0.2 * noise) + (0.02 * (noise - 0.5) if name in self.shapes else 0)
        values = self(at, x)
        repeated = getattr(self.layers[0], "repeated", None)
        if repeated:  # its gradients would be those of several layers
            raise UnfitModule(f"submodules {', '.join(repeated)} are called more than once in a pass")
        names = aliases(self.module)
        for r in range(replicas):
            for s in range(2):
                inputs = x[r] if self.tokens is None else x[r].to(self.tokens)
                state = by_every_name(self.state_of(at, r, s), names)
                want = functional_call(self.module, state, inputs, tie_weights=False)
                same = want.shape == values[r, s].shape
                if not same or not torch.allclose(values[r, s], want, rtol=1e-3, atol=1e-4 + 1e-4 * want.abs().max()):
                    raise UnfitModule(
                        "values are not those of the module, whose inputs the first axis does not tell apart"
                    )


def _anew(module: nn.Module) -> nn.Module:
    """A copy with fresh parameters. Raises UnfitModule for a submodule that cannot draw all of them."""
    fresh = copy.deepcopy(module)
    # Those with a private method last: nn.MultiheadAttention's sets a bias of its submodule.
    for name, each in sorted(fresh.named_modules(), key=lambda named: not hasattr(named[1], "reset_parameters")):
        own = {key: value for key, value in each._parameters.items() if value is not None and value.requires_grad}
        if not own:
            continue
        where = f"submodule {name!r}" if name else "the module"
        draw = getattr(each, "reset_parameters", getattr(each, "_reset_parameters", None))
        if draw is None:
            raise UnfitModule(f"{where} has no reset_parameters(); give a function that makes the module")
        for value in own.values():
            value.data.fill_(torch.nan)
        draw()
        if left := [key for key, value in each._parameters.items() if key in own and value.isnan().any()]:  # type: ignore[union-attr]
            raise UnfitModule(
                f"{where}: {draw.__name__}() does not draw {', '.join(left)}; give a function that makes the module"
            )
    return fresh


def put(module: nn.Module, path: str, new: nn.Module) -> None:
    """Put a module in place of a submodule."""
    # set_submodule() refuses the path "" and calls __setattr__ of the user's classes.
    parent, _, last = path.rpartition(".")
    module.get_submodule(parent)._modules[last] = new
