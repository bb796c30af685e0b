"""Findings for docs/findings.md, the README, the terminal and the PDF."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from fvi_core.telling import plural
from reports.findings.verdicts import MEANINGS, Finding, every
from reports.findings.words import (
    COUNTS,
    RULE,
    RULE_OF_FILE,
    by_paper,
    by_records,
    by_verdict,
    caveats,
    counts,
    details,
    flat,
    reservations,
    summary,
)
from reports.marks import anchor, escaped, grid
from reports.page.book import Book
from reports.tex import escape, flowing

RENEW = ".venv/bin/python -m reports findings"
START, END = "<!-- findings: python -m reports findings -->\n", "<!-- end of findings -->\n"
HEADER = ("claim", "by the paper's own numbers", "by our records")
HEADER_OF_FILE = ("claim", "by published numbers", "by the records")
Found = Mapping[str, Sequence[Finding]]


def of_book(book: Book) -> dict[str, list[Finding]]:
    """Return both verdicts on every claim, from aggregated tables."""
    return every(book.suite, lambda name, protocol: book.result(book.suite.table(name), protocol))


def page(findings: Found) -> str:
    """Return docs/findings.md."""
    introduction = (
        "# Findings: the papers' claims, by their own numbers and by our records\n\n"
        f"    {RENEW}\n\nwrites this page from the records and from `reports/claims/`.\n"
    )
    parts = [introduction, *(f"{sentence}\n" for sentence in _sentences(findings))]
    parts.append("\n".join(f"- *{verdict}*: {words}" for verdict, words in MEANINGS.items()) + "\n")
    linked = [
        (f"[{row[0]}](#{anchor(row[0])})" if row[0] in findings else row[0], *row[1:]) for row in counts(findings)
    ]
    parts.append(grid(COUNTS, linked))
    parts += [f"## {paper}\n\n{_grid(each, HEADER)}" for paper, each in findings.items()]
    return "\n".join(parts)


def page_of_file(findings: Sequence[Finding], command: str) -> str:
    """Return the page of the claims of a user's file, with the command that writes it."""
    parts = ("# Claims", f"    {command}", _verdicts(findings), RULE_OF_FILE, _grid(findings, HEADER_OF_FILE))
    return "\n\n".join(parts)


def table(findings: Found) -> str:
    """Return the table of the README: the claims that matter most."""
    lines = []
    for finding in flat(findings):
        if finding.claim.main:
            where = escaped(finding.claim.place.partition(': "')[0])
            claim = f"{escaped(finding.claim.words)} ({finding.claim.paper}, {where})"
            lines.append((claim, by_paper(finding), escaped(by_records(finding))))
    return grid(HEADER, lines)


def readme(text: str, findings: Found) -> str:
    """Return the README's text with its table renewed; unchanged without the marks around the table."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    sentences = (sentence.partition(": ") for sentence in summary(flat(findings)))
    new = "".join(f"* **{lead}:** {words}\n" for lead, _, words in sentences)
    new += f"\nThe claims that matter most; [docs/findings.md](docs/findings.md) has every one:\n\n{table(findings)}"
    return before + start + new + end + after if start and end else text


def text(findings: Found, width: int, paper: str = "") -> str:
    """Return the terminal's text: the sentences, and the claims of a paper or those that matter most."""
    listed = findings[paper] if paper else [each for each in flat(findings) if each.claim.main]
    return _listed(summary(flat(findings)), listed, width)


def text_of_file(findings: Sequence[Finding], width: int) -> str:
    """Return the terminal's text of the claims of a user's file."""
    return _listed([_verdicts(findings)], findings, width)


def _listed(sentences: Iterable[str], findings: Iterable[Finding], width: int) -> str:
    lines = [line for sentence in sentences for line in textwrap.wrap(sentence, width)]
    for each in findings:
        lines += ["", *textwrap.wrap(f"{each.claim.id}: {each.claim.words}", width)]
        for label, words in (("paper", by_paper(each)), ("ours", by_records(each)), ("", details(each))):
            lines += textwrap.wrap(words, width, initial_indent=f"  {label:<7}", subsequent_indent=" " * 9)
    return "\n".join(lines) + "\n"


