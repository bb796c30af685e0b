"""Tables of users: what a header, a delimiter, an index, a number, a label and a gap, and printed guesses."""

from __future__ import annotations

import codecs

import numpy as np
import pytest

import datasets
from datasets import BadData, notices, registry, tabular, user_tables
from datasets.table_text import Form
from datasets.user_tables import Cut


@pytest.fixture(autouse=True)
def entries(monkeypatch):
    monkeypatch.setattr(registry, "ENTRIES", dict(registry.ENTRIES))
    monkeypatch.setattr(notices, "_said", set())


@pytest.fixture
def read(tmp_path):
    """read(content, ...) gives inputs, targets and classes of a CSV file."""

    def found(content, target=None, task="regression", **options):
        path = tmp_path / "mine.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        user_tables._read.cache_clear()
        return user_tables.read(path, Cut(target, task, 1, 0.1, 0.0, True, Form(**options)))

    return found


DATA = "0,0,0\n1,2,3\n4,5,7\n8,8,9\n"
REAL = "1.5,2.5,3.5\n4.5,5.5,7.5\n"
HEADERS = {
    "a first row of zeros": (DATA, 4),
    "names": ("a,b,y\n" + DATA, 4),
    "years over real numbers": ("1990,1995,2000\n" + REAL, 2),
    "pandas' numbers over real numbers": ("0,1,2\n" + REAL, 2),
    "years and a name": ("1990,1995,y\n" + DATA, 4),
    "inf and nan as names": ("inf,nan,y\n" + DATA, 4),
    "only inf and nan as names": ("inf,nan\n1,2\n3,5\n", 2),
    "infinity is no name over words of truth": ("true,1,2\nfalse,3,4\ntrue,3,5\n", 3),
    "whole numbers that grow": ("3,5,9\n1,2,3\n", 2),
    "a # before names": ("# a b y\n1 2 3\n4 5 6\n", 2),
}


@pytest.mark.parametrize("what", HEADERS)
def test_a_header_is_distinguished_from_data(read, what):
    text, rows = HEADERS[what]
    assert len(read(text)[0]) == rows


def test_a_target_by_name_and_header_say_what_the_first_line_is(read):
    assert len(read("1,2,3\n4,5,6\n7,8,8\n", target="2")[0]) == 2
    assert len(read("1,2,3\n4,5,6\n7,8,8\n", header=False)[0]) == 3
    assert len(read("1,2,3\n4,5,6\n7,8,8\n", header=True)[0]) == 2
    assert len(read("1.5,x,3\n4,5,6\n", header=True)[0]) == 1


