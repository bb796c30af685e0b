"""One look for all figures: sizes, saving, colours of methods, safe for colour-blind readers (Okabe and Ito)."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NotRequired, TypedDict, TypeVar, cast

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # the backend has to be chosen first
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from reports.figures import points
from reports.figures.options import COLUMN, PAGE, Options

__all__ = ["COLUMN", "PAGE", "plt"]
T = TypeVar("T")
SCREEN = 110
DIGITS = re.compile(r"(\.\d\d)\d+")
UNDATED = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
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

FONT_SIZE = 8.0  # points; others are relative to it
LINES_ABOVE = 3  # of a title, for which figures have place
SIZES: dict[Any, float] = {  # names are literal types of matplotlib's, in some of its versions
    "font.size": 1.0,
    "axes.titlesize": 1.0,
    "axes.labelsize": 1.0,
    "figure.titlesize": 1.125,
    "legend.fontsize": 0.875,
    "xtick.labelsize": 0.875,
    "ytick.labelsize": 0.875,
}
plt.rcParams.update(
    {
        **{name: FONT_SIZE * share for name, share in SIZES.items()},
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
    markevery: NotRequired[float | tuple[float, float]]


MARKERS = ("", *"s^DvPX*<>hpd8+x1234")  # none: a plain line, whose published values are circles
EVERY = 0.12  # of the length of a line, from one marker to the next
_looks: dict[str, tuple[str | tuple[int, tuple[int, ...]], str, float]] = {}  # of the rows of the figure drawn now
_options = [Options()]
_panelled = [False]  # whether the figure drawn now has asked which of its panels to show


@contextmanager
def using(options: Options) -> Iterator[None]:
    """Draw with these choices."""
    changes: dict[Any, Any] = {}
    if options.font_size:
        changes |= {name: options.font_size * share for name, share in SIZES.items()}
    if options.font:
        generic = options.font if options.font in ("serif", "sans-serif", "monospace") else None
        changes |= {"font.family": [generic or options.font, *([] if generic else ["sans-serif"])]}
    _options.append(options)
    _panelled.append(False)
    try:
        with plt.rc_context(changes):
            yield
    finally:
        _options.pop()
        _panelled.pop()


def panels_of(named: Mapping[str, T]) -> dict[str, T]:
    """Of a figure's panels by name those that are asked for. Raises UnknownName for others."""
    _panelled[-1] = True
    return {name: named[name] for name in _options[-1].panels(list(named))}


def panelled() -> bool:
    """Whether the figure that is drawn now has panels to choose from."""
    return _panelled[-1]


def assign(labels: Iterable[str]) -> None:
    """Tell the rows of a figure apart: those whose lines are alike get markers, and where these are used up another
    line, so that no two of them look the same in black and white either."""
    _looks.clear()
    taken: set[tuple[str, str]] = set()
    styles = list(dict.fromkeys(["-", *LINES.values()]))
    for place, label in enumerate(dict.fromkeys(labels)):
        own = _line(label)
        free = (
            (drawn, marker)
            for drawn in (own, *(each for each in styles if each != own))
            for marker in MARKERS
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
    return Look(**look, marker=marker, markersize=3.0, markevery=(start, EVERY)) if marker else look


def in_function_space(method: str) -> bool:
    """Whether a method compares functions rather than weights; decides the panel it is drawn in."""
    return any(word in method for word in FUNCTION_SPACE)


def panels(count: int, columns: int, height: float, width: float = PAGE, **kwargs) -> tuple[Canvas, list[Axes]]:
    """A figure with that many panels in rows of at most `columns`, equally full ones; each is `height` inches high."""
    rows = math.ceil(count / columns)
    columns = math.ceil(count / rows)
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
    """Title, protocol and n over a figure, what it does not show under it, or over it where a legend is below; all of
    it in the caption. The last thing that is done to a figure: it gets the size that is asked for.

    Without a title a figure of another protocol than the paper's still says which, under it.
    """
    options, (own, height) = _options[-1], figure.get_size_inches()
    width = options.width or own
    figure.set_size_inches(width, options.height or height)
    for legend in figure.legends:
        legend.set_ncols(max(1, int(cast(Any, legend)._ncols * min(1.0, width / own))))
    absent = f"no records: {', '.join(missing)}" if missing else ""
    figure.set_label("\n".join(filter(None, (options.title or title, subtitle, absent))))
    points = plt.rcParams["font.size"]
    if options.title == "":
        found = re.search(r"protocol (\w+)", subtitle)
        protocol = "" if found is None or found[1] == "paper" else found[0]
        below = "; ".join(filter(None, (protocol, absent)))
    else:
        over = filter(None, (options.title or title, subtitle, absent if figure.legends else ""))
        shown = [line for words in over for line in textwrap.wrap(words, int(13 * width * FONT_SIZE / points))]
        figure.suptitle("\n".join(shown))
        if options.height is None and len(shown) > LINES_ABOVE:  # or panels of few rows would have no place left
            figure.set_size_inches(width, height + (len(shown) - LINES_ABOVE) * 1.25 * points / 72)
        below = "" if figure.legends else absent
    if below:
        figure.supxlabel(textwrap.fill(below, int(24 * width * FONT_SIZE / points)), fontsize=0.75 * points, color=GREY)


def caption(figure: Canvas) -> str:
    """What the head of a figure says, whether it is drawn or not."""
    return str(figure.get_label())


def save(figure: Canvas, files: Sequence[Path]) -> None:
    """Write a figure into every file, the same bytes for the same records, and close it."""
    for file in files:
        if file.suffix == ".csv":
            points.write(figure, file)
        elif file.suffix == ".txt":
            file.write_text(caption(figure) + "\n", encoding="utf-8")
        else:
            fine = SCREEN if file.suffix == ".svg" else None  # of what is drawn as an image inside
            figure.savefig(file, metadata=UNDATED.get(file.suffix, {}), dpi=fine or plt.rcParams["savefig.dpi"])
            if file.suffix == ".svg":  # hundredths of a point are finer than any screen or printer
                drawn = re.sub(r' (?:d|x|y)="[^"]*"', lambda path: DIGITS.sub(r"\1", path[0]), file.read_text("utf-8"))
                file.write_text(drawn, "utf-8")
    plt.close(figure)
