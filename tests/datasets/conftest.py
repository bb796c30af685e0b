"""A small registry of files that tests write, and a way to load real data or say why not."""
from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

import datasets
from datasets import fetch


@pytest.fixture
def load_or_skip() -> Callable[..., datasets.Split]:
    """datasets.load that skips, naming the file, when the files are out of reach. It never downloads."""

    def load(name: str, split: int = 0, scheme: str | None = None) -> datasets.Split:
        for file in datasets.describe(name, scheme).files:
            try:
                fetch.locate(file, download=False)
            except datasets.DataNotFound:
                pytest.skip(f"{file} is neither in the cache nor in a mirror ({fetch.MIRROR_VARIABLE})")
        return _load(name, split, scheme)

    return load


@lru_cache(maxsize=4)
def _load(name: str, split: int, scheme: str | None) -> datasets.Split:
    return datasets.load(name, split, scheme=scheme)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The cache and mirror folders that the environment names: the mirror empty, the cache not there yet."""
    cache, mirror = tmp_path / "cache", tmp_path / "mirror"
    mirror.mkdir()
    monkeypatch.setenv(fetch.CACHE_VARIABLE, str(cache))
    monkeypatch.setenv(fetch.MIRROR_VARIABLE, str(mirror))
    return cache, mirror


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """register({name: content}, urls) replaces the registry of files by these contents."""

    def replace(contents: dict[str, bytes], urls: tuple[str, ...] = ()) -> None:
        files = {name: fetch.File(name, hashlib.sha256(content).hexdigest(), len(content), urls)
                 for name, content in contents.items()}
        monkeypatch.setattr(fetch, "registry", lambda: files)

    return replace


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture(name="write")
def write_fixture() -> Callable[[Path, str, bytes], Path]:
    return write
