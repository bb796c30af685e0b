"""The findings as a chapter of the PDF."""

from __future__ import annotations

from reports.findings.page import HEADER, Found
from reports.findings.words import COUNTS, RULE, by_paper, by_records, counts, details, flat, margin, summary
from reports.tex import escape, flowing


def chapter(findings: Found) -> str:
    """Return the section: the three sentences, the counts, and a table of claims for each paper."""
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


def _led(words: str) -> str:
    """A verdict in bold, and what it rests on."""
    verdict, colon, rest = words.partition(": ")
    return rf"\textbf{{{flowing(verdict)}}}{colon}{flowing(rest)}" if colon else flowing(words)


def _counts(findings: Found) -> str:
    """The counts by paper, with verdicts down the page, so that it is as narrow as a column."""
    lines = [" & ".join(map(escape, line)) + r" \\" for line in zip(COUNTS, *counts(findings), strict=True)]
    columns, rows = "l" + "r" * (len(findings) + 1), " ".join(lines[1:])
    return rf"{{\small\begin{{tabular}}{{{columns}}}\toprule {lines[0]}\midrule {rows}\bottomrule\end{{tabular}}}}"
