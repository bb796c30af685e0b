"""Failed runs: reason, log, number of attempts. In the state folder, never beside results."""

from __future__ import annotations

import contextlib
import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, cast

from benchmarks import files
from benchmarks.records import provenance
from benchmarks.records.config import run_key
from benchmarks.shapes import Failure, RunConfig

UNREADABLE = "unknown: its failure file cannot be read"
# Values of entries that a file lacks or has wrong.
DEFAULTS = {"reason": UNREADABLE, "attempt": 1, "time": "", "log": "", "traceback": "", "guess": False, "death": False}


class Failures:
    """Failures in a folder, one file per run: reason, traceback, log, time and the number of attempts so far."""

    def __init__(self, state: Path | str) -> None:
        self.folder = Path(state) / "failures"

    def path(self, key: str) -> Path:
        """Path of a run's failure, existing or not."""
        return self.folder / f"{key}.json"

    def get(self, key: str) -> Failure | None:
        """Return the failure of a run, or None. Raises nothing: an unreadable file counts as one attempt of unknown
        reason.

        Its configuration is None where the file holds none, or another run's.
        """
        try:
            content = files.parse(files.read(self.path(key)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError):
            content = None
        entries = content if isinstance(content, dict) else {}
        values = {name: _valid(entries.get(name), default) for name, default in DEFAULTS.items()}
        return cast(Failure, {"key": key, **values, "config": _config(entries.get("config"), key)})

    def attempts(self, key: str) -> int:
        """Return how often a run has failed since it last succeeded."""
        failure = self.get(key)
        return failure["attempt"] if failure else 0

    def write(
        self,
        config: RunConfig,
        key: str,
        reason: str,
        traceback: str = "",
        log: str = "",
        guess: bool = False,
        death: bool = False,
        around: AbstractContextManager[Any] = nullcontext(),
        same: bool = False,
    ) -> None:
        """Record a failure. Raises OSError.

        ``guess``: the process's end is known, its cause is not. ``death``: other processes may try the run. ``around``
        is entered directly before the failure is written, where it may raise. ``same``: replace the reason of the last
        attempt.
        """
        failure = {
            "key": key,
            "reason": reason,
            "guess": guess,
            "death": death,
            "attempt": self.attempts(key) + (not same),
            "time": provenance.now(),
            "log": log,
            "traceback": traceback,
            "config": config,
        }
        files.write(self.path(key), json.dumps(failure, indent=1) + "\n", around)

    def since(self, key: str, attempts: int) -> Failure | None:
        """Return the failure of a run after so many attempts, or None; the loss of a process alone is no failure."""
        failure = self.get(key)
        return failure if failure and failure["attempt"] > attempts and not failure["death"] else None

    def clear(self, key: str) -> None:
        """Remove a run's failures."""
        path = self.path(key)
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        files.clear(self.folder, path.name)

    def keys(self) -> list[str]:
        """Return the keys of failed runs."""
        names = files.listdir(self.folder)
        return [name.removesuffix(".json") for name in names if name.endswith(".json") and not name.startswith(".")]


def _valid(value: Any, default: Any) -> Any:
    """Return a value of the default's type, a text so that it can be printed; the default for any other, 0 and ""."""
    if type(value) is not type(default) or value == "" or (type(value) is int and value < 1):
        return default
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _config(config: Any, key: str) -> RunConfig | None:
    """Return a configuration if it has this key."""
    try:
        return config if run_key(config) == key else None
    except (AttributeError, TypeError, ValueError, RecursionError):
        return None
