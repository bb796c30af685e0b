"""Colours, lines and markers of methods, the same in every figure: safe for colour-blind readers (Okabe and Ito), and
told apart in black and white."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NotRequired, TypedDict

DASHES = (0, (1, 1, 4, 1))
GREY, GREEN, RED = "0.45", "#009E73", "#B2182B"
# The first word that a method's name contains decides its colour; what it is combined with decides the line.
COLOURS = {
    "GFSVI": "#CC79A7",
    "FSVI": "#D55E00",
    "HyVI": "#0072B2",
    "MFVI": "#009E73",
    "Dropout": "#E69F00",
    "Ensemble": "#56B4E9",
    "Radial": "#7F5217",
    "Rank": "#B5A300",
    "SWAG": "#6A3D9A",
    "Laplace": "#8C6BB1",
    "HMC": "#A50026",
    "VIP": "#4D9221",
    "FBNN": "#E7298A",
    "GWI": "#2F6B3A",
    "DUQ": "#17BECF",
    "VOGN": "#9C755F",
    "GP": "#7F7F7F",
    "MAP": "#000000",
}
LINES: dict[str, str | tuple[int, tuple[int, ...]]] = {
    "MAP Ensemble": ":",
    "MFVI Ensemble": (0, (6, 1)),
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

MARKERS = ("", *"s^DvP*X<>dh+x1234p8")  # none: a plain line, whose published values are circles
EVERY = 0.12  # of the length of a line, from one marker to the next
_looks: dict[str, tuple[str | tuple[int, tuple[int, ...]], str, float]] = {}  # of the rows of the figure drawn now


class Look(TypedDict):
    """How a method's line is drawn, as matplotlib names it."""

    color: str
    linestyle: str | tuple[int, tuple[int, ...]]
    marker: NotRequired[str]
    markersize: NotRequired[float]
    markevery: NotRequired[float | tuple[float, float]]


def assign(labels: Iterable[str]) -> None:
    """Tell the rows of a figure apart: each gets a marker that no other has, where these are used up one that no other
    of its line has, and then another line, so that no two of them look the same in black and white either."""
    _looks.clear()
    taken: set[tuple[str, str]] = set()
    styles = list(dict.fromkeys(["-", *LINES.values()]))
    for place, label in enumerate(dict.fromkeys(labels)):
        own = _line(label)
        used = {marker for _, marker in taken}
        free = (
            (drawn, marker)
            for drawn in (own, *(each for each in styles if each != own))
            for marker in (*(each for each in MARKERS if each not in used), *MARKERS)
            if (str(drawn), marker) not in taken
        )
        drawn, marker = next(free, (own, MARKERS[-1]))
        _looks[label] = drawn, marker, EVERY * (place % 7) / 7  # markers of two lines do not cover each other
        taken.add((str(drawn), marker))


def colour(method: str) -> str:
    """The colour of a method, the same in every figure; grey for one that has none of its own."""
    alone = method.removesuffix(" Ensemble")  # an ensemble has the colour of its members
    found = (value for name in (alone, method) for word, value in COLOURS.items() if word in name)
    return next(found, GREY)


def _line(method: str) -> str | tuple[int, tuple[int, ...]]:
    return next((value for word, value in LINES.items() if word in method), "-")


def line(method: str) -> Look:
    """Colour, line style and marker of a method: broken where its name says that it changes another one."""
    drawn, marker, start = _looks.get(method, (_line(method), "", 0.0))
    look = Look(color=colour(method), linestyle=drawn)
    return Look(**look, marker=marker, markersize=3.4, markevery=(start, EVERY)) if marker else look


def in_function_space(method: str) -> bool:
    """Whether a method compares functions rather than weights; decides the panel it is drawn in."""
    return any(word in method for word in FUNCTION_SPACE)
