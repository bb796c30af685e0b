"""Read splits prepared by tensorflow-datasets, without TensorFlow.

The format must allow random access (`download_and_prepare(file_format="array_record")`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .checks import reading

INFO = "dataset_info.json"


def latest(home: Path) -> Path | None:
    """Return the folder of the latest version in a configuration's folder; None if nothing is prepared."""
    versions = [path for path in home.glob("*") if (path / INFO).exists()]
    return max(versions, key=_numbers, default=None)


def _numbers(version: Path) -> tuple[list[int], str]:
    """Return the numbers of a version, and its name; a part that is no number comes before all others."""
    return [int(part) if part.isdecimal() else -1 for part in version.name.split(".")], version.name


def opened(folder: Path, split: str) -> Sequence[dict[str, Any]]:
    """Return the rows of one split. Raises BadData for files in another format."""
    import tensorflow_datasets as tfds  # here, since it takes seconds to load

    with reading(
        shards(folder, split),
        f"split {split} in the format array_record",
        "prepare it with file_format='array_record'",
    ):
        return tfds.builder_from_directory(folder).as_data_source(split)


def shards(where: Path, split: str) -> str:
    """Return the names of a split's files and of the file that describes them, in words."""
    names = sorted(path.name for path in where.glob(f"*-{split}.*")) if where.is_dir() else []
    more = f" or another of its {len(names)} files" if len(names) > 1 else ""
    return ", ".join([str(where / INFO), *(f"{name}{more}" for name in names[:1])])
