"""A small site: one table of three rows under two protocols, with names that would be code if they were not escaped."""

from __future__ import annotations

from pathlib import Path

from benchmarks.records.store import Store
from fvi_core.methods import Method
from reports.page.site import Site, write
from reports.records import Records
from tests.reports.fakes import Cell, Column, FakeSuite, FakeTable, Row, config, fake_table

HOSTILE = "<script>window.broken = 1</script>"
IMAGE = "<img src=x onerror='window.broken = 1'>"
DATASETS = ("boston", "concrete", "energy")
METHODS = ("MC Dropout", "Ensemble", HOSTILE)
ABOUT = {"cpu": "AMD EPYC", "commit": "0123456789abcdef", "dirty": True, "finished": "2026-01-02T03:04:05Z"}


class Suite(FakeSuite):
    """A table, and a catalogue of its methods."""

    def catalogue(self) -> dict[str, Method]:
        return {name: Method(name, f"{IMAGE} ``q = {name}``", "rudner2022", {"name": "point"}) for name in METHODS}


def table() -> FakeTable:
    """Return a table of three methods and a row without a method on three data sets, beside published numbers."""
    rows = (
        Row("MC Dropout", "MC Dropout", "MC Dropout"), Row("Ensemble", "Ensemble", "Ensemble"),
        Row(HOSTILE, None, HOSTILE), Row("FBNN", "FBNN", None),
    )  # fmt: skip
    columns = tuple(
        Column(Cell(name, "", metric), f"{name} {IMAGE}" if name == "energy" else name, published)
        for metric, published_metric in (("rmse", "rmse"), ("log_posterior_predictive", "log_posterior_predictive"))
        for name in DATASETS
        for published in [Cell(name, "experiment=2", published_metric)]
    )
    notes = {"paper": (f"**A note** with {IMAGE}.",)}
    return fake_table(
        "pequignot2020-5", rows, columns, title=f"Small sets {IMAGE}", paper="pequignot2020", number="5", notes=notes
    )


def records(folder: Path) -> Store:
    """Write runs of protocol paper, of which some are absent, and one of protocol short."""
    store = Store(folder / "results")
    for k, method in enumerate(METHODS):
        for j, dataset in enumerate(DATASETS):
            for run in range(3 if k or j else 2):
                more = (0.1 + 1e-8 * k) * run
                values = {"rmse": 3 - k + more + j, "log_posterior_predictive": -2.5 + more - 0.2 * k}
                costs = {"training_seconds": 10.0 ** (k + 1)}
                metrics = [
                    {"dataset": dataset, "condition": "", "metric": name, "value": value, "n": 100}
                    for name, value in (values | costs).items()
                    if (method, name) != (HOSTILE, "log_posterior_predictive")
                ]
                store.write(store.make(config(method, dataset, "paper", run, run), metrics, {}, dict(ABOUT)))
    metrics = [{"dataset": "boston", "condition": "", "metric": "rmse", "value": 7.0, "n": 100}]
    store.write(store.make(config("Ensemble", "boston", "short", 0, 0), metrics, {}, {"cpu": IMAGE}))
    return store


def site(folder: Path) -> Site:
    """Write the whole site."""
    return write(Suite(table()), Records(records(folder).root), folder / "site")
