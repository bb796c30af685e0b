"""Code from outside that writes into the arrays it is given changes no record, no file and no other number."""

import sys
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import datasets
from benchmarks import metrics
from benchmarks.experiment.execute import execute
from benchmarks.experiment.measure import UNCHANGED, measure_run
from benchmarks.metrics import registry
from benchmarks.metrics.registry import METRICS
from benchmarks.records import predictions
from benchmarks.records.config import run_key
from benchmarks.records.predictions import ClassificationPredictions, RegressionPredictions
from benchmarks.records.store import Store
from benchmarks.state import kept
from datasets.registry import ENTRIES
from datasets.tabular import assemble
from fvi_core.fitting import Fit
from fvi_core.registry import FITS
from tests.benchmarks.experiment.test_execute import CURVE, MOONS, config, numbers


def accuracy(given: predictions.Predictions) -> float:
    return float((metrics.summarise(given.logits).p.argmax(-1) == given.labels).mean())


def margin(given: predictions.Predictions) -> float:
    logits = given.logits
    logits -= logits.max(-1, keepdims=True)
    logits.sort(-1)
    return float((logits[..., -1] - logits[..., -2]).mean())


def with_torch(given: predictions.Predictions, *others: predictions.Predictions) -> float:
    for each in (given, *others):
        torch.from_numpy(each.logits).zero_()
        if each.labels is not None:
            each.labels[:] = 0
    return 0.0


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch):
    """Adds metrics for one test, in the order of the calls."""
    monkeypatch.setattr(registry, "OWN", {})
    before = dict(METRICS)

    def add(name: str, of=None, ood=None) -> None:
        metrics.add(metrics.Metric(name, "higher", "", ""), of, ood=ood)

    yield add
    METRICS.clear()
    METRICS.update(before)


def test_a_metric_that_writes_in_place_changes_no_other_number_and_no_file(added, tmp_path):
    case = config("MC Dropout", dataset=MOONS)
    (fair,) = execute([case], state=tmp_path / "fair")
    for name, of in (("margin", margin), ("with_torch", with_torch), ("own_accuracy", accuracy)):
        added(name, of)
    (outcome,) = execute([case], state=tmp_path / "state")
    found, right = numbers(outcome), numbers(fair)
    assert {name: found[name] for name in right} == right
    assert found["own_accuracy", ""] == right["accuracy", ""] and found["margin", ""][0] > 0
    kept_fair, kept_own = (
        predictions.load(kept.predictions_path(tmp_path / folder, run_key(case)))["test"]
        for folder in ("fair", "state")
    )
    np.testing.assert_array_equal(kept_own.logits, kept_fair.logits)
    np.testing.assert_array_equal(kept_own.labels, kept_fair.labels)
    store = Store(tmp_path / "results")
    store.write(store.make(case, outcome.metrics, outcome.curves, outcome.provenance))
    assert measure_run(case, store, tmp_path / "state") == UNCHANGED


def test_a_metric_that_changes_settings_or_leaves_stops_no_other_run(added):
    given = {"test": ClassificationPredictions(np.zeros((2, 9, 3)), np.arange(9) % 3)}
    sets = [metrics.SetInfo("test", "id")]
    added("frozen", lambda given: float(torch.set_grad_enabled(False) is None))
    metrics.evaluate("classification", "d", sets, given)
    assert torch.is_grad_enabled()
    added("gone", lambda given: sys.exit(0))
    with pytest.raises(ValueError, match="metric 'gone' on evaluation set 'test': SystemExit: 0; correct the plug-in"):
        metrics.evaluate("classification", "d", sets, given)


def test_a_metric_of_another_source_cannot_change_the_test_set(added):
    rng = np.random.default_rng(0)
    sets = [metrics.SetInfo("far", "ood", "ood=far"), metrics.SetInfo("test", "id")]
    given = {
        "far": ClassificationPredictions(rng.normal(size=(2, 9, 3))),
        "test": ClassificationPredictions(rng.normal(size=(2, 9, 3)), rng.integers(0, 3, 9)),
    }
    expected = accuracy(given["test"])
    added("swept", ood=with_torch)
    added("own_accuracy", accuracy)
    rows, _ = metrics.evaluate("classification", "d", sets, given)
    assert {row["metric"]: row["value"] for row in rows}["own_accuracy"] == expected


