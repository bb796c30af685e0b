"""Models made elsewhere: what a table asks of them as files, and their predictions measured as all others are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import files
from benchmarks.errors import BenchmarkError, UsageError, unknown
from benchmarks.experiment.assembly import load_split
from benchmarks.experiment.prediction import Predicted, measured
from benchmarks.records import provenance
from benchmarks.records.predictions import (
    ClassificationPredictions,
    Predictions,
    PredictionsError,
    RegressionPredictions,
)
from benchmarks.records.store import Store, slug
from benchmarks.shapes import RunConfig
from benchmarks.tables.brought import config, recorded, same, template
from benchmarks.tables.spec import Table
from datasets import EvaluationSet, Split

DRAWS = 100  # of functions whose mean and variance are brought
SUM = 1e-3  # how far from 1 the probabilities of a point may sum
FORMS = {
    "classification": ("logits", "probabilities"),
    "regression": ("samples", "mean"),
}
BESIDE = {"classification": (), "regression": ("variance", "noise_std")}


class Refused(BenchmarkError, ValueError):
    """Predictions that cannot be scored: the message names the file and the set, what was expected, what was found."""


def write_sets(
    table: Table, protocol: str, folder: Path, chosen: Callable[[RunConfig], bool] = lambda config: True
) -> Iterator[tuple[Path, list[str]]]:
    """Write the data of every split that a table asks for; each file, with the attacked sets that it cannot hold."""
    asked = [one for dataset in table.datasets for one in template(table, dataset, protocol) if chosen(one)]
    if not asked:
        raise UsageError(f"table {table.name} plans no runs of protocol {protocol} that were chosen")
    seeds: dict[tuple[str, int], list[int]] = {}
    for one in asked:
        seeds.setdefault((one["dataset"]["name"], one["dataset"]["split"]), []).append(one["seed"])
    for one in {(o["dataset"]["name"], o["dataset"]["split"]): o for o in asked}.values():
        name, number = one["dataset"]["name"], one["dataset"]["split"]
        split = load_split(one)
        arrays: dict[str, Any] = {
            "dataset": name, "split": number, "seeds": seeds[name, number], "task": split.task,
            "outputs": split.n_outputs, "y_mean": split.y_mean, "y_std": split.y_std,
            "train/x": split.train.x, "train/y": split.train.y,
        }  # fmt: skip
        if split.validation is not None:
            arrays |= {"validation/x": split.validation.x, "validation/y": split.validation.y}
        sets = _sets(one, split)
        for each in sets:
            arrays |= {f"{each.name}/x": each.x, f"{each.name}/fingerprint": each.fingerprint}
        path = folder / f"{slug(name)}-{number}.npz"
        with files.replacing(path) as file:
            np.savez_compressed(file, **arrays)
        yield path, [name for name in one["evaluation"]["sets"] if name not in {each.name for each in sets}]


def score(table: Table, protocol: str, method: str, file: Path, store: Store, catalogue: Mapping[str, Any]) -> Path:
    """Measure a file of predictions, and write its record. Raises Refused, UsageError and StoreError."""
    if slug(method) in {slug(name) for name in catalogue}:
        raise UsageError(f"--method {method}: a method of this project has that name: choose another")
    arrays, digest = _read(file)
    asked = _asked(table, protocol, arrays, file)
    split = load_split(asked)
    sets = _sets(asked, split)
    named = {each.name for each in sets}
    for key in arrays:
        name, _, kind = key.rpartition("/")
        allowed = (*FORMS[split.task], *BESIDE[split.task], "fingerprint")
        alone = key in ("dataset", "split", "seed") or (key == "noise_std" and split.task == "regression")
        if not alone and (name not in named or kind not in allowed):
            raise Refused(
                f"{file}: nothing is known of {key!r}: expected dataset, split, seed, and for each of the sets "
                f"{', '.join(sorted(named))} one of {', '.join(FORMS[split.task])}, and its fingerprint"
            )
    predictions = {each.name: _predictions(each, split, arrays, file) for each in sets}
    first = next(iter(predictions.values()))
    samples = len(first.logits if isinstance(first, ClassificationPredictions) else first.samples)
    made = config(asked, method, digest, samples)
    for other in recorded(store, catalogue):
        if other["method"] == method and same(other, asked) and other["sources"] != made["sources"]:
            raise Refused(
                f"{file}: other predictions of {method!r} were scored for {asked['dataset']['name']}, split "
                f"{asked['dataset']['split']}, seed {asked['seed']}: delete {store.path(other)} or choose another name"
            )
    predicted = Predicted(predictions)
    for each in sets:
        predicted.note(each)
    metrics, curves = measured(split, predicted)
    about: Any = {
        **provenance.stamp(), "fingerprint": split.fingerprint, "data": predicted.fingerprints, "cpu": provenance.cpu(),
    }  # fmt: skip
    if predicted.sources:
        about["sources"] = predicted.sources
    return store.write(store.make(made, metrics, curves, about))


def _sets(asked: RunConfig, split: Split) -> list[EvaluationSet]:
    """The evaluation sets that anybody can predict: attacks need the model."""
    sets = [split.evaluation(name) for name in asked["evaluation"]["sets"]]
    return [each for each in sets if each.kind != "attack"]


def _read(file: Path) -> tuple[dict[str, np.ndarray], str]:
    try:
        content = file.read_bytes()
        with np.load(file, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}, hashlib.sha256(content).hexdigest()
    except OSError as error:
        raise Refused(f"{file}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # whatever numpy and zipfile make of damage
        raise Refused(f"{file}: expected an npz file of arrays without objects, found none: {error}") from error


def _asked(table: Table, protocol: str, arrays: Mapping[str, np.ndarray], file: Path) -> RunConfig:
    """What a table asks for where a file says that it belongs."""
    for name in ("dataset", "split"):
        if name not in arrays:
            raise Refused(f"{file}: expected the array {name!r}, as in the file of `benchmarks sets {table.name}`")
    dataset, split = str(arrays["dataset"]), int(arrays["split"])
    if dataset not in table.datasets:
        raise unknown(f"data set of table {table.name}", dataset, table.datasets)
    asked = [one for one in template(table, dataset, protocol) if one["dataset"]["split"] == split]
    seed = int(arrays["seed"]) if "seed" in arrays else (asked[0]["seed"] if asked else 0)
    found = [one for one in asked if one["seed"] == seed]
    if not found:
        there = [(one["dataset"]["split"], one["seed"]) for one in template(table, dataset, protocol)]
        raise Refused(
            f"{file}: split {split}, seed {seed} of {dataset} is not in table {table.name} at protocol {protocol}, "
            f"which has (split, seed) {', '.join(map(str, there[:10]))}{', ...' if len(there) > 10 else ''}"
        )
    return found[0]


def _predictions(asked: EvaluationSet, split: Split, arrays: Mapping[str, np.ndarray], file: Path) -> Predictions:
    where = f"{file}: set {asked.name!r}"
    forms = [form for form in FORMS[split.task] if f"{asked.name}/{form}" in arrays]
    if len(forms) != 1:
        raise Refused(
            f"{where}: expected one of {', '.join(FORMS[split.task])} as '{asked.name}/...', "
            f"found {' and '.join(forms) or 'none'}"
        )
    told = str(arrays.get(f"{asked.name}/fingerprint", "none"))
    if told != asked.fingerprint:
        raise Refused(
            f"{where}: expected the fingerprint {asked.fingerprint[:12]}... of the data here, found {told[:12]}: "
            "predict the inputs of the file of `benchmarks sets` in their order, and hand its fingerprint on"
        )
    values = np.asarray(arrays[f"{asked.name}/{forms[0]}"])
    if values.dtype.kind not in "fiu":
        raise Refused(f"{where}: {forms[0]}: expected numbers, found {values.dtype}")
    try:
        return (_classified if split.task == "classification" else _regressed)(forms[0], values, asked, split, arrays)
    except PredictionsError as error:
        raise Refused(f"{where}: {error}") from error


def _classified(form: str, values: np.ndarray, asked: EvaluationSet, split: Split, _: Any) -> Predictions:
    values = values[None] if values.ndim == 2 else values
    _shape(form, values, (None, len(asked.x), split.n_outputs), "[points, classes] or [samples, points, classes]")
    if form == "probabilities":
        if np.isnan(values).any():
            raise PredictionsError(f"probabilities: expected no NaN, found {np.isnan(values).sum()} NaN")
        sums = values.sum(-1)
        if values.min() < 0 or abs(sums - 1).max() > SUM:
            raise PredictionsError(
                "probabilities: expected none below 0, and a sum of 1 at every point, found the smallest "
                f"{values.min():.3g} and sums from {sums.min():.4g} to {sums.max():.4g}"
            )
        with np.errstate(divide="ignore"):
            values = np.log(values)
    return ClassificationPredictions(values, asked.y)


def _regressed(
    form: str, values: np.ndarray, asked: EvaluationSet, split: Split, arrays: Mapping[str, np.ndarray]
) -> Predictions:
    target = () if split.n_outputs == 1 else (split.n_outputs,)
    noise = arrays.get(f"{asked.name}/noise_std", arrays.get("noise_std"))
    if noise is None:
        raise PredictionsError("noise_std: expected the standard deviation of observations, found none")
    moments: tuple[np.ndarray, ...] = ()
    if form == "mean":
        if f"{asked.name}/variance" not in arrays:
            raise PredictionsError("variance: expected the function's variance beside its mean, found none")
        variance = np.asarray(arrays[f"{asked.name}/variance"], dtype=float)
        _shape("mean", values, (len(asked.x), *target), "[points]")
        _shape("variance", variance, values.shape, "[points]")
        if not (variance >= 0).all():
            raise PredictionsError("variance: expected no negative values and no NaN, found some")
        moments = values.astype(float), variance
        values = values + np.sqrt(variance) * np.random.RandomState(0).standard_normal((DRAWS, *values.shape))
    _shape("samples", values, (None, len(asked.x), *target), "[samples, points]")
    return RegressionPredictions(values, noise, asked.y, split.y_mean, split.y_std, *moments)


def _shape(name: str, values: np.ndarray, expected: tuple[int | None, ...], words: str) -> None:
    fits = values.ndim == len(expected) and all(e in (None, f) for e, f in zip(expected, values.shape))
    if not fits or values.size == 0:
        sizes = ", ".join("any" if size is None else str(size) for size in expected)
        raise PredictionsError(f"{name}: expected {words} of sizes ({sizes}), found the shape {values.shape}")
