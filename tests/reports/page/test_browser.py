"""The site in a real browser: no errors, no requests to anywhere, what is pressed works, by keyboard too."""

from __future__ import annotations

from itertools import combinations

import pytest

from tests.reports.page.browser import Browser, By, Keys
from tests.reports.page.small import HOSTILE

NAMELESS = """
const all = document.querySelectorAll("a, button, input, select, summary, [role=group], [role=img], dialog, th");
const image = (e) => e.querySelector("img[alt]")?.alt;
const named = (e) => e.innerText || e.ariaLabel || image(e) || e.labels?.length || e.getAttribute("aria-labelledby");
return [...all].filter((e) => e.checkVisibility() && !named(e)).map((e) => e.outerHTML.slice(0, 200));
"""
CHOOSE = """
for (const [by, value] of [["dataset", "energy"], ["metric", "rmse"]]) {
  const select = document.querySelector(`[data-by=${by}]`);
  select.value = value;
  select.dispatchEvent(new Event("change"));
}
"""

DRAWN = """
const found = [];
const walk = (node) => {
  if (node.tagName === arguments[0]) found.push(node);
  [node.shadowRoot, ...(node.children ?? [])].filter(Boolean).forEach(walk);
};
walk(document.querySelector(".costs .plot"));
return found.map((e) => [e.href?.baseVal ?? e.textContent, ...Object.values(e.getBoundingClientRect().toJSON())]);
"""


def names(browser: Browser) -> list[str]:
    """The rows of the table that are shown."""
    return [row.text for row in browser.all("table.cells tbody th")]


def sorts(browser: Browser, head: object, order: str) -> None:
    """Wait until a column is the sorted one: rows are put in order after the press has returned."""
    browser.until("return arguments[0].ariaSort === arguments[1]", head, order)


def test_every_page_opens_quietly_and_fits_a_telephone(browser: Browser) -> None:
    for page in sorted(browser.folder.rglob("*.html")):
        browser.open(str(page.relative_to(browser.folder)), width=390)
        assert browser.run("return window.broken") is None, page
        assert browser.run("return document.documentElement.scrollWidth") <= 390, page
        assert browser.run(NAMELESS) == [], page
        assert browser.run("return document.title + document.querySelector('h1').innerText").strip()
    assert browser.faults() == []
    addresses = browser.requests()
    assert len(addresses) > 20
    assert [url for url in addresses if not url.startswith(("file://", "data:", "blob:", "about:"))] == []


def test_sorting_puts_cells_without_a_value_last(table: Browser) -> None:
    assert names(table) == ["MC Dropout", "Ensemble", HOSTILE, "FBNN"]
    head = table.all("table.cells thead th")[1]
    head.click()  # RMSE: the lowest first
    sorts(table, head, "ascending")
    assert names(table) == [HOSTILE, "Ensemble", "MC Dropout", "FBNN"]
    head.click()
    sorts(table, head, "descending")
    assert names(table) == ["MC Dropout", "Ensemble", HOSTILE, "FBNN"]
    likelihood = table.all("table.cells thead th")[4]
    table.run("(arguments[0].querySelector('[tabindex]') ?? arguments[0]).focus()", likelihood)
    table.driver.switch_to.active_element.send_keys(Keys.ENTER)  # log predictive: the highest first
    sorts(table, likelihood, "descending")
    assert names(table)[:2] == ["MC Dropout", "Ensemble"]


def test_a_cell_opens_and_closes_by_keyboard(table: Browser) -> None:
    cell = table.all("[data-cell='1/0']")[0]
    table.run("arguments[0].focus()", cell)
    cell.send_keys(Keys.ENTER)
    table.until("return document.querySelector('#panel[open] .plot')?.childElementCount > 0")
    panel = table.all("#panel")[0]
    assert "Ensemble · boston" in panel.text and "0123456789ab with changes" in panel.text
    assert "2.100 ± 0.058" in panel.text and "--method Ensemble --dataset boston" in panel.text
    assert len(table.all("#panel [aria-label=Runs] tbody tr")) == 3
    assert table.run("return location.hash") == "#paper/1/0"
    table.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    table.until("return !document.querySelector('#panel').open")
    assert table.run("return document.activeElement === arguments[0]", cell)
    assert table.faults() == []


def test_an_address_opens_its_cell_under_its_protocol(browser: Browser) -> None:
    browser.open("tables/pequignot2020-5.html#short/1/0")
    browser.until("return document.querySelector('#panel').open")
    assert "one run" in browser.all("#panel")[0].text and "protocol short" in browser.all("#panel")[0].text
    assert [sheet.get_attribute("data-protocol") for sheet in browser.all(".sheet")] == ["short"]
    assert browser.run("return window.broken") is None


def test_protocols_are_never_mixed(table: Browser) -> None:
    for protocol in ("short", "paper"):
        table.all(f".protocols [data-protocol={protocol}]")[0].click()
        assert [sheet.get_attribute("data-protocol") for sheet in table.all(".sheet")] == [protocol]
        assert table.all(".protocols [aria-pressed=true]")[0].text.startswith(f"protocol {protocol}")