@pytest.mark.parametrize(
    "made",
    [
        lambda a: ClassificationPredictions(a.reshape(2, 3, 2), np.array([0, 1, 1])),
        lambda a: RegressionPredictions(a.reshape(4, 3), np.ones(4), a[:3]),
        lambda a: RegressionPredictions(a.reshape(4, 3), 1.0, a[:3], mean=a[:3], variance=a[:3]),
    ],
)
def test_predictions_are_read_only_copies_of_what_was_given(made):
    given = np.arange(1.0, 13.0, dtype=np.float32).astype(np.float64)
    held = {name: value for name, value in vars(made(given)).items() if isinstance(value, np.ndarray)}
    assert len(held) >= 2
    for name, array in held.items():
        assert not np.shares_memory(array, given), name
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    given[0] = 7  # it stays the caller's


def test_a_metric_that_fails_leaves_the_predictions(added, tmp_path):
    def broken(given):
        raise ArithmeticError("no such mean")

    added("broken", broken)
    case = config("MAP", dataset=MOONS)
    with pytest.raises(ValueError, match="metric 'broken' on evaluation set 'test': ArithmeticError: no such mean"):
        execute([case], state=tmp_path)
    assert set(predictions.load(kept.predictions_path(tmp_path, run_key(case)))) == {"test"}


@dataclass(frozen=True)
class Writer(Fit):
    """Writes in place into what it shares with others."""

    name = "writer"
    into: str = "data"

    def __call__(self, parameters, fitting):
        if self.into == "data":
            fitting.y.add_(1)
        elif self.into == "fitted":
            next(iter(parameters.values())).mul_(2)
        return dict(parameters)

    def functions(self, network, family, parameters, own, samples, streams):
        if self.into == "parameters":
            next(iter(parameters.values())).mul_(2)
        return family.functions(network, parameters, samples, streams)


@pytest.mark.parametrize(
    "into, afterwards, message",
    [
        ("data", False, "wrote into training data y in place during fitting"),
        ("data", True, "wrote into training data y in place during fitting"),
        ("fitted", True, "in place during fitting"),
        ("parameters", False, "in place during prediction"),
    ],
)
def test_a_part_that_writes_into_what_it_shares_fails_by_name(monkeypatch, tmp_path, into, afterwards, message):
    monkeypatch.setitem(FITS.classes, "writer", Writer)
    spec = {"name": "writer", "into": into}
    case = config("MAP", dataset=CURVE, parts={} if afterwards else {"fit": spec})
    if afterwards:
        case = type(case)({**case, "evaluation": {**case["evaluation"], "fit": spec}})
    (outcome,) = execute([case], state=tmp_path)
    assert outcome.status == "failed" and message in outcome.reason and "let it change a copy" in outcome.reason


def test_a_data_set_may_write_into_the_arrays_that_it_keeps(monkeypatch):
    monkeypatch.setattr("datasets.registry.ENTRIES", dict(ENTRIES))
    x, y = np.linspace(0, 1, 12)[:, None].astype(np.float32), np.arange(12.0)
    made = assemble("kept", "1", 0, "", x, y, {"train": np.arange(8), "test": np.arange(8, 12)})
    points = datasets.EvaluationSet("far", "ood", "ood=far", x.copy(), None)
    made = type(made)(**vars(made) | {"evaluations": {"far": lambda: points}})
    datasets.add("kept", lambda split: made)
    loaded = datasets.load("kept")
    before, far = loaded.fingerprint, loaded.evaluation("far").x.copy()
    for array in (made.train.x, made.train.y, made.test.x, made.test.y, points.x):
        array += 1
    assert type(loaded)(**{n: v for n, v in vars(loaded).items() if n != "fingerprint"}).fingerprint == before
    np.testing.assert_array_equal(datasets.load("kept").evaluation("far").x, far + 1)
    held = loaded.evaluation("far")
    held.x[...] = 0
    np.testing.assert_array_equal(points.x, far + 1)
