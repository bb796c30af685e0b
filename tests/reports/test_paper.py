"""The paper: all that has records in one PDF, within its pages; and its source where there is no pdflatex."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.records.provenance import ROOT
from benchmarks.suite import Suite
from reports import paper
from reports.figures import Drawn
from reports.page.methods import equations
from reports.records import Records
from reports.tex import mathematics
from tests.reports.compiling import compiled, faults
from tests.reports.fakes import Cell, Column, FakeSuite, Row, fake_table

SIZES = ((497, 300), (245, 160), (497, 760), (900, 200))  # points: as figures have them, and larger than a page


def blank(path: Path, width: int, height: int) -> None:
    """An empty page of that size as PDF."""
    objects = (
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 {width} {height}]>>",
    )
    text, places = "%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        places.append(len(text))
        text += f"{number} 0 obj{each}endobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    start = len(text)
    text += f"xref\n0 4\n0000000000 65535 f \n{table}trailer<</Size 4/Root 1 0 R>>\nstartxref\n{start}\n%%EOF"
    path.write_text(text)


def stand_ins(figures: list, suite: Any, records: Any, out: Path, *more: Any) -> Iterator[Drawn]:
    """Empty figures of the sizes that there are, in place of real ones: drawing those is tested elsewhere."""
    (out / "figures").mkdir(parents=True)
    for number, figure in enumerate(figures):
        file = out / "figures" / f"{figure.name}-{'short' if number % 5 == 4 else 'paper'}.pdf"
        blank(file, *SIZES[number % len(SIZES)])
        yield Drawn(figure.name, (file,))


def test_the_paper_of_all_records_fits_its_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "drawing", lambda *arguments: nullcontext(stand_ins(*arguments)))
    monkeypatch.setattr(paper, "compile_pdf", lambda source, say: source)
    suite, said = Suite(), list[str]()
    made = paper.write(suite, Records(ROOT / "results"), tmp_path, said.append)
    source = made.source.read_text()
    printed = re.findall(r"\\input\{tables/(.*)\.tex\}", source)
    assert made.tables == len(printed) > 30 and made.figures == source.count(r"\begin{withheading}") > 40
    empty = re.search(r"Tables without records, which are not printed: (.*)\.", source)
    named = source.replace(r"\allowbreak{}", "")
    assert empty and all(name in named for name in suite.table_names())
    assert all(rf"\subsection{{{method}}}" in source.replace(r"\_", "_") for method in suite.catalogue())
    assert any("(reduced: protocol short)" in line for line in source.splitlines())
    assert "50 draws in prediction; the paper states 10" in source and len(said) > 40
    log = compiled(made.source, runs=2, packages=paper.PACKAGES)
    assert not faults(log)
    assert made.source.with_suffix(".toc").read_text().count("contentsline") > len(printed) + made.figures


def test_a_note_stands_once_in_the_paper(
    write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper, "drawing", lambda *arguments: nullcontext([]))
    monkeypatch.setattr(paper, "compile_pdf", lambda source, say: source)
    results = write("MAP", "boston", {("", "rmse"): [1.0, 2.0]})
    two = [
        fake_table(
            name, (Row("MAP", None, "MAP"),), (Column(Cell("boston", "", "rmse"), "boston"),), n_runs=2,
            notes={"paper": ("**Both** have this.", f"**Own** of {name}.")},
        )
        for name in ("one", "two")
    ]  # fmt: skip
    paper.write(FakeSuite(*two), Records(results), tmp_path / "paper", lambda words: None)
    one, other = ((tmp_path / "paper" / "tables" / f"{name}-paper.tex").read_text() for name in ("one", "two"))
    assert r"\textbf{Both} have this. \textbf{Own} of one." in one and "stand below" not in one
    assert "have this" not in other and r"\textbf{Own} of two." in other
    assert r"Further notes that hold here stand below table \ref{tab:one}." in other


def test_page_numbers_know_how_long_the_table_of_contents_is(tmp_path: Path) -> None:
    sections = "".join(rf"\section{{S{k}}}\label{{s{k}}}\pageref{{s{k}}}\clearpage" + "\n" for k in range(90))
    source = tmp_path / "long.tex"
    source.write_text(
        "\n".join(
            [r"\documentclass{article}", r"\begin{document}\tableofcontents\clearpage", sections, r"\end{document}"]
        )
    )
    compiled(source, packages=())
    for made in ("aux", "toc", "pdf"):
        source.with_suffix(f".{made}").unlink()
    assert paper.compile_pdf(source, lambda words: None).stat().st_size > 1000
    assert "may have changed" not in source.with_suffix(".log").read_text(encoding="latin-1")


def test_without_pdflatex_the_source_is_written_and_the_message_says_what_to_install(
    write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = write("MAP", "boston", {("", "rmse"): [1.0, 2.0]})
    table = fake_table("mine", (Row("MAP", None, "MAP"),), (Column(Cell("boston", "", "rmse"), "boston"),), n_runs=2)
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(BenchmarkError, match="found none; install TeX Live .*texlive-fonts-recommended"):
        paper.write(FakeSuite(table), Records(results), tmp_path / "paper", lambda words: None)
    assert r"\input{tables/mine-paper.tex}" in (tmp_path / "paper" / "paper.tex").read_text()
    assert r"1 & .50 & $\pm$\,0 & .50" in (tmp_path / "paper" / "tables" / "mine-paper.tex").read_text()


def test_every_equation_is_set() -> None:
    for (kind, part), (equation, _) in equations().items():
        assert "?" not in mathematics(equation) and mathematics(equation).isascii(), (kind, part)
    assert mathematics("f_{wₛ} ~ N(w̄, sᵢ²)") == r"$f_{w_{s}}$ $\sim $ $N(\bar{w},$ $s_{i}^{2})$"
