"""Provenance: commit and dirty flag of the code, versions without imports."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from benchmarks.records import provenance


@pytest.fixture(autouse=True)
def fresh():
    provenance.code.cache_clear()
    yield
    provenance.code.cache_clear()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with one commit of code and one of results."""
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    for name in ("benchmarks/records/provenance.py", "fvi_core/gaussian.py", "results/digits/map/a.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1\n")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def test_a_clean_checkout(checkout):
    commit, dirty = provenance.code(checkout)
    assert commit == provenance.git("rev-parse", "HEAD", root=checkout) and len(commit) == 40 and dirty is False


def test_results_and_untracked_files_are_not_dirt(checkout):
    (checkout / "results/digits/map/a.json").write_text("2\n")
    (checkout / "fvi_core/new.py").write_text("1\n")
    assert provenance.code(checkout)[1] is False


def test_changed_code_is_dirty_and_looked_up_once(checkout):
    (checkout / "fvi_core/gaussian.py").write_text("2\n")
    assert provenance.code(checkout)[1] is True
    subprocess.run(["git", "checkout", "-q", "."], cwd=checkout, check=True)
    assert provenance.code(checkout)[1] is True, "it is the code that this process has loaded"


def test_an_export_below_some_other_checkout_has_no_commit(checkout, monkeypatch):
    inner = checkout / "export"
    inner.mkdir()
    monkeypatch.delenv("FVI_COMMIT", raising=False)
    assert provenance.code(inner) == ("unknown", None)
    provenance.code.cache_clear()
    monkeypatch.setenv("FVI_COMMIT", "abc")
    assert provenance.code(inner) == ("abc", None)


def test_without_git(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("FVI_COMMIT", raising=False)
    assert provenance.code(tmp_path) == ("unknown", None)


def test_what_is_collected_is_json():
    found = provenance.collect()
    assert json.loads(json.dumps(found)) == found
    assert {"python", "torch", "numpy"} <= set(found["versions"]) and found["cpu"] and found["threads"] >= 1
    assert provenance.now().endswith("Z") and len(provenance.now()) == 20


def test_packages_that_make_numbers_are_named_and_others_are_not():
    found = provenance.versions()
    assert {"torch", "numpy", "scipy", "scikit-learn", "numba"} < set(found) and not {"pandas", "gpytorch"} & set(found)


def test_a_processor_is_named_with_its_numbers(tmp_path, monkeypatch):
    provenance.cpu.cache_clear()
    monkeypatch.setattr(provenance, "CPUINFO", tmp_path / "cpuinfo")
    first = "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\nstepping\t: 1\nflags\t: a: b\n"
    (tmp_path / "cpuinfo").write_text(f"{first}\nprocessor\t: 1\nmodel\t: 9\n")
    assert provenance.cpu() == "AMD EPYC (family 26, model 2, stepping 1)"
    provenance.cpu.cache_clear()
    (tmp_path / "cpuinfo").unlink()
    assert provenance.cpu()
    provenance.cpu.cache_clear()
