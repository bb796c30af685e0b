"""Histograms of p-values on the start page, and the sentence about chance beside them."""

from __future__ import annotations

import re

import numpy as np

from benchmarks.suite import Suite
from reports.agreement import LEVEL, chance
from reports.page.book import TESTED, Book
from reports.page.pvalues import BINS, HEIGHT, histogram
from reports.records import Records


def heights(picture: str) -> list[float]:
    return [float(each) for each in re.findall(r'height="([\d.]+)"', picture)]


def test_bars_are_counts_and_the_line_is_their_mean() -> None:
    picture = histogram([0.0, 0.01, 0.049, 0.05, 0.5, 1.0], "words")
    assert heights(picture) == [
        HEIGHT,
        *(round(HEIGHT / 3, 1) if i in (1, 10, BINS - 1) else 0 for i in range(1, BINS)),
    ]
    assert f'd="M0 {HEIGHT - HEIGHT / 3 * 6 / BINS:.1f}H' in picture and 'aria-label="P-values: words"' in picture
    assert re.findall(r'class="(\w+)"', picture) == ["below"] + ["above"] * (BINS - 1)


def test_equal_numbers_fill_every_bin_up_to_the_line() -> None:
    found = heights(histogram(list((np.arange(2_000) + 0.5) / 2_000), ""))
    assert found == [HEIGHT] * BINS


def test_the_words_by_hand() -> None:
    assert chance(13, 208) == "13 of 208 tested cells differ, about 10 would by chance"


def test_every_cell_with_a_test_has_its_p_value_on_the_side_of_its_verdict() -> None:
    squares = [square for picture in Book(Suite(), Records("results")).pictures for square in picture.squares]
    assert all((square.p is not None) == (square.status in TESTED) for square in squares)
    decided = [square for square in squares if square.p is not None]
    assert decided and all((each.p < LEVEL) == (each.status in ("differs", "shown")) for each in decided)
