"""Helper that forgets the plug-ins of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.records.hyperparameters import load_parts
from benchmarks.tables import spec  # noqa: F401  (has data sets of plug-ins forgotten)
from fvi_core import plugins
from fvi_core.registry import REGISTRIES


@contextmanager
def forgotten() -> Iterator[None]:
    """Forget everything that plug-ins register in the block, so that the next test loads its own."""
    load_parts()  # what is loaded for the first time meanwhile would be taken away too
    held = [*plugins._TRACKED, plugins._loaded, *(registry.classes for registry in REGISTRIES.values())]
    before, settled = [dict(names) for names in held], list(plugins._settled)
    try:
        yield
    finally:
        for names, old in zip(held, before):
            names.clear()
            names.update(old)
        plugins._settled[:] = settled
