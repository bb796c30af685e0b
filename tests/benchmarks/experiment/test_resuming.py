"""Interrupted training that goes on from its checkpoints ends with the numbers of an uninterrupted one, bit for bit."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os

import numpy as np
import pytest
import torch

import datasets
from benchmarks.experiment.execute import execute
from benchmarks.records import provenance
from benchmarks.records.config import run_key, training_key
from benchmarks.state import checkpoints
from fvi_core import methods
from fvi_core.likelihoods import LIKELIHOODS
from fvi_core.optimisers import OPTIMISERS, SCHEDULES
from fvi_core.priors.function import GaussianProcess
from fvi_core.registry import DIVERGENCES, FAMILIES, FITS, PRIORS
from fvi_core.training import Trainer, Training
from tests.benchmarks.experiment.test_execute import CURVE, FEW, MOONS, PROCESS, config, numbers
from tests.fvi_core import small as small_parts

REGISTRIES = {"family": FAMILIES, "divergence": DIVERGENCES, "prior": PRIORS, "likelihood": LIKELIHOODS, "fit": FITS}
MEMBERS = {"family": {"size": 2}}
DRAWS = {"epochs": 3, "batch_size": 50, "optimiser": {"name": "adam", "lr": 0.01}, "samples": 3}
HELD_OUT = {"scheme": "validation"}
HMC = {"name": "hmc", "samples": 2, "thinning": 1, "warmup": 1, "leapfrogs": 2}
SMALL = {  # what makes the row of the catalogue small, and the sets it is for
    "GP": ({}, CURVE, PROCESS),
    "GFSVI": ({"prior": {"fit_steps": 2}}, CURVE, {"dtype": "float64"}),
    "Deep Ensemble": (MEMBERS | {"likelihood": {"name": "residual_gaussian"}}, CURVE, {}),
    "FSVI Ensemble": (MEMBERS, MOONS, {}),
    "MAP fVI": ({}, MOONS, {}),
    **{f"{name} fVI": ({}, MOONS, {}) for name in ("MC Dropout", "Radial", "Rank1")},
    "Ensemble fVI": (MEMBERS, MOONS, {}),
    "NN-HyVI": ({"divergence": {"samples": 10}}, CURVE, {}),
    "FuNN-HyVI": ({"divergence": {"samples": 10}}, CURVE, {}),
    "FuNN-MFVI": ({"divergence": {"samples": 10}}, CURVE, {}),
    "FBNN": ({"prior": {"fit_steps": 2}, "training": DRAWS}, CURVE, {}),
    "Subnetwork Laplace": ({"fit": {"size": 5}}, CURVE, {}),
    "HMC": ({**MEMBERS, "likelihood": {"name": "gaussian", "learned": False}, "training": HMC}, CURVE, {}),
    "GWI": ({"family": {"points": 4, "fit_steps": 2}, "likelihood": {"name": "robust_max"}}, MOONS, {}),
    "SWAG": ({"family": {"start": 0.2}}, CURVE, {}),
    "DUQ": ({"family": {"size": 4}}, MOONS, {}),
    "VOGN": ({"training": {"name": "vogn", "epochs": 3, "batch_size": 50, "samples": 2}}, MOONS, {}),
    **{f"{name} (temperature)": ({}, "digits", HELD_OUT) for name in ("MAP", "MFVI", "MC Dropout")},
    "Deep Ensemble (temperature)": (MEMBERS, "digits", HELD_OUT),
}


def small(name: str, **training) -> dict:
    """Return a run of three epochs of a method."""
    parts, dataset, own = SMALL.get(name, ({}, CURVE, {}))
    context = FEW if (methods.get(name).context or {}).get("name") == "uniform_box" else {}
    return config(name, dataset=dataset, parts=parts | context, samples=10, **own | training)


def sibling(case: dict, number: int) -> dict:
    """Return the configuration of a run on another split with another seed."""
    return case | {"seed": number, "dataset": case["dataset"] | {"split": number}}


def facts(outcomes, folder) -> list:
    """Return what a stopped and an uninterrupted run share: all but time, memory and the number of stops."""
    kept = ("fingerprint", "epochs", "stack", "noise_std")
    return [
        (
            run_key(o.config),
            o.reason or numbers(o),
            o.curves,
            {k: o.provenance.get(k) for k in kept},
            o.reason or (folder / "artifacts" / f"{run_key(o.config)}.npz").read_bytes(),
        )
        for o in outcomes
    ]


def stopped_often(configs, folder, monkeypatch):
    """Train runs that are stopped after each epoch; return their outcomes and the number of stops."""
    stops = 0
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "_stop", True)
        while True:
            try:
                return execute(configs, state=folder), stops
            except KeyboardInterrupt:
                stops += 1
                assert stops < 20, "it begins again and again"


def assert_stops_change_nothing(configs, tmp_path, monkeypatch):
    whole = execute(configs, state=tmp_path / "whole")
    found, stops = stopped_often(configs, tmp_path / "stopped", monkeypatch)
    assert facts(found, tmp_path / "stopped") == facts(whole, tmp_path / "whole")
    assert stops == max(o.provenance["epochs"] for o in whole)
    assert {o.provenance["resumed"] for o in found} == {stops} and "resumed" not in whole[0].provenance
    return whole


@pytest.mark.parametrize("name", methods.catalogue())
def test_every_method_goes_on_where_it_was_stopped(name, tmp_path, monkeypatch):
    case = small(name)
    together = assert_stops_change_nothing([sibling(case, 1), case], tmp_path, monkeypatch)
    alone, _ = stopped_often([case], tmp_path / "alone", monkeypatch)
    assert (numbers(alone[0]), alone[0].curves) == (numbers(together[1]), together[1].curves)


RULES = {
    "sgd, multistep": {
        "optimiser": {"name": "sgd", "momentum": 0.9, "nesterov": True},
        "schedule": {"name": "multistep"},
    },
    "plain sgd, cosine": {"optimiser": {"name": "sgd", "weight_decay": 0.1}, "schedule": {"name": "cosine"}},
    "plateau": {
        "epochs": 9,
        "optimiser": {"name": "adam", "lr": 0.3},
        "schedule": {"name": "plateau", "factor": 0.3, "patience": 0, "min_lr": 0.03, "threshold": 0.02},
    },
    "early stopping": {
        "epochs": 9,
        "optimiser": {"name": "adam", "lr": 0.05},
        "early_stopping": {"patience": 1, "every": 1},
        "clip": 1.0,
    },
    "sgd, linear": {"optimiser": {"name": "sgd"}, "schedule": {"name": "linear", "final": 0.1}},
    "seldom looking": {"epochs": 5, "early_stopping": {"patience": 50, "every": 2}},
}
NAMED = {rule[kind]["name"] for rule in RULES.values() for kind in ("optimiser", "schedule") if kind in rule}
RULES |= {name: {"optimiser": {"name": name}} for name in sorted(set(OPTIMISERS.classes) - NAMED)}
RULES |= {name: {"schedule": {"name": name}} for name in sorted(set(SCHEDULES.classes) - NAMED)}


OTHERS = {  # parts of no row of the catalogue
    "collapsed process": config("GP", parts={"family": {"name": "collapsed_gp", "points": 5}}, **PROCESS),
    "samples": config("MAP", parts={"family": {"name": "samples"}}),
    "gaussian head": config("FSVI", dataset=MOONS, parts={"family": {"name": "gaussian_head"}}),
    "tied prior": config("MFVI", dataset=MOONS, parts={"divergence": {"name": "tied_weight_kl"}}),
    "temperature": config("MAP", dataset=MOONS, parts={"fit": {"name": "temperature"}}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_part_goes_on_too(name, tmp_path, monkeypatch):
    assert_stops_change_nothing([sibling(OTHERS[name], 1), OTHERS[name]], tmp_path, monkeypatch)


@pytest.mark.parametrize("kind", REGISTRIES)
def test_no_part_is_left_out(kind):
    """A part without a row of the catalogue needs a case of its own here."""
    used = [case["parts"][kind] for case in (*map(small, methods.catalogue()), *OTHERS.values())]
    assert {part["name"] for part in used if part} >= set(REGISTRIES[kind].classes)


@pytest.fixture
def validated(monkeypatch):
    """The toys have a validation subset."""
    load = datasets.load

    def loaded(*arguments, **options):
        split = load(*arguments, **options)
        return dataclasses.replace(split, validation=datasets.Arrays(split.test.x[:30], split.test.y[:30]))

    monkeypatch.setattr(datasets, "load", loaded)


@pytest.mark.parametrize("rule", RULES)
def test_every_optimiser_and_schedule_goes_on_too(rule, validated, tmp_path, monkeypatch):
    cases = [sibling(small("MFVI", **RULES[rule]), i) for i in range(3)]
    whole = assert_stops_change_nothing(cases, tmp_path, monkeypatch)
    ends = [o.provenance["epochs"] for o in whole]
    if rule in ("plateau", "early stopping"):
        assert len(set(ends)) > 1, "the test needs replicas that leave the stack at different epochs"
    alone, _ = stopped_often(cases[1:2], tmp_path / "alone", monkeypatch)
    assert (numbers(alone[0]), alone[0].provenance["epochs"]) == (numbers(whole[1]), ends[1])


def test_a_failed_replica_stays_failed(tmp_path, monkeypatch):
    load = datasets.load

    def damaged(name, split=0, **options):
        found = load(name, split, **options)
        if split != 1:
            return found
        return dataclasses.replace(found, train=dataclasses.replace(found.train, y=np.full_like(found.train.y, np.nan)))

    monkeypatch.setattr(datasets, "load", damaged)
    cases = [sibling(small("MAP"), i) for i in range(3)]
    whole = assert_stops_change_nothing(cases, tmp_path, monkeypatch)
    assert [o.status for o in whole] == ["done", "failed", "done"]


def test_statistics_and_moments_that_training_collects_are_kept():
    """Batch normalisation, SWAG and augmented images, through a file after every epoch."""
    parts = {"family": {"name": "swag", "rank": 2, "start": 0.2}, "network": {"name": "resnet18", "width": 2}}
    training = Training(3, 5, {"name": "sgd", "momentum": 0.9}, augment={"crop": 1, "flip": True})
    data = small_parts.training_data(2, 12, 2, (1, 8, 8), torch.float32)
    model = small_parts.model(parts, 2, (1, 8, 8))

    def trained(state=None, stop=False):
        saved = io.BytesIO()

        def save(trainer):
            torch.save(trainer.state(), saved)
            if stop:
                raise KeyboardInterrupt

        trainer = Trainer(model, training, data, small_parts.streams(2, torch.float32), state)
        with contextlib.suppress(KeyboardInterrupt):
            return trainer.run(checkpoint=save)
        saved.seek(0)
        return trained(torch.load(saved, weights_only=True), stop)

    for whole, parts in zip(trained(), trained(stop=True), strict=True):
        assert whole.loss == parts.loss and len(whole.parameters) == len(parts.parameters)
        for name, value in whole.parameters.items():
            assert torch.equal(value, parts.parameters[name]), name


def test_a_prior_is_not_fitted_again(tmp_path, monkeypatch):
    fits, init = [], GaussianProcess.init
    monkeypatch.setattr(GaussianProcess, "init", lambda *a: fits.append(a) or init(*a))
    stopped_often([small("GFSVI")], tmp_path, monkeypatch)
    assert len(fits) == 1


def raising_at(epoch: int):
    def report(fraction: float, text: str) -> None:
        if text.startswith(f"epoch {epoch}/"):
            raise MemoryError

    return report


@pytest.fixture
def every_epoch(monkeypatch):
    monkeypatch.setenv(checkpoints.VARIABLE, "0")


def test_a_part_of_a_stack_is_evaluated_alone(tmp_path, monkeypatch, every_epoch):
    """A process killed between two records leaves the rest of a stack to be evaluated, in any order."""
    cases = [sibling(small("MFVI"), i) for i in range(4)]
    keys = [run_key(case) for case in cases]
    whole = facts(execute(cases, state=tmp_path / "whole"), tmp_path / "whole")
    state = tmp_path / "state"
    with pytest.raises(MemoryError):
        execute(cases, state=state, report=raising_at(3))
    left = checkpoints.Checkpoints(state)
    (file,) = left.folder.glob("*.ckpt")
    assert facts(execute([cases[2], cases[0]], state=state), state) == [whole[2], whole[0]]
    assert sorted(path.stem for path in (state / "artifacts").iterdir()) == sorted([keys[0], keys[2]])
    left.clear(keys[0], keys[2])
    assert {path.name for path in left.folder.iterdir() if path.is_symlink()} == set(
        map(training_key, (cases[1], cases[3]))
    ) and file.exists()
    heard = []
    found = execute([cases[3], cases[1]], state=state, report=lambda fraction, text: heard.append(text))
    assert facts(found, state) == [whole[3], whole[1]]
    assert heard == 2 * ["predictions at test: piece 1 of 1"], "training was over"
    left.clear(keys[1], keys[3])
    assert os.listdir(left.folder) == [".lock"]


def test_runs_that_are_trained_along_are_not_linked_again(tmp_path, every_epoch):
    """Another sweep may have made them in the meantime."""
    cases = [sibling(small("MAP"), i) for i in range(2)]
    with pytest.raises(MemoryError):
        execute(cases, state=tmp_path, report=raising_at(2))
    left = checkpoints.Checkpoints(tmp_path)
    left.clear(run_key(cases[0]))
    (outcome,) = execute(cases[1:], state=tmp_path)
    assert outcome.provenance["stack"] == 2
    assert [path.name for path in left.folder.iterdir() if path.is_symlink()] == [training_key(cases[1])]


def test_runs_of_different_stacks_go_on_each_from_its_own(tmp_path, every_epoch):
    """Such a group holds runs that two killed groups left, and a run that was in neither."""
    cases = [sibling(small("MAP"), i) for i in range(5)]
    whole = [numbers(outcome) for outcome in execute(cases, state=tmp_path / "whole")]
    for some, epoch in ((cases[:2], 2), (cases[2:4], 3)):
        with pytest.raises(MemoryError):
            execute(some, state=tmp_path, report=raising_at(epoch))
    heard = []
    found = execute([cases[i] for i in (2, 0, 4, 1)], state=tmp_path, report=lambda *progress: heard.append(progress))
    assert [numbers(outcome) for outcome in found] == [whole[i] for i in (2, 0, 4, 1)]
    assert [outcome.provenance["stack"] for outcome in found] == [2, 2, 1, 2]
    trained = [progress for progress in heard if not progress[1].startswith("predictions at test")]
    assert [text.split(",")[0] for _, text in trained] == [f"epoch {epoch}/3" for epoch in (3, 2, 3, 1, 2, 3)]
    assert [round(9 * fraction) for fraction, _ in trained] == [3, 5, 6, 7, 8, 9] and len(heard) == 6 + 4
    assert {outcome.provenance.get("resumed") for outcome in found} == {1, None}


def test_time_is_counted_over_all_parts(tmp_path, monkeypatch, every_epoch):
    cases = [sibling(small("MAP"), i) for i in range(2)]
    save = checkpoints.Checkpoints.save
    longer = lambda self, about, *rest: save(self, about | {"seconds": about["seconds"] + 1000}, *rest)
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(checkpoints.Checkpoints, "save", longer)
        execute(cases, state=tmp_path, report=raising_at(2))
    for outcome in execute(cases, state=tmp_path):
        assert 500 <= outcome.provenance["seconds"] < 1000 and outcome.provenance["resumed"] == 1
        (spent,) = [m["value"] for m in outcome.metrics if m["metric"] == "training_seconds"]
        assert spent == outcome.provenance["seconds"]


def test_a_record_names_every_model_of_processor_that_trained_it(tmp_path, monkeypatch, every_epoch):
    case = small("MAP")
    for cpu, epoch in (("first", 2), ("second", 3)):
        monkeypatch.setattr(provenance, "cpu", lambda cpu=cpu: cpu)
        with pytest.raises(MemoryError):
            execute([case], state=tmp_path, report=raising_at(epoch))
    (outcome,) = execute([case], state=tmp_path)
    recorded = outcome.provenance
    assert (recorded["cpu"], recorded["device"], recorded["resumed"]) == ("first, then second", provenance.device(), 2)
