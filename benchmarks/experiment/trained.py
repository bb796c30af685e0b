"""Training of runs: resumed from a checkpoint if there is one, with parameters stored for later use."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from benchmarks.experiment import parameters
from benchmarks.experiment.assembly import (
    build_data,
    build_model,
    load_data,
    load_split,
    run_streams,
    training_fingerprint,
)
from benchmarks.experiment.code import CODE
from benchmarks.records import provenance as origin
from benchmarks.records.config import training_key
from benchmarks.shapes import Provenance, RunConfig
from benchmarks.state.checkpoints import CheckpointCallback, Checkpoints
from datasets import Split
from fvi_core.data import TrainingData
from fvi_core.fitting import FitFailed
from fvi_core.graphs import obstacle
from fvi_core.networks import Parameters
from fvi_core.objective import Model
from fvi_core.precision import used
from fvi_core.random import Streams
from fvi_core.registry import TRAININGS
from fvi_core.settings import ChangedInPlace, unchanged
from fvi_core.spelling import switched
from fvi_core.stack import DTYPES
from fvi_core.training import Training

GRAPHS = "FVI_GRAPHS"
T = TypeVar("T")


def device_of() -> torch.device:
    """Return the device of this process, after switching off TF32 in its convolutions: torch leaves it on, and a recipe
    in float32 would have ten bits of mantissa."""
    torch.backends.cudnn.allow_tf32 = False
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def training_conditions(device: torch.device, run: RunConfig) -> dict[str, Any]:
    """Return the conditions besides configuration and data under which a training gives the same numbers."""
    conditions = {
        "code": CODE,
        "torch": str(torch.__version__),
        "device": device.type,
        "threads": torch.get_num_threads(),
    }
    return conditions | precision_of(run, device)


def precision_of(run: RunConfig, device: torch.device) -> dict[str, str]:
    """Return the precision of a run's networks, if it differs from the data's."""
    precision = run["parts"]["training"].get("precision", "float32")
    return {} if precision == "float32" else {"precision": used(precision, device)}


def as_graphs(training: T, model: Model, data: TrainingData) -> tuple[T, dict[str, bool]]:
    """Return a training with its steps as CUDA graphs, and what its record says of that, if $FVI_GRAPHS is on and
    nothing hinders it; otherwise the training as it is.

    It is not in the configuration, since it changes no operation.
    """
    if switched(GRAPHS) and isinstance(training, Training) and not obstacle(model, data):
        return replace(training, graph=True), {"graph": True}
    return training, {}


@dataclass
class TrainedRun:
    """Result of training one replica of a stack: parameters, or why training failed; stored: whether the state folder
    has these parameters."""

    split: Split
    model: Model
    data: TrainingData
    streams: Streams
    provenance: Provenance
    parameters: Parameters | None = None
    reason: str | None = None
    stored: bool = True


def train(runs: dict[str, list[RunConfig]], state: Path, report: Callable[[float, str], None]) -> dict[str, TrainedRun]:
    """Return trainings by key, with their parameters stored. A checkpoint of a larger stack resumes the whole stack, so
    that the numbers are those of an uninterrupted training."""
    shared = origin.collect()  # now: during a long training the checkout may move on from the code that is loaded
    splits = {key: load_data(group) for key, group in runs.items()}
    first = next(iter(runs.values()))[0]
    model = build_model(first["parts"], next(iter(splits.values())))
    fingerprints = {key: training_fingerprint(split, model) for key, split in splits.items()}
    device = device_of()
    conditions = training_conditions(device, first)
    checkpoints = Checkpoints(state)
    checkpoint = checkpoints.find(fingerprints, conditions)
    stack = {training_key(config): config for config in checkpoint.configs} if checkpoint else {}
    stack |= {key: group[0] for key, group in runs.items()}
    splits = {key: splits.get(key) or load_split(config) for key, config in stack.items()}
    training = TRAININGS.build(first["parts"]["training"])
    dtype = DTYPES[training.dtype]
    training_data = build_data(model, list(splits.values()), device, dtype)
    if model.fit is not None:
        model.fit.check_data(training_data)
    training, graphs = as_graphs(training, model, training_data)
    streams = run_streams(list(stack.values()), device, dtype)
    prints = [fingerprints.get(key) or training_fingerprint(split, model) for key, split in splits.items()]
    machine = {name: shared[name] for name in ("cpu", "device")}
    machine = checkpoint.with_machine(machine) if checkpoint else machine
    about = {"keys": list(stack), "configs": list(stack.values()), "fingerprints": prints, **conditions}
    about |= {"cpu": machine["cpu"], "machine": machine}
    callback = CheckpointCallback(checkpoints, about, list(runs), checkpoint)
    wall, processor = time.perf_counter(), time.process_time()
    stacked = training.start(model, training_data, streams.child("train"), checkpoint.state if checkpoint else None)
    started = origin.now()
    with unchanged("training", training_data.tensors):
        trained = stacked.run(report, callback)
    about_all: Any = {
        **shared,
        **machine,
        "seconds": callback.seconds / len(stack),
        "busy": (time.process_time() - processor) / max(time.perf_counter() - wall, 1e-9),
        "stack": len(stack),
        "started": started,
    }
    about_all |= {"finished": origin.now()} | memory(device) | precision_of(first, device) | graphs
    results: dict[str, TrainedRun] = {}
    for i, ((key, config), result) in enumerate(zip(stack.items(), trained, strict=True)):
        if key not in runs:
            continue
        provenance: Provenance = {**about_all, "epochs": result.epochs, "training_fingerprint": prints[i]}
        provenance["fingerprint"] = splits[key].fingerprint
        if result.diagnostics:
            provenance["diagnostics"] = result.diagnostics
        if result.warnings:
            provenance["warnings"] = result.warnings
        if checkpoint:
            provenance["resumed"] = callback.resumed
        noise = streams.subset([i]).child("evaluate")
        run = results[key] = TrainedRun(
            splits[key], model, training_data.of(i), noise, provenance, reason=result.reason
        )
        if result.reason:
            continue
        begun = time.perf_counter()
        try:
            with unchanged("fitting", run.data.tensors):
                fitted = model.after_training(result.parameters, run.data, noise)
        except (FitFailed, ChangedInPlace) as error:
            run.reason = str(error)
            continue
        run.parameters = fitted
        provenance["fit_seconds"] = time.perf_counter() - begun
        kept = parameters.Kept(run.parameters, prints[i], conditions, provenance)
        run.stored = parameters.save(state, config, kept)
    return results


def memory(device: torch.device) -> dict[str, int]:
    """Return the most bytes that a GPU held since this process started; nothing on a CPU, shared with other runs."""
    return {"gpu_bytes": torch.cuda.max_memory_allocated(device)} if device.type == "cuda" else {}
