"""Failed runs: why, where the log is, how often. Kept in the state folder, never beside results."""

from __future__ import annotations

import contextlib
import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks import files
from benchmarks.records import provenance
from benchmarks.records.config import run_key
from benchmarks.shapes import Failure, RunConfig


class Failures:
    """One file per failed run: reason, traceback, log, time and the number of attempts so far."""

    def __init__(self, state: Path | str) -> None:
        self.folder = Path(state) / "failures"

    def path(self, key: str) -> Path:
        """The file of a run's failure, there or not."""
        return self.folder / f"{key}.json"

    def get(self, key: str) -> Failure | None:
        """The failure of a run, or None. Raises nothing: what cannot be read is one attempt of unknown reason.

        Its configuration is None where the file holds that of no run or of another one.
        """
        try:
            found = files.parse(files.read(self.path(key)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError):
            found = None
        found = found if isinstance(found, dict) else {}
        attempt, reason = found.get("attempt"), _text(found.get("reason"))
        return {
            "key": key,
            "reason": reason or "unknown: its failure file cannot be read",
            "attempt": attempt if type(attempt) is int and attempt > 0 else 1,
            "time": _text(found.get("time")),
            "log": _text(found.get("log")),
            "traceback": _text(found.get("traceback")),
            "guess": found.get("guess") is True,
            "death": found.get("death") is True,
            "config": _config(found.get("config"), key),
        }

    def attempts(self, key: str) -> int:
        """How often a run has failed since it last succeeded."""
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
        """Note a failure. Raises OSError.

        ``guess``: how its process ended is known, but not why. ``death``: others may try the run. ``around`` is entered
        directly before the failure is written, where it may raise. ``same``: a better reason for the last attempt, not
        another one.
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
        """The failure of a run after so many attempts, or None; that a process was lost which had it is none yet."""
        failure = self.get(key)
        return failure if failure and failure["attempt"] > attempts and not failure["death"] else None

    def clear(self, key: str) -> None:
        """Forget a run's failures."""
        path = self.path(key)
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        files.clear(self.folder, path.name)

    def keys(self) -> list[str]:
        """The runs that have failed."""
        return [name.removesuffix(".json") for name in files.listdir(self.folder) if _is_failure(name)]


def _is_failure(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".")


def _text(value: Any) -> str:
    """A text that can be printed and written; empty for what is none."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


def _config(found: Any, key: str) -> RunConfig | None:
    """A configuration if it is the one of this key."""
    try:
        return found if run_key(found) == key else None
    except (AttributeError, TypeError, ValueError, RecursionError):
        return None
