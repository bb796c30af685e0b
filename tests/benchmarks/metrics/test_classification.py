"""Classification metrics against scikit-learn, formulas by hand, and Monte Carlo."""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import entropy
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from benchmarks.metrics import SetInfo, dirichlet, evaluate
from benchmarks.records.predictions import ClassificationPredictions
from fvi_core.metrics import classification
from fvi_core.metrics.probabilities import smooth


def predictions(samples=7, points=200, classes=5, seed=0, spread=1.0) -> ClassificationPredictions:
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(1, points, classes)) + spread * rng.normal(size=(samples, points, classes))
    return ClassificationPredictions(logits, rng.integers(0, classes, points))


def probabilities(stored: ClassificationPredictions) -> np.ndarray:
    return softmax(stored.logits.astype(np.float64), axis=-1)


def test_predictive_distribution_is_the_mean_of_softmax():
    stored = predictions()
    summary, p = classification.summarise(stored.logits), probabilities(stored)
    np.testing.assert_allclose(summary.p, p.mean(0), rtol=1e-12)
    np.testing.assert_allclose(summary.log_p, np.log(p.mean(0)), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(summary.expected_log_p, np.log(p).mean(0), rtol=1e-10)


@pytest.mark.parametrize("wrong", [[0.0, np.nan], [0.0, np.inf], [-np.inf, -np.inf]])
def test_logits_without_a_largest_one_are_refused(wrong):
    logits = np.zeros((2, 3, 2))
    logits[1, 2] = wrong
    with pytest.raises(ValueError, match="^logits: expected a finite largest one at every point, found NaN.* at 1$"):
        classification.summarise(logits)


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 2), (2, 3, 0)])
def test_no_logits_are_refused(shape):
    with pytest.raises(ValueError, match="^logits: expected samples, points and classes, found "):
        classification.summarise(np.zeros(shape))


def test_uncertainties_by_scipy_entropy():
    stored = predictions()
    summary, p = classification.summarise(stored.logits), probabilities(stored)
    total, expected = entropy(p.mean(0), axis=-1), entropy(p, axis=-1).mean(0)
    np.testing.assert_allclose(summary.scores["predictive_entropy"], total, rtol=1e-10)
    np.testing.assert_allclose(summary.scores["expected_entropy"], expected, rtol=1e-10)
    np.testing.assert_allclose(summary.scores["mutual_information"], total - expected, rtol=1e-8)


def test_reduction_in_chunks_changes_nothing(monkeypatch):
    whole = classification.summarise(predictions().logits)
    monkeypatch.setattr(classification, "_CHUNK", 333)
    chunked = classification.summarise(predictions().logits)
    np.testing.assert_array_equal(whole.log_p, chunked.log_p)
    np.testing.assert_array_equal(whole.expected_log_smoothed_p, chunked.expected_log_smoothed_p)


def test_equal_samples_have_exactly_no_mutual_information():
    logits = np.repeat(predictions(1).logits, 10, axis=0)
    summary = classification.summarise(logits)
    assert (summary.scores["mutual_information"] == 0).all()
    assert dirichlet.fitted(summary)[1].max() < 1e-5


def test_accuracy_and_log_likelihood_against_sklearn():
    stored = predictions()
    summary, y = classification.summarise(stored.logits), stored.labels
    assert classification.accuracy(summary.p, y) == accuracy_score(y, summary.p.argmax(-1))
    assert classification.log_likelihood(summary.log_p, y) == pytest.approx(-log_loss(y, summary.p))


@pytest.mark.parametrize("metric", [classification.accuracy, classification.log_likelihood, classification.brier])
def test_labels_that_do_not_belong_to_the_points_are_refused(metric):
    """A column of labels would be compared with every point, and -1 would be the last class."""
    p, y = np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([0, 1])
    assert np.isfinite(metric(p, y))
    for wrong in (y[:, None], y - 1, y + 1, y[:1], y[:0]):
        with pytest.raises(ValueError, match=r"^expected probabilities \[N, C\] and labels \[N\] in 0..C-1, found"):
            metric(p, wrong)


def test_smoothed_log_likelihood_by_hand():
    p = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    stored = ClassificationPredictions(np.log(np.maximum(p, 1e-20))[None], np.array([1, 2]))
    rows, _ = evaluate("classification", "d", [SetInfo("test", "id")], {"test": stored})
    found = {row["metric"]: row["value"] for row in rows}
    by_hand = (np.log(0.9999 * 0.3 + 1e-4 / 3) + np.log(1e-4 / 3)) / 2
    assert found["smoothed_log_likelihood"] == pytest.approx(by_hand, rel=1e-4)
    assert found["log_likelihood"] < -20 < found["smoothed_log_likelihood"]


