"""Notes of tables: every one is short, of a known kind, and of tables that exist; and how they are read."""

import re
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from benchmarks import tables
from benchmarks.tables import notes
from benchmarks.tables.notes import KINDS, LONGEST, Note, Scope

WRITTEN = notes.written()
TEXT = (
    "## uci, digits*: paper, short; toys: own\n\n### Data\n\n- **One**: {EPOCHS:,} epochs,\n  at most.\n- **Two**.\n\n"
)


def test_every_note_is_short_begins_in_bold_and_has_a_kind() -> None:
    assert len(WRITTEN) > 300
    for _, note in WRITTEN:
        assert note.kind in KINDS and re.match(r"\*\*[^*]+\*\*", note.text), note
        assert len(note.text.split()) <= LONGEST, note.text
        assert not re.search(r"(?<![\w.])\.\d", " ".join((note.text, *note.more))), f"0.05, not .05: {note}"


def test_every_note_belongs_to_tables_and_protocols_that_exist() -> None:
    for scope in {scope for scopes, _ in WRITTEN for scope in scopes}:
        for pattern in scope.tables:
            known = [table for name, table in tables.tables().items() if fnmatchcase(name, pattern)]
            assert known, pattern
            assert any(set(table.protocols) & set(scope.protocols) for table in known), (pattern, scope.protocols)
        assert all(any(p in table.protocols for table in tables.tables().values()) for p in scope.protocols), scope


def test_no_note_is_written_twice() -> None:
    words = Counter(words for _, note in WRITTEN for words in (note.text, *note.more))
    assert {each: n for each, n in words.items() if n > 1 and len(each.split()) > LONGEST / 2} == {}


def test_every_paper_table_has_notes_in_the_order_of_their_kinds() -> None:
    for table in tables.tables().values():
        kinds = [KINDS.index(note.kind) for note in table.notes_on(table.default_protocol)]
        assert kinds == sorted(kinds) and (kinds or table.paper is None), table.name


def test_notes_are_read_with_the_values_of_their_module(tmp_path: Path) -> None:
    file = tmp_path / "cinquin_settings.md"
    file.write_text(f"# Title\n\n{TEXT}  More of\n  the second.\n\n  And more.\n\n### Cost\n\n- **Three**.\n")
    scopes = (Scope(("uci", "digits*"), ("paper", "short")), Scope(("toys",), ("own",)))
    assert notes._read(file) == [
        (scopes, Note("**One**: 2,000 epochs, at most.", "Data")),
        (scopes, Note("**Two**.", "Data", ("More of the second.", "And more."))),
        (scopes, Note("**Three**.", "Cost")),
    ]
    assert [scopes[0].holds(*place) for place in (("digits-x", "short"), ("digits", "own"), ("toys", "paper"))] == [
        True, False, False,
    ]  # fmt: skip


def test_a_note_with_nothing_to_tell_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.tables import cinquin

    def planned() -> list[str]:
        notes.written.cache_clear()
        return [note.more[0] for note in notes.of("cinquin2024-1", "paper") if note.text.startswith("**Not planned")]

    try:
        assert planned() == [cinquin.NOT_CHOSEN["paper"]] and cinquin.NOT_CHOSEN["paper"]
        monkeypatch.setitem(cinquin.NOT_CHOSEN, "paper", "")
        assert planned() == []
    finally:
        notes.written.cache_clear()
