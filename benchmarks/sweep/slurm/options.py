"""Options for SLURM: from a file, from the command line, or left to the cluster."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.errors import UsageError, unknown
from benchmarks.records.config import is_large
from benchmarks.sweep.plan import RunGroup
from benchmarks.sweep.threads import threads

SHORT = 20  # small runs per array task, by default
FILE = "slurm.toml"
VARIABLE = "FVI_SLURM"


@dataclass(frozen=True)
class Options:
    """Resources and options of an array's tasks. A key with the value None is left to the cluster.

    time: minutes of one array task. cpus: also the number of training processes of an array task without a GPU. gpus:
    one training process for each. runs_per_task: runs for which an array gets one task (None: 1 large run, or 20
    others); parallel: the most tasks. setup: shell lines before Python starts. python: another interpreter command.
    snapshot: jobs use a copy of the code as it was at submission. notice: seconds before the time limit at which an
    array task saves its checkpoints and requests to be requeued. requeues: the most requeues. sbatch: any other option
    of sbatch.
    """

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    time: int = 240
    memory: str | None = None
    cpus: int = 1
    gpus: int = 0
    parallel: int = 100
    runs_per_task: int | None = None
    setup: tuple[str, ...] = ()
    python: str | None = None
    snapshot: bool = True
    notice: int = 90
    requeues: int = 10
    sbatch: dict[str, Any] = field(default_factory=dict)

    @property
    def workers(self) -> int:
        """Number of runs that an array task trains at once."""
        return self.gpus or max(1, self.cpus // threads())

    @property
    def on_gpu(self) -> bool:
        """Whether these options give array tasks a GPU."""
        gpu_options = {name: str(value) for name, value in self.sbatch.items() if name.startswith(("gpus", "gres"))}
        return bool(self.gpus) or any(name != "gres" or "gpu" in value for name, value in gpu_options.items())

    def array(self, todo: Sequence[RunGroup]) -> int:
        """Number of array tasks that share the run groups; every process has a group to start with."""
        own = [self.workers * (1 if is_large(group.configs[0]) else SHORT) for group in todo]
        tasks = sum(len(group.runs) / (self.runs_per_task or runs) for group, runs in zip(todo, own))
        return max(1, min(self.parallel, math.ceil(len(todo) / self.workers), math.ceil(tasks - 1e-9)))

    def parameters(self, name: str, setup: Sequence[str]) -> dict[str, Any]:
        """Parameters of submitit's executor for an array of this name."""
        parameters = {
            "job_name": name,
            "time": self.time,
            "cpus_per_task": self.cpus,
            "nodes": 1,
            "ntasks_per_node": 1,
            "array_parallelism": self.parallel,
            # With notice after a quarter of its time at most, a short array task is not told to end as it begins.
            "signal_delay_s": min(self.notice, self.time * 60 // 4),
            # With `--export=NONE` as an option of sbatch, srun's tasks would lack the variables exported below.
            "setup": ["export SLURM_EXPORT_ENV=ALL", *self.setup, *setup],
            "wckey": None,
            "additional_parameters": dict(self.sbatch),
        }
        optional = {"mem": self.memory, "gpus_per_node": self.gpus or None, "partition": self.partition,
                    "account": self.account, "qos": self.qos, "constraint": self.constraint}  # fmt: skip
        return parameters | {key: value for key, value in optional.items() if value is not None}


LARGEST = 10**6  # largest number: SLURM stores them in 32 bits
NUMBER, NATURAL = f"a whole number from 0 to {LARGEST:,}", f"a whole number from 1 to {LARGEST:,}"
KINDS: dict[str, tuple[Any, str]] = {  # option: its kind, and the expected value in words
    **dict.fromkeys(("partition", "account", "qos", "constraint", "memory", "python"), ("text", "a text")),
    **dict.fromkeys(("cpus", "parallel", "runs_per_task"), (1, NATURAL)),
    **dict.fromkeys(("gpus", "notice", "requeues"), (0, NUMBER)),
    "time": ("time", "minutes, or a time as 8:00:00 or 2-12"),
    "setup": ("lines", "a shell line, or a list of them"),
    "sbatch": ("table", "a table of options of sbatch"),
    "snapshot": ("bool", "true or false"),
}  # fmt: skip


def load(file: Path | str | None = None, changes: Sequence[str] = (), folder: Path | None = None) -> Options:
    """Load options from a TOML file; ``key=value`` words take precedence. Those of sbatch make one table.

    Without a file: $FVI_SLURM, else slurm.toml in ``folder`` (default: the present one) if it exists. Raises
    UsageError: the file or word, what was expected, what was found.
    """
    chosen = file or os.environ.get(VARIABLE)
    path = Path(chosen) if chosen else (folder or Path.cwd()) / FILE
    values: dict[str, Any] = {}
    if path.is_file():
        try:
            read = tomllib.loads(path.read_text("utf-8-sig"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: expected a TOML file of SLURM options, found: {error}") from error
        values = {key: _checked(key, value, str(path)) for key, value in read.items()}
    elif chosen:
        raise UsageError(f"{path}: no such file of SLURM options")
    overrides: dict[str, Any] = {}
    for word in changes:
        key, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"--slurm {word}: expected key=value, as in --slurm partition=gpu")
        value = _checked(key, _parsed(key, text), f"--slurm {word}")
        overrides[key] = overrides.get(key, {}) | value if key == "sbatch" else value
    return Options(**values | overrides)


def minutes(text: str | int) -> int:
    """Parse a time as SLURM writes it, in minutes: 30, 30:00, 8:00:00, 2-12, 2-12:30. Raises ValueError."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", str(text).strip())
    if not match:
        raise ValueError(text)
    days, first, second, third = (int(part or 0) for part in match.groups())
    with_hours = match[1] or match[4]
    seconds = days * 86400 + (first * 3600 + second * 60 + third if with_hours else first * 60 + second)
    if seconds > 60 * LARGEST:
        raise ValueError(text)
    return max(1, -(-seconds // 60))


def _parsed(key: str, text: str) -> Any:
    """Convert a word of the command line to its TOML value."""
    kind, _ = KINDS.get(key, ("", ""))
    if kind == "table":
        name, equals, value = text.partition("=")
        return {name.lstrip("-"): value if equals else True}
    if kind == "bool":
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(text.lower(), text)
    return int(text) if kind in (0, 1) and re.fullmatch(r"\d{1,9}", text) else text


def _checked(key: str, value: Any, where: str) -> Any:
    if key not in KINDS:
        raise unknown("SLURM option", key, KINDS, hint=f"in {where}; other options of sbatch go into 'sbatch'")
    kind, expected = KINDS[key]
    try:
        if kind == "time":
            return minutes(value)
        if kind == "lines":
            return tuple([value] if isinstance(value, str) else map(_text, value))
        if kind == "table":
            return {_text(name).replace("_", "-"): part for name, part in value.items()}
        if kind == "text":
            return str(value) if key == "memory" and type(value) is int else _text(value)
        if type(value) is not (bool if kind == "bool" else int) or (kind != "bool" and not kind <= value <= LARGEST):
            raise ValueError
        return value
    except (ValueError, TypeError, AttributeError) as error:
        text = repr(value)
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise UsageError(f"{where}: {key} is {shown}, expected {expected}") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
