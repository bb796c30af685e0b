"""A small registry of files that tests write, and a way to load real data or say why not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import datasets
from datasets import fetch, user_arrays
from datasets.fundus import sources
from tests.datasets.image_files import random_images


@pytest.fixture
def load_or_skip(monkeypatch: pytest.MonkeyPatch) -> Callable[..., datasets.Split]:
    """Return datasets.load of upstream's files; it never downloads, and skips the test if a file is absent."""
    monkeypatch.setenv(fetch.OFFLINE_VARIABLE, "1")
    monkeypatch.delenv(user_arrays.VARIABLE, raising=False)

    def load(name: str, split: int = 0, scheme: str | None = None) -> datasets.Split:
        try:
            return _load(name, split, scheme)
        except datasets.DataNotFound as error:
            pytest.skip(str(error).splitlines()[0].removesuffix(". Tried:"))

    return load


@lru_cache(maxsize=4)
def _load(name: str, split: int, scheme: str | None) -> datasets.Split:
    return datasets.load(name, split, scheme=scheme)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Set and return the only folders of cache and mirror; the mirror is empty, the cache does not exist yet."""
    cache, mirror = tmp_path / "cache", tmp_path / "mirror"
    mirror.mkdir()
    monkeypatch.setenv(fetch.CACHE_VARIABLE, str(cache))
    monkeypatch.setenv(fetch.MIRROR_VARIABLE, str(mirror))
    for variable in (user_arrays.VARIABLE, sources.VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    return cache, mirror


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """register({name: content}, urls) replaces the registry of files by these contents."""

    def replace(contents: dict[str, bytes], urls: tuple[str, ...] = ()) -> None:
        files = {
            name: fetch.File(name, hashlib.sha256(content).hexdigest(), len(content), urls)
            for name, content in contents.items()
        }
        monkeypatch.setattr(fetch, "registry", lambda: files)

    return replace


@pytest.fixture
def mirror(places: tuple[Path, Path], register: Callable[..., None]) -> Callable[[dict[str, bytes]], Path]:
    """mirror({name: content}) registers these files and writes them into the mirror, whose folder it returns."""

    def lay(contents: dict[str, bytes]) -> Path:
        register(contents)
        for name, content in contents.items():
            write(places[1], name, content)
        return places[1]

    return lay


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture(name="write")
def write_fixture() -> Callable[[Path, str, bytes], Path]:
    return write


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, np.ndarray]]:
    """bring(name, subset, n) writes random arrays, and nothing else can be found."""
    (tmp_path / "arrays").mkdir(exist_ok=True)
    monkeypatch.setenv(fetch.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(user_arrays.VARIABLE, str(tmp_path / "arrays"))
    monkeypatch.setenv(fetch.MIRROR_VARIABLE, "")
    monkeypatch.setenv(fetch.OFFLINE_VARIABLE, "1")

    def write(name: str, subset: str, n: int = 30) -> dict[str, np.ndarray]:
        arrays = random_images(name, n, seed=len(name + subset) + n)
        (tmp_path / "arrays" / name).mkdir(parents=True, exist_ok=True)
        np.savez(tmp_path / "arrays" / name / f"{subset}.npz", **arrays)
        return arrays

    return write
