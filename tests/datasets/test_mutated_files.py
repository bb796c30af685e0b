"""Whatever happens to a data file, it is refused by name, or what is read from it is what was written."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from datasets import BadData, DataNotFound, fetch, retina_mnist, uci, user_arrays
from datasets.fundus import sources
from datasets.images import SOURCES
from tests.datasets import mutations
from tests.datasets.fundus_files import MEDMNIST
from tests.datasets.fundus_mutations import FUNDUS
from tests.datasets.image_files import few
from tests.datasets.mutations import SMALL, Contents, Format, damaged

Read = Callable[[str, Contents], list[np.ndarray]]
FORMATS = [*mutations.FORMATS, *FUNDUS]
HOPELESS = {"empty", "folder", "another format", "misleading"}
"""Damage that no reader may take for values: no checksum is needed to see it."""


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, register: Callable, write: Callable) -> Callable[..., Read]:
    """read(form)(folder, contents): what the loader makes of files that lie in a new folder, and nowhere else."""
    monkeypatch.setenv(fetch.MIRROR_VARIABLE, "")
    monkeypatch.setenv(fetch.OFFLINE_VARIABLE, "1")
    monkeypatch.setitem(uci.SOURCES, "small", SMALL)
    monkeypatch.setattr(retina_mnist, "SIZES", MEDMNIST)

    def lay_and_read(form: Format, folder: str, contents: Contents) -> list[np.ndarray]:
        for name, content in contents.items():
            if content is None:
                (tmp_path / folder / name).mkdir(parents=True)
            else:
                write(tmp_path / folder, name, content)
        monkeypatch.setenv(fetch.CACHE_VARIABLE, str(tmp_path / folder))
        for variable in (user_arrays.VARIABLE, sources.VARIABLE):
            monkeypatch.setenv(variable, str(tmp_path / folder))
        if any(name.startswith("retina/") for name in contents):
            monkeypatch.delenv(sources.VARIABLE)  # mosaics are for those who have no photographs
        if form.source:
            monkeypatch.setitem(SOURCES, form.source, few(form.source))
        monkeypatch.setattr(sources, "known_files", lambda: fetch.registry())
        register({name: content or b"" for name, content in (form.registered or contents).items()})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of files that are passed over
            return form.read()

    return lambda form: partial(lay_and_read, form)


def same(found: list[np.ndarray], whole: list[np.ndarray], values: bool) -> bool:
    return len(found) == len(whole) and all(
        a.shape == b.shape and a.dtype == b.dtype and (not values or np.array_equal(a, b)) for a, b in zip(found, whole)
    )


@pytest.mark.parametrize("form", FORMATS, ids=[form.name for form in FORMATS])
def test_a_damaged_file_is_refused_or_harmless(form: Format, tmp_path: Path, read: Callable[..., Read]) -> None:
    files = form.files()
    victim = next(iter(files))
    whole, refused = read(form)("whole", files), 0
    assert whole
    for number, (how, content) in enumerate(damaged(form, files[victim])):
        what = f"{form.name}, damaged file {number} ({how})"
        try:
            found = read(form)(str(number), files | {victim: content})
        except (BadData, DataNotFound) as error:
            assert str(tmp_path / str(number)) in str(error) and Path(victim).name in str(error), what
            refused += 1
        except Exception as error:
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
        else:
            assert same(found, whole, form.checked or how in HOPELESS), f"{what}: other arrays pass for the right ones"
    assert refused >= 10 or form.kept
    assert refused == 0 or not form.kept


def test_every_kind_of_graded_photographs_is_damaged_a_hundred_times() -> None:
    for form in FUNDUS:
        assert len(damaged(form, next(iter(form.files().values())))) >= 100, form.name


def test_there_are_at_least_five_hundred_damaged_files() -> None:
    total = 0
    for form in FORMATS:
        whole = next(iter(form.files().values()))
        contents = [content for _, content in damaged(form, whole)]
        assert whole not in contents, form.name
        total += len(contents)
    assert total >= 500
