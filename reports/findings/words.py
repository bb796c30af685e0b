"""Findings in words and rows: summary sentences, both verdicts of a claim, and rows of frames and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from benchmarks.tables.spec import UNREDUCED
from reports.aggregate import TableResult
from reports.findings.claims import expanded
from reports.findings.comparisons import AGAINST, FOR
from reports.findings.verdicts import Finding, Tested, Verdict
from reports.labels import name
from reports.shown import Shown, pair
from reports.significance import ALPHA, MOST

_RULE = (
    "By the paper: a comparison goes the claimed way where its printed numbers differ by more than two combined "
    "standard errors, or by their sign where no error is printed, and by more than rounding may hide. By our records: "
    "a t-test over shared splits and seeds. A claim holds where all comparisons that it names are significant, with "
    f"Holm's correction over the claims of {{}}, level {ALPHA}. A protocol other than paper is reduced; protocols "
    "are never mixed. An effect above 0 goes the claimed way; the margin of a claim that something is not worse is "
    "added to it."
)
RULE = (
    f"{_RULE.format('its paper')} A claim is in our words; its quotation is the first words of the passage. "
    "dirichlet2022-9 is a part of dirichlet2022-8."
)
RULE_OF_FILE = _RULE.format("the file")
USUAL = 10
"""Runs that the papers' tables most often have."""
COLUMNS = {
    "claim": "its name in reports/claims",
    "paper": "short name",
    "place": "where the paper says it",
    "words": "what it says, in words of this project",
    "kind": "better, not_worse, closer, monotone, absolute or qualitative",
    "by_paper": "verdict by the printed numbers",
    "by_records": "verdict by the records",
    "protocol": "of the runs; empty without any",
    "table": "of the comparison; empty where the claim rests on a figure alone",
    "comparison": "what is compared",
    "column": "label of the column",
    "published": "effect by the printed numbers, above 0 the claimed way; nan without",
    "published_stderr": "its combined standard error; nan where none is printed",
    "effect": "mean effect over the shared runs, margin included; nan where it is not tested",
    "stderr": "its standard error",
    "n": "shared runs",
    "p": "two-sided p-value of no effect, not corrected",
    "reason": "why it is not tested",
}
"""Columns of the rows, one for each comparison."""


def flat(found: Mapping[str, Sequence[Finding]]) -> list[Finding]:
    """Return every finding, paper by paper."""
    return [each for findings in found.values() for each in findings]


def summary(findings: Sequence[Finding]) -> tuple[str, str, str]:
    """Return one sentence each on the claims that hold, are reversed, and are open."""
    printed = [each for each in findings if each.by_paper != Verdict.UNTESTED]
    holds = [each for each in printed if each.by_paper == Verdict.HOLDS]
    against, turned, ours = *_contradicted(findings), _by(findings)
    confirmed = [*ours[Verdict.HOLDS], *ours[Verdict.SO_FAR]]
    whole, partly = len(ours[Verdict.HOLDS]), len(ours[Verdict.SO_FAR])
    so_far = f", and {partly} more as far as they are tested" if partly else ""
    beyond = sum(any(map(_endless, each.counted, each.needed)) for each in ours[Verdict.OPEN])
    figures = sum(not each.claim.tests for each in ours[Verdict.UNTESTED])
    reduced = sum(each.protocol not in ("", *UNREDUCED) for each in findings)
    return (
        f"What survives: {len(holds)} of the {len(printed)} claims that the papers' own numbers can test hold in every "
        f"comparison that they name. Of all {len(findings)} claims our runs confirm {whole}{so_far}, "
        f"{sum(each in holds for each in confirmed)} of them among those {len(holds)}{_examples(confirmed)}."
        f"{_unlike(confirmed)}",
        f"What does not: {len(against)} claims are contradicted by the papers' own numbers in some comparison, "
        f"{sum(each.surely_against is True for each in against)} of them also after a correction for how many they "
        f"make. Our runs reverse {len(turned)}{' at least in part' if turned else ''}, "
        f"{sum(each in against for each in turned)} of them among those {len(against)}{_examples(turned)}."
        f"{_unlike(turned)}",
        f"What nobody can tell yet: our runs do not decide {len(ours[Verdict.OPEN])} claims; in {beyond} of them some "
        f"comparison would need more than {MOST:,} runs at its scatter. {len(ours[Verdict.UNTESTED])} have no test "
        f"yet, {figures} of them because they rest on no measured number; {reduced} of our verdicts are of reduced "
        "runs.",
    )


