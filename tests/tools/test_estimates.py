"""Estimates are checked against kinds of training whose own records are left out."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from benchmarks.sweep.similar import Cost, Recorded
from tests.benchmarks import fakes
from tools import estimates


def recorded(store, seconds, **training):
    """A record of protocol short with a network that can be built."""
    config = fakes.config(0, "a", "boston", **training)
    config["parts"]["network"] |= {"hidden": [10, 10]}
    about = {"cpu": "Z80", "device": "cpu", "threads": 1, "seconds": seconds, "fit_seconds": 0.0}
    store.write(store.make({**config, "protocol": "short"}, [fakes.metric(0.5) | {"dataset": "boston"}], {}, about))


def test_a_kind_is_estimated_from_other_kinds_alone(tmp_path, monkeypatch):
    store = fakes.store(tmp_path)
    monkeypatch.setattr(estimates, "Store", lambda results: store)
    recorded(store, 10.0, epochs=100)
    assert estimates.kinds(tmp_path) == []
    recorded(store, 90.0, epochs=300)
    large, small = estimates.kinds(tmp_path)
    assert large[1:] == (90.0, pytest.approx(30.0)) and small[1:] == (10.0, pytest.approx(30.0))


def test_a_measured_training_counts_as_many_epochs_as_the_recorded_ones_made(monkeypatch):
    """Two moons in full batches: 1 s for each epoch here."""
    path = next(
        file
        for file in sorted(Path("results/two-moons-rudner/map").glob("*.json"))
        if json.loads(file.read_text())["provenance"]["stack"] == 1
    )
    config = json.loads(path.read_text())["config"]
    assert config["parts"]["training"]["batch_size"] >= 200
    clock = itertools.count()
    monkeypatch.setattr(estimates.time, "process_time", lambda: float(next(clock)))
    found = estimates.measured([Recorded(config, Cost(1.0), share=0.5)], seconds=2.0)
    assert found == pytest.approx(0.5 * config["parts"]["training"]["epochs"])


def test_the_factor_off_is_the_same_for_too_much_and_too_little():
    pairs = [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (0.0, 5.0)]
    assert estimates.distribution("some", pairs) == "some: 3 kinds, factor off: median 2.00, 90 % 2.00, largest 2.0"
    assert estimates.distribution("some", []) == "some: none"
