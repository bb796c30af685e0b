"""Warnings about runs that did not fail, such as a checkpoint that could not be used or predictions that could not be
stored. In the state folder, so that whoever looks later finds what a worker's log says.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import files
from benchmarks.state import kept
from fvi_core.telling import Message


@dataclass(frozen=True)
class Remark:
    """Last warning about a run; stored: whether it is about files that outlast the training."""

    text: str
    log: str
    stored: bool


class Remarks:
    """Remarks in a folder, one file for each run."""

    def __init__(self, state: Path | str) -> None:
        self.state, self.folder = Path(state), Path(state) / "remarks"

    def write(self, keys: Iterable[str], message: Message, log: Path) -> None:
        """Write a remark on runs. Raises nothing: where the disk is full, log and display have it."""
        text = json.dumps(asdict(Remark(str(message), str(log), bool(message.about))))
        for key in keys:
            with contextlib.suppress(OSError):
                files.write(self._path(key), text)

    def of(self, keys: Iterable[str]) -> dict[str, Remark]:
        """Return the remarks on runs that still hold, by key: none where the files that were lacking exist by now."""
        present, found = set(files.listdir(self.folder)), {}
        for key in (key for key in keys if f"{key}.json" in present):
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                content = files.parse(files.read(self._path(key)))
                remark = Remark(str(content["text"]), str(content["log"]), bool(content["stored"]))
                paths = kept.predictions_path(self.state, key), kept.parameters_path(self.state, key)
                if not (remark.stored and all(path.exists() for path in paths)):
                    found[key] = remark
        return found

    def end_training(self, key: str) -> None:
        """Remove a remark that mattered only until the run had its record."""
        if (remark := self.of([key]).get(key)) is None or not remark.stored:
            self.clear(key)

    def clear(self, *keys: str) -> None:
        """Remove the remarks on runs. Raises nothing."""
        for key in keys:
            with contextlib.suppress(OSError):
                self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"
