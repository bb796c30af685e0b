"""Claims, from the CSV files of reports/claims and those of users: what each says, and the comparisons that it names.

A claim has one line for each of its tests; its later lines leave place, claim and kind empty. A test names one table or
several (separated by ``;``), rows by their labels, and columns by patterns ``dataset:condition:metric`` in the words of
the published table, or of the table itself where it has none (``{a,b}`` stands for either, ``*`` for anything, `` + ``
separates patterns). ``kind`` is ``better`` where it is empty. ``form`` says which cells are compared, ``each`` where it
is empty:

* ``each``: every row of ``a`` with every row of ``b``, or with 0 (with ``value``: with that number) without ``b``;
* ``matched``: the first of ``a`` with the first of ``b``, and so on;
* ``equal``: as matched, in both directions;
* ``rows``, ``columns``: every row of ``a`` with the next one, every column with the next one of its data set;
* ``rank``: every row of ``a`` with every row of ``b`` by their ranks over data sets;
* ``spread``: the range of the rows ``a`` with the range of ``b``;
* ``second``: every row of ``a`` with the second best of ``b``. Means choose the rows of these two forms, so only the
  printed numbers judge them: a test of the chosen rows would not have its level.

``hedge`` is the paper's word by which a claim allows exceptions, such as generally.

``base`` names columns that are subtracted from those of the same data set. ``X minus Y`` as a row is a difference of
two rows. ``side`` says which side is claimed, where it is not the better one of the metric. ``margin`` is how much
worse ``not_worse`` may be, in the unit of records, in place of the margin in margins.csv. A file may leave out the
columns :data:`OPTIONAL`.
"""

from __future__ import annotations

import itertools
import math
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.records.lists import lines_of

FOLDER = Path(__file__).parents[1] / "claims"
MARGINS = FOLDER / "margins.csv"
COLUMNS = (
    "id", "place", "claim", "kind", "table", "a", "b", "columns", "form", "side", "base", "value", "main", "note",
    "hedge", "margin",
)  # fmt: skip
OPTIONAL = tuple(name for name in COLUMNS if name not in ("id", "claim", "table", "a", "columns"))
KINDS = ("better", "not_worse", "closer", "monotone", "absolute", "qualitative")
FORMS = ("each", "matched", "equal", "rows", "columns", "spread", "second", "rank")
SIDES = {"": 0, "higher": 1, "lower": -1}
MINUS = " minus "


@dataclass(frozen=True)
class Margin:
    """Margin of "not worse": absolute in the unit of records, or a share of the other's value."""

    size: float
    relative: bool
    source: str


@dataclass(frozen=True)
class Rule:
    """Rule of comparisons of a claim, as its line of the CSV file has it."""

    tables: tuple[str, ...]
    a: tuple[str, ...]
    b: tuple[str, ...]
    columns: tuple[str, ...]
    form: str
    side: int = 0
    base: tuple[str, ...] = ()
    value: float | None = None
    margin: Margin | None = None

    def margin_of(self, metric: str) -> Margin | None:
        """Return how much worse a row that is not worse may be in a metric; None where no file says it."""
        return self.margin or margins().get(metric)


@dataclass(frozen=True)
class Claim:
    """Statement of a paper, in words of this project; main: one of the ten that matter most.

    A claim without tests rests on a figure alone, or names no number.
    """

    id: str
    paper: str
    place: str
    words: str
    kind: str
    note: str = ""
    main: bool = False
    tests: tuple[Rule, ...] = field(default=())
    hedge: str = ""

    @property
    def untested(self) -> str:
        """Reason without tests, in two or three words; empty with tests."""
        pictured = any(word in self.note.lower() for word in ("figure", "picture", "curve"))
        return "" if self.tests else "figure only" if pictured else "no number named"

    @property
    def not_worse(self) -> bool:
        """Whether the claim allows to be worse by a margin."""
        return self.kind == "not_worse"

    @property
    def tables(self) -> tuple[str, ...]:
        """Tables of its tests, without repeats."""
        return tuple(dict.fromkeys(name for test in self.tests for name in test.tables))


def papers() -> list[str]:
    """Return the papers that have claims, by name."""
    return sorted(path.stem for path in FOLDER.glob("*.csv") if path != MARGINS)


@cache
def load(paper: str) -> tuple[Claim, ...]:
    """Return every claim of a paper. Raises BenchmarkError for an invalid file."""
    return read(FOLDER / f"{paper}.csv")


def read(path: Path) -> tuple[Claim, ...]:
    """Return every claim of a file, whose name stands for the paper. Raises BenchmarkError for an invalid file."""
    found: dict[str, Claim] = {}
    for row, where in lines_of(path, COLUMNS, COLUMNS[1:], absent=OPTIONAL):
        test, kind = _test(row, where), row["kind"] or KINDS[0]
        if row["claim"]:
            if row["id"] in found or kind not in KINDS:
                raise BenchmarkError(f"{where}: expected a new id, and a kind out of {', '.join(KINDS)}")
            about = row["id"], path.stem, row["place"], row["claim"], kind, row["note"]
            found[row["id"]] = Claim(*about, row["main"] == "yes", (test,) if test else (), row["hedge"])
        elif row["id"] in found and test:
            claim = found[row["id"]]
            found[row["id"]] = replace(claim, tests=(*claim.tests, test))
        else:
            raise BenchmarkError(f"{where}: expected a claim, or another test of the claim above it")
    if not found:
        raise BenchmarkError(f"{path}: expected a claim in every line below the names of the columns, found none")
    return tuple(found.values())


@cache
def margins() -> dict[str, Margin]:
    """Return the margin of every metric that a claim of kind not_worse may name."""
    lines = lines_of(MARGINS, ("metric", "margin", "relative", "source"))
    return {row["metric"]: Margin(float(row["margin"]), row["relative"] == "yes", row["source"]) for row, _ in lines}


def expanded(patterns: tuple[str, ...]) -> list[str]:
    """Return patterns with every choice in braces written out."""
    found = []
    for pattern in patterns:
        parts = re.split(r"\{([^}]*)\}", pattern)
        choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
        found += ["".join(each) for each in itertools.product(*choices)]
    return found


def matches(pattern: str, dataset: str, condition: str, metric: str) -> bool:
    """Whether a column matches a pattern without braces."""
    return fnmatchcase(f"{dataset}:{condition}:{metric}", pattern)


def _test(row: dict[str, str], where: str) -> Rule | None:
    if not row["table"]:
        return None
    form = row["form"] or FORMS[0]
    if form not in FORMS or row["side"] not in SIDES or not (row["a"] and row["columns"]):
        raise BenchmarkError(
            f"{where}: expected rows, columns, a form out of {', '.join(FORMS)}, and as side higher, lower or nothing"
        )
    listed = {name: tuple(filter(None, map(str.strip, row[name].split(";")))) for name in ("table", "a", "b")}
    columns, base = (tuple(filter(None, row[name].split(" + "))) for name in ("columns", "base"))
    value, size = _number(row["value"], where), _number(row["margin"], where, 0.0)
    margin = None if size is None else Margin(size, False, "the claim")
    return Rule(listed["table"], listed["a"], listed["b"], columns, form, SIDES[row["side"]], base, value, margin)


def _number(cell: str, where: str, least: float = -math.inf) -> float | None:
    if not cell:
        return None
    with suppress(ValueError):
        if math.isfinite(number := float(cell)) and number >= least:
            return number
    raise BenchmarkError(f"{where}: expected a number{' from 0 on' if not least else ''}, found {cell!r}")
