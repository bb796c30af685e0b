"""Rules over all files: which room may import which, what loads late, what no file may name, how long a module may
be."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.records.hyperparameters import known

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("fvi_core", "datasets", "benchmarks", "reports", "tools")
CLOSED = {
    "fvi_core": {"datasets", "benchmarks", "reports", "tools"},
    "datasets": {"fvi_core", "benchmarks", "reports", "tools"},
    "benchmarks": {"reports", "tools"},
    "reports": {"fvi_core", "tools"},
    "tools": set(),
}
FOR_ALL = {
    "fvi_core.printing",
    "fvi_core.spelling",
    "fvi_core.telling",
}  # they import nothing: every room may import them
HEAVY = {"torch", "sklearn", "pandas", "matplotlib", "gpytorch", "scipy.stats", "scipy.special"}
LATE = {"submitit", "pooch", "tensorflow_datasets"}
SKIPPED = {".git", ".venv", ".state", ".pytest_cache", ".hypothesis", ".ruff_cache", ".mypy_cache", "__pycache__"}
TEXT = {"", ".py", ".md", ".txt", ".toml", ".json", ".csv", ".tex", ".html", ".css", ".yaml", ".yml", ".sh", ".cfg"}
HOSTS = (
    r"pypi\.org",
    r"pythonhosted\.org",
    r"npmjs\.",
    r"deb\.debian",
    r"anaconda\.",
    r"download\.pytorch",
    r"index-ur[l]",
)
NAMED_NOWHERE = [*map(re.compile, (*HOSTS, r"/(?<![\w.]/)(?:work|root|home)/"))]
"""Several patterns with a fixed beginning each, as these are found far faster than one that begins in several ways."""


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
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module not in FOR_ALL:
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


def modules() -> dict[str, Path]:
    """Every module of the project by its dotted name."""
    found = {}
    for room in ROOMS:
        for path in sources(room):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def imported_modules(name: str, every: dict[str, Path]) -> set[str]:
    """The modules of the project that one of them imports anywhere, also inside functions."""
    package = name if every[name].name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(every[name].read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []  # only read by type checkers
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {full if (full := f"{base}.{alias.name}") in every else base for alias in node.names}
    return found & set(every) - {name}


GROUND = ("shapes", "errors", "files", "suite")
FLOORS = ("records", "state", "tables", "metrics", "experiment", "sweep", "interface", "commands")


def test_each_floor_imports_only_floors_below() -> None:
    every = modules()
    height = {floor: i for i, floor in enumerate((*GROUND, *FLOORS))}
    here = [name for name in every if name.startswith("benchmarks.")]
    assert {name.split(".")[1] for name in here} == {*GROUND, *FLOORS, "__main__"}
    for name in here:
        own = name.split(".")[1]
        for other in imported_modules(name, every) if own != "__main__" else ():
            if other.startswith("benchmarks."):
                floor = other.split(".")[1]
                assert floor == own or height[floor] < height[own], f"{name} imports {other}, which is no floor below"


def test_what_every_room_may_import_imports_no_other_module() -> None:
    every = modules()
    for name in FOR_ALL:
        assert not imported_modules(name, every) and not imports_on_load(ast.parse(every[name].read_text())) & HEAVY


def test_unknown_names_are_answered_in_one_place() -> None:
    found = {
        path.relative_to(ROOT).as_posix() for room in ROOMS for path in sources(room) if "difflib" in path.read_text()
    }
    assert found == {"fvi_core/spelling.py"}


def test_no_import_circles() -> None:
    left = {name: imported_modules(name, every) for every in [modules()] for name in every}
    while free := [name for name, needs in left.items() if not needs & set(left)]:
        for name in free:
            del left[name]
    assert not left, f"these modules import each other: {sorted(left)}"


def test_a_recorded_table_is_printed_without_heavy_libraries(tmp_path: Path) -> None:
    # to look parts up loads torch, and a process with other packages may overwrite what is kept of that at any time
    kept = tmp_path / "known.json"
    kept.write_text(json.dumps(known()))
    code = f"""
import json, sys, benchmarks.commands.cli, benchmarks.metrics
from benchmarks import tables
from benchmarks.records import hyperparameters
hyperparameters.remembered = lambda name, look: json.load(open({str(kept)!r}))
for name in tables.names():
    tables.get(name).runs()
print(*{{"scipy"}} & set(sys.modules))
import reports.cli, reports.coverage, reports.tables
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
        text = path.read_text(errors="replace")
        found = [match[0] for pattern in NAMED_NOWHERE if (match := pattern.search(text))]
        assert not found, f"{path.relative_to(ROOT)} names {found[0]!r}"
