"""Records for tests, written by the store that real ones are written by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.store import Store
from tests.reports.fakes import config


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """write(method, dataset, {(condition, metric): [value of each split]}, protocol, curves) -> the results folder."""

    def writer(
        method: str,
        dataset: str,
        values: dict[tuple[str, str], list[float | None]],
        protocol: str = "paper",
        curves: dict[str, Any] | None = None,
    ) -> Path:
        store = Store(tmp_path / "results")
        for split in range(max(len(runs) for runs in values.values())):
            metrics = [
                {"dataset": dataset, "condition": condition, "metric": metric, "value": runs[split], "n": 100}
                for (condition, metric), runs in values.items()
                if split < len(runs) and runs[split] is not None
            ]
            if metrics:
                store.write(store.make(config(method, dataset, protocol, split), metrics, curves or {}, {}))
        return tmp_path / "results"

    return writer
