"""Copies of the code for jobs that start later."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

import pytest

from benchmarks.records import provenance
from benchmarks.sweep.slurm import snapshot
from benchmarks.sweep.slurm.queue import SlurmError

CODE = provenance.code


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A checkout of three small packages."""
    root = tmp_path / "checkout"
    for package in provenance.CODE:
        (root / package / "__pycache__").mkdir(parents=True)
        (root / package / "__init__.py").write_text(f"NAME = '{package}'\n")
        (root / package / "table.csv").write_text("a,b\n")
        (root / package / "__pycache__" / "x.nbc").write_text("compiled")
        (root / package / "__pycache__" / "x.pyc").write_text("compiled")
    monkeypatch.setattr(provenance, "code", lambda: ("c0ffee", True))
    monkeypatch.delenv("FVI_PLUGINS", raising=False)
    return root


def test_a_snapshot_is_the_code_as_it_was(root, tmp_path):
    taken = snapshot.take(tmp_path / "snapshots", root)
    (root / "benchmarks" / "__init__.py").write_text("NAME = 'edited'\n")
    assert (taken / "benchmarks" / "__init__.py").read_text() == "NAME = 'benchmarks'\n"
    assert (taken / "datasets" / "table.csv").exists() and (taken / "fvi_core" / "__pycache__" / "x.nbc").exists()
    assert not list(taken.rglob("*.pyc"))
    assert json.loads((taken / "snapshot.json").read_text()) == {"commit": "c0ffee", "dirty": True}
    assert os.listdir(tmp_path / "snapshots") == [taken.name], "nothing half made is left"


def test_the_same_code_is_copied_once_and_changed_code_again(root, tmp_path, monkeypatch):
    first = snapshot.take(tmp_path / "snapshots", root)
    assert snapshot.take(tmp_path / "snapshots", root) == first
    (root / "datasets" / "new.py").write_text("")
    second = snapshot.take(tmp_path / "snapshots", root)
    assert second != first
    monkeypatch.setattr(provenance, "code", lambda: ("beef", False))
    assert snapshot.take(tmp_path / "snapshots", root) not in (first, second), "records name the commit"


def run(code, taken):
    """Return the output of code that runs on a snapshot."""
    script = "\n".join([*snapshot.lines(taken), f'"{sys.executable}" -c "{code}"'])
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd="/").stdout


def test_python_uses_the_snapshot_and_the_plugins_in_it(root, tmp_path, monkeypatch):
    mine = tmp_path / "mine method.py"
    mine.write_text("MINE = 1\n")
    monkeypatch.setenv("FVI_PLUGINS", str(mine))
    taken = snapshot.take(tmp_path / "snap shots", root)
    mine.write_text("MINE = 2\n")
    output = run(
        "import os, benchmarks; print(benchmarks.__file__); print(open(os.environ['FVI_PLUGINS']).read())", taken
    )
    assert str(taken) in output and "MINE = 1" in output


PLUGIN = """
from fvi_core.families.point import Point
from fvi_core.registry import FAMILIES

@FAMILIES.register("{name}")
class Mine(Point):
    where = __file__
"""


def test_digests_are_the_same_in_the_snapshot_and_data_are_where_they_were(tmp_path, monkeypatch):
    (tmp_path / "pack" / "inner").mkdir(parents=True)
    (tmp_path / "several").mkdir()
    (tmp_path / "held").mkdir()
    named = {
        "held/__init__.py": "",
        "held/one.py": "one",
        "pack/__init__.py": "whole",
        "pack/inner/__init__.py": "",
        "several/b.py": "b",
        "several/c.py": "c",
        "a.py": "a",
    }
    for file, name in named.items():
        (tmp_path / file).write_text(PLUGIN.format(name=name) if name else "X = 1\n")
    monkeypatch.setenv(
        "FVI_PLUGINS", os.pathsep.join(str(tmp_path / each) for each in ("pack", "several", "a.py", "held/one.py"))
    )
    code = (
        "from fvi_core.plugins import *; from fvi_core.registry import FAMILIES; load(); own = FAMILIES.classes; "
        "print(*((n, source_digest(own[n]), own[n].where) for n in ('whole', 'b', 'c', 'a', 'one')), sep='\\n')"
    )
    here = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=provenance.ROOT
    ).stdout
    taken = snapshot.take(tmp_path / "snapshots")
    there = run(code, taken)
    assert here.count(str(tmp_path)) == 5 and str(taken) in there.splitlines()[0]
    assert here.splitlines()[1:4] == there.splitlines()[1:4]
    assert [line.split("'")[3] for line in here.splitlines()] == [line.split("'")[3] for line in there.splitlines()]


def test_provenance_of_a_snapshot_is_that_of_the_code_it_was_taken_from(root, tmp_path):
    taken = snapshot.take(tmp_path / "snapshots", root)
    assert CODE(taken) == ("c0ffee", True)


def test_a_folder_that_cannot_be_written_is_named(root, tmp_path):
    (tmp_path / "snapshots").write_text("a file, not a folder")
    with pytest.raises(SlurmError, match="cannot be copied"):
        snapshot.take(tmp_path / "snapshots", root)


@pytest.mark.parametrize(("umask", "folder", "file"), [(0o022, 0o755, 0o644), (0o002, 0o775, 0o664)])
def test_whom_the_umask_lets_read_may_read_a_snapshot(umask, folder, file, root, tmp_path):
    (root / "datasets" / "__init__.py").chmod(0o600)
    before = os.umask(umask)
    try:
        taken = snapshot.take(tmp_path / "snapshots", root)
    finally:
        os.umask(before)
    for path in (taken, *taken.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (folder if path.is_dir() else file), path
    assert (taken / "datasets" / "table.csv").stat().st_mtime_ns == (root / "datasets" / "table.csv").stat().st_mtime_ns


def script(taken):
    return subprocess.run(
        ["bash", "-c", "\n".join([*snapshot.lines(taken), "echo goes on"])], capture_output=True, text=True, cwd="/"
    )


def test_a_job_that_cannot_read_its_snapshot_ends_and_names_it(root, tmp_path):
    taken = snapshot.take(tmp_path / "snapshots", root)
    assert script(taken).stdout == "goes on\n"
    taken.rename(tmp_path / "elsewhere")
    done = script(taken)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{taken}: the copy of the code cannot be read") and "chmod" in done.stderr


def test_a_copy_of_another_user_that_cannot_be_read_is_named_before_anything_is_submitted(root, tmp_path, monkeypatch):
    taken = snapshot.take(tmp_path / "snapshots", root)
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).startswith(str(taken)))
    with pytest.raises(SlurmError, match=f"{taken.name}: this copy of the code, of another user"):
        snapshot.take(tmp_path / "snapshots", root)
