"""Records made anew: equal, equal to rounding, different, failed."""

from __future__ import annotations

import copy
import json
import math

import pytest

from benchmarks import tables
from benchmarks.commands import upkeep
from benchmarks.commands.cli import build
from benchmarks.errors import UsageError
from benchmarks.records import provenance
from benchmarks.records.config import run_key
from benchmarks.records.store import Store
from benchmarks.suite import Suite
from benchmarks.sweep import runner, verify
from benchmarks.sweep.plan import make_plan
from benchmarks.tables import manifest
from tests.benchmarks import fakes


@pytest.fixture
def store(tmp_path):
    """Store of five records of the fakes."""
    fakes.sweep([fakes.config(seed) for seed in range(5)], results=tmp_path / "results", state=tmp_path / "state")
    return fakes.store(tmp_path / "results")


def changed(store, config, **changes):
    """Change the value or the processor of a record, and sign it again."""
    record = store.get(config)
    record["metrics"][0]["value"] *= changes.get("times", 1)
    record["provenance"] |= changes.get("about", {})
    store.write(record)


def again(store, configs):
    return list(verify.make_again([store.get(c, curves=False) for c in configs], store, None, fakes.SUITE))


def test_a_record_made_anew_is_equal(store):
    before = {path: path.read_bytes() for path in store.paths().values()}
    found = again(store, [fakes.config(seed) for seed in range(5)])
    assert [one.verdict for one in found] == ["equal"] * 5 and not any(one.alarming for one in found)
    assert {path: path.read_bytes() for path in store.paths().values()} == before


@pytest.mark.parametrize(("times", "verdict"), [(1 + 1e-12, "equal to rounding"), (1.01, "different")])
def test_another_number_is_seen_with_its_size(store, times, verdict):
    changed(store, fakes.config(1), times=times)
    (found,) = again(store, [fakes.config(1)])
    assert found.verdict == verdict and math.isclose(found.difference, 1 - 1 / times, rel_tol=1e-3)
    assert found.of == "digits accuracy" and found.alarming == (verdict == "different")


@pytest.mark.parametrize(("about", "machine"), [
    ({"cpu": "some other (family 1, model 2)"}, "some other (family 1, model 2)"),
    ({"threads": 2}, f"{provenance.cpu()}, 2 threads"),
    ({"device": "NVIDIA H200"}, f"{provenance.cpu()}, NVIDIA H200"),
])  # fmt: skip
def test_another_machine_excuses_a_difference(store, about, machine):
    changed(store, fakes.config(1), times=1.01, about=about)
    found = again(store, [fakes.config(1)])
    assert found[0].verdict == "different" and not found[0].alarming and found[0].machines[0] == machine
    assert "another model of processor, number of threads or device" in upkeep.comparison_text(found)


def test_a_run_that_fails_now_is_named(store):
    config = fakes.config(7, do="raise")
    store.write(store.make(config, [fakes.metric(0.5)], {}, {"seconds": 1.0}))
    (found,) = again(store, [config])
    assert found.verdict == "failed" and found.alarming and "the loss exploded" in found.reason
    assert "the loss exploded" in upkeep.comparison_text([found]) and "1 failed" in upkeep.comparison_text([found])


def record(**changes):
    made = fakes.store("").make(fakes.config(), [fakes.metric(0.5)], {"roc": {"x": [0.0, 1.0]}}, {"cpu": "c"})
    return json.loads(json.dumps(made)) | changes


def test_a_record_of_an_absent_data_set_fails_alone(tmp_path):
    present = tables.get("digits").runs("smoke")[0]
    runner.run(make_plan([present], tmp_path / "results", tmp_path / "state", Suite()))
    store = Store(tmp_path / "results")
    record = store.get(present)
    absent = {**present, "dataset": {**present["dataset"], "name": "elsewhere"}}
    rows = [{**row, "dataset": "elsewhere"} for row in record["metrics"]]
    store.write(store.make(absent, rows, {}, record["provenance"]))
    found = list(verify.make_again([store.get(config) for config in (absent, present)], store, None, Suite()))
    assert [one.verdict for one in found] == ["failed", "equal"]
    assert "no data set 'elsewhere'" in found[0].reason


def test_curves_are_compared_where_metrics_are_equal():
    other = copy.deepcopy(record())
    other["curves"]["roc"]["x"][1] = 1.5
    found = verify.compare(record(), other)
    assert (found.verdict, found.of) == ("different", "curve roc x[1]") and math.isclose(found.difference, 1 / 3)
    del other["curves"]["roc"]
    assert verify.compare(record(), other).verdict == "equal", "curves that only one has are not compared"


def test_a_metric_that_only_one_has_is_a_difference_if_both_know_it():
    other = record(metrics=[fakes.metric(0.5), fakes.metric(0.1) | {"metric": "nll"}])
    assert verify.compare(record(), other).difference == math.inf
    older = record(metric_versions={"accuracy": 1})
    assert verify.compare(older, other).verdict == "equal"
    costs = [fakes.metric(0.5), fakes.metric(9.0) | {"metric": "training_seconds"}]
    assert (
        verify.compare(record(metrics=costs, metric_versions={"accuracy": 1, "training_seconds": 1}), record()).verdict
        == "equal"
    )


