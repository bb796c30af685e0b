"""From configurations to outcomes: data, training, predictions, metrics. The only place where the rooms meet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.experiment import parameters
from benchmarks.experiment.assembly import (
    build_data,
    build_model,
    load_data,
    load_split,
    pool_names,
    run_streams,
    training_fingerprint,
)
from benchmarks.experiment.code import CODE
from benchmarks.experiment.posterior import Fitted, posterior_rows
from benchmarks.experiment.prediction import NotFinite, Predicted, predict_sets
from benchmarks.experiment.reference import reference_rows
from benchmarks.metrics import evaluate
from benchmarks.records import predictions as stored
from benchmarks.records import provenance as origin
from benchmarks.records.config import by_training, run_key, stack_key, training_key, validate_config
from benchmarks.shapes import Curves, MetricRow, Provenance, RunConfig, TrainingConfig
from benchmarks.state import kept
from benchmarks.state.checkpoints import CheckpointCallback, Checkpoints
from datasets import Split, listening
from fvi_core.data import TrainingData
from fvi_core.fitting import FitFailed
from fvi_core.likelihoods import Likelihood
from fvi_core.networks import Parameters
from fvi_core.objective import Model
from fvi_core.precision import used
from fvi_core.random import Streams
from fvi_core.registry import FITS, TRAININGS
from fvi_core.stack import DTYPES

TRAINING_POINTS = "train/points"
"""The curve that holds a toy's training data."""


class NotComparable(ValueError):
    """A training that a run is to be compared with, and that failed."""


@dataclass
class Outcome:
    """What became of one run: metric rows, curves and provenance, or the reason of its failure."""

    config: RunConfig
    status: str
    metrics: list[MetricRow] = field(default_factory=list)
    curves: Curves = field(default_factory=dict)
    provenance: Provenance = field(default_factory=Provenance)
    reason: str | None = None


def execute(
    configs: list[RunConfig], *, state: Path, report: Callable[[float, str], None] = lambda fraction, text: None
) -> list[Outcome]:
    """Train, fit and evaluate runs that share everything but seed, split and evaluation; outcomes in the order given.

    Trainings go as one stack, each once, whatever number of runs evaluates it; those whose parameters the state keeps,
    trained by this very code on the same data, do not go at all. Predictions go to ``state/artifacts/<key>.npz``. A run
    whose numbers stop being finite fails with its reason; its neighbours are not touched. Data that cannot be had, or a
    part that does not exist, raises: then the whole stack fails.

    Trainings with a checkpoint go on from it, so those of different checkpoints are trained one stack after another.
    """
    for config in configs:
        validate_config(config)
    if len({stack_key(config) for config in configs}) > 1:
        raise ValueError("runs that differ in more than seed, split and evaluation cannot train together")
    come = 0.0

    def follow(fraction: float, text: str) -> None:
        nonlocal come
        come = fraction
        report(fraction, text)

    with listening(lambda text: report(come, text)):
        outcomes = _outcomes(by_training(configs), state, follow)
    return [outcomes[run_key(config)] for config in configs]


def _outcomes(
    runs: dict[str, list[RunConfig]], state: Path, report: Callable[[float, str], None]
) -> dict[str, Outcome]:
    """Of every run, by key: from kept parameters where there are any, else trained."""
    outcomes: dict[str, Outcome] = {}
    for key, asked in list(runs.items()):
        found = evaluate_kept(asked, state, made=made_with(device_of(), asked[0]))
        if found is not None:
            outcomes |= found
            del runs[key]
    parts = Checkpoints(state).parts(runs)
    for i, keys in enumerate(parts):

        def told(fraction: float, text: str, i: int = i) -> None:
            report((i + fraction) / len(parts), text)

        outcomes |= _train_and_evaluate({key: runs[key] for key in keys}, state, told)
    if outcomes:
        kept.bound(state)
    return outcomes


