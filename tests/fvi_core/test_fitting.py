"""Tests of fits after training: their data and order, and the first fit part against SciPy."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp

import fvi_core as fvi
from fvi_core.blocks import rows_at_once
from fvi_core.data import Scale, TrainingData
from fvi_core.families.base import Family, FitData, NotSupported
from fvi_core.fits.temperature import golden_section
from fvi_core.fitting import FitFailed
from fvi_core.held import Held
from fvi_core.likelihoods import Gaussian
from fvi_core.registry import FAMILIES, FITS, NETWORKS
from tests.fvi_core import small
from tests.fvi_core.networks.modules import Perceptron, table
from tests.fvi_core.posteriors import QUICK, labels, line, regressor

N = 23


def trained(model, data, replicas=1):
    """Return initial parameters of replicas in place of trained ones."""
    streams, likelihood = small.streams(replicas), model.likelihood.init(replicas, torch.float64)
    return model.family.init(model.network, streams) | {f"likelihood/{k}": v for k, v in likelihood.items()}


def fitting_of(data, model):
    return FitData.of(model.network, model.family, model.likelihood, data, small.streams(1))


def test_training_data_come_in_batches_as_the_network_takes_them():
    pixels = torch.arange(5 * 4, dtype=torch.uint8).view(1, 5, 1, 2, 2)
    ends, y = torch.zeros(1, 1, 2, 2), torch.arange(5)[None]
    scale = Scale((0.5,), (0.25,), torch.float64)
    data = TrainingData(pixels, y, ends, ends, [(pixels[0, :3], y[0, :3])], pixels=scale)
    found = fitting_of(data, SimpleNamespace(network=None, family=None, likelihood=None))
    assert (found.n_train, found.classification) == (5, True)
    xs, ys = zip(*found.batches(2), strict=True)
    assert [x.shape[1] for x in xs] == [2, 2, 1] and torch.equal(torch.cat(ys, 1), y)
    assert torch.equal(torch.cat(xs, 1), found.x) and torch.equal(found.x, scale(pixels)) and found.x.min() == -2
    assert torch.equal(torch.cat([x for x, _ in found.batches(2, validation=True)], 1), scale(pixels[:, :3]))
    members = found.of_members(None, 3, None)
    assert torch.equal(members.x, found.x.expand(3, -1, -1, -1, -1)) and members.validation[1].shape == (3, 3)
    assert members.held.untyped_storage().data_ptr() == pixels.untyped_storage().data_ptr(), "held once"
    without = fitting_of(
        TrainingData(pixels, y, ends, ends), SimpleNamespace(network=None, family=None, likelihood=None)
    )
    with pytest.raises(
        ValueError, match="fit: expected validation data, found none: .* choose a data set or a split scheme"
    ):
        next(without.batches(2, validation=True))


def test_a_replica_has_the_problem_that_is_its_own():
    data = small.training_data(3, 5, validation=2)
    own = data.of(1)
    assert torch.equal(own.x, data.x[1:2]) and torch.equal(own.low, data.low[1:2])
    assert len(own.validation) == 1 and torch.equal(own.validation[0][0], data.validation[1][0])
    shared = small.one(data, 0)
    assert shared.of(2) is shared


def test_the_likelihood_fits_first_then_the_family_then_the_part(monkeypatch):
    seen = []

    def recording(name):
        return lambda self, parameters, fitting: (
            seen.append((name, dict(parameters))) or parameters | {f"fit/{name}": parameters["head.bias"]}
        )

    model, data = small.model({"family": {"name": "point"}, "fit": {"name": "temperature"}}), small.training_data(1, N)
    noise = {"rho": torch.full((1,), 7.0)}
    monkeypatch.setattr(Gaussian, "estimate_noise", lambda *_: noise)
    monkeypatch.setattr(Family, "condition", recording("family"))
    monkeypatch.setattr(type(model.fit), "__call__", recording("part"))
    found = model.after_training(trained(model, data), data, small.streams(1))
    assert [name for name, _ in seen] == ["family", "part"]
    assert all(torch.equal(parameters["likelihood/rho"], noise["rho"]) for _, parameters in seen)
    assert "fit/family" in seen[1][1] and Held.of(found).fit.keys() == {"family", "part"}


def test_values_in_pieces_are_those_of_one_draw(monkeypatch):
    model, data = (
        small.model({"family": {"name": "mean_field", "log_var_init": [-3.0, -1.0]}}),
        small.training_data(1, N),
    )
    parameters, fitting = trained(model, data), fitting_of(data, small.model({"family": {"name": "mean_field"}}))
    whole = list(fitting.functions_at(parameters, small.streams(1), 6))
    monkeypatch.setattr("fvi_core.blocks.CHUNK", 6 * model.network.width * 4)
    pieces = list(fitting.functions_at(parameters, small.streams(1), 6))
    assert len(whole) == 1 and [p.shape[2] for p in pieces] == [4, 4, 4, 4, 4, 3] and torch.is_grad_enabled()
    torch.testing.assert_close(torch.cat(pieces, 2), whole[0])


@pytest.mark.parametrize(
    ("spec", "device", "most"),
    [
        ({"name": "resnet18", "width": 2}, "cpu", 2**23),
        ({"name": "resnet18", "width": 2}, "cuda", 2**27),
        ({"name": "cnn", "channels": [4], "dense": [8], "pool": [1]}, "cpu", 2**24),
    ],
)
def test_pieces_of_a_prediction_are_bounded_by_the_bytes_of_a_layer(spec, device, most):
    network = NETWORKS.build(spec).build((3, 32, 32), 10)
    rows = rows_at_once(network, 10, torch.device(device))
    assert rows * 10 * network.width <= most < (rows + 1) * 10 * network.width
    assert rows_at_once(network, 10**9, torch.device(device)) == 1


def test_a_residual_network_in_pieces_is_the_whole():
    """Running statistics normalise, so an image's values are its own."""
    network = NETWORKS.build({"name": "resnet18", "width": 2}).build((3, 32, 32), 10)
    family = FAMILIES.build({"name": "mean_field"})
    parameters = family.init(network, small.streams(1))
    functions = family.functions(network, parameters, 3, small.streams(1))
    x = small.inputs(1, 5, (3, 32, 32))
    pieces = torch.cat([functions(piece) for piece in x.split(2, 1)], 2)
    torch.testing.assert_close(pieces, functions(x), rtol=1e-10, atol=1e-10)


