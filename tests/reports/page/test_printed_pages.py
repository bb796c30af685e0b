"""Pages of the site on paper: whole tables, dark on white, no figure over two pages."""

from __future__ import annotations

from tests.reports.page.browser import Browser


def printed(browser: Browser, script: str) -> object:
    """Return the value of a script that is run on the page in its print view."""
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    found = browser.run(script)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    return found


def test_a_printed_table_is_not_cut(table: Browser) -> None:
    frame = "const style = getComputedStyle(document.querySelector('.sheet .tall')); return "
    assert printed(table, f"{frame}[style.overflowX, style.maxHeight]") == ["visible", "none"]


def test_print_has_every_row_of_a_table_of_several_pages(table: Browser) -> None:
    table.run("""
        window.part = document.createElement("section");
        const rows = [...Array(60).keys()].map((n) => `<tr><td>${n}</td></tr>`).join("");
        const head = "<thead><tr><th>n</th></tr></thead>";
        part.innerHTML = `<table class="sortable" data-pages="25">${head}<tbody>${rows}</tbody></table>`;
        document.querySelector("main").append(part);
        Page.sortable(part).then(() => { window.made = true; });
    """)
    table.until("return window.made")
    count = "return part.querySelectorAll('tbody tr').length"
    counts = [table.run(count)]
    for event in ("beforeprint", "afterprint"):
        table.run("window.dispatchEvent(new Event(arguments[0]))", event)
        counts.append(table.run(count))
    assert counts == [25, 60, 25]


def test_print_is_dark_on_white_and_splits_no_figure(table: Browser) -> None:
    table.all("#theme")[0].click()
    look = """
        const style = (of) => getComputedStyle(document.querySelector(of));
        return [style("h1").color, style("body").backgroundColor, style("figure").breakInside, style("tr").breakInside,
                style("html").printColorAdjust];
    """
    shown = printed(table, look)
    table.all("#theme")[0].click()
    assert shown == ["rgb(28, 36, 48)", "rgb(255, 255, 255)", "avoid", "avoid", "exact"]
