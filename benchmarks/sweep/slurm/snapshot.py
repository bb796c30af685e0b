"""A copy of the code as it is now, for jobs that start later: editing the checkout does not reach them."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import tempfile
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.records import provenance

LEFT_OUT = {".pyc"}


class SnapshotError(BenchmarkError):
    """The code cannot be copied."""

    exit_code = 2  # nothing was begun


def take(folder: Path, root: Path = provenance.ROOT) -> Path:
    """Copy the packages that make numbers, and the files of $FVI_METHODS, to ``folder/<digest>``.

    The same code gives the same folder; it appears whole or not at all. Raises SnapshotError.
    """
    files = {
        path.relative_to(root): path
        for package in provenance.CODE
        for path in sorted((root / package).rglob("*"))
        if path.is_file() and path.suffix not in LEFT_OUT
    }
    own = [Path(name).resolve() for name in filter(None, os.environ.get("FVI_METHODS", "").split(os.pathsep))]
    files |= {Path("methods") / f"{i}-{path.name}": path for i, path in enumerate(own)}
    commit, dirty = provenance.code()
    digest = hashlib.sha256(f"{commit} {dirty}".encode())
    try:
        for name, path in files.items():
            if "__pycache__" not in name.parts:  # compiled code is carried along, but does not tell copies apart
                digest.update(f"\0{name}\0".encode() + path.read_bytes())
        target = folder / digest.hexdigest()[:16]
        if not target.exists():
            folder.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=".making-", dir=folder))
            try:
                for name, path in files.items():
                    (made / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(path, made / name)  # with its time, by which compiled code is found to be current
                (made / provenance.SNAPSHOT).write_text(json.dumps({"commit": commit, "dirty": dirty}))
                made.rename(target)
            except OSError:
                shutil.rmtree(made, ignore_errors=True)
                if not target.exists():  # else another submission was faster
                    raise
    except OSError as error:
        raise SnapshotError(
            f"{folder}: the code cannot be copied ({error}): make room or make it writable, choose another folder "
            "with --state, or let jobs use the checkout itself with --slurm snapshot=false"
        ) from error
    return target


def lines(target: Path) -> list[str]:
    """Shell lines that make Python use a snapshot."""
    own = sorted((target / "methods").glob("*")) if (target / "methods").is_dir() else []
    return [
        f"export PYTHONPATH={shlex.quote(str(target))}${{PYTHONPATH:+:$PYTHONPATH}}",
        *([f"export FVI_METHODS={shlex.quote(os.pathsep.join(map(str, own)))}"] if own else []),
    ]
