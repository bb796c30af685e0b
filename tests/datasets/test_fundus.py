"""Graded photographs: their folders, their parts, preprocessing, tasks and shifts, and what is refused."""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import datasets
from datasets import BadData, DataNotFound, fetch, needs
from datasets.fundus import preprocessed, sources, splits
from datasets.fundus import source as graded
from datasets.fundus.preprocessed import eye_box, graham, square
from tests.datasets.fundus_files import Files, aptos, encoded, eyepacs, idrid, mosaics, photograph, table

Lay = Callable[[Files], Path]


@pytest.fixture
def lay(places: tuple[Path, Path], tmp_path: Path, write: Callable, monkeypatch: pytest.MonkeyPatch) -> Lay:
    """lay(files) writes a user's folder."""
    monkeypatch.setenv(sources.VARIABLE, str(tmp_path / "mine"))

    def laid(files: Files) -> Path:
        for name, content in files.items():
            write(tmp_path / "mine", name, content)
        return tmp_path / "mine"

    return laid


def without(files: Files, end: str) -> Files:
    return {name: content for name, content in files.items() if not name.endswith(end)}


def replaced(files: Files, end: str, old: bytes, new: bytes) -> Files:
    assert any(old in content for name, content in files.items() if name.endswith(end))
    return {name: c.replace(old, new) if name.endswith(end) else c for name, c in files.items()}


@pytest.mark.parametrize(
    ("name", "files", "n"), [("eyepacs", eyepacs(60), 120), ("aptos", aptos(), 60), ("idrid", idrid(), 60)]
)
def test_a_users_folder_is_read_as_upstream_publishes_it(name: str, files: Files, n: int, lay: Lay) -> None:
    lay(files)
    source = sources.find(name)
    assert len(source.ids) == n and sorted(set(source.grades)) == [0, 1, 2, 3, 4] and source.cut
    split, known = datasets.load(name), datasets.describe(name)
    assert (len(split.train), len(split.test)) == (known.n_train, known.n_test)
    assert len(split.train) + len(split.validation) + len(split.test) == n
    assert split.train.x.dtype == np.uint8 and split.train.x.shape[1:] == (3, 64, 64) and split.screens
    for part, rows in split.rows.items():
        assert getattr(split, part).y.tolist() == (source.grades[rows] >= 2).astype(int).tolist()
    image = np.asarray(source.image(3).convert("RGB"))
    assert np.array_equal(preprocessed.images(source, 64)[3], graham(square(Image.fromarray(image), 64)[None])[0])
    assert datasets.training_content(name) == {f"{name}/images": source.digest} and len(source.digest) == 16


def test_ids_name_images_and_not_their_place_in_the_table(lay: Lay) -> None:
    files = aptos()
    lay(files)
    before = sources.find("aptos")
    rows = files["aptos/train.csv"].splitlines()
    lay({"aptos/train.csv": b"\n".join([rows[0], *rows[:0:-1], b""])})
    after = sources.find("aptos")
    assert before.ids == after.ids and np.array_equal(before.grades, after.grades)
    assert np.array_equal(before.image(2), after.image(2)) and before.digest != after.digest


def test_official_parts_of_eyepacs_are_kept(lay: Lay) -> None:
    lay(eyepacs(official=True))
    source = sources.find("eyepacs")
    split = datasets.load("eyepacs")
    ids = {part: {source.ids[i] for i in rows} for part, rows in split.rows.items()}
    assert ids["validation"] == {"18_left", "18_right"}
    assert ids["test"] == {f"{patient}_{eye}" for patient in (19, 20, 21) for eye in ("left", "right")}
    lay(aptos())
    shifted = datasets.load("aptos").evaluation("shift-eyepacs")
    assert len(shifted.x) == 6 and shifted.condition == "shift=country;to=eyepacs"


