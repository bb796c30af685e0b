"""Snippets of docs/library.md and code cells of notebooks run, in order."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import torch
from torch import nn

import fvi_core as fvi
from benchmarks.commands import cli
from benchmarks.suite import Suite
from tests.plugins import forgotten

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "library.md").read_text()


@pytest.mark.filterwarnings("ignore")
def test_snippets_and_commands_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    steps = re.findall(
        r"```python\n(.*?)```|^    \.venv/bin/python -m benchmarks ([^\n]*)$", TEXT, re.DOTALL | re.MULTILINE
    )
    for block, command in steps:
        exec(block, names)
        if command:
            words = shlex.split(command)
            with pytest.raises(SystemExit) as end:
                cli.build(Suite())([*words, *(["--results", "results"] if words[0] == "score" else [])])
            assert not end.value.code
    assert len(steps) == 13
    printed = capsys.readouterr().out
    assert "'accuracy'" in printed and "depend" in printed
    assert names["streamed"].model.context is None and names["wide"].model.context.pools() == {"mine"}
    assert names["wide"].model.prior.variance == 10.0 and 1 < len(names["stopped"].loss) <= 200
    assert names["low"].shape == names["high"].shape == (300, 1) and 0.8 < names["inside"].float().mean() <= 1
    assert names["means"].shape == (300, 2)
    assert names["exact"].predict(names["x"]).noise_std.item() == pytest.approx(0.1)
    (record,) = (tmp_path / "results" / "digits").rglob("*.json")
    assert "My model" in record.read_text()


def test_the_options_of_the_tables_are_taken() -> None:
    """Part options in backquotes in the table of contexts and priors, each on the method above."""
    x, y = torch.randn(30, 2), torch.arange(30) % 2
    options = re.findall(r"\| `((?:context|prior)=\{.*)` \|$", TEXT, re.MULTILINE)
    assert len(options) == 5
    for each in options:
        given = eval(f"dict({each})", {"inputs": x})
        posterior = fvi.fit(
            nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2)),
            (x, y),
            "FSVI",
            epochs=1,
            progress=False,
            **given,
        )
        for kind in given.keys() & {"context", "prior"}:
            assert given[kind].items() <= posterior.config["parts"][kind].items()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("notebook", sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_code_cells_run_and_print_what_the_notebook_shows(
    notebook: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("FVI_PLUGINS", "")  # restored after a notebook has set it
    names: dict = {}
    with forgotten():
        for cell in json.loads(notebook.read_text())["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
                shown = "".join(text for output in cell["outputs"] for text in output.get("text", []))
                assert re.sub(r"[\d.]+", "#", capsys.readouterr().out) == re.sub(r"[\d.]+", "#", shown)
