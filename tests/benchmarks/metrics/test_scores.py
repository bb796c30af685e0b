"""Scores of classifiers for other sources: maximum probability, energy, and means over near and far sets."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.metrics import SetInfo, detection, evaluate, summarise
from benchmarks.records.predictions import ClassificationPredictions

SETS = [SetInfo("test", "id"), *(SetInfo(f"ood-{n}", "ood", f"ood={n}") for n in ("mnist", "not_mnist", "svhn"))]


def predictions(of=lambda logits: logits) -> dict[str, ClassificationPredictions]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60)
    found = {"test": ClassificationPredictions(of(4 * np.eye(3)[labels] + rng.normal(size=(5, 60, 3))), labels)}
    for i, s in enumerate(SETS[1:]):
        found[s.name] = ClassificationPredictions(of((1 + i) * rng.normal(size=(5, 40, 3))))
    return found


def rows_of(dataset: str, given) -> dict[tuple[str, str], dict]:
    return {(row["condition"], row["metric"]): row for row in evaluate("classification", dataset, SETS, given)[0]}


def test_scores_rank_as_their_papers_say():
    given = predictions()
    found = rows_of("d", given)
    logits = {name: torch.from_numpy(p.logits.astype(np.float64)) for name, p in given.items()}
    y = np.repeat([0, 1], [60, 40])
    msp = {name: -f.softmax(-1).mean(0).max(-1).values for name, f in logits.items()}
    energies = {name: -f.logsumexp(-1).mean(0) for name, f in logits.items()}
    for score, values in (("msp", msp), ("energy", energies)):
        both = torch.cat([values["test"], values["ood-mnist"]]).numpy()
        at = f"ood=mnist;score={score}"
        assert found[at, "ood_auroc"]["value"] == pytest.approx(roc_auc_score(y, both))
        assert found[at, "ood_aupr"]["value"] == pytest.approx(average_precision_score(y, both))
    assert found["", "msp"]["value"] == pytest.approx(1 + msp["test"].mean().item())
    assert found["", "energy"]["value"] == pytest.approx(energies["test"].mean().item())
    np.testing.assert_allclose(summarise(given["test"].logits).scores["energy"], energies["test"])


def test_log_probabilities_have_no_energy_and_all_else():
    given = predictions(lambda logits: log_softmax(logits, -1))
    found, plain = rows_of("d", given), rows_of("d", predictions())
    assert {key for key in plain if key not in found} == {
        *((s.condition, "energy") for s in SETS),
        *(
            (f"{s.condition};score=energy", f"ood_{m}")
            for s in SETS[1:]
            for m in ("auroc", "aupr", "fpr95", "accuracy", "accuracy_log_loss")
        ),
    }
    assert "energy" not in summarise(np.log(softmax(np.zeros((1, 4, 1000)), -1))).scores
    mixed = predictions() | {"ood-svhn": given["ood-svhn"]}
    assert ("ood=svhn;score=energy", "ood_auroc") not in rows_of("d", mixed)


def test_groups_are_means_over_their_sets():
    found = rows_of("fashion_mnist", predictions())
    for score in ("", ";score=energy", ";score=predictive_entropy"):
        for metric in ("ood_auroc", "ood_aupr", "ood_fpr95"):
            values = [found[f"ood={name}{score}", metric]["value"] for name in ("mnist", "not_mnist")]
            group = found[score[1:], f"near_{metric}"]
            assert group["value"] == pytest.approx(sum(values) / 2) and group["n"] == 200
    assert not any(metric.startswith("far_") or metric == "near_ood_accuracy" for _, metric in found)
    assert rows_of("cifar10", predictions())["", "far_ood_auroc"]["value"] == pytest.approx(
        found["ood=svhn", "ood_auroc"]["value"]
    )
    assert not any(metric.startswith(("near_", "far_")) for _, metric in rows_of("digits", predictions()))


def test_no_set_is_near_and_far():
    for dataset, grouped in detection.GROUPS.items():
        members = [name for names in grouped.values() for name in names]
        assert len(members) == len(set(members)) and dataset not in members and set(grouped) <= {"near", "far"}