def test_both_eyes_of_a_patient_and_duplicates_are_in_one_part() -> None:
    ids = [f"{p}_{eye}" for p in range(300) for eye in ("left", "right")]
    grades = np.random.default_rng(0).integers(0, 5, len(ids))
    together = graded.groups("eyepacs", ids)
    part = graded.parted(together, grades)
    assert all(part[i] == part[i + 1] for i in range(0, len(ids), 2))
    shares = [(part == own).mean() for own in graded.PARTS]
    assert shares == pytest.approx([0.7, 0.1, 0.2], abs=0.02)
    for grade in range(5):
        assert (part[grades == grade] == "train").mean() == pytest.approx(0.7, abs=0.12)
    turned = np.random.default_rng(1).permutation(len(ids))
    assert np.array_equal(graded.parted([together[i] for i in turned], grades[turned]), part[turned])
    assert len(graded.duplicates()) == 282
    first, second = "00cb6555d108", "ca25745942b0"
    assert len(set(graded.groups("aptos", [first, second, "0024cdab0c1e"]))) == 2
    graded.check_apart("here", together, part)


def test_groups_of_each_worst_grade_are_parted_by_themselves() -> None:
    patients, worst = np.repeat(np.arange(20), 2).astype(str), np.repeat([1, 4], 20)
    grades = np.where(np.arange(40) % 2, worst, 0)  # the other eye is healthy
    part = graded.parted(patients.tolist(), grades)
    for grade in (1, 4):
        assert [(part[worst == grade] == own).sum() for own in graded.PARTS] == [14, 2, 4]


def test_eyes_of_one_patient_in_two_parts_are_refused(lay: Lay) -> None:
    files = eyepacs(official=True)
    moved = files.pop("eyepacs/test/21_right.jpeg")
    files |= {"eyepacs/train/21_right.jpeg": moved}
    labels = files["eyepacs/trainLabels.csv"] + b"21_right,3\n"
    solution = b"\n".join(r for r in files["eyepacs/retinopathy_solution.csv"].split(b"\n") if b"21_right" not in r)
    lay(files | {"eyepacs/trainLabels.csv": labels, "eyepacs/retinopathy_solution.csv": solution})
    with pytest.raises(BadData, match="expected all images of 21 in one part, found some in test and some in train"):
        datasets.load("eyepacs")


def changed(old: bytes, new: bytes) -> Files:
    return replaced(eyepacs(), ".csv", old, new)


USAGE = replaced(eyepacs(official=True), "tion.csv", b"Public", b"Other")
REFUSED = {
    "no image": (without(eyepacs(), "10_left.jpeg"), "1 graded in .*trainLabels.csv and missing, 10_left.jpeg first"),
    "no grade": (changed(b"10_left,0\n", b""), "1 there without a grade in .*, 10_left.jpeg first"),
    "empty grade": (changed(b"10_left,0", b"10_left,"), "a grade from 0 to 4 .* found '' of '10_left'"),
    "high grade": (changed(b"10_left,0", b"10_left,5"), "found '5' of '10_left'"),
    "twice": (changed(b"10_left", b"10_right"), "every image once, found '10_right' twice"),
    "columns": (changed(b"level", b"grade"), "expected the columns image, level, found image, grade"),
    "usage": (USAGE, "usage Public or Private .* 'Other'"),
}


@pytest.mark.parametrize(("files", "message"), REFUSED.values(), ids=REFUSED)
def test_what_a_folder_lacks_is_named(files: Files, message: str, lay: Lay) -> None:
    lay(files)
    with pytest.raises(BadData, match=message) as caught:
        datasets.load("eyepacs")
    assert "make data" not in str(caught.value)  # which fetches no photograph
    assert needs.lacking("eyepacs")[0].reason


