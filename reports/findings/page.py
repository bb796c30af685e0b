"""Findings for docs/findings.md, the README and the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.records.provenance import ROOT
from reports.findings.verdicts import MEANINGS, Finding, every
from reports.findings.words import COUNTS, RULE, by_paper, by_records, counts, details, flat, margin, summary
from reports.marks import anchor, escaped, grid
from reports.page.book import Book

FILE, README = ROOT / "docs" / "findings.md", ROOT / "README.md"
RENEW = ".venv/bin/python -m reports findings"
START, END = "<!-- findings: python -m reports findings -->\n", "<!-- end of findings -->\n"
HEADER = ("claim", "by the paper's own numbers", "by our records")
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
    parts = [introduction, *(f"{sentence}\n" for sentence in summary(flat(findings))), f"{RULE}\n"]
    parts.append("\n".join(f"- *{verdict}*: {words}" for verdict, words in MEANINGS.items()) + "\n")
    linked = [
        (f"[{row[0]}](#{anchor(row[0])})" if row[0] in findings else row[0], *row[1:]) for row in counts(findings)
    ]
    parts.append(grid(COUNTS, linked))
    for paper, each in findings.items():
        lines = [(_claim(one), escaped(by_paper(one)), _records(one)) for one in each]
        parts.append(f"## {paper}\n\n{grid(HEADER, lines)}")
    return "\n".join(parts)


def table(findings: Found) -> str:
    """Return the table of the README: the claims that matter most."""
    lines = [
        (
            f"{escaped(one.claim.words)} ({one.claim.paper}, {escaped(_where(one))})",
            by_paper(one),
            escaped(by_records(one)),
        )
        for one in flat(findings)
        if one.claim.main
    ]
    return grid(HEADER, lines)


def readme(text: str, findings: Found) -> str:
    """Return the README's text with its table renewed; unchanged without the marks around the table."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    sentences = " ".join(summary(flat(findings)))
    told = f"{sentences} Every claim: [docs/findings.md](docs/findings.md).\n\n{table(findings)}"
    return before + start + told + end + after if start and end else text


def text(findings: Found, width: int, paper: str = "") -> str:
    """Return the terminal's text: the sentences, and the claims of a paper or those that matter most."""
    lines = [line for sentence in summary(flat(findings)) for line in textwrap.wrap(sentence, width)]
    shown = findings[paper] if paper else [one for one in flat(findings) if one.claim.main]
    for one in shown:
        lines += ["", *textwrap.wrap(f"{one.claim.id}: {one.claim.words}", width)]
        for label, words in (("paper", by_paper(one)), ("ours", by_records(one)), ("", details(one))):
            lines += (
                textwrap.wrap(words, width, initial_indent=f"  {label:<7}", subsequent_indent=" " * 9) if words else []
            )
    return "\n".join(lines) + "\n"


def write(findings: Found, file: Path = FILE, front: Path = README) -> Path:
    """Write the page and the README's table, and return the page's file."""
    file.write_text(page(findings), encoding="utf-8")
    if front.is_file():
        front.write_text(readme(front.read_text(encoding="utf-8"), findings), encoding="utf-8")
    return file


def _where(finding: Finding) -> str:
    return finding.claim.place.partition(': "')[0]


def _claim(finding: Finding) -> str:
    claim = finding.claim
    tables = f"Tables: {', '.join(claim.tables)}." if claim.tables else ""
    said = " ".join(filter(None, (claim.note if claim.tests else "", margin(finding))))
    parts = (f"**{escaped(claim.words)}**", escaped(f"{claim.place}."), escaped(tables), said and f"*{escaped(said)}*")
    return f"{claim.id}: {' '.join(filter(None, parts))}"


def _records(finding: Finding) -> str:
    return escaped(" ".join(filter(None, (by_records(finding) + ".", details(finding)))))
