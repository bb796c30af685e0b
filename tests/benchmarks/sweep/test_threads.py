"""Number of threads of a training process: set, put back, shared with the number of workers, checked."""

from __future__ import annotations

import os

import pytest
import torch

from benchmarks.errors import UsageError
from benchmarks.sweep import hints, threads, workers
from benchmarks.sweep.slurm import submit
from benchmarks.sweep.slurm.options import Options
from benchmarks.sweep.workers import Workers


@pytest.mark.parametrize("chosen", ["", "2"])
def test_threads_are_set_and_put_back(monkeypatch, chosen):
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv(threads.VARIABLE, chosen)
    torch.set_num_threads(3)
    try:
        with threads.limited():
            assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == (chosen or "1")
            assert torch.get_num_threads() == int(chosen or 1)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert os.environ["OMP_NUM_THREADS"] == "5" and "MKL_NUM_THREADS" not in os.environ


def test_workers_of_several_threads_share_the_cores(monkeypatch):
    monkeypatch.setattr(workers, "available_cores", lambda: 8)
    counts = []
    for chosen in ("1", "3", "9"):
        monkeypatch.setenv(threads.VARIABLE, chosen)
        counts.append((Workers(devices=()).count, Options(cpus=8).workers, Workers(devices=("0", "1")).count))
    assert counts == [(8, 8, 2), (2, 2, 2), (1, 1, 2)]


@pytest.mark.parametrize("chosen", ["0", "-1", "two", "1.5"])
def test_an_invalid_number_of_threads_is_named(monkeypatch, chosen):
    monkeypatch.setenv(threads.VARIABLE, chosen)
    with pytest.raises(UsageError, match=f"FVI_THREADS is '{chosen}', expected a number of threads, 1 or more"):
        threads.threads()


def test_array_tasks_have_the_number_of_threads_of_their_submission(monkeypatch):
    monkeypatch.delenv(threads.VARIABLE, raising=False)
    assert "export FVI_THREADS=1" in submit.exports()
    monkeypatch.setenv(threads.VARIABLE, "4")
    assert "export FVI_THREADS=4" in submit.exports() and "export OMP_NUM_THREADS=1" in submit.exports()


def test_the_command_that_continues_has_the_same_number_of_threads(monkeypatch):
    monkeypatch.setenv(hints.VARIABLE, "make table-digits")
    for chosen, setting in (("", ""), ("1", ""), ("2", "FVI_THREADS=2 ")):
        monkeypatch.setenv(threads.VARIABLE, chosen)
        assert hints.again() == f"{setting}make table-digits"
    monkeypatch.setenv(hints.VARIABLE, "make table-digits FVI_THREADS=2")
    assert hints.again() == "make table-digits FVI_THREADS=2"
