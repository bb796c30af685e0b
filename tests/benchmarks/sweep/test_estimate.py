"""What a sweep costs before it begins: from records, checkpoints, notes of earlier looks, and else from timed steps."""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace

import pytest

import datasets
from benchmarks import tables
from benchmarks.experiment.code import CODE
from benchmarks.records import provenance
from benchmarks.records.config import kind_key, training_key
from benchmarks.state.costs import AT_LEAST, AT_MOST, Cost, Costs
from benchmarks.sweep.estimate import estimate
from benchmarks.sweep.groups import Timed
from benchmarks.sweep.known import Known
from benchmarks.sweep.plan import make_plan
from benchmarks.sweep.similar import similar
from tests.benchmarks import fakes


class Scripted:
    """Trains nothing, and times what a script says: seconds that each look takes, and what it tells of a run."""

    def __init__(self, tell=lambda config: {"training": 10.0}, seconds=1.0, size=2, reason="", silent=4.0):
        self.tell, self.seconds, self.size, self.reason, self.silent = tell, seconds, size, reason, silent
        self.asked = []

    outlives = False

    def timed(self, group, patience):
        self.asked.append(group.configs[0]["method"])
        return Timed(self.tell(group.configs[0]), self.reason, self.seconds, self.silent)


@pytest.fixture
def folders(tmp_path):
    return tmp_path / "results", tmp_path / "state"


def record(folders, config, **about):
    """A record of a run made on this processor."""
    store = fakes.store(folders[0])
    here = {"cpu": provenance.cpu(), "device": "cpu", "threads": 1, "seconds": 5.0, "fit_seconds": 2.0}
    store.write(store.make(config, [fakes.metric(0.5)], {}, here | about))


def look(configs, folders, executor=None, suite=fakes.TIMED):
    groups = make_plan(configs, *folders, suite).groups(*folders, suite)
    known = Known(fakes.store(folders[0]), folders[1])
    return estimate(groups, known, executor or Scripted(lambda config: {}, reason="nothing is told"))


def test_records_of_the_kind_tell_and_nothing_is_timed(folders):
    for seed, seconds in ((10, 5.0), (11, 1000.0), (12, 7.0)):
        record(folders, fakes.config(seed), seconds=seconds, evaluate_seconds=3.0)
    executor = Scripted()
    found = look([fakes.config(seed) for seed in range(4)], folders, executor)
    assert found.seconds == 4 * (7.0 + 2.0 + 3.0), "the median of training, fitting and evaluation"
    assert (found.runs, found.sources, found.unknown, found.trained_only) == (4, {"records": 4}, {}, 0)
    assert found.wall(2) == 24.0 and found.wall(100) == 12.0, "a run is not shared"
    assert not executor.asked


@pytest.mark.parametrize(
    "about", [{"cpu": "Z80"}, {"device": "NVIDIA H100"}, {"threads": 4}, {"seconds": None}, {"seconds": "5"}], ids=str
)
def test_records_of_other_machines_and_without_times_tell_nothing(folders, about):
    record(folders, fakes.config(10), **about)
    executor = Scripted()
    assert look([fakes.config()], folders, executor).sources == {"timed steps": 1} and executor.asked


def test_records_of_other_kinds_tell_nothing_but_those_of_another_evaluation_tell_the_training(folders):
    record(folders, fakes.config(10, lr=0.5))
    assert look([fakes.config()], folders).unknown
    other = fakes.config(10)
    record(folders, other | {"evaluation": {**other["evaluation"], "samples": 99}}, evaluate_seconds=3.0)
    found = look([fakes.config()], folders)
    assert found.seconds == 7.0 and found.trained_only == 1


def test_a_record_whose_numbers_in_brackets_are_missing_is_of_this_processor(folders, monkeypatch):
    monkeypatch.setattr(provenance, "cpu", lambda: "Cray (family 1, model 2)")
    record(folders, fakes.config(10), cpu="Cray")
    assert look([fakes.config()], folders).seconds == 7.0
    record(folders, fakes.config(10, lr=0.5), cpu="Cray (family 1, model 3)")
    assert look([fakes.config(lr=0.5)], folders).unknown


