"""Forest plot of claims: a line for each, with the effects of its comparisons in standard errors."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.lines import Line2D

from reports.figures.looks import GREEN, GREY, RED
from reports.figures.options import Options
from reports.figures.style import head, legend, page, plt, save, using
from reports.findings.comparisons import AGAINST, ERRORS, FOR, OPEN
from reports.findings.effects import LARGEST, bounded, effects
from reports.findings.verdicts import Finding

OUTCOMES = {FOR: ("the claimed way", GREEN), AGAINST: ("the other way", RED), OPEN: ("not told apart", GREY)}
SIDES = (("published numbers", "D", 0.4), ("records", "o", -0.4))  # marker, and place above the middle of a line
TICKS = (-100, -10, -ERRORS, 0, ERRORS, 10, 100)
LETTERS = 44  # of a line of a claim's words
ABOUT = (
    f"Band: {ERRORS} standard errors on either side of no difference. The ends hold effects of {LARGEST:.0f} and more, "
    "and those whose error is 0. Few runs are told apart by larger effects alone (t-test). Numbers that are printed "
    "without an error have no mark."
)


def draw(findings: Sequence[Finding], source: str, place: Path) -> Path:
    """Write the forest plot of claims as PDF and PNG, and return the PDF; right of 0 a comparison goes the claimed way.

    source: the paper or file of the claims; place: path without ending.
    """
    labels = [textwrap.fill(f"{each.claim.id}: {each.claim.words}", LETTERS) for each in findings]
    heights = [max(2, label.count("\n") + 1) for label in labels]
    with using(Options()):
        figure, axis = plt.subplots(figsize=(page(), 0.9 + 0.17 * sum(heights)))
        axis.axvspan(-ERRORS, ERRORS, color=GREY, alpha=0.12, linewidth=0)
        axis.axvline(0, color=GREY, linewidth=0.7)
        places = [-sum(heights[:i]) - height / 2 for i, height in enumerate(heights)]
        for finding, at in zip(findings, places):
            found = effects(finding)
            for (_, marker, above), each in zip(SIDES, found):
                for effect, outcome in each:
                    axis.plot(bounded(effect), at + above, **_look(marker, OUTCOMES[outcome][1]))
            if not any(found):
                axis.text(0, at, "no test", ha="center", va="center", color=GREY, backgroundcolor="white")
        axis.set_xscale("asinh", linear_width=1.0)
        axis.set_xlim(-1.2 * LARGEST, 1.2 * LARGEST)
        axis.set_xticks(TICKS, [f"{tick}".replace("-", "−") for tick in TICKS])
        axis.set_xticks([], minor=True)
        axis.set_yticks(places, labels)
        axis.set_ylim(-sum(heights), 0)
        axis.set_xlabel("effect in standard errors")
        kinds = {name: Line2D([], [], **_look(marker, GREY)) for name, marker, _ in SIDES}
        ways = {name: Line2D([], [], **_look("s", colour)) for name, colour in OUTCOMES.values()}
        legend(figure, kinds | ways)
        head(figure, f"Claims of {source}", ABOUT)
        pdf, png = (place.with_name(place.name + form) for form in (".pdf", ".png"))
        save(figure, (pdf, png))
    return pdf


def _look(marker: str, colour: str) -> dict[str, Any]:
    """Return the look of a mark; published numbers are hollow."""
    face = "white" if marker == "D" else colour
    return {"marker": marker, "color": colour, "markerfacecolor": face, "markersize": 4, "linestyle": ""}
