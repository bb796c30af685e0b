"""Shown lines of cells as entries of LaTeX columns: means and errors cut and aligned at their points, marks after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reports.shown import MISSING, Shown
from reports.tex import escape, wide

# What stands after a difference, as a mark, and what it says.
VERDICTS = {
    "reproduced": ("r", "reproduced"),
    "better": ("b", "differs, better"),
    "worse": ("w", "differs, worse"),
    "differs": ("d", "differs"),
    "uninformative": ("u", "uninformative"),
    "no verdict": ("n", "no verdict, as splits are missing or no error is published"),
    "×": ("t", "ratio of the times, ours to the published one"),
    "(one run)": ("o", "one run: ours minus published, in the unit of the column"),
}


def entry(shown: Shown, two: bool, marks: Mapping[str, str]) -> str:
    """Return a shown line as LaTeX, in two columns for each number; marks gives every mark its sign.

    Only the mean is bold. Infinite means and those with an exponent are words. two: whether errors have columns.
    """
    words, mark = _words(shown), note(shown)
    after = rf"\tnote{{{marks[mark]}}}" if mark else "" if words else _after(shown)
    if words or not shown.mean:
        words = rf"\textbf{{{words}}}" if shown.bold else words
        return rf"\multicolumn{{{4 if two else 2}}}{{c}}{{{words}{after}}}"
    whole, part = (rf"\textbf{{{each}}}" if shown.bold and each else each for each in _halves(shown.mean))
    mean = (r"$\sim$ " if shown.before else "") + whole
    if _plain(shown.error):
        return rf"{mean} & {part} & $\pm$\,{' & '.join(_halves(shown.error))}{after}"
    if two:  # marks reach into the columns of the error
        return rf"{mean} & \multicolumn{{3}}{{@{{}}l}}{{{part}{after}}}"
    return f"{mean} & {part}{after}"


def note(shown: Shown) -> str:
    """Return the mark of a line that is set as a note and not in words."""
    return shown.mark if shown.mean == MISSING or not _words(shown) else ""


class Format:
    """Layout of a column of shown lines: whether errors have columns of their own (two), and its width."""

    def __init__(self, shown: Sequence[Shown]) -> None:
        self.shown, self.numbers = shown, [each for each in shown if _plain(each.mean)]
        self.two = any(each.error for each in self.numbers)

    @property
    def width(self) -> float:
        """About how wide it is, in digits."""
        marked = 0.8 * any(each.mark for each in self.numbers)
        errors = [each.error for each in self.numbers if _plain(each.error)]
        followed = [each for each in self.numbers if _plain(each.error) or not self.two]
        after = [wide(_tail(each)) + 0.4 for each in followed if _tail(each)]
        width = _wide([each.mean.lstrip("−+") for each in self.numbers]) + max(after, default=(not self.two) * marked)
        width += 1.6 * any(each.mean[0] in "−+" for each in self.numbers)
        width += 1.6 * any(each.before for each in self.numbers)
        if self.two:
            alone = [wide(_tail(each)) for each in self.numbers if not _plain(each.error) and _tail(each)]
            width += max(2.3 + _wide(errors), *alone, marked)
        bold = 1.05 if any(each.bold for each in self.shown) else 1.0
        return max(width * bold, *(wide(_words(each)) + marked for each in self.shown))


def _wide(numbers: Sequence[str]) -> float:
    parts = [number.partition(".") for number in numbers]
    whole, part = (max((len(each[k]) for each in parts), default=0) for k in (0, 2))
    return max(whole, 1) + (0.6 + part if part else 0.0)


def _halves(number: str) -> tuple[str, str]:
    """Return a number as LaTeX, cut before its point."""
    whole, point, part = number.partition(".")
    return escape(whole), point + part


def _plain(number: str) -> bool:
    """Whether a number is digits alone: not infinite, without an exponent."""
    return number[-1:].isdigit() and "e" not in number


def _words(shown: Shown) -> str:
    """Text in place of a number that cannot be aligned."""
    if shown.mean == MISSING or _plain(shown.mean):
        return "---" if shown.mean == MISSING else ""
    error = rf" $\pm$ {_power(shown.error)}" if shown.error else ""
    return escape(shown.before) + _power(shown.mean) + error + escape(f"{shown.after} {shown.mark}".rstrip())


def _tail(shown: Shown) -> str:
    """Characters after an aligned number, including an error that cannot be aligned."""
    return (f"± {shown.error}" if shown.error and not _plain(shown.error) else "") + shown.after.strip()


def _after(shown: Shown) -> str:
    error = "" if _plain(shown.error) or not shown.error else rf"$\pm$ {_power(shown.error)}"
    after = error + escape(shown.after.strip())
    return after if _tail(shown) in "†" else rf"\,{after}"


def _power(number: str) -> str:
    mantissa, _, exponent = number.partition("e")
    return escape(mantissa) + (rf"$\times10^{{{int(exponent.replace('−', '-'))}}}$" if exponent else "")
