"""Trained and fitted parameters in the state folder, for more evaluation sets, draws and attacks without training."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from benchmarks import files
from benchmarks.records.config import digest, training_key
from benchmarks.shapes import Provenance, RunConfig
from benchmarks.state.kept import DAMAGE, parameters_path, use
from fvi_core.networks import Parameters
from fvi_core.printing import message
from fvi_core.telling import warn

FORMAT = 2  # 1: before fits after training


@dataclass(frozen=True)
class Kept:
    """Parameters ``[1, ...]`` of one training, as prediction takes them, with data fingerprint, conditions of training
    and provenance."""

    parameters: Parameters
    fingerprint: str
    conditions: dict[str, Any]
    provenance: Provenance


def save(state: Path | str, config: RunConfig, kept: Kept) -> bool:
    """Save the parameters of a run's training; return False where they cannot be written, after printing why."""
    training = {name: value for name, value in config.items() if name != "evaluation"}
    about = {
        "format": FORMAT,
        "training": training,
        "fingerprint": kept.fingerprint,
        "made": kept.conditions,
        "provenance": kept.provenance,
    }
    arrays: dict[str, Any] = {
        f"parameters/{name}": value.detach().cpu().numpy() for name, value in kept.parameters.items()
    }
    buffer = io.BytesIO()
    np.savez(buffer, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **arrays)
    path = parameters_path(state, training_key(config))
    try:
        with files.replacing(path) as file:
            file.write(buffer.getbuffer())
    except OSError as error:
        text = f"parameters cannot be written ({error.strerror or error}); another evaluation will need training"
        warn(f"{path.parent}: {text}", about=path.stem)
        return False
    return True


def load(state: Path | str, key: str) -> Kept | None:
    """Return the parameters of a training, or None; print the reason if the file is damaged."""
    path = parameters_path(state, key)
    try:
        kept = read(path, path.stem)
    except FileNotFoundError:
        return None
    except DAMAGE as error:
        reason = message(error) or type(error).__name__
        print(f"{path}: these parameters are not used: {reason[:200]}")
        return None
    use(path)
    return kept


def read(path: Path, key: str) -> Kept:
    """Return the parameters in a file, checked against a training's key. Raises one of DAMAGE."""
    with open(path, "rb", opener=files.regular) as opened, np.load(opened, allow_pickle=False) as file:
        about = json.loads(file["about"].tobytes())
        arrays = {name.removeprefix("parameters/"): file[name] for name in file.files if name != "about"}
    if about["format"] != FORMAT:
        raise ValueError(f"format {about['format']}, this code reads {FORMAT}")
    if digest(about["training"]) != key:
        raise ValueError("it belongs to another training")
    parameters = {name: torch.from_numpy(array) for name, array in arrays.items()}
    kept = Kept(parameters, str(about["fingerprint"]), dict(about["made"]), cast(Provenance, dict(about["provenance"])))
    float(kept.provenance["seconds"])
    return kept