def test_rows_and_curves_by_a_score_that_only_one_knows_are_left_out():
    curves = {"roc": {"fpr": [0.0, 1.0], "nll": [0.0, 1.0]}}
    row = fakes.metric(0.1) | {"condition": "ood=photos;score=nll"}
    newer = record(metrics=[fakes.metric(0.5), row], curves=curves)
    older = record(metric_versions={"accuracy": 1}, curves={"roc": {"fpr": [0.0, 1.0]}})
    assert verify.compare(older, newer).verdict == "equal" == verify.compare(newer, older).verdict
    both = record(curves={"roc": {"fpr": [0.0, 1.0]}})
    assert verify.compare(both, newer).difference == math.inf
    older["curves"]["roc"]["fpr"] = [0.5, 1.0]
    assert verify.compare(older, newer).verdict == "different"


@pytest.mark.parametrize(("one", "other", "same"), [
    ("AMD EPYC (family 26, model 2, stepping 1)", "AMD EPYC (family 26, model 2, stepping 1)", True),
    ("AMD EPYC (family 26, model 2, stepping 1)", "AMD EPYC (family 25, model 1, stepping 1)", False),
    ("AMD EPYC", "AMD EPYC (family 25, model 1, stepping 1)", False), ("AMD EPYC", "AMD EPYC", True),
])  # fmt: skip
def test_models_of_processors(one, other, same):
    made = [record(provenance={"cpu": cpu}) for cpu in (one, other)]
    assert verify.Remade(*made, "different").alarming == same


def test_the_sample_is_random_repeatable_and_of_short_trainings(store):
    changed(store, fakes.config(2), about={"seconds": 1000.0})
    chosen, short, every, _ = verify.sample(store, 3, 5.0, seed=4)
    assert (len(chosen), short, every) == (3, 4, 5)
    assert [one["key"] for one in chosen] == [one["key"] for one in verify.sample(store, 3, 5.0, seed=4)[0]]
    assert {one["config"]["seed"] for seed in range(20) for one in verify.sample(store, 3, 5.0, seed)[0]} == {
        0,
        1,
        3,
        4,
    }
    with pytest.raises(UsageError, match="no record whose training took at most 0 min, among 5"):
        verify.sample(store, 3, 0.0, seed=4)
    with pytest.raises(UsageError, match="--n is 0"):
        verify.sample(store, 0, 5.0, seed=4)


def test_the_sample_has_no_retired_record_whose_recipe_may_have_gone(store):
    config = fakes.config(2)
    manifest.write_retired({store.file(config).removesuffix(".json"): "another recipe"}, store.root / manifest.RETIRED)
    chosen, short, every, _ = verify.sample(store, 5, 5.0, seed=4)
    assert (short, every) == (4, 4) and {one["config"]["seed"] for one in chosen} == {0, 1, 3, 4}


def test_what_is_made_again_may_be_kept(store):
    config = fakes.config(1)
    changed(store, config, times=3.0)
    (found,) = again(store, [config])
    assert found.verdict == "different" and found.again["metrics"][0]["value"] == fakes.number(config)


def test_named_records_are_verified_and_stay(store, call):
    config = fakes.config(1)
    changed(store, config, times=3.0)
    before = {path: path.read_bytes() for path in store.paths().values()}
    where = ("--results", str(store.root))
    status, output, _ = call(build(fakes.SUITE), "verify", run_key(config), "--workers", "1", *where)
    assert status == 1 and "1 records; their trainings took" in output and "1 records: 1 different" in output
    assert {path: path.read_bytes() for path in store.paths().values()} == before
    assert "unknown key 'nothing'" in call(build(fakes.SUITE), "verify", "nothing", *where)[2]


def test_an_invalid_record_is_left_out_of_the_sample_and_named(store, call):
    path = store.path(fakes.config(2))
    path.write_text("{")
    options = ("--n", "1", "--workers", "1", "--results", str(store.root))
    status, output, _ = call(build(fakes.SUITE), "verify", *options)
    assert status == 1 and "of the 4 whose" in output and f"not counted: {path}: not a whole record" in output


def test_other_data_are_named(store):
    sets = {"test": "a", "ood": "b", "train/points": "c"}
    mine = {"fingerprint": "1", "training_fingerprint": "2", "data": sets}
    theirs = {"fingerprint": "1", "training_fingerprint": "3", "data": sets | {"ood": "d"}}
    found = verify.compare(record(provenance=mine), record(provenance=theirs))
    assert found.verdict == "equal" and found.alarming
    assert found.other_data == ["training and contexts", "set ood"]
    assert f"{found.record['key']} read other data than its record says: training and contexts, set ood" in (
        upkeep.comparison_text([found])
    )
    older = verify.compare(record(provenance={"fingerprint": "1"}), record(provenance=theirs))
    assert older.other_data == [] and not older.alarming, "digests that only one has are not compared"