UNKNOWN = {
    "consecutive numbers": ("1,2,3\n4,5,6\n7,8,8\n", "1, 2, 3, which may be either; pass header=True or header=False"),
    "a word among real numbers": ("1.5,x,3\n4,5,6\n", "found 'x' and also the number '1.5'.*pass header=True"),
    "thousands": ('a;y\n"1,234";2\n', "expected one decimal mark, found '1,234'.*decimal=','"),
    "points in the place of thousands": ("a;y\n1.234;2\n12.345;2\n", "expected one decimal mark, found '1.234'"),
    "points and commas": ("a;y\n1,5;2.5\n", "expected one decimal mark, found '1,5' and '2.5'"),
    "two delimiters": ("1;2,3;4\n5;6,7;8\n", None),
    "no name and no index": ("a,,y\n1,5,2\n3,5,2\n", r"name for every input, found column 1 .*drop=\[1\]"),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_what_cannot_be_known_is_refused_with_the_option_that_says_it(read, what):
    text, message = UNKNOWN[what]
    if message is None:  # by semicolons one decimal comma, by commas words
        assert read(text)[0].tolist() == [[1.0, 2.3], [5.0, 6.7]]
    else:
        with pytest.raises(BadData, match=rf"mine\.csv: .*{message}"):
            read(text)


def test_points_are_no_decimal_marks_beside_decimal_commas(read):
    text = "a;y\n12.345;0,5\n900;1,5\n"
    with pytest.raises(BadData, match="line 2, column 'a': expected a number, found '12.345'"):
        read(text, decimal=",")
    assert read(text.replace("12.345", "12345"), decimal=",")[0].tolist() == [[12345], [900]]


def test_names_become_columns_of_0_and_1(read, capsys):
    text = "site,a,y\nnorth,1.5,2\nsouth,2.5,3\n?,3.5,4\nnorth,4.5,5\n"
    x, y, _ = read(text, target="y", categories=("site",), missing="drop")
    assert x.tolist() == [[1, 0, 1.5], [0, 1, 2.5], [1, 0, 4.5]] and y.tolist() == [2, 3, 5]
    assert "3 inputs (site=north, site=south, a), target y" in capsys.readouterr().err
    with pytest.raises(BadData, match=r"column 'site': expected a number.*categories=\['site'\] for names, drop="):
        read(text, target="y")
    with pytest.raises(BadData, match="column 'site': expected a number.*task='classification' for labels"):
        read(text, target="site")


FORMS = {
    "comma": "a,b,y\n1.5,2,3\n4,5.25,6\n",
    "semicolon": "a;b;y\n1.5;2;3\n4;5.25;6\n",
    "tab": "a\tb\ty\n1.5\t2\t3\n4\t5.25\t6\n",
    "bar": "a|b|y\n1.5|2|3\n4|5.25|6\n",
    "blanks": " a  b y\n1.5 2  3\n 4 5.25 6\n",
    "comma and blank": "a, b, y\n1.5, 2, 3\n4, 5.25, 6\n",
    "decimal commas": "a;b;y\n1,5;2;3\n4;5,25;6\n",
    "decimal commas in quotes": 'a,b,y\n"1,5",2,3\n4,"5,25",6\n',
    "decimal commas between blanks": "a b y\n1,5 2,0 3,0\n4,0 5,25 6,0\n",
    "quotes and empty lines": '"a","b","y"\n\n"1.5","2","3"\r\n\n4,5.25,6\n\n',
    "an end of each line": "a,b,y,\n1.5,2,3,\n4,5.25,6,\n",
    "empty ends of each line": "a,b,y,,\n1.5,2,3,,\n4,5.25,6,,\n",
    "an end of each line but the header": "a,b,y\n1.5,2,3,\n4,5.25,6,\n",
    "a first line for Excel": "sep=;\na;b;y\n1.5;2;3\n4;5.25;6\n",
    "names of rows as R writes them": "a b y\nr1 1.5 2 3\nr2 4 5.25 6\n",
    "an index that pandas wrote": ",a,b,y\n0,1.5,2,3\n1,4,5.25,6\n",
    "and read again": "Unnamed: 0.1,Unnamed: 0,a,b,y\n0,0,1.5,2,3\n1,1,4,5.25,6\n",
    "a shuffled index": ",a,b,y\n7,1.5,2,3\n3,4,5.25,6\n",
    "an index of words": ",a,b,y\nfirst,1.5,2,3\nsecond,4,5.25,6\n",
}


@pytest.mark.parametrize("what", FORMS)
def test_one_table_in_every_form_is_the_same_data(read, what):
    for target in ("y", None):
        x, y, _ = read(FORMS[what], target=target)
        assert x.tolist() == [[1.5, 2.0], [4.0, 5.25]] and y.tolist() == [3.0, 6.0]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_are_no_part_of_a_name(read, encoding):
    text = "y,a\n3,1\n6,2\n"
    assert read(text.encode(encoding), target="y")[1].tolist() == [3.0, 6.0]
    message = r"mine\.csv: expected a \.csv file, found: UnicodeDecodeError: .*; save the file as text in UTF-8"
    with pytest.raises(BadData, match=message):
        read("größe,y\n1,2\n".encode("latin-1"))
    with pytest.raises(BadData, match=r"mine\.csv: expected a \.csv file, found: .*zero bytes, as in UTF-16 without"):
        read(text.encode("utf-16-le"))
    assert "\ufeff".encode() == codecs.BOM_UTF8


def test_columns_that_are_no_inputs_are_dropped_by_name_or_number(read):
    text = "id,a,y\n1,5,3\n2,4,6\n3,5,9\n"
    assert read(text)[0].shape == (3, 2) and read(text, drop=("id",))[0].tolist() == [[5.0], [4.0], [5.0]]
    assert read(text, drop=(0,))[0].shape == (3, 1)
    with pytest.raises(BadData, match="expected the column 'z'"):
        read(text, drop=("z",))
    for text, target in (("a,a,y\n1,2,3\n2,2,3\n", "a"), ("b,a,a\n1,2,3\n2,2,3\n", None)):
        with pytest.raises(BadData, match="expected one column 'a', found 2"):
            read(text, target=target)


LABELS = {
    "zeros before numbers": (["007", "7", "8"], ("007", "7", "8")),
    "numbers that float64 does not tell apart": (
        ["9007199254740992", "9007199254740993"],
        ("9007199254740992", "9007199254740993"),
    ),
    "numbers in several forms": (["1", "1.0", "2e0"], (1.0, 2.0)),
    "composed and decomposed accents": (["caf\u00e9", "cafe\u0301", "tea"], ("caf\u00e9", "tea")),
}


@pytest.mark.parametrize("what", LABELS)
def test_labels_are_numbers_only_where_no_two_names_would_become_one(read, what):
    found, classes = LABELS[what]
    text = "a,kind\n" + "".join(f"{i}.5,{label}\n" for i, label in enumerate(found))
    assert read(text, task="classification")[2] == classes


def test_infinite_labels_are_refused(read):
    with pytest.raises(
        BadData, match="expected two classes or more as whole numbers or names, found numbers such as inf"
    ):
        read("a,kind\n1,1\n2,inf\n", task="classification")


def test_missing_labels_are_no_class(read):
    text = "a,kind\n1,0\n2,1\n3,?\n4,\n5,NaN\n6,1\n7,None\n"
    with pytest.raises(
        BadData, match=r"line 4, column 'kind': expected a value, found '\?', as in 3 of 7 rows.*'drop'"
    ):
        read(text, task="classification")
    x, y, classes = read(text, task="classification", missing="drop")
    assert x.ravel().tolist() == [1, 2, 6, 7] and y.tolist() == [0, 1, 1, 2] and classes == ("0", "1", "None")


def test_words_of_truth_are_inputs_of_0_and_1_and_classes_by_name(read):
    text = "a,on\n1,True\n0,False\n3,True\n"
    x, _, _ = read(text, target="a")
    assert x.ravel().tolist() == [1.0, 0.0, 1.0]
    assert read(text, task="classification")[2] == ("False", "True")


def test_nullable_boolean_decimal_and_category_columns_of_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    from decimal import Decimal

    frame = pandas.DataFrame(
        {
            "whole": pandas.array([1, 2, None, 4], dtype="Int64"),
            "truth": pandas.array([True, False, True, False], dtype="boolean"),
            "money": [Decimal("1.5"), Decimal("2.5"), Decimal("3.5"), Decimal("4.5")],
            "kind": pandas.Categorical(["b", "a", "b", "a"]),
            "when": pandas.to_datetime(["2020-01-01"] * 4),
        }
    )
    frame.to_parquet(tmp_path / "mine.parquet", index=False)

    def found(**options):
        form = Form(**options)
        return user_tables.read(tmp_path / "mine.parquet", Cut("kind", "classification", 1, 0.1, 0.0, True, form))

    x, y, classes = found(drop=("when",), missing="drop")
    assert x.tolist() == [[1, 1, 1.5], [2, 0, 2.5], [4, 0, 4.5]] and y.tolist() == [1, 0, 0] and classes == ("a", "b")
    with pytest.raises(BadData, match="row 2, column 'whole': expected a value, found '<NA>', as in 1 of 4 rows"):
        found(drop=("when",))
    with pytest.raises(BadData, match=r"column 'when' \(datetime64.*\): expected a number, found '2020-01-01"):
        found(missing="drop")


def test_the_index_of_a_frame_and_further_arrays_are_left_out_with_a_notice(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"station": [3, 5, 9], "a": [1.5, 2, 2.5], "y": [1.0, 2.0, 3.0]}).set_index("station")
    frame.to_parquet(tmp_path / "mine.PARQUET")
    np.savez(tmp_path / "mine.npz", x=frame[["a"]].to_numpy(), y=frame["y"].to_numpy(), x_test=np.zeros(3))
    for name, left in (("mine.PARQUET", "left out 'station': the index of the frame"), ("mine.npz", "array 'x_test'")):
        registry.ENTRIES.pop("mine", None)
        datasets.add_table("mine", tmp_path / name)
        assert datasets.describe("mine").shape == (1,)
        assert left in capsys.readouterr().err


