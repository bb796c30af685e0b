"""The published numbers are read whole, as printed, and a damaged file is named."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from benchmarks.errors import UnknownName
from benchmarks.records import published

HEADER = ",".join(published.COLUMNS)


def write(folder: Path, *lines: str, header: str = HEADER) -> Path:
    (folder / "some2020.csv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return folder


def test_every_published_cell_is_there() -> None:
    counts = {paper: len(published.load(paper)) for paper in published.papers()}
    assert counts == {
        "cinquin2024": 477,
        "dirichlet2022": 1140,
        "pequignot2020": 294,
        "rudner2021": 32,
        "rudner2022": 91,
    }
    assert sum(counts.values()) == 2034


def test_a_known_cell() -> None:
    cell = published.table("rudner2022", 1)["fashion_mnist", "ood=mnist", "MAP", "ood_auroc"]
    assert (cell.mean, cell.stderr, cell.n_runs, cell.printed) == (87.0, 0.3, 10, ("87.00", "0.30"))


def test_what_a_paper_does_not_say_is_none() -> None:
    cell = published.table("rudner2021", "1")["fashion_mnist", "", "FSVI", "accuracy"]
    assert (cell.mean, cell.stderr, cell.n_runs, cell.printed) == (91.0, None, None, ("91", ""))


def test_cells_that_two_tables_of_a_paper_repeat_are_the_same_number() -> None:
    for paper in published.papers():
        everything = published.table(paper, None)
        assert all(everything[cell.key].printed == cell.printed for cell in published.load(paper))


def test_unknown_paper_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="unknown paper 'rudner2020': did you mean 'rudner202"):
        published.load("rudner2020")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,boston,,GP,rmse,3.1,0.2,5", "line 2: expected 9 columns, found 8"),
        ("1,boston,,GP,rmse,three,0.2,5,", "line 2: mean is 'three', expected a finite number"),
        ("1,boston,,GP,rmse,nan,0.2,5,", "line 2: mean is 'nan'"),
        ("1,boston,,GP,rmse,3.1,-0.2,5,", "line 2: stderr is -0.2"),
        ("1,boston,,GP,rmse,3.1,0.2,few,", "line 2: n_runs is 'few'"),
        ("1,,,GP,rmse,3.1,0.2,5,", "line 2: dataset is empty"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(published.InvalidPublished, match=message):
        published.load("some2020", write(tmp_path, line))


def test_a_cell_may_not_be_there_twice(tmp_path: Path) -> None:
    line = "1,boston,,GP,rmse,3.1,0.2,5,"
    with pytest.raises(published.InvalidPublished, match="1 cells are there more than once"):
        published.load("some2020", write(tmp_path, line, line))


def test_a_wrong_header_is_named(tmp_path: Path) -> None:
    with pytest.raises(published.InvalidPublished, match="expected the columns table,dataset"):
        published.load("some2020", write(tmp_path, header="table,dataset"))


@pytest.mark.parametrize("content", [b"1,boston,,GP,rm\xffse,3.1,0.2,5,", b"1," + b"x" * 200_000, b'1,"boston'])
def test_a_stray_byte_and_a_long_or_open_field_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "some2020.csv").write_bytes(HEADER.encode() + b"\n" + content + b"\n")
    with pytest.raises(published.InvalidPublished, match=r"some2020\.csv: expected a CSV file in UTF-8, found: "):
        published.load("some2020", tmp_path)


@pytest.mark.parametrize("listed", [True, False])
def test_a_committed_file_with_another_cell_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    folder = tmp_path / "published"
    folder.mkdir()
    write(folder, "1,boston,,GP,rmse,3.1,0.2,5,")
    monkeypatch.setattr(published, "SUMS", tmp_path / "sha256.txt")
    monkeypatch.setattr(published, "_sums", published._sums.__wrapped__)
    content = (folder / "some2020.csv").read_bytes()
    known = f"{hashlib.sha256(content).hexdigest()}  published/some2020.csv\n"
    (tmp_path / "sha256.txt").write_text(known if listed else "")
    if listed:
        assert published.load("some2020", folder)[0].mean == 3.1
        published._cells.cache_clear()
        write(folder, "1,boston,,GP,rmse,3.2,0.2,5,")
    with pytest.raises(published.InvalidPublished, match=r"some2020\.csv: expected the SHA-256 .*sha256\.txt"):
        published.load("some2020", folder)


def test_quoted_rows_are_rows_of_their_tables_and_say_so_in_every_cell() -> None:
    for paper, number, method in published.quotations():
        cells = [cell for cell in published.table(paper, number).values() if cell.method == method]
        assert cells and all(cell.quoted and cell.quoted.source and cell.quoted.evidence for cell in cells), method
    assert published.table("rudner2022", 1)["fashion_mnist", "", "MAP", "accuracy"].quoted is None


COLUMNS_EXPECTED = r"quoted\.csv: expected the columns paper,table,method"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("paper,table\n", COLUMNS_EXPECTED),
        (",".join(published.QUOTED_COLUMNS) + "\na,1,m,,why\n", r"quoted\.csv, line 2: source is empty"),
        ("", COLUMNS_EXPECTED),
    ],
)
def test_a_damaged_file_of_quotations_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "quoted.csv").write_text(text)
    with pytest.raises(published.InvalidPublished, match=message):
        published.quotations(tmp_path / "quoted.csv")


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "_OWN", {})


@pytest.mark.usefixtures("own")
def test_a_file_of_ones_own_is_a_paper_that_no_list_counts(tmp_path: Path) -> None:
    before = published.papers()
    write(tmp_path, "1,boston,,GP,rmse,3.1,0.2,5,")
    assert published.add(tmp_path / "some2020.csv") == "some2020"
    assert published.table("some2020", None)["boston", "", "GP", "rmse"].printed == ("3.1", "0.2")
    assert published.papers() == before
    published.add(f"{tmp_path}/../{tmp_path.name}/some2020.csv")  # as a second table of the same numbers does


@pytest.mark.usefixtures("own")
def test_a_file_of_ones_own_takes_the_name_of_no_other(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, "1,boston,,GP,rmse,3.1,0.2,5,")
    published.add(tmp_path / "a" / "some2020.csv")
    for path in (tmp_path / "b" / "some2020.csv", tmp_path / "rudner2022.csv"):
        with pytest.raises(published.InvalidPublished, match="give the file another name"):
            published.add(path)
    with pytest.raises(published.InvalidPublished, match=r"other2020\.csv: expected a CSV file of published numbers"):
        published.add(tmp_path / "other2020.csv")
