"""External models: their input data as files, and their predictions measured like all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import files
from benchmarks.errors import UsageError, unknown
from benchmarks.experiment.answers import BESIDE, FORMS, Answer, Refused, predictions
from benchmarks.experiment.assembly import load_split
from benchmarks.experiment.prediction import Predicted, measured
from benchmarks.records import provenance
from benchmarks.records.form import slug
from benchmarks.records.predictions import drawn
from benchmarks.records.store import Store
from benchmarks.shapes import RunConfig
from benchmarks.tables.external import config, recorded, same, template
from benchmarks.tables.spec import Table
from datasets import EvaluationSet, Split

LONGEST = 100  # longest name of a method, in characters


def write_sets(
    table: Table, protocol: str, folder: Path, chosen: Callable[[RunConfig], bool] = lambda config: True
) -> Iterator[tuple[Path, list[str]]]:
    """Write the data of every split of a table; yield each file, with the attacked sets that it cannot hold."""
    every = [run for dataset in table.datasets for run in template(table, dataset, protocol) if chosen(run)]
    if not every:
        raise UsageError(f"table {table.name} plans no runs of protocol {protocol} that were chosen")
    places: dict[tuple[str, int], list[RunConfig]] = {}
    for run in every:
        places.setdefault((run["dataset"]["name"], run["dataset"]["split"]), []).append(run)
    for (name, number), runs in places.items():
        run = runs[-1]
        split = load_split(run)
        arrays: dict[str, Any] = {
            "dataset": name, "split": number, "seeds": [run["seed"] for run in runs], "task": split.task,
            "outputs": split.n_outputs, "y_mean": split.y_mean, "y_std": split.y_std,
            "train/x": split.train.x, "train/y": split.train.y,
        }  # fmt: skip
        if split.validation is not None:
            arrays |= {"validation/x": split.validation.x, "validation/y": split.validation.y}
        sets = _sets(run, split)
        for each in sets:
            arrays |= {f"{each.name}/x": each.x, f"{each.name}/fingerprint": each.fingerprint}
        path = folder / f"{slug(name)}-{number}.npz"
        with files.replacing(path) as file:
            np.savez_compressed(file, **arrays)
        yield path, [name for name in run["evaluation"]["sets"] if name not in {each.name for each in sets}]


def score(table: Table, protocol: str, method: str, file: Path, store: Store, catalogue: Mapping[str, Any]) -> Path:
    """Measure a file of predictions, and write its record. Raises Refused, UsageError and StoreError."""
    _check_name(method, catalogue)
    answer = Answer(file)
    run = _claimed(table, protocol, answer)
    split = load_split(run)
    sets = _sets(run, split)
    named = {each.name for each in sets}
    for key in answer.names:
        name, _, kind = key.rpartition("/")
        allowed = (*FORMS[split.task], *BESIDE[split.task], "fingerprint")
        alone = key in ("dataset", "split", "seed") or (key == "noise_std" and split.task == "regression")
        if not alone and (name not in named or kind not in allowed):
            raise Refused(
                f"{file}: nothing is known of {key!r}: expected dataset, split, seed, and for each of the sets "
                f"{', '.join(sorted(named))} one of {', '.join(FORMS[split.task])}, and its fingerprint"
            )
    made_elsewhere = {each.name: predictions(answer, each, split) for each in sets}
    draws = {name: len(drawn(each)) for name, each in made_elsewhere.items()}
    (name, samples), *others = draws.items()
    if wrong := [other for other, count in others if count != samples]:
        raise Refused(
            f"{file}: set {wrong[0]!r}: expected {samples} samples as at {name!r}, found {draws[wrong[0]]}: draw as "
            "many functions at every set"
        )
    record_config = config(run, method, answer.digest, samples)
    for other in recorded(store, catalogue):
        if other["method"] == method and same(other, run) and other["sources"] != record_config["sources"]:
            raise Refused(
                f"{file}: other predictions of {method!r} were scored for {run['dataset']['name']}, split "
                f"{run['dataset']['split']}, seed {run['seed']}: delete {store.path(other)} or choose another name"
            )
    predicted = Predicted(made_elsewhere)
    for each in sets:
        predicted.note(each)
    metrics, curves = measured(split, predicted)
    about: Any = {
        **provenance.stamp(), "versions": provenance.versions(), "cpu": provenance.cpu(),
        "fingerprint": split.fingerprint, "data": predicted.fingerprints,
    }  # fmt: skip
    if predicted.sources:
        about["sources"] = predicted.sources
    return store.write(store.make(record_config, metrics, curves, about))


def _sets(run: RunConfig, split: Split) -> list[EvaluationSet]:
    """Return the evaluation sets without attacks, which need the model."""
    sets = [split.evaluation(name) for name in run["evaluation"]["sets"]]
    return [each for each in sets if each.kind != "attack"]


def _check_name(method: str, catalogue: Mapping[str, Any]) -> None:
    """Raise UsageError for a name that cannot be written or printed, or is taken by this project."""
    if not method.strip() or not method.isprintable() or len(method) > LONGEST:
        raise UsageError(
            f"--method {method[:80]!a}: expected a name of 1 to {LONGEST} printable characters in UTF-8, found another"
        )
    taken = next((name for name in catalogue if slug(name) == slug(method)), None)
    if taken == method:
        raise UsageError(f"--method {method}: a method of this project has that name: choose another")
    if taken is not None:
        raise UsageError(
            f"--method {method}: its records would be in the folder of method {taken!r}, {slug(method)}: choose a name "
            "that differs from it in letters, digits or +"
        )


def _claimed(table: Table, protocol: str, answer: Answer) -> RunConfig:
    """Return the run of the table that a file of predictions claims to be."""
    file = answer.file
    for name in ("dataset", "split"):
        if name not in answer:
            raise Refused(f"{file}: expected the array {name!r}, as in the file of `benchmarks sets {table.name}`")
    dataset, split = answer.word("dataset"), answer.whole("split")
    if dataset not in table.datasets:
        raise Refused(f"{file}: {unknown(f'data set of table {table.name}', dataset, table.datasets)}")
    every = template(table, dataset, protocol)
    of_split = [run for run in every if run["dataset"]["split"] == split]
    seed = answer.whole("seed") if "seed" in answer else (of_split[0]["seed"] if of_split else 0)
    found = [run for run in of_split if run["seed"] == seed]
    if not found:
        pairs = [(run["dataset"]["split"], run["seed"]) for run in every]
        raise Refused(
            f"{file}: split {split}, seed {seed} of {dataset} is not in table {table.name} at protocol {protocol}, "
            f"which has (split, seed) {', '.join(map(str, pairs[:10]))}{', ...' if len(pairs) > 10 else ''}"
        )
    return found[0]
