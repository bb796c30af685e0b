"""Tables of users, and their CSV files: encoding, delimiter, decimal mark and header are given or guessed."""

from __future__ import annotations

import csv
import io
import itertools
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .checks import BadData, decoded

if TYPE_CHECKING:
    import pandas

REFUSE, DROP = "refuse", "drop"
CORRECT = "correct the file, or how add_table describes it"
BLANKS = " "
DELIMITERS = {";": "semicolons", "\t": "tabs", ",": "commas", "|": "bars", BLANKS: "blanks"}
DECIMALS = {".": "points", ",": "commas"}
POINT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
COMMA = re.compile(r"[+-]?(\d+|\d*,\d+)([eE][+-]?\d+)?")
WHOLE = re.compile(r"[+-]?\d+")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}(\1\d{3})*")
EXCEL = re.compile(r"sep=(.)\r?\n")
SPECIAL = re.compile(r"[+-]?(inf|infinity|nan)|true|false|na|n/a|#n/a|null|<na>|\?|", re.IGNORECASE)
LOOK = 200  # rows that the guess of a delimiter uses


@dataclass(frozen=True)
class Form:
    """Options for reading a table. Options that are None are guessed, and the guess is printed.

    drop: columns that are no inputs. categories: input columns of names. missing: whether rows without a label, target
    or input are refused or dropped.
    """

    header: bool | None = None
    delimiter: str | None = None
    decimal: str | None = None
    drop: tuple[str | int, ...] = ()
    missing: str = REFUSE
    categories: tuple[str | int, ...] = ()

    @property
    def changes(self) -> dict:
        """Options that differ from the defaults."""
        return {key: value for key, value in asdict(self).items() if value != getattr(Form(), key)}


@dataclass
class Table:
    """Columns as text or numbers, the file's line of each row, and notes on guesses and dropped rows."""

    path: Path
    columns: pandas.DataFrame
    names: list[str]
    lines: list[int]
    decimal: str | None = "."
    notes: list[str] = field(default_factory=list)

    def place(self, wanted: str | int | None) -> int:
        """Return the number of the column with this name or number; None: the last. Raises BadData."""
        if isinstance(wanted, int) and -len(self.names) <= wanted < len(self.names):
            return wanted % len(self.names)
        place = self.names[-1] if wanted is None and self.names else wanted
        if place in self.names and self.names.count(place) == 1:
            return self.names.index(place)
        if place in self.names:
            raise BadData(
                f"{self.path}: expected one column {place!r}, found {self.names.count(place)}; rename them, or name "
                "the column by its number"
            )
        raise BadData(
            f"{self.path}: expected {'a column' if place is None else f'the column {place!r}'}, found "
            f"{', '.join(self.names[:20]) or 'nothing'}; {CORRECT}"
        )

    def where(self, row: int, column: int) -> str:
        return (
            f"{self.path}, {'line' if self.lines else 'row'} {self.lines[row] if self.lines else row}, column "
            + repr(self.names[column])
        )

    def leave_out(self, columns: list[int], why: str) -> None:
        self.notes.append(f"left out {', '.join(repr(self.names[i]) for i in columns)}: {why}")


def number(word: str, decimal: str | None) -> float | None:
    """Return the value of a word, or None if it is no number."""
    if decimal == ",":  # a point then separates thousands
        word = word.replace(".", "_").replace(",", ".")
    try:
        return float(word) if "_" not in word else None
    except ValueError:
        return None


def read(path: Path, target: str | int | None, form: Form) -> Table:
    """Read text in columns. Raises BadData if the form of the file is ambiguous."""
    import pandas

    text, delimiter = decoded(path), form.delimiter
    if declaration := EXCEL.match(text):
        delimiter, text = delimiter or declaration[1], "\n" + text[declaration.end() :]
    mark = delimiter or _delimiter(path, text)
    lines, rows = _split(text, mark)
    notes = [] if delimiter else [f"separated by {DELIMITERS[mark]}"]
    if not rows:
        return Table(path, pandas.DataFrame(), [], [], notes=notes)
    commented = rows[0][0].startswith("#")
    if commented:
        rows[0][0] = rows[0][0][1:].strip()
        if mark == BLANKS and not rows[0][0]:
            del rows[0][0]
        notes.append("the # of the first line is left out")
    while not any(row[-1] for row in rows[1:]) and (not rows[0][-1] or len(rows[0]) + 1 == len(rows[-1])):
        rows = [row[: len(rows[0]) - (not rows[0][-1])] for row in rows]
        notes.append("left out the empty end of the lines")
    if (
        len(rows) > 1
        and len(rows[0]) + 1 == len(rows[1])
        and len({len(row) for row in rows[1:]}) == 1
        and _names(rows[0])
    ):
        rows[0].insert(0, "")  # R writes row names without a header
    for line, row in zip(lines, rows):
        if len(row) != len(rows[0]):
            raise BadData(
                f"{path}, line {line}: expected {len(rows[0])} columns, found {len(row)}; {CORRECT} "
                f"(separated by {DELIMITERS.get(mark, mark)}{'; lines of comments are not skipped' * commented})"
            )
    comma = _decimal(path, rows[1:] or rows, form.decimal, mark)
    named = _header(path, rows, target, comma) if form.header is None else form.header
    if form.header is None:
        notes.append("the first line is a header" if named else "no header: the first line is data")
    if comma == "," and form.decimal is None:
        notes.append("decimal commas")
    names = rows[0] if named else [str(i) for i in range(len(rows[0]))]
    frame = pandas.DataFrame(rows[named:], columns=range(len(names)), dtype=object)
    return Table(path, frame, names, lines[named:], comma, notes)


