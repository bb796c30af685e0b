"""Measurement of trained runs without training, from predictions or parameters in the state folder.

A new metric needs the predictions, or the curves of the record; a new evaluation set, attack or number of draws needs
the parameters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.experiment.archived import check_parameters, check_predictions
from benchmarks.experiment.assembly import load_data
from benchmarks.experiment.execute import evaluate_kept
from benchmarks.experiment.prediction import Predicted, measured
from benchmarks.metrics.distances import GROWN, growth
from benchmarks.metrics.registry import METRICS, metric_rows
from benchmarks.records import provenance
from benchmarks.records.config import run_key
from benchmarks.records.store import COSTS, Store
from benchmarks.shapes import Record, RunConfig
from benchmarks.state import kept
from fvi_core.printing import message
from fvi_core.registry import LIKELIHOODS

CHANGED, UNCHANGED, EVALUATED = "measured again", "unchanged", "evaluated from stored parameters"
UNKEPT, UNTRAINED, BROKEN = "without predictions and parameters", "not trained", "could not be measured"
OUTCOMES = (CHANGED, UNCHANGED, EVALUATED, UNKEPT, UNTRAINED, BROKEN)


@dataclass
class Measured:
    """Result of measuring: number of runs by outcome, keys that need training, problems, and problems with archives."""

    counts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(OUTCOMES, 0)))
    lacking: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unfetched: list[str] = field(default_factory=list)


def measure(
    configs: list[RunConfig], store: Store, state: Path, report: Callable[[int, str], None] = lambda *_: None
) -> Measured:
    """Write the records whose metrics or curves have changed, and new ones that stored parameters can give.

    Calls ``report(runs done, outcome)`` after each run. A run that cannot be measured is reported and stops no other.
    """
    result = Measured()
    for done, config in enumerate(configs, start=1):
        try:
            outcome = measure_run(config, store, state)
        except Exception as error:  # parameters of older code raise many types
            outcome = BROKEN
            result.problems.append(f"{run_key(config)}: {message(error) or type(error).__name__}")
        if outcome in (UNKEPT, UNTRAINED):
            result.lacking.append(run_key(config))
        result.counts[outcome] += 1
        report(done, outcome)
    return result


def measure_run(config: RunConfig, store: Store, state: Path) -> str:
    """Measure one run; return one of OUTCOMES.

    Only metrics and curves of the record change; its provenance names the code that ``measured`` them. Raises
    RecordError, StoreError, Foreign for files of another training than the record's, and errors of loading a data set.
    """
    record = store.get(config)
    path = kept.predictions_path(state, run_key(config))
    if record is not None and not path.exists() and (grown := _grown(record, store)):
        store.write(grown)
        return CHANGED
    if record is None or not path.exists() or _draws_anew(record, store):
        return _evaluate(config, store, state, record)
    predicted = Predicted(sets=check_predictions(path, record))
    kept.use(path)
    split = load_data([config])
    for name in config["evaluation"]["sets"]:
        predicted.note(split.evaluation(name))
    metrics, curves = measured(split, predicted, LIKELIHOODS.build(config["parts"]["likelihood"]).scores)
    metrics += [row for row in record["metrics"] if _stays(row["metric"])]
    again = store.make(config, metrics, curves, record["provenance"] | {"measured": provenance.stamp()})
    if all(again[part] == record[part] for part in ("metrics", "curves", "metric_versions")):
        return UNCHANGED
    store.write(again)
    return CHANGED


def _grown(record: Record, store: Store) -> Record | None:
    """Return the record of a classifier with those metrics of its uncertainty far from the data that it lacks, from its
    own curves; None where it lacks none, or has no such curves."""
    curve, points = (record["curves"].get(name, {}) for name in ("grid/grid", "train/points"))
    versions = record["metric_versions"]
    lacking = [name for name in GROWN if versions.get(name, 0) < store.version(name)]
    if not lacking or "predictive_entropy" not in curve or "x" not in points:
        return None
    x, std, entropy = (np.array(curve[name]) for name in ("x", "std", "predictive_entropy"))
    values = growth(x, std, np.array(points["x"]), entropy)
    added = {name: value for name, value in values.items() if name in lacking}
    rows = metric_rows(record["config"]["dataset"]["name"], "inputs=grid", added, len(x))
    return {
        **record,
        "metrics": [*record["metrics"], *rows],
        "metric_versions": dict(sorted((versions | {name: store.version(name) for name in lacking}).items())),
        "provenance": record["provenance"] | {"measured": provenance.stamp()},
    }


def _stays(metric: str) -> bool:
    """Return whether a row of a record is not computed from predictions."""
    return metric in COSTS or metric not in METRICS or bool(METRICS[metric].entry)


def _draws_anew(record: Record, store: Store) -> bool:
    """Return whether metrics that need the trained parameters have changed since the record: one has a newer version,
    or its evaluation's entry now gives an additional one."""
    entries, versions = {name: m.entry for name, m in METRICS.items() if m.entry}, record["metric_versions"]
    evaluated = {entries[row["metric"]] for row in record["metrics"] if row["metric"] in entries}
    return any(versions.get(name, 0) < store.version(name) for name, entry in entries.items() if entry in evaluated)


def _evaluate(config: RunConfig, store: Store, state: Path, record: Record | None) -> str:
    path = kept.parameters_path(state, run_key(config))
    if record is not None and path.exists():
        check_parameters(path, record)
    outcome = evaluate_kept(config, state)
    if outcome is None:
        return UNTRAINED if record is None else UNKEPT
    if outcome.status != "done":
        raise ValueError(outcome.reason)
    kept.bound(state)
    store.write(store.make(config, outcome.metrics, outcome.curves, outcome.provenance))
    return EVALUATED


def measure_stale(config: RunConfig, results: Path, metrics: str, state: Path) -> bool:
    """Return whether a run whose record is stale could be measured again without training."""
    return measure_run(config, Store(results, metrics), state) in (CHANGED, UNCHANGED, EVALUATED)
