"""Files of one's own: they add methods and parts; a broken one is named in a line or two; their code has a digest."""

import dataclasses
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fvi_core import methods
from fvi_core.families.mean_field import MeanField
from fvi_core.plugins import PluginError, load, module_digest, source_digest
from fvi_core.registry import CONTEXTS, DIVERGENCES, FAMILIES, NETWORKS, UnknownPart
from tests.plugins import forgotten

ROOT = Path(__file__).resolve().parents[2]
MINE = """
from __future__ import annotations
from dataclasses import dataclass
from fvi_core.families.point import Point
from fvi_core.methods import Method, add, get
from fvi_core.registry import FAMILIES

@FAMILIES.register("mine")
@dataclass(frozen=True)
class Mine(Point):
    strength: float = 1.0

add(Method("My method", get("MAP").description, "none", family={"name": "mine", "strength": 2.0}))
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """own(text, name) writes a plug-in that FVI_PLUGINS names; it is forgotten after the test."""

    def write(text, name="mine.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        monkeypatch.setenv("FVI_PLUGINS", str(path))
        return path

    with forgotten():
        yield write


def test_a_file_of_ones_own_adds_a_method_and_its_parts(own):
    own(MINE)
    assert methods.get("My method").family == {"name": "mine", "strength": 2.0}
    assert list(methods.catalogue())[-1] == "My method"
    assert methods.get("My method").description == methods.get("MAP").description
    assert FAMILIES.build(methods.get("My method").family).strength == 2
    with pytest.raises(UnknownPart, match="family 'mine' has no hyper-parameter 'strong'; did you mean 'strength'"):
        FAMILIES.build({"name": "mine", "strong": 1})
    with pytest.raises(ValueError, match="family 'mine' is registered twice"):
        FAMILIES.register("mine")(type("Other", (), {}))


NETWORK = """
from dataclasses import dataclass
from fvi_core.registry import NETWORKS

@NETWORKS.register("mine")
{}class Mine:
    width: int = 3
