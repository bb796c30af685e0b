"""EyePACS as tensorflow-datasets has prepared it, read without TensorFlow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import datasets
from datasets import BadData
from datasets.fundus import sources
from datasets.fundus.source import PARTS, of_splits
from datasets.prepared import INFO, latest, opened
from tests.datasets.fundus_files import photograph, prepared


@pytest.fixture
def folder(places: tuple[Path, Path], tmp_path: Path, write: Callable, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(sources.VARIABLE, str(tmp_path / "mine"))
    for name, content in prepared().items():
        write(tmp_path / "mine", name, content)
    return tmp_path / "mine" / "eyepacs"


def test_prepared_images_have_their_names_grades_and_parts(folder: Path) -> None:
    source = sources.find("eyepacs")
    assert len(source.ids) == 21 and "2_right" not in source.ids
    at = source.ids.index("9_right")
    assert source.grades[at] == 19 % 5 and source.official[at] == "test"
    assert np.array_equal(np.asarray(source.image(at)), photograph(19))
    split = datasets.load("eyepacs")
    assert {part: len(rows) for part, rows in split.rows.items()} == {"train": 15, "validation": 2, "test": 4}
    assert datasets.training_content("eyepacs") == {"eyepacs/images": source.digest}


def test_versions_are_compared_as_numbers(tmp_path: Path, write: Callable) -> None:
    assert latest(tmp_path) is None
    for version in ("1.9.0", "1.10.0", "incomplete.AB12CD_1.11.0", "1.2.0"):
        write(tmp_path, f"{version}/{INFO}", b"{}")
    assert latest(tmp_path) == tmp_path / "1.10.0"


def test_no_tensorflow_is_needed(folder: Path) -> None:
    program = (
        "import sys, datasets; split = datasets.load('eyepacs'); print(len(split.train), 'tensorflow' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["15", "False"]


def test_mock_data_of_tensorflow_datasets_are_read(tmp_path: Path) -> None:
    import tensorflow_datasets as tfds

    with tfds.testing.mock_data(num_examples=5):
        rows = {part: tfds.data_source("diabetic_retinopathy_detection", split=part) for part in PARTS}
        named = {part: [{**row, "name": f"{part}{i}_left"} for i, row in enumerate(rows[part])] for part in rows}
    source = of_splits(tmp_path, named)
    assert len(source.ids) == 15 and set(source.official) == set(PARTS)
    first = named["test"][0]
    assert source.grades[source.ids.index("test0_left")] == first["label"]
    assert np.array_equal(np.asarray(source.image(source.ids.index("test0_left"))), first["image"])


def test_an_image_twice_and_other_formats_are_refused(folder: Path, tmp_path: Path) -> None:
    row = {"name": b"1_left", "label": 0, "image": np.zeros((4, 4, 3), np.uint8)}
    with pytest.raises(BadData, match="expected every image once, found '1_left' twice"):
        of_splits(tmp_path, {"train": [row], "test": [row]})
    with pytest.raises(BadData, match="expected a grade from 0 to 4 .* found '5'"):
        of_splits(tmp_path, {"train": [row | {"label": 5}]})
    (home,) = folder.glob("*/original/3.0.0")
    info = home / "dataset_info.json"
    info.write_text(info.read_text().replace('"array_record"', '"tfrecord"'))
    with pytest.raises(BadData, match="split train in the format array_record.*prepare it with file_format"):
        opened(home, "train")[0]
