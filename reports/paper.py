"""One PDF of every table and figure that has records, of the methods, and of the differences with their causes."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import files
from benchmarks.errors import BenchmarkError
from benchmarks.records.provenance import code
from benchmarks.suite import Suite
from benchmarks.tables.notes import Note
from benchmarks.tables.spec import UNREDUCED
from reports.agreement import RULE as AGREEMENT
from reports.captions import heading, notes
from reports.choice import Choice
from reports.entries import VERDICTS
from reports.figures import FIGURES, Drawn
from reports.figures.processes import drawing
from reports.findings.page import chapter, of_book
from reports.labels import name as metric_name
from reports.latex import latex, listed, place
from reports.page.book import Book, Sheet
from reports.page.methods import ALWAYS, CHOICES, Methods
from reports.records import Records
from reports.significance import RULE
from reports.tex import escape, flowing, mathematics

PAGE = (18.0, 25.7)
PACKAGES = (
    "booktabs",
    "threeparttable",
    "mathptmx",
    "geometry",
    "graphicx",
    "placeins",
    "longtable",
    "array",
    "xcolor",
    "hyperref",
)
INSTALL = "apt-get install texlive-latex-recommended texlive-latex-extra texlive-fonts-recommended"
RUNS = 3  # the table of contents has its own length from the second, and so its numbers from the third
MAIN = "paper.tex"
PREAMBLE = r"""\documentclass[10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{mathptmx}
\usepackage{booktabs,threeparttable,longtable,array,graphicx,placeins,xcolor}
\usepackage[a4paper,textwidth=18cm,textheight=25.7cm,footskip=8mm]{geometry}
\usepackage[colorlinks,linkcolor=blue!50!black,urlcolor=blue!50!black]{hyperref}
\setlength{\parindent}{0pt}\setlength{\parskip}{4pt}\emergencystretch=3em
\setlength{\fboxsep}{0pt}\raggedbottom
\newsavebox{\figurebox}
% A figure as large as it is, or as the page allows.
\newcommand{\fitted}[1]{\sbox{\figurebox}{\includegraphics{#1}}%
  \ifdim\wd\figurebox>\linewidth\sbox{\figurebox}{\includegraphics[width=\linewidth]{#1}}\fi
  \ifdim\ht\figurebox>0.82\textheight\sbox{\figurebox}{\includegraphics[height=0.82\textheight]{#1}}\fi
  \usebox{\figurebox}}
% A figure that stays below its heading, on the same page.
\makeatletter
\setlength{\@fptop}{0pt}
\newenvironment{withheading}{\par\bigskip\noindent\begin{minipage}{\linewidth}\def\@captype{figure}}{\end{minipage}\par}
\makeatother
"""


@dataclass(frozen=True)
class Paper:
    """Result: the PDF, its source, the numbers of tables and figures, and files that do not count."""

    pdf: Path
    source: Path
    tables: int
    figures: int
    problems: tuple[str, ...]


def write(suite: Suite, records: Records, out: Path, say: Callable[[str], None] = print) -> Paper:
    """Write the source into a folder and compile it there. Raises BenchmarkError without a working LaTeX."""
    _ = records.digests  # before any record is read, so that no stamp is newer than its figure
    say("Tables: every record is read")
    methods = Methods(Book(suite, records))
    with drawing(list(FIGURES.values()), suite, records, out, None, None, (".pdf",)) as drawn:
        return _write(methods, out, drawn, say)


def _write(methods: Methods, out: Path, figures: Iterable[Drawn], say: Callable[[str], None]) -> Paper:
    book = methods.book
    shown = [sheet for sheet in book.flat if sheet.filled]
    parts = [
        _front(book, len(shown)),
        chapter(of_book(book)),
        _how_to_read(),
        r"\section{Tables}",
        _without_records(book),
    ]
    noted: dict[Note, str] = {}
    for sheet in shown:
        name = f"tables/{sheet.table.name}-{sheet.protocol}.tex"
        files.write(out / name, latex(sheet.result, Choice(page=PAGE, rules=False), _notes(sheet, noted)))
        parts.append(rf"\clearpage\subsection{{{_title(sheet)}}}" + f"\n\\input{{{name}}}\n\\FloatBarrier")
    drawn = list(_counted(figures, say))
    parts += [r"\section{Figures}", *(_figure(each) for each in drawn if each.files)]
    parts += [_causes(book), _methods(methods), r"\end{document}"]
    source = out / MAIN
    files.write(source, "\n\n".join([PREAMBLE, *parts]) + "\n")
    problems = dict.fromkeys([*book.problems, *(problem for each in drawn for problem in each.problems)])
    pdf = compile_pdf(source, say)
    return Paper(pdf, source, len(shown), sum(bool(each.files) for each in drawn), tuple(problems))


def _notes(sheet: Sheet, noted: dict[Note, str]) -> list[str]:
    """Return the notes that no table before has, in full, and which tables have the others."""
    by_kind = notes(sheet.result)
    before = sorted({noted[note] for each in by_kind.values() for note in each if note in noted})
    new = {kind: [note for note in each if note not in noted] for kind, each in by_kind.items()}
    noted |= dict.fromkeys((note for each in new.values() for note in each), place(sheet.result))
    tables = f"table{'s' * (len(before) > 1)} " + ", ".join(rf"\ref{{{name}}}" for name in before)
    return [*listed(new, more=True), *([f"Further notes that hold here stand below {tables}."] if before else [])]


def compile_pdf(source: Path, say: Callable[[str], None] = print) -> Path:
    """Compile a LaTeX file to a PDF beside it. Raises BenchmarkError that names what to install, or LaTeX's first
    error."""
    program = shutil.which("pdflatex")
    lacking: list[str] = []
    if program and shutil.which("kpsewhich"):
        known = subprocess.run(["kpsewhich", *(f"{p}.sty" for p in PACKAGES)], capture_output=True, text=True).stdout
        lacking = [p for p in PACKAGES if f"/{p}.sty" not in known]
    if program is None or lacking:
        what = "pdflatex" if program is None else f"the LaTeX packages {', '.join(lacking)}"
        raise BenchmarkError(
            f"{source}: written, but not made into a PDF: expected {what}, found none; install TeX Live (Debian and "
            f"Ubuntu: {INSTALL}) and run the same command again, or compile the folder elsewhere"
        )
    command = [program, "-halt-on-error", "-interaction=nonstopmode"]
    for run in range(RUNS):
        say(f"pdflatex, run {run + 1} of {RUNS}")
        draft = ["-draftmode"] if run < RUNS - 1 else []
        done = subprocess.run([*command, *draft, source.name], cwd=source.parent, capture_output=True)
        if done.returncode:
            lines = done.stdout.decode("latin-1").splitlines()
            first = next((line for line in lines if line.startswith("!")), "no message")
            raise BenchmarkError(f"{source}: pdflatex stopped: {first}; all it says is in {source.with_suffix('.log')}")
    return source.with_suffix(".pdf")


def _front(book: Book, tables: int) -> str:
    """Return the introduction: contents and sources of the PDF."""
    ended = [
        str(record["provenance"].get("finished") or "")
        for record in book.records.store.records(curves=False)
        if not isinstance(record, Exception)
    ]
    commit, dirty = code()
    rows = {
        "commit": commit + (" (with changes that are not committed)" if dirty else ""),
        "records": f"{len(ended):,}",
        "newest record": max(ended, default="") or "none",
        "tables with records": str(tables),
    }
    about = "".join(rf"{name} & {flowing(value)} \\" for name, value in rows.items())
    return (
        r"\begin{document}\hypersetup{pageanchor=false}\begin{titlepage}\centering\vspace*{5cm}"
        r"{\LARGE\bfseries Function-space variational inference for Bayesian neural networks\par}\vspace{6mm}"
        r"{\Large Tables, figures, methods and differences of a benchmark suite\par}\vspace{12mm}"
        r"{\large Every table that has records of its runs, beside the numbers that five papers published; every "
        r"figure that can be drawn of them; what each method computes; where numbers differ, and what is shown to make "
        r"them differ. All of it is made from the records alone, by one command.\par}\vspace{15mm}"
        rf"\begin{{tabular}}{{l@{{\quad}}p{{11cm}}}}{about}\end{{tabular}}"
        r"\end{titlepage}\hypersetup{pageanchor=true}\tableofcontents\clearpage"
    )


def _how_to_read() -> str:
    marks = "; ".join(f"{letter}: {meaning}" for letter, meaning in VERDICTS.values())
    paragraphs = (
        "Each number is a mean with its standard error over runs. Numbers of protocol paper follow the paper as far as "
        "it and its code tell how; those of protocol short are of reduced runs, which their titles and notes say, and "
        "are not comparable with published ones. A dash is a number that is not there; its mark says why.",
        RULE,
        AGREEMENT,
        f"Marks beside differences: {marks}.",
    )
    return "\n\n".join([r"\section{How to read the tables}", *map(flowing, paragraphs)])


def _title(sheet: Sheet) -> str:
    reduced = "" if sheet.protocol in UNREDUCED else f" (reduced: protocol {sheet.protocol})"
    return escape(f"{sheet.table.name}: {heading(sheet.result)}{reduced}")


def _without_records(book: Book) -> str:
    empty = [
        name for name, sheets in book.sheets.items() if not any(s.filled for s in book.flat if s.table.name == name)
    ]
    return flowing(f"Tables without records, which are not printed: {', '.join(empty)}.") if empty else ""


def _counted(figures: Iterable[Drawn], say: Callable[[str], None]) -> Iterator[Drawn]:
    for number, drawn in enumerate(figures, start=1):
        say(f"Figure {number} of {len(FIGURES)}: {drawn.name}" + ("" if drawn.files else " (no records)"))
        yield drawn


def _figure(drawn: Drawn) -> str:
    figure, file = FIGURES[drawn.name], drawn.files[0]
    protocol = file.stem.removeprefix(f"{drawn.name}-")
    reduced = "" if protocol in UNREDUCED else " (reduced)"
    sources = [f"table {figure.table}"] if figure.table else ["computed, not trained"]
    sources += [f"after figure {figure.number} of {figure.paper}"] if figure.number else []
    words = " ".join(
        (f"{figure.title} ({', '.join(sources)}), protocol {protocol}{reduced}.", *figure.remarks(protocol))
    )
    return (
        rf"\begin{{withheading}}\subsection{{{escape(drawn.name)}}}\centering"
        rf"\fitted{{figures/{file.name}}}\caption{{{escape(words)}}}\end{{withheading}}"
    )


def _causes(book: Book) -> str:
    """Return the differing cells of published tables: those whose cause an experiment shows, and the others."""
    parts = [
        r"\section{Differences and their causes}",
        flowing(
            "Of the cells of protocol paper that differ from published numbers: those whose cause an experiment of "
            "this project shows, since a row that differs in nothing else reproduces the published number; then the "
            "others. What is only supposed is in the notes of the tables."
        ),
    ]
    for sheet in book.flat:
        if sheet.protocol == "paper" and sheet.table.is_published:
            parts += _causes_of(book, sheet)
    return "\n\n".join(parts)


def _causes_of(book: Book, sheet: Sheet) -> list[str]:
    causes: Counter[tuple[str, str, str, str]] = Counter()
    others: dict[str, list[str]] = {}
    several = len({column.cell.metric for column in sheet.table.columns}) > 1
    for cell in sheet.result.flat:
        if cell.outcome is None or not cell.outcome.differs:
            continue
        cause = book.cause(cell, sheet.protocol)
        if cause:
            causes[cell.row.label, cause.cause, cause.row, cause.shown_by] += 1
        else:
            metric = f" {metric_name(cell.column.cell.metric)}" if several else ""
            others.setdefault(cell.row.label, []).append(f"{cell.column.label}{metric} ({cell.outcome.word})")
    if not causes and not others:
        return []
    items = [
        rf"\item \textbf{{{escape(label)}}}: {flowing(why)}. {_cells(count)}, "
        rf"shown by {flowing(f'{row}, table {table}')}."
        for (label, why, row, table), count in causes.items()
    ]
    items += [
        rf"\item \textbf{{{escape(label)}}}: no cause shown. {_cells(len(cells))}: {flowing(', '.join(cells))}."
        for label, cells in others.items()
    ]
    return [rf"\subsection{{{_title(sheet)}}}", r"\begin{itemize}\sloppy", *items, r"\end{itemize}"]


def _cells(count: int) -> str:
    return "One cell" if count == 1 else f"{count} cells"


def _methods(methods: Methods) -> str:
    kinds = [rf"{_symbol(symbol)} {kind}: {question}" for kind, (symbol, question) in list(CHOICES.items())[:ALWAYS]]
    parts = [
        r"\clearpage\appendix\section{Methods}",
        r"Every method maximises $\mathrm{E}_{f\sim q}[\log p(y\mid f(X))] - w\,D(q(f(C))\,\Vert\,p(f(C)))$ and is "
        rf"told apart from the others by four choices ({'; '.join(kinds)}).",
    ]
    for name, row in methods.catalogue.items():
        paper = f" ({row.paper})" if row.paper and row.paper != "all" else ""
        about = row.description.replace("``", "")
        parts.append(rf"\subsection{{{escape(name)}}} {flowing(about[:1].upper() + about[1:] + paper)}.")
        parts.append(r"\begin{itemize}\setlength{\itemsep}{0pt}\sloppy" + _chosen(methods, name) + r"\end{itemize}")
    return "\n\n".join(parts)


def _chosen(methods: Methods, name: str) -> str:
    items = []
    for choice in methods.choices(name):
        options = f" ({choice.options})" if choice.options else ""
        sentences = [rf"\item {_symbol(choice.symbol)} \textbf{{{choice.kind}}}: {flowing(choice.part + options)}."]
        if choice.equation:
            sentences.append(mathematics(choice.equation) + (f" [{flowing(choice.source)}]." if choice.source else "."))
        elif choice.about:
            sentences.append(flowing(choice.about.replace("``", "")))
        items.append(" ".join(sentences))
    return "\n".join(items)


def _symbol(symbol: str) -> str:
    return mathematics(symbol) if symbol else ""


def counts(paper: Paper) -> str:
    """Return the numbers of tables and figures, and the size."""
    return f"{paper.tables} tables, {paper.figures} figures, {paper.pdf.stat().st_size / 1e6:.1f} MB"
