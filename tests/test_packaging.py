"""Makefile, pyproject.toml and constraints.txt say the same things, and a recipe ends as its runs did."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import benchmarks.sweep.begin
from benchmarks.sweep.slurm.submit import ENVIRONMENT

ROOT = Path(__file__).resolve().parents[1]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = re.findall(r"^([a-z][a-z%-]*):(?!=)", MAKEFILE, re.MULTILINE)
OPTIONS = re.findall(r"^([A-Z_]+) *\?= *\S*##", MAKEFILE, re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def plain_environment() -> dict[str, str]:
    """Return the environment without the variables of a make that runs these tests."""
    return {k: v for k, v in os.environ.items() if k not in (*OPTIONS, "MAKEFLAGS", "MFLAGS", "MAKELEVEL")}


def make(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run make as a person would, whatever make this test itself runs under."""
    return subprocess.run(["make", *arguments], cwd=cwd, env=plain_environment(), capture_output=True, text=True)


def calls(checkout: Path) -> list[str]:
    path = checkout / "calls"
    return path.read_text().splitlines() if path.exists() else []


def test_help_lists_every_target_and_option() -> None:
    text = make("help").stdout
    assert {"table-%", "tables", "figures", "coverage", "data", "status", "test", "bench", "clean"} <= set(TARGETS)
    for target in TARGETS:
        assert re.search(rf"^  {re.escape(target.replace('%', '<name>'))} +\w", text, re.MULTILINE), target
    assert {"PROTOCOL", "SEEDS", "EXECUTOR", "WORKERS", "DRY_RUN"} <= set(OPTIONS)
    for option in OPTIONS:
        assert re.search(rf"^  {option}= +\w", text, re.MULTILINE), option


def test_options_become_flags_of_run_and_table(checkout: Path) -> None:
    options = ("PROTOCOL=smoke", "SEEDS=2", "EXECUTOR=pool", "WORKERS=3")
    done = make("table-digits", *options, cwd=checkout)
    assert done.returncode == 0, done.stderr
    assert calls(checkout) == [
        "benchmarks run digits --protocol smoke --seeds 2 --executor pool --workers 3",
        "reports table digits --protocol smoke --seeds 2",
    ]


def test_the_demonstration_takes_seeds_and_workers(checkout: Path) -> None:
    assert make("demo", "SEEDS=1", "WORKERS=2", cwd=checkout).returncode == 0
    assert calls(checkout) == ["benchmarks demo --seeds 1 --workers 2"]


def test_a_method_is_a_row_more_of_one_table(checkout: Path) -> None:
    assert make("table-digits", "METHOD=My method", cwd=checkout).returncode == 0
    assert calls(checkout) == ["benchmarks run digits --also My method", "reports table digits --also My method"]
    refused = make("tables", "METHOD=My method", cwd=checkout)
    assert refused.returncode != 0 and "METHOD is for one table" in refused.stderr and len(calls(checkout)) == 2


@pytest.mark.parametrize("value, run", [("1", False), ("yes", False), ("0", True), ("", True)])
def test_a_dry_run_prints_no_table(checkout: Path, value: str, run: bool) -> None:
    assert make("table-digits", f"DRY_RUN={value}", cwd=checkout).returncode == 0
    assert calls(checkout) == (
        ["benchmarks run digits", "reports table digits"] if run else ["benchmarks run digits --dry-run"]
    )


@pytest.mark.parametrize("target", ["verify", "demo", "data", "figures"])
def test_a_dry_run_is_refused_where_it_would_be_ignored(checkout: Path, target: str) -> None:
    refused = make(target, "DRY_RUN=1", cwd=checkout)
    assert refused.returncode != 0 and "DRY_RUN is for the targets table-<name> tables" in refused.stderr
    mixed = make("table-digits", target, "DRY_RUN=1", cwd=checkout)
    assert mixed.stderr == refused.stderr, "it would do what was only to be shown"
    words = ["env", "DRY_RUN=1", "make", target]
    inherited = subprocess.run(words, cwd=checkout, env=plain_environment(), capture_output=True, text=True)
    assert inherited.stderr == refused.stderr
    assert calls(checkout) == [] and make(target, "DRY_RUN=0", cwd=checkout).returncode == 0


