"""Songs as out-of-distribution inputs: what is drawn of the file, and what is said where it is not at hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from datasets import BadData, DataNotFound, needs, song, uci
from datasets.checks import read_table

TABLE = np.random.RandomState(5).normal(3, 2, (6, 5)).round(2)
CONTENT = b"".join(b",".join(b"%.2f" % value for value in row) + b"\n" for row in TABLE)
DATA = "uci/small/data.txt"


@pytest.fixture
def small(mirror: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six songs of a year and four features, and a table of 20 rows with three features; all in the mirror."""
    rows = np.random.RandomState(3).normal(5, 2, (20, 4))
    contents = {song.FILE: CONTENT, DATA: b"".join(b" ".join(b"%.3f" % v for v in row) + b"\n" for row in rows)}
    contents["uci/yacht/data.txt"] = b"whatever"
    monkeypatch.setattr(song, "ROWS", 6)
    monkeypatch.setattr(song, "FEATURES", 4)
    monkeypatch.setitem(uci.SOURCES, "small", uci.Source("small", 20, 4, 3, 3))
    return mirror(contents)


def test_as_many_songs_with_as_many_features_standardised_by_themselves(small: Path) -> None:
    split = uci.load("small", 1, "cinquin2024")
    found = split.evaluation("ood-song")
    assert (found.kind, found.condition, found.y) == ("ood", "ood=song", None)
    assert found.x.shape == split.test.x.shape == (4, 3) and found.x.dtype == np.float32
    own = (TABLE[:, 1:4] - TABLE[:, 1:4].mean(0)) / TABLE[:, 1:4].std(0)
    places = [int(np.argmin(np.abs(own - row).sum(1))) for row in found.x]
    assert len(set(places)) == 4 and np.allclose(own[places], found.x, atol=1e-6)


def test_the_year_first_scaled_by_the_rows_that_are_drawn(small: Path) -> None:
    """The later code's reading of the raw file, whose first column is the year."""
    split = uci.load("small", 1, "cinquin2024")
    found = split.evaluation("ood-song-year")
    assert (found.kind, found.condition, found.y) == ("ood", "ood=song-year", None)
    assert found.x.shape == split.test.x.shape == (4, 3)
    assert np.allclose(found.x.mean(0), 0, atol=1e-6) and np.allclose(found.x.std(0), 1, atol=1e-6)
    drawn = np.random.RandomState(1).permutation(6)[:4]
    own = TABLE[drawn, :3]
    assert np.allclose(found.x, (own - own.mean(0)) / own.std(0), atol=1e-6)


def test_every_fold_has_other_songs_and_the_same_again(small: Path) -> None:
    folds = [uci.load("small", fold, "cinquin2024").evaluation("ood-song") for fold in (0, 1, 0)]
    assert folds[0].fingerprint == folds[2].fingerprint != folds[1].fingerprint


def test_other_ways_to_split_and_large_tables_have_none(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "ood-song" not in uci.load("small", 0, "pequignot2020").evaluation_sets()
    monkeypatch.setattr(song, "ROWS", 3)
    assert "ood-song" not in uci.load("small", 0, "cinquin2024").evaluation_sets()
    monkeypatch.setattr(song, "ROWS", 6)
    monkeypatch.setattr(song, "FEATURES", 2)
    assert "ood-song" not in uci.load("small", 0, "cinquin2024").evaluation_sets()


def test_a_missing_file_is_named_with_what_it_is_made_of(small: Path) -> None:
    assert needs.lacking("yacht", "cinquin2024", ["ood-song"]) == []
    (small / song.FILE).unlink()
    (lack,) = needs.lacking("yacht", "cinquin2024", iter(["test", "ood-song"]))
    assert lack == needs.Lack("song", (song.FILE,))
    assert needs.lacking("yacht", "cinquin2024", ["ood-song-year"]) == [lack]
    assert needs.lacking("yacht", "cinquin2024", ["test"]) == []
    with pytest.raises(DataNotFound, match="no address has it: it is made of 1,176 lines of YearPredictionMSD.txt"):
        uci.load("small", 0, "cinquin2024").evaluation("ood-song")
    left = needs.get(lack, lambda line: None)
    assert left is not None and left.reason.startswith("no address has it")


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "songs.csv"
    path.write_bytes(CONTENT.replace(b",", b" "))
    with pytest.raises(BadData, match="expected a table of 6 rows and 5 columns, found: "):
        read_table(path, 6, 5, separator=",")


def test_the_real_file_serves_all_small_sets(load_or_skip: Callable) -> None:
    for name in ("boston", "wine"):
        split = load_or_skip(name, 0, "cinquin2024")
        try:
            found = split.evaluation("ood-song")
        except DataNotFound as error:
            pytest.skip(str(error).splitlines()[0])
        assert found.x.shape == split.test.x.shape and np.isfinite(found.x).all()
        assert np.abs(found.x.mean(0)).max() < 0.5
    assert "ood-song" not in load_or_skip("kin8nm", 0, "cinquin2024").evaluation_sets()
