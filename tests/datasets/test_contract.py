"""Contract of every data set. A new data set adds a line to FINGERPRINTS, which makes it a DatasetContract."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import datasets
from datasets import Arrays, EvaluationSet, Pixels, Pool, Split
from datasets.checks import check_split
from datasets.fetch import BY_HAND
from datasets.needs import lacking

KINDS = {"id", "shift", "ood", "grid", "spectrum", "attack"}
SUBSETS = ("train", "validation", "test")
ROOT = Path(__file__).resolve().parents[2]


def subsets(split: Split) -> dict[str, Arrays]:
    return {subset: getattr(split, subset) for subset in SUBSETS if getattr(split, subset) is not None}


def as_rows(x: np.ndarray) -> set[bytes]:
    return {row.tobytes() for row in x.astype(np.float32, copy=False)}


def inputs_type(split: Split) -> type:
    return np.float32 if split.pixels is None else np.uint8


def some_sets(split: Split) -> list[str]:
    """All evaluation sets, but of many images one of each form, and no corrupted ones: they take too long to make."""
    names = [name for name in split.evaluation_sets() if not _lacking(split, name)]
    if split.train.x.ndim < 4:
        return names
    return list({re.sub(r"-[\d.]+$", "", name): name for name in names if "_c-" not in name}.values())


def _lacking(split: Split, name: str) -> bool:
    """Return whether an evaluation set needs a file that is absent and cannot be downloaded."""
    partners = lacking(split.name, split.scheme or None, [name])
    return any(lack.dataset in BY_HAND for lack in partners)


SCALED_BY_TEST = {("gulf_drifters", "scaled")}
"""Whose targets are standardised by the test subset, as in the script of the authors of cinquin2024."""


class DatasetContract:
    """name, scheme: what is loaded. fingerprint: first 16 digits of split 0, fixed by the version; None where
    upstream's files were not at hand when the version was made."""

    name: str
    scheme: str | None = None
    fingerprint: str | None

    @pytest.fixture
    def split(self, load_or_skip: Callable[..., Split]) -> Split:
        return load_or_skip(self.name, 0, self.scheme)

    def test_is_listed_and_described_as_it_is(self, split: Split) -> None:
        description = datasets.describe(self.name, self.scheme)
        assert self.name in datasets.names()
        assert description.name == split.name == self.name
        assert (description.task, description.n_outputs) == (split.task, split.n_outputs)
        assert (description.version, description.scheme) == (split.version, split.scheme)
        assert (description.n_train, description.n_test) == (len(split.train), len(split.test))
        assert description.shape == split.train.x.shape[1:]
        assert description.validated == (split.validation is not None)
        assert description.scheme == description.schemes[0] or self.scheme is not None

    def test_arrays_have_the_promised_shapes_types_and_values(self, split: Split) -> None:
        check_split(split)
        for arrays in subsets(split).values():
            assert arrays.x.dtype == inputs_type(split) and np.isfinite(arrays.x).all()
            vectors = split.task == "regression" and split.n_outputs > 1
            assert arrays.y.shape == (len(arrays), split.n_outputs)[: 1 + vectors] and np.isfinite(arrays.y).all()
            assert arrays.y.dtype == (np.int64 if split.task == "classification" else np.float64)

    def test_every_split_trains_on_as_many_rows_and_on_others(self, split: Split) -> None:
        last = datasets.describe(self.name, self.scheme).n_splits - 1
        other = datasets.load(self.name, last, scheme=self.scheme)
        assert other.train.x.shape == split.train.x.shape
        assert (other.fingerprint != split.fingerprint) == (last > 0)

    def test_loading_again_gives_the_same_bytes(self, split: Split) -> None:
        again = datasets.load(self.name, 0, scheme=self.scheme)
        assert again.fingerprint == split.fingerprint
        for name in some_sets(split):
            assert np.array_equal(again.evaluation(name).x, split.evaluation(name).x)

    def test_fingerprint_is_the_known_one(self, split: Split) -> None:
        assert split.fingerprint[:16] == self.fingerprint or self.fingerprint is None

    def test_fingerprint_changes_with_every_subset(self, split: Split) -> None:
        changed = [
            replace(split, version="0"),
            replace(split, scheme="another"),
            replace(split, split=99),
            replace(split, y_mean=split.y_mean + 1e-12),
            replace(split, y_std=split.y_std + 1e-12),
        ]
        if split.pixels is not None:
            (mean, *means), (std, *stds) = split.pixels.mean, split.pixels.std
            changed += [
                replace(split, pixels=pixels)
                for pixels in (
                    None,
                    Pixels((mean + 1e-9, *means), split.pixels.std),
                    Pixels(split.pixels.mean, (std + 1e-9, *stds)),
                )
            ]
        for subset, arrays in subsets(split).items():
            x, y = arrays.x.copy(), arrays.y.copy()
            x.flat[-1] = x.flat[-1] ^ 1 if x.dtype == np.uint8 else np.nextafter(x.flat[-1], np.float32(9))
            y[-1] += 1
            changed += [replace(split, **{subset: new}) for new in (Arrays(x, arrays.y), Arrays(arrays.x, y))]
        assert split.fingerprint not in {other.fingerprint for other in changed}
        assert len({other.fingerprint for other in changed}) == len(changed)

    def test_training_fingerprint_is_of_all_parts_but_the_test(self, split: Split) -> None:
        assert split.training_fingerprint not in {split.fingerprint, replace(split, split=99).training_fingerprint}
        for subset, arrays in subsets(split).items():
            y = arrays.y.copy()
            y[-1] += 1
            other = replace(split, **{subset: Arrays(arrays.x, y)})
            assert (other.training_fingerprint == split.training_fingerprint) == (subset == "test")
            assert other.fingerprint != split.fingerprint

    def test_evaluation_sets_and_pools_have_fingerprints(self, split: Split) -> None:
        sets, pools = some_sets(split), split.pool_names()
        found = {split.evaluation(name).fingerprint for name in sets} | {split.pool(name).fingerprint for name in pools}
        assert len(found) == len(sets) + len(pools) and {len(digest) for digest in found} == {64}
        assert split.evaluation(sets[-1]).fingerprint == split.evaluation(sets[-1]).fingerprint

    def test_parts_share_no_row(self, split: Split) -> None:
        if split.rows:
            numbers = np.concatenate(list(split.rows.values()))
            assert sorted(numbers) == list(range(len(numbers)))
            assert {subset: len(rows) for subset, rows in split.rows.items()} == {
                subset: len(arrays) for subset, arrays in subsets(split).items() if subset in split.rows
            }
        outlines = (self.scheme or "").startswith("outline")  # two eyes may well have the same
        if "test" not in split.rows and not outlines:
            assert not as_rows(split.train.x) & as_rows(split.test.x)

    def test_training_part_is_standardised_where_the_scale_says_so(self, split: Split) -> None:
        if split.y_std == 1:
            assert split.y_mean == 0
            pytest.skip("its targets are not standardised")
        targets = split.test if (self.name, self.scheme) in SCALED_BY_TEST else split.train
        x, y = split.train.x.astype(np.float64), targets.y
        constant = np.ptp(x, axis=0) == 0
        assert np.abs(x.mean(0)).max() < 1e-5
        assert np.abs(x.std(0)[~constant] - 1).max() < 1e-5
        assert abs(y.mean()) < 1e-12 and abs(y.std() - 1) < 1e-12

    def test_box_holds_the_training_inputs(self, split: Split) -> None:
        assert split.low.dtype == split.high.dtype == np.float32
        assert split.low.shape == split.high.shape == split.train.x.shape[1:]
        scale = split.pixels or (lambda x: x)
        assert (split.low <= scale(split.train.x.min(0))).all() and (scale(split.train.x.max(0)) <= split.high).all()

    def test_evaluation_sets_keep_the_contract(self, split: Split) -> None:
        listed, names = split.evaluation_sets(), some_sets(split)
        sets = [split.evaluation(name) for name in names]
        assert names[0] == listed[0] == "test" and len(set(listed)) == len(listed)
        split.require(listed)
        assert len({s.condition for s in sets}) == len(sets)
        assert np.array_equal(sets[0].x, split.test.x) and np.array_equal(sets[0].y, split.test.y)
        for name, s in zip(names, sets):
            assert s.name == name and s.kind in KINDS
            assert s.x.dtype in (np.float32, inputs_type(split)) and np.isfinite(s.x).all() and len(s.x) > 0
            assert s.x.shape[1:] == split.train.x.shape[1:]
            assert (s.y is None) == (s.kind in {"ood", "grid", "spectrum"})
            assert s.y is None or s.y.shape == (len(s.x), *split.test.y.shape[1:])

    def test_contexts_are_no_test_inputs(self, split: Split) -> None:
        assert split.pool_names()[0] == "train" and split.pool("train").x is split.train.x
        sets = [split.evaluation(name) for name in some_sets(split) if name != "train"]
        scored = set().union(*(as_rows(s.x) for s in sets if s.kind != "grid"))
        for name in split.pool_names()[1:]:
            pool = split.pool(name)
            assert pool.x.dtype == inputs_type(split) and pool.x.shape[1:] == split.train.x.shape[1:]
            assert pool.source
            assert not as_rows(pool.x) & scored

    def test_unknown_evaluation_set_and_pool_are_named(self, split: Split) -> None:
        with pytest.raises(KeyError, match=f"{self.name} has no evaluation set 'tset'; it has: test"):
            split.evaluation("tset")
        with pytest.raises(KeyError, match=f"{self.name} has no evaluation set 'tset'; it has: test"):
            split.require(["test", "tset"])
        with pytest.raises(KeyError, match=f"{self.name} has no pool of contexts 'test'; it has: train"):
            split.pool("test")

    @pytest.mark.parametrize("number", [-1, 1000, True, 1.0, "0"])
    def test_unknown_split_is_refused(self, number: object) -> None:
        with pytest.raises(datasets.UnknownSplit, match=f"{self.name}.*expected a split from 0 to"):
            datasets.load(self.name, number, scheme=self.scheme)


