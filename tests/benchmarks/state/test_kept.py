"""Trained parameters that are kept: one training for several evaluations, safe files, bounded size."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

from benchmarks.errors import UsageError
from benchmarks.experiment import parameters
from benchmarks.experiment.assembly import ChangedData
from benchmarks.experiment.code import CODE
from benchmarks.experiment.execute import execute
from benchmarks.experiment.trained import training_conditions
from benchmarks.records.config import run_key, training_key
from benchmarks.state import kept
from fvi_core import training as gradients
from tests.benchmarks.experiment.test_execute import MOONS, config, numbers

CASE = config("MC Dropout", dataset=MOONS, sets=("test",), samples=4)
MORE = config("MC Dropout", dataset=MOONS, sets=("test", "grid"), samples=9)


@pytest.fixture
def trainings(monkeypatch):
    """List the number of replicas of every training."""
    seen, original = [], gradients.Trainer

    def trainer(model, training, problem, streams, state):
        seen.append(len(streams))
        return original(model, training, problem, streams, state)

    monkeypatch.setattr(gradients, "Trainer", trainer)
    return seen


def test_two_evaluations_of_one_training_train_once(tmp_path, trainings):
    first, second = execute([CASE, MORE], state=tmp_path)
    assert trainings == [1] and first.provenance["training_fingerprint"] == second.provenance["training_fingerprint"]
    alone = [execute([case], state=tmp_path / str(i))[0] for i, case in enumerate((CASE, MORE))]
    assert [numbers(one) for one in alone] == [numbers(first), numbers(second)] and trainings == [1, 1, 1]
    assert numbers(first) != numbers(second) and "evaluated" not in first.provenance
    assert (
        set(second.provenance["data"]) == {"test", "grid"}
        and first.provenance["data"]["test"] == second.provenance["data"]["test"]
    )


def test_a_later_evaluation_does_not_train(tmp_path, trainings):
    execute([CASE], state=tmp_path)
    (later,) = execute([MORE], state=tmp_path)
    (whole,) = execute([MORE], state=tmp_path / "whole")
    assert trainings == [1, 1] and numbers(later) == numbers(whole)
    about = later.provenance
    assert about.pop("evaluated")["commit"] and about.keys() == whole.provenance.keys()
    assert about["seconds"] < 60 and about["training_fingerprint"] == whole.provenance["training_fingerprint"]


@pytest.mark.parametrize("what", ["code", "torch", "device", "threads", "data"])
def test_parameters_that_might_be_others_are_not_used(tmp_path, trainings, monkeypatch, what):
    execute([CASE], state=tmp_path)
    found = parameters.load(tmp_path, training_key(CASE))
    other = parameters.Kept(
        found.parameters,
        "0" if what == "data" else found.fingerprint,
        found.conditions | ({} if what == "data" else {what: "other"}),
        found.provenance,
    )
    parameters.save(tmp_path, CASE, other)
    execute([MORE], state=tmp_path)
    assert trainings == [1, 1]


def test_parameters_say_how_many_threads_trained_them(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert training_conditions(torch.device("cpu"), CASE)["threads"] == 3


def test_what_is_kept_is_what_was_trained(tmp_path):
    case = config(
        "Deep Ensemble", parts={"family": {"size": 2}, "likelihood": {"name": "residual_gaussian"}}, dtype="float64"
    )
    execute([case], state=tmp_path)
    found = parameters.load(tmp_path, run_key(case))
    assert all(value.shape[0] == 1 and value.dtype == torch.float64 for value in found.parameters.values())
    assert {"likelihood/rho"} < set(found.parameters) and found.conditions["code"] == CODE
    assert {"commit", "dirty", "cpu", "versions", "seconds", "started", "finished"} <= set(found.provenance)


DAMAGES = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "another format": lambda data: b"\x89PNG" + bytes(2000),
    "a flipped byte": lambda data: data[:2000] + bytes([data[2000] ^ 255]) + data[2001:],
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_parameters_are_not_used_and_said_so(tmp_path, trainings, capsys, damage):
    execute([CASE], state=tmp_path)
    path = kept.parameters_path(tmp_path, run_key(CASE))
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    execute([MORE], state=tmp_path)
    assert trainings == [1, 1] and f"{path}: these parameters are not used" in capsys.readouterr().out


def test_parameters_under_another_name_are_not_used(tmp_path, capsys):
    execute([CASE], state=tmp_path)
    path = kept.parameters_path(tmp_path, run_key(CASE))
    path.rename(path.with_name("0" * 16 + ".npz"))
    assert parameters.load(tmp_path, "0" * 16) is None and "belongs to another training" in capsys.readouterr().out


def test_pickles_are_not_loaded(tmp_path, capsys):
    path = kept.parameters_path(tmp_path, "0" * 16)
    path.parent.mkdir()
    np.savez(path, about=np.array([{"a": 1}], dtype=object))
    assert parameters.load(tmp_path, "0" * 16) is None and "allow_pickle" in capsys.readouterr().out


def test_parameters_that_cannot_be_written_stop_nothing(tmp_path, capsys):
    (tmp_path / "parameters").write_text("")
    assert execute([CASE], state=tmp_path)[0].status == "done"
    assert "parameters cannot be written" in capsys.readouterr().out


def test_what_is_kept_is_bounded_and_the_least_lately_used_goes_first(tmp_path, monkeypatch):
    for i, folder in enumerate(("parameters", "artifacts", "parameters", "artifacts")):
        (tmp_path / folder).mkdir(exist_ok=True)
        path = tmp_path / folder / f"{i}.npz"
        path.write_bytes(b"x" * 1000)
        os.utime(path, (100 - i, 100 - i))
    assert kept.sizes(tmp_path) == {"parameters": (2, 2000), "artifacts": (2, 2000)}
    assert kept.bound(tmp_path) == 0
    monkeypatch.setenv(kept.VARIABLE, "2.5e-6")
    assert kept.bound(tmp_path) == 2 and {path.name for path in tmp_path.rglob("*.npz")} == {"0.npz", "1.npz"}
    monkeypatch.setenv(kept.VARIABLE, "lots")
    with pytest.raises(UsageError, match="FVI_STATE_GB is 'lots', expected gigabytes"):
        kept.bound(tmp_path)


def test_a_changed_source_of_a_part_is_refused(tmp_path):
    with pytest.raises(ChangedData, match="plan the run again"):
        execute([{**CASE, "sources": {"divergence mine": "0123"}}], state=tmp_path)


def test_runs_that_differ_in_more_are_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot train together"):
        execute([CASE, config("MAP", dataset=MOONS)], state=tmp_path)