def reservations(findings: Sequence[Finding]) -> str:
    """Return how far the numbers of contradicted and reversed claims in :func:`summary` can be trusted."""
    against, turned = _contradicted(findings)
    once = sum(each.printed[AGAINST] == 1 for each in against)
    sure, signs = (sum(each.surely_against is wanted for each in against) for wanted in (True, None))
    by_signs = f", {signs} by signs alone, as errors are not printed" if signs else ""
    return (
        f"How sure: of the {len(against)} claims that the papers' own numbers contradict, {once} are contradicted in a "
        f"single comparison; {sure} also after Bonferroni's correction for the number of comparisons{by_signs}"
        f"{_allowed(against)}{_repeated(against, _printed)}. Of the {len(turned)} that our runs reverse, "
        f"{sum(each in against for each in turned)} are among them{_allowed(turned)}{_repeated(turned, _tested)}."
    )


def counts(found: Mapping[str, Sequence[Finding]]) -> list[tuple[str, ...]]:
    """Return for each paper its claims, and the numbers of verdicts by the records and by the printed numbers."""
    every = {**found, "all": flat(found)}
    return [
        (
            paper,
            f"{len(findings)}",
            f"{sum(each.by_paper == Verdict.HOLDS for each in findings)} of "
            f"{sum(each.by_paper != Verdict.UNTESTED for each in findings)}",
            *(f"{len(_by(findings)[verdict])}" for verdict in Verdict),
        )
        for paper, findings in every.items()
    ]


COUNTS = ("paper", "claims", "hold as printed", *map(str, Verdict))


def by_paper(finding: Finding) -> str:
    """Return the verdict by the printed numbers, and its number of comparisons."""
    if not finding.printed.total():
        return finding.claim.untested or "no numbers printed"
    how = "by sign, as errors are not printed" if finding.by_sign else "by two standard errors"
    if finding.printed[AGAINST] and finding.surely_against is False:
        how += "; none the other way after Bonferroni's correction"
    return f"{finding.by_paper}: {_ways(finding.printed)} ({how})"


def by_records(finding: Finding) -> str:
    """Return the verdict by our records, and how many cells behind it are not those of the paper."""
    if not finding.counted:
        return f"{finding.by_records}: {finding.why}"
    words = f"{finding.by_records}: {_ways(finding.ours)}"
    if finding.by_records == Verdict.OPEN and (finding.ours[AGAINST] or finding.ours[FOR] == len(finding.counted)):
        words += f", but not surely enough for one of {finding.family} claims (Holm)"
    if untested := len(finding.tested) - len(finding.counted):
        words += f"; {untested} more not tested"
    apart, judged = finding.apart
    cells = f"; cells that differ from the published numbers: {apart} of {judged}" if apart else ""
    return f"{words} ({protocol(finding)}){cells}"


def details(finding: Finding) -> str:
    """Return effect, error, runs and p-value of the comparison that supports the claim least; empty without any."""
    weakest = finding.weakest
    if weakest is None or weakest.paired is None:
        return ""
    ranked = weakest.comparison.ranked is not None
    words = f"{weakest.comparison.words}, {weakest.comparison.column}: {effect(weakest)}, n={weakest.paired.n}"
    words = f"Least support: {words}{' data sets' * ranked}. Claim: p={finding.p:.2g}."
    if finding.by_records == Verdict.OPEN:
        most, decided = max(finding.needed), sum(count <= USUAL for count in finding.needed)
        words += f" By this scatter {USUAL} {'data sets' if ranked else 'runs'} would decide {decided} of "
        words += f"{len(finding.needed)} comparisons, "
        words += f"about {most:,.0f} all." if most < math.inf else f"more than {MOST:,} all."
    return words