@pytest.mark.parametrize(
    "words, targets",
    [
        ("page SEEDS=3", "SEEDS is for the targets demo table-<name> tables figures status"),
        ("coverage PROTOCOL=short", "PROTOCOL is for the targets table-<name> tables figures status"),
        ("demo PROTOCOL=short", "PROTOCOL is for the targets table-<name> tables figures status"),
        ("figures WORKERS=2", "WORKERS is for the targets demo table-<name> tables verify test"),
        ("status METHOD=MAP", "METHOD is for the targets table-<name> tables"),
        ("verify EXECUTOR=slurm", "EXECUTOR is for the targets table-<name> tables"),
        ("figures ANYWAY=1", "ANYWAY is for the targets table-<name> tables"),
        ("status FIGURES=digits-roc", "FIGURES is for the targets figures"),
        ("bench N=3", "N is for the targets verify"),
    ],
)
def test_an_option_that_no_target_takes_is_refused(checkout: Path, words: str, targets: str) -> None:
    refused = make(*words.split(), cwd=checkout)
    assert refused.returncode != 0 and f"{targets}; leave it out" in refused.stderr and calls(checkout) == []
    target, option = words.split()
    for taken in (f"{option.split('=')[0]}=", "PYTHON=python3"):
        assert make(target, taken, cwd=checkout).returncode == 0
    assert make(target, "figures", "table-digits", "verify", option, cwd=checkout).returncode == 0, (
        "one target takes it"
    )


@pytest.mark.parametrize("value, flag", [("1", " --anyway"), ("0", ""), ("", "")])
def test_what_takes_long_may_be_begun_anyway(checkout: Path, value: str, flag: str) -> None:
    assert make("table-digits", f"ANYWAY={value}", cwd=checkout).returncode == 0
    assert calls(checkout) == [f"benchmarks run digits{flag}", "reports table digits"]


@pytest.mark.parametrize("status, printed", [(0, True), (1, True), (2, False), (4, False), (130, False)])
def test_failed_runs_fail_make_after_the_table_is_printed(checkout: Path, status: int, printed: bool) -> None:
    (checkout / "benchmarks.status").write_text(str(status))
    assert (make("table-digits", cwd=checkout).returncode == 0) is (status == 0)
    assert ("reports table digits" in calls(checkout)) is printed


