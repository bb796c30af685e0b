"""Compiled code where no folder for it can be written."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from fvi_core import compiled

numba = pytest.importorskip("numba")


@pytest.fixture
def nowhere(monkeypatch):
    """Numba finds no folder that can be written, as in a container whose user has no home and read-only code."""
    from numba.core.caching import CacheImpl

    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    compiled._say.cache_clear()
    yield
    compiled._say.cache_clear()


def double(x):
    return 2 * x


def test_code_is_compiled_without_a_cache_where_none_can_be_written_and_that_is_said_once(nowhere):
    with pytest.raises(RuntimeError, match="no locator"):  # which is why
        numba.njit(cache=True)(double)
    with pytest.warns(UserWarning, match="set NUMBA_CACHE_DIR") as said:
        assert compiled.njit()(double)(3) == 6
        assert compiled.njit(fastmath=True)(double)(4) == 8
    assert len(said) == 1


def test_code_is_kept_where_it_can_be(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled.njit()(double)(3) == 6
    assert list(tmp_path.rglob("*.nbc"))


def test_the_compiled_parts_are_there_without_a_home_or_a_writable_folder():
    code = (
        "from numba.core.caching import CacheImpl; CacheImpl._locator_classes = []\n"
        "import torch; from fvi_core import shallow; from fvi_core.divergences import spectral\n"
        "print(spectral.median_gaps(torch.tensor([[[0.0], [1.0], [3.0]]])).item())"
    )
    root = Path(compiled.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, env={"PATH": "/usr/bin:/bin"}, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [b"1.0"] and done.stderr.count(b"NUMBA_CACHE_DIR") == 1
