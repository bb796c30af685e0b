"""Numbers of a figure as CSV: every line, band, bar, cloud of points and image of every panel."""

from __future__ import annotations

import csv
import io
import lzma
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import Collection, PathCollection
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle, StepPatch

from benchmarks import files

HEADER = ("panel", "title", "kind", "label", "x", "y", "value")
AUTOMATIC = re.compile(r"_(child|container)?\d+|_nolegend_")
SHADES = 100  # steps of a colour scale that are kept at least: about as many as eyes distinguish
# A sixth of the time that the usual filter takes, for files a third larger.
QUICK = [
    {"id": lzma.FILTER_LZMA2, "mode": lzma.MODE_FAST, "mf": lzma.MF_HC4, "nice_len": 128, "depth": 4, "lc": 4, "pb": 0}
]
Points = tuple[str, str, np.ndarray]
_names: WeakKeyDictionary[Artist, str] = WeakKeyDictionary()


def named(name: str, *drawn: Artist) -> None:
    """Name drawn objects for the CSV file alone: legends have the line of their row."""
    _names.update(dict.fromkeys(drawn, name))


def write(figure: Canvas, path: Path) -> None:
    """Write everything that a figure draws, compressed if the file's name ends so; panels are counted from 1."""
    out = io.StringIO(newline="")
    csv.writer(out).writerow(HEADER)
    shown = [axis for axis in figure.axes if axis.get_visible() and axis.get_label() != "<colorbar>"]
    for panel, axis in enumerate(shown, 1):
        title = " ".join(axis.get_title().split())
        for kind, label, numbers in _drawn(axis):
            words = io.StringIO(newline="")
            csv.writer(words, lineterminator="").writerow([panel, title, kind, label])
            digits = 3 if kind == "image" else 5  # no eye reads colours to more
            number, left = f",%.{digits}g", 3 - numbers.shape[1]
            line = words.getvalue().replace("%", "%%") + number * numbers.shape[1] + "," * left + "\r\n"
            out.write(line * len(numbers) % tuple(numbers.ravel().tolist()))
    with files.replacing(path) as file:
        text = out.getvalue().encode()
        file.write(lzma.compress(text, filters=QUICK) if path.suffix == ".xz" else text)


def _drawn(axis: Axes) -> Iterator[Points]:
    """Yield kind, label, and coordinates with values, if any, [N, 2 or 3] of everything in a panel."""
    for line in axis.get_lines():
        yield "line", _name_of(line), _columns(line.get_xdata(), line.get_ydata())
    for bar in axis.patches:
        if isinstance(bar, Rectangle):
            yield "bar", label_of(bar), _columns(bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height())
        elif isinstance(bar, StepPatch):
            values, edges, _ = bar.get_data()
            yield "step", label_of(bar), _columns((edges[:-1] + edges[1:]) / 2, values)
    for each in axis.collections:
        yield from _collected(each)
    for image in axis.get_images():
        values = _shades(image)
        if values.ndim == 2:
            left, right, bottom, top = image.get_extent()
            i, j = np.indices(values.shape) + 0.5
            x = left + j * (right - left) / values.shape[1]
            yield "image", label_of(image), _columns(x, top + i * (bottom - top) / len(values), values)


def _collected(each: Collection) -> Iterator[Points]:
    name = _name_of(each)
    if isinstance(each, PathCollection):
        values = each.get_array()
        yield "point", name, _columns(*_numbers(each.get_offsets()).T, *([] if values is None else [values]))
    else:
        for path in each.get_paths():
            yield "outline", name, _numbers(path.vertices)


def _columns(*values: Any) -> np.ndarray:
    return np.column_stack([_numbers(each).ravel() for each in values])


def _shades(shown: ScalarMappable) -> np.ndarray:
    """Return values that are shown as colours, rounded to distinguishable steps."""
    low, high = shown.get_clim()
    span = (high or 0.0) - (low or 0.0)
    values = _numbers(shown.get_array())
    return values.round(math.ceil(math.log10(SHADES / span))) + 0.0 if 0 < span < math.inf else values


def _numbers(array: Any) -> np.ndarray:
    return np.ma.filled(np.ma.asarray(array, dtype=float), np.nan)


def _name_of(artist: Artist) -> str:
    return _names.get(artist) or label_of(artist)


def label_of(artist: object) -> str:
    """Return the label of a drawn object; empty for one that matplotlib made."""
    label = str(artist.get_label())  # type: ignore[attr-defined]
    return "" if AUTOMATIC.fullmatch(label) else label
