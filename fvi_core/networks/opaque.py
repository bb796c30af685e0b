"""A module that no layer of this package knows, called at the parameters of each replica and sample."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from fvi_core.held import BUFFER
from fvi_core.networks.layers import Parameters, PlacesLayer, apart

HERE = object()
"""Stands for the one tensor that a module is called with, among its other arguments."""
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
SIDES = ("mean", "var")


class UnfitModule(ValueError):
    """Error: a module cannot be a network. The message names the submodule, what was expected and what was found.

    >>> fvi.fit(torch.nn.Sequential(net, torch.nn.Softmax(1)), (x, y))
    Traceback (most recent call last):
    fvi_core.networks.opaque.UnfitModule: no nn.Linear gives the module's output: leave softmax to the likelihood, ...
    """


class Opaque(PlacesLayer):
    """``module(a)`` at parameters ``[R, S, *shape]``, by ``functional_call``: vectorised over replicas and samples, or
    one call for each, which batch normalisation inside the module needs in training, and recurrent layers always.

    Parameters without ``requires_grad`` are constants of the module.
    """

    def __init__(self, name: str, module: nn.Module, vectorised: bool = True):
        self.name, self.module, self.vectorised = name, module, vectorised
        self.own = {key: tuple(value.shape) for key, value in module.named_parameters() if value.requires_grad}
        self.norms = {key: each for key, each in module.named_modules() if isinstance(each, NORMS)}
        self.aliases = aliases(module)
        embeddings = {path: each for path, each in module.named_modules() if isinstance(each, nn.Embedding)}
        rows = {f"{path}.weight".lstrip("."): each.padding_idx for path, each in embeddings.items()}
        self.padding = {name: row for name, row in rows.items() if row is not None}
        self.inputs = self.outputs = 1
        self.form: tuple[tuple, dict] = ((HERE,), {})  # the arguments of its last call
        self.extra: tuple = ()  # outputs besides its values: Nones

    def _full(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    @property
    def plain(self) -> bool:
        """Whether the module is a linear or convolutional layer, of a form that no layer of this package has."""
        return isinstance(self.module, nn.Linear | nn.Conv2d)

    @property
    def described(self) -> str:
        """Name and type of the module, for messages."""
        form = " (without a bias, frozen, or of another form)" if self.plain else ""
        return f"submodule {self.name!r}, {type(self.module).__name__}{form},"

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {self._full(key): shape for key, shape in self.own.items()}  # looked at in each call

    @property
    def fan_in(self) -> int:
        """Return the number of inputs of a unit of the largest weight, whose first axis has the units."""
        return max((math.prod(shape[1:]) for shape in self.own.values()), default=1)

    @cached_property
    def buffers(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the running means and variances inside the module."""
        return {self._statistic(key, side): (each.num_features,) for key, each in self.norms.items() for side in SIDES}

    def _statistic(self, key: str, side: str) -> str:
        return BUFFER + self._full(f"{key}.{side}")

    def __call__(self, parameters: Parameters, a: Tensor, statistics: Parameters | None = None) -> Tensor:
        """``statistics``, where it is given, receives those ``[R, S, channels]`` of batch normalisation inside."""
        names = self.shapes
        lead = tuple(map(max, zip(a.shape[:2], *(parameters[name].shape[:2] for name in names))))
        if lead == (1, 1) and not self.norms:
            state = {key: parameters[name].reshape(self.own[key]) for key, name in zip(self.own, names)}
            return self._value(state, a.squeeze(0).squeeze(0))[None, None]
        a = a.expand(*lead, *a.shape[2:])
        if self.vectorised and not self.norms:
            drawn = {k: parameters[self._full(k)].expand(*lead, *s).flatten(0, 1) for k, s in self.own.items()}
            with plain_operations(True):  # no other attention is vectorised
                return vmap(self._value)(drawn, a.flatten(0, 1)).unflatten(0, lead)
        batch: dict[str, list[Tensor]] = {}
        own = (apart(parameters[name], lead) for name in names)
        each_state = [dict(zip(self.own, values)) for values in zip(*own)]
        running = {name: apart(parameters[name], lead) for name in self.buffers if name in parameters}
        inputs = apart(a, lead)
        z = [
            self._call(at, {name: values[i] for name, values in running.items()}, each, batch)
            for i, (at, each) in enumerate(zip(each_state or [{}] * len(inputs), inputs, strict=True))
        ]
        if statistics is not None:
            for name, values in batch.items():
                statistics.setdefault(name, torch.stack(values).detach().unflatten(0, lead))
        return (torch.stack(z) if len(z) > 1 else z[0].unsqueeze(0)).unflatten(0, lead)

    def _call(self, state: Parameters, running: Parameters, a: Tensor, batch: dict[str, list[Tensor]]) -> Tensor:
        """``module(a)`` of one replica and sample; ``batch`` receives the statistics of batch normalisation."""
        for key, norm in self.norms.items():
            names = [self._statistic(key, side) for side in SIDES]
            norm.training = not running
            norm.momentum = 1.0  # the call then leaves the batch's own statistics in the buffers
            held = [running[name] if running else a.new_zeros(norm.num_features) for name in names]
            state |= {f"{key}.running_mean": held[0], f"{key}.running_var": held[1]}
            state[f"{key}.num_batches_tracked"] = torch.zeros((), dtype=torch.long)
            for name, value in zip(names, held, strict=True) if norm.training else ():
                batch.setdefault(name, []).append(value)
        return self._value(state, a)

    def _value(self, state: dict[str, Tensor], a: Tensor) -> Tensor:
        positional = tuple(a if each is HERE else each for each in self.form[0])
        options = {name: a if each is HERE else each for name, each in self.form[1].items()}
        state = by_every_name(state, self.aliases)
        # The row of the padding is a constant: torch gives it gradients where it is vectorised, and in forward mode.
        for name, row in self.padding.items():
            if name in state:
                rows = torch.arange(len(state[name]), device=a.device)[:, None]
                state[name] = torch.where(rows == row, state[name].detach(), state[name])
        z = functional_call(self.module, state, positional, options, tie_weights=False)
        if isinstance(z, tuple):  # attention gives its values, and None for its weights
            self.extra = z[1:]
            if any(each is not None for each in self.extra):
                raise UnfitModule(f"submodule {self.name!r}: expected one tensor, found {len(z)}")
            z = z[0]
        return z

    def jacobian(self, a: Tensor, delta: Tensor, parameters: Parameters) -> Parameters:
        """Gradients ``[R, N, *shape]``; batch normalisation takes its running statistics."""
        fixed = {}
        for key, norm in self.norms.items():
            norm.training = False
            for side in SIDES:
                fixed[f"{key}.running_{side}"] = parameters[self._statistic(key, side)][:, 0]

        def gradient(state: dict[str, Tensor], fixed: dict[str, Tensor], a: Tensor, delta: Tensor) -> dict[str, Tensor]:
            def value(state: dict[str, Tensor]) -> Tensor:
                return self._value(state | fixed, a.unsqueeze(0)).squeeze(0)

            return vjp(value, state)[1](delta)[0]

        state, lead = {key: parameters[self._full(key)][:, 0] for key in self.own}, a.shape[:2]

        def each(values: Parameters) -> Parameters:
            """Repeat values for each input: recurrent layers refuse a batch of inputs at a single state."""
            return {k: v.unsqueeze(1).expand(*lead, *v.shape[1:]).flatten(0, 1) for k, v in values.items()}

        recurrent = any(isinstance(each, nn.RNNBase) for each in self.module.modules())
        with plain_operations(True), plain_recurrence(recurrent), torch.set_grad_enabled(True):
            gradients = vmap(gradient)(each(state), each(fixed), a.flatten(0, 1), delta.flatten(0, 1))
        return {self._full(key): value.unflatten(0, lead) for key, value in gradients.items()}