@pytest.mark.parametrize(
    "command, flags",
    [
        ("benchmarks run", "--protocol --seeds --executor --workers --dry-run"),
        ("benchmarks tables", ""),
        ("benchmarks status", "--protocol --seeds"),
        ("reports table", "--protocol --seeds"),
        ("reports tables", "--protocol --seeds"),
        ("reports figures", "--protocol --seeds"),
        ("reports coverage", ""),
    ],
)
def test_commands_of_the_recipes_take_their_flags(command: str, flags: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command.split(), "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for flag in flags.split():
        assert flag in done.stdout, f"python -m {command} has no {flag}"


def test_help_names_every_executor() -> None:
    line = re.search(r"^EXECUTOR.*", MAKEFILE, re.MULTILINE)[0]
    assert all(name in line for name in benchmarks.sweep.begin.EXECUTORS)


def test_a_failing_report_fails_make(checkout: Path) -> None:
    (checkout / "reports.status").write_text("1")
    assert make("table-digits", cwd=checkout).returncode != 0


@pytest.mark.parametrize("options, names", [((), "digits longer-5"), (("PROTOCOL=smoke",), "digits")])
def test_tables_runs_every_table_that_has_the_protocol(checkout: Path, options: tuple[str, ...], names: str) -> None:
    (checkout / "benchmarks.status").write_text("1")
    assert make("tables", "SEEDS=2", *options, cwd=checkout).returncode != 0
    flags = "--protocol smoke --seeds 2" if options else "--seeds 2"
    assert calls(checkout) == ["benchmarks tables", f"benchmarks run {names} {flags}", f"reports tables {flags}"]


def test_tables_without_any_that_has_the_protocol_names_those_there_are(checkout: Path) -> None:
    refused = make("tables", "PROTOCOL=mok", cwd=checkout)
    assert refused.returncode != 0 and calls(checkout) == ["benchmarks tables"]
    assert "'mok'" in refused.stderr and "longer-5" in refused.stderr


def test_a_misspelt_option_is_refused(checkout: Path) -> None:
    refused = make("table-digits", "PROTOCL=smoke", cwd=checkout)
    assert refused.returncode != 0 and calls(checkout) == []
    assert "PROTOCL" in refused.stderr and all(option in refused.stderr for option in OPTIONS)


@pytest.mark.parametrize("interpreter", ["old", "absent"])
def test_an_unsuitable_interpreter_is_named(checkout: Path, interpreter: str) -> None:
    (checkout / ".venv" / ".ready").unlink()
    old = checkout / "old"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2 || exit 1\n')
    old.chmod(0o755)
    refused = make("status", f"PYTHON=./{interpreter}", cwd=checkout)
    assert refused.returncode != 0 and calls(checkout) == []
    assert "Python 3.11 or later" in refused.stderr and "PYTHON=" in refused.stderr
    assert ("3.9.2" if interpreter == "old" else "./absent") in refused.stderr


def test_the_environment_of_another_checkout_is_not_emptied(checkout: Path, tmp_path: Path) -> None:
    shared = (checkout / ".venv").rename(tmp_path / "of another")
    (checkout / ".venv").symlink_to(shared)
    os.utime(shared / ".ready", (0, 0))
    stub = checkout / "interpreter"
    stub.write_text('#!/bin/sh\n[ "$1" = -c ] || exit 3\n')
    stub.chmod(0o755)
    assert make("status", f"PYTHON={stub}", cwd=checkout).returncode
    assert (shared / "bin" / "python").is_file() and not (checkout / ".venv").exists()


def test_constraints_pin_every_direct_dependency_within_its_range() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    extras = PROJECT["optional-dependencies"]
    for text in PROJECT["dependencies"] + extras["fast"] + extras["suite"] + extras["test"]:
        requirement = Requirement(text)
        version = pins.get(canonicalize_name(requirement.name))
        assert version is not None, f"constraints.txt does not pin {requirement.name}"
        assert version in requirement.specifier, f"{requirement} does not allow the pinned {version}"


@pytest.mark.parametrize(
    "path", ["README.md", "CONTRIBUTING.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/*.md"))]
)
def test_documents_link_only_to_what_is_there(path: str) -> None:
    text = (ROOT / path).read_text()
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, place = link.partition("#")
        target = (ROOT / path).parent / file if file else ROOT / path
        assert link.startswith("http") or target.exists(), f"{path} links to {link}"
        if place and not link.startswith("http"):
            heads = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert place in {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}, (
                f"{path}: {link}"
            )


def test_every_module_that_make_runs_can_be_run() -> None:
    named = set(re.findall(r"\$\(RUN\) ([a-z_.]+)", (ROOT / "Makefile").read_text())) - {"pytest"}
    assert named >= {"benchmarks", "reports", "datasets", "tools.cost", "tools.cluster"}
    for name in named:
        spec = importlib.util.find_spec(name)
        run = spec and (importlib.util.find_spec(f"{name}.__main__") if spec.submodule_search_locations else spec)
        assert run, f"python -m {name} would not run"
        assert '__name__ == "__main__"' in Path(run.origin or "").read_text(), f"python -m {name} would do nothing"


def test_array_tasks_have_the_environment_that_make_gives() -> None:
    exported = dict(re.findall(r"^export (\w+) \?= (.*)$", MAKEFILE, re.MULTILINE))
    assert exported | {"FVI_OFFLINE": "1"} == ENVIRONMENT
