"""Both verdicts on every claim: by the printed numbers, and by our records.

* Printed numbers: a comparison goes the claimed way where it exceeds two combined standard errors, or, where a paper
  prints no error, by its sign alone, and in either case by more than rounding may hide. The claim holds where all of
  its comparisons do.
* Records: a comparison is a t-test over the splits and seeds that its rows share (reports.significance). A claim holds
  where each of its comparisons is significant the claimed way: its p-value is the largest of theirs
  (intersection-union test). It is reversed where one is significant the other way: the smallest p-value times their
  number. Twice the smaller of the two is the claim's; Holm's correction keeps the level over the claims of a paper.
* A claim is judged under one protocol, protocol paper where that has runs of any of its comparisons.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from benchmarks.suite import Suite
from benchmarks.sweep.plan import MEANINGLESS
from reports.aggregate import TableResult
from reports.agreement import Verdict as Agreement
from reports.findings.claims import Claim, load, papers
from reports.findings.comparisons import AGAINST, FOR, OPEN, Comparison, of
from reports.significance import ALPHA, Paired, holm

Results = Callable[[str, str], TableResult]
"""Function that returns the aggregated table of a name under a protocol."""


class Verdict(StrEnum):
    """Verdict on a claim."""

    HOLDS = "holds"
    SO_FAR = "holds as far as tested"
    PART = "reversed in part"
    REVERSED = "reversed"
    OPEN = "not told apart"
    UNTESTED = "not tested"


MEANINGS = {
    Verdict.HOLDS: "every comparison that the claim names goes the claimed way",
    Verdict.SO_FAR: "every comparison that has the runs for a test goes the claimed way; others have none yet",
    Verdict.PART: "some comparisons go the claimed way, some the other way",
    Verdict.REVERSED: "some comparison goes the other way, and none that is tested the claimed way",
    Verdict.OPEN: "not all go the claimed way, and none the other way (by records: none surely enough, by Holm's test)",
    Verdict.UNTESTED: "no comparison has the runs that a test needs, or no number stands for the claim",
}


@dataclass(frozen=True)
class Tested:
    """Comparison with its test: the effect, above 0 the claimed way, or why there is none."""

    comparison: Comparison
    result: Paired | str

    @property
    def paired(self) -> Paired | None:
        """Effect; None where it was not tested."""
        return self.result if isinstance(self.result, Paired) else None

    @property
    def outcome(self) -> int | None:
        """Result of this comparison alone in our runs, at the level without correction."""
        if self.paired is None:
            return None
        return OPEN if self.paired.p > ALPHA or self.paired.gap == 0 else FOR if self.paired.gap > 0 else AGAINST

    def one_sided(self, way: int) -> float:
        """P-value of the alternative that the effect has the sign of ``way``."""
        assert self.paired is not None
        return self.paired.p / 2 if self.paired.gap * way > 0 else 1 - self.paired.p / 2


@dataclass(frozen=True)
class Finding:
    """Claim with both verdicts.

    protocol: the protocol of the runs, empty without any; rejected: whether Holm's correction over the claims of the
    paper leaves it significant; family: number of tested claims of the paper.
    """

    claim: Claim
    protocol: str
    tested: tuple[Tested, ...] = field(repr=False)
    rejected: bool = False
    family: int = 0

    @cached_property
    def printed(self) -> Counter[int]:
        """Number of comparisons by direction in the printed numbers."""
        outcomes = (each.comparison.printed_outcome() for each in self.tested)
        return Counter(outcome for outcome in outcomes if outcome is not None)

    @property
    def by_sign(self) -> bool:
        """Whether some printed number has no error, so that only the sign counts."""
        effects = (each.comparison.published() for each in self.tested)
        return any(each is not None and each[1] is None for each in effects)

    @property
    def by_paper(self) -> Verdict:
        """Verdict by the paper's printed numbers."""
        return _verdict(self.printed)

    @cached_property
    def surely_against(self) -> bool | None:
        """Whether the printed numbers contradict the claim at the level divided by the number of its comparisons too;
        None where they do so by signs alone, without errors."""
        each = [(one.comparison.printed_against(), one.comparison.printed_outcome()) for one in self.tested]
        if any(p is not None and p * self.printed.total() <= ALPHA / 2 for p, _ in each):
            return True
        return None if any(p is None and outcome == AGAINST for p, outcome in each) else False

    @cached_property
    def counted(self) -> list[Tested]:
        """Comparisons that our runs test."""
        return [each for each in self.tested if each.paired]

    @cached_property
    def ours(self) -> Counter[int]:
        """Number of comparisons by direction in our runs, each at the level without correction."""
        return Counter(each.outcome for each in self.counted if each.outcome is not None)

    @property
    def p(self) -> float:
        """P-value of the claim before Holm's correction; 1 where nothing was tested."""
        if not self.counted:
            return 1.0
        return min(1.0, 2 * min(self._holds, self._reversed))

    @property
    def _holds(self) -> float:
        return max(each.one_sided(FOR) for each in self.counted)

    @property
    def _reversed(self) -> float:
        return len(self.counted) * min(each.one_sided(AGAINST) for each in self.counted)

    @property
    def by_records(self) -> Verdict:
        """Verdict by our records."""
        if not self.counted:
            return Verdict.UNTESTED
        if not self.rejected:
            return Verdict.OPEN
        if self._holds <= self._reversed:
            return Verdict.HOLDS if len(self.counted) == len(self.tested) else Verdict.SO_FAR
        return Verdict.PART if self.ours[FOR] else Verdict.REVERSED

    @cached_property
    def apart(self) -> tuple[int, int]:
        """Number of cells behind its tests that differ from their published numbers, and of all that have a verdict."""
        cells = {id(cell): cell.outcome for each in self.counted for cell in each.comparison.cells}
        judged = [outcome for outcome in cells.values() if outcome not in (None, Agreement.UNDECIDED)]
        return sum(outcome.differs for outcome in judged if outcome), len(judged)

    @property
    def weakest(self) -> Tested | None:
        """The tested comparison that supports the claim least."""
        return max(self.counted, key=lambda each: (each.one_sided(FOR), -each.paired.gap), default=None)  # type: ignore[union-attr]

    @cached_property
    def needed(self) -> list[float]:
        """Number of runs that would decide each tested comparison at its scatter, at the first level of Holm's
        correction; inf where 1,000 are not enough."""
        level = ALPHA / max(self.family, 1)
        return [each.paired.needed(level) or math.inf for each in self.counted if each.paired]

    @property
    def why(self) -> str:
        """Return why comparisons were not tested, the most frequent reason first; empty where all were."""
        if not self.claim.tests:
            return f"{self.claim.untested}: {self.claim.note.rstrip('.')}"
        reasons = Counter(each.result for each in self.tested if isinstance(each.result, str))
        return "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(2))


