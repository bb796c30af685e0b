"""Tests of the tool that measures how long pages take to show: which pages it opens, and what it prints."""

from __future__ import annotations

from pathlib import Path

from tools import first_view


class Driver:
    """A browser in which every page is painted after .25 s, seen after .5 s at the second look, and costs .125 s."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.spent = 0.0
        self.answers = [None, [250.0, 500.0]]

    def get(self, address: str) -> None:
        self.opened.append(address)
        self.spent += 0.125 * address.startswith("file:")

    def execute_script(self, script: str) -> object:
        self.answers.append(self.answers.pop(0))
        return self.answers[-1]

    def execute_cdp_cmd(self, command: str, options: dict) -> dict:
        return {"metrics": [{"name": "Nodes", "value": 1}, {"name": "TaskDuration", "value": self.spent}]}


def test_the_first_page_and_the_largest_tables_are_timed(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    for k, name in enumerate(("index.html", "tables/small.html", "tables/large.html", "tables/larger.html")):
        (tmp_path / name).write_text("x" * 1000 * (k + 1))
    driver = Driver()
    found = list(first_view.rows(driver, tmp_path))
    pages = ["index.html", "tables/larger.html", "tables/large.html"]
    assert found == [
        (page, size, "0.25 s", "0.50 s", "0.12 s", "yes") for page, size in zip(pages, ("1 kB", "4 kB", "3 kB"))
    ]
    assert len(driver.opened) == 2 * 3 * first_view.REPEATS


def test_without_a_site_it_says_what_makes_one(tmp_path: Path, capsys) -> None:
    assert first_view.main([str(tmp_path)]) == 2 and "make page writes one" in capsys.readouterr().err
