"""Time until a page of the site shows its table: python -m tools.first_view [FOLDER].

Wall time includes other work of the machine; the processor time of the page's own thread does not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.commands.inspection import columns

FOLDER = Path("reports/output/page")
GOAL = 1.5  # seconds
LARGEST, REPEATS = 2, 3
SEEN = """
const table = document.querySelector("main table, main svg.marks ~ section svg");
return table && table.getBoundingClientRect().height > 0
  ? [performance.getEntriesByName("first-contentful-paint")[0]?.startTime, performance.now()] : null;
"""


def chosen(folder: Path) -> list[str]:
    """Return the start page and the largest pages of tables. Raises FileNotFoundError without a site."""
    if not (folder / "index.html").exists():
        raise FileNotFoundError(f"{folder}: no site there; make page writes one")
    tables = sorted(folder.glob("tables/*.html"), key=lambda path: path.stat().st_size, reverse=True)
    return ["index.html", *(f"tables/{path.name}" for path in tables[:LARGEST])]


def measured(driver: Any, address: str) -> tuple[float, float, float]:
    """Return seconds until the first paint, until the table's layout, and of the page's thread on the processor."""
    driver.get("about:blank")
    before = _spent(driver)
    driver.get(address)
    while not (times := driver.execute_script(SEEN)):
        pass
    return (times[0] or times[1]) / 1000, times[1] / 1000, _spent(driver) - before


def browser() -> Any:
    """Return a driver of Chromium without a window. Raises ImportError or FileNotFoundError for what it needs."""
    from selenium import webdriver  # here, since only this needs it

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        raise FileNotFoundError("chromium and chromedriver are needed, and not found")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))


def _spent(driver: Any) -> float:
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(each["value"] for each in metrics if each["name"] == "TaskDuration")


def rows(driver: Any, folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield a row for every page: medians over a few turns."""
    for page in chosen(folder):
        turns = [measured(driver, f"file://{folder.resolve()}/{page}") for _ in range(REPEATS)]
        painted, laid, spent = (median(column) for column in zip(*turns))
        size = f"{(folder / page).stat().st_size / 1e3:.0f} kB"
        yield page, size, f"{painted:.2f} s", f"{laid:.2f} s", f"{spent:.2f} s", "yes" if painted <= GOAL else "no"


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return exit status 2 without a site or without Chromium."""
    parser = argparse.ArgumentParser(prog="python -m tools.first_view", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help=f"the site ({FOLDER})")
    options = parser.parse_args(arguments)
    try:
        chosen(options.folder)
        driver = browser()
    except (FileNotFoundError, ImportError) as error:
        print(error, file=sys.stderr)
        return 2
    try:
        driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        heading = "page", "size", "painted after", "table seen at", "processor time", f"goal of {GOAL:g} s met"
        print(columns([heading, *rows(driver, options.folder)]))
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    finally:
        driver.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
