"""The texts of a table's cells as entries of siunitx columns: means and errors aligned at their points, marks after."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from reports.layout import MISSING
from reports.tex import escape, wide

NUMBER = re.compile(r"(~?)([−+-]?)(\d*)(?:\.(\d+))?(?: ± (\d*)(?:\.(\d+))?)?((?![\d.e]).*)?")
EXPONENT = re.compile(r"[−+-]?[\d.]+e[−+-]?\d+")
# Marks after a difference, and their meaning.
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


@dataclass(frozen=True)
class Entry:
    """Text of a cell: a number (sign and digits), its error, prefix and suffix; or words.

    mark is the key of a note: a verdict, or why there is no number.
    """

    before: str = ""
    sign: str = ""
    mean: tuple[str, str] = ("", "")
    error: tuple[str, str] | None = None
    after: str = ""
    words: str = ""
    mark: str = ""
    bold: bool = False

    @classmethod
    def of(cls, text: str, bold: bool = False) -> Entry:
        missing, _, reason = text.partition(" ")
        if missing == MISSING:
            return cls(words="---", mark=reason)
        found = NUMBER.fullmatch(text)
        if not text or not found or not (found[3] or found[4]):
            return cls(words=_powers(text), bold=bold)
        before, sign, whole, part, error_whole, error_part, after = (each or "" for each in found.groups())
        error = (error_whole, error_part) if error_whole or error_part else None
        after, mark = after.strip(), ""
        if after in VERDICTS:
            after, mark = "", after
        return cls(before, sign.replace("−", "-"), (whole, part), error, after, mark=mark, bold=bold)

    def tex(self, two: bool, marks: dict[str, str]) -> str:
        """Return the entry as LaTeX, in two columns where errors have one of their own. marks gives every mark its
        sign.

        Only the mean is bold.
        """
        after = rf"\tnote{{{marks[self.mark]}}}" if self.mark else _powers(self.after)
        after = after if self.mark or not self.after or self.after in "†" else rf"\,{after}"
        if self.words or not any(self.mean):
            words = rf"\textbf{{{self.words}}}" if self.bold else self.words
            return rf"\multicolumn{{2}}{{c}}{{{words}{after}}}" if two else f"{{{words}{after}}}"
        font = r"\bfseries " if self.bold else ""
        mean = font + (r"{$\sim$} " if self.before else "") + self.sign + _joined(self.mean)
        if self.error:
            return rf"{mean} & {{$\pm$\,}} {_joined(self.error)}" + (f" {{{after}}}" if after else "")
        if two:
            return rf"{mean} & \multicolumn{{1}}{{@{{}}l}}{{{after}}}" if after else f"{mean} & "
        return mean + (f" {{{after}}}" if after else "")


@dataclass(frozen=True)
class Format:
    """Format of a column of entries: digits of means and errors before and after the point, marks around them."""

    entries: Sequence[Entry]

    @property
    def two(self) -> bool:
        """Whether errors have a column."""
        return any(entry.error or entry.after.startswith("±") for entry in self.entries)

    @property
    def tex(self) -> str:
        """Return the column, or the two, for tabular."""
        after = self._after
        post = rf", table-space-text-post={{{after}}}" if after else ""
        pre = r", table-space-text-pre={$\sim$}" if any(entry.before for entry in self.entries) else ""
        sign = "-" if any(entry.sign for entry in self.entries) else ""
        mean = f"S[table-format={sign}{_digits([e.mean for e in self.entries])}{pre}"
        if not self.two:
            return f"{mean}{post}]"
        error = f"S[table-format={_digits([e.error for e in self.entries if e.error])}"
        pm = r", table-space-text-pre={$\pm$\,}, table-number-alignment=left"
        return rf"{mean}, table-number-alignment=right]@{{\,}}{error}{pm}{post}]"

    @property
    def width(self) -> float:
        """Approximate width in digits."""
        after = [wide(entry.after) + 0.4 for entry in self.entries if entry.after and (entry.error or not self.two)]
        marked = 0.8 * any(entry.mark and any(entry.mean) for entry in self.entries)
        numbers = _wide([entry.mean for entry in self.entries]) + max(after, default=0.0 if self.two else marked)
        numbers += 1.6 * any(entry.sign for entry in self.entries) + 1.6 * any(entry.before for entry in self.entries)
        if self.two:
            error = 2.3 + _wide([entry.error for entry in self.entries if entry.error])
            alone = [wide(entry.after) for entry in self.entries if entry.after and not entry.error]
            numbers += max(error, *alone, marked)
        bold = 1.05 if any(entry.bold for entry in self.entries) else 1.0
        return max(numbers * bold, *(wide(entry.words) + marked for entry in self.entries))

    @property
    def _after(self) -> str:
        """Return the longest text after a number."""
        inside = [entry for entry in self.entries if any(entry.mean) and (entry.error or not self.two)]
        longest = max((entry.after for entry in inside), key=wide, default="")
        mark = r"\tnote{r}" if any(entry.mark for entry in inside) else ""
        return rf"\,{escape(longest)}" if longest else mark


def _sizes(numbers: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return the longest digits before and after the points."""
    return max((whole for whole, _ in numbers), key=len, default=""), max((p for _, p in numbers), key=len, default="")


def _wide(numbers: Sequence[tuple[str, str]]) -> float:
    whole, part = _sizes(numbers)
    return max(len(whole), 1) + (0.6 + len(part) if part else 0.0)


def _digits(numbers: Sequence[tuple[str, str]]) -> str:
    whole, part = _sizes(numbers)
    return f"{max(len(whole), 1)}" + (f".{len(part)}" if part else "")


def _joined(number: tuple[str, str]) -> str:
    return f"{number[0] or '0'}.{number[1]}" if number[1] else number[0]


def _powers(text: str) -> str:
    """Convert exponents in a text to powers of ten."""
    found, at = "", 0
    for match in EXPONENT.finditer(text):
        found += escape(text[at : match.start()]) + rf"\num{{{match[0].replace('−', '-')}}}"
        at = match.end()
    return found + escape(text[at:])
