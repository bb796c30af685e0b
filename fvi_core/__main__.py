"""``python -m fvi_core``: version, methods and parts."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Sequence

import fvi_core.interface  # noqa: F401, it registers every part
from fvi_core import __version__, methods
from fvi_core.printing import streams
from fvi_core.registry import REGISTRIES


def text() -> str:
    """Return the version, every method of the catalogue and every part by its kind."""
    listed: dict[str, Iterable[str]] = {"methods": methods.catalogue()}
    listed |= {kind: registry.classes for kind, registry in REGISTRIES.items()}
    lines = [f"fvi-core {__version__}"]
    for kind, names in listed.items():
        lines += ["", kind, *textwrap.wrap(", ".join(sorted(names)), 100, initial_indent="  ", subsequent_indent="  ")]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print :func:`text`."""
    argparse.ArgumentParser("python -m fvi_core", description="Print version, methods and parts.").parse_args(arguments)
    with streams():
        print(text())


if __name__ == "__main__":
    main()