def test_expected_log_likelihood_by_hand_and_below_that_of_the_predictive():
    stored = predictions()
    summary, p, n = classification.summarise(stored.logits), probabilities(stored), np.arange(200)
    expected = classification.log_likelihood(summary.expected_log_p, stored.labels)
    assert expected == pytest.approx(np.log(p[:, n, stored.labels]).mean(), rel=1e-12)
    assert expected < classification.log_likelihood(summary.log_p, stored.labels)


def test_log_likelihood_where_the_probability_underflows():
    stored = ClassificationPredictions(np.array([[[0.0, 2000.0]], [[0.0, 3000.0]]]), np.array([0]))
    summary = classification.summarise(stored.logits)
    assert classification.log_likelihood(summary.log_p, stored.labels) == pytest.approx(-2000 - np.log(2))
    assert classification.log_likelihood(summary.expected_log_p, stored.labels) == pytest.approx(-2500)


def test_brier_against_sklearn_and_by_hand():
    rng = np.random.default_rng(1)
    p, y = rng.dirichlet(np.ones(4), 50), rng.integers(0, 4, 50)
    one_against_rest = sum(brier_score_loss(y == c, p[:, c]) for c in range(4))
    assert classification.brier(p, y) == pytest.approx(one_against_rest)
    assert classification.brier(np.array([[0.7, 0.2, 0.1]]), np.array([0])) == pytest.approx(0.14)


def test_brier_of_very_many_classes_leaves_the_probabilities_as_they_are():
    p = np.zeros((1, 5_000_000))  # a matrix of this side is larger than any address space
    p[0, 0] = 1
    assert classification.brier(p, np.array([1])) == 2
    assert p[0, 1] == 0


def fitted_to(alpha: np.ndarray, samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    p = smooth(np.random.default_rng(seed).dirichlet(alpha, (samples, 1)))
    return p.mean(0), np.log(p).mean(0)


@pytest.mark.parametrize("alpha", [[2.0, 3.0, 5.0], [0.8, 0.7, 1.5, 4.0], [300.0, 500.0]])
def test_dirichlet_precision_is_found_again_from_many_samples(alpha):
    z = dirichlet.precision(*fitted_to(np.array(alpha), 50_000))
    assert z[0] == pytest.approx(sum(alpha), rel=0.02)


def test_dirichlet_precision_maximises_the_likelihood():
    from scipy.optimize import minimize_scalar
    from scipy.stats import dirichlet as scipy_dirichlet

    p = smooth(np.random.default_rng(3).dirichlet([1.0, 2.0, 0.5], (10, 4)))
    found = dirichlet.precision(p.mean(0), np.log(p).mean(0))
    for point in range(4):
        mean = p[:, point].mean(0)

        def loss(log_z):
            return -scipy_dirichlet.logpdf(p[:, point].T, np.exp(log_z) * mean / mean.sum()).sum()

        best = minimize_scalar(loss, bounds=(-5, 10), method="bounded", options={"xatol": 1e-9}).x
        assert found[point] == pytest.approx(np.exp(best), rel=1e-4)


def test_dirichlet_precision_agrees_with_the_one_used_in_training():
    import torch

    from fvi_core.divergences.dirichlet import minka_precision

    p = smooth(np.random.default_rng(4).dirichlet([2.0, 4.0, 1.0], (12, 30)))
    trained = minka_precision(torch.from_numpy(p), 1e-3, 1e6, tolerance=1e-10).numpy()
    np.testing.assert_allclose(dirichlet.precision(p.mean(0), np.log(p).mean(0)), trained, rtol=1e-6)


def test_dirichlet_precision_stays_within_its_bounds():
    mean = np.full((2, 3), 1 / 3)
    apart = np.log(np.full((1, 3), 1e-30))
    z = dirichlet.precision(mean, np.concatenate([np.log(mean[:1]), apart]), bounds=(3, 100))
    np.testing.assert_allclose(z, [100, 3])


@pytest.mark.parametrize("alpha", [[2.0, 3.0, 5.0], [0.3, 0.3, 0.3, 2.0], [40.0, 1.0]])
def test_dirichlet_mutual_information_against_monte_carlo(alpha):
    alpha = np.array(alpha)
    p = np.random.default_rng(0).dirichlet(alpha, 400_000)
    monte_carlo = entropy(p.mean(0)) - entropy(p, axis=-1).mean()
    closed = dirichlet.mutual_information((alpha / alpha.sum())[None], np.array([alpha.sum()]))
    assert closed[0] == pytest.approx(monte_carlo, abs=2e-3 * np.log(len(alpha)))


def test_dirichlet_and_sampled_mutual_information_agree_on_dirichlet_samples():
    p = np.random.default_rng(2).dirichlet([4.0, 2.0, 6.0], (3000, 20))
    summary = classification.summarise(ClassificationPredictions(np.log(p)).logits)
    np.testing.assert_allclose(
        dirichlet.fitted(summary)[1].mean(), summary.scores["mutual_information"].mean(), rtol=0.03
    )
