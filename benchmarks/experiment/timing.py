"""Cost of a run from its first steps: data and parts as in a run, one step to warm up, a few that are timed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks.experiment.assembly import build_data, build_model, inputs_of, load_data, run_streams
from benchmarks.experiment.prediction import predict
from benchmarks.experiment.trained import device_of
from benchmarks.records.config import by_training, kind_key
from benchmarks.shapes import EvaluationConfig, RunConfig
from datasets import Split
from datasets.image_sets import REDUCED, reduction
from fvi_core.data import TrainingData
from fvi_core.networks import Parameters
from fvi_core.objective import Model
from fvi_core.random import Streams
from fvi_core.registry import TRAININGS
from fvi_core.stack import DTYPES, Stack, Trained

ENOUGH = 0.1  # seconds of steps that are timed, if one step is not longer
CORRUPTIONS = 19  # len(datasets.corruptions.CORRUPTIONS), whose import takes a second
PIECE = 100  # inputs that are predicted, of all that are asked for
Tell = Callable[[dict[str, Any]], None]


def time_steps(
    configs: list[RunConfig], seconds: float, tell: Tell, clock: Callable[[], float] = time.perf_counter
) -> None:
    """Time runs that would be trained together; what is found is told as soon as it is. Nothing should take
    ``seconds``.

    ``once``: seconds of what a process does only once; ``setup``: seconds before the first step; ``steps``: of all
    epochs; ``trainings``: in the stack; ``first_step``: its seconds, more than those of others; ``training``: seconds
    of one training in all, fitting included, if it goes on to its last epoch; ``evaluation``: seconds of a run, by its
    kind. Raises what making and training the runs raises.
    """
    begun = clock()
    with torch.random.fork_rng(devices=[]):
        runs = by_training(configs)
        begin = partial(_begin, list(runs.values()))
        splits, model, training_data, streams, stack = begin()
        setup, steps = clock() - begun, stack.steps * stack.epochs
        if setup < seconds / 4:  # what a process loads once, libraries and data, is not counted for every run
            start = clock()
            splits, model, training_data, streams, stack = begin()
            setup, first = clock() - start, setup
            tell({"once": first - setup})
        tell({"setup": setup, "steps": steps, "trainings": len(runs)})
        first_step = per_step = _step_seconds(stack, clock)
        tell({"first_step": first_step})
        if first_step < seconds / 4:
            stack.now.epoch = 1
            per_step = _mean_step_seconds(stack, clock)
        if per_step + max(ENOUGH, per_step) < first_step < seconds / 4:  # what a process does once, or every training?
            stack.now.epoch = 0
            setup += max(0.0, _step_seconds(stack, clock) - per_step)
        per_epoch = _epoch_seconds(stack, configs[0]["parts"]["training"].get("early_stopping"), clock)
        each = (setup + steps * per_step + stack.epochs * per_epoch) / len(runs)
        tell({"training": each})
        place, trained = _stopped(stack)
        own, noise = training_data.of(place), streams.subset([place]).child("evaluate")
        start = clock()
        assert trained.parameters is not None, "it is one that trains"
        fitted = model.fitted(trained.parameters, own, noise)
        tell({"training": each + clock() - start})
        split, costs = splits[place], {}
        for config in {kind_key(config): config for config in configs}.values():
            costs[kind_key(config)] = _evaluation_seconds(config["evaluation"], split, model, own, fitted, noise, clock)
            tell({"evaluation": dict(costs)})
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def _begin(runs: list[list[RunConfig]]) -> tuple[list[Split], Model, TrainingData, Streams, Stack]:
    """Return the stack that runs with these trainings begin with."""
    splits = [load_data(asked) for asked in runs]
    configs, device = [asked[0] for asked in runs], device_of()
    model = build_model(configs[0]["parts"], splits[0])
    training = TRAININGS.build(configs[0]["parts"]["training"])
    dtype = DTYPES[training.dtype]
    training_data = build_data(model, splits, device, dtype)
    streams = run_streams(configs, device, dtype)
    stack = training.start(model, training_data, streams.child("train"), None)
    stack.open()
    return splits, model, training_data, streams, stack


def _mean_step_seconds(stack: Stack, clock: Callable[[], float]) -> float:
    """Return the mean seconds of a few steps."""
    taken, count, spent = 0, 1, 0.0
    while spent < ENOUGH:
        spent += _step_seconds(stack, clock, count)
        taken, count = taken + count, min(2 * count, stack.steps)
    return spent / taken


def _step_seconds(stack: Stack, clock: Callable[[], float], steps: int = 1) -> float:
    """Return the seconds that so many steps take."""
    start = clock()
    loss = stack.advance() if steps == stack.steps else stack.advance(steps)
    float(loss.sum())  # a GPU has done it only when somebody looks
    return clock() - start


def _epoch_seconds(stack: Stack, early_stopping: dict[str, Any] | None, clock: Callable[[], float]) -> float:
    """Return seconds of what ends an epoch, a look at the validation subset every so many epochs among it."""
    every = (early_stopping or {}).get("every") or 1
    stack.now.epoch = every
    start = clock()
    stack.done(torch.zeros(len(stack.active), dtype=torch.float64, device=stack.training_data.x.device))
    return (clock() - start) / every


def _stopped(stack: Stack) -> tuple[int, Trained]:
    """Return a replica and its place, as if training ended now."""
    stack.now.epoch = stack.epochs
    for place, trained in enumerate(stack.run()):
        if trained.parameters is not None:
            return place, trained
    raise ValueError("training gives no finite number at its first steps")


def _evaluation_seconds(
    evaluation: EvaluationConfig,
    split: Split,
    model: Model,
    training_data: TrainingData,
    parameters: Parameters,
    streams: Streams,
    clock: Callable[[], float],
) -> float:
    """Return seconds of predicting all evaluation sets, from a piece of the test subset."""
    x = split.test.x[:PIECE] if model.family.pointwise else split.test.x
    start = clock()
    drawn = streams.child("functions")
    f, _ = predict(
        model, parameters, torch.from_numpy(x), evaluation["samples"], drawn, partial(inputs_of, training_data)
    )
    float(f.sum())
    return (clock() - start) * sum(_size(name, split) for name in evaluation["sets"]) / len(x)


def _size(name: str, split: Split) -> int:
    """Estimate the size of an evaluation set without making it: as many inputs as the test subset, if in doubt."""
    every = re.fullmatch(rf".*_c-[1-5]{REDUCED}", name)  # all corruptions, one after another
    return (reduction(name) or len(split.test)) * (CORRUPTIONS if every else 1)
