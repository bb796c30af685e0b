"""What a user asks of a SLURM cluster: from a file, from the command line, or left to the cluster."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from benchmarks.errors import UsageError, unknown

FILE = "slurm.toml"
VARIABLE = "FVI_SLURM"


@dataclass(frozen=True)
class Options:
    """Resources and habits of an array's tasks. A key with the value None is left to the cluster.

    time: minutes of one array task. parallel: array tasks that may run at once. cpus: also how many processes
    an array task trains in, without a GPU. gpus: 0 or 1; an array task trains on one, more of them use more.
    runs_per_task: runs that share an array task; None: one that is large, or up to 20 that are not. setup: shell lines
    before Python starts. python: another interpreter command. snapshot: jobs use a copy of the code as it was at
    submission. notice: seconds before the time limit at which an array task saves its checkpoints and asks to be
    requeued. requeues: how often it may. sbatch: any other option of sbatch.
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
        """How many runs an array task trains at once."""
        return 1 if self.gpus else self.cpus

    def parameters(self, name: str, setup: Sequence[str]) -> dict[str, Any]:
        """The parameters of submitit's executor for an array of this name."""
        asked = {
            "job_name": name,
            "time": self.time,
            "cpus_per_task": self.cpus,
            "nodes": 1,
            "ntasks_per_node": 1,
            "array_parallelism": self.parallel,
            # Told later than at a quarter of its time, a short one would be asked to end as it begins.
            "signal_delay_s": min(self.notice, self.time * 60 // 4),
            # `--export=NONE` of sbatch would reach srun too, whose tasks then lack what the lines below export.
            "setup": ["export SLURM_EXPORT_ENV=ALL", *self.setup, *setup],
            "wckey": None,
            "additional_parameters": dict(self.sbatch),
        }
        optional = {"mem": self.memory, "gpus_per_node": self.gpus or None, "partition": self.partition,
                    "account": self.account, "qos": self.qos, "constraint": self.constraint}  # fmt: skip
        return asked | {key: value for key, value in optional.items() if value is not None}


KINDS = {f.name: str(f.type) for f in fields(Options)}


def load(file: Path | str | None = None, changes: Sequence[str] = (), folder: Path | None = None) -> Options:
    """Options of a TOML file, then of ``key=value`` words that go before it.

    Without a file: $FVI_SLURM, else slurm.toml in ``folder`` (default: the present one) if it is there.
    Raises UsageError: the file or word, what was expected, what was found.
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
    for word in changes:
        key, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"--slurm {word}: expected key=value, as in --slurm partition=gpu")
        values[key] = _checked(key, _parsed(key, text), f"--slurm {word}")
    return Options(**values)


def minutes(text: str | int) -> int:
    """Minutes of a time as SLURM writes it: 30, 30:00, 8:00:00, 2-12, 2-12:30. Raises ValueError."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", str(text).strip())
    if not found:
        raise ValueError(text)
    days, first, second, third = (int(part or 0) for part in found.groups())
    if found[1]:
        seconds = days * 86400 + first * 3600 + second * 60 + third
    elif found[4]:
        seconds = first * 3600 + second * 60 + third
    else:
        seconds = first * 60 + second
    return max(1, -(-seconds // 60))


def _parsed(key: str, text: str) -> Any:
    """A word of the command line as the file would hold it."""
    kind = KINDS.get(key, "")
    if key == "setup":
        return [text]
    if key == "sbatch":
        name, equals, value = text.partition("=")
        return {name.lstrip("-"): value if equals else True}
    if kind == "bool" and text.lower() in ("true", "yes", "1", "false", "no", "0"):
        return text.lower() in ("true", "yes", "1")
    return int(text) if kind.startswith("int") and re.fullmatch(r"\d+", text) else text


def _checked(key: str, value: Any, where: str) -> Any:
    if key not in KINDS:
        raise unknown("SLURM option", key, KINDS, hint=f"in {where}; other options of sbatch go into 'sbatch'")
    kind = KINDS[key]
    try:
        if key == "time":
            return minutes(value)
        if key == "setup":
            return tuple([value] if isinstance(value, str) else map(_text, value))
        if key == "sbatch":
            return {_text(name).replace("_", "-"): part for name, part in value.items()}
        if kind == "bool":
            return {True: True, False: False}[value]
        if kind.startswith("int"):
            if isinstance(value, bool) or int(value) < (0 if key in ("gpus", "notice", "requeues") else 1):
                raise ValueError
            if key == "gpus" and int(value) > 1:
                raise ValueError
            return int(value)
        return str(value) if key == "memory" else _text(value)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        expected = EXPECTED.get(key, EXPECTED.get(kind, "a text"))
        raise UsageError(f"{where}: {key} is {value!r}, expected {expected}") from error


EXPECTED = {
    "time": "minutes, or a time as 8:00:00 or 2-12",
    "setup": "a shell line, or a list of them",
    "sbatch": "a table of options of sbatch",
    "gpus": "0 or 1: an array task trains on one GPU, more of them use more",
    "notice": "a number of seconds, 0 or more",
    "requeues": "a number of 0 or more",
    "bool": "true or false",
    "int": "a number of 1 or more",
    "int | None": "a number of 1 or more",
}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
