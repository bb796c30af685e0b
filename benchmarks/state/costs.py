"""What runs cost on this machine, as far as it was timed: kept in the state folder, so that it is timed once.

<state>/costs/<kind>-<machine>.json
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import files
from benchmarks.records.config import digest

EXACT, AT_MOST, AT_LEAST = "", "at most", "at least"
BOUNDS = (EXACT, AT_MOST, AT_LEAST)


@dataclass(frozen=True)
class Cost:
    """Seconds on one core, of one training and of one evaluation (None: not known).

    bound: "at most" where training may end before its last epoch, "at least" where not even a step was seen to end.
    """

    training: float
    evaluation: float | None = None
    bound: str = EXACT


class Costs:
    """Costs by kind of run (``kind_key``), of one machine: the code that trains, processor, device, threads."""

    def __init__(self, state: Path | str, machine: Mapping[str, Any]) -> None:
        self.folder, self.machine = Path(state) / "costs", dict(machine)

    def path(self, kind: str) -> Path:
        """The file of a kind, there or not. Other code of the same machine has the same."""
        place = {name: value for name, value in self.machine.items() if name != "code"}
        return self.folder / f"{kind}-{digest(place, 8)}.json"

    def get(self, kind: str) -> Cost | None:
        """What was noted of a kind. Raises nothing: what cannot be used is timed again."""
        try:
            told = files.parse(files.read(self.path(kind)))
            if told["machine"] != self.machine:
                return None
            cost = Cost(**told["cost"])
            seconds = [cost.training, *([] if cost.evaluation is None else [cost.evaluation])]
            usable = cost.bound in BOUNDS and all(0 <= float(value) < float("inf") for value in seconds)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return cost if usable else None

    def put(self, kind: str, cost: Cost) -> None:
        """Note what a kind costs. Where that cannot be written it is timed again."""
        with contextlib.suppress(OSError):
            files.write(self.path(kind), json.dumps({"machine": self.machine, "cost": asdict(cost)}) + "\n")