def test_identifiers_among_inputs_are_named(read, capsys):
    read(f"id,row,a,y\n{2**53},2,1.5,4\n{2**60},0,2,2\n{2**54},1,3,2\n")
    errors = capsys.readouterr().err
    assert "'id' is an input though it has over 15 digits" in errors
    assert "'row' is an input though it counts the rows" in errors and "'a' is" not in errors


SIZES = (143, 77, 52, 35, 20, 5, 2, 2)  # of UCI ecoli's classes


def add_classes(path, sizes, **options):
    names = [f"class{k}" for k, n in enumerate(sizes) for _ in range(n)]
    path.write_text("a,site\n" + "".join(f"{i % 7}.5,{name}\n" for i, name in enumerate(names)))
    registry.ENTRIES.pop("mine", None)
    datasets.add_table("mine", path, target="site", task="classification", **{"splits": 3} | options)


@pytest.mark.parametrize("options", [{}, {"test": 0.5}, {"test": 0.3, "validation": 0.2}, {"test": 0.9}])
def test_every_class_has_a_row_in_training_and_test(tmp_path, options):
    sizes = tuple(max(n, 3) for n in SIZES) if "validation" in options else SIZES
    add_classes(tmp_path / "ecoli.csv", sizes, **options)
    for i in range(3):
        split = datasets.load("mine", i)
        for subset in (split.train, split.test):
            assert set(subset.y) == set(range(8))
        assert sorted(np.concatenate(list(split.rows.values()))) == list(range(sum(sizes)))