def effect(tested: Tested) -> str:
    """Return the effect of a comparison with its error, above 0 the claimed way."""
    if tested.paired is None:
        return str(tested.result)
    return ("+" if tested.paired.gap > 0 else "") + str(Shown(*pair(tested.paired.gap, tested.paired.error, 3)))


def protocol(finding: Finding) -> str:
    """Return the protocol of the runs, and whether it is a reduced one."""
    return f"protocol {finding.protocol}" + ("" if finding.protocol in UNREDUCED else ", reduced")


def margin(finding: Finding) -> str:
    """Return the margins of a claim of kind not worse, with their origin; empty for other claims."""
    if not finding.claim.not_worse:
        return ""
    known = {
        pattern.rpartition(":")[2]: rule.margin_of(pattern.rpartition(":")[2])
        for rule in finding.claim.tests
        for pattern in expanded(rule.columns)
    }
    sizes = [
        f"{name(metric).partition(' (')[0]} {each.size:g}" + (" of the other's value" if each.relative else "")
        for metric, each in known.items()
        if each
    ]
    origin = "" if any(rule.margin for rule in finding.claim.tests) else " (ours, as the paper names none)"
    return f"Margin{origin}: {', '.join(sizes)}." if sizes else ""


def caveats(finding: Finding) -> str:
    """Return the margins of a claim, and the word by which the paper allows exceptions; empty without any."""
    word = finding.claim.hedge
    hedge = f'The paper says "{word}", so single exceptions do not contradict it.' if word else ""
    return " ".join(filter(None, (margin(finding), hedge)))


def on_table(table: str, findings: Iterable[Finding]) -> str:
    """Count the claims on a table by verdict; empty without any."""
    numbers = by_verdict(each for each in findings if table in each.claim.tables)
    return f"Claims on this table: {numbers}." if numbers else ""


def by_verdict(findings: Iterable[Finding]) -> str:
    """Count claims by their verdict by the records; empty without any."""
    return ", ".join(f"{len(each)} {verdict}" for verdict, each in _by(findings).items() if each)


def best(result: TableResult) -> tuple[int, list[tuple[str, int]]]:
    """Return the number of columns where rows are told apart, and the three rows that lose in the fewest of them and
    all equal to the third, each with the number of columns where no row is significantly better."""
    columns = [j for j in range(len(result.table.columns)) if any(row[j].bold for row in result.cells)]
    found = [(row[0].row.label, sum(row[j].bold for j in columns)) for row in result.cells]
    leading = [each for each in sorted(found, key=lambda row: (-row[1], row[0])) if each[1]]
    return len(columns), [each for each in leading if each[1] >= leading[:3][-1][1]]


def result_line(result: TableResult) -> str:
    """Name the best rows, or those not significantly worse, and in how many columns; empty where no rows differ."""
    columns, rows = best(result)
    where = "the one column" if columns == 1 else f"the {columns} columns"
    shown = ", ".join(label if columns == 1 else f"{label} in {count}" for label, count in rows)
    return f"Not significantly worse than any other row, in {where} where rows are told apart: {shown}." if rows else ""


