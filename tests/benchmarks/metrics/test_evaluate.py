"""The evaluation path: which rows and curves come out, and what is refused."""

import json

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import dirichlet, entropy
from sklearn.metrics import roc_auc_score

from benchmarks.errors import UnknownName
from benchmarks.metrics import METRICS, SetInfo, curves, evaluate, metric
from benchmarks.metrics.detection import threshold_accuracy
from benchmarks.metrics.dirichlet import fitted
from benchmarks.records.predictions import ClassificationPredictions, RegressionPredictions
from fvi_core.metrics import calibration, classification, ood, selective

SCORES = ("predictive_entropy", "expected_entropy", "mutual_information", "msp", "energy")
SETS = [
    SetInfo("photos", "ood", "ood=photos"),
    SetInfo("test", "id"),
    SetInfo("plane", "grid"),
    SetInfo("rotation-30", "shift", "shift=rotation;angle=30"),
]
PARTNERS = [SetInfo("test", "id"), *(SetInfo(f"photos-{n}", "ood", f"ood={n}") for n in ("cifar100", "svhn"))]
MEASURED_ELSEWHERE = {name for name, metric in METRICS.items() if metric.entry} | {
    "training_seconds",
    "zero_probability",
    "mean_distance",
    "std_distance",
    "wasserstein2",
    "wasserstein2_squared",
}  # of trainings, of posteriors, of distances to a reference


def classifier(samples: int = 4) -> dict[str, ClassificationPredictions]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 40)
    signal = 4 * np.eye(3)[labels]
    return {
        "test": ClassificationPredictions(signal + rng.normal(size=(samples, 40, 3)), labels),
        "rotation-30": ClassificationPredictions(signal / 4 + rng.normal(size=(samples, 40, 3)), labels),
        "photos": ClassificationPredictions(rng.normal(size=(samples, 25, 3))),
        "plane": ClassificationPredictions(rng.normal(size=(samples, 6, 3))),
    }


def regressor(samples: int = 4) -> dict[str, RegressionPredictions]:
    rng = np.random.default_rng(0)
    return {
        "test": RegressionPredictions(rng.normal(size=(samples, 9)), 0.1, rng.normal(size=9)),
        "rotation-30": RegressionPredictions(rng.normal(size=(samples, 9)), 0.1, rng.normal(size=9)),
        "photos": RegressionPredictions(9 * rng.normal(size=(samples, 7)), 0.1, None),
        "plane": RegressionPredictions(rng.normal(size=(samples, 6)), 0.1, None),
    }


INPUTS = {"plane": np.arange(12.0).reshape(6, 2)}


def table(rows) -> dict[tuple[str, str], dict]:
    return {(row["condition"], row["metric"]): row for row in rows}


def test_every_metric_is_registered_and_every_registered_metric_comes_out():
    binary = {"test": ClassificationPredictions(np.random.default_rng(1).normal(size=(2, 20, 2)), np.arange(20) % 2)}
    rows = [
        *evaluate("classification", "digits", SETS, classifier(), INPUTS, training=np.zeros((3, 2)))[0],
        *evaluate("classification", "cifar10", PARTNERS, {s.name: classifier()[s.name[:6]] for s in PARTNERS})[0],
        *evaluate("classification", "aptos", [SetInfo("test", "id")], binary, screens=True)[0],
        *evaluate("regression", "boston", SETS, regressor(), INPUTS, training=np.zeros((3, 2)))[0],
    ]
    assert {row["metric"] for row in rows} == METRICS.keys() - MEASURED_ELSEWHERE
    for row in rows:
        assert set(row) == {"dataset", "condition", "metric", "value", "n"}
        assert type(row["value"]) is float and np.isfinite(row["value"]) and type(row["n"]) is int
    for name, entry in METRICS.items():
        assert entry.name == name and entry.direction in ("higher", "lower", "none")
        assert entry.formula and entry.version >= 1
        assert bool(entry.bins) == any(part in ("ece", "ace") for part in name.split("_"))