def test_a_part_without_a_finding_is_named(lay: Lay) -> None:
    files = aptos()
    lay(files | {"aptos/train.csv": table("id_code,diagnosis", [(f"{i:012x}", 3 + i % 2) for i in range(60)])})
    for scheme, found in (("moderate-64", "42 with and 0 without"), ("severity-64", "0 with and 0 without")):
        with pytest.raises(BadData, match=f"scheme {scheme}: expected train images .*, found {found} it among 60"):
            datasets.load("aptos", scheme=scheme)
    for path in (lay({}) / "aptos" / "train_images").iterdir():
        path.unlink()
    lay(aptos(8))
    with pytest.raises(BadData, match="expected test images .*, found 0 with and 0 without it among 8 images"):
        datasets.load("aptos")


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_accents_of_files_may_be_composed_or_not(form: str, lay: Lay) -> None:
    files, name = aptos(), unicodedata.normalize(form, "M\u00fcller links")
    files[f"aptos/train_images/{name}.png"] = files.pop(f"aptos/train_images/{3:012x}.png")
    lay(replaced(files, ".csv", f"{3:012x}".encode(), name.encode()))
    source = sources.find("aptos")
    place = source.ids.index("M\u00fcller links")
    assert np.array_equal(np.asarray(source.image(place)), photograph(3)) and source.grades[place] == 3


def test_a_corrupt_image_is_named(lay: Lay) -> None:
    folder = lay(eyepacs())
    image = folder / "eyepacs" / "train" / "12_left.jpeg"
    image.write_bytes(image.read_bytes()[:500])
    with pytest.raises(BadData, match=r"12_left.jpeg: expected a whole image, found: .*[Tt]runcated"):
        datasets.load("eyepacs")


def test_absent_sets_are_said_to_be_got_under_the_providers_rules(places: tuple[Path, Path]) -> None:
    with pytest.raises(DataNotFound, match=r"data set aptos was not found(?s:.*)not fetched: get Kaggle's aptos2019"):
        datasets.load("aptos")
    assert [lack.dataset for lack in needs.lacking("aptos", sets=("test", "shift-idrid"))] == ["aptos", "idrid"]
    assert datasets.describe("aptos").n_train == 2566  # known of the mosaics: runs have names without data
    assert not any(file.startswith(("retina/aptos", "retina/eyepacs")) for file in fetch.registry())


@pytest.mark.parametrize(("files", "found"), [({"APTOS2019/train.csv": b"", ".DS_Store": b""}, "APTOS2019"),
                                              ({"train.csv": b"", "train_images/a": b""}, "train.csv, train_images"),
                                              ({".DS_Store": b""}, "nothing")])  # fmt: skip
def test_mosaics_do_not_replace_a_folder_of_another_name(tiles: Files, files: Files, found: str, lay: Lay) -> None:
    folder = lay(files)
    message = f"FVI_RETINOPATHY names {folder}, where the folder aptos/ is expected, found {found}; put Kaggle's aptos"
    with pytest.raises(DataNotFound, match=message):
        datasets.load("aptos")
    (lack,) = needs.lacking("aptos")
    assert re.search(message, lack.reason) and "unset FVI_RETINOPATHY to use the mosaics" in lack.reason
    assert datasets.training_content("aptos") == {} and datasets.describe("aptos").n_train == 2566


