"""Records of runs on other files of the same data set, for users who do not have these files."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.records.config import digest, once
from benchmarks.records.form import HEAD_ONLY, RecordError, parse
from benchmarks.records.store import Store, read_bytes
from benchmarks.shapes import RunConfig

SOME = b'"content": {"'
"""Spelling in a record of a configuration that contains a user's own files."""


Alike = dict[tuple[str, bool], dict[str, tuple[Path, list[str]]]]


class OtherFiles(Store):
    """Store that substitutes, for a run without a record, one that differs in the user's own files only.

    ``used``: substituted records, by the files they were made from, "<data set>/<subset> <digest>". ``datasets``:
    limits substitution to these data sets. ``alike``: cached folder contents, for several stores.
    """

    def __init__(
        self, *arguments: Any, datasets: Collection[str] | None = None, alike: Alike | None = None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.used: dict[str, set[Path]] = {}
        self.datasets = datasets
        self._alike: Alike = {} if alike is None else alike

    def file(self, config: RunConfig) -> str:
        """Return the path within the folder of a run's record, or of a substitute; its own where neither exists."""
        own = super().file(config)
        other = None if (self.root / own).exists() else self.substitute(config)
        return other.relative_to(self.root).as_posix() if other else own

    def substitute(self, config: RunConfig) -> Path | None:
        """Return the path of a record in place of a run's own."""
        if self.datasets is not None and config["dataset"]["name"] not in self.datasets:
            return None
        known = self._folder(self.folder(config), bool(_files(config)))
        alike = known.get(bare_digest(config)) if known else None
        if alike is None:
            return None
        path, files = alike
        for file in files:
            self.used.setdefault(file, set()).add(path)
        return path

    def _folder(self, folder: str, every: bool) -> dict[str, tuple[Path, list[str]]]:
        """Return the records of a folder by configuration without user files: all, or only those with such files."""
        place = folder, every
        if place not in self._alike:
            self._alike[place] = {}
            for path in sorted((self.root / folder).glob("[!.]*.json")):
                with suppress(RecordError):
                    data = read_bytes(path)
                    if data is not None and (every or SOME in data):
                        config = parse(data, path, HEAD_ONLY, self.rows)[0]["config"]
                        self._alike[place].setdefault(bare_digest(config), (path, _files(config)))
        return self._alike[place]


def _files(config: RunConfig) -> list[str]:
    """Return the user's own files in a configuration."""
    parts: Any = (config["dataset"], config["evaluation"])
    contents = {name: digits for part in parts for name, digits in part.get("content", {}).items()}
    return [f"{name} {digits}" for name, digits in sorted(contents.items())]


@once
def bare_digest(config: RunConfig) -> str:
    """Return the digest of a configuration without the user's own files."""
    bare = {name: {**config[name], "content": {}} for name in ("dataset", "evaluation")}
    return digest({**config, **bare})