def test_a_class_that_is_too_small_is_named_with_its_size(tmp_path):
    add_classes(tmp_path / "single.csv", (40, 40, 1))
    with pytest.raises(BadData, match=r"single.csv: expected 2 rows or more of every class.*'class2' \(1\)"):
        datasets.describe("mine")
    (tmp_path / "rows.txt").write_text("0 1 2")
    add_classes(tmp_path / "single.csv", (40, 40, 2), test_rows=[tmp_path / "rows.txt"])
    with pytest.raises(BadData, match=r"rows.txt: expected every class in the test .*none of 'class1"):
        datasets.load("mine")


def test_a_summary_with_every_guess_is_printed_once(tmp_path, capsys):
    path = tmp_path / "mine.csv"
    path.write_text(";a;kind\n0;1,5;x\n1;2,5;y\n2;;y\n3;3,5;y\n" + "".join(f"{i};{i},5;x\n" for i in range(4, 30)))
    datasets.add_table("mine", path, task="classification", splits=2, missing="drop")
    datasets.describe("mine"), datasets.load("mine", 1)
    assert capsys.readouterr().err == (
        f"{path}: 29 rows, 1 inputs (a), target kind with 2 classes (rows): x (27), y (2); separated by "
        "semicolons; the first line is a header; decimal commas; left out '': it numbers the rows, as an "
        f"index that pandas wrote; dropped 1 of 30 rows that lack a value, the first at {path}, line 4, column 'a'\n"
    )


def test_a_constant_input_and_equal_names_are_named_and_a_constant_target_is_refused(read, capsys):
    x, *_ = read("a,b,a,y\n1,7,2,3\n2,7,5,4\n3,7,4,9\n")
    assert x.shape == (3, 3)
    printed = capsys.readouterr()
    assert "'b' has one value in every row" in printed.out + printed.err
    assert "2 inputs are named 'a'" in printed.out + printed.err
    with pytest.raises(BadData, match="expected targets that differ, found 3 in all 2 rows of 'y'"):
        read("a,y\n1.5,3\n2.5,3\n")


def test_a_table_has_two_rows_or_more_to_train(tmp_path):
    (tmp_path / "mine.csv").write_text("a,y\n1.5,3\n2.5,4\n")
    datasets.add_table("mine", tmp_path / "mine.csv", splits=1)
    with pytest.raises(BadData, match="two or more to train, found 2 in all: 1 for train, 1 for test"):
        datasets.load("mine")


def test_options_that_contradict_one_another_are_refused():
    for options in ({"missing": "keep"}, {"missing": "drop", "test_rows": ["rows.txt"]}):
        with pytest.raises(ValueError, match="data set mine: expected missing='refuse', or 'drop' without test_rows"):
            datasets.add_table("mine", "mine.csv", **options)
    for options in ({"decimal": ";"}, {"delimiter": "ab"}):
        with pytest.raises(ValueError, match=r"data set mine: expected decimal '.' or ','"):
            datasets.add_table("mine", "mine.csv", **options)
    for target in (["y", "z"], True):
        with pytest.raises(
            ValueError, match="mine: target: expected one column, its name or number, found (.'y'|True)"
        ):
            datasets.add_table("mine", "mine.csv", target=target)


