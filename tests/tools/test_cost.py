"""The cost benchmarks measure what they say; what they measure is not tested, since it is of one machine."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from fvi_core import methods
from fvi_core.training import ReplicaResult
from tools.cost import __main__ as command
from tools.cost import measures, timing, trainings
from tools.cost.timing import Measurement, Timing, interleave, ratio

pytestmark = pytest.mark.usefixtures("no_data")

FINE = ReplicaResult({}, 1, [0.0])


@pytest.fixture
def clock(monkeypatch):
    """Set clocks that only the measured works move."""
    now = SimpleNamespace(wall=0.0, process=0.0)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now.wall)
    monkeypatch.setattr(timing.time, "process_time", lambda: now.process)
    return now


def test_works_take_turns_and_only_training_after_the_first_turn_counts(clock):
    order = []

    def work(name, seconds):
        seconds = iter(seconds)

        def train():
            order.append(name)
            clock.wall += (spent := next(seconds))
            clock.process += spent / 4
            return [FINE]

        def make():
            clock.wall += 1000
            clock.process += 1000
            return train

        return make

    times = interleave({"a": work("a", [99, 2, 8, 4]), "b": work("b", [99, 1, 1, 7])}, repeats=3, steps=2)
    assert order == ["a", "b"] * 4
    assert times == {"a": Timing(2, 0.5), "b": Timing(0.5, 0.125)}
    assert ratio("x", "a", "b", times, 1).wall == 4


def test_a_training_that_fails_is_not_timed():
    with pytest.raises(RuntimeError, match="MFVI failed.*not finite"):
        interleave({"MFVI": lambda: lambda: [FINE, ReplicaResult(None, 1, [], "not finite")]}, 1)


@pytest.mark.parametrize(
    ("at_least", "wall", "process", "verdict"),
    [
        (False, 2.2, 2.2, "yes"),
        (False, 2.3, 2.0, "no (process: yes)"),
        (True, 3.0, 2.9, "yes (process: no)"),
        (True, 2, 2, "no"),
    ],
)
def test_goals_bound_from_the_side_that_they_say(at_least, wall, process, verdict):
    goal = 3.0 if at_least else 2.2
    assert Measurement("b", "n", 1, "x", wall, process, {}, goal, at_least).verdict == verdict


def test_the_number_of_threads_is_put_back():
    before = torch.get_num_threads()
    with pytest.raises(KeyError), timing.threads(before + 1):
        assert torch.get_num_threads() == before + 1
        raise KeyError
    assert torch.get_num_threads() == before


def test_stacked_and_looped_do_the_same_training():
    splits = [trainings.random_split((3,), 1, 60, seed) for seed in range(2)]
    parts = trainings.uci_parts("MAP", epochs=2)
    together = trainings.training_of(parts, splits)()()
    apart = trainings.one_by_one([trainings.training_of(parts, [split]) for split in splits])()()
    assert len(together) == len(apart) == 2
    for a, b in zip(together, apart, strict=True):
        assert a.epochs == b.epochs == 2 and a.loss == b.loss
        assert all(torch.equal(a.parameters[name], b.parameters[name]) for name in a.parameters)
    assert together[0].loss != together[1].loss


def test_fsvi_and_map_are_trained_on_the_network_of_rudner2022():
    fsvi, plain = trainings.fsvi_parts("FSVI"), trainings.fsvi_parts("MAP")
    assert fsvi["network"] == plain["network"] and fsvi["training"] == plain["training"]
    assert fsvi["divergence"]["jacobian"] == "last_layer" and plain["context"] is None
    assert fsvi["context"] == {"name": "random_monochrome", "points": 32}
    assert fsvi["training"]["batch_size"] == 128
    split = trainings.random_split((1, 28, 28), 10, 3)
    assert trainings.build_model(fsvi, split).network.n_parameters == 824_458


def test_methods_on_boston_have_the_settings_of_their_table():
    for name in ("FuNN-HyVI", "NN-HyVI"):
        parts = trainings.uci_parts(name, epochs=1)
        assert (parts["divergence"]["samples"], parts["training"]["samples"], parts["training"]["batch_size"]) == (
            500,
            100,
            50,
        )
    assert trainings.uci_parts("MAP", 1)["family"] == {"name": "point"}
    assert trainings.boston().train.x.shape == (455, 13)


@pytest.mark.parametrize("name", sorted(set(methods.catalogue()) - {"GP"}))
def test_every_method_of_the_catalogue_takes_a_step_on_the_digits_network(name):
    parts = trainings.catalogue_parts()[name]
    split = trainings.random_split((1, 8, 8), 10, 16)
    (trained,) = trainings.training_of(parts, [split])()()
    assert trained.reason is None and trained.epochs == 1


def test_methods_are_compared_with_map(monkeypatch):
    parts = {name: trainings.digits_parts(name) for name in ("MAP", "MC Dropout")}
    monkeypatch.setattr(trainings, "catalogue_parts", lambda: parts)
    (found,) = measures.catalogue(1)
    assert found.name == "MC Dropout / MAP" and found.wall > 0 and set(found.times) == set(parts)


@pytest.fixture
def one(monkeypatch):
    measured = Measurement("fake", "a / b", 2, "x", 2.0, 1.5, {"a": (4.0, 3.0), "b": (2.0, 2.0)}, 1.8)
    monkeypatch.setattr(command, "BENCHMARKS", {"fake": lambda repeats: [measured]})


def test_numbers_are_printed_and_written_with_goal_threads_and_machine(one, tmp_path: Path, capsys):
    folder = tmp_path / "new" / "folder"
    assert command.main(["fake", "--output", str(folder), "--repeats", "3"]) == 0
    document = json.loads((folder / "cost.json").read_text())
    (found,) = document["measurements"]
    assert (found["wall"], found["met"], found["met_by_process_time"], found["threads"]) == (2.0, False, True, 2)
    assert document["machine"]["cpu"] and document["turns"] == 3
    for text in (capsys.readouterr().out, (folder / "cost.md").read_text()):
        for said in ("a / b", "<= 1.8 x", "no (process: yes)", document["machine"]["cpu"], "medians of 3 turns"):
            assert said in text


@pytest.mark.parametrize(("arguments", "message"), [(["fkae"], "did you mean 'fake'"), (["--repeats", "0"], "found 0")])
def test_bad_arguments_are_refused_before_anything_is_measured(one, arguments, message, capsys):
    with pytest.raises(SystemExit) as error:
        command.main(arguments)
    captured = capsys.readouterr()
    assert error.value.code == 2 and message in captured.err and not captured.out


def test_a_folder_that_cannot_be_written_loses_no_number(one, tmp_path: Path, capsys):
    (tmp_path / "file").write_text("")
    assert command.main(["--output", str(tmp_path / "file")]) == 2
    captured = capsys.readouterr()
    assert "a / b" in captured.out and "cannot be written" in captured.err