def aliases(module: nn.Module) -> dict[str, str]:
    """Map further names of a tied parameter to its first. A submodule under two names has one set of parameters, which
    ``tie_weights`` of functional_call would set twice, and leave changed."""
    first: dict[int, str] = {}
    further = {}
    for path, each in module.named_modules():
        for key, value in each.named_parameters(recurse=False):
            name = f"{path}.{key}".lstrip(".")
            if first.setdefault(id(value), name) != name:
                further[name] = first[id(value)]
    return further


def by_every_name(state: dict[str, Tensor], aliases: dict[str, str]) -> dict[str, Tensor]:
    """Return the state of a module with the further names of its tied parameters too."""
    return state | {name: state[first] for name, first in aliases.items() if first in state}


@contextlib.contextmanager
def plain_recurrence(wanted: bool) -> Iterator[None]:
    """Turn off oneDNN in this context if ``wanted``: its recurrent layers lack forward-mode derivatives and batches."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(before and not wanted)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


@contextlib.contextmanager
def plain_operations(twice: bool) -> Iterator[None]:
    """Turn off the pass of nn.TransformerEncoderLayer that reads its layers' parameters, and where values are
    differentiated ``twice``, or forwards, the kernels of attention and normalisation that cannot be.
    """
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with contextlib.ExitStack() as stack:
            if twice:
                stack.enter_context(sdpa_kernel(SDPBackend.MATH))
                stack.enter_context(PlainNorms())
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


class PlainNorms(TorchFunctionMode):
    """Layer and instance normalisation by elementary operations.

    The derivative of a Jacobian or of a forward derivative through PyTorch's own takes mean and deviation as constants.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return PLAIN.get(func, func)(*args, **(kwargs or {}))


def _layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    return _affine(_standardised(x, range(-len(shape), 0), eps), weight, bias)


def _instance_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if not use_input_stats:
        return F.instance_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    across = (-1, *[1] * (x.dim() - 2))
    scale, shift = (None if each is None else each.reshape(across) for each in (weight, bias))
    return _affine(_standardised(x, range(2, x.dim()), eps), scale, shift)


def _standardised(x: Tensor, axes: Sequence[int], eps: float) -> Tensor:
    variance, mean = torch.var_mean(x, tuple(axes), correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + eps)


def _affine(z: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    z = z if weight is None else z * weight
    return z if bias is None else z + bias


PLAIN: dict[Any, Any] = {F.layer_norm: _layer_norm, F.instance_norm: _instance_norm}