@pytest.mark.parametrize(
    ("option", "columns", "message"),
    [
        ("drop", {"drop": ("y",)}, "the target 'y'"),
        ("categories", {"categories": ("y",)}, "the target 'y'"),
        ("categories", {"categories": ("a",), "drop": (0,)}, "the dropped 'a'"),
    ],
)
def test_columns_that_an_option_would_not_reach_are_refused(read, option, columns, message):
    with pytest.raises(BadData, match=f"mine.csv: expected other columns in {option} than {message}; correct"):
        read("a,b,y\n1,2,3\n4,5,7\n", target="y", **columns)


def test_comments_above_a_header_are_named_as_a_reason(read):
    with pytest.raises(BadData, match="line 2: expected 3 columns, found 1; .*; lines of comments are not skipped"):
        read("# made by me\na,b,y\n1,2,3\n4,5,7\n", target="y")


def test_arrays_of_objects_in_an_npz_are_never_unpickled(tmp_path):
    np.savez(tmp_path / "mine.npz", x=np.ones((2, 1)), y=np.array([{}, {}]))
    cut = Cut(None, "regression", 1, 0.1, 0.0, True)
    with pytest.raises(BadData, match="mine.npz: .*Python objects in the array y, which are never unpickled; save num"):
        user_tables.read(tmp_path / "mine.npz", cut)


def test_every_option_is_part_of_the_version():
    cuts = [Cut("y", "regression", 1, 0.1, 0.0, True, form) for form in (Form(), Form(header=True), Form(drop=("a",)))]
    assert len({cut.version for cut in cuts}) == 3


@pytest.mark.parametrize(("values", "message"), [((1e308, -1e308), "up to 1e.150, found 1e.308 in row 0, column 0"),
                                                 ((1e-200, 2e-200), "differ by more than 1e-150")])  # fmt: skip
def test_numbers_that_cannot_be_standardised_are_refused(values, message):
    x = np.array([*values, 1e-200])[:, None]
    with pytest.raises(BadData, match=message):
        tabular.assemble("mine", "1", 0, "", x, np.zeros(3), {"train": np.arange(3), "test": np.arange(1)})


@pytest.mark.parametrize(("rows", "found"), [({"train": []}, "none for train and test"),
                                             ({"train": [], "test": [0]}, "none for train"),
                                             ({"train": [0, 1], "test": []}, "none for test"),
                                             ({"train": [0], "test": [1], "val": [2]}, "rows for 'val'")])  # fmt: skip
def test_rows_of_subsets_that_are_missing_or_unknown_are_named(rows, found):
    rows = {subset: np.array(own, int) for subset, own in rows.items()}
    message = (
        f"^data set mine, split 3: expected row numbers for 'train' and 'test', perhaps 'validation', found {found};"
    )
    with pytest.raises(BadData, match=message):
        tabular.assemble("mine", "1", 3, "", np.arange(6.0).reshape(3, 2), np.arange(3.0), rows)


@pytest.mark.parametrize(
    ("x", "y", "found"),
    [
        ((3, 2), (3, 1), r"\[3, 2\] and \[3, 1\]; give y\[:, 0\]"),
        ((3,), (3,), r"\[3\] and \[3\]; give x\[:, None\]"),
        ((3, 2), (4,), r"\[3, 2\] and \[4\]$"),
    ],
)
def test_inputs_and_targets_of_other_shapes_are_named(x, y, found):
    with pytest.raises(BadData, match=rf"^data set mine: expected inputs \[N, D\] and targets \[N\], found {found}"):
        tabular.assemble("mine", "1", 0, "", np.ones(x), np.ones(y), {"train": np.arange(2), "test": np.arange(2, 3)})


def test_a_table_in_an_npz_that_unpacks_into_a_huge_array_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.npy.LARGE", 2**16)
    np.savez_compressed(tmp_path / "mine.npz", x=np.zeros((20_000, 5)), y=np.zeros(20_000))
    datasets.add_table("mine", tmp_path / "mine.npz")
    with pytest.raises(BadData, match=r"mine.npz: .*the array x unpacks from \d+ to 800128 bytes"):
        datasets.describe("mine")
