"""Numbers of a figure as CSV: every line, band, bar, cloud of points and image of every panel."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import Collection, PathCollection, QuadMesh
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle, StepPatch

HEADER = ("panel", "title", "kind", "label", "x", "y", "value")
COLOURS = ("mesh", "image")  # kinds shown as colours, which distinguish no more than three digits
AUTOMATIC = re.compile(r"_(child|container)?\d+|_nolegend_")
SHADES = 1000  # distinguishable steps of a colour scale
Point = tuple[str, str, float, float, float | str]


def write(figure: Canvas, path: Path) -> None:
    """Write everything that a figure draws; panels are counted from 1."""
    with path.open("w", newline="", encoding="utf-8") as out:
        lines = csv.writer(out)
        lines.writerow(HEADER)
        shown = [axis for axis in figure.axes if axis.get_visible() and axis.get_label() != "<colorbar>"]
        for panel, axis in enumerate(shown, 1):
            title = " ".join(axis.get_title().split())
            for kind, label, *numbers in _drawn(axis):
                lines.writerow([panel, title, kind, label, *(_short(number, kind) for number in numbers)])


def _drawn(axis: Axes) -> Iterator[Point]:
    for line in axis.get_lines():
        for x, y in np.column_stack([np.atleast_1d(line.get_xdata()), np.atleast_1d(line.get_ydata())]):
            yield "line", label_of(line), x, y, ""
    for bar in axis.patches:
        if isinstance(bar, Rectangle):
            yield "bar", label_of(bar), bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height(), ""
        elif isinstance(bar, StepPatch):
            values, edges, _ = bar.get_data()
            for left, right, value in zip(edges, edges[1:], values):
                yield "step", label_of(bar), (left + right) / 2, value, ""
    for each in axis.collections:
        yield from _collected(each)
    for image in axis.get_images():
        values = _shades(image)
        if values.ndim == 2:
            left, right, bottom, top = image.get_extent()
            rows, columns = values.shape
            for (i, j), value in np.ndenumerate(values):
                x = left + (j + 0.5) * (right - left) / columns
                yield "image", label_of(image), x, top + (i + 0.5) * (bottom - top) / rows, value


def _collected(each: Collection) -> Iterator[Point]:
    name = label_of(each)
    if isinstance(each, PathCollection):
        values = each.get_array()
        for index, (x, y) in enumerate(_numbers(each.get_offsets())):
            yield "point", name, x, y, "" if values is None else _numbers(values)[index]
    elif isinstance(each, QuadMesh):
        grid, values = _numbers(each.get_coordinates()), _shades(each)
        places = (grid[1:, 1:] + grid[:-1, :-1]) / 2  # the middle of every cell
        for (x, y), value in zip(places.reshape(-1, 2), values.ravel()):
            yield "mesh", name, x, y, value
    else:
        for path in each.get_paths():
            for x, y in _numbers(path.vertices):
                yield "outline", name, x, y, ""


def _shades(shown: ScalarMappable) -> np.ndarray:
    """Return values that are shown as colours, rounded to distinguishable steps."""
    low, high = shown.get_clim()
    span = (high or 0.0) - (low or 0.0)
    values = _numbers(shown.get_array())
    return values.round(math.ceil(math.log10(SHADES / span))) + 0.0 if 0 < span < math.inf else values


def _numbers(array: Any) -> np.ndarray:
    return np.ma.filled(np.ma.asarray(array, dtype=float), np.nan)


def label_of(artist: object) -> str:
    """Return the label of a drawn object; empty for one that matplotlib made."""
    label = str(artist.get_label())  # type: ignore[attr-defined]
    return "" if AUTOMATIC.fullmatch(label) else label


def _short(number: float | str, kind: str) -> str:
    return number if isinstance(number, str) else f"{float(number):.{3 if kind in COLOURS else 5}g}"
