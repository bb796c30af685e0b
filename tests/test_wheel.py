"""The wheel is ``fvi_core`` alone, and works with torch and NumPy alone, beside another package named ``datasets``."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import fvi_core

ROOT = Path(__file__).resolve().parents[1]
BUILD = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"


def needed(names: list[str]) -> set[str]:
    """Return distributions with all that they need."""
    found: set[str] = set()
    while names:
        name = names.pop()
        if name not in found:
            found.add(name)
            wanted = map(Requirement, metadata.requires(name) or ())
            names += [r.name for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})]
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for room in ("fvi_core", "datasets", "benchmarks", "reports", "tools"):
        shutil.copytree(ROOT / room, source / room, ignore=shutil.ignore_patterns("__pycache__", "output"))
    subprocess.run([sys.executable, "-c", BUILD, str(out)], cwd=source, check=True, capture_output=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the wheel, what it needs, and a stand-in for Hugging Face's ``datasets``."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (site / "datasets").mkdir()
    (site / "datasets" / "__init__.py").write_text("load_dataset = 'of another project'\n")
    for name in needed([Requirement(each).name for each in requirements(wheel)]):
        distribution = metadata.distribution(name)
        for top in {path.parts[0] for path in distribution.files or () if path.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())
    return folder / "bin" / "python"


def requirements(wheel: Path) -> list[str]:
    """Requirements of the wheel without its extras."""
    with zipfile.ZipFile(wheel) as archive:
        about = archive.read(next(name for name in archive.namelist() if name.endswith("METADATA"))).decode()
    return [each for each in re.findall(r"^Requires-Dist: (.*)$", about, re.MULTILINE) if "extra ==" not in each]


def test_the_wheel_holds_fvi_core_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    about = f"fvi_core-{fvi_core.__version__}.dist-info"
    assert wheel.name == f"fvi_core-{fvi_core.__version__}-py3-none-any.whl"
    assert {name.split("/")[0] for name in names} == {"fvi_core", about}
    assert {"fvi_core/py.typed", "fvi_core/metrics/ood.py", "fvi_core/networks/module.py"} <= set(names)
    assert not any("entry_points" in name for name in names)
    assert {Requirement(each).name for each in requirements(wheel)} == {"torch", "numpy"}


def test_the_library_example_of_the_readme_runs_with_nothing_else_installed(python: Path, tmp_path: Path) -> None:
    example = re.search(r"```python\n(.*?fvi\.fit.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert example and len(example[1].splitlines()) <= 6 + 1
    code = example[1] + (
        "import sys, datasets\n"
        "assert datasets.load_dataset == 'of another project'\n"
        "loaded = {'scipy', 'pandas', 'sklearn', 'numba', 'benchmarks', 'reports'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "accuracy" in done.stdout and (tmp_path / "mine.fvi").exists()


def test_it_says_version_methods_and_parts(python: Path, tmp_path: Path) -> None:
    done = subprocess.run([python, "-m", "fvi_core"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"fvi-core {fvi_core.__version__}\n")
    for name in ("FSVI", "mean_field", "gaussian_kl", "uniform_box", "laplace", "categorical", "vogn"):
        assert re.search(rf"\b{name}\b", done.stdout), name