FINGERPRINTS = {
    ("digits", ""): "85befa654badad5b",
    ("digits", "validation"): "cba6ba6b2fc1e950",
    ("snelson", ""): "b41a8a2014d2210d",
    ("retina_mnist", "moderate"): "611e06c4a17bb321",
    ("retina_mnist", "mild"): "bd01fc4ce15b756b",
    ("retina_mnist", "outline"): "8eb8e28de81d0e5e",
    ("gulf_drifters", ""): "8a447dcfef959313",
    ("gulf_drifters", "scaled"): "016a89f14517b4c9",
    ("two_moons_rudner", ""): "cdd89dfac524bbe6",
    ("two_moons_dirichlet", ""): "305161883141be93",
    ("two_moons_cinquin", ""): "dc13b265d5ed3b7a",
    ("pequignot_1d", ""): "cf5085d17ab218ce",
    ("cinquin_1d", ""): "c33978cd3517db95",
    ("cinquin_1d_noisy", ""): "317dbfccfbcd2750",
    ("boston", "pequignot2020"): "80a9fcc4ce5b95e9",
    ("boston", "cinquin2024"): "0d65d26c123104a2",
    ("boston", "gal2016"): "0826602bf76aed99",
    ("boston", "pequignot2020-1"): "118bf23482e6d5f9",
    ("concrete", "pequignot2020"): "969295d7c7e7602c",
    ("concrete", "cinquin2024"): "d67a377d83f8ab05",
    ("concrete", "gal2016"): "eee338653f3196a9",
    ("concrete", "pequignot2020-1"): "b3e73643ab7967b1",
    ("energy", "pequignot2020"): "e9375e268ba92f02",
    ("energy", "cinquin2024"): "efa6907df5196338",
    ("energy", "gal2016"): "eb269e1e4d0dfd0c",
    ("energy", "pequignot2020-1"): "238e5ec5717d10a1",
    ("wine", "pequignot2020"): "043b2b3859fa3c67",
    ("wine", "cinquin2024"): "83cef77746546098",
    ("wine", "gal2016"): "b3ef8a8852124bc6",
    ("wine", "pequignot2020-1"): "235ee76aac2e42a1",
    ("yacht", "pequignot2020"): "a8846f1c0d4dd252",
    ("yacht", "cinquin2024"): "e5ad1f4ada1ee9e4",
    ("yacht", "gal2016"): "bbfa578078ef8988",
    ("yacht", "pequignot2020-1"): "0955fbf52177d554",
    ("kin8nm", "pequignot2020"): "45474dd340c3270d",
    ("kin8nm", "cinquin2024"): "ddd22e2ce4fd7da7",
    ("kin8nm", "gal2016"): "68c53271e6c54d4a",
    ("kin8nm", "pequignot2020-1"): "d10a5aad91b671a6",
    ("naval", "pequignot2020"): "bf45aa89cf27eb27",
    ("naval", "cinquin2024"): "bda380caa88ab40f",
    ("naval", "gal2016"): "b687a312ad93e708",
    ("naval", "pequignot2020-1"): "3a10e2502be709dc",
    ("power", "pequignot2020"): "86629bb1973d5ea3",
    ("power", "cinquin2024"): "7a3ffdb8f36623bc",
    ("power", "gal2016"): "feb0e58dd27cfb34",
    ("power", "pequignot2020-1"): "0c62d52e01448323",
    ("protein", "pequignot2020"): "e6252a987230715f",
    ("protein", "cinquin2024"): "1679d82b053dba50",
    ("protein", "gal2016"): "c9cf65eb45df2c46",
    ("protein", "pequignot2020-1"): "3847c89c068850d9",
    ("mnist", "dirichlet2022"): "e2bc94b58a29a656",
    ("mnist", "rudner2022"): "1b25c12e3f487e47",
    ("mnist", "cinquin2024-pixelwise"): "6d6bc47a4df3e447",
    ("mnist", "ovadia2019"): "d8bc7b65240ad923",
    ("fashion_mnist", "rudner2022"): "bd8a10ddf79fd9df",
    ("fashion_mnist", "rudner2022-validation"): "a014d0b7879aaeb6",
    ("fashion_mnist", "rudner2021"): "5dddd25a38c75bf6",
    ("fashion_mnist", "cinquin2024-pixelwise"): "24d90d22e22e164c",
    ("kmnist", ""): None,
    ("notmnist", ""): None,
    ("cifar10", "rudner2022"): None,
    ("cifar10", "rudner2021"): None,
    ("cifar10", "dirichlet2022"): None,
    ("cifar100", "dirichlet2022"): None,
    ("cifar100", "dirichlet2022-part"): None,
    ("svhn", ""): None,
    ("eyepacs", "moderate-64"): "358c324bfc9c685e",
    ("eyepacs", "mild-64"): "729ed1ccbd545d99",
    ("eyepacs", "severity-64"): "bb62c9260fcba050",
    ("eyepacs", "severity-mild-64"): "3d5b38c98f29bb76",
    ("eyepacs", "moderate-512"): None,
    ("eyepacs", "mild-512"): None,
    ("eyepacs", "severity-512"): None,
    ("eyepacs", "severity-mild-512"): None,
    ("eyepacs", "outline"): "9091343ef3e8a7ab",
    ("eyepacs", "outline-mild"): "ef3a81d6a7e908df",
    ("eyepacs", "outline-severity"): "81cf77491f0a8e4d",
    ("eyepacs", "outline-severity-mild"): "4b0b28df6bd06176",
    ("aptos", "moderate-64"): "1539e0560486edd0",
    ("aptos", "mild-64"): "9f2b5312aa12160a",
    ("aptos", "severity-64"): "09fe7fc04572c7b2",
    ("aptos", "severity-mild-64"): "4f67fed7b180b5a8",
    ("aptos", "moderate-512"): None,
    ("aptos", "mild-512"): None,
    ("aptos", "severity-512"): None,
    ("aptos", "severity-mild-512"): None,
    ("aptos", "outline"): "c1d4cf8524e39dca",
    ("aptos", "outline-mild"): "0066d9290ca74f95",
    ("aptos", "outline-severity"): "440d5bc58abff555",
    ("aptos", "outline-severity-mild"): "962dc00f00a50169",
    ("idrid", "moderate-64"): "7ddc184b8eefb1b8",
    ("idrid", "mild-64"): "c7a6f6a0c29a866c",
    ("idrid", "severity-64"): "71d61f9d8eb85298",
    ("idrid", "severity-mild-64"): "ea6f31a503c67d95",
    ("idrid", "moderate-512"): None,
    ("idrid", "mild-512"): None,
    ("idrid", "severity-512"): None,
    ("idrid", "severity-mild-512"): None,
    ("idrid", "outline"): "3519700fa249fe52",
    ("idrid", "outline-mild"): "dc897e40734f29ed",
    ("idrid", "outline-severity"): "e51c3de909803986",
    ("idrid", "outline-severity-mild"): "4e3f88c87d337650",
}