def test_rows_and_curves_are_strict_json():
    for task, predictions in (("classification", classifier()), ("regression", regressor())):
        result = evaluate(task, "d", SETS, predictions, INPUTS)
        assert json.loads(json.dumps(result, allow_nan=False)) == [*result]


def test_conditions_and_numbers_of_points():
    rows, _ = evaluate("classification", "digits", SETS, classifier(), INPUTS)
    found = table(rows)
    assert {row["dataset"] for row in rows} == {"digits"}
    assert found["", "accuracy"]["n"] == found["shift=rotation;angle=30", "accuracy"]["n"] == 40
    assert found["", "accuracy"]["value"] > found["shift=rotation;angle=30", "accuracy"]["value"]
    assert ("ood=photos", "accuracy") not in found
    assert found["ood=photos", "predictive_entropy"]["n"] == 25
    assert found["ood=photos", "ood_auroc"]["n"] == 65 and found["ood=photos", "ood_accuracy"]["n"] == 50
    for name in ("ood_auroc", "ood_aupr", "ood_fpr95", "ood_accuracy", "ood_accuracy_log_loss"):
        conditions = {"ood=photos", *(f"ood=photos;score={score}" for score in SCORES)}
        assert {c for c, m in found if m == name} == conditions
        default, named = found["ood=photos", name], found["ood=photos;score=predictive_entropy", name]
        assert default["value"] == named["value"]
    assert found["ood=photos", "ood_auroc"]["value"] > 0.8


def test_values_that_are_one_another():
    rows, _ = evaluate("classification", "d", SETS, classifier(), INPUTS)
    found = {key: row["value"] for key, row in table(rows).items()}
    assert found["", "nll"] == -found["", "log_likelihood"] > 0
    assert found["", "aurc"] == pytest.approx(1 - found["", "selective_accuracy_area"])
    assert found["", "mutual_information"] == pytest.approx(
        found["", "predictive_entropy"] - found["", "expected_entropy"]
    )
    assert found["", "ece"] != found["", "ece_10"]
    assert found["", "expected_log_likelihood"] < found["", "log_likelihood"]


def test_every_row_holds_the_value_of_its_own_formula():
    predictions = classifier()
    rows, _ = evaluate("classification", "d", SETS, predictions, INPUTS)
    found = {key: row["value"] for key, row in table(rows).items()}
    summary, photos = (classification.summarise(predictions[name].logits) for name in ("test", "photos"))
    for condition, name in (("", "test"), ("shift=rotation;angle=30", "rotation-30")):  # without and with errors
        labelled, labels = classification.summarise(predictions[name].logits), predictions[name].labels
        confidence, correct = labelled.p.max(-1), labelled.p.argmax(-1) == labels
        assert correct.all() == (name == "test")
        entropies = labelled.scores["predictive_entropy"]
        assert found[condition, "ece"] == calibration.ece(confidence, correct, 15)
        assert found[condition, "ece_10"] == calibration.ece(confidence, correct, 10)
        assert found[condition, "ace_15"] == calibration.ace(confidence, correct, 15)
        assert found[condition, "classwise_ece"] == calibration.classwise_ece(labelled.p, labels)
        assert found[condition, "classwise_ace"] == calibration.classwise_ace(labelled.p, labels)
        assert found[condition, "top_label_ece"] == calibration.top_label_ece(labelled.p, labels)
        assert found[condition, "augrc"] == selective.augrc(correct, entropies)
        assert found[condition, "aurc"] == selective.aurc(correct, entropies)
        area = selective.selective_accuracy_area(correct, entropies)
        assert found[condition, "selective_accuracy_area"] == area
    assert found["", "dirichlet_mutual_information"] == fitted(summary)[1].mean()
    for score in SCORES:
        pair, condition = (summary.scores[score], photos.scores[score]), f"ood=photos;score={score}"
        assert found["", score] == pair[0].mean()
        assert found[condition, "ood_auroc"] == ood.Detection.of(*pair).auroc()
        assert found[condition, "ood_fpr95"] == ood.Detection.of(*pair).fpr95()
        assert found[condition, "ood_aupr"] == ood.aupr(*pair)
        assert found[condition, "ood_accuracy"] == threshold_accuracy(*pair)