def test_members_of_an_ensemble_are_fitted_each():
    parts = {"family": {"name": "ensemble", "base": {"name": "exact_gp"}, "size": 3, "joint": True}}
    model, data = small.model(parts), small.training_data(1, N)
    fitted = model.after_training(trained(model, data), data, small.streams(1))
    assert fitted["train/x"].shape == (1, 3, N, 2) and fitted["train/noise"].shape == (1, 3)
    x = small.inputs(1, 4)
    alone = small.model({"family": {"name": "exact_gp"}})
    own = alone.after_training(trained(alone, data), data, small.streams(1))
    mean, variance = alone.marginals(own, x)
    f = model.functions(fitted, 9000, small.streams(1))(x)
    assert ((f.mean(1) - mean).abs() < 6 * (variance / 9000).sqrt()).all()


def test_an_exact_process_needs_gaussian_noise():
    model, data = small.model({"family": {"name": "exact_gp"}}, 2), small.training_data(1, N, 2)
    with pytest.raises(NotSupported, match="'exact_gp' needs Gaussian noise, which likelihood 'categorical' has not"):
        model.after_training(trained(model, data), data, small.streams(1))


@pytest.mark.parametrize("validation", [9, 0])
@pytest.mark.parametrize(
    "family", [{"name": "point"}, {"name": "mean_field", "log_var_init": [-2.0, 0.0]}], ids=lambda f: f["name"]
)
def test_the_temperature_is_that_of_scipy(family, validation):
    model = small.model({"family": family, "fit": {"name": "temperature", "samples": 7}}, 3)
    data = small.training_data(1, 40, 3, validation=validation)
    parameters = trained(model, data)
    x, y = data.validation[0] if validation else (data.x[0], data.y[0])
    y.copy_(model.family.functions(model.network, parameters, 7, small.streams(1))(x[None])[0].mean(0).argmax(-1))
    y[::4] = (y[::4] + 1) % 3  # mostly right, so that the best temperature is neither zero nor infinite
    fitted = model.after_training(parameters, data, small.streams(1))
    f = model.family.functions(model.network, parameters, 7, small.streams(1).child("temperature"))(x[None])[0].numpy()

    def loss(log_temperature):
        log = log_softmax(f / np.exp(log_temperature), -1)[:, np.arange(len(y)), y]
        return -(logsumexp(log, axis=0) - np.log(len(log))).mean()

    end = np.log(100)
    best = minimize_scalar(loss, bounds=(-end, end), method="bounded", options={"xatol": 1e-9})
    own = float(fitted["fit/log_temperature"])
    assert loss(own) <= best.fun + 1e-10
    assert abs(own - best.x) < 1e-4 and abs(own) < 0.9 * end
    g = model.functions(fitted, 7, small.streams(1).child("temperature"))(x[None])[0].numpy()
    np.testing.assert_allclose(g, f / np.exp(own), rtol=1e-9)


