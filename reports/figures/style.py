"""One look for all figures: sizes, saving, colours of methods, safe for colour-blind readers (Okabe and Ito)."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # the backend has to be chosen first
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from reports.figures import points

SCREEN = 110
DIGITS = re.compile(r"(\.\d\d)\d+")
UNDATED = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
PAGE, COLUMN = 6.9, 3.4  # inches: text width and column width of a two-column page
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

plt.rcParams.update(
    {
        "font.size": 8,
        "axes.titlesize": 8,
        "axes.labelsize": 8,
        "figure.titlesize": 9,
        "legend.fontsize": 7,
        "xtick.labelsize": 7,
        "ytick.labelsize": 7,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.6,
        "lines.linewidth": 1.2,
        "legend.frameon": False,
        "figure.constrained_layout.use": True,
        "pdf.fonttype": 42,
        "svg.fonttype": "none",  # text stays text: small files, and it can be searched
        "svg.hashsalt": "fvi-bench",
        "savefig.dpi": 200,
    }
)


class Look(TypedDict):
    """How a method's line is drawn, as matplotlib names it."""

    color: str
    linestyle: str | tuple[int, tuple[int, ...]]
    marker: NotRequired[str]
    markersize: NotRequired[float]
    markevery: NotRequired[float]


MARKERS = ("", *"s^DvPX*<>hpd8+x1234")  # circles are published values
_markers: dict[str, str] = {}  # of the rows of the figure that is drawn now


def assign(labels: Iterable[str]) -> None:
    """Tell the rows of a figure apart: those whose lines are alike get markers, so that no two of them look the same
    in black and white either."""
    _markers.clear()
    taken: set[tuple[str, str]] = set()
    for label in dict.fromkeys(labels):
        drawn = str(line(label)["linestyle"])
        _markers[label] = next((marker for marker in MARKERS if (drawn, marker) not in taken), MARKERS[-1])
        taken.add((drawn, _markers[label]))


def colour(method: str) -> str:
    """The colour of a method, the same in every figure; grey for one that has none of its own."""
    return next((value for word, value in COLOURS.items() if word in method), GREY)


def line(method: str) -> Look:
    """Colour, line style and marker of a method: broken where its name says that it changes another one."""
    look = Look(color=colour(method), linestyle=next((v for word, v in LINES.items() if word in method), "-"))
    marker = _markers.get(method)
    return Look(**look, marker=marker, markersize=3.0, markevery=0.12) if marker else look


def in_function_space(method: str) -> bool:
    """Whether a method compares functions rather than weights; decides the panel it is drawn in."""
    return any(word in method for word in FUNCTION_SPACE)


def panels(count: int, columns: int, height: float, width: float = PAGE, **kwargs) -> tuple[Canvas, list[Axes]]:
    """A figure with that many panels in rows of at most `columns`; each row is `height` inches high."""
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(width * columns / max(columns, 2), height * rows + 0.5), squeeze=False, **kwargs
    )
    flat = list(axes.flat)
    for unused in flat[count:]:
        unused.set_visible(False)
    for index, axis in enumerate(flat[:count]):  # a panel above an empty place shows the shared axis itself
        if index + columns >= count:
            axis.tick_params(labelbottom=True)
    return figure, flat[:count]


def head(figure: Canvas, title: str, subtitle: str, missing: Sequence[str] = ()) -> None:
    """Title, protocol and n over a figure, what it does not show under it, or over it where a legend is below."""
    width = figure.get_size_inches()[0]
    absent = f"no records: {', '.join(missing)}" if missing else ""
    over = filter(None, (title, subtitle, absent if figure.legends else ""))
    figure.suptitle("\n".join(line for words in over for line in textwrap.wrap(words, int(15 * width))))
    if absent and not figure.legends:
        figure.supxlabel(textwrap.fill(absent, int(24 * width)), fontsize=6, color=GREY)


def save(figure: Canvas, files: Sequence[Path]) -> None:
    """Write a figure into every file, the same bytes for the same records, and close it."""
    for file in files:
        if file.suffix == ".csv":
            points.write(figure, file)
        else:
            fine = SCREEN if file.suffix == ".svg" else None  # of what is drawn as an image inside
            figure.savefig(file, metadata=UNDATED.get(file.suffix, {}), dpi=fine or plt.rcParams["savefig.dpi"])
            if file.suffix == ".svg":  # hundredths of a point are finer than any screen or printer
                drawn = re.sub(r' (?:d|x|y)="[^"]*"', lambda path: DIGITS.sub(r"\1", path[0]), file.read_text("utf-8"))
                file.write_text(drawn, "utf-8")
    plt.close(figure)