def test_fetching_says_what_a_user_has_to_get(places: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    from datasets.__main__ import main

    assert main(["fetch", "aptos", "digits"]) == 1
    said = capsys.readouterr().out
    assert "[1/2] aptos: NOT AVAILABLE. It is not fetched: get Kaggle's aptos2019" in said
    assert "1 of 2 data sets are ready; not available: aptos" in said


def test_prepared_folders_are_said_to_be_missing(lay: Lay) -> None:
    (lay({}) / "eyepacs").mkdir(parents=True)
    with pytest.raises(DataNotFound, match="expected Kaggle's trainLabels.csv and train/, or diabetic_retin"):
        datasets.load("eyepacs")


@pytest.fixture
def tiles(places: tuple[Path, Path], write: Callable, monkeypatch: pytest.MonkeyPatch) -> Files:
    files = mosaics()
    for name, content in files.items():
        write(places[1], name, content)
    known = {n: fetch.File(n, fetch.hashlib.sha256(c).hexdigest(), len(c), ()) for n, c in files.items()}
    monkeypatch.setattr(sources, "known_files", lambda: known)
    return files


def test_mosaics_are_cut_into_their_tiles(tiles: Files) -> None:
    source = sources.find("aptos")
    assert not source.cut and source.largest == 256 and source.digest == "" and len(source.ids) == 35
    assert np.array_equal(np.asarray(source.image(33))[::16, ::16], photograph(33, 16, 16))
    split = datasets.load("aptos")
    assert len(split.train) + len(split.validation) + len(split.test) == 35
    assert datasets.training_content("aptos") == {}
    with pytest.raises(DataNotFound, match="scheme moderate-512: expected images of 512 pixels, found mosaics of 256"):
        datasets.load("aptos", scheme="moderate-512")


def test_preprocessed_images_are_kept_and_made_again_where_they_are_damaged(
    lay: Lay, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(aptos())
    source = sources.find("aptos")
    first = np.array(preprocessed.images(source, 64))
    (file,) = places[0].rglob("graham-64.npy")
    content = bytearray(file.read_bytes())
    content[5000] ^= 1
    file.write_bytes(content)
    assert np.array_equal(preprocessed.images(source, 64), first)
    monkeypatch.setattr(preprocessed, "_squares", None)  # cached images are not made again
    assert np.array_equal(preprocessed.images(source, 64), first)


def test_the_box_of_the_eye() -> None:
    image = np.zeros((50, 80, 3), np.uint8)
    image[10:40, 30:70] = 200
    image[0, 0] = 255  # one bright pixel is no eye
    assert eye_box(image) == (30, 10, 70, 40)
    assert eye_box(np.zeros((50, 80, 3), np.uint8)) == (0, 0, 80, 50)
    speck = np.zeros((50, 80, 3), np.uint8)
    speck[20:24, 20:24] = 9
    assert eye_box(speck) == (0, 0, 80, 50)
    assert square(Image.fromarray(image), 20).min() == 200 and square(Image.fromarray(image), 20, cut=False).min() == 0


def test_local_averages_are_taken_away_by_grahams_formula() -> None:
    side = 60
    image = np.full((1, 3, side, side), 100, np.uint8)
    assert (graham(image) == 128).all()
    image[0, 1, 30, 30] = 110
    # A blur of one pixel's deviation keeps the square of its kernel's largest weight.
    weights = np.exp(-(np.arange(-3, 4) ** 2) / 2)
    largest = weights.max() / weights.sum()
    found = graham(image)
    assert found[0, 1, 30, 30] == round(128 + 4 * 10 * (1 - largest**2))
    assert found[0, 1, 30, 31] == round(128 - 4 * 10 * largest * weights[4] / weights.sum())
    assert (found[0, 0] == 128).all()
    noise = graham(np.random.default_rng(0).integers(0, 256, (2, 3, side, side)).astype(np.uint8))
    radius = np.hypot(*(np.mgrid[:side, :side] - 29.5))
    assert (noise[..., radius > 27] == 128).all() and (noise[..., radius < 26] != 128).mean() > 0.9


def test_severity_shift_moves_higher_grades_of_training_and_test_part(lay: Lay) -> None:
    lay(aptos(40))
    source = sources.find("aptos")
    part = splits.parts_of(source)
    for scheme, last, finding in (("severity-64", 2, 2), ("severity-mild-64", 1, 1)):
        split = datasets.load("aptos", scheme=scheme)
        for own in graded.PARTS:
            grades = source.grades[(part == own) & (source.grades <= last)]
            assert getattr(split, own).y.tolist() == (grades >= finding).astype(int).tolist()
        assert split.evaluation_sets() == ["test", "validation", "shift-severity"]
        shifted = split.evaluation("shift-severity")
        assert len(shifted.x) == ((source.grades > last) & (part != "validation")).sum() and (shifted.y == 1).all()


def test_country_shift_scores_another_sets_images(lay: Lay, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(aptos() | idrid() | eyepacs(60))
    split = datasets.load("eyepacs", scheme="mild-64")
    assert split.evaluation_sets() == ["test", "validation", "shift-aptos", "shift-idrid"]
    found = split.evaluation("shift-idrid")
    source = sources.find("idrid")
    assert np.array_equal(found.x, preprocessed.images(source, 64)) and found.kind == "shift"
    assert found.y.tolist() == (source.grades >= 1).astype(int).tolist()
    monkeypatch.setattr(splits, "RETINAS_APTOS", 12)
    assert np.array_equal(split.evaluation("shift-aptos").x, preprocessed.images(sources.find("aptos"), 64)[:12])
    content = datasets.evaluation_content("eyepacs", "mild-64", ["test", "shift-aptos"])
    assert set(content) == {"eyepacs/images", "aptos/images"}


def test_outlines_say_where_the_eye_is_and_nothing_of_it(lay: Lay) -> None:
    lay(aptos())
    split = datasets.load("aptos", scheme="outline")
    assert split.train.x.shape[1:] == (1, 16, 16) and split.train.x[:, 0, 8, 8].min() == 255
    assert split.train.x[:, 0, 0, 0].max() == 0 and split.train.y.tolist() == datasets.load("aptos").train.y.tolist()
    for task in ("mild", "severity", "severity-mild"):
        own, of = (datasets.load("aptos", scheme=scheme) for scheme in (f"outline-{task}", f"{task}-64"))
        assert own.train.x.shape[1:] == (1, 16, 16) and own.train.y.tolist() == of.train.y.tolist()
        assert own.test.y.tolist() == of.test.y.tolist() and own.evaluations.keys() == of.evaluations.keys()


def test_a_table_with_a_byte_order_mark_or_crlf_is_no_problem(lay: Lay) -> None:
    files = aptos()
    lay(files | {"aptos/train.csv": files["aptos/train.csv"].replace(b"\n", b"\r\n")})
    assert len(sources.find("aptos").ids) == 60


def test_grey_and_transparent_images_are_made_colour() -> None:
    grey = Image.open(io.BytesIO(encoded(photograph(0)))).convert("LA")
    assert square(grey, 32).shape == (3, 32, 32)
    assert table("a,b", [(1, 2)]) == b"a,b\n1,2\n"


def test_images_are_upright_as_their_orientation_says(lay: Lay) -> None:
    turned, exif = photograph(0)[::-1, ::-1], Image.Exif()
    exif[0x0112] = 3  # turned by 180 degrees
    stream = io.BytesIO()
    Image.fromarray(turned).save(stream, "PNG", exif=exif)
    folder = lay({"turned.png": stream.getvalue()})
    assert np.array_equal(np.asarray(sources.opened(folder / "turned.png")), photograph(0))


def test_sixteen_bit_grey_becomes_eight_bits_and_keeps_its_picture(lay: Lay) -> None:
    grey = photograph(0)[..., 0]
    folder = lay({"wide.png": encoded(grey.astype(np.uint16) * 257), "grey.png": encoded(grey)})
    wide, known = (sources.opened(folder / f"{name}.png") for name in ("wide", "grey"))
    assert np.array_equal(np.asarray(wide), grey)
    assert np.array_equal(square(wide, 32), square(known, 32))
    Image.fromarray(grey.astype(np.float32)).save(folder / "real.tiff")
    with pytest.raises(BadData, match=r"real.tiff: expected 8 or 16 bits for each pixel, found mode F .*8 bits"):
        sources.opened(folder / "real.tiff")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_of_tables_and_files_of_macos_are_no_data(
    lay: Lay, encoding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files = aptos()
    lay(files)
    before = sources.find("aptos")
    table = files["aptos/train.csv"].decode().encode(encoding)
    folder = lay({"aptos/train.csv": table, "aptos/train_images/._00.png": b"mac", "aptos/._train.csv": b"\0mac"})
    after = sources.find("aptos")
    assert after.ids == before.ids and np.array_equal(after.grades, before.grades)
    assert f"{folder}/aptos/train_images: 1 files whose names begin with ._ are skipped" in capsys.readouterr().err