def rows(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return a row in COLUMNS for every comparison, and one for every claim without."""
    return [row for finding in findings for row in (_rows(finding) or [_claim(finding)])]


def as_csv(findings: Iterable[Finding]) -> str:
    """Return these rows as CSV."""
    file = io.StringIO()
    writer = csv.DictWriter(file, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(findings))
    return file.getvalue()


def _claim(finding: Finding) -> dict[str, Any]:
    claim, nan = finding.claim, float("nan")
    about = [claim.id, claim.paper, claim.place, claim.words, claim.kind]
    verdicts = [str(finding.by_paper), str(finding.by_records), finding.protocol]
    return dict(zip(COLUMNS, [*about, *verdicts, "", "", "", nan, nan, nan, nan, 0, nan, finding.why]))


def _rows(finding: Finding) -> list[dict[str, Any]]:
    found = []
    for each in finding.tested:
        printed, nan = each.comparison.published(), float("nan")
        row = _claim(finding) | {"table": each.comparison.table, "comparison": each.comparison.words}
        row |= {"column": each.comparison.column, "reason": "" if each.paired else str(each.result)}
        if printed:
            row |= {"published": printed[0], "published_stderr": nan if printed[1] is None else printed[1]}
        if each.paired:
            row |= {"effect": each.paired.gap, "stderr": each.paired.error, "n": each.paired.n, "p": each.paired.p}
        found.append(row)
    return found


def _by(findings: Iterable[Finding]) -> dict[Verdict, list[Finding]]:
    found: dict[Verdict, list[Finding]] = {verdict: [] for verdict in Verdict}
    for each in findings:
        found[each.by_records].append(each)
    return found


def _ways(outcomes: Counter[int]) -> str:
    """Return how many comparisons go the claimed way, and how many the other."""
    other = f", {outcomes[AGAINST]} the other way" if outcomes[AGAINST] else ""
    return f"{outcomes[FOR]} of {outcomes.total()} as claimed{other}"


def _endless(tested: Tested, needed: float) -> bool:
    """Whether no number of runs decides a comparison; one of ranks needs more data sets, not runs."""
    return needed == math.inf and tested.comparison.ranked is None


def _contradicted(findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Return the claims that the papers' own numbers contradict, and those that our runs reverse, in part at least."""
    ways = (Verdict.REVERSED, Verdict.PART)
    return [f for f in findings if f.by_paper in ways], [f for way in ways for f in findings if f.by_records == way]


def _allowed(findings: Sequence[Finding]) -> str:
    """Count the claims that allow exceptions; empty without any."""
    count = sum(bool(each.claim.hedge) for each in findings)
    one = "s" * (count == 1)
    return f"; {count} say{one} generally or the like, and allow{one} exceptions" if count else ""


def _repeated(findings: Sequence[Finding], comparisons: Callable[[Finding], tuple]) -> str:
    """Count the claims whose comparisons are all those of another claim before them; empty without any."""
    count = len(findings) - len({comparisons(each) for each in findings})
    return f"; {count} rest{'s' * (count == 1)} on the same comparisons as another" if count else ""


def _printed(finding: Finding) -> tuple:
    """Return the printed comparisons of a claim, with their effects."""
    return tuple((*_where(each), each.comparison.published()) for each in finding.tested)


def _tested(finding: Finding) -> tuple:
    """Return the comparisons of a claim that our runs test, with their effects."""
    return tuple((*_where(each), each.result) for each in finding.counted)


def _where(tested: Tested) -> tuple[str, str, str]:
    return tested.comparison.table, tested.comparison.words, tested.comparison.column


def _unlike(findings: Sequence[Finding]) -> str:
    """Count the claims that rest on cells most of which differ from the published numbers; empty without any."""
    count = sum(2 * each.apart[0] > each.apart[1] for each in findings)
    rest = f"{count} of these {len(findings)} rest{'s' * (count == 1)}"
    return f" {rest} on cells most of which differ from the published numbers." if count else ""


def _examples(findings: Sequence[Finding]) -> str:
    """Return the claim whose verdict by our runs is the surest, in brackets, one without exceptions and of cells like
    the paper's where there is one; empty without claims."""
    surest = min(
        findings,
        key=lambda each: (bool(each.claim.hedge), 2 * each.apart[0] > each.apart[1], each.p),
        default=None,
    )
    return f" (most clearly: {surest.claim.words.rstrip('.')})" if surest else ""
