"""Layers as pure functions of their parameters, over a replica axis R and a sample axis S.

Parameters are ``[R, S, *shape]`` and activations ``[R, S, N, ...]``, where S may be 1 on either side; nothing mixes
replicas or samples. A layer with parameters names them in ``shapes`` and draws the initial ones in ``init``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from fvi_core.held import BUFFER
from fvi_core.products import product
from fvi_core.random import Streams

Parameters = dict[str, Tensor]
After = Callable[[Tensor], Tensor]
Masks = Callable[[str, Tensor], Tensor]
"""Activations at a dropout site of that name, masked."""
ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "gelu": F.gelu, "softplus": F.softplus}
SLOPED: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "relu": lambda gradient, z, a: torch.ops.aten.threshold_backward(gradient, a, 0),
    "tanh": lambda gradient, z, a: torch.ops.aten.tanh_backward(gradient, a),
    "sigmoid": lambda gradient, z, a: torch.ops.aten.sigmoid_backward(gradient, a),
    "gelu": lambda gradient, z, a: torch.ops.aten.gelu_backward(gradient, z),
    "softplus": lambda gradient, z, a: torch.ops.aten.softplus_backward(gradient, z, 1, 20),
}
"""Gradient times the slopes of an activation at z, of value a: autograd's result, differentiable again at the cost of a
forward pass."""

UNIFORM = "uniform"
VARIANCES: dict[str, Callable[[int, int], float]] = {
    "lecun": lambda fan_in, fan_out: 1 / fan_in,
    "haiku": lambda fan_in, fan_out: 0.774 / fan_in,
    "glorot": lambda fan_in, fan_out: 2 / (fan_in + fan_out),
    "he": lambda fan_in, fan_out: 2 / fan_in,
}
"""Variance of a layer's initial weights, normal and centred, beside which biases start at 0. "haiku" is the variance of
Haiku's default, a normal distribution of variance 1 / fan_in truncated at two deviations."""
INITS = (UNIFORM, *VARIANCES)


COPIED = 2**26
"""Most numbers in the copies of a weight matrix for all samples, 256 MiB in float32. Instead of more, one product takes
the inputs of all samples; its last bits differ."""


class ParametricLayer:
    """A layer with parameters, uniform on +-1/sqrt(fan_in) at the start (PyTorch's default), or, where it has a
    ``deviation``, of weights ``N(0, deviation^2)`` and biases 0."""

    name: str
    inputs: int
    outputs: int
    deviation: float | None = None

    @property
    def described(self) -> str:
        """Kind and name, for messages."""
        return f"{type(self).__name__} {self.name!r}"

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the parameters."""
        raise NotImplementedError

    @property
    def buffers(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of running statistics."""
        return {}

    @property
    def fan_in(self) -> int:
        return self.inputs

    @property
    def fan_out(self) -> int:
        return self.outputs

    @property
    def values(self) -> int:
        """Number of outputs of a network with this head."""
        return self.outputs

    def init(self, streams: Streams) -> Parameters:
        """Initial parameters ``[R, *shape]``."""
        if self.deviation is not None:
            deviations = {name: 0.0 if name.endswith(".bias") else self.deviation for name in self.shapes}
            return {name: deviations[name] * streams.normal(*shape) for name, shape in self.shapes.items()}
        bound = 1 / math.sqrt(self.fan_in)
        return {name: (streams.uniform(*shape) * 2 - 1) * bound for name, shape in self.shapes.items()}

    def __call__(self, parameters: Parameters, a: Tensor) -> Tensor:
        """Return outputs ``[R, S, N, ...]`` at inputs a, which may be shared by the samples."""
        raise NotImplementedError

    def shifted(self, z: Tensor, bias: Tensor) -> Tensor:
        """Outputs z ``[R, S, N, out, ...]`` and a bias ``[R, S, out]``."""
        return z + bias.unsqueeze(2)[(..., *[None] * (z.dim() - 4))]