def test_rows_columns_and_lines_are_chosen(table: Browser) -> None:
    find = table.all("[data-rows]")[0]
    find.send_keys("<script>")
    assert names(table) == [HOSTILE]
    find.send_keys(Keys.CONTROL, "a", Keys.DELETE)
    table.all("[data-show=empty]")[0].click()
    assert names(table) == ["MC Dropout", "Ensemble", HOSTILE]
    assert len(table.all(".cells i")) == 2 * 6
    table.all("[data-show=published]")[0].click()
    assert not table.all(".cells i") and table.all(".cells b")
    table.run(CHOOSE)
    assert len(table.all(".cells thead th")) == 2
    table.all(".columns button")[0].click()
    table.until("return document.querySelectorAll('.dt-button-collection .dt-button').length === 6")
    assert table.run("return window.broken") is None and table.faults() == []


def costs(browser: Browser) -> str:
    """Return the description of the plot of quality against cost, once it is drawn."""
    browser.run("document.querySelector('.costs').scrollIntoView()")
    browser.until("return document.querySelector('.costs .plot').childElementCount > 1")
    return browser.run("return document.querySelector('.costs .plot').ariaLabel")


def test_quality_is_drawn_against_cost(browser: Browser) -> None:
    browser.open("methods/ensemble.html")
    label = costs(browser)
    assert "Ensemble 2.100 ± 0.058 in 100 seconds" in label
    assert "Better and cheaper is lower left" in browser.all(".costs")[0].text
    marks = [mark for mark, *_ in browser.run(DRAWN, "image")]
    assert len(marks) == len(set(marks)) == 3 and all(mark.startswith("data:image/svg+xml") for mark in marks)
    boxes = {name: (x, y, x + width, y + height) for name, x, y, width, height, *_ in browser.run(DRAWN, "text")}
    names = [boxes[name] for name in ("MC Dropout", "Ensemble", HOSTILE)]
    assert all(left > 0 and right < 1400 for left, _, right, _ in names), "none is cut"
    for one, other in combinations(names, 2):
        apart = [one[k + 2] <= other[k] or other[k + 2] <= one[k] for k in (0, 1)]
        assert any(apart), "none lies over another"
    assert browser.faults() == []


def test_a_method_is_compared_on_a_processor_of_its_own_runs(browser: Browser) -> None:
    browser.open("methods/ensemble.html")
    browser.run("""
        const read = Page.details;
        const rows = (details) => details.rows.map((row) => Object.values(row.groups).map((group) => group.runs ?? []));
        Page.details = (source) => read(source).then((details) => {
          rows(details).forEach((row, i) => row.forEach((runs) => runs.forEach((run, k) => {
            run.machine = i === 1 || (i === 0 && k === 1) ? "its own" : "that of most";
          })));
          return details;
        });
    """)
    label = costs(browser)
    assert "Ensemble 2.1" in label and "MC Dropout" in label and HOSTILE not in label
    assert "Times on its own; 1 row made on other processors left out" in browser.all(".costs")[0].text


def test_light_and_dark(browser: Browser) -> None:
    browser.open("index.html")
    ground = "return getComputedStyle(document.body).backgroundColor"
    before = browser.run(ground)
    browser.all("#theme")[0].click()
    dark = browser.run(ground)
    assert dark != before
    browser.open("methods/index.html")
    assert browser.run(ground) == dark
    browser.all("#theme")[0].click()
    assert browser.run(ground) == before and browser.faults() == []


def test_the_picture_of_chances_is_small_on_every_screen(browser: Browser) -> None:
    browser.open("index.html", width=780)
    assert browser.run("return document.querySelector('.p-values').getBoundingClientRect().width") <= 400


@pytest.mark.parametrize("page", ["compare/index.html#a=Ensemble&b=MC+Dropout", "tables/pequignot2020-5.html#short"])
def test_skipping_to_the_content_keeps_the_choice(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.until("return document.querySelector('#compared section, .sheet[data-begun]')")
    chosen = "return [location.hash, document.title, document.querySelector('.sheet:not([hidden])')?.dataset.protocol]"
    before = browser.run(chosen)
    browser.driver.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB, Keys.ENTER)
    assert browser.run("return document.activeElement.id") == "main" and browser.run(chosen) == before


def test_a_cell_is_as_wide_as_a_window_with_a_scroll_bar(browser: Browser) -> None:
    browser.open("tables/pequignot2020-5.html#paper/0/0", width=390)
    browser.until("return document.getElementById('panel').open")
    assert browser.run("return document.getElementById('panel').getBoundingClientRect().x") >= 0


