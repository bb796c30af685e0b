"""Settings beside those of papers: lines name what is there, placeholders are filled, the page is current."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.suite import Suite
from benchmarks.tables.recipes import Recipe
from benchmarks.tables.spec import Cell, Column, Row, Table
from datasets.image_schemes import SCHEMES
from reports.cli import DOCS, build
from reports.marks import anchor, escaped
from reports.page.site import write as write_site
from reports.protocols.page import RENEW, briefly, page
from reports.protocols.settings import COLUMNS, Line, check, fill, in_words, load, look_up, of_table, spelt
from reports.records import Records
from tests.reports.page.small import Suite as SmallSuite
from tests.reports.page.small import records as small_records
from tests.reports.page.small import table as small_table

NETWORK = {"network": {"name": "mlp", "hidden": [5]}, "training": {"batch_size": 4}}
RATES = {"MAP": {"boston": 0.1, "energy": 0.2}, "Deep Ensemble": {"boston": 0.1, "energy": 0.1}}


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    if row.label == "never":
        return None
    more = {"family": {"size": 3}} if row.method == "Deep Ensemble" else {}
    rate = 5.0 if protocol == "short" else RATES[row.made_by][dataset]
    parts = {**NETWORK, **more, "likelihood": {"name": "gaussian"}}
    parts["training"] = {"epochs": 1500, "batch_size": 4, "optimiser": {"name": "adam", "lr": rate}}
    return Recipe(parts, tuple((0, seed) for seed in range(4)))


TABLE = Table(
    "mine",
    "A table",
    (Row("one", None, "MAP"), Row("many", None, "Deep Ensemble"), Row("never", None, "MAP"), Row("none", None, None)),
    tuple(Column(Cell(name, "", "rmse"), name) for name in ("boston", "energy")),
    recipe,
    protocols=("paper", "short"),
    paper="rudner2021",
    reductions={"short": "half of all"},
)
SUITE: Any = SimpleNamespace(table_names=lambda: ["mine"], table=lambda name: {"mine": TABLE}[name])


def line(ours: str = "-", tables: str = "mine", rows: tuple[str, ...] = ()) -> Line:
    return Line("rudner2021", tuple(tables.split()), rows, "rate", "a|b", "-", ours, "same", "rudner2021.csv, line 2")


def test_the_committed_page_is_what_the_lines_give() -> None:
    assert (DOCS / "protocols.md").read_text(encoding="utf-8") == page(Suite()), (
        f"docs/protocols.md is not current; renew it: {RENEW}"
    )


def test_the_command_writes_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reports.protocols.page.load", lambda: (line("{runs}"),))
    with pytest.raises(SystemExit) as stop:
        build(SUITE)(["protocols", "--file", str(tmp_path / "page.md")])
    assert not stop.value.code and "page.md" in capsys.readouterr().out
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == page(SUITE, (line("{runs}"),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tables,rows\n", "expected the columns tables,rows,setting"),
        (",".join(COLUMNS) + "\nmine,,rate,-,-,-\n", "line 2: expected 7 columns, found 6"),
        (",".join(COLUMNS) + "\nmine,,rate,,-,-,same\n", "line 2: paper is empty; write -"),
    ],
)
def test_a_malformed_file_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "rudner2021.csv").write_text(text)
    with pytest.raises(BenchmarkError, match=re.escape("rudner2021.csv")) as raised:
        load(tmp_path)
    assert message in str(raised.value)


def test_a_file_of_no_paper_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rudner202.csv").write_text(",".join(COLUMNS) + "\n")
    with pytest.raises(BenchmarkError, match="no paper 'rudner202'; did you mean 'rudner202[12]'"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (line(tables="mien"), "rudner2021.csv, line 2: no table 'mien'; did you mean 'mine'"),
        (line(rows=("ones",)), "rudner2021.csv, line 2: no row of mine 'ones'; did you mean 'one'"),
    ],
)
def test_unknown_tables_and_rows_are_named_with_their_line(wrong: Line, message: str) -> None:
    with pytest.raises(BenchmarkError, match=re.escape(message)):
        check([wrong], SUITE)
    with pytest.raises(BenchmarkError, match=re.escape(message)):
        page(SUITE, (wrong,))


@pytest.mark.parametrize(
    ("ours", "rows", "message"),
    [
        ("{parts.training.optimiser.rate}", (), "no run of these tables and rows has {parts.training.optimiser.rate}"),
        ("{parts.family.size}", ("one", "many"), "{parts.family.size} is not in runs of row 'one' of mine"),
        ("{parts.training.epochs}", ("never",), "no run of these tables"),
        ("{parts.training.epochs", (), "ours is not text with {placeholders}"),
        ("{parts.training.epochs:g}", (), "expected a path like"),
        ("{}", (), "expected a path like"),
    ],
)
def test_placeholders_that_nothing_fills_are_named_with_their_line(
    ours: str, rows: tuple[str, ...], message: str
) -> None:
    with pytest.raises(BenchmarkError, match=re.escape(message)) as raised:
        fill(line(ours, rows=rows), SUITE)
    assert str(raised.value).startswith("rudner2021.csv, line 2: ")


def test_placeholders_hold_what_runs_of_protocol_paper_resolve_to() -> None:
    def filled(ours: str, *rows: str) -> str:
        return fill(line(ours, rows=rows), SUITE)

    assert filled("{parts.training.epochs} epochs of {{all}}") == "1,500 epochs of {all}"
    assert filled("{parts.family.size}") == "3", "rows without a value are passed over where no row is named"
    assert filled("{parts.training.optimiser.lr}", "many") == "0.1"
    assert filled("{parts.training.optimiser.lr}", "one") == "0.1 (boston); 0.2 (energy)"
    assert filled("{parts.training.optimiser.lr}") == (
        "0.1 (one on boston, many on boston, many on energy); 0.2 (one on energy)"
    )
    assert filled("{runs} runs, seeds {seed}; split {dataset.split}") == "4 runs, seeds 0 to 3; split 0"
    assert filled("{parts.divergence}", "many") == "none" and filled("{parts.network.hidden}") == "5"


def test_a_hyper_parameter_that_stands_only_where_it_differs_has_its_default() -> None:
    config: Any = {
        "parts": {"training": {"name": "gradient", "epochs": 3}, "prior": None, "context": {"parts": [{"n": 7}]}}
    }
    assert look_up(config, "parts.training.graph") is False
    config["parts"]["training"]["graph"] = True
    assert look_up(config, "parts.training.graph") is True
    assert look_up(config, "parts.context.parts.0.n") == 7
    for path in ("parts.prior.variance", "parts.training.rate", "parts.context.parts.1", "parts.context.parts.n", "x"):
        assert not isinstance(look_up(config, path), int | dict | list), path


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "none"), (True, "yes"), (12345, "12,345"), (0.0005, "0.0005"), (1e-6, "1e-6"), (1e6, "1e6"),
        ([50, 50], "50, 50"), ([], "none"), ({"name": "mixture", "parts": [{"name": "a"}, {"name": "b", "n": 2}]},
        "mixture (parts a + b (n 2))"), ({"crop": 4, "flip": True}, "crop 4, flip yes"),
    ],
)  # fmt: skip
def test_values_are_spelt(value: Any, words: str) -> None:
    assert spelt(value) == words


def test_many_values_are_a_range() -> None:
    from reports.protocols.settings import Place

    found = {Place("t", f"r{i}", "d"): (str(i),) for i in range(12)}
    assert in_words(found) == "0 to 11 (by row)"
    assert in_words({place: (f"x{values[0]}",) for place, values in found.items()}).endswith("x11 (by row)")
    tables = {Place(t, r, d): (t + r + d,) for t in "ab" for r in "cd" for d in "ef"}
    assert in_words(tables).endswith("(by table, row and data set)")


def test_the_page_has_an_index_and_a_section_for_each_group() -> None:
    text = page(SUITE, (line("{runs}"), line("x", rows=("one",))))
    assert "| mine | [1](#rudner2021-settings-1) | `short`: half of all |" in text
    assert "### rudner2021, settings 1\n\nTables: mine." in text and anchor("rudner2021, settings 1") in text
    assert "| all | rate | a\\|b | - | 4 | same |" in text and "| one | rate | a\\|b | - | x | same |" in text


def test_names_are_listed_briefly_and_marks_stay_text() -> None:
    assert briefly(["a-2", "a-3", "a-4", "b", "c", "d-1", "d-2"]) == "a-2 to a-4, b, c, d-1, d-2"
    assert escaped("n_eval *x* `a_*|b` <i> _y_") == "n_eval \\*x\\* `a_*\\|b` \\<i\\> \\_y\\_"


def test_lines_of_a_table_are_those_of_its_rows() -> None:
    lines = [line(), line(rows=("other",)), line(tables="another"), line(rows=("one", "other"))]
    assert of_table("mine", SUITE, lines) == [lines[0], lines[3]]


def test_the_site_shows_settings_on_the_page_of_their_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_it = line("{seed}", tables="pequignot2020-5", rows=("Ensemble",))
    unfilled = line("{parts.nothing}", tables="pequignot2020-5")
    monkeypatch.setattr("reports.protocols.settings.load", lambda: (of_it, unfilled, line(tables="another")))
    write_site(SmallSuite(small_table()), Records(small_records(tmp_path).root), tmp_path / "site", figures=False)
    text = (tmp_path / "site" / "tables" / "pequignot2020-5.html").read_text(encoding="utf-8")
    section = text[text.index('<details class="settings"') :]
    rows = section[: section.index("</details>")].split("<tr>")[1:]
    assert len(rows) == 2 and "Ensemble" in rows[1] and "<td>0 to 2<td>" in rows[1]


def test_rotated_mnist_has_its_own_normalisation() -> None:
    pixels = SCHEMES["mnist"]["rudner2022"].pixels
    (setting,) = (each for each in of_table("rudner2022-figure-2", Suite(), load()) if "normalisation" in each.setting)
    assert pixels is not None and f"mean {pixels.mean[0]}, deviation {pixels.std[0]}" in setting.ours


@pytest.mark.parametrize("paper", ["dirichlet2022", "cinquin2024"])
def test_draws_of_the_two_moons_stand_beside_the_papers(paper: str) -> None:
    lines = [line for line in of_table("toys", Suite(), load()) if line.about == paper]
    (setting,) = (line for line in lines if line.setting == "two moons: draws in prediction")
    assert fill(setting, Suite()) == "200" and setting.paper.startswith(("M = 10 ", "100 "))


def test_the_number_of_chains_is_said_to_be_the_codes_and_not_the_papers() -> None:
    (setting,) = (each for each in of_table("pequignot2020-1", Suite(), load()) if each.setting == "chains of HMC")
    assert "one chain" in setting.code and "one chain" not in setting.paper


def settings_of(table: str, row: str) -> dict[str, str]:
    lines = of_table(table, Suite(), load())
    return {line.setting: fill(line, Suite(), (table,)) for line in lines if not line.rows or row in line.rows}


def test_notes_name_the_difference_of_the_score_of_fvi_from_the_later_code() -> None:
    for table in ("cinquin2024-2", "cinquin2024-7", "cinquin2024-8"):
        notes = " ".join(" ".join((note.text, *note.more)) for note in Suite().table(table).notes_on("paper"))
        assert "up to 99 %" in notes and "that code: all" in notes, table
    assert "share of 0.99" in settings_of("cinquin2024-7", "FVI")["divergence"]


@pytest.mark.parametrize("method", ["GFSVI", "FVI", "TFSVI"])
def test_a_method_has_its_settings_on_the_page_for_every_kind_of_points(method: str) -> None:
    rows = [f"{method} ({kind})" for kind in ("random", "random pixel", "KMNIST")]
    settings = [
        {each for each in settings_of("cinquin2024-8", row) if "points" not in each} - {"KMNIST images"} for row in rows
    ]
    assert settings[0] == settings[1] == settings[2]


@pytest.mark.parametrize("table", ["cinquin2024-1", "cinquin2024-2", "cinquin2024-3", "cinquin2024-7", "cinquin2024-8"])
def test_the_page_names_start_and_jitter_of_a_posterior_over_weights(table: str) -> None:
    for row in Suite().table(table).rows:
        text = " ".join(settings_of(table, row.label).values())
        method = row.label.partition(" ")[0]
        if method in ("GFSVI", "TFSVI", "MFVI", "FVI"):
            assert "log-variance" in text, f"{table}, {row.label}: where its log-variances start"
        assert method != "TFSVI" or "1e-6 on both diagonals" in text, f"{table}, {row.label}: its jitter"


@pytest.mark.parametrize("row", ["Rank1", "Rank1 fVI"])
def test_the_page_says_how_often_factors_are_drawn(row: str) -> None:
    settings = settings_of("dirichlet2022-11", row)
    assert settings["draws of the factors in training"] == "one for each member and batch"
