"""Screening: areas, referral curves and joint sets, each against a case by hand and against scikit-learn."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as reference

from benchmarks.metrics import METRICS, SetInfo, evaluate, screening, summarise
from benchmarks.metrics.screening import Cases
from benchmarks.records.predictions import ClassificationPredictions

# In the order of their certainty: sure and right twice, sure and wrong once, then less and less sure.
SCORE = np.array([0.01, 0.98, 0.95, 0.9, 0.3, 0.6])
LABELS = np.array([0, 1, 0, 1, 1, 0])


def cases(score: np.ndarray = SCORE, labels: np.ndarray = LABELS) -> Cases:
    p = np.stack([1 - score, score], 1)
    entropy = -(p * np.log(p)).sum(1)
    return Cases(score, labels, entropy, -np.log(p[np.arange(len(p)), labels]), (score > 0.5) == labels)


def random_cases(n: int, seed: int, places: int = 9) -> Cases:
    random = np.random.default_rng(seed)
    labels = (random.random(n) < 0.3).astype(np.int64)
    logits = random.normal(1.5 * labels - 0.5, 1.5)
    return cases((1 / (1 + np.exp(-logits))).round(places).clip(0.001, 0.999), labels)


def test_cases_come_from_the_mean_probabilities() -> None:
    logits = np.array([[[2.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 3.0]]])
    labels = np.array([1, 1])
    found = Cases.of(summarise(logits), labels)
    score = [(1 / (1 + np.exp(2)) + 0.5) / 2, (1 / (1 + np.exp(-1)) + 1 / (1 + np.exp(-3))) / 2]
    assert found.score == pytest.approx(score) and found.correct.tolist() == [False, True]
    assert found.loss == pytest.approx(-np.log(score))
    assert found.uncertainty == pytest.approx([-(p * np.log(p) + (1 - p) * np.log(1 - p)) for p in score])
    three = np.zeros((1, 2, 3))
    with pytest.raises(ValueError, match="expected two classes, found 3"):
        Cases.of(summarise(three), labels)


def test_areas_and_rates_by_hand() -> None:
    # 9 pairs of a score with a finding (0.98, 0.9, 0.3) and one without (0.01, 0.95, 0.6): 3 + 2 + 1 are in order.
    assert screening.auroc(SCORE, LABELS) == pytest.approx(6 / 9)
    assert screening.auroc(np.array([0.5, 0.5]), np.array([0, 1])) == 0.5
    # Thresholds downwards: precision 1, 1/2, 2/3, 1/2, 3/5, 1/2 at recall 1/3, 1/3, 2/3, 2/3, 1, 1.
    assert screening.auprc(SCORE, LABELS) == pytest.approx((1 + (1 / 2 + 2 / 3) / 2 + (1 / 2 + 3 / 5) / 2) / 3)
    assert screening.balanced_accuracy(cases()) == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert screening.sensitivity(SCORE, LABELS) == pytest.approx(1 / 3)  # no false alarm is allowed among three
    assert screening.sensitivity(SCORE, LABELS, 2 / 3) == pytest.approx(2 / 3)
    ten = np.arange(10) / 10, np.repeat([0, 1], 5)
    assert screening.sensitivity(ten[0][::-1], ten[1], 0.8) == 0 and screening.sensitivity(*ten, 0.8) == 1
    assert screening.NHS == (0.85, 0.80)


@pytest.mark.parametrize("places", [2, 9])
def test_areas_and_rates_are_scikit_learns(places: int) -> None:
    found = random_cases(400, 1, places)
    assert len(np.unique(found.score)) < 120 or places == 9
    score, labels = found.score, found.labels
    assert screening.auroc(score, labels) == pytest.approx(reference.roc_auc_score(labels, score))
    precision, recall, _ = reference.precision_recall_curve(labels, score)
    assert screening.auprc(score, labels) == pytest.approx(reference.auc(recall, precision))
    assert screening.balanced_accuracy(found) == pytest.approx(reference.balanced_accuracy_score(labels, score > 0.5))
    false, true, _ = reference.roc_curve(labels, score, drop_intermediate=False)
    assert screening.roc(score, labels)[0] == pytest.approx(false)
    assert screening.roc(score, labels)[1] == pytest.approx(true)
    assert screening.sensitivity(score, labels) == pytest.approx(true[false <= 0.2].max())


def test_labels_of_one_kind_have_no_areas() -> None:
    same = np.ones(6, np.int64)
    assert screening.auroc(SCORE, same) is None and screening.sensitivity(SCORE, same) is None
    assert screening.auprc(SCORE, same) == 1 and screening.auprc(SCORE, 1 - same) is None
    assert screening.metrics(cases(labels=1 - same)) == {"balanced_accuracy": pytest.approx(2 / 6)}


def test_referral_curves_by_hand() -> None:
    found = screening.referral_curves(cases())
    assert found["accuracy"] == pytest.approx([3 / 6, 3 / 5, 3 / 4, 2 / 3, 1, 1, 1])
    loss = -np.log([0.99, 0.98, 0.05, 0.9, 0.3, 0.4])
    assert found["nll"] == pytest.approx([*(loss[:n].mean() for n in range(6, 0, -1)), 0])
    # Pairs in order among the 0 to 6 most certain cases; without a pair, no error is among them.
    sizes = [bucket * 6 // 100 for bucket in range(100, -1, -1)]
    by_size = {0: 1, 1: 1, 2: 1, 3: 1, 4: 3 / 4, 5: 4 / 6, 6: 6 / 9}
    assert found["auroc"] == pytest.approx([by_size[n] for n in sizes])
    assert len(found["auprc"]) == 101 and found["auprc"][[0, -1]] == pytest.approx([screening.auprc(SCORE, LABELS), 1])
    area = screening.areas(found)
    assert area["referral_accuracy_area"] == pytest.approx((3 / 6 + 3 / 5 + 3 / 4 + 2 / 3 + 3) / 7)


def test_an_area_that_is_not_defined_is_one_until_the_first_error() -> None:
    wrong = cases(np.array([0.01, 0.98, 0.9, 0.4]), np.array([0, 0, 0, 1]))
    curve = screening.referral_curves(wrong)["auroc"][::-1]
    assert (curve[:50] == 1).all() and (curve[50:100] == 0).all() and curve[100] == pytest.approx(1 / 3)


def in_this_order(kept: Cases) -> dict[str, list[float]]:
    """Referral curves of cases that are kept in this very order, by the definitions."""
    found: dict[str, list[float]] = {"accuracy": [1.0], "nll": [0.0], "auroc": [], "auprc": []}
    for k in range(1, len(kept) + 1):
        found["accuracy"].append(kept.correct[:k].mean())
        found["nll"].append(kept.loss[:k].mean())
    sizes = [bucket * len(kept) // screening.BUCKETS for bucket in range(screening.BUCKETS + 1)]
    for name, area in (("auroc", _pairs), ("auprc", screening.auprc)):
        values = {k: _area(kept.take(np.arange(k)), area) for k in set(sizes)}
        found[name] = [values[k] for k in sizes]
    return {name: curve[::-1] for name, curve in found.items()}


def _pairs(score: np.ndarray, labels: np.ndarray) -> float | None:
    gaps = score[labels == 1][:, None] - score[labels == 0]
    return float((gaps > 0).mean() + (gaps == 0).mean() / 2) if gaps.size else None


def _area(kept: Cases, area: Callable[[np.ndarray, np.ndarray], float | None]) -> float:
    if len(set(kept.labels)) < 2 and kept.correct.all():
        return 1.0
    return area(kept.score, kept.labels) or 0.0


tied = st.lists(
    st.tuples(st.sampled_from([0.1, 0.3, 0.4, 0.6, 0.7, 0.9]), st.booleans(), st.sampled_from([0.1, 0.2, 0.3])),
    min_size=1,
    max_size=5,
)


@settings(deadline=None, max_examples=20)
@given(tied)
def test_referral_curves_are_means_over_all_orders_of_ties(values: list[tuple[float, bool, float]]) -> None:
    score, labels, uncertainty = (np.array(column) for column in zip(*values))
    found = replace(cases(score, labels.astype(np.int64)), uncertainty=uncertainty)
    orders = [found.take(np.array(order)) for order in itertools.permutations(range(len(values)))]
    each = [in_this_order(one.take(np.argsort(one.uncertainty, kind="stable"))) for one in orders]
    for name, curve in screening.referral_curves(found).items():
        assert curve == pytest.approx(np.mean([one[name] for one in each], axis=0)), name


@pytest.mark.parametrize("seed", range(2))
def test_referral_curves_of_many_ties_are_means_over_random_orders(seed: int) -> None:
    found = random_cases(60, seed, 1)
    assert len(np.unique(found.uncertainty.round(9))) < 10
    found = replace(found, uncertainty=found.uncertainty.round(9))
    random = np.random.default_rng(seed)
    each: dict[str, list[list[float]]] = {name: [] for name in ("accuracy", "auroc", "auprc", "nll")}
    for _ in range(30):
        shuffled = found.take(random.permutation(len(found)))
        kept = shuffled.take(np.argsort(shuffled.uncertainty, kind="stable"))
        for name, curve in in_this_order(kept).items():
            each[name].append(curve)
    for name, curve in screening.referral_curves(found).items():
        error = np.std(each[name], axis=0) / np.sqrt(30)
        assert (np.abs(curve - np.mean(each[name], axis=0)) <= 5 * error + 1e-9).all(), name


def test_without_ties_referral_curves_are_those_of_the_order_to_the_last_digit() -> None:
    found = random_cases(211, 3)
    assert len(np.unique(found.uncertainty)) == len(found)
    kept = found.take(np.argsort(found.uncertainty, kind="stable"))
    count = np.arange(1, len(found) + 1)
    curves, by_order = screening.referral_curves(found), in_this_order(kept)
    assert np.array_equal(curves["accuracy"], np.append(1, np.cumsum(kept.correct) / count)[::-1])
    assert np.array_equal(curves["nll"], np.append(0, np.cumsum(kept.loss) / count)[::-1])
    assert curves["auroc"] == pytest.approx(by_order["auroc"]) and np.array_equal(curves["auprc"], by_order["auprc"])


def test_ties_of_logits_in_half_precision_move_areas_by_less_than_anybody_prints() -> None:
    random = np.random.default_rng(0)
    labels = (random.random(1000) < 0.2).astype(np.int64)
    logits = random.normal(size=(1, 1000, 2))
    logits[0, np.arange(1000), labels] += 1.5
    found = Cases.of(summarise(ClassificationPredictions(logits, labels).logits), labels)
    assert len(np.unique(found.uncertainty)) < 990
    before = in_this_order(found.take(np.argsort(found.uncertainty, kind="stable")))
    old = screening.areas({name: np.array(curve) for name, curve in before.items()})
    for name, value in screening.areas(screening.referral_curves(found)).items():
        assert value == pytest.approx(old[name], abs=5e-5), name


def test_areas_on_kept_cases_are_scikit_learns() -> None:
    found = random_cases(300, 2)
    order = np.argsort(found.uncertainty, kind="stable")
    curve = screening.referral_curves(found)
    for bucket in (20, 50, 99, 100):
        kept = order[: 3 * bucket]
        precision, recall, _ = reference.precision_recall_curve(found.labels[kept], found.score[kept])
        assert curve["auprc"][100 - bucket] == pytest.approx(reference.auc(recall, precision))
        assert curve["auroc"][100 - bucket] == pytest.approx(
            reference.roc_auc_score(found.labels[kept], found.score[kept])
        )


def test_an_oracle_decides_on_the_referred_cases() -> None:
    found = screening.referral_curves(cases())
    # Right among the kept, and all of the referred, of six.
    oracle = screening.with_oracle("accuracy", found["accuracy"])
    assert oracle == pytest.approx(np.array([3, 3 + 1, 3 + 2, 2 + 3, 2 + 4, 1 + 5, 6]) / 6)
    kept = np.array([found["nll"][i] * (6 - i) for i in range(7)])
    assert screening.with_oracle("nll", found["nll"]) == pytest.approx(kept / 6)
    assert screening.areas(found)["referral_accuracy_area_oracle"] == pytest.approx(oracle.mean())
    assert screening.without_oracle(oracle) == pytest.approx(found["accuracy"])
    # What RETINA's plots show of a curve that never had one: 3/5 becomes (3/5 - 1/6) / (5/6).
    assert screening.without_oracle(found["accuracy"])[1] == pytest.approx(0.52)


def test_joint_sets_and_their_balance() -> None:
    known, shifted = random_cases(50, 3), random_cases(20, 4)
    both = screening.joint(known, shifted)
    assert len(both) == 70 and np.array_equal(both.score[50:], shifted.score)
    even = screening.balanced(known, shifted)
    assert len(even) == 100 and np.array_equal(even.score[50:90], np.tile(shifted.score, 2))
    assert len(set(even.score[90:])) == 10 and set(even.score[90:]) < set(shifted.score)
    assert np.array_equal(screening.balanced(known, shifted).score, even.score)
    assert len(screening.balanced(shifted, known)) == 40  # a larger shifted set is reduced


def test_the_balanced_curves_of_retinas_code_are_partly_unbalanced() -> None:
    known, shifted = random_cases(200, 5), random_cases(40, 6)
    right = screening.balanced_curves(known, shifted)
    retina = screening.balanced_curves(known, shifted, as_retina=True)
    unbalanced = screening.referral_curves(screening.joint(known, shifted))
    for name in ("accuracy", "nll"):
        assert np.array_equal(retina[name], right[name])
    for name in ("auroc", "auprc"):
        assert np.array_equal(retina[name], unbalanced[name])
        assert not np.array_equal(retina[name], right[name])


def _predictions(n: int, seed: int) -> ClassificationPredictions:
    found = random_cases(n, seed)
    return ClassificationPredictions(
        np.stack([0 * found.score, np.log(found.score / (1 - found.score))], 1)[None], found.labels
    )


def test_rows_and_curves_of_a_run() -> None:
    sets = [SetInfo("test", "id"), SetInfo("idrid", "shift", "shift=idrid"), SetInfo("severe", "shift", "shift=severe")]
    predictions = {name: _predictions(n, n) for name, n in (("test", 120), ("idrid", 50))}
    severe = _predictions(30, 30)
    predictions["severe"] = replace(severe, labels=np.ones(30, np.int64))
    rows, drawn = evaluate("classification", "aptos", sets, predictions, screens=True)
    found = {(row["condition"], row["metric"]): row for row in rows}
    assert {row["metric"] for row in rows} <= set(METRICS)
    known, shifted = (
        Cases.of(summarise(predictions[name].logits), predictions[name].given_labels) for name in ("test", "idrid")
    )
    assert found["", "auroc"]["value"] == screening.auroc(known.score, known.labels)
    both = screening.joint(known, shifted)
    area = found["joint;shift=idrid", "referral_auroc_area"]
    assert area["value"] == screening.areas(screening.referral_curves(both))["referral_auroc_area"] and area["n"] == 170
    assert found["joint;shift=idrid;balanced", "referral_nll_area"]["n"] == 240
    assert ("shift=severe", "auroc") not in found and ("joint;shift=severe", "auroc") in found
    assert ("shift=severe", "balanced_accuracy") in found
    curve = drawn["idrid/joint_referral"]
    assert len(curve["referred"]) == 101 and curve["accuracy"][0] == pytest.approx(both.correct.mean(), rel=1e-4)
    assert drawn["test/screening_roc"]["fpr"][1] == 0.02 and drawn["test/screening_roc"]["sensitivity"][-1] == 1
    plain, without = evaluate("classification", "aptos", sets, predictions)
    keys = [(r["condition"], r["metric"]) for r in plain]
    assert "auroc" not in {metric for _, metric in keys} and set(without) < set(drawn)
    assert [found[key] for key in keys] == plain


def test_without_the_test_set_a_shift_has_its_own_rows_and_no_joint_ones() -> None:
    """Another training, with which a run is compared, is evaluated on no set at all."""
    assert evaluate("classification", "aptos", [], {}, screens=True) == ([], {})
    shift = SetInfo("shift-idrid", "shift", "shift=country;to=idrid")
    logits = np.random.default_rng(0).normal(size=(3, 20, 2))
    predictions = {shift.name: ClassificationPredictions(logits, np.arange(20) % 2)}
    rows, drawn = evaluate("classification", "aptos", [shift], predictions, screens=True)
    assert {row["condition"] for row in rows} == {shift.condition}
    assert {"auroc", "referral_accuracy_area"} <= {row["metric"] for row in rows}
    assert f"{shift.name}/referral" in drawn and not any("joint" in name or "balanced" in name for name in drawn)
