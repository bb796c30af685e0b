"""Trained and fitted replica, the input of all computations beyond its evaluation sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.experiment.assembly import run_streams
from benchmarks.shapes import RunConfig, TrainingConfig
from datasets import Split
from fvi_core.data import TrainingData
from fvi_core.networks import Parameters
from fvi_core.objective import Model
from fvi_core.random import Streams


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
