"""From configurations to outcomes: data, training, predictions, metrics. The only place where the rooms meet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.experiment import parameters
from benchmarks.experiment.alone import alone
from benchmarks.experiment.assembly import (
    FittedRun,
    build_data,
    build_model,
    load_data,
    pool_names,
    run_streams,
    training_fingerprint,
)
from benchmarks.experiment.posterior import posterior_rows
from benchmarks.experiment.prediction import NotFinite, measured, predict_sets
from benchmarks.experiment.reference import bound_rows, evidence_rows, reference_rows
from benchmarks.experiment.trained import TrainedRun, device_of, precision_of, train, training_conditions
from benchmarks.metrics.registry import metric_rows
from benchmarks.records import predictions as stored
from benchmarks.records import provenance as origin
from benchmarks.records.config import by_training, run_key, stack_key, training_key, validate_config
from benchmarks.shapes import Curves, MetricRow, Provenance, RunConfig, TrainingConfig
from benchmarks.state import kept
from benchmarks.state.checkpoints import Checkpoints
from fvi_core.fitting import FitFailed
from fvi_core.registry import FITS
from fvi_core.settings import ChangedInPlace, restored, unchanged
from fvi_core.stack import DTYPES
from fvi_core.telling import Message, Parts, listening, tell, warn

ENTRIES = {"posterior": posterior_rows, "evidence": evidence_rows, "bound": bound_rows, "reference": reference_rows}
"""Functions that compute further metric rows, by their entry in an evaluation's configuration."""


class NotComparable(ValueError):
    """Error: a training that a run is compared with has failed."""


@dataclass
class Outcome:
    """Result of one run: metric rows, curves and provenance, or the reason for its failure."""

    config: RunConfig
    status: str
    metrics: list[MetricRow] = field(default_factory=list)
    curves: Curves = field(default_factory=dict)
    provenance: Provenance = field(default_factory=Provenance)
    reason: str | None = None


def execute(
    configs: list[RunConfig], *, state: Path, report: Callable[[float, str], None] = lambda fraction, text: None
) -> list[Outcome]:
    """Train, fit and evaluate runs that differ in seed, split and evaluation only; return outcomes in their order.

    Each training is made once, as part of one stack, however many runs evaluate it; parameters in the state folder are
    used if this very code trained them on the same data. Predictions go to ``state/artifacts/<key>.npz``. A run whose
    numbers stop being finite fails with its reason and does not affect the others. Missing data or an unknown part
    raise an error: the whole stack fails.

    Trainings with a checkpoint resume from it, so those of different checkpoints are trained one stack after another.
    """
    for config in configs:
        validate_config(config)
    if len({stack_key(config) for config in configs}) > 1:
        raise ValueError("runs that differ in more than seed, split and evaluation cannot train together")
    done = 0.0

    def follow(fraction: float, text: str) -> None:
        nonlocal done
        done = fraction
        if text:
            report(fraction, text)

    with restored(), listening(lambda text: report(done, text)):
        outcomes = _outcomes(by_training(configs), state, follow)
    if outcomes:
        kept.bound(state)
    return [outcomes[run_key(config)] for config in configs]


def _outcomes(
    runs: dict[str, list[RunConfig]], state: Path, report: Callable[[float, str], None]
) -> dict[str, Outcome]:
    """Return the outcome of every run by key, from stored parameters where available, else by training."""
    count = len(runs)
    outcomes = _take_kept(runs, state, report)
    parts, kept_share = Checkpoints(state).parts(runs), 1 - len(runs) / count
    for i, keys in enumerate(parts):

        def follow_part(fraction: float, text: str, i: int = i) -> None:
            report(kept_share + (1 - kept_share) * (i + fraction) / len(parts), text)

        part = {key: runs[key] for key in keys}
        with alone(state, keys, lambda text: follow_part(0.0, text)) as mine:
            if mine:
                outcomes |= _take_kept(part, state, follow_part)  # others may have been stored since
                trained = train(part, state, follow_part) if part else {}
                follow_part(1.0, "")  # for the messages of evaluation; training may have ended before its last epoch
        if mine:
            evaluated = [(run, trained[key]) for key, group in part.items() for run in group]
            evaluations = Parts(max(1, len(evaluated)))
            for place, (run, made) in enumerate(evaluated):
                with evaluations.part(place):
                    outcomes[run_key(run)] = _evaluate(run, made, state)
        else:
            outcomes |= _outcomes(part, state, follow_part)
    return outcomes


def _take_kept(
    runs: dict[str, list[RunConfig]], state: Path, report: Callable[[float, str], None]
) -> dict[str, Outcome]:
    """Return the outcomes of the runs whose parameters are stored, and delete these from ``runs``."""
    outcomes: dict[str, Outcome] = {}
    count = len(runs)
    for key, group in list(runs.items()):
        if trained := _kept(group, state, training_conditions(device_of(), group[0])):
            del runs[key]
            report(1 - len(runs) / count, "")
            outcomes |= {run_key(run): _evaluate(run, trained, state) for run in group}
    return outcomes