class PlacesLayer(ParametricLayer):
    """Layer whose weights serve several places of one input, in the last axis: ``[R, S, N, units, places]``."""

    def jacobian(self, a: Tensor, delta: Tensor, parameters: Parameters) -> Parameters:
        """Gradients ``[R, N, *shape]`` of the parameters ``[R, 1, *shape]``, for inputs a and gradients delta of
        outputs, without samples.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Affine(ParametricLayer):
    """A layer with weights ``W [in, out]`` and a bias ``b [out]``."""

    name: str
    inputs: int
    outputs: int
    deviation: float | None = None

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {f"{self.name}.weight": (self.inputs, self.outputs), f"{self.name}.bias": (self.outputs,)}


@dataclass(frozen=True)
class Linear(Affine):
    """``z = a W + b``."""

    def __call__(self, parameters: Parameters, a: Tensor) -> Tensor:
        # Computed transposed, units before points: with few units and many points every product then runs along the
        # longer axis, and the layers of many samples that share their inputs are one product. Returned as a transposed
        # view.
        weight, bias = parameters[f"{self.name}.weight"], parameters[f"{self.name}.bias"]
        samples = max(a.shape[1], weight.shape[1])
        if a.shape[1] == 1 < samples:
            return self._shared_inputs(weight, bias, a).transpose(-1, -2)
        if weight.shape[1] == 1 and samples * weight[0].numel() > COPIED:
            z = product(weight.squeeze(1).mT, a.flatten(1, 2).mT, bias.squeeze(1).unsqueeze(-1))
            return z.mT.unflatten(1, (samples, -1))
        z = product(_batch(weight.mT, samples), _batch(a.mT, samples), _batch(bias, samples).unsqueeze(-1))
        return z.view(-1, samples, *z.shape[1:]).mT

    def _shared_inputs(self, weight: Tensor, bias: Tensor, a: Tensor) -> Tensor:
        """``[R, S, out, N]`` for weights ``[R, S, in, out]`` and inputs ``[R, 1, N, in]`` that all S samples share."""
        a = torch.cat([a.squeeze(1).transpose(-1, -2), a.new_ones(a.shape[0], 1, a.shape[2])], dim=1)
        stacked = torch.cat([weight, bias.unsqueeze(-2)], dim=-2).transpose(1, 2).flatten(2)
        z = [torch.mm(w.t(), x) for w, x in zip(stacked, a, strict=True)]
        return (torch.stack(z) if len(z) > 1 else z[0].unsqueeze(0)).unflatten(1, (weight.shape[1], self.outputs))


@dataclass(frozen=True)
class Conv2d(ParametricLayer):
    """A convolution with ``W [out, in, k, k]`` and zero padding; one call per replica and set of weights.

    Images are laid out channels last, in which convolutions are faster.
    """

    name: str
    inputs: int
    outputs: int
    kernel: int = 3
    padding: int = 1
    stride: int = 1
    bias: bool = True
    deviation: float | None = None

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        shapes = {f"{self.name}.weight": (self.outputs, self.inputs, self.kernel, self.kernel)}
        return shapes | ({f"{self.name}.bias": (self.outputs,)} if self.bias else {})

    @property
    def fan_in(self) -> int:
        return self.inputs * self.kernel**2

    @property
    def fan_out(self) -> int:
        return self.outputs * self.kernel**2

    def __call__(self, parameters: Parameters, a: Tensor, after: After | None = None) -> Tensor:
        """``after`` changes the images of each set of weights before they are joined; it may work in place."""
        weight, bias = parameters[f"{self.name}.weight"], parameters.get(f"{self.name}.bias")
        if weight.shape[1] == 1 and a.shape[1] > 1:  # samples that share their weights are one batch
            return self(parameters, a.flatten(1, 2).unsqueeze(1), after).unflatten(2, a.shape[1:3]).squeeze(1)
        lead = torch.broadcast_shapes(a.shape[:2], weight.shape[:2])
        images, weights, stride = images_apart(a, lead), apart(weight, lead), self.stride
        images = [x.to(memory_format=torch.channels_last) for x in images]
        biases = [None] * len(images) if bias is None else apart(bias, lead)
        if self.kernel == 1 and not self.padding and stride > 1:
            # Only the pixels that it reads: torch 2.15 writes outside its memory in the backward pass of narrow ones.
            # By pooling, whose gradient is laid out channels last too; a slice's is not, and slows down every sum with
            # it.
            images, stride = [F.avg_pool2d(x, 1, stride) for x in images], 1
        z = [F.conv2d(x, w, b, stride, self.padding) for x, w, b in zip(images, weights, biases, strict=True)]
        return join(z if after is None else [after(x) for x in z], lead)


@dataclass(frozen=True)
class BatchNorm(ParametricLayer):
    """``z = scale (a - mean) / sqrt(var + eps) + shift`` for each channel (Ioffe and Szegedy 2015).

    Mean and variance are the running ones where the parameters hold them (``buffers``), as in prediction; else the
    batch's, over inputs and pixels, per replica and sample, as in training. ``statistics``, if given, is then filled
    with the mean and the unbiased variance ``[R, S, channels]`` of the first pass. ``start``: the initial scale.
    """

    name: str
    outputs: int
    eps: float = 1e-5
    start: float = 1.0

    @property
    def inputs(self) -> int:  # type: ignore[override]  # layers are frozen: nobody sets it
        return self.outputs

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {f"{self.name}.scale": (self.outputs,), f"{self.name}.shift": (self.outputs,)}

    @property
    def buffers(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the running mean and variance."""
        return {f"{BUFFER}{self.name}.mean": (self.outputs,), f"{BUFFER}{self.name}.var": (self.outputs,)}

    def init(self, streams: Streams) -> Parameters:
        shape = len(streams), self.outputs
        scale = torch.full(shape, self.start, dtype=streams.dtype, device=streams.device)
        return dict(zip(self.shapes, (scale, torch.zeros_like(scale)), strict=True))

    def __call__(
        self,
        parameters: Parameters,
        a: Tensor,
        statistics: Parameters | None = None,
        after: After | None = None,
        batch_norm: Callable[..., Tensor] = F.batch_norm,
    ) -> Tensor:
        scale, shift = (parameters[name] for name in self.shapes)
        mean, var = (parameters.get(name) for name in self.buffers)
        if mean is not None and var is not None:
            factor = scale * torch.rsqrt(var + self.eps)
            z = torch.addcmul(_on_planes(shift - mean * factor), a, _on_planes(factor))
            return z if after is None else after(z)
        if a.shape[2] * a.shape[4] * a.shape[5] == 1:
            raise ValueError(
                f"layer {self.name!r}: batch normalisation needs two values or more of a channel, found a batch of one "
                "point; choose a batch_size that leaves no last batch of one"
            )
        lead = torch.broadcast_shapes(a.shape[:2], scale.shape[:2])
        # With momentum 1 the call leaves the batch's own statistics in the buffers.
        mean, var = (scale.new_zeros(*lead, self.outputs) for _ in range(2))
        own = zip(images_apart(a, lead), *(apart(each, lead) for each in (mean, var, scale, shift)), strict=True)
        planes = [batch_norm(x, m, v, w, b, True, 1.0, self.eps) for x, m, v, w, b in own]
        if statistics is not None:
            for name, value in zip(self.buffers, (mean, var), strict=True):
                statistics.setdefault(name, value)
        return join(planes if after is None else [after(x) for x in planes], lead)

    def normalised(self, parameters: Parameters, a: Tensor) -> Tensor:
        """Return ``(a - mean) / sqrt(var + eps)`` with running statistics where the parameters hold them, else the
        batch's."""
        mean, var = (parameters.get(name) for name in self.buffers)
        if mean is None or var is None:
            var, mean = torch.var_mean(a, (2, 4, 5), correction=0)
        return (a - _on_planes(mean)) * _on_planes(torch.rsqrt(var + self.eps))


