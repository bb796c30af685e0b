"""Scripts and styles of the site: its own, and those of libraries, from their Python packages."""

from __future__ import annotations

import base64
import gzip
import json
import re
from importlib.util import find_spec
from pathlib import Path

from benchmarks.errors import BenchmarkError

OWN = ("page.css", "page.js", "search.js", "table.js", "panel.js", "plots.js", "compare.js")
BOKEH = ("bokeh.min.js", "bokeh-api.min.js")
STATIC = Path(__file__).parent / "static"
EXPORTS = re.compile(r"\bexport\s*\{([^}]*)\}\s*;")


STYLED = "document.querySelector('link[rel=stylesheet]').before(Object.assign(document.createElement('style'), %s));\n"


def write(folder: Path) -> list[str]:
    """Write every script and style, and return their names.

    Raises BenchmarkError where a library's file is not as expected.
    """
    tables, bokeh = _folder("itables") / "html", _folder("bokeh") / "server" / "static" / "js"
    style = _without_links((tables / "dt_bundle.css").read_text("utf-8"))
    module = classic((tables / "dt_bundle.js").read_text("utf-8"))
    texts = {name: (STATIC / name).read_text("utf-8") for name in OWN}
    texts["datatables.js"] = packed(STYLED % json.dumps({"textContent": style}) + module)
    texts |= {name: packed(_without_links((bokeh / name).read_text("utf-8"))) for name in BOKEH}
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return list(texts)


def _folder(package: str) -> Path:
    """Return the folder of a package without importing it, which would load pandas."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def packed(text: str) -> str:
    """Return compressed text as a script that passes it to the page, since browsers read no data files from the file
    system."""
    coded = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    return f'Page.received("{coded}");\n'


def classic(module: str) -> str:
    """Return a module as a plain script, since browsers load no modules from the file system: window.DataTable is its
    default export."""
    found = EXPORTS.findall(module)
    exported = re.search(r"([\w$]+) as default", found[0]) if len(found) == 1 else None
    if exported is None:
        raise BenchmarkError("itables: dt_bundle.js has no default export: install the version of constraints.txt")
    body = EXPORTS.sub(lambda _: f";window.DataTable={exported[1]};", module)
    return f"(function(){{\n{_without_links(body)}\n}})();\n"


def _without_links(source: str) -> str:
    """Remove the comment that makes a browser's tools look for another file."""
    return re.sub(r"(?m)^\s*(//|/\*)# sourceMappingURL=.*$", "", source)