def chapter(findings: Found) -> str:
    """Return the chapter of the PDF: the sentences on all claims, the counts, and a table of claims for each paper."""
    parts = [r"\section{Findings}", *map(flowing, _sentences(findings)), _counts(findings)]
    for paper, each in findings.items():
        parts.append(rf"\subsection{{{escape(paper)}}}{{\small{_longtable(each, HEADER)}}}")
    return "\n\n".join(parts) + "\n\\clearpage"


def tex_of_file(findings: Sequence[Finding]) -> str:
    """Return the claims of a user's file as LaTeX, for packages array, booktabs and longtable."""
    return f"% {_verdicts(findings)}\n{_longtable(findings, HEADER_OF_FILE)}\n"


def _longtable(findings: Iterable[Finding], header: tuple[str, ...]) -> str:
    lines = [
        rf"{flowing(f.claim.words)} {{\footnotesize {flowing(_place(f))} [{escape(f.claim.id)}] "
        rf"{flowing(caveats(f))}}} & {_led(by_paper(f))} & {_led(by_records(f))}. "
        rf"{flowing(details(f))} \\\addlinespace"
        for f in findings
    ]
    head = " & ".join(map(escape, header))
    return (
        r"\begin{longtable}{@{}*{3}{>{\raggedright\arraybackslash}p{0.31\linewidth}}@{}}"
        rf"\toprule {head} \\\midrule\endhead" + "\n" + "\n".join(lines) + "\n" + r"\bottomrule\end{longtable}"
    )


def _place(finding: Finding) -> str:
    """Return where a claim stands, as a sentence; empty without a place."""
    return f"{finding.claim.place}." if finding.claim.place else ""


def _sentences(findings: Found) -> tuple[str, ...]:
    """Return what stands before the claims where there is room for all of it."""
    every = flat(findings)
    return (*summary(every), reservations(every), RULE)


def _verdicts(findings: Sequence[Finding]) -> str:
    """Count the claims of a user's file by verdict."""
    return f"{plural(len(findings), 'claim')}, by the records: {by_verdict(findings)}."


def _grid(findings: Iterable[Finding], header: tuple[str, ...]) -> str:
    return grid(header, [(_claim(each), escaped(by_paper(each)), _records(each)) for each in findings])


def _claim(finding: Finding) -> str:
    claim = finding.claim
    tables = f"Tables: {', '.join(claim.tables)}." if claim.tables else ""
    note = " ".join(filter(None, (claim.note if claim.tests else "", caveats(finding))))
    parts = (f"**{escaped(claim.words)}**", escaped(_place(finding)), escaped(tables), note and f"*{escaped(note)}*")
    return f"{escaped(claim.id)}: {' '.join(filter(None, parts))}"


def _records(finding: Finding) -> str:
    return escaped(" ".join(filter(None, (by_records(finding) + ".", details(finding)))))


def _led(words: str) -> str:
    """Return a verdict in bold with its reasons."""
    verdict, colon, reasons = words.partition(": ")
    return rf"\textbf{{{flowing(verdict)}}}{colon}{flowing(reasons)}" if colon else flowing(words)


def _counts(findings: Found) -> str:
    """The counts by paper, with verdicts down the page, so that it is as narrow as a column."""
    lines = [" & ".join(map(escape, line)) + r" \\" for line in zip(COUNTS, *counts(findings), strict=True)]
    columns, rows = "l" + "r" * (len(findings) + 1), " ".join(lines[1:])
    return rf"{{\small\begin{{tabular}}{{{columns}}}\toprule {lines[0]}\midrule {rows}\bottomrule\end{{tabular}}}}"
