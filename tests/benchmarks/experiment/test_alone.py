"""Trainings that several processes need are made by one of them."""

from __future__ import annotations

import contextlib

import pytest

from benchmarks.experiment import alone as module
from benchmarks.experiment import execute as execution
from benchmarks.experiment.alone import alone
from benchmarks.experiment.execute import execute
from benchmarks.records.config import training_key
from benchmarks.state.claims import Claims, Holder
from tests.benchmarks.experiment.test_execute import config, numbers
from tests.benchmarks.state.holders import live, put


@pytest.fixture
def other(tmp_path):
    """A live process that has claimed the training "b"."""
    with live() as (process, holder):
        put(tmp_path / "claims", "b", holder)
        yield process


def test_trainings_are_claimed_meanwhile(tmp_path):
    said = []
    with alone(tmp_path, ["a", "b"], said.append) as mine:
        assert mine and set(Claims(tmp_path / "claims").live()) == {"a", "b"}
    assert Claims(tmp_path / "claims").live() == {} and not said


def test_a_process_waits_for_another_and_holds_nothing_meanwhile(tmp_path, other, monkeypatch):
    monkeypatch.setattr(module, "WAIT", 0.01)
    said, seen = [], []

    def say(text):
        said.append(text)
        seen.append(Claims(tmp_path / "claims").holder("a"))
        other.kill()

    with alone(tmp_path, ["a", "b"], say) as mine:
        assert not mine
    assert said[0] == f"waiting for a training by process {other.pid} on {Holder.me().host}" and seen[0] is None
    assert {message.kind for message in said} == {"wait"}


def test_a_stop_ends_the_wait(tmp_path, other, monkeypatch):
    monkeypatch.setattr(module, "stop_requested", lambda: True)
    with pytest.raises(KeyboardInterrupt), alone(tmp_path, ["b"], lambda text: None):
        pass
    assert other.poll() is None


@pytest.mark.parametrize("waits", [True, False])
def test_what_another_process_trained_meanwhile_is_not_trained_again(waits, tmp_path, monkeypatch):
    """The other training is seen after a wait for its claim, or once the claim is held here."""
    run, trained = config("MFVI"), []
    monkeypatch.setattr(execution, "train", lambda *a, f=execution.train: trained.append(1) or f(*a))

    @contextlib.contextmanager
    def another(state, keys, say):
        monkeypatch.setattr(execution, "alone", alone)
        assert list(keys) == [training_key(run)]
        execute([run], state=state)
        with contextlib.nullcontext(False) if waits else alone(state, keys, say) as mine:
            yield mine

    monkeypatch.setattr(execution, "alone", another)
    (found,) = execute([run], state=tmp_path / "a")
    assert len(trained) == 1 and found.status == "done"
    (expected,) = execute([run], state=tmp_path / "b")
    assert numbers(found) == numbers(expected) and len(trained) == 2


def test_what_another_process_gave_up_is_trained_here(tmp_path, other, monkeypatch):
    run, said = config(), []
    monkeypatch.setattr(module, "WAIT", 0.01)
    (tmp_path / "claims" / "b").rename(tmp_path / "claims" / training_key(run))

    def report(_, text):
        said.append(text)
        other.kill()

    (found,) = execute([run], state=tmp_path, report=report)
    assert found.status == "done" and "waiting for a training" in said[0]