def test_one_sample_has_no_dirichlet_and_no_information():
    found = table(evaluate("classification", "d", SETS, classifier(1), INPUTS)[0])
    assert ("", "dirichlet_mutual_information") not in found
    assert found["", "mutual_information"]["value"] == 0
    assert found["ood=photos;score=mutual_information", "ood_auroc"]["value"] == 0.5


def test_curves_of_a_classifier():
    drawn = evaluate("classification", "d", SETS, classifier(), INPUTS)[1]
    assert drawn.keys() == {
        "test/reliability",
        "test/retention",
        "photos/roc",
        "photos/entropy_histogram",
        "photos/confidence",
        "rotation-30/examples",
        "plane/grid",
    }
    assert drawn["photos/roc"].keys() == {"fpr", *SCORES}
    histogram = drawn["photos/entropy_histogram"]
    known = entropy(softmax(classifier()["test"].logits.astype(float), -1).mean(0), axis=-1)
    assert histogram["id"] == np.histogram(known, np.linspace(0, np.log(3), 31))[0].tolist()
    assert sum(histogram["ood"]) == 25
    p = np.exp(classifier()["plane"].logits.astype(float))
    p /= p.sum(-1, keepdims=True)
    grid = drawn["plane/grid"]
    assert grid["x"] == INPUTS["plane"].tolist()
    np.testing.assert_allclose(grid["probability"], p[..., 1].mean(0), rtol=1e-4)
    np.testing.assert_allclose(grid["std"], p[..., 1].std(0), rtol=1e-4)
    np.testing.assert_allclose(grid["predictive_entropy"], entropy(p.mean(0), axis=-1), rtol=1e-4)


def test_the_first_points_are_followed_through_rotations():
    predictions = classifier()
    curve = evaluate("classification", "d", SETS, predictions, INPUTS)[1]["rotation-30/examples"]
    turned = predictions["rotation-30"]
    p = softmax(turned.logits.astype(float), axis=-1)[:, : curves.EXAMPLES]
    assert curve["label"] == turned.labels[: curves.EXAMPLES].tolist()
    np.testing.assert_allclose(curve["probability"], p.mean(0), rtol=1e-4)
    for n, precision in enumerate(curve["precision"]):  # no precision makes the samples more likely, their mean held
        samples, mean = p[:, n] / p[:, n].sum(-1, keepdims=True), p[:, n].mean(0)
        at = [dirichlet.logpdf(samples.T, factor * precision * mean).sum() for factor in (0.95, 1, 1.05)]
        assert at[1] == max(at)
    assert "precision" not in evaluate("classification", "d", SETS, classifier(1), INPUTS)[1]["rotation-30/examples"]


def test_confidence_is_the_share_of_points_at_least_so_sure():
    p = np.array([[0.5, 0.5], [0.7, 0.3], [0.0, 1.0], [1 - 1e-12, 1e-12]])
    curve = curves.confidence(p)
    at = dict(zip(curve["threshold"], curve["share"]))
    assert (at[0.0], at[0.5], at[0.51], at[0.7], at[0.71], at[1.0]) == (1, 1, 0.75, 0.75, 0.5, 0.5)


def test_curves_and_ood_rows_of_a_regressor():
    rows, drawn = evaluate("regression", "d", SETS, regressor(), INPUTS)
    assert drawn.keys() == {"plane/grid", "photos/roc", "test/pit"} | {
        f"{s}/epistemic_entropy" for s in ("test", "rotation-30", "photos")
    }
    assert drawn["test/epistemic_entropy"]["value"] == sorted(drawn["test/epistemic_entropy"]["value"])
    found = table(rows)
    assert found["ood=photos", "ood_auroc"]["value"] > 0.9
    assert found["ood=photos", "ood_auroc"] == found["ood=photos;score=epistemic_variance", "ood_auroc"] | {
        "condition": "ood=photos"
    }
    assert ("ood=photos", "rmse") not in found and ("ood=photos", "epistemic_entropy") in found


