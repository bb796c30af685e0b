"""One run from configuration to metrics, on toy data: the same every time, alone or in a stack."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import datasets
from benchmarks.experiment.assembly import ChangedData, build_data, build_model, load_split
from benchmarks.experiment.execute import execute
from benchmarks.experiment.prediction import Predicted, measured, predict, predictions_of
from benchmarks.experiment.trained import as_graphs, device_of
from benchmarks.records import predictions, provenance
from benchmarks.records.config import InvalidConfig, run_key
from benchmarks.state.claims import Claims
from benchmarks.tables import Recipe
from fvi_core import graphs
from fvi_core.data import TrainingData
from fvi_core.fits.dense import Dense
from fvi_core.fits.factored import Factored
from fvi_core.fitting import FitFailed
from fvi_core.networks import Network
from fvi_core.random import Streams
from fvi_core.registry import TRAININGS, UnknownPart
from fvi_core.spelling import UnfitValue
from fvi_core.telling import listening, tell
from fvi_core.training import Trainer
from tests.configs import make_config

CURVE, MOONS = "cinquin_1d", "two_moons_cinquin"
TIMES = {"training_seconds"}
THREE = {"epochs": 3, "batch_size": 50, "optimiser": {"name": "adam", "lr": 0.01}}
PROCESS = {"batch_size": 100, "dtype": "float64"}  # all points of the curve at once


def config(method="MAP", replicate=(0, 0), dataset=CURVE, sets=("test",), samples=8, parts=None, scheme="", **training):
    common = {
        "network": {"name": "mlp", "hidden": [6], "activation": "tanh"},
        "likelihood": {"name": "gaussian" if dataset == CURVE else "categorical"},
        "training": THREE | training,
    }
    return make_config(method, dataset, "smoke", Recipe(common | (parts or {}), (), scheme, samples, sets), *replicate)


def run(configs, tmp_path):
    return execute(configs if isinstance(configs, list) else [configs], state=tmp_path)


def numbers(outcome):
    """Return all metrics except those of time and memory."""
    assert outcome.status == "done", outcome.reason
    return {(m["metric"], m["condition"]): (m["value"], m["n"]) for m in outcome.metrics if m["metric"] not in TIMES}


WIDE = {"network": {"name": "mlp", "hidden": [30, 100], "activation": "tanh"}}
MANY = WIDE | {"context": {"name": "uniform_box", "points": 40}}
FEW = {"context": {"name": "uniform_box", "points": 5}}
CASES = [
    config("MAP"),
    config("MFVI", samples=10),
    config("MC Dropout"),
    config("FSVI", parts=FEW),
    config("FSVI", parts=FEW | {"prior": {"features": "current"}}, dtype="float64"),
    config("GFSVI", parts=FEW | {"prior": {"fit_steps": 2}}, dtype="float64"),
    config("Deep Ensemble", parts={"family": {"size": 2}, "likelihood": {"name": "residual_gaussian"}}),
    config("GP", **PROCESS),
    config("NN-HyVI", parts={"divergence": {"samples": 10}}),
    config("Laplace (full)", parts={"fit": {"precision": "evidence"}}),
    config("Subnetwork Laplace", parts={"fit": {"size": 5}}),
    config("MFVI", dataset=MOONS),
    config("Laplace (Kronecker)", dataset=MOONS),
    config("Ensemble fVI", dataset=MOONS, parts={"family": {"size": 2}}),
    # Wide enough that MKL takes another kernel for one product of one column than for several.
    config("MFVI", samples=10, parts=WIDE),
    config("MC Dropout", parts=WIDE),
    config("MC Dropout", dataset=MOONS, parts=WIDE),
    config("FSVI", parts=MANY | {"prior": {"features": "current"}}, dtype="float64"),
    config("GFSVI", parts=MANY | {"prior": {"fit_steps": 2}}, dtype="float64"),
    config("FBNN", parts=MANY | {"prior": {"fit_steps": 2}, "training": {**THREE, "samples": 10}}),
    config("VIP", parts=WIDE),
    config("GWI", parts=WIDE),
    config("Sparse GP", dtype="float64"),
    config("NN-HyVI", parts=WIDE | {"divergence": {"samples": 10}}),
    config("Deep Ensemble", parts=WIDE | {"family": {"size": 2}, "likelihood": {"name": "residual_gaussian"}}),
]


def title(case):
    return f"{case['method']}, {case['dataset']['name']}, {case['parts']['network']['hidden']}"


@pytest.mark.parametrize("case", CASES, ids=title)
def test_the_same_configuration_gives_the_same_numbers_alone_and_in_a_stack(case, tmp_path):
    other = {**case, "seed": 1, "dataset": {**case["dataset"], "split": 1}}
    first, second = run([other, case], tmp_path / "a")
    assert second.config is case and first.config is other
    alone = run(case, tmp_path / "b")[0]
    assert numbers(alone) == numbers(second) != numbers(first)
    assert numbers(run(case, tmp_path / "c")[0]) == numbers(alone)
    assert alone.curves == second.curves
    written = [(tmp_path / x / "artifacts" / f"{run_key(case)}.npz").read_bytes() for x in "abc"]
    assert written[0] == written[1] == written[2]
    assert alone.provenance["fingerprint"] == datasets.load(case["dataset"]["name"]).fingerprint
    assert alone.provenance["epochs"] == 3 and alone.provenance["stack"] == 1 and second.provenance["stack"] == 2
    assert {m["metric"] for m in alone.metrics} >= TIMES


def test_a_commit_during_training_is_not_that_of_the_record(tmp_path, monkeypatch):
    provenance.code.cache_clear()
    monkeypatch.setattr(provenance, "git", lambda *words, root: "before" if words[0] == "rev-parse" else "")

    def commit(fraction, text):
        monkeypatch.setattr(provenance, "git", lambda *words, root: "during" if words[0] == "rev-parse" else "")

    (outcome,) = execute([CASES[0]], state=tmp_path, report=commit)
    provenance.code.cache_clear()
    assert outcome.provenance["commit"] == "before"


def test_regression_metrics_are_those_of_the_predictions(tmp_path):
    outcome = run(config("MFVI", sets=("test", "grid"), samples=20), tmp_path)[0]
    split, saved = datasets.load(CURVE), predictions.load(tmp_path / "artifacts" / f"{run_key(outcome.config)}.npz")
    f = saved["test"].samples.astype(float)
    assert f.shape == (20, len(split.test)) and np.array_equal(saved["test"].targets, split.test.y)
    metrics = numbers(outcome)
    rmse = np.sqrt(np.mean((f.mean(0) - split.test.y) ** 2)) * split.y_std
    assert metrics["rmse", ""] == (pytest.approx(rmse, rel=1e-6), len(split.test))
    std = outcome.provenance["noise_std"]
    log = -0.5 * np.log(2 * np.pi) - np.log(std) - 0.5 * ((split.test.y - f) / std) ** 2
    assert metrics["expected_log_likelihood", ""][0] == pytest.approx(log.mean() - np.log(split.y_std), rel=1e-5)
    assert outcome.curves["train/points"]["x"] == split.train.x.tolist()


def test_predictions_and_training_points_know_the_units_of_the_targets():
    split = dataclasses.replace(datasets.load(CURVE), y_mean=3.0, y_std=2.0)
    model = build_model(config("MAP")["parts"], split)
    found = predictions_of(model, split, torch.zeros(2, len(split.test), 1), None, 0.1, split.test.y)
    assert (found.y_mean, found.y_std) == (3.0, 2.0)
    grid = split.evaluation("grid")
    predicted = Predicted({"grid": predictions.RegressionPredictions(np.zeros((1, len(grid.x))), 0.1, None)})
    predicted.note(grid)
    assert measured(split, predicted)[1]["train/points"]["y"] == (split.train.y * 2 + 3).tolist()


def test_a_family_with_closed_form_marginals_hands_them_over(tmp_path):
    for case in (case for case in CASES if case["method"] in ("GFSVI", "GP", "Laplace (full)")):
        run(case, tmp_path)
        saved = predictions.load(tmp_path / "artifacts" / f"{run_key(case)}.npz")["test"]
        assert saved.mean.shape == saved.variance.shape == saved.targets.shape and (saved.variance > 0).all()


def model_and_data(case):
    split = datasets.load(case["dataset"]["name"])
    model = build_model(case["parts"], split)
    parameters = model.family.init(model.network, Streams([3]))
    return model, parameters, torch.from_numpy(split.test.x[:20])


def test_the_same_functions_are_evaluated_at_every_set():
    model, parameters, x = model_and_data(config("MFVI"))
    both, _ = predict(model, parameters, x, 9, Streams([1]).child("functions"))
    half, _ = predict(model, parameters, x[5:10], 9, Streams([1]).child("functions"))
    assert both.shape == (9, 20, 1)
    torch.testing.assert_close(half, both[:, 5:10], rtol=1e-5, atol=1e-6)


def test_prediction_in_pieces_is_the_whole(monkeypatch):
    model, parameters, x = model_and_data(config("MFVI"))
    whole, _ = predict(model, parameters, x, 9, Streams([1]))
    sizes, call = [], Network.__call__
    monkeypatch.setattr(
        Network, "__call__", lambda self, p, x, *a, **k: sizes.append(x.shape[1]) or call(self, p, x, *a, **k)
    )
    monkeypatch.setattr("fvi_core.blocks.CHUNK", 9 * 6 * 7)
    said = []
    with listening(said.append):
        pieces, _ = predict(model, parameters, x, 9, Streams([1]))
    assert sizes == [7, 7, 6]
    assert said == [f"predictions at points: piece {k} of 3" for k in (1, 2, 3)]
    torch.testing.assert_close(pieces, whole, rtol=1e-5, atol=1e-6)


def damaged(monkeypatch, part, changes, number=1):
    """Split 1 has a wrong value in its training or test targets or inputs."""
    load = datasets.load

    def changed(name, split=0, **options):
        found = load(name, split, **options)
        if split != number:
            return found
        arrays = getattr(found, part)
        wrong = dataclasses.replace(arrays, **{k: change(getattr(arrays, k)) for k, change in changes.items()})
        return dataclasses.replace(found, **{part: wrong})

    monkeypatch.setattr(datasets, "load", changed)


def test_a_failed_run_of_a_stack_leaves_its_neighbours_alone(monkeypatch, tmp_path):
    cases = [config(replicate=(i, i)) for i in range(3)]
    expected = [numbers(run(case, tmp_path)[0]) for case in cases]
    damaged(monkeypatch, "train", {"y": lambda y: np.where(np.arange(len(y)) == 4, np.nan, y)})
    found = run(cases, tmp_path / "again")
    assert [o.status for o in found] == ["done", "failed", "done"]
    assert (
        found[1].reason == "the loss or a parameter stopped being finite in step 1 of 2 of epoch 1 of 3"
        and not found[1].metrics
    )
    assert [numbers(found[i]) for i in (0, 2)] == [expected[0], expected[2]]
    assert not (tmp_path / "again" / "artifacts" / f"{run_key(cases[1])}.npz").exists()


def test_predictions_that_are_not_finite_fail_the_run(monkeypatch, tmp_path):
    damaged(monkeypatch, "test", {"x": lambda x: x * np.float32(np.inf)}, 0)
    outcome = run(config(parts={"network": {"name": "mlp", "hidden": [6], "activation": "relu"}}), tmp_path)[0]
    assert (outcome.status, outcome.reason) == ("failed", "predictions on 'test' are not finite")
    assert not list((tmp_path / "artifacts").rglob("*.npz"))


def test_predictions_that_cannot_be_stored_fail_the_run(tmp_path):
    far = config(dtype="float64", epochs=1, batch_size=100, optimiser={"name": "sgd", "lr": 1e45})
    (outcome,) = run(far, tmp_path)
    message = "predictions are beyond the range of float32, in which they are stored"
    assert (outcome.status, outcome.reason) == ("failed", message)


def test_runs_that_cannot_be_are_refused_by_name(monkeypatch, tmp_path):
    case = config()
    for changes, error, message in (
        ({"colour": "red"}, InvalidConfig, r"not expected \['colour'\]"),
        (
            {"dataset": {**case["dataset"], "version": "0"}},
            ChangedData,
            "data set cinquin_1d is at version 1, the run needs 0",
        ),
        ({"dataset": {**case["dataset"], "name": "cinquin_1e"}}, datasets.UnknownDataset, "cinquin_1d"),
        ({"parts": {**case["parts"], "family": {"name": "pointe"}}}, UnknownPart, "did you mean 'point'"),
        ({"evaluation": {"samples": 5, "sets": ["tests"], "content": {}}}, KeyError, "no evaluation set 'tests'"),
    ):
        with pytest.raises(error, match=message):
            run({**case, **changes}, tmp_path)
    damaged(monkeypatch, "train", {"x": lambda x: x[:-1], "y": lambda y: y[:-1]})
    with pytest.raises(ValueError, match=r"different sizes cannot train together: \[100, 99\]"):
        run([config(replicate=(i, i)) for i in range(2)], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["claims"] and not Claims(tmp_path / "claims").live()


def test_graphs_are_an_option_of_a_sweep_and_in_no_configuration(monkeypatch):
    run, hmc = config(), config("HMC")
    data = TrainingData(torch.zeros(1, 2, 1), torch.zeros(1, 2), torch.zeros(1, 1), torch.ones(1, 1))
    split = load_split(run)

    def found(config):
        training = TRAININGS.build(config["parts"]["training"])
        made, said = as_graphs(training, build_model(config["parts"], split), data)
        assert said == ({"graph": True} if getattr(made, "graph", False) else {}) and (said or made is training)
        return bool(said)

    monkeypatch.setattr(graphs, "DEVICES", ("cpu",))
    assert not found(run)
    monkeypatch.setenv("FVI_GRAPHS", "1")
    assert found(run) and not found(hmc)
    monkeypatch.setattr(graphs, "DEVICES", ("cuda",))
    assert not found(run)
    monkeypatch.setenv("FVI_GRAPHS", "2")
    with pytest.raises(UnfitValue, match="FVI_GRAPHS is '2', expected 1, true, yes or on, or 0, false, no or off"):
        found(run)


def test_convolutions_in_float32_are_not_tf32(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    device_of()
    assert not torch.backends.cudnn.allow_tf32


def test_data_that_replicas_share_is_held_once():
    model = build_model(config()["parts"], datasets.load(CURVE))
    same, other = datasets.load(CURVE, 0), datasets.load(CURVE, 1)
    build = [build_data(model, splits, torch.device("cpu"), torch.float64) for splits in ([same, same], [same, other])]
    assert [p.x.shape for p in build] == [(1, 100, 1), (2, 100, 1)]
    assert build[0].x.dtype == build[0].y.dtype == torch.float64


def test_progress_is_reported(tmp_path):
    heard = []
    execute([config()], state=tmp_path, report=lambda *progress: heard.append(progress))
    assert [fraction for fraction, _ in heard] == [pytest.approx(f) for f in (1 / 3, 2 / 3, 1, 1)]
    assert heard[-1][1] == "predictions at test: piece 1 of 1", "evaluation is no silence after training"


def test_an_evaluation_gives_the_time_left_of_all_sets_and_runs(tmp_path, monkeypatch):
    heard, clock = [], itertools.count(0.0, 10.0)
    monkeypatch.setattr("fvi_core.telling.time", SimpleNamespace(monotonic=lambda: next(clock)))
    runs = [config(replicate=(0, seed), sets=("test", "grid")) for seed in (0, 1)]
    execute(runs, state=tmp_path, report=lambda _, text: heard.append(text))
    sets = ["predictions at test (set 1 of 2): piece 1 of 1", "predictions at grid (set 2 of 2): piece 1 of 1"]
    left = ("", ", about 30 s left", ", about 20 s left", ", about 10 s left")
    assert heard[-4:] == [f"{text}{end}" for text, end in zip(2 * sets, left)]


def test_a_training_that_ends_early_is_reported_as_over_while_it_is_evaluated(tmp_path):
    rule = {"early_stopping": {"patience": 1, "every": 1}, "epochs": 9, "optimiser": {"name": "adam", "lr": 1e-12}}
    heard = []
    execute(
        [config(dataset="digits", scheme="validation", **rule)],
        state=tmp_path,
        report=lambda *progress: heard.append(progress),
    )
    trained = [fraction for fraction, text in heard if text.startswith("epoch")]
    evaluated = {fraction for fraction, text in heard if text.startswith("predictions")}
    assert max(trained) < 1 and evaluated == {1.0}


def test_a_training_that_is_stored_is_reported_as_over_while_it_is_evaluated(tmp_path):
    run(config(), tmp_path)
    heard = []
    execute([config(), config(replicate=(0, 1))], state=tmp_path, report=lambda *progress: heard.append(progress))
    assert heard[0] == (0.5, "predictions at test: piece 1 of 1"), "one of two trainings is over"
    assert [fraction for fraction, _ in heard[1:]] == [pytest.approx(f) for f in (4 / 6, 5 / 6, 1, 1)]


def test_a_fit_that_fails_fails_its_run_alone(tmp_path, monkeypatch):
    case, fitted = config("Laplace (full)"), Dense.fitted
    other = {**case, "seed": 1}
    calls = []

    def first_fails(self, curvature, precision):
        calls.append(precision)
        if len(calls) == 1:
            raise FitFailed("it is not positive definite")
        return fitted(self, curvature, precision)

    whole = numbers(run(other, tmp_path / "alone")[0])
    monkeypatch.setattr(Dense, "fitted", first_fails)
    failed, done = run([case, other], tmp_path / "both")
    assert (failed.status, failed.reason) == ("failed", "fit 'laplace': it is not positive definite")
    assert failed.provenance["epochs"] == 3 and not failed.metrics and numbers(done) == whole
    assert [path.stem for path in (tmp_path / "both" / "parameters").iterdir()] == [run_key(other).partition("-")[0]]


def test_kept_parameters_are_evaluated_without_another_fit(tmp_path, monkeypatch):
    case = config("Laplace (Kronecker)", parts={"fit": {"precision": "evidence"}})
    first = numbers(run(case, tmp_path)[0])
    monkeypatch.setattr(Factored, "curvature", lambda *_: pytest.fail("fitted again"))
    assert numbers(run(case, tmp_path)[0]) == first
    more = {**case, "evaluation": {**case["evaluation"], "sets": ["test", "grid"]}}
    assert numbers(run(more, tmp_path)[0]).items() >= first.items()


def test_what_a_fit_cannot_hold_is_said_before_training(monkeypatch, tmp_path):
    monkeypatch.setattr("fvi_core.fits.posterior.MOST", 10)
    monkeypatch.setattr(Trainer, "advance", lambda self: pytest.fail("trained"))
    with pytest.raises(ValueError, match="fit 'laplace': structure 'full': the matrix has 19 rows and columns"):
        run(config("Laplace (full)"), tmp_path)


@pytest.mark.parametrize(("instructions", "used"), [(True, "bfloat16"), (False, "float32")])
def test_a_record_says_which_precision_its_networks_had(instructions, used, processor, tmp_path, recwarn):
    processor(instructions)
    bfloat16, plain = run([config("MAP", precision="bfloat16")], tmp_path)[0], run([config("MAP")], tmp_path)[0]
    assert bfloat16.provenance["precision"] == used and "precision" not in plain.provenance
    assert (numbers(bfloat16) == numbers(plain)) is not instructions
    warnings = bfloat16.provenance.get("warnings", [])
    assert warnings == [] if instructions else len(warnings) == 1 and "AVX-512 BF16: float32 is used" in warnings[0]
    again = run([config("MAP", precision="bfloat16")], tmp_path)[0]
    assert again.provenance["precision"] == used and again.provenance["evaluated"]["precision"] == used
    assert numbers(again) == numbers(bfloat16)
    processor(not instructions)  # what was trained otherwise is trained anew
    assert "evaluated" not in run([config("MAP", precision="bfloat16")], tmp_path)[0].provenance


def test_prediction_has_the_precision_of_training(processor):
    processor(True)
    split = datasets.load(MOONS)
    models = {
        each: build_model(config("MAP", dataset=MOONS, precision=each)["parts"], split)
        for each in ("float32", "bfloat16")
    }
    data = build_data(models["float32"], [split], torch.device("cpu"), torch.float32)
    start = models["float32"].family.init(models["float32"].network, Streams([0]))
    found = {name: predict(model, start, data.x[0], 1, Streams([1]))[0] for name, model in models.items()}
    assert found["bfloat16"].dtype == torch.float32 and not torch.equal(found["bfloat16"], found["float32"])
    torch.testing.assert_close(found["bfloat16"], found["float32"], rtol=0.02, atol=0.02)


def test_what_takes_long_while_data_are_made_is_reported(tmp_path, monkeypatch):
    def outcomes(runs, state, report):
        report(1.0, "epoch 3")
        tell("making images: 2 of 19")
        return {run_key(config()): "done"}

    monkeypatch.setattr("benchmarks.experiment.execute._outcomes", outcomes)
    reports = []
    assert execute([config()], state=tmp_path, report=lambda *progress: reports.append(progress)) == ["done"]
    assert reports == [(1.0, "epoch 3"), (1.0, "making images: 2 of 19")]
