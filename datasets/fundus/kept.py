"""Cache preprocessed photographs as bytes in files: several processes make them once, in batches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from ..fetch import Folder, cache_folder
from ..grades import outlines
from . import sources
from .source import Source

VERSION = "1"
BATCH = 64
OUTLINE, FROM = 16, 64  # side of an outline in pixels, and of the images it is computed from


def images(source: Source, side: int, root: Folder = None) -> np.ndarray:
    """Return squares [N, 3, side, side] after Graham's preprocessing, mapped from the cache. Raises BadData."""
    from .graham import graham

    return _kept(source, f"graham-{side}", (3, side, side), lambda rows: graham(_squares(source, side, rows)), root)


def eye_outlines(source: Source, root: Folder = None) -> np.ndarray:
    """Return the share of the eye in each block of the image, [N, 1, 16, 16]. Raises BadData."""
    made = lambda rows: outlines(_squares(source, FROM, rows), OUTLINE)
    return _kept(source, "outline", (1, OUTLINE, OUTLINE), made, root)


def _squares(source: Source, side: int, rows: range) -> np.ndarray:
    from .graham import square

    return np.stack([square(source.image(i), side, source.cut) for i in rows])


def _kept(
    source: Source,
    what: str,
    shape: tuple[int, ...],
    make: Callable[[range], np.ndarray],
    root: Folder,
) -> np.ndarray:
    from ..corruptions.cache import SeverityFile  # here, since scipy takes a second to load

    n = len(source.ids)
    batches = -(-n // BATCH)

    def batch(i: int) -> np.ndarray:
        made = np.zeros((BATCH, *shape), np.uint8)
        rows = range(i * BATCH, min((i + 1) * BATCH, n))
        made[: len(rows)] = make(rows)
        return made

    about = source.digest or hashlib.sha256("\0".join(source.ids).encode()).hexdigest()[:16]
    path = cache_folder(root) / "retinopathy" / f"{source.name}-{about}-{VERSION}" / f"{what}.npy"
    found = SeverityFile(path, (batches, BATCH, *shape)).images(range(batches), batch)
    sources.forget()
    return found.reshape(-1, *shape)[:n]