def test_eigenvalues_are_those_of_the_sample_covariance():
    f = np.random.default_rng(0).normal(size=(5, 7))
    expected = np.linalg.eigvalsh(np.cov(f.T) / 7)[::-1][:4]  # five draws have four deviations
    assert curves.eigenvalues(f)["value"] == pytest.approx(expected, rel=1e-4)


def test_variances_of_functions_are_compared_with_those_on_the_test_set():
    given = regressor()
    given["photos"] = RegressionPredictions(given["photos"].samples / 6, 0.1, None)
    found = table(evaluate("regression", "d", SETS, given, INPUTS)[0])
    variances = np.concatenate([given[name].samples.var(0, dtype=np.float64) for name in ("test", "photos")])
    assert found["ood=photos", "ood_auroc"]["value"] == pytest.approx(
        roc_auc_score(np.repeat([0, 1], [9, 7]), variances)
    )


@pytest.mark.parametrize(("task", "make"), [("classification", classifier), ("regression", regressor)])
def test_a_likelihoods_own_scores_come_first_and_the_others_stay(task, make):
    predictions = make()
    sets = [SetInfo("test", "id"), SetInfo("photos", "ood", "ood=photos")]
    plain, _ = evaluate(task, "d", sets, predictions)
    found, drawn = evaluate(
        task, "d", sets, predictions, scores=lambda values: {"mine": -values.std(0).reshape(values.shape[1], -1).sum(1)}
    )
    before, after = table(plain), table(found)
    assert set(after) > set(before)
    assert after["ood=photos", "ood_auroc"]["value"] == after["ood=photos;score=mine", "ood_auroc"]["value"]
    assert "mine" in str(drawn["photos/roc"])
    assert all(
        after[key] == row for key, row in before.items() if key[0] != "ood=photos" or not key[1].startswith("ood_")
    )


def test_numbers_of_vectors_count_as_points():
    rng = np.random.default_rng(0)
    f, y, other = rng.normal(size=(7, 5, 2)), rng.normal(size=(5, 2)), rng.normal(size=(7, 4, 2)) * 3
    sets = [SetInfo("test", "id"), SetInfo("far", "ood", "ood=far"), SetInfo("grid", "grid", "inputs=grid")]
    for moments in ({}, {"mean": f.mean(0), "variance": f.var(0)}):
        flat_moments = {name: value.reshape(-1) for name, value in moments.items()}
        vectors = RegressionPredictions(f, 0.3, y, 0.5, 2.0, **moments)
        flat = RegressionPredictions(f.reshape(7, 10), 0.3, y.reshape(10), 0.5, 2.0, **flat_moments)
        predictions = {"test": vectors, "far": RegressionPredictions(other, 0.3, None), "grid": vectors}
        found, drawn = evaluate("regression", "d", sets, predictions, {"grid": np.zeros((5, 2))})
        plain, _ = evaluate("regression", "d", sets[:1], {"test": flat})
        values = {row["metric"]: row for row in found if row["condition"] == ""}
        assert {row["metric"] for row in plain} == set(values)
        for row in plain:
            assert values[row["metric"]]["value"] == pytest.approx(row["value"], rel=1e-6) and row["n"] == 10
            assert values[row["metric"]]["n"] == 5
        errors = 4 * ((y - vectors.samples.mean(0)) ** 2).sum(1)
        np.testing.assert_allclose(drawn["test/squared_errors"]["value"], errors, rtol=1e-4)
        assert np.shape(drawn["grid/grid"]["mean"]) == (5, 2) and drawn["grid/grid"]["samples"] == []
        scores = [vectors.samples.var(0).sum(-1), predictions["far"].samples.var(0).sum(-1)]
        auroc = (scores[1][:, None] > scores[0]).mean()
        assert next(r["value"] for r in found if r["metric"] == "ood_auroc") == pytest.approx(auroc)


def test_lists_are_rounded_to_five_digits():
    values = np.array([[1 / 3, 1e-9 / 3], [np.nan, 123456.7]])
    assert curves.compact(values) == [[0.33333, 3.3333e-10], [None, 123460.0]]
    assert curves.compact(np.array([1234567])) == [1234567]


