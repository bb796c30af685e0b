"""The pages of a small site in a browser, for every test of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.reports.page.small import site

if TYPE_CHECKING:
    from tests.reports.page.browser import Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    from tests.reports.page.browser import Browser  # skips where there is none

    folder = tmp_path_factory.mktemp("site")
    site(folder)
    opened = Browser(folder / "site")
    yield opened
    opened.driver.quit()


@pytest.fixture
def table(browser: Browser) -> Browser:
    """The page of the table, its first sheet made sortable."""
    browser.open("tables/pequignot2020-5.html")
    browser.until("return !document.querySelector('.tools').hidden")
    return browser
