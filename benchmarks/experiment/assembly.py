"""Assembly of data and parts: what a configuration trains, on which data; and the fitted replica of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import datasets
from benchmarks.records.hyperparameters import context_pools, sources
from benchmarks.shapes import PartsConfig, RunConfig, TrainingConfig
from datasets import Split
from fvi_core import interface
from fvi_core.data import Scale, TrainingData
from fvi_core.methods import catalogue
from fvi_core.networks import Parameters, build_network
from fvi_core.objective import Model
from fvi_core.random import Streams, seed_from
from fvi_core.registry import LIKELIHOODS


class ChangedData(ValueError):
    """Error: the data, or the source of a plug-in's part, differ from those that the run's configuration names."""


def check_identity(config: RunConfig) -> None:
    """Raise ChangedData unless data and parts match the configuration."""
    catalogue()  # loads plug-ins
    present = sources(config["parts"], config["dataset"]["name"])
    if present != config["sources"]:
        raise ChangedData(
            f"the sources of its parts and data are {present}, expected {config['sources']}: plan the run again"
        )
    dataset, evaluation = config["dataset"], config["evaluation"]
    pools = context_pools(config["parts"]["context"])
    for present, expected in (
        (datasets.training_content(dataset["name"], dataset["scheme"], pools), dataset["content"]),
        (datasets.evaluation_content(dataset["name"], dataset["scheme"], evaluation["sets"]), evaluation["content"]),
    ):
        if present != expected:
            raise ChangedData(
                f"data set {dataset['name']}: the user's files for it are {present}, expected {expected}: plan the run "
                "again"
            )


def load_split(config: RunConfig) -> Split:
    """Load the data of a run. Raises ChangedData for another version, and errors of loading."""
    dataset = config["dataset"]
    split = datasets.load(dataset["name"], dataset["split"], scheme=dataset["scheme"])
    if split.version != dataset["version"]:
        raise ChangedData(f"data set {split.name} is at version {split.version}, the run needs {dataset['version']}")
    return split


def load_data(runs: list[RunConfig]) -> Split:
    """Load the data of runs of one training and check them before any computation.

    Raises ChangedData, errors of loading, and those of :meth:`Split.require`.
    """
    for config in runs:
        check_identity(config)
    split = load_split(runs[0])
    for config in runs:
        split.require(config["evaluation"]["sets"])
    return split


def build_model(parts: PartsConfig, split: Split) -> Model:
    """Return the method's parts, built for the shape of one data set.

    Raises UnknownPart, TypeError for a part that builds no network, and ValueError for a network or likelihood that is
    for other targets.
    """
    likelihood = LIKELIHOODS.build(parts["likelihood"])
    if likelihood.has_noise != (split.task == "regression"):
        use = "regression" if likelihood.has_noise else "classification"
        hint = "" if likelihood.has_noise else "; one for regression has a method noise_std()"
        raise ValueError(f"likelihood {likelihood.name!r} is for {use}, data set {split.name} for {split.task}{hint}")
    if not likelihood.standardised and (split.y_mean, split.y_std) != (0.0, 1.0):
        raise ValueError(
            f"likelihood {likelihood.name!r} is for targets as they are, and those of data set {split.name} are "
            "standardised: add the data set with standardise=False"
        )
    network = build_network(parts["network"], split.train.x.shape[1:], likelihood.outputs(split.n_outputs))
    return interface.build(network, parts, parts["training"])


def build_data(model: Model, splits: list[Split], device: torch.device, dtype: torch.dtype) -> TrainingData:
    """Return training tensors of a stack. Splits with the same data share them; images stay bytes."""
    shared = len({split.fingerprint for split in splits}) == 1
    used = splits[:1] if shared else splits
    if len({len(split.train) for split in used}) > 1:
        raise ValueError(f"splits of different sizes cannot train together: {[len(split.train) for split in used]}")

    def tensor(array: np.ndarray) -> Tensor:
        held = torch.from_numpy(array).to(device)
        return held.to(dtype) if held.is_floating_point() else held

    def stack(arrays: list[np.ndarray]) -> Tensor:
        return tensor(arrays[0])[None] if len(arrays) == 1 else tensor(np.stack(arrays))

    x, pixels = stack([s.train.x for s in used]), used[0].pixels
    pools = {}
    for name in pool_names(model):
        pool = used[0].pool(name).x
        if not all(np.array_equal(other.pool(name).x, pool) for other in used[1:]):
            raise ValueError(f"splits whose pools {name!r} differ cannot train together; train them one by one")
        pools[name] = x[0] if pool is used[0].train.x else tensor(pool)
    held: list[Any] = [s.validation for s in used]  # either all or none have one
    return TrainingData(
        x,
        stack([s.train.y for s in used]),
        stack([s.low for s in used]),
        stack([s.high for s in used]),
        None if held[0] is None else [(tensor(each.x), tensor(each.y)) for each in held],
        pools,
        None if pixels is None else Scale(pixels.mean, pixels.std, dtype),
    )


def pool_names(model: Model) -> list[str]:
    """Return the inputs, besides the training inputs, that the context draws from."""
    return sorted(model.context.pools()) if model.context else []


def training_fingerprint(split: Split, model: Model) -> str:
    """Return the SHA-256 of all data that training sees: training and validation subsets, and context pools."""
    digest = hashlib.sha256(split.training_fingerprint.encode())
    for name in pool_names(model):
        digest.update(f"\0{name}\0{split.pool(name).fingerprint}".encode())
    return digest.hexdigest()


def run_streams(configs: list[RunConfig], device: torch.device, dtype: torch.dtype) -> Streams:
    """Return the random streams of runs, side by side."""
    seeds = [seed_from(c["method"], c["dataset"]["name"], c["dataset"]["split"], c["seed"]) for c in configs]
    return Streams(seeds, device, dtype)


def inputs_of(training_data: TrainingData, x: Tensor) -> Tensor:
    """Return a copy of loaded inputs as the network takes them, on the device of the training data."""
    if training_data.pixels is None:
        return x.to(training_data.x, copy=True)
    return training_data.scale(x.to(training_data.x.device))


@dataclass(frozen=True)
class FittedRun:
    """Model, parameters and data of a run, with the random streams of its evaluation."""

    config: RunConfig
    split: Split
    data: TrainingData
    model: Model
    parameters: Parameters
    streams: Streams

    @property
    def start(self) -> Streams:
        """Return the streams as at the start of its training."""
        return run_streams([self.config], self.streams.device, self.streams.dtype).child("train")


Other = Callable[[TrainingConfig], FittedRun]
"""Function that returns the result of another training on the same data."""
