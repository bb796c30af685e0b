"""Every method of the catalogue on a regression set of UCI, from its table's smoke protocol to its metrics."""

from __future__ import annotations

import math
from functools import cache

import pytest

import datasets
from benchmarks import tables
from benchmarks.experiment.execute import execute
from benchmarks.experiment.misfits import misfits
from benchmarks.shapes import RunConfig
from benchmarks.tables.simple import simple
from datasets import fetch, user_arrays
from fvi_core import methods

DATASET = "yacht"
CLASSIFIERS = {
    name for name in methods.catalogue() if name.endswith((" fVI", "(temperature)"))
} | {"DUQ", "VOGN"}  # fmt: skip


SETTINGS = {
    "network": {"name": "mlp", "hidden": [5], "activation": "tanh"},
    "likelihood": {"name": "gaussian"},
    "training": {"batch_size": 100, "optimiser": {"name": "adam", "lr": 0.01}},
}
CONTEXT = {"context": {"name": "uniform_box", "points": 10}}


@cache
def planned() -> dict[str, RunConfig]:
    """The first smoke run of every method on the set: a table's, or of a table in a few lines."""
    found: dict[str, RunConfig] = {}
    for name in ("cinquin2024-1", "pequignot2020-1", "uci"):
        for config in tables.get(name).runs("smoke"):
            if config["dataset"]["name"] == DATASET:
                found.setdefault(config["method"], config)
    rest = sorted(set(methods.catalogue()) - set(found))
    table = simple(
        "rest",
        "Methods of no regression table",
        methods=rest,
        datasets=[DATASET],
        metrics=["rmse"],
        parts=SETTINGS,
        own={name: CONTEXT for name in rest if "FSVI" in name} | {"Subnetwork Laplace": {"fit": {"size": 10}}},
    )
    column = table.columns[0]
    return found | {row.label: table.cell_runs(row, column, "smoke")[0] for row in table.rows}


@pytest.mark.parametrize("method", methods.catalogue())
def test_every_method_goes_through_a_regression_set(method: str, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv(fetch.OFFLINE_VARIABLE, "1")
    monkeypatch.delenv(user_arrays.VARIABLE, raising=False)
    config = planned()[method]
    assert bool(misfits([config])) == (method in CLASSIFIERS)
    if method in CLASSIFIERS:
        return
    try:
        datasets.load(DATASET, 0, scheme=config["dataset"]["scheme"] or None)
    except datasets.DataNotFound as error:
        pytest.skip(str(error).splitlines()[0])
    (outcome,) = execute([config], state=tmp_path)
    assert outcome.reason is None
    values = {m["metric"]: m["value"] for m in outcome.metrics if m["condition"] == ""}
    assert values and all(math.isfinite(value) for value in values.values())
