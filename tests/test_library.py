"""Every snippet of docs/library.md runs, in order."""

from __future__ import annotations

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