def test_every_data_set_and_scheme_is_held_to_the_contract() -> None:
    known = {(name, scheme) for name in datasets.names() for scheme in datasets.describe(name).schemes}
    assert set(FINGERPRINTS) == known


for (_name, _scheme), _fingerprint in FINGERPRINTS.items():
    _title = "Test" + "".join(word.capitalize() for word in f"{_name}_{_scheme}".split("_"))
    globals()[_title] = type(
        _title, (DatasetContract,), {"name": _name, "scheme": _scheme or None, "fingerprint": _fingerprint}
    )


def test_fingerprints_do_not_depend_on_the_process() -> None:
    free = [name for name in datasets.names() if not datasets.describe(name).files and (name, "") in FINGERPRINTS]
    program = f"import datasets; print(*[datasets.load(name).fingerprint[:16] for name in {free}])"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "2"}
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == [FINGERPRINTS[name, ""] for name in free]


def test_fingerprints_of_evaluation_sets_change_with_all_that_is_scored() -> None:
    x, y = np.zeros((4, 3), np.float32), np.zeros(4, np.int64)
    whole = EvaluationSet("fgsm-0.1", "attack", "epsilon=0.1", x, y, "whose", 0.1)
    changes = {"name": "fgsm-0.2", "kind": "id", "condition": "epsilon=0.2", "epsilon": 0.1 + 1e-12}
    changed = [replace(whole, **{key: value}) for key, value in changes.items()]
    changed += [replace(whole, x=other) for other in (x + 1, x.reshape(3, 4), x.view(np.int32), x[:3])]
    changed += [replace(whole, y=other) for other in (None, y + 1, y.astype(np.int32), y.view(np.uint64))]
    assert len({other.fingerprint for other in (whole, *changed)}) == 1 + len(changed)
    assert replace(whole, source="another's").fingerprint == whole.fingerprint
    assert replace(whole, x=np.asfortranarray(x)).fingerprint == whole.fingerprint


def test_fingerprints_of_pools_are_of_their_inputs() -> None:
    x = np.zeros((4, 3), np.float32)
    others = {Pool(other, "whose").fingerprint for other in (x, x + 1, x[:3], x.view(np.int32))}
    assert len(others) == 4 and Pool(x, "another's").fingerprint in others


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(datasets.UnknownDataset) as caught:
        datasets.load("bosten")
    assert str(caught.value).startswith("no data set 'bosten'; did you mean 'boston'")
    with pytest.raises(KeyError, match="known: .*yacht"):
        datasets.describe("###")
    with pytest.raises(datasets.UnknownSplit, match="boston has no scheme 'gal'; it has 'pequignot2020'"):
        datasets.load("boston", scheme="gal")
