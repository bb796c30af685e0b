"""Graphics in fewer bytes: what is drawn is where it was."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from reports.figures.style import save
from reports.page.slim import plain, relative, slim

NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)")


def corners(path: str) -> list[tuple[Decimal, ...]]:
    """The corners of a path in absolute numbers, relative lines followed."""
    found: list[tuple[Decimal, ...]] = []
    for kind, text in re.findall(r"([A-Za-z])([^A-Za-z]*)", path):
        numbers = [Decimal(number) for number in NUMBER.findall(text)]
        for pair in zip(numbers[::2], numbers[1::2]):
            found.append(tuple(a + b for a, b in zip(found[-1], pair)) if kind == "l" else pair)
    return found


def drawn(folder: Path) -> str:
    figure = Figure()
    axes = figure.subplots()
    random = np.random.RandomState(0)
    axes.plot(random.rand(50).cumsum(), random.rand(50))
    axes.scatter(random.rand(30), random.rand(30), c=random.randint(0, 2, 30), cmap="coolwarm")
    axes.fill_between(np.arange(20), random.rand(20), 2)
    axes.imshow(random.rand(5, 5), extent=(0, 5, 0, 1))
    axes.set_title("a < b & c")
    save(figure, [folder / "a.svg"])
    return (folder / "a.svg").read_text()


def unclassed(drawn: str) -> str:
    """A graphic with the styles of its classes where they are used."""
    rules = dict(re.findall(r"\.(\w+)\{([^}]*)\}", drawn))
    return re.sub(r' class="(\w+)"', lambda own: f' style="{rules[own[1]]}"', drawn)


def test_everything_is_where_it_was(tmp_path: Path) -> None:
    before = drawn(tmp_path)
    after = slim(before)
    assert len(after) < 0.8 * len(before) and slim(after) == after
    paths = [re.findall(r' d="([^"]*)"', text) for text in (before, after)]
    assert [corners(path) for path in paths[0]] == [corners(path) for path in paths[1]] and "l" in "".join(paths[1])
    marks = [re.findall(r'<use [^>]*x="([^"]*)" y="([^"]*)"', text) for text in (before, after)]
    assert marks[0] == marks[1] and len(marks[0]) >= 30
    assert " style=" not in after
    after = unclassed(after)
    for pattern in (r">([^<>]*\w[^<>]*)</text>", r"base64,([^\"]*)", r'<use [^>]*style="([^"]*)"'):
        found = re.findall(pattern, before.replace("\n", ""))
        assert all(text in after.replace("\n", "") for text in found), pattern
    names = set(re.findall(r' id="([^"]*)"', after))
    assert names == set(re.findall(r'(?:href="|url\()#([^")]+)', after)) and "metadata" not in after


def test_steps_are_exact() -> None:
    assert relative("M 0.1 0.2 \nL 0.3 0.1 \nL 0.3 -0.4 \nz\n") == "M0.1 0.2l.2-.1 0-.5 z"
    assert relative("M 1 2 C 1 2 3 4 5 6 L 7 8") == "M 1 2 C 1 2 3 4 5 6 L 7 8"
    assert [plain(Decimal(text)) for text in ("-0.50", "10.00", "0", "1E+2")] == ["-.5", "10", "0", "100"]
