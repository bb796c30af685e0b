"""One line of a cell as every form prints it: a number, its error, and what stands around them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchmarks.records.published import Published
from reports.aggregate import CellResult
from reports.captions import QUOTED

MISSING = "—"


@dataclass(frozen=True)
class Shown:
    """A mean and its error, each with the digits that are printed; MISSING or nothing for a mean that is not there.

    after follows the number as it is. mark is the key of a note: a verdict, or why there is no number.
    """

    mean: str = ""
    error: str = ""
    before: str = ""
    after: str = ""
    mark: str = ""
    bold: bool = False

    def __str__(self) -> str:
        error = f" ± {self.error}" if self.error else ""
        return f"{self.before}{self.mean}{error}{self.after}{' ' if self.mark else ''}{self.mark}"


NOTHING = Shown(MISSING)


def pair(mean: float, stderr: float, digits: int, fixed: bool = False) -> tuple[str, str]:
    """Return a mean and its standard error with two significant digits of the error, at most six decimals; large
    numbers, and small ones whose error six decimals do not show, with an exponent. A zero has no sign.

    Without an error (nan, or 0 but for rounding), or where fixed, that many decimals. An infinite mean has none.
    """
    if math.isinf(mean):
        return ("∞" if mean > 0 else "−∞"), ""
    own = 1e-12 * abs(mean) < stderr < math.inf and not fixed
    places = min(max(1 - math.floor(math.log10(stderr)), 0), 6) if own else digits
    known = not math.isnan(stderr)
    large = max(abs(mean), abs(stderr) if known else 0.0) >= 1e5
    form = "z.2e" if large or (own and stderr < 1e-6 and abs(mean) < 1e-4) else f"z.{places}f"
    return _signed(f"{mean:{form}}"), _signed(f"{stderr:{form}}") if known else ""


def value(cell: CellResult, usual: int | None, digits: int | None = None) -> Shown:
    """Return our number, with the count of its runs where it is not the usual one of its table."""
    if cell.missing:
        return Shown(MISSING, mark=cell.missing)
    count = f" ({cell.n})" if cell.n == cell.expected else f" ({cell.n}/{cell.expected})"
    numbers = pair(cell.mean, cell.stderr, cell.column.digits if digits is None else digits, digits is not None)
    return Shown(*numbers, after="" if cell.n == cell.expected == usual else count, bold=cell.bold)


def published(number: Published | None) -> Shown:
    """Return the published number as it is printed."""
    if number is None:
        return NOTHING
    mean, error = map(_signed, number.printed)
    return Shown(mean, error, after=QUOTED * bool(number.quoted))


def difference(cell: CellResult) -> Shown:
    """Return the distance of ours from the published number, and the verdict on it."""
    if cell.agreement is None:
        return NOTHING
    if cell.is_cost and cell.published:
        return Shown(f"{cell.mean / cell.published.mean:.2g}", mark="×")
    if cell.comparison is None or cell.outcome is None:
        return Shown(cell.apart_by, mark="(one run)") if cell.apart_by else Shown()
    t = cell.comparison.t
    size = "0.0" if abs(t) < 0.05 else _signed(f"{t:+.1f}").replace("inf", "∞")
    return Shown(size, before="~" * cell.comparison.assumed, mark=cell.outcome.word)


def _signed(number: str) -> str:
    return number.replace("-", "−")
