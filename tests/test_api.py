"""Every public name of the library has a docstring with an example, and the examples run."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import fvi_core
from reports.page import site
from tests.plugins import forgotten
from tools import api


def modules() -> Iterator[ModuleType]:
    yield fvi_core
    for each in filter(inspect.ismodule, (getattr(fvi_core, name) for name in fvi_core.__all__)):
        yield each
        if not hasattr(each, "__all__"):  # metrics: every file
            yield from (import_module(f"{each.__name__}.{info.name}") for info in pkgutil.iter_modules(each.__path__))


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Functions and classes of a module, and the classes' own methods and properties."""
    here = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    names = getattr(module, "__all__", [name for name in here if not name.startswith("_")])
    for name in names:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            yield name, value
        if inspect.isclass(value):
            for own, member in vars(value).items():
                if not own.startswith("_") and isinstance(member, property | classmethod) | inspect.isfunction(member):
                    yield f"{name}.{own}", member


NAMES = {f"{module.__name__}.{name}": (module, value) for module in modules() for name, value in public(module)}


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_a_docstring_and_an_example(name: str) -> None:
    text = inspect.getdoc(NAMES[name][1]) or ""
    owner, _, member = name.rpartition(".")
    shown = ">>>" in text
    if owner in NAMES:  # the example of a class may show its members
        shown |= bool(re.search(rf">>>.*\.{member}\b", inspect.getdoc(NAMES[owner][1]) or ""))
    assert text and shown


@pytest.mark.filterwarnings("ignore")
def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)

    def run(text: str, names: dict[str, Any], name: str) -> dict[str, Any]:
        example = parser.get_doctest(text, names, name, None, None)
        runner.run(example, clear_globs=False)
        return example.globs

    shared = run(fvi_core.__doc__ or "", {}, "fvi_core")
    with forgotten():
        for name, (_, value) in NAMES.items():
            home = inspect.getmodule(getattr(value, "fget", value))
            run(inspect.getdoc(value) or "", {**vars(home), **shared}, name)
    assert runner.tries > 70 and not runner.failures


def test_help_writes_nothing() -> None:
    done = subprocess.run([sys.executable, "-m", "tools.api", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: python -m tools.api") and not done.stderr
    assert "page of the library's public names" in " ".join(done.stdout.split())


def test_the_page_has_every_name_and_asks_no_network_for_anything(tmp_path: Path) -> None:
    pytest.importorskip("pdoc")
    first = api.write(tmp_path)
    assert (api.OUT / first.relative_to(tmp_path)).parts[-3:] == ("page", *site.API.split("/")), "the site links to it"
    text = "".join(each.read_text() for each in [first, *sorted(tmp_path.rglob("*.html"))])
    for name in NAMES:
        assert f'id="{name.rpartition(".")[2]}"' in text or f'id="{".".join(name.split(".")[-2:])}"' in text, name
    assert not re.search(r"<(?:script|link|img)[^>]*(?:src|href)=.?https?:", text)