def evaluate_kept(config: RunConfig, state: Path) -> Outcome | None:
    """Return the outcome of a run from the stored parameters of its training; None without usable parameters.

    Raises errors of loading the data.
    """
    trained = _kept([config], state)
    return _evaluate(config, trained, state) if trained else None


def _kept(runs: list[RunConfig], state: Path, conditions: dict[str, Any] | None = None) -> TrainedRun | None:
    """Return a training for these runs from its stored parameters, trained under these conditions, if given."""
    stored = parameters.load(state, training_key(runs[0]))
    if stored is None or (conditions is not None and stored.conditions != conditions):
        return None
    split = load_data(runs)
    model = build_model(runs[0]["parts"], split)
    if stored.fingerprint != training_fingerprint(split, model):
        return None
    device, dtype = device_of(), DTYPES[runs[0]["parts"]["training"]["dtype"]]
    training_data = build_data(model, [split], device, dtype)
    streams = run_streams(runs[:1], device, dtype).child("evaluate")
    on_device = {name: value.to(device) for name, value in stored.parameters.items()}
    here = origin.stamp() | {"cpu": origin.cpu(), "device": origin.device()} | precision_of(runs[0], device)
    about = stored.provenance | {"fingerprint": split.fingerprint, "evaluated": here}
    return TrainedRun(split, model, training_data, streams, about, on_device)


def _evaluate(config: RunConfig, trained: TrainedRun, state: Path) -> Outcome:
    """Evaluate a trained run as its configuration says."""
    split, model, training_data = trained.split, trained.model, trained.data
    streams, provenance = trained.streams, trained.provenance
    if (parameters := trained.parameters) is None:
        return Outcome(config, "failed", provenance=provenance, reason=trained.reason)
    begun, evaluation = time.perf_counter(), config["evaluation"]
    try:
        if "fit" in evaluation:
            afterwards = FITS.build(evaluation["fit"])
            with unchanged("fitting", training_data.tensors | parameters):
                model, parameters = model.refitted(afterwards, parameters, training_data, streams.child("afterwards"))
        fitted = FittedRun(config, split, training_data, model, parameters, streams)
        with unchanged("prediction", training_data.tensors | parameters):
            predicted = predict_sets(fitted)
    except (NotFinite, FitFailed, ChangedInPlace) as error:
        return Outcome(config, "failed", provenance=provenance, reason=str(error))
    try:
        stored.save(kept.predictions_path(state, run_key(config)), predicted.sets)  # before the record exists
    except OSError as error:
        where = f"{state / kept.PREDICTIONS}: {error.strerror}"
        if trained.stored:
            reason = f"{where}; make room, then run the same command again: it predicts from the stored parameters"
            return Outcome(config, "failed", provenance=provenance, reason=reason)
        text = f"{where}; nor are the parameters stored: metrics added later need training"
        warn(text, about=run_key(config))
    metrics, curves = measured(split, predicted, model.likelihood.scores)
    try:
        for entry, rows_of in ENTRIES.items():
            if entry in evaluation:
                metrics += rows_of(fitted, predicted, lambda training: _other(training, fitted, state))
    except (NotComparable, NotFinite) as error:
        return Outcome(config, "failed", provenance=provenance, reason=str(error))
    numbers = {**model.fit_numbers(parameters), "training_seconds": provenance["seconds"]}
    metrics += metric_rows(split.name, "", numbers, 1)
    about = provenance | {"data": predicted.fingerprints, "evaluate_seconds": time.perf_counter() - begun}
    if predicted.noise_std is not None:
        about["noise_std"] = predicted.noise_std
    sources = predicted.sources | {f"context {name}": split.pool(name).source for name in pool_names(model)}
    if sources:
        about["sources"] = sources
    return Outcome(config, "done", metrics, curves, about)


def _other(training: TrainingConfig, fitted: FittedRun, state: Path) -> FittedRun:
    """Return another training on a run's data: from the state folder, or trained now and stored there."""
    run: RunConfig = {**training, "evaluation": {"samples": 1, "sets": [], "content": {}}}
    validate_config(run)
    name = f"{run['method']}, seed {run['seed']}, with which the run is compared"
    runs = {training_key(run): [run]}
    (outcome,) = _outcomes(runs, state, lambda _, text: tell(Message.of(text).within(name))).values()
    stored = parameters.load(state, training_key(run))
    if outcome.status != "done" or stored is None:
        reason = outcome.reason or "its parameters could not be written"
        raise NotComparable(f"{name}: {reason}")
    device = device_of()
    on_device = {name: value.to(device) for name, value in stored.parameters.items()}
    streams = run_streams([run], device, DTYPES[run["parts"]["training"]["dtype"]]).child("evaluate")
    return FittedRun(run, fitted.split, fitted.data, build_model(run["parts"], fitted.split), on_device, streams)
