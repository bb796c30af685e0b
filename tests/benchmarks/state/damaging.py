"""Random damage to files of a state folder, such as a disk, a person or another program may leave."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from random import Random
from typing import Any

DEEP = object()  # stands for lists in lists in lists
NUMBERS = (True, -1, 0, 2**70, 0.5, float("inf"), float("nan"))
VALUES = (None, *NUMBERS, "", "\0", "\ud800", "../..", "x" * 300, [], {}, [[]], DEEP)


def cut(data: bytes, chance: Random) -> bytes:
    return data[: chance.randrange(len(data))] if data else data


def flip(data: bytes, chance: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 8) if data else 0):
        changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def insert(data: bytes, chance: Random) -> bytes:
    at = chance.randint(0, len(data))
    return data[:at] + chance.randbytes(chance.randint(1, 40)) + data[at:]


def swap(data: bytes, chance: Random) -> bytes:
    """Put another value somewhere into a JSON text; replace data that are no JSON by a JSON text."""
    try:
        top = json.loads(data)
    except ValueError:
        top = None
    places = list(_places(top))
    value = chance.choice(VALUES)
    if not places:
        top = value
    else:
        holder, name = chance.choice(places)
        if chance.random() < 0.2:
            del holder[name]
        else:
            holder[name] = value
    text = json.dumps(top, default=lambda _: "deep").replace('"deep"', "[" * 2000 + "]" * 2000)
    return text.encode()


def _places(value: Any):
    """Yield every place of a nested value in a JSON value: container and index."""
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield value, name
            yield from _places(inner)


CHANGES = (cut, flip, insert, swap, swap, swap, lambda data, chance: chance.randbytes(chance.randint(0, 200)))


def _folder(path: Path, chance: Random) -> None:
    path.mkdir()
    if chance.random() < 0.5:
        (path / "full").touch()


def _link(path: Path, chance: Random) -> None:
    path.symlink_to(chance.choice(("gone", path.name, "..", "?")))


def _nothing(path: Path, chance: Random) -> None:
    pass


def damage(path: Path, chance: Random) -> str:
    """Change a file, a link or a folder; return what was done, in words."""
    link = path.is_symlink()
    if path.is_dir() and not link:
        shutil.rmtree(path)
        path.write_bytes(chance.randbytes(9))
        return f"a file in place of the folder {path}"
    data = os.fsencode(os.readlink(path)) if link else path.read_bytes()
    if chance.random() < 0.3:
        make = chance.choice((_folder, _link, _nothing, lambda path, _: path.write_bytes(data)))
        path.unlink()
        make(path, chance)
        return f"something else in place of {path}: {getattr(make, '__name__', '')}"
    changed = chance.choice(CHANGES)(data, chance)
    path.unlink()
    if link:
        os.symlink(changed.replace(b"\0", b"?")[:4000] or b"?", path)
    else:
        path.write_bytes(changed)
    return f"{changed[:300]!r} in {path}"
