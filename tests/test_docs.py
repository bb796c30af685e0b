"""Every snippet and every command of docs/extend.md works."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch

import datasets
import reports.cli
from benchmarks.commands import cli
from benchmarks.experiment.execute import execute
from benchmarks.records import predictions
from benchmarks.records.config import run_key
from benchmarks.state import kept
from benchmarks.suite import Suite
from benchmarks.tables import Recipe
from fvi_core import methods
from fvi_core.registry import DIVERGENCES, NETWORKS
from tests import outsider
from tests.configs import make_config
from tests.plugins import forgotten
from tests.test_packaging import plain_environment

COMMAND_LINES = {"benchmarks": cli.build(Suite()), "reports": reports.cli.build(Suite())}
WRITES = {
    "run": ("--results", "--state"),
    "explain": ("--results", "--state"),
    "table": ("--results", "--state", "--out"),
    "figures": ("--results", "--out"),
}


@pytest.fixture
def said(checkout: Path, monkeypatch: pytest.MonkeyPatch, call):
    """said(command) returns the output of a command of the document, run in this process without make and shell."""
    folder = checkout / "own"
    folder.mkdir()
    plugin = outsider.write(folder)
    monkeypatch.setenv("FVI_PLUGINS", str(plugin))
    (checkout / ".venv" / "bin" / "python").write_text(
        '#!/bin/sh\nprintf "%s\\0" "$@" >> words\nprintf "\\n" >> words\n'
    )
    environment = plain_environment() | {"EXECUTOR": "inprocess"}

    def say(command: str) -> str:
        (checkout / "words").write_text("")
        subprocess.run(["bash", "-c", command], cwd=checkout, env=environment, check=True, capture_output=True)
        output = ""
        for line in (checkout / "words").read_text().splitlines():
            _, module, *words = line.split("\0")[:-1]
            where = [
                word for option in WRITES.get(words[0], ()) for word in (option, str(checkout / option.strip("-")))
            ]
            status, printed, errors = call(COMMAND_LINES[module], *words, *where)
            output += printed + errors
            assert status == 0, f"{command}: {output}"
        return output

    with forgotten():
        yield say


def test_every_command_of_the_document_works(said) -> None:
    outputs = {command: said(command) for command in outsider.COMMANDS if " uci" not in command}
    assert "export FVI_PLUGINS=mine.py" in outsider.TEXT and len(outputs) == 6
    assert "Wide FSVI" in outputs["make table-digits METHOD='Wide FSVI' DRY_RUN=1"]
    table = outputs["make table-mine PROTOCOL=smoke"]
    assert "12 runs: 12 made now" in table and "largest_error" in table and "Wasserstein FVI" in table
    part = outputs[".venv/bin/python -m benchmarks parts divergence wasserstein2"]
    assert "Squared Wasserstein-2 distance" in part and "mean_field" in part


def test_a_method_of_ones_own_stands_beside_published_numbers(said) -> None:
    try:
        datasets.load("boston", 0)
    except datasets.DataNotFound as error:
        pytest.skip(str(error).splitlines()[0])
    made, table, figure = (said(command) for command in outsider.COMMANDS if " uci" in command)
    assert "4 runs: 4 made now" in made
    assert "Wide FSVI (not in the paper)" in table and "3.696 ± 0.39" in table and "no verdict" in table
    assert figure.startswith("Figure uci-points: ") and ".pdf" in figure


def test_what_the_document_adds_is_there_and_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FVI_PLUGINS", str(outsider.write(tmp_path)))
    with forgotten():
        assert methods.get("Wide FSVI").prior["variance"] == 10.0
        distance = DIVERGENCES.build({"name": "wasserstein2", "jitter": 0.0})
        wide, narrow = (scale * torch.eye(2, dtype=torch.float64).expand(1, 3, 2, 2) for scale in (4.0, 1.0))
        zero = torch.zeros(1, 3, 2, dtype=torch.float64)
        assert torch.allclose(distance.kl(zero, wide, zero, wide), torch.zeros(1, 3, dtype=torch.float64))
        assert torch.allclose(distance.kl(zero + 1, wide, zero, narrow), torch.full((1, 3), 4.0, dtype=torch.float64))
        own = NETWORKS.build({"name": "small_normed", "width": 4}).build((1, 8, 8), 10)
        assert own.way == "leaves" and own.n_outputs == 10 and own.shapes["0.weight"] == (4, 1, 3, 3)
        assert datasets.load("bikes", 4).train.x.shape == (45, 2) and datasets.load("waves", 2).train.x.shape == (50, 1)
        assert datasets.load("shapes").train.x.shape == (12, 1, 6, 5)
        assert 'my-fvi = "my_fvi"' in (tmp_path / "pyproject.toml").read_text()


def test_the_post_hoc_method_of_the_document_is_fitted_before_it_predicts(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FVI_PLUGINS", str(outsider.write(tmp_path)))
    with forgotten():
        parts = {
            "network": {"name": "mlp", "hidden": [8]},
            "likelihood": {"name": "categorical"},
            "training": {"epochs": 1, "batch_size": 512, "optimiser": {"name": "adam"}},
        }
        shifted, plain = (
            execute([make_config(name, "digits", "smoke", Recipe(parts, (), samples=1), 0, 0)], state=tmp_path)[0]
            for name in ("MAP with class frequencies", "MAP")
        )
        assert shifted.status == plain.status == "done" and shifted.provenance["fit_seconds"] > 0
        logits = [
            predictions.load(kept.predictions_path(tmp_path, run_key(run.config)))["test"].logits.astype(float)[0]
            for run in (shifted, plain)
        ]
        assert logits[0].shape == (539, 10)
        frequencies = torch.tensor(logits[0]).softmax(-1).mean(0)
        off, before = (frequencies - 0.1).abs().max(), (torch.tensor(logits[1]).softmax(-1).mean(0) - 0.1).abs().max()
        assert 3 * off < before