def checkpoint(folders, config, **about):
    """The checkpoint of a stack of two, at epoch 30 of 120 after 60 seconds."""
    folder = folders[1] / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    told = {"epoch": 30, "epochs": 120, "seconds": 60.0, "keys": [training_key(config), "another"]}
    told |= {"code": CODE, "device": "cpu", "threads": 1, "cpu": provenance.cpu()} | about
    (folder / "stack.ckpt").write_text("digest\n" + json.dumps(told) + "\n")
    (folder / training_key(config)).symlink_to("stack.ckpt")


def test_a_checkpoint_tells_and_spares_what_it_has_done(folders):
    checkpoint(folders, fakes.config(1))
    found = look([fakes.config(seed, early_stopping={"patience": 3}) for seed in range(2)], folders)
    assert found.unknown, "it is of another kind"
    found = look([fakes.config(seed) for seed in range(2)], folders)
    whole = 60.0 / 30 * 120 / 2
    assert found.sources == {"a checkpoint": 2} and sorted(found.groups.values()) == [whole * 0.75, whole]


@pytest.mark.parametrize(("about", "done"), [({"cpu": "Z80"}, 0.25), ({"code": "older"}, 0.0), ({"threads": 2}, 0.0)])
def test_a_checkpoint_of_another_machine_or_code_tells_nothing(folders, about, done):
    checkpoint(folders, fakes.config(), **about)
    found = look([fakes.config()], folders, Scripted(lambda config: {"training": 8.0}))
    assert found.sources == {"timed steps": 1} and found.seconds == 8.0 * (1 - done)


def test_what_was_timed_is_not_timed_again_until_the_code_changes(folders, monkeypatch):
    told = {"training": 8.0, "evaluation": {kind_key(fakes.config()): 2.0}}
    first, second, third = (Scripted(lambda config: told) for _ in range(3))
    runs = [fakes.config(seed) for seed in range(3)]
    assert look(runs, folders, first).seconds == look(runs, folders, second).seconds == 30.0
    assert first.asked == ["MAP"] and not second.asked
    monkeypatch.setattr("benchmarks.sweep.known.CODE", "other")
    look(runs, folders, third)
    assert third.asked == ["MAP"] and len(list((folders[1] / "costs").iterdir())) == 1


def test_one_group_of_each_kind_is_timed_the_longest_of_most_runs_first(folders):
    runs = [fakes.config(seed, "short", epochs=1) for seed in range(9)]
    runs += [fakes.config(seed, "long", epochs=50) for seed in range(2)] + [fakes.config(0, "alone", epochs=60)]
    executor = Scripted()
    assert look(runs, folders, executor).seconds == 12 * 10.0
    assert executor.asked == ["long", "alone", "short"]


def test_timing_stops_when_its_time_is_up_unless_the_sweep_is_long(folders):
    runs = [fakes.config(0, name) for name in "abcdefgh"]
    executor = Scripted(seconds=4.0)
    found = look(runs, folders, executor)
    assert executor.asked == ["a", "b", "c"] and found.bound == AT_LEAST
    assert {reason: len(left) for reason, left in found.unknown.items()} == {"no time was left to time it": 5}
    assert len(found.not_known) == 5 and found.seconds == 30.0
    loads = Scripted(lambda config: {"training": 10.0, "once": 3.5}, seconds=4.0)
    assert not look([fakes.config(3, name) for name in "ABCDEFGH"], folders, loads).unknown, "loading does not count"
    found = look([fakes.config(1, name) for name in "ijklmnop"], folders, Scripted(lambda c: {"training": 9000.0}, 4.0))
    assert not found.unknown, "a hundredth of its time may go into timing"
    long = Scripted(lambda config: {"training": 20_000.0}, seconds=20.0)
    assert len(look([fakes.config(2, name) for name in "qrstuvwx"], folders, long).not_known) == 5, "at most a minute"
    endless = Scripted(lambda config: {"training": 1e9}, seconds=20.0)
    found = look([fakes.config(2, name) for name in "QRSTUVWX"], folders, endless)
    assert len(found.not_known) == 7, "it does not begin, and is not looked at for longer"


