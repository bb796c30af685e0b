"""Names on the command line: resolved to one meaning, or to the commands that distinguish several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from benchmarks.errors import UnknownName, UsageError
from benchmarks.records.store import Store
from fvi_core.spelling import alike, near

T = TypeVar("T")
MOST = 20  # most commands in a message


def pick(kind: str, name: str, known: Mapping[str, T], command: Callable[[str], str], of: str = "") -> T:
    """Return the only meaning of a name, of a part of one, or of some of its words; without a name, list all.

    ``command`` returns the command with another name. Raises UnknownName and UsageError, with commands to copy.
    """
    labels = _once(known, known)
    if not name:
        raise UsageError(f"no {kind}{of} was chosen: choose one\n{_listed(labels, len(labels), command)}")
    words = name.lower().split()
    found = (
        [label for label in known if label.lower() == name.lower()]
        or [label for label in known if name.lower() in label.lower()]
        or [label for label in known if words and all(word in label.lower() for word in words)]
    )
    if not found:
        like = _once(known, near(name, known))
        hint = "did you mean one of these" if like else "there is" if known else "there is none"
        shown, count = (like, len(like)) if like else (labels[:MOST], len(labels))
        raise UnknownName(f"unknown {kind} {name!r}{of}: {hint}\n{_listed(shown, count, command)}")
    return settle(f"{kind} {name!r}{of}", {label: known[label] for label in found}, command)


def key(prefix: str, store: Store, command: Callable[[str], str], failed: Iterable[str] = ()) -> str:
    """Return the only key of a record or failed run that starts with these digits. Raises UnknownName and
    UsageError.
    """
    paths = store.paths()
    about = {key: f"{path.parent.parent.name}, {path.parent.name}" for key, path in paths.items()}
    about |= {key: "failed" for key in failed if key not in about}
    found = {key: key for key in about if key.startswith(prefix.lower())}
    if not found:
        like = alike(prefix.lower(), about)
        hint = "these begin most like it" if like else f"keys are names of files under {store.root}"
        hint += "" if store.root.is_dir() else ", a folder that is not there: another --results?"
        raise UnknownName(f"unknown key {prefix!r}: {hint}\n{_listed(like, len(like), command, about)}".rstrip())
    return settle(f"key {prefix!r}", found, command, about)


def settle(
    what: str, meanings: Mapping[str, T], command: Callable[[str], str], about: Mapping[str, str] | None = None
) -> T:
    """Return the only meaning. Raises UsageError, with a command for each of several."""
    labels = _once(meanings, meanings)
    if len(labels) == 1:
        return meanings[labels[0]]
    raise UsageError(
        f"{what} has {len(labels)} meanings: choose one\n{_listed(labels[:MOST], len(labels), command, about)}"
    )


def _once(known: Mapping[str, T], labels: Iterable[str]) -> list[str]:
    """Return one label, the last, for each meaning."""
    return list({id(known[label]): label for label in labels}.values())


def _listed(
    labels: list[str], count: int, command: Callable[[str], str], about: Mapping[str, str] | None = None
) -> str:
    lines = [f"  {command(label)}" + (f"  # {about[label]}" if about and label in about else "") for label in labels]
    return "\n".join([*lines, *([f"  ... and {count - len(labels)} more"] if count > len(labels) else [])])
