"""Unknown names: answered by those that are spelt alike or hold them, in whatever case, else by all."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fvi_core.registry import checked, later
from fvi_core.spelling import alike, check_known, check_limits, nearest


@pytest.mark.parametrize(
    ("name", "known", "answer"),
    [
        ("fsvi ensembl", ["FSVI", "FSVI Ensemble", "MAP"], "did you mean 'FSVI Ensemble' or 'FSVI'?"),
        ("gaussian", ["student", "gaussian_weights"], "did you mean 'gaussian_weights'?"),
        ("DIGITS", ["boston", "digits"], "did you mean 'digits'?"),
        ("snow", ["fog", "jpeg"], "known: fog, jpeg"),
        ("", {"b": 1, "a": 2}, "known: a, b"),
        ("snow", [], "known: none"),
        (3, ["a"], "known: a"),
    ],
)
def test_the_nearest_names_are_given(name: str, known: list[str], answer: str) -> None:
    assert nearest(name, known) == answer


def test_names_that_begin_alike() -> None:
    assert alike("abx", ["abc", "xyz", "abd", "axe", "abxy"], most=3) == ["abxy", "abc", "abd"]
    assert alike("q", ["abc"]) == []


def test_a_value_that_is_not_known_is_named_with_its_place_and_the_nearest():
    check_known("network 'cnn': norm", "batch", ("none", "batch"))
    with pytest.raises(ValueError, match="^network 'cnn': norm 'bach' is not known; did you mean 'batch'"):
        check_known("network 'cnn': norm", "bach", ("none", "batch"))


@pytest.mark.parametrize(
    ("limits", "inside", "outside", "expected"),
    [
        ({"least": 1}, (1, 7.5), (0.99, float("nan")), "1 or more"),
        ({"above": 0}, (1e-9,), (0,), "above 0"),
        ({"least": 0, "below": 1}, (0, 0.99), (-0.1, 1), "0 or more and below 1"),
        ({"above": 0, "most": 1}, (0.5, 1), (0, 1.1), "above 0 and 1 or less"),
        ({"least": 1}, (np.int64(3), np.float32(1.5)), (np.float32(0.5),), "1 or more"),
    ],
)
def test_a_number_beyond_its_limits_is_named_with_its_place(limits, inside, outside, expected):
    for value in inside:
        check_limits("family 'swag': start", value, "float", **limits)
    for value in outside:
        with pytest.raises(ValueError, match=re.escape(f"family 'swag': start: expected {expected}, found {value!r}")):
            check_limits("family 'swag': start", value, "float", **limits)


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("float", (1.0,), ("1", None, [1.0])),
        ("list[int]", ([1, 2], (1,), []), (1, ["1"])),
        ("tuple[int, ...] | None", ((1, 2),), (1, None)),
        ("int | list[int]", (1, [1, 2]), ("1",)),
    ],
)
def test_a_value_of_another_form_is_refused_with_the_type(kind, right, wrong):
    for value in right:
        check_limits("network 'mlp': hidden", value, kind, least=1)
    for value in wrong:
        with pytest.raises(ValueError, match=re.escape(f"network 'mlp': hidden: expected {kind}, found {value!r}")):
            check_limits("network 'mlp': hidden", value, kind, least=1)
    with pytest.raises(ValueError, match="hidden: expected 1 or more, found "):
        check_limits("network 'mlp': hidden", [1, 0] if "[" in kind else 0, kind, least=1)


def test_a_limit_of_another_name_is_refused_where_it_is_declared():
    for declare in (checked, later):
        with pytest.raises(TypeError, match="limit 'lest' is not known; did you mean 'least'"):
            declare(1.0, lest=0)
