"""Own likelihoods, labels, modules and boxes in fit(): those that it takes, and those that it refuses by name."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import fvi_core as fvi
from fvi_core.contexts import ContextSource
from fvi_core.families.base import NotSupported
from fvi_core.likelihoods import Gaussian, Likelihood
from fvi_core.registry import CONTEXTS, LIKELIHOODS
from fvi_core.settings import ChangedInPlace
from tests.fvi_core import small

X = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
LABELS, LINE = (X[:, 0] > 0).long(), 5 + 100 * X[:, 0]
FEW = {"epochs": 40, "optimiser": {"name": "adam", "lr": 0.05}, "progress": False}


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """Two classes from one logit."""

    def outputs(self, targets):
        return 1

    def log_prob(self, params, f, y):
        return F.logsigmoid(f[..., 0] * (2 * y.unsqueeze(1) - 1))

    def values(self, f):
        return torch.cat([torch.zeros_like(f), f], -1)


@dataclass(frozen=True)
class Scattered(Likelihood):
    """A mean and the logarithm of a deviation for each target."""

    def outputs(self, targets):
        return 2 * targets

    def log_prob(self, params, f, y):
        return torch.distributions.Normal(f[..., 0], f[..., 1].exp()).log_prob(y.unsqueeze(1))

    def values(self, f):
        return f[..., :1]

    def noise_std(self, params):
        return torch.tensor([0.1])


@dataclass(frozen=True)
class Halving(Gaussian):
    """Writes into the targets."""

    def log_prob(self, params, f, y):
        return super().log_prob(params, f, y.mul_(0.5))


@dataclass(frozen=True)
class StudentT(Gaussian):
    """Another density with the same noise."""

    def log_prob(self, params, f, y):
        return torch.distributions.StudentT(4.0, f[..., 0], self.noise_std(params)[0]).log_prob(y.unsqueeze(1))


@contextmanager
def known(likelihood):
    with patch.dict(LIKELIHOODS.classes), patch.object(likelihood, "name", "own", create=True):
        LIKELIHOODS.classes["own"] = likelihood
        yield {"name": "own"}


def net(outputs):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, outputs))


@pytest.mark.parametrize("y", [LABELS, ["no" if each == 0 else "yes" for each in LABELS]], ids=["numbers", "text"])
def test_one_logit_of_two_classes(y, tmp_path):
    with known(Bernoulli) as likelihood:
        posterior = fvi.fit(net(1), (X, y), "MFVI", likelihood=likelihood, **FEW)
        assert posterior.predict(X, samples=5).probabilities.shape == (60, 2)
        assert posterior.score(X, y)["accuracy"] > 0.9
        posterior.save(tmp_path / "own.fvi")
        assert fvi.load(tmp_path / "own.fvi", net(1)).score(X, y) == posterior.score(X, y)
        with pytest.raises(ValueError, match="labels"):
            posterior.score(X, LABELS + 1)


def test_two_outputs_of_one_target():
    with known(Scattered) as likelihood:
        posterior = fvi.fit(net(2), (X, LINE), "FSVI", likelihood=likelihood, context={"points": 5}, **FEW)
    found = posterior.predict(X)
    assert found.mean.shape == (60, 1) and found.noise_std is not None
    assert found.noise_std.item() == pytest.approx(0.1 * LINE.std(correction=0).item(), rel=1e-5)
    assert posterior.score(X, LINE)["rmse"] < 0.5 * LINE.std().item()


def test_targets_that_a_part_writes_into_are_named():
    with known(Halving) as likelihood, pytest.raises(ChangedInPlace, match="training data y in place during training"):
        fvi.fit(net(1), (X, LINE), "MAP", likelihood=likelihood, **FEW)


@pytest.mark.parametrize("method", ["GP", "GWI"])
def test_a_process_in_closed_form_refuses_a_density_that_it_would_not_use(method):
    with known(StudentT) as likelihood:
        if method == "GP":
            with pytest.raises(NotSupported, match="family 'exact_gp' needs Gaussian noise, which likelihood 'own'"):
                fvi.fit(net(1), (X, LINE), method, likelihood=likelihood, **FEW)
        fvi.fit(net(1), (X, LINE), "MFVI", likelihood=likelihood, **FEW)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, "", " "])
@pytest.mark.parametrize("row", [0, 5])
def test_a_missing_label_of_text_is_no_class(missing, row):
    labels = ["a" if each == 0 else "b" for each in LABELS]
    labels[row] = missing
    for y in (pd.Series(labels, dtype=object), np.array(labels, dtype=object)):
        with pytest.raises(ValueError, match=f"labels: expected text, found .* in row {row}: leave out points"):
            fvi.fit(net(3), (X, y), "MAP", epochs=1, progress=False)


def test_labels_of_any_whole_type_are_labels_and_bytes_are_not():
    for dtype in (np.uint8, np.uint16, np.uint32, np.int8, bool):
        found = fvi.fit(net(2), (X, LABELS.numpy().astype(dtype)), "MAP", epochs=1, progress=False)
        assert found.score(X, LABELS)["accuracy"] == found.score(X, LABELS.numpy().astype(dtype))["accuracy"]
    with pytest.raises(ValueError, match="labels: expected text, found b'a' in row 0"):
        fvi.fit(net(2), (X, [b"a"] * 30 + [b"b"] * 30), "MAP", epochs=1, progress=False)
    with pytest.raises(ValueError, match="targets: expected numbers, or labels of text, found list"):
        fvi.fit(net(2), (X, [None] * 60), "MAP", epochs=1, progress=False)


def test_a_box_has_bounds_of_each_feature():
    data, low, high = small.training_data(3, 10), [-3.0, 0.0], [-2.0, 5.0]
    source = ContextSource(data.x, data.low, data.high, data.pools)
    box = CONTEXTS.build({"name": "uniform_box", "points": 500, "low": low, "high": high})
    x = box(source, small.streams(3))
    assert (x >= torch.tensor(low)).all() and (x <= torch.tensor(high)).all()
    assert x.std((0, 1)).numpy() == pytest.approx(np.subtract(high, low) / 12**0.5, rel=0.1)
    one = CONTEXTS.build({"name": "uniform_box", "points": 5, "low": -3.0, "high": 2.0})(source, small.streams(3))
    each = {"name": "uniform_box", "points": 5, "low": [-3.0] * 2, "high": [2.0] * 2}
    assert torch.equal(CONTEXTS.build(each)(source, small.streams(3)), one)
    with pytest.raises(ValueError, match=r"expected a bound for each of \[2\], found \[0.0\]"):
        CONTEXTS.build({"name": "uniform_box", "points": 5, "low": [0.0]})(source, small.streams(3))
    with pytest.raises(ValueError, match="expected low below high"):
        CONTEXTS.build({"name": "uniform_box", "points": 5, "low": low, "high": [1.0, 0.0]})


def test_a_part_is_left_out_by_none():
    with pytest.raises(NotSupported, match="leave it out"):
        fvi.fit(net(1), (X, LINE), "FSVI", divergence={"name": "weight_kl"}, **FEW)
    assert fvi.fit(net(1), (X, LINE), "FSVI", divergence={"name": "weight_kl"}, context=None, **FEW).loss


class Writing(nn.Sequential):
    def forward(self, x):
        x -= 0.5
        return super().forward(x)


class Tied(nn.Module):
    def __init__(self, names):
        super().__init__()
        for name in names:
            self.add_module(name, nn.Linear(2, 2))
        self.a.weight = self.fc.weight

    def forward(self, x):
        return self.fc(torch.tanh(self.a(x)))


@pytest.mark.parametrize("names", [("a", "fc"), ("fc", "a")])
def test_a_head_that_shares_its_weight_is_named(names):
    with pytest.raises(fvi.UnfitModule, match="head 'fc' shares its weight with a.weight"):
        fvi.fit(Tied(names), (X, LABELS), "MAP", **FEW)


def test_modules_that_cannot_be_functions_of_their_parameters_are_named():
    with pytest.raises(fvi.UnfitModule, match="writes into its input: let it change a copy"):
        fvi.fit(Writing(*net(2)), (X, LABELS), "MAP", **FEW)
    with pytest.raises(fvi.UnfitModule, match="cannot be copied, .*parametrizations in .*prune.remove"):
        fvi.fit(nn.Sequential(nn.utils.weight_norm(nn.Linear(2, 4)), nn.Linear(4, 2)), (X, LABELS), "MAP", **FEW)


def least_squares(y):
    """A linear module trained on the targets in their own units."""
    made = nn.Sequential(nn.Linear(2, y.shape[1]))
    found = torch.linalg.lstsq(torch.cat([X, torch.ones(len(X), 1)], 1), y).solution
    with torch.no_grad():
        made[0].weight.copy_(found[:2].mT)
        made[0].bias.copy_(found[2])
    return made


def test_training_from_a_module_in_the_units_of_its_targets_is_warned_of():
    y = 1000 + 10 * X[:, :1] + torch.randn(60, 1, generator=torch.Generator().manual_seed(1))
    module, none = least_squares(y), {"epochs": 0, "progress": False}
    with pytest.warns(UserWarning, match=r"begins far off; change its last layer before: weight / std"):
        fvi.fit(module, (X, y), "MAP", **none)
    best = (module(X) - y).square().mean().sqrt().item()
    with torch.no_grad():
        module[0].weight.div_(y.std(correction=0))
        module[0].bias.sub_(y.mean()).div_(y.std(correction=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fvi.fit(module, (X, y), "MAP", **none).score(X, y)["rmse"] == pytest.approx(best, rel=1e-3)
        fvi.fit(net(1), (X, y), "MAP", **none)


def test_outputs_of_unlike_scales_of_a_trained_module_are_warned_of():
    y = X @ torch.tensor([[1.0, 2.0], [-1.0, 1.0]])
    y = y + 0.1 * torch.randn(60, 2, generator=torch.Generator().manual_seed(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fvi.fit(least_squares(y), (X, y), "laplace")
    y = y * torch.tensor([1e-3, 1e3])
    with pytest.warns(UserWarning, match="get one noise, and the standard deviations of these targets are 0.00"):
        fvi.fit(least_squares(y), (X, y), "laplace")
