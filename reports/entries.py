"""Shown lines of cells as entries of siunitx columns: means and errors aligned at their points, marks after."""

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
    "% (one run)": ("o", "one run: the relative difference in per cent"),
}


def entry(shown: Shown, two: bool, marks: Mapping[str, str]) -> str:
    """Return a shown line as LaTeX, in two columns where errors have one of their own; marks gives every mark its sign.

    Only the mean is bold. Infinite means and those with an exponent are words.
    """
    words, mark = _words(shown), note(shown)
    after = rf"\tnote{{{marks[mark]}}}" if mark else "" if words else _after(shown)
    if words or not shown.mean:
        words = rf"\textbf{{{words}}}" if shown.bold else words
        return rf"\multicolumn{{2}}{{c}}{{{words}{after}}}" if two else f"{{{words}{after}}}"
    mean = (r"\bfseries " if shown.bold else "") + (r"{$\sim$} " if shown.before else "") + _ascii(shown.mean)
    if _plain(shown.error):
        return rf"{mean} & {{$\pm$\,}} {shown.error}" + (f" {{{after}}}" if after else "")
    if two:
        return rf"{mean} & \multicolumn{{1}}{{@{{}}l}}{{{after}}}" if after else f"{mean} & "
    return mean + (f" {{{after}}}" if after else "")


def note(shown: Shown) -> str:
    """Return the mark of a line that is set as a note and not in words."""
    return shown.mark if shown.mean == MISSING or not _words(shown) else ""


class Format:
    """Layout of a column of shown lines: digits of means and errors before and after the point, marks around them.

    two: whether errors have a column.
    """

    def __init__(self, shown: Sequence[Shown]) -> None:
        self.shown = shown
        self._numbers = [each for each in shown if _plain(each.mean)]
        self.two = any(each.error for each in self._numbers)
        self._means = [each.mean.lstrip("−+") for each in self._numbers]
        self._errors = [each.error for each in self._numbers if _plain(each.error)]
        self._signed = any(each.mean[0] in "−+" for each in self._numbers)
        # Numbers that a mark may follow within their column.
        self._inside = [each for each in self._numbers if _plain(each.error) or not self.two]

    @property
    def tex(self) -> str:
        """The column, or the two, in a tabular's specification."""
        longest = max((_tail(each) for each in self._inside), key=wide, default="")
        # In Times, o is as wide as digits and all other marks but w.
        signs = {VERDICTS[each.mark][0] for each in self._inside if each.mark}
        mark = rf"\tnote{{{'w' if 'w' in signs else 'o'}}}" if signs else ""
        after = rf"\,{escape(longest)}" if longest else mark
        post = rf", table-space-text-post={{{after}}}" if after else ""
        pre = r", table-space-text-pre={$\sim$}" if any(each.before for each in self._numbers) else ""
        mean = f"S[table-format={'-' * self._signed}{'.'.join(filter(None, _sizes(self._means)))}{pre}"
        if not self.two:
            return f"{mean}{post}]"
        error = f"S[table-format={'.'.join(filter(None, _sizes(self._errors)))}"
        pm = r", table-space-text-pre={$\pm$\,}, table-number-alignment=left"
        return rf"{mean}, table-number-alignment=right]@{{\,}}{error}{pm}{post}]"

    @property
    def width(self) -> float:
        """About how wide it is, in digits."""
        after = [wide(_tail(each)) + 0.4 for each in self._inside if _tail(each)]
        marked = 0.8 * any(each.mark for each in self._numbers)
        numbers = _wide(self._means) + max(after, default=0.0 if self.two else marked)
        numbers += 1.6 * self._signed + 1.6 * any(each.before for each in self._numbers)
        if self.two:
            alone = [wide(_tail(each)) for each in self._numbers if not _plain(each.error) and _tail(each)]
            numbers += max(2.3 + _wide(self._errors), *alone, marked)
        bold = 1.05 if any(each.bold for each in self.shown) else 1.0
        return max(numbers * bold, *(wide(_words(each)) + marked for each in self.shown))


def _sizes(numbers: Sequence[str]) -> tuple[str, str]:
    """How many digits there are at most before and after the points; empty for none after them."""
    parts = [number.partition(".") for number in numbers]
    whole, part = (max((len(each[k]) for each in parts), default=0) for k in (0, 2))
    return str(max(whole, 1)), str(part or "")


def _wide(numbers: Sequence[str]) -> float:
    whole, part = _sizes(numbers)
    return int(whole) + (0.6 + int(part) if part else 0.0)


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
    return rf"\num{{{_ascii(number)}}}" if "e" in number else escape(number)


def _ascii(number: str) -> str:
    return number.replace("−", "-")