def test_the_search_is_used_by_keyboard(browser: Browser) -> None:
    browser.open("methods/ensemble.html")
    browser.driver.find_element(By.TAG_NAME, "body").send_keys("/")
    browser.until("return document.querySelector('dialog.search [role=status]').innerText.startsWith('Words')")
    field = browser.driver.switch_to.active_element
    field.send_keys("BOSTON data")
    assert [each.text.split("\n")[:2] for each in browser.all("#hits a")] == [["data set", "boston"]]
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys("dropout")
    titles = [each.find_element(By.CLASS_NAME, "title").text for each in browser.all("#hits a")]
    assert titles[0] == "MC Dropout" and "pequignot2020-5" in titles
    chosen = "return document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).innerText"
    field.send_keys(Keys.ARROW_DOWN)
    assert titles[1] in browser.run(chosen)
    field.send_keys(Keys.ARROW_UP, Keys.ARROW_UP)
    assert titles[-1] in browser.run(chosen), "from the first to the last"
    field.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    browser.until(
        "return document.readyState === 'complete' && document.querySelector('h1')?.innerText === 'MC Dropout'"
    )
    assert browser.faults() == []


def test_the_search_closes_and_names_in_it_stay_text(browser: Browser) -> None:
    browser.open("index.html")
    browser.all("#find")[0].click()
    field = browser.driver.switch_to.active_element
    browser.until("return document.querySelector('dialog.search [role=status]').innerText.startsWith('Words')")
    field.send_keys("<script>")
    assert HOSTILE in browser.all("#hits")[0].text and browser.run("return window.broken") is None
    field.send_keys("nothing that is there")
    assert "Nothing found" in browser.all("dialog.search")[0].text
    field.send_keys(Keys.ESCAPE)
    browser.until("return !document.querySelector('dialog.search').open")


def test_a_data_set_of_the_search_narrows_the_list_of_tables(browser: Browser) -> None:
    for name, count in (("boston", 2), ("nowhere", 1)):  # of both protocols; a line that says that there is none
        browser.open(f"tables/index.html#find={name}")
        browser.until("return document.querySelector('.dt-search input')?.value === arguments[0]", name)
        assert len(browser.all("table.sortable tbody tr")) == count


def test_claims_are_narrowed_by_verdict(browser: Browser) -> None:
    browser.open("findings/index.html")
    browser.until("return document.querySelector('.dt-search') !== null")
    verdicts = "return [...document.querySelectorAll('tr[id] td:nth-child(3)')].map((cell) => cell.dataset.search)"
    choose = """
        const select = document.querySelector("[data-narrows='2']");
        select.value = arguments[0];
        select.dispatchEvent(new Event("change"));
    """
    every = browser.run(verdicts)
    spaced = "return parseFloat(getComputedStyle(document.querySelector('.claims td:last-child')).lineHeight)"
    assert browser.run(spaced) >= 24, "one link below another can be touched alone"
    for verdict in ("holds", "not told apart", "not tested", ""):
        browser.run(choose, verdict)
        assert browser.run(verdicts) == [each for each in every if verdict in ("", each)], verdict
    assert browser.faults() == []


def test_two_methods_are_compared_by_address(browser: Browser) -> None:
    browser.open("compare/index.html#a=Ensemble&b=MC+Dropout")
    browser.until("return document.querySelector('#compared .dt-search') !== null")
    (section,) = browser.all("#compared section")
    assert section.text.startswith("Protocol paper\n") and "of 6 columns" in section.text
    lines = [row.text for row in browser.all("#compared table.sortable tbody tr")]
    assert len(lines) == 6 and all("pequignot2020-5" in line for line in lines)
    better = {"Ensemble better": 0, "MC Dropout better": 0, "not told apart": 0, "not tested": 0}
    for line in lines:
        better[next(words for words in better if words in line)] += 1
    for words, count in better.items():
        assert (f"{words} in {count}" in section.text) == bool(count)
    values = browser.all("#compared table.sortable tbody a")
    assert any(link.get_attribute("href").endswith("tables/pequignot2020-5.html#paper/1/0") for link in values)
    browser.all("[data-swap]")[0].click()
    browser.until("return location.hash === '#a=MC+Dropout&b=Ensemble'")
    browser.until("return document.title.startsWith('MC Dropout and Ensemble')")
    heads = [head.text for head in browser.all("#compared table.sortable thead th")]
    assert heads[4:6] == ["MC Dropout", "Ensemble"]
    assert browser.run("return window.broken") is None and browser.faults() == []


@pytest.mark.parametrize("page", ["compare/index.html#a=MC+Dropout&b=Ensemble", "methods/mc-dropout.html"])
def test_columns_of_numbers_are_sorted_as_numbers(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.until("return document.querySelector('.dt-search') !== null")
    ordered = """
        const table = new DataTable(document.querySelector("table.sortable"));
        table.order([arguments[0], "asc"]).draw();
        return table.rows({order: "applied"}).nodes().toArray().map((row) => row.cells[arguments[0]].innerText);
    """
    heads = browser.run("return [...document.querySelectorAll('table.sortable th')].map((head) => head.innerText)")
    for name in {"MC Dropout", "Ensemble", "p, uncorrected", "runs of both", "value", "published", "place"} & {*heads}:
        texts = [text.split() for text in browser.run(ordered, heads.index(name))]
        known = [float(words[0].replace("−", "-")) for words in texts if words and words[0] != "—"]
        assert len(known) > 1 and known == sorted(known), name
        assert all(words and words[0] != "—" for words in texts[: len(known)]), f"{name}: no number comes last"
