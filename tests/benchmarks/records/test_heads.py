"""Configurations that differ in seed and split alone are parsed once, and are what parsing each of them gives."""

from __future__ import annotations

import json

import pytest

from benchmarks.records.config import InvalidConfig, run_key
from benchmarks.records.form import section, serialise
from benchmarks.records.rows import DECODER, MARKS, HeadReader
from benchmarks.records.store import Store
from tests.benchmarks import fakes

ROW = {"dataset": "digits", "condition": "", "metric": "accuracy", "value": 0.5, "n": 360}


def text(config: dict) -> bytes:
    data = serialise(Store("").make(config, [ROW], {}, {})).encode()
    return data[section(data, "config")]


@pytest.fixture
def decoded(monkeypatch) -> list[str]:
    return []


@pytest.fixture
def reader(decoded) -> HeadReader:
    def decode(words: str):
        decoded.append(words)
        return DECODER.decode(words)

    return HeadReader(decode)


def test_what_differs_in_seed_and_split_is_parsed_once_and_is_the_same(reader, decoded):
    base = fakes.config(0)
    parts = base["parts"] | {"network": base["parts"]["network"] | {"seed": 4, "split": 5, "name": 'a\n"seed": 3'}}
    for changed in (base, base | {"parts": parts}):
        before = len(decoded)
        for seed, split in ((0, 0), (3, 2), (10, 0), (0, 123456789)):
            config = changed | {"seed": seed, "dataset": changed["dataset"] | {"split": split}}
            found, key = reader.config(text(config))
            assert found == json.loads(text(config)) == config and key == run_key(config)
            found["parts"].clear()  # nobody else's
        assert len(decoded) == before + 1


@pytest.mark.parametrize("number", [MARKS[0], 10 * MARKS[0] + 1])
def test_a_number_like_a_mark_is_no_split(reader, number):
    config = fakes.config(0)
    config = config | {"parts": config["parts"] | {"network": config["parts"]["network"] | {"width": number}}}
    for seed in (0, 1):
        assert reader.config(text(config | {"seed": seed})) == (
            config | {"seed": seed},
            run_key(config | {"seed": seed}),
        )


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (b'"seed": 0', b'"seed": 00', ValueError), (b'"seed": 0', b'"seed": 1.5', InvalidConfig),
        (b'"seed": 0', b'"seed": 0,\n"seed": 0', ValueError), (b'"samples": ', b'"samples": -', InvalidConfig),
        (b'"split": 0', b'"split": true', InvalidConfig), (b'"split": 0', b'"other": 0', InvalidConfig),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_also_after_what_is_right(reader, old, new, error):
    right = text(fakes.config(0))
    reader.config(right)
    assert old in right
    for _ in range(2):
        with pytest.raises(error):
            reader.config(right.replace(old, new))


def test_versions_are_nobody_elses(reader):
    reader.versions(b'{"a": 1}').clear()
    assert reader.versions(b'{"a": 1}') == {"a": 1} and reader.versions(b"3") == 3
    with pytest.raises(ValueError, match="twice"):
        reader.versions(b'{"a": 1, "a": 1}')
