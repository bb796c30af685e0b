"""Cost of a sweep before it begins: from records, checkpoints, and records of similar runs."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import datasets
from benchmarks import tables
from benchmarks.experiment.code import CODE
from benchmarks.records import provenance
from benchmarks.records.config import kind_key, training_key
from benchmarks.state import kept
from benchmarks.sweep.estimate import Known, estimate
from benchmarks.sweep.plan import make_plan
from benchmarks.sweep.similar import work
from tests.benchmarks import fakes
from tests.benchmarks.sweep.test_similar import meant, of


def record(folders, config, **about):
    """Write the record of a run trained on this processor."""
    store = fakes.store(folders[0])
    here = {"cpu": provenance.cpu(), "device": "cpu", "threads": 1, "seconds": 5.0, "fit_seconds": 2.0}
    store.write(store.make(config, [fakes.metric(0.5) | {"dataset": config["dataset"]["name"]}], {}, here | about))


def look(configs, folders):
    groups = make_plan(configs, *folders, fakes.SUITE).groups
    return estimate(groups, Known(fakes.store(folders[0]), folders[1]))


def test_records_of_the_kind_tell_by_their_lower_quartile(folders):
    for seed, seconds in ((10, 5.0), (11, 1000.0), (12, 7.0), (13, 8.0), (14, 9.0)):
        record(folders, fakes.config(seed), seconds=seconds, evaluate_seconds=3.0)
    found = look([fakes.config(seed) for seed in range(4)], folders)
    assert found.seconds == 4 * (7.0 + 2.0 + 3.0), "training, fitting and evaluation"
    assert (found.runs, found.sources, found.unknown, found.trained_only) == (4, {"records": 4}, [], 0)
    assert found.wall(2) == 24.0 and found.wall(100) == 12.0, "a run is not shared"
    assert not found.untried


def test_a_training_beside_other_work_counts_what_its_processor_took(folders):
    record(folders, fakes.config(10), seconds=40.0, busy=0.25, evaluate_seconds=8.0)
    found = look([fakes.config()], folders).seconds
    assert found == (40.0 + 2.0 + 8.0) * 0.25, "fit and evaluation ran beside the same work"
    record(folders, fakes.config(10), seconds=40.0, busy=1.001, evaluate_seconds=8.0)
    assert look([fakes.config()], folders).seconds == 50.0


@pytest.mark.parametrize(
    "about", [{"device": "NVIDIA H100"}, {"threads": 4}, {"seconds": None}, {"seconds": "5"}], ids=str
)
def test_records_of_other_devices_and_without_times_tell_nothing(folders, about):
    record(folders, fakes.config(10), **about)
    found = look([fakes.config()], folders)
    assert found.unknown == [fakes.config()] and found.untried == [fakes.config()] and found.bound == "at least"


def test_records_of_another_processor_tell_where_this_one_has_none_and_are_called_so(folders):
    record(folders, fakes.config(10), seconds=9.0, cpu="Z80")
    found = look([fakes.config()], folders)
    assert found.sources == {"records of another processor": 1} and found.seconds == 11.0 and not found.untried
    record(folders, fakes.config(11))
    found = look([fakes.config()], folders)
    assert found.sources == {"records": 1} and found.seconds == 7.0


def test_records_of_another_processor_count_by_how_slow_it_is_for_kinds_recorded_on_both(folders):
    for lr in (0.1, 0.2, 0.3):
        for seed, cpu, seconds in ((10, "Z80", 30.0), (11, provenance.cpu(), 10.0)):
            about = {"cpu": cpu, "seconds": seconds, "fit_seconds": 0.0, "busy": 1.0}
            record(folders, meant(fakes.config(seed, lr=lr)), **about)
    about = {"cpu": "Z80", "seconds": 90.0, "fit_seconds": 0.0, "busy": 1.0}
    record(folders, meant(of("a", "boston", 0, epochs=300)), **about)
    assert look([meant(of("a", "boston", 1, epochs=300))], folders).seconds == pytest.approx(30.0)
    assert look([of("a", "boston", 1, epochs=100)], folders).seconds == pytest.approx(10.0), "a similar kind"
    evaluated = meant(of("a", "boston", 2, epochs=400))
    record(folders, evaluated, **about, evaluate_seconds=6.0)
    assert look([evaluated | {"seed": 3}], folders).seconds == pytest.approx(30.0 + 2.0), "as slow in evaluation"
    record(folders, meant(fakes.config(12, lr=0.1)), seconds=1.0, fit_seconds=0.0)
    found = look([meant(fakes.config(0, lr=0.1))], folders)
    assert found.seconds == 10.0, "wall times do not count beside processor time"


def test_records_of_another_evaluation_tell_the_training_and_the_evaluation_by_draws_and_sets(folders):
    record(folders, fakes.config(10, lr=0.5))
    other = fakes.config(10)
    record(folders, other | {"evaluation": {**other["evaluation"], "samples": 8}}, evaluate_seconds=4.0)
    found = look([fakes.config()], folders)
    assert found.seconds == 7.0 + 4.0 / 8 and found.trained_only == 0
    wide = fakes.config(1)
    wide["evaluation"]["sets"] = ["test", "ood-a", "ood-b"]
    assert look([wide], folders).seconds == 7.0 + 3 * 4.0 / 8
    compared = wide | {"evaluation": {**wide["evaluation"], "reference": {"set": "test", "against": {}}}}
    found = look([compared], folders)
    assert (
        found.seconds == 7.0 and found.trained_only == 1 and "1 of them without their evaluation" in found.lines(1)[1]
    )


def test_a_record_whose_numbers_in_brackets_are_missing_is_of_this_processor(folders, monkeypatch):
    monkeypatch.setattr(provenance, "cpu", lambda: "Cray (family 1, model 2)")
    record(folders, fakes.config(10), cpu="Cray")
    assert look([fakes.config()], folders).seconds == 7.0
    record(folders, fakes.config(10, lr=0.5), cpu="Cray (family 1, model 3)")
    assert look([fakes.config(lr=0.5)], folders).sources == {"records of another processor": 1}


def checkpoint(folders, config, **about):
    """Write the checkpoint of a stack of two, at epoch 30 of 120 after 60 seconds."""
    folder = folders[1] / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    header = {"epoch": 30, "epochs": 120, "seconds": 60.0, "keys": [training_key(config), "another"]}
    header |= {"code": CODE, "torch": torch.__version__, "device": "cpu", "threads": 1, "cpu": provenance.cpu()} | about
    (folder / "stack.ckpt").write_text("digest\n" + json.dumps(header) + "\n")
    (folder / training_key(config)).symlink_to("stack.ckpt")


def test_a_checkpoint_tells_and_spares_what_it_has_done(folders):
    checkpoint(folders, fakes.config(1))
    found = look([fakes.config(seed, early_stopping={"patience": 3}) for seed in range(2)], folders)
    assert found.unknown, "it is of another kind"
    found = look([fakes.config(seed) for seed in range(2)], folders)
    whole = 60.0 / 30 * 120 / 2
    assert found.sources == {"a checkpoint": 2} and sorted(found.groups.values()) == [whole * 0.75, whole]
    assert sorted(found.saved.values()) == [0.0, 0.25]


@pytest.mark.parametrize(
    ("about", "done"),
    [({"cpu": "Z80"}, 0.25), ({"code": "older"}, 0.0), ({"threads": 2}, 0.0), ({"torch": "1.0"}, 0.0)],
)
def test_a_checkpoint_of_another_machine_or_code_tells_nothing(folders, about, done):
    checkpoint(folders, fakes.config(), **about)
    record(folders, fakes.config(10), seconds=8.0, fit_seconds=0.0, cpu="another")
    found = look([fakes.config()], folders)
    assert found.sources == {"records of another processor": 1} and found.seconds == 8.0 * (1 - done)


def test_a_kind_without_records_costs_what_similar_ones_do_in_proportion_to_the_work(folders):
    """300 and 100 epochs of 455 points in one batch: the same step, three times as often."""
    about = datasets.describe("boston")
    assert about.n_train == 455
    record(folders, meant(of("a", "boston", 0, epochs=300)), seconds=9.0, fit_seconds=0.0)
    found = look([of("a", "boston", 1, epochs=100), of("b", "boston", 0, epochs=100)], folders)
    assert found.seconds == pytest.approx(3.0)
    assert [*found.sources] == ["records of similar runs, in proportion to the work"]
    assert [config["method"] for config in found.unknown] == ["b"] and found.bound == "at least"
    assert found.lines(None)[0] == "estimate: 1 of 2 runs, less than 0.01 core-hours on otherwise idle cores"
    assert [config["method"] for config in found.untried] == ["a", "b"], (
        "whether they can be run at all is to be looked at"
    )


def test_trainings_of_a_stack_share_the_fixed_cost_of_a_step(folders):
    record(folders, meant(of("a", "boston", 9, epochs=300)), seconds=9.0, fit_seconds=0.0)
    stacked = [of("a", "boston", seed, epochs=100, stack=4) for seed in range(4)]
    (alone, _), (shared, _) = work(stacked[0]), work(stacked[0], stack=4)
    assert shared < alone / 2
    assert look(stacked, folders).seconds == pytest.approx(4 * 3.0 * shared / alone)


def test_records_of_smoke_tell_nothing_of_other_kinds(folders):
    record(folders, of("a", "boston", 0, epochs=300))
    assert look([of("a", "boston", 1, epochs=100)], folders).unknown


@pytest.mark.parametrize(
    "rule", [{"early_stopping": {"patience": 3}}, {"schedule": {"name": "plateau", "min_lr": 0.1}}]
)
def test_training_that_may_end_early_costs_at_most(folders, rule):
    record(folders, meant(of("a", "boston", 0, epochs=300)), seconds=9.0)
    assert look([of("a", "boston", 1, epochs=100, **rule)], folders).bound == "at most"


def test_records_show_where_training_is_expected_to_end(folders):
    rule = {"early_stopping": {"patience": 3}}
    record(folders, meant(of("a", "boston", 0, epochs=300, **rule)), seconds=9.0, fit_seconds=0.0, epochs=30)
    other = look([of("a", "boston", 1, epochs=100, **rule)], folders)
    assert list(other.ends.values()) == [0.3] and other.bound == "", "as many epochs"
    same = meant(of("a", "boston", 1, epochs=300, **rule))
    found = look([same], folders)
    assert list(found.ends.values()) == [0.1] and found.seconds == pytest.approx(9.0)
    checkpoint(folders, same, epoch=24, epochs=300)
    found = look([same], folders)
    assert found.seconds == pytest.approx(9.0 * 0.2), "a quarter more than what is made"
    assert (list(found.ends.values()), list(found.saved.values())) == ([0.1], [0.08])
    (folders[1] / "checkpoints" / training_key(same)).unlink()
    checkpoint(folders, same, epoch=240, epochs=300)
    assert look([same], folders).seconds == pytest.approx(90.0 * 0.2), "up to the last epoch"


def test_a_training_of_several_runs_is_counted_once_and_a_measured_one_not_at_all(folders):
    one = fakes.config(stack=1)
    other = one | {"evaluation": {**one["evaluation"], "samples": 9}}
    for config, seconds in ((one, 1.0), (other, 2.0)):
        elsewhere = {**config, "seed": 9}
        record(folders, elsewhere, seconds=8.0, fit_seconds=0.0, evaluate_seconds=seconds)
    assert look([one, other], folders).seconds == 11.0


def test_a_stale_record_is_measured_from_predictions(folders, monkeypatch):
    record(folders, fakes.config())
    monkeypatch.setitem(fakes.METRICS, "accuracy", SimpleNamespace(version=2))
    assert look([fakes.config()], folders).seconds == 7.0
    (folders[1] / "artifacts").mkdir(parents=True)
    known = Known(fakes.store(folders[0]), folders[1])
    kept_file = (
        folders[1] / "artifacts" / f"{training_key(fakes.config())}-{kind_key(fakes.config()).split('-')[1]}.npz"
    )
    kept_file.touch()
    assert known.measurable(fakes.config()) and look([fakes.config()], folders).seconds == 0.0


@pytest.mark.parametrize(
    ("made", "trained"),
    [({}, True), ({"code": "older"}, False), ({"threads": 2}, False), ({"torch": "1.0"}, False)],
    ids=str,
)
def test_a_training_whose_parameters_are_stored_costs_its_evaluation_alone(folders, made, trained):
    record(folders, fakes.config(10), evaluate_seconds=3.0)
    other = fakes.config()
    path = kept.parameters_path(folders[1], training_key(other))
    path.parent.mkdir(parents=True)
    about = {"made": {"code": CODE, "device": "cpu", "threads": 1, "torch": torch.__version__} | made}
    np.savez(path, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **{"parameters/w": np.zeros(3)})
    found = look([other, fakes.config(1)], folders)
    assert sorted(found.groups.values()) == [3.0 if trained else 10.0, 10.0]
    assert sorted(found.saved.values()) == [0.0, float(trained)]
    path.write_bytes(path.read_bytes()[:100])
    assert look([other], folders).seconds == 10.0


def test_runs_that_are_compared_with_others_are_of_one_kind_whichever_these_are():
    runs = tables.get("pequignot2020-1").runs("smoke", (0, 1))
    of = {(config["method"], config["dataset"]["name"], config["seed"]): config for config in runs}
    first, second = (of["NN-HyVI", "boston", seed] for seed in (0, 1))
    assert first["evaluation"]["posterior"]["against"] != second["evaluation"]["posterior"]["against"]
    assert kind_key(first) == kind_key(second)
    assert len({kind_key(of[method, "boston", 0]) for method in ("NN-HyVI", "FuNN-HyVI", "MC Dropout")}) == 3


def test_comparisons_count_by_how_many_they_are_with():
    def compared(*others, entry="reference"):
        config = fakes.config()
        config["evaluation"][entry] = {"set": "grid", "against": {"HMC": list(others)}}
        return kind_key(config)

    assert compared("a") == compared("b") != compared("a", "b")
    assert compared("a") != compared("a", entry="posterior") and compared("a") != kind_key(fakes.config())


@pytest.mark.parametrize("epochs", ["7", None, [7]])
def test_a_record_whose_epochs_are_no_number_counts_as_whole(folders, epochs):
    record(folders, meant(of("a", "boston", 0, epochs=300)), seconds=9.0, fit_seconds=0.0, epochs=epochs)
    assert look([of("a", "boston", 1, epochs=100)], folders).seconds == pytest.approx(3.0)
