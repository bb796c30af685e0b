"""Write a page of the library's public names, with an example of each, readable offline; needs pdoc (extra docs)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import fvi_core

OUT = Path(__file__).resolve().parents[1] / "reports" / "output" / "page" / "api"


def write(out: Path = OUT) -> Path:
    """Write the pages to a folder and return the first; needs pdoc."""
    import pdoc

    for name in fvi_core.__all__:
        getattr(fvi_core, name)  # pdoc sees only what is loaded
    pdoc.render.configure(docformat="google", show_source=False, footer_text=f"fvi-core {fvi_core.__version__}")
    pdoc.pdoc("fvi_core", output_directory=out)
    return out / "index.html"  # leads to the page of fvi_core; the site links to it


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pages and print the first one's path."""
    argparse.ArgumentParser("python -m tools.api", description=__doc__).parse_args(arguments)
    print(write())


if __name__ == "__main__":
    main()