@pytest.mark.parametrize(
    "task, sets, message",
    [
        ("ranking", SETS, "task: expected one of classification, regression, found 'ranking'"),
        ("classification", [SetInfo("test", "in")], "'test': expected a kind of id, .* found 'in'"),
        ("classification", [SetInfo("valid", "id")], "'valid': expected Classification.*, found none.*for test"),
        ("regression", [SetInfo("test", "id")], "'test': expected Regression.*, found Classification"),
        ("classification", [SetInfo("photos", "id")], "'photos': expected labels"),
        ("classification", [SetInfo("photos", "ood")], "'photos': an OOD set needs"),
        ("classification", [SetInfo("test", "grid")], "'test': expected inputs of 40 points, found no inputs"),
        ("classification", [SetInfo("test", "id"), SetInfo("rotation-30", "shift")], "share the condition ''"),
    ],
)
def test_bad_input_is_refused(task, sets, message):
    with pytest.raises(ValueError, match=message):
        evaluate(task, "digits", sets, classifier(), {})


def test_inputs_of_another_length_are_refused():
    with pytest.raises(ValueError, match="expected inputs of 6 points, found 3"):
        evaluate("regression", "d", [SetInfo("plane", "grid")], regressor(), {"plane": np.zeros(3)})


def test_an_unknown_metric_gives_the_nearest_names():
    assert metric("ece").bins.startswith("15 bins")
    with pytest.raises(UnknownName, match="unknown metric 'acuracy'; did you mean 'accuracy'"):
        metric("acuracy")


def test_the_order_of_the_classes_orders_no_points():
    """Entropies of the same probabilities in another order of the classes differ in their last bits alone."""
    draw, p = np.random.default_rng(0), np.array([0.12, 0.06, 0.04, 0.7, 0.08])
    logits = [np.log([[draw.permutation(p) for _ in range(60)]]) for _ in range(2)]
    test, other = (ClassificationPredictions(each, np.arange(60) % 5, exact=True) for each in logits)
    assert len(np.unique(classification.summarise(test.logits).scores["predictive_entropy"])) > 1
    infos = [SetInfo("test", "id"), SetInfo("other", "ood", "ood=other")]
    rows, _ = evaluate("classification", "d", infos, {"test": test, "other": other})
    found = {(row["condition"], row["metric"]): row["value"] for row in rows}
    for score in ("predictive_entropy", "msp", "expected_entropy"):
        for name in ("ood_auroc", "ood_accuracy"):
            assert found[f"ood=other;score={score}", name] == 0.5
    assert found["", "aurc"] == pytest.approx(1 - found["", "accuracy"])


def test_shares_of_counts_are_in_the_bin_that_ends_there_whatever_the_order_of_the_classes():
    """Logarithms round a share of 0.6 to either side of the bin's end; votes of ten trees have such shares."""
    draw = np.random.default_rng(0)
    votes = np.stack([draw.multinomial(10, draw.dirichlet(np.full(3, 0.7))) for _ in range(500)])
    labels, most = draw.integers(0, 3, 500), votes.max(-1)
    with np.errstate(divide="ignore"):
        own = ClassificationPredictions(np.log(votes / 10)[None], labels, exact=True)
    rows, drawn = evaluate("classification", "d", [SetInfo("test", "id")], {"test": own})
    found = {row["metric"]: row["value"] for row in rows}
    right = votes.argmax(-1) == labels
    for name, bins in (("ece", 15), ("ece_10", 10)):
        index = -(-most * bins // 10) - 1  # share k / 10 lies in (b / bins, (b + 1) / bins]
        expected = sum(abs((right - most / 10)[index == b].sum()) for b in range(bins)) / 500
        assert found[name] == pytest.approx(expected, abs=1e-9)
    assert drawn["test/reliability"]["count"] == np.bincount(-(-most * 15 // 10) - 1, minlength=15).tolist()
    assert found["ace_15"] == pytest.approx(calibration.ace(most / 10, right), abs=1e-9)
    assert found["classwise_ace"] == pytest.approx(calibration.classwise_ace(votes / 10, labels), abs=1e-9)