def _split(text: str, mark: str, most: int | None = None) -> tuple[list[int], list[list[str]]]:
    lines, rows = [], []
    if mark == BLANKS:
        for line, content in enumerate(io.StringIO(text), start=1):
            if content.strip():
                lines.append(line)
                rows.append(content.split())
            if len(rows) == most:
                break
        return lines, rows
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True, skipinitialspace=True)
    for row in reader:
        words = [word.strip() for word in row]
        if any(words):
            lines.append(reader.line_num)
            rows.append(words)
        if len(rows) == most:
            break
    return lines, rows


def _delimiter(path: Path, text: str) -> str:
    """Return the delimiter that yields rows of equal length with most numbers."""
    shares: dict[str, float] = {}
    for mark in DELIMITERS:
        try:
            _, rows = _split(text, mark, LOOK)
        except csv.Error:
            continue
        body = rows[1:] or rows
        widths = {len(row) for row in body}
        if len(widths) == 1 and (width := widths.pop()) > 1 and len(rows[0]) in (width, width - 1):
            cells = [word for row in body for word in row]
            shares[mark] = sum(map(_numeric, cells)) / len(cells)
    best = [mark for mark, share in shares.items() if share == max(shares.values())]
    best = [mark for mark in best if mark != BLANKS] or best
    if len(best) > 1 and shares[best[0]] > 0:
        raise BadData(
            f"{path}: expected one delimiter, found equal columns by {' and by '.join(DELIMITERS[m] for m in best)}; "
            f"pass delimiter={best[0]!r} or another to add_table"
        )
    first = next((line for line in text.splitlines() if line.strip()), "")
    return best[0] if best else next((mark for mark in ",;\t|" if mark in first), BLANKS)


def _numeric(word: str) -> bool:
    return bool(POINT.fullmatch(word) or COMMA.fullmatch(word))


def _decimal(path: Path, rows: list[list[str]], decimal: str | None, mark: str) -> str:
    """Return the decimal mark, a comma if numbers have it. Raises BadData for thousands separators or both marks."""
    if decimal:
        return decimal
    commas, points = (
        [word for row in rows for word in row if sign in word and (form.fullmatch(word) or THOUSANDS.fullmatch(word))]
        for sign, form in ((",", COMMA), (".", POINT))
    )
    doubtful = commas or (points if mark == ";" else [])  # semicolons are for languages of decimal commas
    if (commas and points) or (doubtful and all(map(THOUSANDS.fullmatch, doubtful))):
        found = " and ".join(repr(words[0]) for words in (commas, points) if words)
        raise BadData(
            f"{path}: expected one decimal mark, found {found}; write numbers without thousands "
            "separators, or pass decimal=',' or decimal='.' to add_table"
        )
    return "," if commas else "."


def _is_number(word: str, decimal: str) -> bool:
    return bool((COMMA if decimal == "," else POINT).fullmatch(word))


def _names(row: list[str]) -> bool:
    return not any(map(_numeric, row))


def _header(path: Path, rows: list[list[str]], target: str | int | None, decimal: str) -> bool:
    """Return whether the first row is a header. Raises BadData if it may be data as well.

    It is a header if it contains the target, or a word over a column of numbers, or no number and a new word. A row of
    numbers is a header if they are whole, distinct and growing over columns of real numbers.
    """
    first, body = rows[0], rows[1 : 1 + 5 * LOOK]
    if isinstance(target, str) and target in first:
        return True
    if not body:
        return _names(first)
    columns = list(zip(*body))
    over = [
        all(_is_number(word, decimal) or SPECIAL.fullmatch(word) for word in column)
        and any(_is_number(word, decimal) or word.lower() in ("true", "false") for word in column)
        for column in columns
    ]
    repeated = [word in column for word, column in zip(first, columns)]
    numeric = [_is_number(word, decimal) for word in first]
    words = [o and not n and not SPECIAL.fullmatch(word) for word, o, n in zip(first, over, numeric)]
    whole = [word for word, n in zip(first, numeric) if n and WHOLE.fullmatch(word)]
    distinct = len(set(whole)) == len(whole) == sum(numeric)
    choose = "pass header=True or header=False to add_table"
    if any(words):
        if distinct:
            return True
        raise BadData(
            f"{path}: expected names or numbers in the first line, found {first[words.index(True)]!r} and also the "
            f"number {first[numeric.index(True)]!r}; correct the file, or {choose}"
        )
    if not any(numeric):
        return not all(repeated)
    if not distinct or len(whole) < 2:
        return False
    values = list(map(int, whole))
    growing = all(a < b for a, b in itertools.pairwise(values))
    real = [
        any(_is_number(w, decimal) for w in column) and not any(map(WHOLE.fullmatch, column))
        for column, n in zip(columns, numeric)
        if n
    ]
    if growing and sum(real) >= max(1, len(real) - 1):
        return True
    steps = {b - a for a, b in itertools.pairwise(values)}
    if not first[0] and growing and len(steps) == 1:
        return True
    if len(values) > 2 and steps == {1} and (values[0] in (0, 1) or 1800 <= values[0] <= 2100):
        raise BadData(
            f"{path}: expected a first line of names or of data, found {', '.join(first[:6])}, which may be "
            f"either; {choose}"
        )
    return False
