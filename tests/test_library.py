"""Snippets of docs/library.md and code cells of notebooks run, in order."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.filterwarnings("ignore")
def test_snippets_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "library.md").read_text(), re.DOTALL)
    names: dict = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 3 and "accuracy" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("notebook", sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_code_cells_run_and_print_what_the_notebook_shows(notebook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict = {}
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
            shown = "".join(text for output in cell["outputs"] for text in output.get("text", []))
            assert re.sub(r"[\d.]+", "#", capsys.readouterr().out) == re.sub(r"[\d.]+", "#", shown)
