"""Tests of the options of figures, and of the messages about impossible ones."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.errors import UnknownName, UsageError
from benchmarks.metrics import SetInfo, evaluate
from benchmarks.records.predictions import ClassificationPredictions, RegressionPredictions
from benchmarks.records.provenance import ROOT
from reports.figures import (
    FIGURES,
    Figure,
    NothingToShow,
    collect,
    draw,
    looks,
    ood,
    own,
    settings,
    style,
    toys,
)
from reports.figures.kernels import estimates, gram, regularised_kl
from reports.figures.options import FORMS, Options, font, forms, size
from reports.figures.own import select
from reports.figures.parts import few, in_view, metric_mean, roc_in_logarithms
from reports.records import Records
from tests.reports.fakes import Cell, Column, FakeSuite, FakeTable, Row, fake_table

PAPERS = {"pequignot2020": 5, "rudner2021": 8, "rudner2022": 4, "dirichlet2022": 9, "cinquin2024": 20}


@pytest.fixture(autouse=True)
def default_looks(no_open_canvas: None) -> Iterator[None]:
    yield
    looks.assign(())


def table(
    name: str, dataset: str, labels: tuple[str, ...], metrics: tuple[tuple[str, str], ...] = (("", "training_seconds"),)
) -> FakeTable:
    columns = tuple(Column(Cell(dataset, *metric), f"{dataset} {metric[1]}") for metric in metrics)
    return fake_table(name, tuple(Row(label, None, label) for label in labels), columns, n_runs=2)


@pytest.fixture
def sure(write: Callable[..., Path], tmp_path: Path) -> tuple[FakeSuite, Records]:
    """A table "mine" of two classifiers that are nearly always right, and surer of it than of other images."""
    labels, random = np.arange(400) % 4, np.random.default_rng(0)
    sets = [SetInfo("test", "id"), SetInfo("ood-noise", "ood", "ood=noise")]
    for label, strength in (("MAP", 7.0), ("FSVI", 9.0)):
        logits = {s.name: random.normal(size=(2, 400, 4)) for s in sets}
        logits["test"][:, np.arange(400), labels] += strength
        logits["ood-noise"][..., 0] += 0.5
        given = {s.name: ClassificationPredictions(logits[s.name], labels if s.kind == "id" else None) for s in sets}
        rows, curves = evaluate("classification", "shapes", sets, given)
        values = {(r["condition"], r["metric"]): [r["value"], 0.99 * r["value"]] for r in rows}
        write(label, "shapes", values, curves=curves)
    mine = table("mine", "shapes", ("MAP", "FSVI", "GFSVI"), (("", "accuracy"), ("", "nll")))
    return FakeSuite(mine), Records(tmp_path / "results")


def test_sizes_formats_and_fonts_are_read_and_unknown_ones_named_with_the_nearest() -> None:
    assert size("column") == (3.4, None) and size("text") == (6.9, None) and size(None) == (None, None)
    assert size("5") == (5.0, None) and size("3.4x2.5") == (3.4, 2.5) and size("columnx2") == (3.4, 2.0)
    assert size("Column") == (3.4, None) and size("Text") == (6.9, None), "letters of either case"
    assert forms([]) == (".pdf", ".png") and forms(["svg", ".PDF", "svg"]) == (".svg", ".pdf")
    assert font("dejavu sans") == "DejaVu Sans" and font("serif") == "serif" and font(None) is None
    for read, wrong, message in (
        (size, "colum", "did you mean 'column'"),
        (size, "3x", "expected WIDTHxHEIGHT in inches"),
        (size, "900x2", "expected 0.5 to 60 inches, found '900x2'"),
        (lambda text: forms([text]), "pfd", "did you mean 'pdf'"),
        (font, "DejaVu Sens", "did you mean 'DejaVu Sans'"),
    ):
        with pytest.raises(UsageError, match=re.escape(message)):
            read(wrong)
    assert set(FORMS) == {"pdf", "png", "svg"}


def test_a_table_is_drawn_by_its_name_in_the_requested_size_and_rows(sure, tmp_path: Path) -> None:
    suite, records = sure
    names = [figure.name for figure in select(["mine"], suite, records)]
    assert names == ["mine-points", "mine-reliability", "mine-roc", "mine-confidence", "mine-entropy"]
    chosen = Options(width=3.4, height=2.0, title="", rows=("FSVI",), columns=("shapes nll",), font_size=6)
    (drawn,) = draw(select(["mine-points"], suite, records), suite, records, tmp_path, "paper", None,
                    (".svg", ".csv", ".txt"), chosen)  # fmt: skip
    svg, numbers, text = (file.read_text(encoding="utf-8") for file in drawn.files)
    assert re.search(r'width="244.8pt" height="144pt"', svg) and ">FSVI<" in svg and ">MAP<" not in svg
    assert "shapes nll" in svg and "accuracy" not in svg and "n = 2 runs" not in svg
    assert text.startswith("A table for tests\nprotocol paper, n = 2 runs")
    assert "shapes nll" in numbers
    before = drawn.files[0].stat().st_mtime_ns
    again = next(draw(select(["mine-points"], suite, records), suite, records, tmp_path, "paper", None, (".svg",)))
    assert again.files[0].stat().st_mtime_ns != before, "other choices draw it again"


def test_a_figure_is_drawn_once_and_as_the_catalogue_has_it(sure, monkeypatch: pytest.MonkeyPatch) -> None:
    suite, records = sure
    mine = Figure("mine-reliability", "Reliability by hand", "mine", "shapes", "digits:reliability")
    monkeypatch.setitem(FIGURES, mine.name, mine)
    found = select(["mine", "mine-points", "mine"], suite, records)
    assert [each.name for each in found] == [mine.name, "mine-points", "mine-roc", "mine-confidence", "mine-entropy"]
    assert found[0] is mine


def test_unknown_rows_columns_and_figures_are_named_with_the_nearest(sure, tmp_path: Path) -> None:
    suite, records = sure
    figures = select(["mine-points"], suite, records)

    def drawn(**choices) -> list:
        return list(draw(figures, suite, records, tmp_path, options=Options(**choices), forms=(".svg",)))

    with pytest.raises(UnknownName, match="unknown row 'FSVII': did you mean 'FSVI'"):
        drawn(rows=("FSVII",))
    with pytest.raises(UnknownName, match="unknown column 'shapes nlll': did you mean 'shapes nll'"):
        drawn(columns=("shapes nlll",))
    with pytest.raises(UnknownName, match="unknown figure 'mine-pionts': did you mean 'mine-points'"):
        select(["mine-pionts"], suite, records)
    with pytest.raises(UsageError, match="figure mine-reliability has no columns"):
        figures = select(["mine-reliability"], suite, records)
        drawn(columns=("ECE",))
    assert (
        "no records of GFSVI"
        in next(
            draw(select(["mine-roc"], suite, records), suite, records, tmp_path, options=Options(rows=("GFSVI",)))
        ).skipped
    )


def test_the_beginning_of_a_name_is_enough_where_no_other_begins_so() -> None:
    names = ["accuracy (%)", "log-likelihood (nats)", "log", "ECE", "ECE (10 bins)"]
    for name, found in (("accuracy", "accuracy (%)"), ("log", "log"), ("log-", names[1]), ("ECE", "ECE")):
        assert Options(columns=(name,)).panels(names) == [found]
    for name in ("E", "likelihood", ""):
        with pytest.raises(UnknownName):
            Options(columns=(name,)).panels(names)
    rows = (Row("FSVI (rudner2021)", None, "Old"), Row("MFVI", None, "MFVI"), Row("MFVI (radial)", None, "MFVI"))
    mine = fake_table("mine", rows, (), n_runs=1)
    for name, labels in (
        ("FSVI", ["FSVI (rudner2021)"]),
        ("Old", ["FSVI (rudner2021)"]),
        ("MFVI (", ["MFVI (radial)"]),
    ):
        assert [row.label for row in Options(rows=(name,)).rows_of(mine)] == labels
    assert [row.label for row in Options(rows=("MFVI",)).rows_of(mine)] == ["MFVI", "MFVI (radial)"], "by method"
    with pytest.raises(UnknownName):
        Options(rows=("MF",)).check_rows([mine])


def test_points_are_means_with_errors_of_every_column(sure) -> None:
    suite, records = sure
    (figure,) = select(["mine-points"], suite, records)
    canvas = own.points(collect(figure, suite.table("mine"), "paper", records))
    accuracy, _ = canvas.axes
    assert [text.get_text() for text in accuracy.get_yticklabels()] == ["MAP", "FSVI"]
    assert [container[0].get_xdata()[0] for container in accuracy.containers] == pytest.approx([1.005, 1.005], abs=0.01)
    bar = accuracy.containers[0][2][0].get_segments()[0]
    assert np.ptp(bar[:, 0]) == pytest.approx(2 * 0.005)  # two runs that are .01 apart
    assert accuracy.get_xlabel() == "accuracy\n(higher is better)"


def test_columns_of_several_metrics_under_one_label_all_have_points(sure) -> None:
    """Table uci has two such columns labelled "boston", with the error and the likelihood."""
    suite, records = sure
    mine = suite.table("mine")
    alike = dataclasses.replace(mine, columns=tuple(dataclasses.replace(each, label="shapes") for each in mine.columns))
    (figure,) = select(["mine-points"], FakeSuite(alike), records)
    with style.using(Options(columns=("shapes",))):
        canvas = own.points(collect(figure, alike, "paper", records))
    assert [axis.get_title() for axis in canvas.axes] == ["shapes, accuracy", "shapes, negative log-likelihood"]


def test_a_figure_of_another_protocol_says_so_without_a_title_too() -> None:
    for subtitle, below in (("protocol smoke, n = 1 runs", "protocol smoke"), ("protocol paper, n = 5 runs", "")):
        canvas = style.plt.figure()
        with style.using(Options(title="")):
            style.head(canvas, "Title", subtitle)
        assert (canvas.get_suptitle(), canvas.get_supxlabel()) == ("", below)
        assert style.caption(canvas) == f"Title\n{subtitle}"


def test_curves_in_the_corner_are_over_logarithms_and_thin_bins_are_hollow(sure) -> None:
    suite, records = sure
    roc, reliability = select(["mine-roc", "mine-reliability"], suite, records)
    canvas = ood.side_by_side(collect(roc, suite.table("mine"), "paper", records), "ROC")
    axis = canvas.axes[0]
    assert axis.get_xscale() == "log" and axis.get_xlim() == (0.01, 1.0) and axis.get_ylim()[0] > 0.5
    assert axis.get_xlabel() == "false positive rate (logarithmic)"
    assert "; out of distribution: noise" in style.caption(canvas)
    shown = collect(reliability, suite.table("mine"), "paper", records)
    canvas = ood.side_by_side(shown, "reliability")
    first = metric_mean(shown, "MAP", "ece")
    assert canvas.legends[0].get_texts()[0].get_text() == f"MAP  ECE {first:.3f}", "of the bins that are drawn"
    assert "; ECE of 15 bins" in style.caption(canvas)
    axis = canvas.axes[0]
    assert axis.get_xlim()[0] > 0.3
    assert "fewer than 10 in a bin" in {text.get_text() for text in canvas.legends[0].texts}
    linear = style.plt.figure().subplots()
    linear.axis((0.3, 1.0, 0.3, 1.0))
    assert in_view(linear, np.array([0.1, 0.5]), np.array([0.5, 0.3]))
    assert not in_view(linear, np.zeros(2), np.ones(2))
    fpr = np.linspace(0, 1, 101)
    roc_in_logarithms([linear], fpr, [fpr[None] ** 0.5])
    assert linear.get_xscale() == "linear"
    assert few(np.array([[9, 10, 0], [10, 10, 0]])).tolist() == [True, False, True]


def test_rows_that_share_a_line_beyond_all_markers_get_another_line() -> None:
    labels = [f"FSVI {i}" for i in range(60)]
    looks.assign(labels)
    seen = {(str(looks.line(label)["linestyle"]), looks.line(label)["marker"]) for label in labels}
    assert len(seen) == 60


def test_curves_have_axes_and_show_the_rows_of_their_figure(write: Callable[..., Path], tmp_path: Path) -> None:
    x = np.linspace(-2, 2, 9)[:, None]
    given = RegressionPredictions(np.random.default_rng(0).normal(size=(6, 9)), 0.1, None)
    curves = evaluate("regression", "snelson", [SetInfo("grid", "grid", "inputs=grid")], {"grid": given}, {"grid": x})
    for label in ("MFVI", "FSVI"):
        write(label, "snelson", {("", "training_seconds"): [1.0, 1.0]}, curves=curves[1])
    found = collect(FIGURES["rudner2022-figure-1-snelson"], table("toys", "snelson", ("MFVI", "FSVI")), "paper",
                    Records(tmp_path / "results"))  # fmt: skip
    (axis,) = [axis for axis in toys.samples(found).axes if axis.get_visible()]
    assert (axis.get_title(), axis.get_xlabel(), axis.get_ylabel()) == ("FSVI", "x", "f(x)")


def test_curves_share_limits_of_the_data_and_a_prior_standard_deviation() -> None:
    curve = {"mean": [0.0, 9.0], "std": [1.0, 4.0]}
    data = np.zeros((2, 1)), np.array([-1.0, 2.0])
    assert toys._limits("cinquin_1d", [curve], data) == (-2.0, 3.0)
    assert toys._limits("snelson", [curve], data) == pytest.approx((-1 - 10**0.5, 2 + 10**0.5))
    assert toys._limits("mine", [curve], None) == (-4.0, 13.0), "the median of the largest stands for the prior's"


def test_lengths_of_training_are_lines_in_order(write: Callable[..., Path], tmp_path: Path) -> None:
    labels = [f"{name}, {n} steps" for name in ("GFSVI", "TFSVI") for n in (1, 10, 100)]
    metric = ("part=validation", "expected_log_likelihood_standardised")
    for place, label in enumerate(labels):
        write(label, "boston", {metric: [-1.0 - place, -3.0 - place]})
    found = collect(FIGURES["cinquin2024-figure-15"], table("t", "boston", tuple(labels)), "paper",
                    Records(tmp_path / "results"))  # fmt: skip
    axis = settings.lengths(found).axes[0]
    first, second = axis.lines
    assert first.get_data()[0].tolist() == [1, 10, 100] and first.get_data()[1].tolist() == [-2, -3, -4]
    assert first.get_marker() != second.get_marker() and first.get_label() == "GFSVI"


def test_series_of_one_point_make_no_figure(write: Callable[..., Path], tmp_path: Path) -> None:
    labels = ("GFSVI, 1 steps", "GFSVI, 10 steps", "TFSVI, 10 steps")
    for label in labels[1:]:
        write(label, "boston", {("part=validation", "expected_log_likelihood_standardised"): [-1.0]})
    found = collect(FIGURES["cinquin2024-figure-15"], table("t", "boston", labels), "paper",
                    Records(tmp_path / "results"))  # fmt: skip
    with pytest.raises(NothingToShow, match="no row has records at two lengths of training"):
        settings.lengths(found)


def test_boxes_are_quantiles_over_inputs(write: Callable[..., Path], tmp_path: Path) -> None:
    values = [0.0, 1.0, 2.0, 3.0, 9.0]
    curves = {"test/epistemic_entropy": {"quantile": [0.05, 0.25, 0.5, 0.75, 0.95], "value": values}}
    curves |= {name.replace("test", part): curve for part in ("train", "ood-uniform") for name, curve in curves.items()}
    write("HMC", "concrete", {("", "training_seconds"): [1.0]}, curves=curves)
    found = collect(FIGURES["pequignot2020-figure-2"], table("t", "concrete", ("HMC",)), "paper",
                    Records(tmp_path / "results"))  # fmt: skip
    axis = ood.distributions(found).axes[0]
    assert len(axis.patches) == 3 and (axis.patches[0].get_y(), axis.patches[0].get_height()) == (1.0, 2.0)
    assert [list(drawn.get_ydata()) for drawn in axis.lines[:2]] == [[0.0, 9.0], [2.0]]


def test_the_regularised_divergence_is_that_of_the_objective() -> None:
    import torch

    from fvi_core.gaussian import regularised_gaussian_kl

    random = np.random.default_rng(0)
    x = random.normal(size=(6, 2))
    covariances = [gram(kernel, x, x, 0.7) for kernel in ("RBF", "Matern 1/2")]
    mean = random.normal(size=6)
    ours = regularised_kl(mean, covariances[0], np.zeros(6), covariances[1], 1e-3)
    given = [torch.tensor(each)[None, None] for each in (mean, covariances[0], np.zeros(6), covariances[1])]
    assert ours == pytest.approx(regularised_gaussian_kl(*given, 1e-3).item(), rel=1e-8)
    ((few_points, more),) = estimates("Matern 1/2", [1e-10], (5, 50), 0)
    assert 0 < few_points < more


def test_every_figure_of_the_papers_is_in_the_list_and_every_figure_of_the_list_exists() -> None:
    text = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    listed = {
        (paper, int(number)): (re.findall(r"`([^`]+)`", names), why)
        for paper, number, names, why in rows
        if number.isdigit()
    }
    assert set(listed) == {(paper, n) for paper, count in PAPERS.items() for n in range(1, count + 1)}
    for (paper, number), (names, why) in listed.items():
        assert names or why, f"{paper} figure {number} is neither drawn nor explained"
        assert all(name in FIGURES for name in names)
        own_figures = {each.name for each in FIGURES.values() if (each.paper, each.number) == (paper, str(number))}
        assert own_figures <= set(names)


def test_a_computed_figure_needs_no_table() -> None:
    assert {figure.name for figure in FIGURES.values() if not figure.table} == {
        "cinquin2024-figure-17",
        "cinquin2024-figure-20",
    }
    assert isinstance(FIGURES["cinquin2024-figure-17"], Figure)


def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    """An underscore would leave a row out of the legend, and dollars would make mathematics of what is between them."""
    names = ["_private", "cost $5 or $6", "$x_{$"]
    with style.using(Options()):
        figure, axes = style.panels(2, 2, 2.0)
        for k, name in enumerate(names):
            axes[0].plot([1, 2], [10.0**-k, 1], label=name)
        axes[0].errorbar([1], [2], 0.1)
        axes[0].set(title=names[1], xscale="log", yscale="log", ylim=(1e-3, 10))
        axes[1].set(yticks=range(3))
        axes[1].set_yticklabels(names)
        style.legend(figure, style.labelled(axes[0]))
        style.head(figure, "costs $1 to $2", "protocol paper")
        assert [text.get_text() for text in figure.legends[0].texts] == names
        style.save(figure, [tmp_path / "a.svg", tmp_path / "a.csv", tmp_path / "a.txt"])
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", (tmp_path / "a.svg").read_text())
    assert drawn.count("_private") == 2 and drawn.count("cost $5 or $6") == 3 and drawn.count("$x_{$") == 2, drawn
    assert {"10⁻³", "10⁰", "10¹", "costs $1 to $2"} <= set(drawn)
    assert {"_private", *names[1:]} <= set(
        (tmp_path / "a.csv").read_text().replace('"', "").replace("\n", ",").split(",")
    )
    assert (tmp_path / "a.txt").read_text() == "costs $1 to $2\nprotocol paper\n"
