"""Shared set-up: one thread per test worker, no window for figures, the same examples at every run, a checkout."""

import os
import shutil
import signal
from pathlib import Path

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["MPLBACKEND"] = "Agg"
# Where tests are started by nohup, or in the background of a script, processes would inherit that they ignore a
# hang-up or Ctrl-C, and rightly go on after one.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest  # noqa: E402  (the environment has to be set before numerical libraries load)
from hypothesis import settings  # noqa: E402

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")


def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores: tests of SLURM, of kills and of stopped sweeps wait for much of their time."""
    return (os.cpu_count() or 1) + 1


LONGEST = ["test_slurm.py", "test_kills.py", "test_library.py", "test_cuda_devices.py", "test_runner.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take minutes, so that none of them is left for one process at the end."""
    items.sort(key=lambda item: [*LONGEST, item.path.name].index(item.path.name))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose Python only writes down how it was called; its exit status for a module is in
    <module>.status."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(Path(__file__).parents[1] / name, tmp_path)
    listed = "table    protocols    title\ndigits   paper smoke  Digits\nlonger-5  paper        A longer one\n"
    (tmp_path / "tables").write_text(listed)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        '#!/bin/sh\nshift; echo "$@" >> calls\n'
        '[ "$*" != "benchmarks tables" ] || exec cat tables\n'
        '[ ! -e "$1.status" ] || exit $(cat "$1.status")\n'
    )
    python.chmod(0o755)
    (tmp_path / ".venv" / ".ready").touch()
    return tmp_path


@pytest.fixture
def call(capsys):
    """``call(command, *words)``: run a command line in this process; return its exit status, output and errors."""

    def run(command, *words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            command(list(words))
        return end.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture
def processor(monkeypatch):
    """``processor(avx512, amx)``: pretend a processor with or without these instructions for bfloat16."""
    import torch

    from fvi_core import precision

    kept = (precision.has_bfloat16, precision._say)

    def pretend(avx512: bool, amx: bool = False) -> None:
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
        for function in kept:
            function.cache_clear()

    yield pretend
    for function in kept:
        function.cache_clear()
