"""Style of all figures: sizes, panels, titles, legends, saving."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # the backend has to be chosen first
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import get_registered_canvas_class
from matplotlib.collections import Collection
from matplotlib.container import Container
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine, LayoutEngine
from matplotlib.legend import Legend
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogFormatter

from benchmarks import files
from reports.figures import points
from reports.figures.looks import GREY
from reports.figures.options import COLUMN, PAGE, Options

__all__ = ["COLUMN", "PAGE", "plt"]
T = TypeVar("T")
SCREEN = 110
DIGITS = re.compile(rb"(?<=\.\d\d)\d+")
UNDATED = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
FONT_SIZE = 8.0  # points; others are relative to it
UNDER = 0.75  # relative size of the letters under a figure
LINES_ABOVE, LINES_BELOW = 1, 3  # lines of a title and of a legend that figures have place for
NARROWEST = 1.6  # narrowest panel with its labels, in inches
BESIDE = 0.55  # inches for the labels of an axis and its ticks
COLUMNS = 6  # most columns of a legend
RAISED = str.maketrans("-−.0123456789", "⁻⁻·⁰¹²³⁴⁵⁶⁷⁸⁹")
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
        "axes.titley": 1.0,  # else matplotlib measures all ticks in search of some above the panel
        "lines.linewidth": 1.2,
        "legend.frameon": False,
        "figure.constrained_layout.use": True,
        "pdf.fonttype": 42,
        "svg.fonttype": "none",  # text stays text: small files, and it can be searched
        "svg.hashsalt": "fvi-bench",
        "savefig.dpi": 200,
        "text.hinting": "none",  # else letters are wider or narrower by resolution, and broken lines too long in some
    }
)


_options = [Options()]
_panelled = [False]  # whether the present figure has offered its panels for selection


@contextmanager
def using(options: Options) -> Iterator[None]:
    """Draw with these options in the block."""
    changes: dict[Any, Any] = {"text.parse_math": False}  # a name may be "cost $5 or $6"
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
    """Return the chosen panels of a figure, by name. Raises UnknownName for others."""
    _panelled[-1] = True
    return {name: named[name] for name in _options[-1].panels(list(named))}


def panelled() -> bool:
    """Whether the present figure has panels to choose from."""
    return _panelled[-1]


def page() -> float:
    """Return the width in inches of a figure as wide as the text: as chosen, else a page's."""
    return _options[-1].width or PAGE


def panels(count: int, columns: int, height: float, **kwargs) -> tuple[Canvas, list[Axes]]:
    """Return a figure with that many panels in rows of at most `columns`, fewer where its width requires it, evenly
    filled; each is `height` inches high."""
    width = page()
    rows = math.ceil(count / min(columns, max(1, int(width / NARROWEST))))
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


def width_of(figure: Any) -> float:
    """Return the final width of a figure in inches."""
    return _options[-1].width or figure.get_size_inches()[0]


def labelled(axis: Axes) -> dict[str, Any]:
    """Return the legend entries of a panel, including names with a leading underscore, which matplotlib omits."""
    drawn = (*axis.get_children(), *axis.containers)
    handles = (each for each in drawn if isinstance(each, Line2D | Patch | Collection | Container))
    return {name: each for each in handles if (name := points.label_of(each))}


def legend(figure: Canvas, handles: Mapping[str, Any]) -> None:
    """Draw one legend for all panels, under them and as wide as the figure, whose height grows with it."""
    own, height = figure.get_size_inches()

    def make(columns: int, names: Sequence[str]) -> Legend:
        drawn = {tuple: HandlerTuple(None, 0.4)}
        every = list(handles.values())
        return figure.legend(every, names, loc="outside lower center", ncols=columns, handler_map=drawn)

    lines = fitted(make, list(handles), width_of(figure) - 0.15)
    figure.set_size_inches(own, height + _taller(lines - LINES_BELOW, SIZES["legend.fontsize"]))


def fitted(make: Callable[[int, Sequence[str]], Legend], labels: Sequence[str], inches: float) -> int:
    """Make a legend of as many columns as fit into so many inches, evenly filled, with labels in several lines where a
    single column is too wide; return its number of lines. Without labels there is none."""
    if not labels:
        return 0
    pixels = inches * plt.rcParams["figure.dpi"]
    for rows in range(math.ceil(len(labels) / COLUMNS), len(labels) + 1):
        legend = make(math.ceil(len(labels) / rows), labels)
        width, widest = _width(legend), max(map(_width, legend.texts))
        if width <= pixels:
            return rows
        legend.remove()
    letters = max(map(len, labels)) * (pixels - width + widest) / widest
    names = [textwrap.fill(label, max(1, int(letters))) for label in labels]
    make(1, names)
    return sum(name.count("\n") + 1 for name in names)


def _width(drawn: Artist) -> float:
    return drawn.get_window_extent().width


def wrapped(figure: Canvas, words: str, points: float, inches: float) -> list[str]:
    """Break words into lines no wider than so many inches in letters of this size."""
    whole = " ".join(filter(None, words.split(" ")))
    text, lines = figure.text(0, 0, whole, fontsize=points), [""]
    if text.get_window_extent().width <= inches * figure.dpi:  # most do: word by word takes far longer
        text.remove()
        return [whole]
    for word in words.split(" "):
        text.set_text(f"{lines[-1]} {word}".strip())
        if text.get_window_extent().width > inches * figure.dpi and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = text.get_text()
    text.remove()
    return lines