"""


@pytest.mark.parametrize(
    ("decorator", "message"),
    [
        ("", r"line 5: TypeError: network 'mine': expected a dataclass, found Mine: put @dataclass\(frozen=True\) be"),
        ("@dataclass(frozen=True)\n", r"line 5: TypeError: network 'mine': Mine has no method build\(\)"),
    ],
)
def test_a_class_that_cannot_be_a_part_is_refused_when_it_is_registered(own, decorator, message):
    own(NETWORK.format(decorator))
    with pytest.raises(PluginError, match=message):
        load()
    assert "mine" not in NETWORKS.classes


def test_hyper_parameters_of_a_subclass_without_a_dataclass_of_its_own_are_not_lost(own):
    text = "from fvi_core.divergences.gaussian import GaussianKL\nfrom fvi_core.registry import DIVERGENCES\n\n"
    text += "@DIVERGENCES.register('{}')\nclass Mine(GaussianKL):\n    {}\n"
    own(text.format("without", "pass"))
    load()
    assert DIVERGENCES.build({"name": "without", "jitter": 1.0}).jitter == 1
    own(text.format("mine", "strength: float = 2.0"), "other.py")
    with pytest.raises(
        PluginError, match=r"TypeError: divergence 'mine': expected a dataclass, found Mine: put @datac"
    ):
        load()


def test_types_of_a_part_can_be_looked_up_by_its_module(own):
    own(MINE)
    methods.get("My method")
    mine = FAMILIES.classes["mine"]
    assert sys.modules[mine.__module__].Mine is mine and mine.__module__.startswith("fvi_plugins_mine_")
    assert dataclasses.replace(mine(), strength=3.0).strength == 3


def test_a_file_is_run_once_however_it_is_spelled(own, monkeypatch):
    path = own(MINE)
    spellings = [str(path), str(path.parent / "." / ".." / path.parent.name / "mine.py"), os.path.relpath(path)]
    monkeypatch.setenv("FVI_PLUGINS", os.pathsep.join(spellings))
    assert methods.get("My method")


ROW = "add(get('My method'))\n"
NAMED = r"FVI_PLUGINS: \S*mine.py"
BROKEN = {
    "syntax": ("a = 1\nb = (2\n", r", line 2: SyntaxError: '\(' was never closed; correct the file, or take it out"),
    "indentation": ("a = 1\n  b = 2\n", ", line 2: IndentationError: unexpected indent;"),
    "import": ("\nimport not_there_at_all\n", ", line 2: ModuleNotFoundError: No module named 'not_there_at_all'"),
    "name": ("def f():\n    return nothing\n\nf()\n", ", line 2: NameError: name 'nothing' is not defined"),
    "many lines": ("raise OSError('a\\nb\\n' * 900)", ", line 1: OSError: a b a b .*; correct"),
    "exit": ("import sys\nsys.exit('enough')\n", ", line 2: SystemExit: enough"),
    "bytes": (b"a = '\xff'\n", ".*: SyntaxError: .*utf-8"),
    "null": (b"a = 1\0\n", ".*: (ValueError|SyntaxError): source code"),
    "another's name": (MINE.replace("My method", "MAP"), ", line 13: ValueError: two methods are named 'MAP'"),
    "another's alias": (MINE.replace("My method", "TFSVI"), ", line 13: ValueError: two methods are named 'TFSVI'"),
    "name twice": (MINE + ROW, ", line 14: ValueError: two methods are named 'My method'"),
    "part twice": (MINE.replace('"mine"', '"point"', 1), ", line 8: ValueError: family 'point' is registered twice"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_is_named_with_line_and_error(own, what):
    text, message = BROKEN[what]
    rows, parts, modules = methods.catalogue(), dict(FAMILIES.classes), set(sys.modules)
    own(text)
    for _ in range(2):  # it is tried again, and fails for the same reason
        with pytest.raises(PluginError, match=f"^{NAMED}{message}") as caught:
            methods.catalogue()
        assert len(str(caught.value)) < 700 and "\n" not in str(caught.value)
    assert rows == methods._ROWS and parts == FAMILIES.classes
    assert not [name for name in set(sys.modules) - modules if name.startswith("fvi_plugins_")]
    own(MINE)
    assert methods.get("My method")  # once it is corrected


def test_what_is_no_plugin_is_named(own, tmp_path, monkeypatch):
    for name, what in (("none.py", "not there"), ("folder.py", "a folder without Python files")):
        (tmp_path / "folder.py").mkdir(exist_ok=True)
        monkeypatch.setenv("FVI_PLUGINS", str(tmp_path / name))
        with pytest.raises(PluginError, match=f"FVI_PLUGINS names .*{name}, which is {what}; give Python files that"):
            methods.get("MAP")


def test_a_stop_is_no_fault_of_the_file(own):
    own("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        methods.get("MAP")
    own(MINE)
    assert methods.get("My method")


def test_a_file_that_another_needs_is_named_itself(own, tmp_path, monkeypatch):
    first, second = own("from fvi_core.methods import get\nget('MAP')\n", "first.py"), own("1 / 0\n", "second.py")
    monkeypatch.setenv("FVI_PLUGINS", os.pathsep.join(map(str, (first, second))))
    with pytest.raises(PluginError, match=r"^FVI_PLUGINS: \S*second.py, line 1: ZeroDivisionError"):
        methods.get("MAP")


def test_a_file_that_imports_its_neighbour_is_told_of_packages(own, tmp_path, monkeypatch):
    own("V = 1\n", "near.py")
    own("import near\n", "first.py")
    monkeypatch.setenv("FVI_PLUGINS", str(tmp_path / "first.py"))
    with pytest.raises(PluginError, match=f"No module named 'near'; make {tmp_path} a package .* and write `from . im"):
        methods.get("MAP")
    (tmp_path / "first.py").rename(tmp_path / "__init__.py")
    monkeypatch.setenv("FVI_PLUGINS", str(tmp_path))
    with pytest.raises(PluginError, match="No module named 'near'; write `from . import near`$"):
        methods.get("MAP")


@pytest.mark.parametrize("line", ["from .near import V", "from . import near", "from ..near import V"])
def test_a_single_file_with_a_relative_import_is_told_of_packages(own, tmp_path, monkeypatch, line):
    own("V = 1\n", "near.py")
    own(f"{line}\n", "first.py")
    advice = rf"; make {tmp_path} a package \(a folder with an __init__.py, named in FVI_PLUGINS\), or join the files"
    with pytest.raises(PluginError, match=f"first.py, line 1: ImportError: attempted relative import.*{advice}"):
        methods.get("MAP")
    if ".." not in line:
        (tmp_path / "first.py").rename(tmp_path / "__init__.py")
        monkeypatch.setenv("FVI_PLUGINS", str(tmp_path))
        methods.get("MAP")


def test_a_broken_file_that_imports_the_catalogue_first_leaves_its_rows(tmp_path):
    (tmp_path / "broken.py").write_text("from fvi_core import methods\nraise RuntimeError('half way')\n")
    code = """
