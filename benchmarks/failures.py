"""Failed runs: why, where the log is, how often. Kept in the state folder, never beside results."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from benchmarks import provenance, store


class Failures:
    """One file per failed run: reason, traceback, log, time and the number of attempts so far."""

    def __init__(self, state: Path | str) -> None:
        self.folder = Path(state) / "failures"

    def path(self, key: str) -> Path:
        """The file of a run's failure, there or not."""
        return self.folder / f"{key}.json"

    def get(self, key: str) -> dict[str, Any] | None:
        """The failure of a run, or None; a file that cannot be read is one attempt of unknown reason."""
        try:
            found = json.loads(self.path(key).read_bytes())
            return {"reason": str(found["reason"]), "attempt": int(found["attempt"]), **found}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            return {
                "reason": "unknown: its failure file cannot be read",
                "attempt": 1,
                "traceback": "",
                "log": "",
            }

    def attempts(self, key: str) -> int:
        """How often a run has failed since it last succeeded."""
        failure = self.get(key)
        return failure["attempt"] if failure else 0

    def write(
        self, config: dict[str, Any], key: str, reason: str, traceback: str = "", log: str = "", guess: bool = False
    ) -> None:
        """Note a failure. ``guess``: how its process ended is known, but not why. Raises OSError."""
        self._save(config, key, reason, traceback, log, guess, self.attempts(key) + 1)

    def explain(self, config: dict[str, Any], key: str, reason: str, log: str) -> None:
        """Put a better reason in the place of a guess: it is the same attempt. Raises OSError."""
        self._save(config, key, reason, "", log, False, self.attempts(key))

    def guessed(self, key: str) -> bool:
        """Whether the reason of the last failure of a run is a guess."""
        return bool((self.get(key) or {}).get("guess"))

    def _save(
        self, config: dict[str, Any], key: str, reason: str, traceback: str, log: str, guess: bool, attempt: int
    ) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        failure = {
            "key": key,
            "reason": reason,
            "guess": guess,
            "attempt": attempt,
            "time": provenance.now(),
            "log": log,
            "traceback": traceback,
            "config": config,
        }
        store.write_atomic(self.path(key), json.dumps(failure, indent=1) + "\n")

    def clear(self, key: str) -> None:
        """Forget a run's failures."""
        with contextlib.suppress(OSError):
            self.path(key).unlink(missing_ok=True)

    def keys(self) -> list[str]:
        """The runs that have failed."""
        return sorted(path.stem for path in self.folder.glob("*.json") if not path.name.startswith("."))
