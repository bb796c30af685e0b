"""Checkpoints of long trainings, from which another process resumes, in a folder of the state.

    <stack>.ckpt   the SHA-256 of what follows, a line of JSON about the stack, the trainer's state as torch saves it
    <key>          a link to the checkpoint of the stack that the training of this key is part of

A checkpoint is used only where it gives, on one model of processor, the numbers of an uninterrupted training; in doubt
it is ignored.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import files
from benchmarks.errors import setting
from benchmarks.records.config import run_key, training_key
from benchmarks.shapes import RunConfig
from benchmarks.state.claims import Claims, Overtaken
from fvi_core.printing import message
from fvi_core.telling import warn

if TYPE_CHECKING:
    from fvi_core.stack import SavedState

FORMAT = 1
SUFFIX = ".ckpt"
VARIABLE = "FVI_CHECKPOINT_SECONDS"
INTERVAL = 60.0  # seconds of training between checkpoints
SHARE = 50  # after a checkpoint of t seconds the next one waits for this many t, so that saving costs about 2 % at most

_stop = False  # no threading.Event: setting one in a signal handler can wait for itself


def request_stop(*_: object) -> None:
    """Stop training at the end of the present epoch, with a checkpoint. Usable as a signal handler.

    The stopped training raises KeyboardInterrupt. A stop cannot be withdrawn.
    """
    global _stop
    _stop = True


def stop_requested() -> bool:
    return _stop


def interval() -> float:
    """Seconds between checkpoints: 0 is after every epoch, inf only when stopped. Raises :class:`UsageError`."""
    return setting(VARIABLE, INTERVAL, "seconds")


def code_digest(paths: Iterable[Path]) -> str:
    """Return 16 digits of a SHA-256 over files, and over the .py files in folders."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            own = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{file.relative_to(path.parent)} {own}\n".encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Checkpoint:
    """Interrupted training: its runs in the order of the stack, and the trainer's state.

    seconds: training time so far; resumed: number of earlier resumptions; machine: cpu and device that trained so far.
    """

    configs: list[RunConfig]
    epoch: int
    epochs: int
    seconds: float
    resumed: int
    machine: dict[str, str]
    state: SavedState

    def with_machine(self, here: Mapping[str, str]) -> dict[str, str]:
        """Return cpu and device of the whole training, with those here where they are others."""
        before = {name: self.machine.get(name, now) for name, now in here.items()}
        return {n: before[n] if before[n].endswith(now) else f"{before[n]}, then {now}" for n, now in here.items()}


class Checkpoints:
    """Checkpoints under a state folder."""

    def __init__(self, state: Path | str) -> None:
        self.folder = Path(state) / "checkpoints"

    def parts(self, keys: Iterable[str]) -> list[list[str]]:
        """Group trainings by shared checkpoint; those without one form one group."""
        groups: dict[str | None, list[str]] = {}
        for key in keys:
            groups.setdefault(self._target(key), []).append(key)
        return list(groups.values())

    def find(self, fingerprints: Mapping[str, str], conditions: Mapping[str, Any]) -> Checkpoint | None:
        """Find the checkpoint shared by trainings (key -> fingerprint of its data); its stack may hold more.

        ``conditions``: code, torch, device and threads, which must be unchanged for equal numbers. Raises nothing: the
        reason for ignoring a checkpoint is printed, and told to listeners.
        """
        self.clear()
        name = self._target(next(iter(fingerprints)))
        if name is None:
            return None
        try:
            checkpoint = self._load(name, fingerprints, conditions)
        except Exception as error:  # training from the beginning is right whatever the damage
            reason = message(error) or type(error).__name__
            warn(f"a checkpoint in {self.folder} is not used: {reason}; training starts from the beginning", "loss")
            return None
        print(f"going on from the checkpoint at epoch {checkpoint.epoch} of {checkpoint.epochs}")
        return checkpoint

    def save(self, about: Mapping[str, Any], keys: Iterable[str], state: SavedState) -> None:
        """Write the checkpoint of a stack, whole or not at all, and link ``keys``, some of its runs, to it.

        ``about``: the stack as :class:`CheckpointCallback` describes it. Raises OSError, and Overtaken if other
        processes have claimed its runs since.
        """
        import torch

        buffer = io.BytesIO()
        torch.save(state, buffer)
        line = json.dumps({"format": FORMAT, **about}).encode() + b"\n"
        digest = hashlib.sha256(line)
        digest.update(buffer.getbuffer())
        path = self.folder / (hashlib.sha256("\n".join(about["keys"]).encode()).hexdigest()[:16] + SUFFIX)
        with files.replacing(path, self._linking(keys, path.name)) as file:
            file.write(digest.hexdigest().encode() + b"\n" + line)
            file.write(buffer.getbuffer())

    def clear(self, *keys: str) -> None:
        """Remove the checkpoints of trainings (keys of their runs also do) and unusable files.

        Unusable are checkpoints that no run needs, dangling links, and files of killed writers. Raises nothing.
        """
        if not set(files.listdir(self.folder)) - {".lock"}:
            return
        with contextlib.suppress(OSError), files.locked(self.folder):
            names, used = files.listdir(self.folder), set()
            trainings = {self.path(key).name for key in keys}
            for name in names:
                path = self.folder / name
                if path.is_symlink():
                    if name in trainings or name.startswith(".") or not path.exists():
                        path.unlink(missing_ok=True)
                    else:
                        used.add(os.readlink(path))
            files.clear(self.folder)
            for name in names:
                if name.endswith(SUFFIX) and name not in used:
                    (self.folder / name).unlink(missing_ok=True)

    def serving(self, keys: Iterable[str]) -> Iterator[str]:
        """Yield the runs for which the checkpoint of their training was written, rather than for another evaluation."""
        present = set(files.listdir(self.folder))
        for key in (each for each in keys if self.path(each).name in present):
            checkpoint = progress(self.folder.parent, key)
            if checkpoint is not None and key in map(run_key, checkpoint.about["configs"]):
                yield key

    def _load(self, name: str, fingerprints: Mapping[str, str], conditions: Mapping[str, Any]) -> Checkpoint:
        import torch

        with open(self.folder / name, "rb", opener=files.regular) as file:
            digest, line, data = file.readline().strip(), file.readline(), file.read()
        actual = hashlib.sha256(line)
        actual.update(data)
        if actual.hexdigest().encode() != digest:
            raise ValueError(f"{name} is not whole, or is no checkpoint")
        about = json.loads(line)
        if about["format"] != FORMAT:
            raise ValueError(f"it has format {about['format']}, this code reads {FORMAT}")
        for what, value in conditions.items():
            if about[what] != value:
                raise ValueError(f"it was made with {what} {about[what]}, this is {value}")
        keys = [training_key(config) for config in about["configs"]]
        if keys != about["keys"] or not set(fingerprints) <= set(keys):
            raise ValueError("it belongs to other runs")
        data_of = dict(zip(keys, about["fingerprints"], strict=True))
        if any(data_of[key] != fingerprint for key, fingerprint in fingerprints.items()):
            raise ValueError("the data set has changed since")
        state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        numbers = about["epoch"], about["epochs"], about["seconds"], about["resumed"]
        return Checkpoint(about["configs"], *numbers, about.get("machine", {}), state)

    def path(self, key: str) -> Path:
        """Path of a training's link, existing or not; the key of one of its runs also does."""
        return self.folder / key.partition("-")[0]

    def _target(self, key: str) -> str | None:
        try:
            return os.readlink(self.path(key))
        except OSError:
            return None

    @contextlib.contextmanager
    def _linking(self, keys: Iterable[str], target: str) -> Iterator[None]:
        """Put a checkpoint in place and link it under one lock; without a link it would count as a leftover."""
        claims = Claims(self.folder.parent / "claims")
        with files.locked(self.folder):
            own = [key for key in keys if not claims.taken(key)]
            if not own:
                raise Overtaken("other processes have claimed its runs")
            yield
            for key in own:
                self._link(key, target)

    def _link(self, key: str, target: str) -> None:
        if self._target(key) != target:
            spare = self.folder / ".spare"
            spare.unlink(missing_ok=True)
            os.symlink(target, spare)
            os.replace(spare, self.path(key))