def _verdict(outcomes: Counter[int]) -> Verdict:
    if not outcomes:
        return Verdict.UNTESTED
    if outcomes[FOR] == outcomes.total():
        return Verdict.HOLDS
    if outcomes[AGAINST]:
        return Verdict.PART if outcomes[FOR] else Verdict.REVERSED
    return Verdict.OPEN


def judge(claims: Sequence[Claim], suite: Suite, results: Results) -> list[Finding]:
    """Return both verdicts on the claims of one paper, with Holm's correction over those that our records test."""
    findings = [_under_best(claim, suite, results) for claim in claims]
    family = [each for each in findings if each.counted]
    rejected = dict(zip((each.claim.id for each in family), holm([each.p for each in family])))
    return [
        Finding(each.claim, each.protocol, each.tested, rejected.get(each.claim.id, False), len(family))
        for each in findings
    ]


def every(suite: Suite, results: Results) -> dict[str, list[Finding]]:
    """Return both verdicts on every claim whose tables the suite has, by paper."""
    known = set(suite.table_names())
    by_paper = {paper: [each for each in load(paper) if known.issuperset(each.tables)] for paper in papers()}
    return {paper: judge(claims, suite, results) for paper, claims in by_paper.items()}


def _under_best(claim: Claim, suite: Suite, results: Results) -> Finding:
    """Judge a claim under the most faithful protocol that tests any of its comparisons; protocols are never mixed."""
    tables = [suite.table(name) for name in claim.tables]
    protocols = dict.fromkeys(name for table in tables for name in table.protocols if name != MEANINGLESS)
    faithful_first = sorted(protocols, key=lambda name: name != "paper")
    findings = [_under(claim, suite, results, protocol) for protocol in faithful_first]
    if not findings:
        return Finding(claim, "", ())
    return next((each for each in findings if each.counted), max(findings, key=_recorded))


def _recorded(finding: Finding) -> int:
    """Return how many of its comparisons have values in all of their cells."""
    return sum(all(cell.values for cell in each.comparison.cells) for each in finding.tested)


def _under(claim: Claim, suite: Suite, results: Results, protocol: str) -> Finding:
    tested = []
    for test in claim.tests:
        without = {name for name in test.tables if protocol not in suite.table(name).protocols}
        known = {
            name: results(name, suite.table(name).default_protocol if name in without else protocol)
            for name in test.tables
        }
        for comparison in of(test, known, claim.not_worse, claim.paper):
            lacking = f"no protocol {protocol} of table {comparison.table}" if comparison.table in without else ""
            tested.append(Tested(comparison, lacking or comparison.tested()))
    return Finding(claim, protocol if any(each.paired for each in tested) else "", tuple(tested))
