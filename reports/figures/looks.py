"""Colours, lines and markers of methods, the same in every figure: safe for colour-blind readers (Okabe and Ito), and
different in black and white."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.colors import to_hex, to_rgb
from matplotlib.markers import MarkerStyle
from matplotlib.transforms import Affine2D

Marker = str | tuple[int, int, int]
DASHES = (0, (1, 1, 4, 1))
TINT = 0.55  # share of a method's colour in its published marks
GREY, GREEN, RED = "0.45", "#009E73", "#B2182B"
# The first word that a method's name contains decides colour and marker; the rest of the name decides the line.
METHODS: dict[str, tuple[str, Marker]] = {
    "GFSVI": ("#CC79A7", "s"),
    "FSVI": ("#D55E00", "D"),
    "HyVI": ("#0072B2", ">"),
    "MFVI": ("#009E73", "^"),
    "FBNN": ("#E7298A", (4, 1, 0)),
    "FVI": ("#E7298A", (4, 1, 0)),
    "Dropout": ("#E69F00", "v"),
    "Ensemble": ("#56B4E9", "<"),
    "Radial": ("#7F5217", "*"),
    "Rank": ("#B5A300", "d"),
    "SWAG": ("#6A3D9A", "X"),
    "Laplace": ("#8C6BB1", "P"),
    "HMC": ("#A50026", "h"),
    "VIP": ("#4D9221", "p"),
    "GWI": ("#2F6B3A", "H"),
    "DUQ": ("#17BECF", (6, 1, 0)),
    "VOGN": ("#9C755F", "8"),
    "GP": ("#7F7F7F", (3, 1, 0)),
    "MAP": ("#000000", "o"),
}
LINES: dict[str, str | tuple[int, tuple[int, ...]]] = {
    "MAP Ensemble": ":",
    "MFVI Ensemble": (3, (6, 1)),  # begins within a dash: in a legend the marker would cover the only gap
    "(radial) Ensemble": DASHES,
    "Dropout Ensemble": "-.",
    "Rank1 Ensemble": DASHES,
    "fVI": "--",
    "radial": ":",
    "tempered": "--",
    "Sparse": "--",
    "full": "--",
    "(temperature)": DASHES,
    "Kronecker": "-.",
    "last layer": ":",
    "Subnetwork": DASHES,
    "FSVI Ensemble": "--",
    "FuNN": "-.",
    "2021": ":",
    "KMNIST": "--",
    "pixel": ":",
}
FUNCTION_SPACE = ("FSVI", "fVI", "FuNN", "GP", "GWI")

SPARE: tuple[Marker, ...] = (*(marker for _, marker in METHODS.values()), (5, 0, 180), (8, 1, 0), (3, 0, 90), (7, 1, 0))
EVERY = 0.12  # share of a line's length from one marker to the next
_looks: dict[str, tuple[str | tuple[int, tuple[int, ...]], Marker, float]] = {}  # looks of the present figure's rows


def assign(labels: Iterable[str]) -> None:
    """Give each row of a figure a line and marker of its own, so that rows differ in black and white too.

    A row has its method's marker and line. Where rows would look the same, all but the first get another line, then
    another marker.
    """
    _looks.clear()
    own = {label: (_line(label), _method(label)[1]) for label in labels}
    first = {str(look): label for label, look in reversed(own.items())}
    taken = set(first)
    styles = list(dict.fromkeys(["-", *LINES.values()]))
    for place, (label, look) in enumerate(own.items()):
        if first[str(look)] != label:
            others = ((drawn, each) for each in (look[1], *SPARE) for drawn in styles)
            look = next((other for other in others if str(other) not in taken), look)
            taken.add(str(look))
        _looks[label] = *look, EVERY * (place % 7) / 7  # staggered, since markers may overlap


def colour(method: str) -> str:
    """Return the colour of a method, the same in every figure; grey for a method without one."""
    return _method(method)[0]


def _method(label: str) -> tuple[str, Marker]:
    alone = label.removesuffix(" Ensemble")  # an ensemble looks like its members
    found = (look for name in (alone, label) for word, look in METHODS.items() if word in name)
    return next(found, (GREY, SPARE[-1]))


def _line(method: str) -> str | tuple[int, tuple[int, ...]]:
    return next((value for word, value in LINES.items() if word in method), "-")


def line(method: str) -> dict[str, Any]:
    """Return colour, line style and marker of a method for matplotlib; the line is broken where the method changes
    another one."""
    drawn, marker, start = _looks.get(method, (_line(method), _method(method)[1], 0.0))
    look: dict[str, Any] = {"color": colour(method), "linestyle": drawn, "marker": marker}
    return look | {"markersize": 3.8, "markevery": (start, EVERY)}


def tint(method: str) -> tuple[float, ...]:
    """Return a method's colour mixed with white, on which a black edge is visible for every colour."""
    return tuple(1 - TINT * (1 - part) for part in to_rgb(colour(method)))


def outline(method: str) -> tuple[str, str, bool]:
    """Return colour and marker of a method for the site, and whether the marker is hollow, as where its line is broken.

    The marker is the path of an SVG element whose box is -6 to 6.
    """
    colour, marker = _method(method)
    drawn = MarkerStyle(marker)
    (shape,) = drawn.get_path().transformed(drawn.get_transform() + Affine2D().scale(8, -8)).to_polygons()
    corners = np.asarray(shape, float)[:-1]
    return to_hex(colour), "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners) + "Z", _line(method) != "-"


def in_function_space(method: str) -> bool:
    """Whether a method compares functions rather than weights; it decides the panel."""
    return any(word in method for word in FUNCTION_SPACE)