class CheckpointCallback:
    """Callback of ``Stack.run`` that saves the stack after an epoch when a checkpoint is due.

    ``about`` holds the keys, configs and fingerprints of the stack, and what :meth:`Checkpoints.find` compares;
    ``keys`` are the runs that need the checkpoint; ``checkpoint`` is what training resumed from. A failure to write is
    printed and stops nothing. Raises KeyboardInterrupt when a stop was requested.
    """

    def __init__(
        self, checkpoints: Checkpoints, about: dict[str, Any], keys: list[str], checkpoint: Checkpoint | None
    ) -> None:
        self.checkpoints, self.about, self.keys = checkpoints, about, keys
        self.interval = interval()
        self.before = checkpoint.seconds if checkpoint else 0.0
        self.resumed = checkpoint.resumed + 1 if checkpoint else 0
        self.started = time.perf_counter()
        self.due = self.before + self.interval

    @property
    def seconds(self) -> float:
        """Training time including all earlier parts."""
        return self.before + time.perf_counter() - self.started

    def __call__(self, trainer: Any) -> None:
        now, stop = self.seconds, stop_requested()
        if stop or now >= self.due or (trainer.finished and now >= self.interval):
            self._save(trainer, now)
            took = self.seconds - now
            self.due = now + took + (max(self.interval, SHARE * took) if self.interval else 0.0)
        if stop:
            raise KeyboardInterrupt

    def _save(self, trainer: Any, seconds: float) -> None:
        epochs = {"epoch": trainer.epoch, "epochs": trainer.epochs}
        about = self.about | epochs | {"seconds": seconds, "resumed": self.resumed}
        try:
            self.checkpoints.save(about, self.keys, trainer.state())
        except (OSError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            warn(f"no checkpoint could be written in {self.checkpoints.folder} ({reason}); training continues without")


@dataclass(frozen=True)
class Progress:
    """Description of a checkpoint. trainings: size of its stack; about: code, device, threads, processor."""

    epoch: int
    epochs: int
    seconds: float
    trainings: int
    about: dict[str, Any]

    def __str__(self) -> str:
        return f"checkpoint at epoch {self.epoch} of {self.epochs}"


def progress(state: Path | str, key: str) -> Progress | None:
    """Return the progress of a run's checkpoint, or None without one; does not load the training state."""
    try:
        with open(Checkpoints(state).path(key), "rb", opener=files.regular) as file:
            file.readline()
            about = files.parse(file.readline())
            numbers = int(about["epoch"]), int(about["epochs"]), float(about["seconds"]), len(about["keys"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return Progress(*numbers, about)
