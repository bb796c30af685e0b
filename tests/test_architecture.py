"""Rules over all files: which room may import which, what loads late, what no file may name, how long a module may be."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("fvi_core", "datasets", "benchmarks", "reports")
CLOSED = {
    "fvi_core": {"datasets", "benchmarks", "reports"},
    "datasets": {"fvi_core", "benchmarks", "reports"},
    "benchmarks": {"reports"},
    "reports": {"fvi_core"},
}
HEAVY = {"torch", "sklearn", "pandas", "matplotlib", "gpytorch", "scipy.stats"}
LATE = {"submitit", "pooch", "tensorflow_datasets"}
SKIPPED = {".git", ".venv", ".state", ".pytest_cache", ".hypothesis", ".ruff_cache", "__pycache__"}
TEXT = {"", ".py", ".md", ".txt", ".toml", ".json", ".csv", ".tex", ".html", ".css", ".yaml", ".yml", ".sh", ".cfg"}
NAMED_NOWHERE = re.compile(
    "|".join((r"pypi\.org", r"pythonhosted\.org", r"npmjs\.", r"deb\.debian", r"anaconda\.", r"download\.pytorch"))
    + r"|index-ur[l]|(?<![\w.])/(?:work|root|home)/"
)


def sources(folder: str) -> list[Path]:
    """All Python files under a folder of the project."""
    return sorted(p for p in (ROOT / folder).rglob("*.py") if not SKIPPED & set(p.relative_to(ROOT).parts))


def text_files() -> Iterator[Path]:
    """All files of the project that hold text."""
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        if path.is_file() and path.suffix in TEXT and not any(p in SKIPPED or p.endswith(".egg-info") for p in parts):
            yield path


def imported(node: ast.AST) -> set[str]:
    """Top-level packages that one import statement loads (none for relative imports)."""
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return {node.module.split(".")[0]}
    return set()


def imports(tree: ast.AST) -> set[str]:
    """Every package imported anywhere in a module."""
    return set().union(*(imported(node) for node in ast.walk(tree)))


def imports_on_load(tree: ast.AST) -> set[str]:
    """The packages imported when the module is: those outside function bodies."""
    found = imported(tree)
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            found |= imports_on_load(child)
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_one_way(room: str) -> None:
    paths = sources(room)
    assert paths, f"no Python file in {room}/"
    for path in paths:
        wrong = imports(ast.parse(path.read_text())) & CLOSED[room]
        assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}, which {room} may not"


@pytest.mark.parametrize("room", ROOMS)
def test_optional_packages_load_inside_functions(room: str) -> None:
    for path in sources(room):
        wrong = imports_on_load(ast.parse(path.read_text())) & LATE
        assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)} when it is loaded: move it into a function"


def test_a_recorded_table_is_printed_without_heavy_libraries() -> None:
    code = f"""
import sys, benchmarks.cli, benchmarks.metrics, reports.cli, reports.coverage, reports.tables
from benchmarks import tables
for name in tables.names():
    tables.get(name).runs()
print(*{HEAVY} & set(sys.modules))"""
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not loaded.split(), f"start-up loads {loaded.strip()}: import it where it is used"


@pytest.mark.parametrize("folder", [*ROOMS, "tests"])
def test_modules_stay_short(folder: str) -> None:
    for path in sources(folder):
        lines = len(path.read_text().splitlines())
        assert lines < 400, f"{path.relative_to(ROOT)} has {lines} lines: split it"


def test_no_file_names_a_registry_host_or_a_path_of_one_machine() -> None:
    for path in text_files():
        found = NAMED_NOWHERE.search(path.read_text(errors="replace"))
        assert not found, f"{path.relative_to(ROOT)} names {found[0]!r}"