def balanced(figure: Canvas, words: str, points: float, inches: float) -> list[str]:
    """Break words as `wrapped`, into lines of about the same length."""
    lines = wrapped(figure, words, points, inches)
    for share in () if len(lines) == 1 else (0.9, 0.8, 0.7, 0.6):
        closer = wrapped(figure, words, points, share * inches)
        if len(closer) > len(lines):
            break
        lines = closer
    return lines


def _fold(figure: Canvas, width: float) -> None:
    """Break titles and axis labels that are wider than their panels."""
    for axis in figure.axes:
        place = axis.get_subplotspec()
        if place is None or axis.get_figure(root=False) is not figure:
            continue
        inches = width / place.get_gridspec().ncols - BESIDE
        for text in (axis.title, axis.xaxis.label):
            lines = (balanced(figure, line, float(text.get_fontsize()), inches) for line in text.get_text().split("\n"))
            text.set_text("\n".join(line for folded in lines for line in folded))


def _taller(lines: int, size: float) -> float:
    """Return the height in inches of so many more lines."""
    return max(0, lines) * 1.4 * size * plt.rcParams["font.size"] / 72


def head(figure: Canvas, title: str, about: str, missing: Sequence[str] = ()) -> None:
    """Put the title over a figure, and protocol, n and the rows without records in small letters under it.

    Call it last: it gives the figure the size of the options. The whole text is the caption. A figure without a title
    still names its protocol, except protocol paper.
    """
    options, width, height = _options[-1], width_of(figure), figure.get_size_inches()[1]
    for ticks in (ticks for axis in figure.axes for ticks in (axis.xaxis, axis.yaxis)):
        formatter = ticks.get_major_formatter()
        if isinstance(formatter, LogFormatter):
            ticks.set_major_formatter(FuncFormatter(lambda x, at, formatter=formatter: _power(formatter(x, at))))
    absent = f"no records: {'; '.join(missing)}" if missing else ""
    figure.set_label("\n".join(filter(None, (options.title or title, about, absent))))
    points, under = plt.rcParams["font.size"], [about, absent]
    if options.title == "":
        found = re.search(r"protocol (\w+)", about)
        under[0] = "" if found is None or found[1] == "paper" else found[0]
    else:
        shown = wrapped(figure, options.title or title, points * SIZES["figure.titlesize"], width - 0.1)
        figure.suptitle("\n".join(shown))
        height += _taller(len(shown) - LINES_ABOVE, SIZES["figure.titlesize"])
    _fold(figure, width)
    lines = [line for words in filter(None, under) for line in wrapped(figure, words, UNDER * points, width - 0.15)]
    if options.height is None:
        height += _taller(len(lines), UNDER)
    else:
        height = options.height
    figure.set_size_inches(width, height)
    inches = _taller(len(lines), UNDER) + 0.05 if lines else 0.0
    figure.supxlabel("\n".join(lines), y=0.03 / height, va="bottom", fontsize=UNDER * points, color=GREY)
    for each in figure.legends:  # above these lines; the layout of the panels ends above both
        each.set_bbox_to_anchor((0, inches / height, 1, 1), transform=figure.transFigure)
        inches += each.get_window_extent().height / figure.dpi + 0.07
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(rect=(0, inches / height, 1, 1 - inches / height))


def _power(tick: str) -> str:
    """Return a tick in plain characters that matplotlib writes as mathematics."""
    found = re.sub(r"\^\{([^}]*)\}", lambda power: power[1].translate(RAISED), tick)
    return re.sub(r"\$|\\mathdefault|[{}]", "", found).replace(r"\times", "×")


def caption(figure: Canvas) -> str:
    """Return the text of the figure's head, drawn or not."""
    return str(figure.get_label())


def save(figure: Canvas, files: Sequence[Path]) -> None:
    """Write a figure to every file, the same bytes for the same records, and close it."""
    engine = figure.get_layout_engine()
    assert engine is not None
    for ticks in (ticks for axis in figure.axes for ticks in (axis.xaxis, axis.yaxis)):
        if not ticks.get_label_text():
            ticks.set_label_coords(0, 0)  # else matplotlib measures all ticks to place a label that is empty
        side = {"x": "bottom", "y": "left"}[ticks.axis_name]
        if ticks.get_tick_params().get(f"label{side}", True):
            ticks.axes.spines[side].set_in_layout(False)  # the labels reach further, and ticks are measured once
    with plt.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)  # matplotlib would lay it out once more, without the place of the legend
        for file in files:
            _write(figure, file, engine)
    plt.close(figure)


def _write(figure: Canvas, file: Path, engine: LayoutEngine) -> None:
    if file.suffix in (".csv", ".xz"):
        points.write(figure, file)
    elif file.suffix == ".txt":
        files.write(file, caption(figure) + "\n")
    else:
        form, drawn = file.suffix[1:], io.BytesIO()  # in memory first: some formats fail oddly on a full disk
        dpi = SCREEN if form == "svg" else plt.rcParams["savefig.dpi"]  # resolution of images inside the file
        figure.dpi = get_registered_canvas_class(form)(figure).fixed_dpi or dpi
        engine.execute(figure)
        figure.savefig(drawn, format=form, metadata=UNDATED.get(file.suffix, {}), dpi=dpi)
        data = drawn.getvalue()
        if form == "svg":  # hundredths of a point are finer than any screen or printer
            data = re.sub(rb' (?:d|x|y)="[^"]*"', lambda path: DIGITS.sub(b"", path[0]), data)
        with files.replacing(file) as whole:
            whole.write(data)