def test_kinds_that_no_time_was_left_for_cost_what_similar_runs_do(folders):
    sizes = {"digits": 1258, "yacht": 277, "boston": 455}
    assert {name: datasets.describe(name).n_train for name in sizes} == sizes
    runs = [
        fakes.config(0, "a", name, epochs=epochs) for name, epochs in (("digits", 30), ("yacht", 20), ("boston", 10))
    ]
    runs += [fakes.config(0, "b", epochs=2), fakes.config(0, "c", epochs=1)]
    executor = Scripted(lambda config: {"training": 10.0, "evaluation": {kind_key(config): 2.0}}, seconds=5.0)
    found = look(runs, folders, executor)
    assert executor.asked == ["a", "b"], "of each method one before a second of any"
    times = {name: sizes[name] * epochs / (1258 * 30) for name, epochs in (("yacht", 20), ("boston", 10))}
    assert sorted(found.groups.values()) == pytest.approx(
        sorted([12.0, 12.0, 12 * times["yacht"], 12 * times["boston"]])
    )
    assert found.sources == {"timed steps": 2, "similar runs": 2}
    assert [config["method"] for config in found.not_known] == ["c"] and found.bound == AT_LEAST
    assert len(found.timed) == 4, "whether they can be run at all is to be looked at"


def test_far_too_long_by_records_of_other_settings_is_not_timed(folders):
    for seed in range(3):
        reduced = {**fakes.config(seed, epochs=10), "protocol": "short"}
        record(folders, reduced, seconds=1e5 + seed, fit_seconds=0.0, evaluate_seconds=50.0)
    runs = [fakes.config(seed, epochs=20) for seed in range(3)] + [fakes.config(0, "other", epochs=20)]
    executor = Scripted(size=2)
    found = look(runs, folders, executor)
    assert not executor.asked and found.sources == {"similar runs": 3}
    assert found.seconds == pytest.approx(3 * 2 * (1e5 + 50), rel=1e-4), "twice the epochs"
    assert [config["method"] for config in found.not_known] == ["other"]
    far = Scripted(size=3)
    look(runs, folders, far)
    assert far.asked, "three workers take less than three days for what is known"
    elsewhere = Scripted(size=2)
    elsewhere.outlives = True
    look(runs, (folders[0], folders[1] / "another"), elsewhere)
    assert elsewhere.asked, "a cluster holds nothing back"


def test_records_of_smoke_are_no_ground_to_time_nothing(folders):
    for seed in range(3):
        record(folders, fakes.config(seed, epochs=10), seconds=1e5)
    executor = Scripted(size=1)
    look([fakes.config(seed, epochs=20) for seed in range(3)], folders, executor)
    assert executor.asked


def test_the_nearest_work_tells_and_other_networks_or_data_of_unknown_size_tell_nothing(folders):
    config = fakes.config(0, "a", "boston", epochs=10, samples=3)
    near, far = (fakes.config(0, "a", "boston", epochs=n, samples=3) for n in (20, 1000))
    known = [(far, Cost(9999.0)), (near, Cost(8.0, None, AT_MOST))]
    assert similar(config, known) == Cost(4.0, None, AT_MOST)
    other = copy.deepcopy(near)
    other["parts"]["network"]["name"] = "cnn"
    assert similar(config, [(other, Cost(8.0))]) is None
    assert similar(config, [(fakes.config(0, "b", "boston", epochs=20), Cost(8.0))]) is None
    assert similar(fakes.config(0, "a", "no-such-data"), known) is None


def test_networks_and_ensembles_cost_what_they_multiply():
    """Two members in place of one, of layers of 64 x 30, 30 x 30, 30 x 10 weights in place of 64 x 10, 10 x 10, 10 x
    10.
    """
    narrow, wide = (fakes.config(0, "a", "digits") for _ in range(2))
    for config, hidden in ((narrow, 10), (wide, 30)):
        config["parts"]["network"] |= {"name": "mlp", "hidden": [hidden, hidden]}
    wide["parts"]["family"] = {"name": "ensemble", "base": {"name": "point"}, "size": 2}
    found = similar(wide, [(narrow, Cost(3.0, 1.0))])
    times = 2 * (64 * 30 + 30 * 30 + 30 * 10) / (64 * 10 + 10 * 10 + 10 * 10)
    assert found and (found.training, found.evaluation) == pytest.approx((3 * times, times))
    other = fakes.config(0, "a", "digits")
    other["parts"]["family"] = {"name": "centroids", "size": 256}
    same = similar(other, [(fakes.config(0, "a", "digits"), Cost(3.0))])
    assert same and same.training == 3.0, "what another family calls its size is no number of networks"


