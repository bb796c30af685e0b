"""Findings for docs/findings.md, the README, the terminal and the PDF."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from reports.findings.verdicts import MEANINGS, Finding, every
from reports.findings.words import COUNTS, RULE, by_paper, by_records, counts, details, flat, margin, summary
from reports.marks import anchor, escaped, grid
from reports.page.book import Book
from reports.tex import escape, flowing

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
    lines = []
    for one in (one for one in flat(findings) if one.claim.main):
        where = escaped(one.claim.place.partition(': "')[0])
        said = f"{escaped(one.claim.words)} ({one.claim.paper}, {where})"
        lines.append((said, by_paper(one), escaped(by_records(one))))
    return grid(HEADER, lines)


def readme(text: str, findings: Found) -> str:
    """Return the README's text with its table renewed; unchanged without the marks around the table."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    sentences = (sentence.partition(": ") for sentence in summary(flat(findings)))
    told = "".join(f"* **{lead}:** {rest}\n" for lead, _, rest in sentences)
    told += f"\nThe claims that matter most; [docs/findings.md](docs/findings.md) has every one:\n\n{table(findings)}"
    return before + start + told + end + after if start and end else text


def text(findings: Found, width: int, paper: str = "") -> str:
    """Return the terminal's text: the sentences, and the claims of a paper or those that matter most."""
    lines = [line for sentence in summary(flat(findings)) for line in textwrap.wrap(sentence, width)]
    shown = findings[paper] if paper else [one for one in flat(findings) if one.claim.main]
    for one in shown:
        lines += ["", *textwrap.wrap(f"{one.claim.id}: {one.claim.words}", width)]
        for label, words in (("paper", by_paper(one)), ("ours", by_records(one)), ("", details(one))):
            lines += textwrap.wrap(words, width, initial_indent=f"  {label:<7}", subsequent_indent=" " * 9)
    return "\n".join(lines) + "\n"


def chapter(findings: Found) -> str:
    """Return the chapter of the PDF: the three sentences, the counts, and a table of claims for each paper."""
    parts = [r"\section{Findings}", *map(flowing, summary(flat(findings))), flowing(RULE), _counts(findings)]
    for paper, each in findings.items():
        lines = [
            rf"{flowing(one.claim.words)} {{\footnotesize {flowing(one.claim.place)}. [{escape(one.claim.id)}] "
            rf"{flowing(margin(one))}}} & {_led(by_paper(one))} & {_led(by_records(one))}. "
            rf"{flowing(details(one))} \\\addlinespace"
            for one in each
        ]
        head = " & ".join(map(escape, HEADER))
        parts.append(
            rf"\subsection{{{escape(paper)}}}{{\small\begin{{longtable}}{{@{{}}*{{3}}{{>{{\raggedright\arraybackslash}}"
            rf"p{{0.31\linewidth}}}}@{{}}}}\toprule {head} \\\midrule\endhead" + "\n" + "\n".join(lines) + "\n"
            r"\bottomrule\end{longtable}}"
        )
    return "\n\n".join(parts) + "\n\\clearpage"


def _claim(finding: Finding) -> str:
    claim = finding.claim
    tables = f"Tables: {', '.join(claim.tables)}." if claim.tables else ""
    said = " ".join(filter(None, (claim.note if claim.tests else "", margin(finding))))
    parts = (f"**{escaped(claim.words)}**", escaped(f"{claim.place}."), escaped(tables), said and f"*{escaped(said)}*")
    return f"{claim.id}: {' '.join(filter(None, parts))}"


def _records(finding: Finding) -> str:
    return escaped(" ".join(filter(None, (by_records(finding) + ".", details(finding)))))


def _led(words: str) -> str:
    """A verdict in bold, and what it rests on."""
    verdict, colon, rest = words.partition(": ")
    return rf"\textbf{{{flowing(verdict)}}}{colon}{flowing(rest)}" if colon else flowing(words)


def _counts(findings: Found) -> str:
    """The counts by paper, with verdicts down the page, so that it is as narrow as a column."""
    lines = [" & ".join(map(escape, line)) + r" \\" for line in zip(COUNTS, *counts(findings), strict=True)]
    columns, rows = "l" + "r" * (len(findings) + 1), " ".join(lines[1:])
    return rf"{{\small\begin{{tabular}}{{{columns}}}\toprule {lines[0]}\midrule {rows}\bottomrule\end{{tabular}}}}"
