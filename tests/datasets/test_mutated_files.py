"""Whatever happens to a data file, it is refused by name, or what is read from it is what was written."""
from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from datasets import BadData, DataNotFound, brought, fetch, uci
from datasets.images import SOURCES
from tests.datasets.image_files import few
from tests.datasets.mutations import FORMATS, Contents, Format, damaged

HOPELESS = {"empty", "folder", "another format", "misleading"}


def same(found: list[np.ndarray], whole: list[np.ndarray], values: bool = True) -> bool:
    return len(found) == len(whole) and all(
        a.shape == b.shape and a.dtype == b.dtype and (not values or np.array_equal(a, b)) for a, b in zip(found, whole))


@pytest.mark.parametrize("form", FORMATS, ids=[form.name for form in FORMATS])
def test_a_damaged_file_is_refused_or_harmless(form: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                               register: Callable, write: Callable) -> None:
    monkeypatch.setenv(fetch.MIRROR_VARIABLE, "")
    monkeypatch.setenv(fetch.OFFLINE_VARIABLE, "1")
    monkeypatch.setitem(uci.SOURCES, "small", uci.Source("small", 40, 5, 4, 4))
    if form.source:
        monkeypatch.setitem(SOURCES, form.source, few(form.source))
    warnings.simplefilter("ignore")
    files = form.files()
    victim = next(iter(files))

    def read(place: Path, contents: Contents) -> list[np.ndarray]:
        for name, content in contents.items():
            write(place, name, content) if content is not None else (place / name).mkdir(parents=True)
        monkeypatch.setenv(fetch.CACHE_VARIABLE, str(place))
        monkeypatch.setenv(brought.VARIABLE, str(place))
        if form.registered is not None:
            register(files | ({victim: contents[victim] or b""} if form.registered else {}))
        return form.read()

    whole, became = read(tmp_path / "whole", files), Counter()
    for number, (what, content) in enumerate(damaged(files[victim], form.misleading(), seed=len(form.name))):
        place = tmp_path / str(number)
        try:
            found = read(place, files | {victim: content})
        except (BadData, DataNotFound) as error:
            assert str(place) in str(error) and Path(victim).name in str(error), f"{what}, {number}: {error}"
            became["refused"] += 1
            continue
        except BaseException as error:
            print("ESCAPED", form.name, what, number, type(error), str(error)[:200]); became["escaped"]+=1; continue
        if not same(found, whole, values=form.checked or what in HOPELESS):
            print("DIFFERS", form.name, what, number, [(f.shape,f.dtype) for f in found]); became["differs"]+=1; continue
        if what in HOPELESS: print("ACCEPTED", form.name, what, number)
        became["harmless"] += 1
    print("RESULT", form.name, dict(became), sum(became.values()))
