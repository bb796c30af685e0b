"""Runs that share a training, and logs on a full disk: nothing that another run needs is lost."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
import torch

from benchmarks.records.config import run_key, training_key
from benchmarks.state.checkpoints import Checkpoints, progress
from benchmarks.sweep import runner, work
from benchmarks.sweep.plan import make_plan
from tests.benchmarks import fakes


def test_a_sweep_with_nothing_to_do_leaves_the_checkpoint_of_another_evaluation(sweep, tmp_path):
    one = fakes.config(0)
    two = {**one, "evaluation": {**one["evaluation"], "samples": 2}}
    assert training_key(one) == training_key(two) and run_key(one) != run_key(two)
    assert sweep([one]).made
    about = {"configs": [two], "fingerprints": ["f"], "epoch": 90, "epochs": 100, "seconds": 5.0, "resumed": 0}
    checkpoints = Checkpoints(tmp_path / "state")
    checkpoints.save({"keys": [training_key(two)], **about}, [training_key(two)], {"x": torch.zeros(1)})
    sweep([one])
    found = progress(tmp_path / "state", run_key(two))
    assert found is not None and found.epoch == 90
    assert sweep([two]).made and progress(tmp_path / "state", run_key(two)) is None


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_log_on_a_full_disk_loses_lines_and_stops_nothing():
    with work._Log(open("/dev/full", "ab", 0), "utf-8", "backslashreplace", write_through=True) as log:
        print("no checkpoint could be written", file=log, flush=True)
        assert log.write("more") == 4
    with pytest.raises(OSError), open("/dev/full", "a", 1) as plain:
        print("no checkpoint could be written", file=plain, flush=True)


def unmeasurable(config, *folders):
    raise RuntimeError("The expanded size of the tensor (64) must match the existing size (50)")


def test_a_record_that_older_parameters_cannot_measure_again_is_trained_again(sweep, folders):
    config = fakes.config(0)
    sweep([config])
    store = fakes.store(folders[0])
    record = store.get(config)
    before = record["provenance"]["finished"]
    record["metric_versions"] = dict.fromkeys(record["metric_versions"], 0)
    store.write(record)
    suite = replace(fakes.SUITE, measure=f"{__name__}:unmeasurable")
    summary = runner.run(make_plan([config], *folders, suite))
    assert summary.made and not summary.failed and store.get(config)["provenance"]["finished"] >= before
    assert store.status(config)[0] == "done"
