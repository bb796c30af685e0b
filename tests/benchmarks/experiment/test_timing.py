"""What a run costs is seen from its first steps, which are those of a run, by a clock that the tests wind."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import torch

from benchmarks.experiment import timing
from benchmarks.experiment.execute import execute
from benchmarks.experiment.timing import time_steps
from benchmarks.records.config import kind_key
from benchmarks.tables import Recipe
from datasets import corruptions
from fvi_core.hamiltonian import HamiltonianMonteCarlo
from fvi_core.stack import Stack
from tests.benchmarks.experiment.test_execute import CASES, MOONS, config, numbers
from tests.configs import make_config
from tests.fvi_core import small
from tests.fvi_core.own_parts import Metropolis
from tests.fvi_core.test_samplers import PARTS


class Clock:
    """To begin takes a hundred seconds, a step of a stack one, the end of an epoch ten, the rest nothing."""

    def __init__(self, monkeypatch):
        self.now, self.steps, self.begun = 0.0, 0, 0
        advance, begin, predict = timing._step_seconds, timing._begin, timing.predict
        self.first = [0.0]  # what steps of the first epoch take longer, one after the other

        def counted(stack: Stack, clock: Clock, steps: int = 1) -> float:
            more = self.first.pop(0) if self.first and not stack.epoch else 0.0
            advance(stack, clock, steps)
            self.steps, self.now = self.steps + steps, self.now + steps + more
            return steps + more

        def started(*arguments):
            found = begin(*arguments)
            self.begun, self.now = self.begun + 1, self.now + 100
            done = type(found[-1]).done

            def ended(loss):
                self.now += 10
                return done(found[-1], loss)

            found[-1].done = ended
            return found

        def predicted(*arguments):
            self.now += 0.5
            return predict(*arguments)

        monkeypatch.setattr(timing, "_step_seconds", counted)
        monkeypatch.setattr(timing, "_begin", started)
        monkeypatch.setattr(timing, "predict", predicted)

    def __call__(self) -> float:
        return self.now


def told_of(configs, clock, seconds=1000.0):
    said = []
    time_steps(configs, seconds, said.append, clock)
    return said, {name: value for each in said for name, value in each.items()}


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_a_cost_is_that_of_all_steps_and_epochs_for_each_training(clock):
    runs = [config(dataset=MOONS, replicate=(0, seed), batch_size=30, epochs=7) for seed in range(2)]
    said, told = told_of(runs, clock)
    steps = -(-100 // 30) * 7
    assert said[:3] == [
        {"once": 0.0},
        {"setup": 100.0, "steps": steps, "trainings": 2},
        {"first_step": 1.0},
    ]
    assert told["training"] == (100 + steps + 7 * 10) / 2
    assert clock.steps == 2, "a step to warm up, and one that is timed, since it took long enough"
    assert clock.begun == 2, "what a process loads once is not counted"


def test_validation_is_looked_at_as_often_as_it_is_asked(clock):
    runs = [config(epochs=20, early_stopping={"patience": 50, "every": 5})]
    with pytest.raises(ValueError, match="no validation"):
        told_of(runs, clock)


def test_evaluation_is_counted_for_all_inputs_of_all_sets_of_each_kind(clock):
    first = config(dataset=MOONS)
    second = first | {"evaluation": {**first["evaluation"], "sets": ["test", "test", "test"]}}
    _, told = told_of([first, second], clock)
    n = 1000 / timing.PIECE
    assert told["evaluation"] == {kind_key(first): 0.5 * n, kind_key(second): 3 * 0.5 * n}


def test_sizes_of_sets_are_told_by_their_names():
    split = SimpleNamespace(test=range(10000))
    sizes = {"test": 10000, "ood-svhn": 10000, "cifar10_c-3": 190000, "cifar10_c-fog-3": 10000, "cifar10_c-0": 10000}
    sizes |= {"cifar10_c-2-of-500": 19 * 500, "fgsm-0.1-of-500": 500}
    assert {name: timing._size(name, split) for name in sizes} == sizes
    assert len(corruptions.CORRUPTIONS) == timing.CORRUPTIONS


def test_a_long_beginning_and_a_long_step_are_not_repeated(clock):
    _, told = told_of([config(epochs=2)], clock, seconds=3.0)
    assert clock.begun == 1 and clock.steps == 1 and told["training"] == told["setup"] + told["steps"] + 2 * 10


def test_a_part_of_an_epoch_is_its_first_steps():
    case = config(dataset=MOONS, batch_size=30)
    *_, stack = timing._begin([[case]])
    *_, whole = timing._begin([[case]])
    assert stack.steps == 4
    part, all_of_it = stack.advance(2), whole.advance(stack.steps)
    assert 0 < part < all_of_it, "of other points there is no loss"
    again = timing._begin([[case]])[-1].advance()
    assert torch.equal(all_of_it, again)


def test_a_round_of_a_sampler_is_cut_short_too(monkeypatch):
    model, data, moves = small.model(PARTS), small.training_data(1, 12), []
    monkeypatch.setattr(Metropolis, "move", lambda self, *state: moves.append(state) or state[:3])
    chains = Metropolis(samples=4, thinning=3, warmup=2, dtype="float64").start(model, data, small.streams(1))
    assert chains.steps == 3
    chains.advance(2)
    assert len(moves) == 2
    chains.advance()
    assert len(moves) == 5


def test_what_comes_once_before_the_first_move_counts_as_the_beginning(monkeypatch, tmp_path):
    placed = []
    place = HamiltonianMonteCarlo.place
    monkeypatch.setattr(HamiltonianMonteCarlo, "place", lambda self, *given: placed.append(1) or place(self, *given))
    own = {"samples": 2, "thinning": 2, "warmup": 1, "leapfrogs": 2, "map_steps": 3}
    parts = {"family": {"size": 2}, "training": {"name": "hmc", **own}}
    parts |= {"likelihood": {"name": "categorical"}, "network": {"name": "mlp", "hidden": [4]}}
    case = make_config("HMC", MOONS, "smoke", Recipe(parts, (), "", 8, ("test",)), 0, 0)
    *_, stack = timing._begin([[case]])
    assert len(placed) == 1
    stack.advance(1)
    assert len(placed) == 1
    execute([case], state=tmp_path)
    assert len(placed) == 2, "a run begins with it too"


@pytest.mark.parametrize(("again", "more"), [(0.0, 0.0), (50.0, 50.0)], ids=["of a process", "of every training"])
def test_a_first_step_that_takes_longer_is_the_first_of_a_process_or_of_every_training(clock, again, more):
    clock.first = [60.0, again]
    _, told = told_of([config(epochs=2)], clock)
    assert told["first_step"] == 61.0 and told["training"] == told["setup"] + more + told["steps"] + 2 * 10


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['method']}, {c['dataset']['name']}")
def test_every_way_to_train_can_be_timed(case):
    ticks = itertools.count()
    _, told = told_of([case, {**case, "seed": 1}], lambda: float(next(ticks)))
    assert told["trainings"] == 2 and told["training"] > 0 and set(told["evaluation"]) == {kind_key(case)}


def test_timing_changes_no_numbers_of_runs_after_it(tmp_path):
    case = config("MFVI", dataset=MOONS)
    before = numbers(execute([case], state=tmp_path / "a")[0])
    state = torch.random.get_rng_state()
    told_of([case], itertools.count().__next__)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert numbers(execute([case], state=tmp_path / "b")[0]) == before


def test_an_evaluation_is_timed_in_the_record(tmp_path):
    (outcome,) = execute([config()], state=tmp_path)
    assert outcome.provenance["evaluate_seconds"] > 0
