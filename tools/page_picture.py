"""Draw docs/images/page.png, the site's first page as the README shows it: ``python -m tools.page_picture``.

The picture carries the numbers and sentences that it shows, so that a test can say when it is out of date.
"""

from __future__ import annotations

import argparse
import base64
import io
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from benchmarks.suite import Suite
from reports.findings.page import of_book
from reports.findings.words import flat, summary
from reports.page.book import Book
from reports.page.site import write
from reports.records import Records
from tools.first_view import browser

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "images" / "page.png"
SIZE = {"width": 1240, "height": 930, "deviceScaleFactor": 1, "mobile": False}
FACTS = "facts"


def facts(book: Book) -> str:
    """Return what the first page says: the sentences of the findings, and the count of every status."""
    counts = (f"{status}: {count}" for status, count in book.counts.items())
    return "\n".join((*summary(flat(of_book(book))), *counts))


def facts_in(file: Path = OUT) -> str:
    """Return the facts that a picture carries; empty for one that carries none."""
    with Image.open(file) as picture:
        return str(picture.info.get(FACTS, ""))


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the site, photograph its first page, and return 2 where there is no Chromium."""
    argparse.ArgumentParser("python -m tools.page_picture", description=__doc__).parse_args(arguments)
    try:
        driver = browser()
    except (FileNotFoundError, ImportError) as error:
        print(error, file=sys.stderr)
        return 2
    suite, records = Suite(), Records(ROOT / "results", ROOT / ".state")
    try:
        with tempfile.TemporaryDirectory() as folder:
            site = write(suite, records, Path(folder), figures=False)
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIZE)
            driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
            driver.get(site.start.as_uri())
            drawn = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    finally:
        driver.quit()
    info = PngInfo()
    info.add_itxt(FACTS, facts(Book(suite, records)))
    picture = Image.open(io.BytesIO(base64.b64decode(drawn))).convert("RGB")
    picture.quantize(method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(OUT, optimize=True, pnginfo=info)
    return 0


if __name__ == "__main__":
    sys.exit(main())
