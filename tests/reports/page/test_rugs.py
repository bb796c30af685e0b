"""Rug plots of claims: a tick for every comparison, at its effect in standard errors, in the colour of its outcome."""

from __future__ import annotations

import math
import re

import pytest

from benchmarks.suite import Suite
from reports.findings.comparisons import AGAINST, FOR, OPEN
from reports.findings.effects import LARGEST, in_errors
from reports.findings.page import of_book
from reports.page.book import Book
from reports.page.rugs import WIDTH, drawn, place, rugs
from reports.records import Records


@pytest.mark.parametrize(
    ("effect", "error", "expected"),
    [(3.0, 1.5, 2.0), (-3.0, 1.5, -2.0), (-1.0, 0.0, -math.inf), (1.0, 0.0, math.inf), (0.0, 0.0, 0.0)],
)
def test_effects_are_in_standard_errors(effect: float, error: float, expected: float) -> None:
    assert in_errors(effect, error) == expected


def test_no_effect_is_in_the_middle_and_the_ends_hold_everything_beyond() -> None:
    assert place(0.0) == WIDTH / 2
    assert place(math.inf) == place(LARGEST) < WIDTH and place(-math.inf) == place(-LARGEST) > 0
    assert place(LARGEST) - WIDTH / 2 == pytest.approx(WIDTH / 2 - place(-LARGEST))
    assert place(2.0) - WIDTH / 2 == pytest.approx((WIDTH / 2 - 3) * math.log(2 + 5**0.5) / math.log(300 + 90001**0.5))


def test_every_comparison_has_a_tick_under_its_outcome() -> None:
    picture = drawn([(3.0, FOR), (-5.0, AGAINST), (4.0, FOR), (0.5, OPEN)])
    ticks = {name: re.findall(r"M([\d.]+) ", path) for name, path in re.findall(r'class="(\w+)" d="(.*?)"', picture)}
    assert ticks.pop("rug", None) is None
    assert ticks == {
        "for": [f"{place(3.0):.1f}", f"{place(4.0):.1f}"],
        "against": [f"{place(-5.0):.1f}"],
        "open": [f"{place(0.5):.1f}"],
    }
    assert 'aria-label="Effects: 2 the claimed way, 1 the other way, 1 open"' in picture
    assert drawn([]) == ""


def test_the_ticks_of_every_claim_are_those_that_its_verdicts_count() -> None:
    book = Book(Suite(), Records("results"))
    several = 0
    for finding in (one for each in of_book(book).values() for one in each):
        counts = [finding.ours[way] for way in (FOR, AGAINST, OPEN)]
        counted = f"{counts[0]} the claimed way, {counts[1]} the other way, {counts[2]} open"
        _, ours = rugs(finding)
        assert (counted in ours) if finding.counted else not ours, finding.claim.id
        several += bool(finding.counted)
    assert several
