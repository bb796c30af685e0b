"""Copy of the present code for jobs that start later, so that editing the checkout does not affect them."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from benchmarks.records import provenance
from benchmarks.sweep.slurm.queue import SlurmError
from fvi_core import plugins

PLUGINS = "plugins"
"""Folder of plug-ins in a copy, and the file in it that lists them."""


def take(folder: Path, root: Path = provenance.ROOT) -> Path:
    """Copy the packages that determine results, and the plug-ins of $FVI_PLUGINS, to ``folder/<digest>``.

    A plug-in in a package is copied with the whole package: it may import it, and its digest is the package's.
    Installed packages are assumed to be installed on the nodes. The same code gives the same folder; it appears whole
    or not at all. Raises SlurmError, PluginError.
    """
    files = {path.relative_to(root): path for package in provenance.CODE for path in _files(root / package)}
    written: dict[Path, str] = {}
    named = []
    for i, plugin in enumerate(plugin for plugin in plugins.find() if not plugin.package):
        top = plugin.path if plugin.path.is_dir() else plugins.package_of(plugin.path) or plugin.path
        place = Path(PLUGINS, str(i), top.name)
        named.append((place / plugin.path.relative_to(top)).as_posix())
        if top.is_dir():
            files |= {place / path.relative_to(top): path for path in _files(top)}
        else:
            files[place], written[place.with_name(plugins.ORIGIN)] = top, str(top)
    commit, dirty = provenance.code()
    written |= {Path(PLUGINS, PLUGINS): "\n".join(named)} if named else {}
    digest = hashlib.sha256(f"{commit} {dirty}".encode())
    try:
        for name, path in files.items():
            if "__pycache__" not in name.parts:  # compiled code is copied, but not hashed
                digest.update(f"\0{name}\0".encode() + path.read_bytes())
        digest.update("".join(f"\0{name}\0{text}" for name, text in written.items()).encode())
        target = folder / digest.hexdigest()[:16]
        if not target.exists():
            folder.mkdir(parents=True, exist_ok=True)
            copy = folder / f".making-{uuid.uuid4().hex[:16]}"
            try:
                copy.mkdir()  # with the umask's permissions, since colleagues' array tasks may use the copy
                for name, path in files.items():
                    (copy / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, copy / name)
                    times = path.stat()  # Python compares this time with the compiled code's
                    os.utime(copy / name, ns=(times.st_atime_ns, times.st_mtime_ns))
                for name, text in written.items():
                    (copy / name).write_text(text)
                (copy / provenance.SNAPSHOT).write_text(json.dumps({"commit": commit, "dirty": dirty}))
                copy.rename(target)
            except OSError:
                shutil.rmtree(copy, ignore_errors=True)
                if not target.exists():  # else another submission was faster
                    raise
    except OSError as error:
        raise SlurmError(
            f"{folder}: the code cannot be copied ({error}): make room or make it writable, choose another folder "
            "with --state, or let jobs use the checkout itself with --slurm snapshot=false"
        ) from error
    if not os.access(target / provenance.SNAPSHOT, os.R_OK):
        raise SlurmError(
            f"{target}: this copy of the code, of another user, cannot be read: let its owner `chmod -R go+rX` it, "
            "or choose another folder with --state"
        )
    return target


def lines(target: Path) -> list[str]:
    """Return shell lines that make Python use a snapshot, and end a job that cannot read it."""
    listed = target / PLUGINS / PLUGINS
    own = [str(target / name) for name in listed.read_text().splitlines()] if listed.is_file() else []
    unread = (
        f"{target}: the copy of the code cannot be read on this node by this user: expected a folder that it sees and "
        "may read; let its owner chmod -R go+rX it, or submit with another --state"
    )
    return [
        f"[ -r {shlex.quote(str(target / provenance.SNAPSHOT))} ] || {{ echo {shlex.quote(unread)} >&2; exit 1; }}",
        f"export PYTHONPATH={shlex.quote(str(target))}${{PYTHONPATH:+:$PYTHONPATH}}",
        *([f"export {plugins.VARIABLE}={shlex.quote(os.pathsep.join(own))}"] if own else []),
    ]


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".pyc")
