"""Settings of the process that code from outside changes are put back, whether it ends or fails."""

import os
import warnings

import pytest
import torch

from fvi_core import plugins
from fvi_core.settings import _settings, restored
from tests.plugins import forgotten

CHANGES = """
import os, warnings
import numpy, torch
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
torch.set_grad_enabled(False)
torch.set_num_threads(torch.get_num_threads() + 1)
torch.set_float32_matmul_precision("medium")
torch.use_deterministic_algorithms(True)
numpy.seterr(all="raise")
warnings.simplefilter("error")
os.chdir(os.sep)
"""


def seen():
    return {name: value for name, (value, _) in _settings().items()}, list(warnings.filters)


@pytest.mark.parametrize("fails", [False, True])
def test_settings_are_put_back(fails):
    before = seen()
    with pytest.raises(RuntimeError) if fails else warnings.catch_warnings(), restored():
        exec(CHANGES)
        changed = seen()
        if fails:
            raise RuntimeError
    assert seen() == before and all(changed[0][name] != value for name, value in before[0].items())
    assert torch.ones(1).dtype == torch.float32 and torch.ones(1).device.type == "cpu"
    assert os.getcwd() == before[0]["folder"]


def test_a_plug_in_changes_no_setting(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(CHANGES)
    monkeypatch.setenv("FVI_PLUGINS", str(tmp_path / "mine.py"))
    before = seen()
    with forgotten():
        plugins.load()
    assert seen() == before
