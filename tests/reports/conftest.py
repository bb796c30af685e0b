"""Records for tests, written by the store that real ones are written by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib import pyplot

from benchmarks.records.store import Store
from tests.reports.fakes import config


@pytest.fixture
def no_open_canvas() -> Iterator[None]:
    """Close every figure after the test."""
    yield
    pyplot.close("all")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """write(method, dataset, {(condition, metric): [value of each run]}, ...) writes records; the results folder.

    Runs differ in split, with one_split in seed; about holds the provenance of each.
    """

    def writer(
        method: str,
        dataset: str,
        values: dict[tuple[str, str], list[float | None]],
        protocol: str = "paper",
        curves: dict[str, Any] | None = None,
        about: list[dict[str, Any]] | None = None,
        one_split: bool = False,
    ) -> Path:
        store = Store(tmp_path / "results")
        for run in range(max(len(runs) for runs in values.values())):
            metrics = [
                {"dataset": dataset, "condition": condition, "metric": metric, "value": runs[run], "n": 100}
                for (condition, metric), runs in values.items()
                if run < len(runs) and runs[run] is not None
            ]
            if metrics:
                made = config(method, dataset, protocol, 0 if one_split else run, run)
                store.write(store.make(made, metrics, curves or {}, about[run] if about else {}))
        return tmp_path / "results"

    return writer