def test_the_minimum_of_each_replica_is_its_own():
    at = torch.tensor([-2.0, 0.3, 1.7], dtype=torch.float64)
    found = golden_section(lambda x: (x - at).square() + (x - at).pow(4), at * 0 - 3, at * 0 + 3)
    torch.testing.assert_close(found, at, rtol=0, atol=1e-7)


def test_a_temperature_without_a_likelihood_is_refused():
    posterior = fvi.fit(Perceptron, (table(12), labels(12)), "MAP", **QUICK)
    posterior = replace(posterior, parameters={name: 1e30 * value for name, value in posterior.parameters.items()})
    with pytest.raises(FitFailed, match="fit 'temperature': the likelihood of its 12 points is NaN, as logits are not"):
        posterior.after("temperature", (table(12) * 1e20, labels(12)))


def test_a_temperature_is_for_classes():
    model, data = small.model({"family": {"name": "point"}, "fit": {"name": "temperature"}}), small.training_data(1, N)
    with pytest.raises(ValueError, match="fit 'temperature': it divides the logits of classes, found a regression"):
        model.after_training(trained(model, data), data, small.streams(1))
    with pytest.raises(ValueError, match="fit 'temperature': samples: expected 1 or more, found 0"):
        FITS.build({"name": "temperature", "samples": 0})
    parts = {"family": {"name": "gwi", "points": 4, "fit_steps": 1}, "likelihood": {"name": "robust_max"}}
    largest, data = small.model({**parts, "fit": {"name": "temperature"}}, 3), small.training_data(1, N, 3)
    with pytest.raises(FitFailed, match="'temperature': likelihood 'robust_max' does not change with it"):
        largest.after_training(trained(largest, data), data, small.streams(1))


def test_a_fit_of_the_noise_leaves_the_family_alone():
    parts = {
        "family": {"name": "ensemble", "base": {"name": "point"}, "size": 2},
        "likelihood": {"name": "residual_gaussian"},
    }
    model, data = small.model(parts), small.training_data(1, N)
    before = trained(model, data)
    after = model.after_training(before, data, small.streams(1))
    assert all(torch.equal(after[name], value) for name, value in Held.of(before).family.items())
    f = model.functions(after, 2, small.streams(1))(data.x)[..., 0].mean(1)
    torch.testing.assert_close(model.noise_std(after), (data.y - f).square().mean(1).sqrt())
    assert FAMILIES.build(parts["family"]).condition(after, fitting_of(data, model)).keys() == after.keys()


def test_a_fit_part_takes_vectors_of_targets_and_refuses_those_that_are_no_numbers():
    x, y = line()
    both = torch.stack([y, y + 1], 1)
    laplace = fvi.fit(regressor(2), (x, both), "laplace", fit={"precision": 1.0}, progress=False)
    residuals = both - regressor(2)(x).detach()
    assert float(laplace.predict(x).noise_std[0]) == pytest.approx(float(residuals.square().mean().sqrt()), rel=1e-4)
    held_out = (x, both.index_fill(0, torch.tensor([3]), torch.nan))
    with pytest.raises(ValueError, match="targets: expected finite numbers, found NaN"):
        laplace.after("laplace", (x, both), validation=held_out, precision="validation")