import os
from fvi_core import plugins
try:
    plugins.load()
except plugins.PluginError:
    del os.environ["FVI_PLUGINS"]
from fvi_core import methods
assert {"MAP", "FSVI"} <= methods.catalogue().keys()"""
    environment = os.environ | {"FVI_PLUGINS": str(tmp_path / "broken.py")}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)


def test_the_command_line_prints_one_message(own):
    own("1 / 0\n")
    done = subprocess.run([sys.executable, "-m", "benchmarks", "methods"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: FVI_PLUGINS: ") and "mine.py, line 1: ZeroDivisionError" in done.stderr


def mine():
    methods.get("My method")
    return FAMILIES.classes["mine"]


def test_the_digest_of_a_part_is_that_of_its_file(own):
    path = own(MINE)
    assert source_digest(mine()) == hashlib.sha256(MINE.encode()).hexdigest()[:16]
    path.write_text(MINE + "# changed\n")
    assert source_digest(mine()) == hashlib.sha256(MINE.encode()).hexdigest()[:16]  # of the code that runs


def test_two_files_of_one_name_have_digests_of_their_own(own):
    own(MINE)
    first = source_digest(mine())
    del FAMILIES.classes["mine"], methods._ROWS["My method"]
    own(MINE + "# another\n", "elsewhere/mine.py")
    assert source_digest(mine()) == hashlib.sha256((MINE + "# another\n").encode()).hexdigest()[:16] != first


def anew(cls):
    """Return the digest of a part in another process."""
    module_digest.cache_clear()
    return source_digest(cls)


def test_the_digest_of_a_package_is_of_all_its_python_files(own, tmp_path):
    def digest(**others):
        found = anew(cls)
        for name, text in others.items():
            (tmp_path / "pack" / name).write_text(text)
        return found, anew(cls)

    path = own(MINE, "pack/mine.py")
    cls = mine()
    single, empty = digest(**{"__init__.py": ""})
    assert single == hashlib.sha256(MINE.encode()).hexdigest()[:16] != empty
    (tmp_path / "pack" / "inner").mkdir()
    changes = {"helper.py": "a = 1", "other.py": "", "inner/deep.py": "a = 2", "__init__.py": "#", "mine.py": "# other"}
    found = [empty, *(digest(**{name: text})[1] for name, text in changes.items())]
    assert len({single, *found}) == 1 + len(found)
    assert len(set(digest(**{"notes.txt": "no code"}))) == 1
    path.unlink()
    assert anew(cls) not in found


def test_built_in_parts_have_no_digest():
    assert source_digest(MeanField) is None
    assert all(
        source_digest(cls) is None
        for registry in (FAMILIES, CONTEXTS)
        for cls in registry.classes.values()
        if cls.__module__.startswith("fvi_core.")
    )


def test_a_part_without_a_file_is_refused(own):
    path = own(MINE)
    cls = mine()
    path.unlink()
    with pytest.raises(PluginError, match="mine.py, which defines Mine, cannot be read"):
        source_digest(cls)
    typed = type("Typed", (), {"__module__": "nowhere"})
    with pytest.raises(PluginError, match="Typed is defined in nowhere, which is no file: .* name that in FVI_PLUGINS"):
        source_digest(typed)


ONE = "from fvi_core.methods import Method, add\nadd(Method('{0}', '', 'none', family={{'name': 'point'}}))\n"


def test_a_package_imports_its_own_modules_and_a_folder_is_all_its_files(own, tmp_path, monkeypatch):
    own(ONE.format("Deep"), "pack/inner.py")
    own("from . import inner\n", "pack/__init__.py")
    own(ONE.format("First"), "several/a.py")
    own(ONE.format("Second"), "several/b.py")
    monkeypatch.setenv("FVI_PLUGINS", f"{tmp_path / 'pack'}{os.pathsep}{tmp_path / 'several'}")
    assert list(methods.catalogue())[-3:] == ["Deep", "First", "Second"]


def test_a_fault_inside_a_package_names_its_file_and_nothing_of_it_stays(own, tmp_path, monkeypatch):
    own(ONE.format("Deep") + "1 / 0\n", "pack/inner.py")
    own("from . import inner\n", "pack/__init__.py")
    monkeypatch.setenv("FVI_PLUGINS", str(tmp_path / "pack"))
    for _ in range(2):
        with pytest.raises(PluginError, match=r"^FVI_PLUGINS: \S*inner.py, line 3: ZeroDivisionError"):
            methods.catalogue()
    assert "Deep" not in methods._ROWS


def test_a_copy_of_a_plugin_is_refused_with_its_name(own, tmp_path, monkeypatch):
    first, second = own(ONE.format("Mine"), "first.py"), own(ONE.format("Mine"), "second.py")
    monkeypatch.setenv("FVI_PLUGINS", f"{first}{os.pathsep}{second}")
    with pytest.raises(PluginError, match=f"{second} is the same source as {first}; take one of them out"):
        methods.catalogue()


def install(folder, module, text):
    """An installed package of one module that names itself as a plug-in."""
    (folder / f"{module}.py").write_text(text)
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[fvi_bench.plugins]\nown = {module}\n")


def listed(folder):
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "benchmarks", "methods"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_an_installed_package_is_found_by_its_entry_point(tmp_path):
    install(tmp_path, "outsider", ONE.format("From afar"))
    assert "From afar" in listed(tmp_path).stdout
    (tmp_path / "outsider.py").write_text("1 / 0\n")
    broken = listed(tmp_path)
    assert broken.returncode == 2 and broken.stderr.count("\n") == 1
    assert (
        "plug-in of package outsider: " in broken.stderr and "outsider.py, line 1: ZeroDivisionError" in broken.stderr
    )
    assert "or uninstall outsider" in broken.stderr
    (tmp_path / "outsider.py").unlink()
    assert "names the module outsider, which does not exist" in listed(tmp_path).stderr


@pytest.mark.parametrize(
    ("body", "message"),
    [("raise OSError", r"\(its message cannot be had: OSError\)"), ("return 'a \\ud800'", r"Mute: a \\ud800;")],
)
def test_an_error_whose_message_cannot_be_printed_is_named_by_its_place(own, body, message):
    path = own(f"class Mute(Exception):\n    def __str__(self):\n        {body}\n\nraise Mute\n")
    with pytest.raises(PluginError, match=message) as fault:
        methods.catalogue()
    assert f"{path}, line 5: Mute: " in str(fault.value) and str(fault.value).encode()
