"""Metrics of recorded runs, computed again from their stored predictions: a new metric needs no training."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import predictions, provenance
from benchmarks.execute import COSTS, TRAINING_POINTS, load_split, set_info
from benchmarks.metrics import evaluate
from benchmarks.store import Store

OUTCOMES = ("changed", "unchanged", "without predictions", "without a record")
CHANGED, UNCHANGED, UNPREDICTED, UNRECORDED = OUTCOMES


def measure(
    configs: list[dict[str, Any]], store: Store, state: Path, report: Callable[[int, str], None] = lambda *_: None
) -> Counter[str]:
    """Write again the records whose metrics or curves are others now; how many runs there are of each of OUTCOMES.

    Everything else of a record stays, and its provenance says by which code its metrics were ``measured``. Calls
    ``report(runs done, outcome)`` after each run. Raises RecordError, PredictionsError, StoreError, and what loading a
    data set raises.
    """
    counts: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
    sets: dict[str, tuple] = {}
    for done, config in enumerate(configs, start=1):
        outcome = _measure(config, store, state, sets)
        counts[outcome] += 1
        report(done, outcome)
    return counts


def _measure(config: dict[str, Any], store: Store, state: Path, sets: dict[str, tuple]) -> str:
    record = store.get(config)
    if record is None:
        return UNRECORDED
    try:
        predicted = predictions.load(predictions.path_of(state, record["key"]))
    except FileNotFoundError:
        return UNPREDICTED
    asked = json.dumps([config["dataset"], config["evaluation"]["sets"]], sort_keys=True)
    if asked not in sets:
        split = load_split(config)
        chosen = [split.evaluation(name) for name in config["evaluation"]["sets"]]
        sets.clear()
        sets[asked] = split.task, [set_info(one) for one in chosen], {s.name: s.x for s in chosen if s.kind == "grid"}
    task, infos, inputs = sets[asked]
    metrics, curves = evaluate(task, config["dataset"]["name"], infos, predicted, inputs)
    metrics += [row for row in record["metrics"] if row["metric"] in COSTS]
    curves |= {name: curve for name, curve in record["curves"].items() if name == TRAINING_POINTS}
    commit, dirty = provenance.code()
    about = {"commit": commit, "dirty": dirty, "time": provenance.now()}
    again = store.make(config, metrics, curves, record["provenance"] | {"measured": about})
    if all(again[part] == record[part] for part in ("metrics", "curves", "metric_versions")):
        return UNCHANGED
    store.write(again)
    return CHANGED
