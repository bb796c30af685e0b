"""The numbers of a figure as CSV: every kind of mark, the same as was drawn."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from reports.figures.parts import band, marks, plane
from reports.figures.points import named
from reports.figures.style import plt, save


def test_every_mark_is_written(tmp_path: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2)
    left.set_title("a, b")
    left.plot([0, 1], [2.0, np.nan], label="line")
    left.stairs([3, 4], [0, 1, 2], label="steps")
    left.fill_between([0, 1], [0, 0], [5, 5], label="band")
    left.bar([1], [6], label="bars")
    named("a row", *left.errorbar([8], [9], [1]).get_children())
    band(left, "MAP", np.array([3.0]), np.array([[5.0], [7.0]]), "MAP  0.9")
    marks(left, "MAP", [3], [4])
    image = plane(right, np.arange(2), np.arange(2), np.array([[1, 2], [3, 0.123456]]), "viridis", (0, 3))
    right.scatter([7], [8], label="cloud")
    figure.colorbar(image)
    save(figure, [tmp_path / "a.csv", tmp_path / "a.svg"])
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    written = {(row["panel"], row["kind"], row["label"], row["x"], row["y"], row["value"]) for row in rows}
    assert {row["title"] for row in rows} == {"a, b", ""} and {row["panel"] for row in rows} == {"1", "2"}
    assert {("1", "line", "line", "0", "2", ""), ("1", "line", "line", "1", "nan", "")} <= written
    assert {("1", "step", "steps", "0.5", "3", ""), ("1", "step", "steps", "1.5", "4", "")} <= written
    assert ("1", "bar", "", "1", "6", "") in written and ("2", "point", "cloud", "7", "8", "") in written
    assert {row["y"] for row in rows if row["kind"] == "outline" and row["label"] == "band"} == {"0", "5"}
    assert ("1", "line", "a row", "8", "9", "") in written
    assert {("1", "outline", "a row", "8", y, "") for y in ("8", "10")} <= written
    assert {("1", "line", "MAP, published", "3", "4", ""), ("1", "outline", "MAP", "3", "7", "")} <= written
    assert {("2", "image", "", "1", "0", "2"), ("2", "image", "", "1", "1", "0.12")} <= written
    assert "<svg" in (tmp_path / "a.svg").read_text()


def test_what_colours_cannot_tell_is_not_written(tmp_path: Path) -> None:
    figure, (wide, narrow) = plt.subplots(1, 2)
    wide.imshow([[0.000053, 1], [0.1234, -0.0001]], vmin=0, vmax=1)
    narrow.imshow([[0.000053, 0.00008]], vmin=0, vmax=0.0001)
    save(figure, [tmp_path / "a.csv"])
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        shown = [(row["kind"], row["value"]) for row in csv.DictReader(file)]
    assert shown == [("image", value) for value in ("0", "1", "0.12", "0", "5.3e-05", "8e-05")]
