"""The README's picture of the site: it is of the records of today, and says so when it is not."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from benchmarks.suite import Suite
from reports.page.book import Book
from reports.records import Records
from tools import page_picture


def test_the_picture_shows_the_numbers_of_today() -> None:
    now = page_picture.facts(Book(Suite(), Records(page_picture.ROOT / "results")))
    assert page_picture.facts_in() == now, "draw it again: python -m tools.page_picture"


def test_a_picture_without_facts_is_out_of_date(tmp_path: Path) -> None:
    Image.new("RGB", (2, 2)).save(tmp_path / "old.png")
    assert page_picture.facts_in(tmp_path / "old.png") == ""
