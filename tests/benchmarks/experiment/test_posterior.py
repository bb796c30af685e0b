"""Entropies of posteriors and their divergences: closed forms of Gaussians, runs compared with others, records measured
again.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from benchmarks.experiment.assembly import FittedRun
from benchmarks.experiment.execute import execute
from benchmarks.experiment.measure import EVALUATED, UNCHANGED, measure
from benchmarks.experiment.posterior import draws_of, posterior_rows, uniform_inputs
from benchmarks.experiment.prediction import Predicted
from benchmarks.metrics.registry import METRICS
from benchmarks.records.config import InvalidConfig, run_key, validate_config
from benchmarks.records.store import Store
from benchmarks.tables import Recipe
from benchmarks.tables.recipes import EntropyRequest, make_configs
from fvi_core.divergences.nearest_neighbour import nearest_neighbour_kl
from fvi_core.random import seed_from
from tests.benchmarks.experiment.test_execute import CURVE, numbers
from tests.configs import make_config
from tests.fvi_core import small

LINE = {"family": {"name": "mean_field"}, "network": {**small.TANH, "hidden": []}}
ASKED = {"draws": 1000, "sets": 3, "points": 2, "against": {}}
CONFIG = {"dataset": {"name": "any", "scheme": "", "split": 0}, "evaluation": {"posterior": ASKED}}


def fitted(model, parameters, name=""):
    return FittedRun(CONFIG, None, small.training_data(1), model, parameters, small.streams(1, name=name))


def line(mean, std):
    """Functions ``w . x + b`` of Gaussian parameters (w1, w2, b), and their distribution."""
    model, mean, std = small.model(LINE), torch.tensor(mean).double(), torch.tensor(std).double()
    means, log_vars = (model.network.unflatten(v[None]) for v in (mean, std.square().log()))
    parameters = {"mean/" + k: v for k, v in means.items()} | {"log_var/" + k: v for k, v in log_vars.items()}
    return fitted(model, parameters, str(mean)), MultivariateNormal(mean, std.square().diag())


Q, P = ([0.5, -1.0, 0.2], [0.5, 1.0, 0.3]), ([0.3, -0.8, 0.0], [0.6, 1.2, 0.4])


def at(distribution, x):
    """The distribution of values at x, scaled by 1 / sqrt(T) as the norm of L2 is."""
    features = torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], 1) / len(x) ** 0.5
    return MultivariateNormal(features @ distribution.mean, features @ distribution.covariance_matrix @ features.T)


def rows_of(own, **others):
    config = {
        **CONFIG,
        "evaluation": {"posterior": {**ASKED, "against": {k: ["any"] * len(v) for k, v in others.items()}}},
    }
    waiting = [each for label in sorted(others) for each in others[label]]
    rows = posterior_rows(replace(own, config=config), Predicted(), lambda training: waiting.pop(0))
    assert all(row["dataset"] == "any" and row["n"] == 1000 for row in rows)
    return {(row["metric"], row["condition"]): row["value"] for row in rows}


def test_estimates_of_gaussians_are_near_the_truth():
    q, exact = line(*Q)
    p, other = line(*P)
    found = rows_of(q, HMC=[p], q=[p])
    x = uniform_inputs(ASKED, small.training_data(1), seed_from("posterior inputs", "any", "", 0)).view(3, 2, 2)
    assert (x.abs() <= 1).all() and x.std() > 0.4
    spaces = {"parameter": [(exact, other)], "predictor": [(at(exact, each), at(other, each)) for each in x]}
    for space, pairs in spaces.items():
        entropy = (sum(a.entropy() for a, _ in pairs) / len(pairs)).item()
        there = (sum(kl_divergence(a, b) for a, b in pairs) / len(pairs)).item()
        back = (sum(kl_divergence(b, a) for a, b in pairs) / len(pairs)).item()
        assert found["entropy", f"space={space}"] == pytest.approx(entropy, abs=0.15)
        assert found["knn_kl", f"space={space};pair=q->HMC"] == pytest.approx(there, abs=0.25)
        assert found["knn_kl", f"space={space};pair=HMC->q"] == pytest.approx(back, abs=0.25)
        assert found["knn_kl", f"space={space};pair=q->q"] == found["knn_kl", f"space={space};pair=q->HMC"]
    assert len(found) == 8
    mine, theirs = (draws_of(ASKED, each, x.flatten(0, 1))["parameter"][0] for each in (q, p))
    assert found["knn_kl", "space=parameter;pair=HMC->q"] == nearest_neighbour_kl(theirs, mine).item()
    assert found["knn_kl", "space=parameter;pair=q->HMC"] == nearest_neighbour_kl(mine, theirs).item()


def test_functions_of_several_outputs_are_scaled_by_their_number_of_inputs():
    """The norm of L2 is a mean over inputs and a sum over outputs."""
    model = small.model({**LINE, "likelihood": {"name": "gaussian"}}, outputs=2)
    mean = {name: torch.zeros(1, *shape, dtype=torch.float64) for name, shape in model.network.shapes.items()}
    own = fitted(model, {"mean/" + k: v for k, v in mean.items()} | {"log_var/" + k: v for k, v in mean.items()})
    single = MultivariateNormal(torch.zeros(3).double(), torch.eye(3).double())
    sets = uniform_inputs(ASKED, small.training_data(1), seed_from("posterior inputs", "any", "", 0)).view(3, 2, 2)
    exact = sum(2 * at(single, x).entropy() for x in sets).item() / 3  # both outputs are independent and alike
    assert rows_of(own)["entropy", "space=predictor"] == pytest.approx(exact, abs=0.3)


def test_several_others_of_one_name_are_averaged():
    q, p, far = line(*Q)[0], line(*P)[0], line([3.0, 3.0, 3.0], [1.0, 1.0, 1.0])[0]
    both = rows_of(q, some=[p, far])
    each = [rows_of(q, some=[other]) for other in (p, far)]
    name = "knn_kl", "space=parameter;pair=some->q"
    assert both[name] == pytest.approx((each[0][name] + each[1][name]) / 2)


def test_draws_that_repeat_another_are_left_out():
    """A chain that stood still: its nearest neighbours would be at no distance."""
    model = small.model({**LINE, "family": {"name": "samples"}})
    drawn = small.streams(1).normal(6, model.network.n_parameters)
    x = small.inputs(1, 6)[0]

    def draws(index):
        return draws_of(ASKED, fitted(model, model.network.unflatten(drawn[:, index])), x)

    once, again = draws([*range(6)]), draws([0, 0, 1, 2, 2, 2, 3, 4, 5, 5])
    assert all(torch.equal(once[space], again[space]) for space in ("parameter", "predictor"))
    assert once["predictor"].shape == (3, 6, 2) and draws([0, 1, 1, 1]) == {}


def test_a_family_without_network_parameters_has_functions_alone():
    model = small.model({"family": {"name": "dropout", "rate": 0.5}})
    parameters = model.family.init(model.network, small.streams(1))
    assert set(draws_of({**ASKED, "draws": 20}, fitted(model, parameters), small.inputs(1, 6)[0])) == {"predictor"}


PARTS = {
    "network": {"name": "mlp", "hidden": [3], "activation": "tanh"},
    "likelihood": {"name": "gaussian", "init_std": 0.5, "learned": False},
}
CHAINS = {"name": "hmc", "samples": 5, "thinning": 1, "warmup": 2, "leapfrogs": 2, "map_steps": 5}
TINY = EntropyRequest(draws=10, sets=2, points=3)


def hmc(**training):
    parts = {**PARTS, "family": {"size": 2}, "training": {**CHAINS, **training}}
    return make_configs("HMC", CURVE, "smoke", Recipe(parts, ((0, 0),), samples=10, posterior=TINY))


def compared(reference):
    parts = {**PARTS, "training": {"epochs": 2, "batch_size": 50, "optimiser": {"name": "adam"}}}
    posterior = EntropyRequest(10, 2, 3, {"HMC": reference}, siblings=True)
    return make_configs("MFVI", CURVE, "smoke", Recipe(parts, ((0, 0), (0, 1)), samples=8, posterior=posterior))


def test_runs_are_compared_with_others_which_are_trained_if_they_were_not(tmp_path):
    runs = compared(hmc())
    assert [len(run["evaluation"]["posterior"]["against"]["q"]) for run in runs] == [1, 1]
    said: list[str] = []
    together = execute(runs, state=tmp_path / "a", report=lambda _, text: said.append(text))
    assert any(text.startswith("HMC, seed 0, with which the run is compared: ") for text in said)
    spaces, pairs = ("parameter", "predictor"), ("q->HMC", "HMC->q", "q->q")
    wanted = {("knn_kl", f"space={space};pair={pair}") for space in spaces for pair in pairs}
    wanted |= {("entropy", f"space={space}") for space in spaces}
    assert wanted <= set(numbers(together[0])) and numbers(together[0]) != numbers(together[1])
    # Alone, with nothing kept; and where the reference was made before, by itself.
    assert numbers(execute(runs[1:], state=tmp_path / "b")[0]) == numbers(together[1])
    (own,) = execute(hmc(), state=tmp_path / "c")
    assert {("entropy", "space=parameter"), ("entropy", "space=predictor")} <= set(numbers(own))
    assert own.provenance["diagnostics"]["divergent"] == 0 and own.provenance["warnings"]
    assert numbers(execute(runs[:1], state=tmp_path / "c")[0]) == numbers(together[0])


def test_the_reference_is_part_of_what_a_run_is_and_most_runs_have_none():
    keys = {run_key(run) for reference in (hmc(), hmc(leapfrogs=3)) for run in compared(reference)}
    assert len(keys) == 4 and len({key[:16] for key in keys}) == 2
    plain = make_config("MFVI", CURVE, "smoke", Recipe({**PARTS, "training": CHAINS}, ()), 0, 0)
    assert set(plain["evaluation"]) == {"samples", "sets", "content"}
    for run in compared(hmc()):
        validate_config(run)
    with pytest.raises(InvalidConfig, match="not expected .'posteriors'"):
        validate_config({**plain, "evaluation": {**plain["evaluation"], "posteriors": {}}})


def test_a_reference_that_fails_fails_the_comparison_with_its_cause(tmp_path):
    wild = hmc(warmup=0, step=50.0)
    outcomes = execute(compared(wild)[:1], state=tmp_path)
    assert outcomes[0].status == "failed"
    assert outcomes[0].reason.startswith("HMC, seed 0, with which the run is compared: ensemble member 0: 100 % of the")


def test_measuring_again_keeps_what_needs_draws_until_it_has_a_newer_version(tmp_path, monkeypatch):
    store, (config,) = Store(tmp_path / "results"), hmc()
    (outcome,) = execute([config], state=tmp_path / "state")
    record = store.make(config, outcome.metrics, outcome.curves, outcome.provenance)
    store.write(record)
    assert measure([config], store, tmp_path / "state").counts[UNCHANGED] == 1
    store.write(store.make(config, [row for row in record["metrics"] if row["metric"] != "rmse"], {}, {"seconds": 1.0}))
    measure([config], store, tmp_path / "state")
    kept = {row["metric"]: row["value"] for row in store.get(config)["metrics"]}
    assert {"rmse", "entropy"} <= set(kept) and math.isfinite(kept["entropy"])
    newer = METRICS["entropy"].__class__("entropy", "none", "nats", "another", version=2, entry="posterior")
    monkeypatch.setitem(METRICS, "entropy", newer)
    assert measure([config], store, tmp_path / "state").counts[EVALUATED] == 1
    assert store.get(config)["metric_versions"]["entropy"] == 2
