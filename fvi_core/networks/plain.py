"""Multilayer perceptrons, and convolutional networks without residual connections."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fvi_core.networks.layers import (
    ACTIVATIONS,
    INITS,
    Activation,
    BatchNorm,
    Conv2d,
    DropoutSite,
    Flatten,
    Linear,
    MaxPool,
    initialised,
)
from fvi_core.networks.network import HEAD, Network
from fvi_core.registry import NETWORKS, checked, later


@NETWORKS.register("mlp")
@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron on flattened inputs; a dropout site after every hidden activation.

    ``init``: initial weights, "uniform" on +-1/sqrt(fan_in) as PyTorch has them, biases too, or normal ones of variance
    1/fan_in ("lecun"), 0.774/fan_in ("haiku"), 2/(fan_in + fan_out) ("glorot") or 2/fan_in ("he"), biases 0. Raises
    ValueError for another.
    """

    hidden: list[int] = checked(least=1)
    activation: str = checked("relu", among=ACTIVATIONS)
    init: str = later("uniform", among=INITS)

    def build(self, input_shape: tuple[int, ...], n_outputs: int) -> Network:
        layers: list = [Flatten(len(input_shape))] if len(input_shape) > 1 else []
        width = math.prod(input_shape)
        for i, units in enumerate(self.hidden):
            hidden = initialised(Linear(f"hidden{i}", width, units), self.init)
            layers += [hidden, Activation(self.activation), DropoutSite(f"hidden{i}")]
            width = units
        return Network([*layers, initialised(Linear(HEAD, width, n_outputs), self.init)], tuple(input_shape))


@NETWORKS.register("cnn")
@dataclass(frozen=True)
class CNN:
    """3x3 convolutions, each followed by an ``activation`` and (where ``pool`` says so) 2x2 max-pooling, then dense
    layers.

    rudner2022's four-layer network: channels [32, 64], pool [1, 1], dense [256]; cinquin2024's: channels [16, 32, 64],
    pool [1, 1, 0], dense [128]; rudner2021's of three and of seven layers, as the baselines' code beside it counts (all
    but the head): channels [32, 64], pool [1, 1] and [32, 32, 64, 64, 128, 128], pool [0, 1, 0, 1, 0, 1], both with
    dense [128]. ``padding``: one number, or one for each convolution. ``norm`` "batch": batch normalisation after every
    convolution. Dropout sites: after each convolution's activation, before each dense layer and before the head.
    ``init``: as of :class:`MLP`. Raises ValueError for an unknown norm, activation or init.
    """

    channels: list[int] = checked(least=1)
    dense: list[int] = checked(least=1)
    pool: list[int] = checked(least=0)
    padding: int | list[int] = checked(1, least=0)
    norm: str = later("none", among=("none", "batch"))
    activation: str = later("relu", among=ACTIVATIONS)
    init: str = later("uniform", among=INITS)

    def build(self, input_shape: tuple[int, ...], n_outputs: int) -> Network:
        planes, height, width = images("cnn", input_shape)
        layers: list = []
        paddings = self.padding if isinstance(self.padding, list) else [self.padding] * len(self.channels)
        for i, (channels, pool, padding) in enumerate(zip(self.channels, self.pool, paddings, strict=True)):
            layers.append(initialised(Conv2d(f"conv{i}", planes, channels, padding=padding), self.init))
            if self.norm == "batch":
                layers.append(BatchNorm(f"conv{i}.norm", channels))
            layers += [Activation(self.activation), DropoutSite(f"conv{i}")]
            height, width = height - 2 + 2 * padding, width - 2 + 2 * padding
            if pool:
                layers.append(MaxPool())
                height, width = height // 2, width // 2
            planes = channels
        if height < 1 or width < 1:
            convolutions = f"{len(self.channels)} convolutions, pool {self.pool}"
            raise ValueError(f"network 'cnn': images of {list(input_shape)} are too small for {convolutions}")
        layers.append(Flatten(3))
        units = planes * height * width
        for i, out in enumerate(self.dense):
            dense = initialised(Linear(f"dense{i}", units, out), self.init)
            layers += [DropoutSite(f"dense{i}"), dense, Activation(self.activation)]
            units = out
        head = initialised(Linear(HEAD, units, n_outputs), self.init)
        return Network([*layers, DropoutSite(HEAD), head], tuple(input_shape))


@NETWORKS.register("lenet")
@dataclass(frozen=True)
class LeNet:
    """The LeNet of Ovadia et al. (2019): 3x3 convolutions of 32 and 64 channels, no padding, one pooling, 128 units."""

    def build(self, input_shape: tuple[int, ...], n_outputs: int) -> Network:
        return CNN([32, 64], [128], [0, 1], padding=0).build(input_shape, n_outputs)


def images(name: str, input_shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Channels, height and width of a network's inputs. Raises ValueError where they are no images."""
    if len(input_shape) != 3:
        raise ValueError(f"network {name!r} expects images [channels, height, width], found {list(input_shape)}")
    planes, height, width = input_shape
    return planes, height, width