def evaluate_kept(runs: list[RunConfig], state: Path, made: dict[str, Any] | None = None) -> dict[str, Outcome] | None:
    """The outcomes of runs of one training from its kept parameters, by key; None where there are none to use.

    With ``made`` only parameters of a training that was made so are used. Raises what loading the data raises.
    """
    found = parameters.load(state, training_key(runs[0]))
    if found is None or (made is not None and found.made != made):
        return None
    split = load_data(runs)
    model = build_model(runs[0]["parts"], split)
    if found.fingerprint != training_fingerprint(split, model):
        return None
    device, dtype = device_of(), DTYPES[runs[0]["parts"]["training"]["dtype"]]
    training_data = build_data(model, [split], device, dtype)
    streams = run_streams(runs[:1], device, dtype).child("evaluate")
    trained = {name: value.to(device) for name, value in found.parameters.items()}
    here = origin.stamp() | {"cpu": origin.cpu(), "device": origin.device()} | precision_of(runs[0], device)
    about = found.provenance | {"fingerprint": split.fingerprint, "evaluated": here}
    return {run_key(c): _evaluate(c, split, model, training_data, trained, streams, about, state) for c in runs}


def device_of() -> torch.device:
    """Where this process trains."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def made_with(device: torch.device, run: RunConfig) -> dict[str, Any]:
    """What must be the same for a training to give the same numbers, besides its configuration and data."""
    made = {"code": CODE, "torch": str(torch.__version__), "device": device.type, "threads": torch.get_num_threads()}
    return made | precision_of(run, device)


def precision_of(run: RunConfig, device: torch.device) -> dict[str, str]:
    """What the networks of a run compute in here, where it asks for another precision than that of its data."""
    asked = run["parts"]["training"].get("precision", "float32")
    return {} if asked == "float32" else {"precision": used(asked, device)}


def _train_and_evaluate(
    asked: dict[str, list[RunConfig]], state: Path, report: Callable[[float, str], None]
) -> dict[str, Outcome]:
    """The outcomes of the runs of trainings, by key. If their checkpoint is of a larger stack, the others are trained
    along, so that the numbers are those of an uninterrupted training, but not evaluated.
    """
    splits = {key: load_data(runs) for key, runs in asked.items()}
    first = next(iter(asked.values()))[0]
    model = build_model(first["parts"], next(iter(splits.values())))
    fingerprints = {key: training_fingerprint(split, model) for key, split in splits.items()}
    device = device_of()
    made = made_with(device, first)
    checkpoints = Checkpoints(state)
    found = checkpoints.find(fingerprints, made)
    stack = {training_key(config): config for config in found.configs} if found else {}
    stack |= {key: runs[0] for key, runs in asked.items()}
    splits = {key: splits.get(key) or load_split(config) for key, config in stack.items()}
    training = TRAININGS.build(first["parts"]["training"])
    dtype = DTYPES[training.dtype]
    training_data = build_data(model, list(splits.values()), device, dtype)
    streams = run_streams(list(stack.values()), device, dtype)
    prints = [fingerprints.get(key) or training_fingerprint(split, model) for key, split in splits.items()]
    about = {"keys": list(stack), "configs": list(stack.values()), "fingerprints": prints, **made, "cpu": origin.cpu()}
    callback = CheckpointCallback(checkpoints, about, list(asked), found)
    stacked = training.start(model, training_data, streams.child("train"), found.state if found else None)
    started = origin.now()
    trained = stacked.run(report, callback)
    about_all: Any = {
        **origin.collect(),
        "seconds": callback.seconds / len(stack),
        "stack": len(stack),
        "started": started,
    }
    about_all |= {"finished": origin.now()} | memory(device) | precision_of(first, device)
    outcomes: dict[str, Outcome] = {}
    for i, ((key, config), result) in enumerate(zip(stack.items(), trained, strict=True)):
        if key not in asked:
            continue
        provenance: Provenance = {**about_all, "epochs": result.epochs, "training_fingerprint": prints[i]}
        provenance["fingerprint"] = splits[key].fingerprint
        if result.diagnostics:
            provenance["diagnostics"] = result.diagnostics
        if result.warnings:
            provenance["warnings"] = result.warnings
        if found:
            provenance["resumed"] = callback.resumed
        if result.reason:
            outcomes |= {
                run_key(c): Outcome(c, "failed", provenance=provenance, reason=result.reason) for c in asked[key]
            }
            continue
        own, noise, begun = training_data.of(i), streams.subset([i]).child("evaluate"), time.perf_counter()
        try:
            fitted = model.fitted(result.parameters, own, noise)
        except FitFailed as error:
            outcomes |= {run_key(c): Outcome(c, "failed", provenance=provenance, reason=str(error)) for c in asked[key]}
            continue
        provenance["fit_seconds"] = time.perf_counter() - begun
        parameters.save(state, config, parameters.Kept(fitted, prints[i], made, provenance))
        for one in asked[key]:
            outcomes[run_key(one)] = _evaluate(one, splits[key], model, own, fitted, noise, provenance, state)
    return outcomes


def _evaluate(
    config: RunConfig,
    split: Split,
    model: Model,
    training_data: TrainingData,
    parameters: Parameters,
    streams: Streams,
    provenance: Provenance,
    state: Path,
) -> Outcome:
    begun, asked = time.perf_counter(), config["evaluation"]
    try:
        if "fit" in asked:
            afterwards = FITS.build(asked["fit"])
            model, parameters = model.refitted(afterwards, parameters, training_data, streams.child("afterwards"))
        predicted = predict_sets(config["evaluation"], split, model, training_data, parameters, streams)
    except (NotFinite, FitFailed) as error:
        return Outcome(config, "failed", provenance=provenance, reason=str(error))
    metrics, curves = measured(split, predicted, model.likelihood)
    own = model, parameters, streams

    def other(training: TrainingConfig) -> Fitted:
        return _other(training, split, state)

    try:
        if "posterior" in asked:
            metrics += posterior_rows(config, training_data, own, other)
        if "reference" in asked:
            at = predicted.sets[asked["reference"]["set"]]
            metrics += reference_rows(config, split, at, training_data, own, other)
    except (NotComparable, NotFinite) as error:
        return Outcome(config, "failed", provenance=provenance, reason=str(error))
    for name, value in {**model.fit_numbers(parameters), "training_seconds": provenance["seconds"]}.items():
        metrics.append({"dataset": split.name, "condition": "", "metric": name, "value": value, "n": 1})
    stored.save(kept.predictions_path(state, run_key(config)), predicted.sets)
    about = provenance | {"data": predicted.fingerprints, "evaluate_seconds": time.perf_counter() - begun}
    if predicted.noise_std is not None:
        about["noise_std"] = predicted.noise_std
    sources = predicted.sources | {f"context {name}": split.pool(name).source for name in pool_names(model)}
    if sources:
        about["sources"] = sources
    return Outcome(config, "done", metrics, curves, about)


def _other(training: TrainingConfig, split: Split, state: Path) -> Fitted:
    """What another training of the same data gave: kept in the state, or else trained now and kept there."""
    run: RunConfig = {**training, "evaluation": {"samples": 1, "sets": [], "content": {}}}
    (outcome,) = execute([run], state=state)
    found = parameters.load(state, training_key(run))
    if outcome.status != "done" or found is None:
        reason = outcome.reason or "its parameters could not be kept"
        raise NotComparable(f"{run['method']}, seed {run['seed']}, with which the run is compared: {reason}")
    device = device_of()
    trained = {name: value.to(device) for name, value in found.parameters.items()}
    streams = run_streams([run], device, DTYPES[run["parts"]["training"]["dtype"]]).child("evaluate")
    return build_model(run["parts"], split), trained, streams


def measured(split: Split, predicted: Predicted, likelihood: Likelihood) -> tuple[list[MetricRow], Curves]:
    """Metrics and curves of predictions; a toy's curves hold its training points too, for its figure."""
    metrics, curves = evaluate(
        split.task, split.name, predicted.infos, predicted.sets, predicted.inputs, likelihood.scores, split.screens
    )
    if any(info.kind == "grid" for info in predicted.infos):
        y = split.train.y * split.y_std + split.y_mean if split.task == "regression" else split.train.y
        curves[TRAINING_POINTS] = {"x": split.train.x.tolist(), "y": y.tolist()}
    return metrics, curves


def memory(device: torch.device) -> dict[str, int]:
    """Most bytes that a GPU has held since this process began; of a CPU's process nothing is known that is its run's
    alone.
    """
    return {"gpu_bytes": torch.cuda.max_memory_allocated(device)} if device.type == "cuda" else {}
