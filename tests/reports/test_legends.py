"""Tests that legends lie inside figures of any size and labels, and that nothing is printed on them."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure as Canvas
from matplotlib.legend import Legend

from benchmarks.records.provenance import ROOT
from benchmarks.suite import Suite
from reports.figures import draw, style
from reports.figures.looks import METHODS, outline
from reports.figures.options import COLUMN, Options
from reports.figures.own import select
from reports.records import Records

NAMES = (
    "rudner2021-figure-2-fashion_mnist",
    "dirichlet2022-figure-8",
    "retina-mnist-accuracy",
    "digits-roc",
    "cinquin2024-figure-7",
)


pytestmark = pytest.mark.usefixtures("no_open_canvas")


def cut(figure: Canvas) -> list[str]:
    """Return the legends, titles and axis labels that are not wholly inside a figure."""
    figure.canvas.draw()
    shown = [axis for axis in figure.axes if axis.get_visible()]
    texts = [text for axis in shown for text in (axis.title, axis.xaxis.label, axis.yaxis.label) if text.get_text()]
    whole, found = figure.bbox.padded(1), []
    for each in (*figure.findobj(Legend), *texts):
        box = each.get_window_extent()
        if not (whole.contains(box.x0, box.y0) and whole.contains(box.x1, box.y1)):
            found.append(f"{each}: {box.extents.round()} of {whole.extents}")
    return found


@pytest.mark.parametrize("options", [Options(), Options(width=COLUMN, title="")], ids=["own size", "column"])
def test_legends_of_figures_lie_inside_them(options: Options, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    suite, records, found = Suite(), Records(ROOT / "results"), {}
    monkeypatch.setattr(style, "save", lambda figure, files: found.update({files[0].stem: cut(figure)}))
    figures = select(NAMES, suite, records)
    drawn = list(draw(figures, suite, records, tmp_path, forms=(".png",), options=options))
    assert [each.skipped for each in drawn] == [""] * len(NAMES) and len(found) == len(NAMES)
    assert not any(found.values()), found


@pytest.mark.parametrize("count", [1, 5, 14])
@pytest.mark.parametrize(
    "long", ["MAP", "FSVI Ensemble (monochrome)  ECE 0.119, AUROC 0.916", "a row named at length " * 6]
)
def test_legends_have_the_columns_that_there_is_place_for(count: int, long: str) -> None:
    figure, axis = style.plt.subplots(figsize=(COLUMN, 3.0))
    style.legend(figure, {f"{long} {place}": axis.plot([0, 1], [0, 1])[0] for place in range(count)})
    with style.using(Options(title="")):
        style.head(
            figure, "Title", "protocol short, n = 1 run", [f"row {place}, of its own settings" for place in range(9)]
        )
    assert cut(figure) == []
    assert axis.get_window_extent().height > 90, "the figure grows with what stands under its panels"
    assert figure.get_supxlabel().replace("\n", " ").startswith("protocol short no records: row 0")
    figure.canvas.draw()
    lowest, under = figure.legends[0].get_window_extent(), figure._supxlabel.get_window_extent()
    assert under.y0 >= 0 and under.y1 < lowest.y0 and lowest.y1 < axis.get_tightbbox().y0


def test_a_figure_without_labels_has_no_legend() -> None:
    figure, _ = style.plt.subplots()
    style.legend(figure, {})
    style.head(figure, "Title", "protocol short, n = 1 run", ["MAP"])
    assert not figure.legends and figure.get_supxlabel() == "protocol short, n = 1 run\nno records: MAP"


def test_the_site_has_the_markers_of_the_figures() -> None:
    found = {outline(method) for method in METHODS}
    assert len(found) == len({marker for _, marker in METHODS.values()})
    assert outline("MFVI") == ("#009e73", "M0.0 -4.0L-4.0 4.0L4.0 4.0Z", False), "a triangle that points up"
    assert outline("MAP fVI") == (*outline("MAP")[:2], True)


def test_titles_in_several_lines_have_lines_of_like_length() -> None:
    figure = style.plt.figure()
    words = "TFSVI, initial network, variance 1"
    assert style.wrapped(figure, words, 8, 1.75)[-1] == "1"
    lines = style.balanced(figure, words, 8, 1.75)
    assert len(lines) == 2 and " ".join(lines) == words and len(lines[1]) > 5


def test_saving_leaves_the_legend_its_place(tmp_path: Path) -> None:
    figure, axes = style.panels(3, 3, 2.0)
    style.legend(figure, {f"line {i}": axis.plot([0, i])[0] for i, axis in enumerate(axes)})
    style.head(figure, "Title", "protocol short, n = 1")
    style.save(figure, [tmp_path / "a.pdf", tmp_path / "b.png"])
    above = figure.legends[0].get_window_extent().transformed(figure.transFigure.inverted()).y1
    assert all(axis.get_position().y0 > above for axis in axes)