def test_records_of_other_processors_tell_where_this_one_has_none(folders):
    reduced = {**fakes.config(0, epochs=10), "protocol": "short"}
    record(folders, reduced, seconds=4e5, cpu="another (family 1, model 2, stepping 3)")
    executor = Scripted(size=1)
    found = look([fakes.config(0, epochs=20)], folders, executor)
    assert not executor.asked and found.sources == {"similar runs": 1} and found.seconds == pytest.approx(8e5 + 4)
    record(folders, {**fakes.config(1, epochs=10), "protocol": "short"}, seconds=5.0)
    again = Scripted(size=1)
    look([fakes.config(0, epochs=20)], folders, again)
    assert again.asked, "records of this machine go before them"


def test_a_kind_that_cannot_be_timed_stops_nothing(folders):
    def tell(config):
        return {"training": 5.0} if config["method"] == "good" else {"setup": 2.0, "steps": 10, "trainings": 2}

    executor = Scripted(tell, reason="it does not fit", silent=0.0)
    found = look([fakes.config(0, "bad"), fakes.config(0, "good")], folders, executor)
    assert found.seconds == 5.0 and found.unknown.keys() == {"it does not fit"}
    assert Costs(folders[1], Known(fakes.store(folders[0]), folders[1]).machine).get(kind_key(fakes.config())) is None


@pytest.mark.parametrize(
    ("told", "seconds", "bound"),
    [
        ({"setup": 2.0, "steps": 10, "trainings": 2}, (2.0 + 10 * 4.0) / 2, AT_LEAST),
        ({"setup": 2.0, "steps": 10, "trainings": 2, "first_step": 3.0}, (2.0 + 10 * 3.0) / 2, ""),
    ],
    ids=["the first step was not over", "the second was not over"],
)
def test_steps_that_take_too_long_tell_as_much_as_was_seen(folders, told, seconds, bound):
    found = look([fakes.config()], folders, Scripted(lambda config: told, reason="nothing was seen for 4 s"))
    assert (found.seconds, found.bound) == (seconds, bound)


@pytest.mark.parametrize(
    "rule", [{"early_stopping": {"patience": 3}}, {"schedule": {"name": "plateau", "min_lr": 0.1}}]
)
def test_training_that_may_end_early_costs_at_most(folders, rule):
    assert look([fakes.config(**rule)], folders, Scripted()).bound == AT_MOST


def test_a_suite_that_times_nothing_says_so(folders):
    executor = Scripted()
    found = look([fakes.config()], folders, executor, fakes.SUITE)
    assert not executor.asked and found.unknown.keys() == {"this suite times nothing"}


def test_a_training_of_several_runs_is_counted_once_and_a_measured_one_not_at_all(folders):
    one = fakes.config(stack=1)
    other = one | {"evaluation": {**one["evaluation"], "samples": 9}}
    told = {"training": 8.0, "evaluation": {kind_key(one): 1.0, kind_key(other): 2.0}}
    assert look([one, other], folders, Scripted(lambda config: told)).seconds == 11.0


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
    "text",
    ["", "{", "[]", "7", '{"machine": {}}', '{"cost": {"training": 1}}', "null"],
)
def test_a_note_that_cannot_be_used_is_none(tmp_path, text):
    costs = Costs(tmp_path, {"code": "c"})
    costs.put("kind", Cost(3.0, 1.0, AT_MOST))
    assert costs.get("kind") == Cost(3.0, 1.0, AT_MOST)
    costs.path("kind").write_text(text)
    assert costs.get("kind") is None


@pytest.mark.parametrize(
    "cost", [{"training": -1.0}, {"training": "x"}, {"bound": "no"}, {"more": 1}, {"evaluation": []}]
)
def test_a_note_of_wrong_values_is_none(tmp_path, cost):
    costs = Costs(tmp_path, {"code": "c"})
    costs.put("kind", Cost(3.0))
    told = json.loads(costs.path("kind").read_text())
    costs.path("kind").write_text(json.dumps(told | {"cost": told["cost"] | cost}))
    assert costs.get("kind") is None


def test_notes_that_cannot_be_written_stop_nothing(tmp_path):
    (tmp_path / "costs").touch()
    costs = Costs(tmp_path, {"code": "c"})
    costs.put("kind", Cost(3.0))
    assert costs.get("kind") is None


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