L = TypeVar("L", Linear, Conv2d)


def initialised(layer: L, init: str) -> L:
    """Return a linear or convolutional layer that starts as one of :data:`VARIANCES`, or "uniform" as PyTorch's."""
    if init == UNIFORM:
        return layer
    return replace(layer, deviation=math.sqrt(VARIANCES[init](layer.fan_in, layer.fan_out)))


def _batch(x: Tensor, samples: int) -> Tensor:
    """Return ``[R, S or 1, ...]`` as ``[R S, ...]``."""
    # Copied where it is expanded, as `flatten` does for several replicas: MKL rounds transposed matrices otherwise.
    return (x if x.shape[1] == samples else x.expand(-1, samples, *x.shape[2:]).contiguous()).flatten(0, 1)


def _on_planes(values: Tensor) -> Tensor:
    """``[R, S, channels]`` against images ``[R, S, N, channels, H, W]``."""
    return values[:, :, None, :, None, None]


def apart(value: Tensor, lead: tuple[int, ...]) -> list[Tensor]:
    """The parts of a tensor ``[R, S, ...]``, expanded to ``lead``, replica by replica; a single one is a view.

    Picked by their indices they would each have a gradient of the whole tensor's size.
    """
    value = value.expand(*lead, *value.shape[2:])
    replicas = [value.squeeze(0)] if lead[0] == 1 else value.unbind()
    return [part for each in replicas for part in ([each.squeeze(0)] if lead[1] == 1 else each.unbind())]


def images_apart(a: Tensor, lead: tuple[int, ...]) -> list[Tensor]:
    """Split images ``[R, S, N, C, H, W]`` as :func:`apart`, with gradients laid out channels last."""
    return [images.movedim(-1, -3) for images in apart(a.movedim(-3, -1), lead)]


def join(z: list[Tensor], lead: tuple[int, ...]) -> Tensor:
    """Images of each replica and sample in one tensor ``[R, S, ...]``, laid out as they are; a single one is not
    copied.
    """
    if len(z) == 1:
        return z[0][None, None]
    if z[0].is_contiguous():
        return torch.stack(z).unflatten(0, lead)
    return torch.stack([images.movedim(-3, -1) for images in z]).movedim(-1, -3).unflatten(0, lead)


@dataclass(frozen=True)
class Activation:
    """An elementwise nonlinearity."""

    function: str

    def __call__(self, parameters: Parameters, a: Tensor) -> Tensor:
        return ACTIVATIONS[self.function](a)


@dataclass(frozen=True)
class MaxPool:
    """Max-pooling of squares of ``size`` pixels a side, at every other pixel."""

    size: int = 2
    padding: int = 0

    def __call__(self, parameters: Parameters, a: Tensor) -> Tensor:
        return F.max_pool2d(a.flatten(0, -4), self.size, 2, self.padding).unflatten(0, a.shape[:-3])


@dataclass(frozen=True)
class AveragePool:
    """The mean over all pixels, ``[R, S, N, channels]``."""

    def __call__(self, parameters: Parameters, a: Tensor) -> Tensor:
        # Pixels before channels, as they lie: so the gradient has their layout too.
        return a.movedim(-3, -1).mean((-3, -2))


@dataclass(frozen=True)
class Flatten:
    """Joins the axes of one input into one."""

    event: int

    def __call__(self, parameters: Parameters, a: Tensor) -> Tensor:
        return a.flatten(-self.event) if self.event > 1 else a


@dataclass(frozen=True)
class DropoutSite:
    """A place where the dropout family may mask activations; every other family passes."""

    name: str

    def masked(self, masks: Masks, a: Tensor) -> Tensor:
        """Activations a with a mask on them."""
        return masks(self.name, a)


@dataclass(frozen=True)
class Residual:
    """``body(a) + shortcut(a)`` (He et al. 2016); without layers the shortcut is the identity."""

    body: tuple
    shortcut: tuple = ()


@dataclass(frozen=True)
class Parallel:
    """Branches of layers with a common input a; their units ``[R, S, N, units, ...]`` are concatenated."""

    branches: tuple[tuple, ...]
