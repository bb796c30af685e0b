"""Options, data and modules that fit and predict refuse, and what the messages say to do."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import fvi_core as fvi
from fvi_core.contexts import TrainingBatch
from fvi_core.divergences.weight import WeightKL
from fvi_core.families.base import NotSupported
from fvi_core.methods import UnknownMethod
from fvi_core.priors.function import GaussianFunctions
from fvi_core.registry import REGISTRIES, UnknownPart
from tests.fvi_core.networks.modules import Perceptron, table
from tests.fvi_core.posteriors import QUICK, labels, line, regressor

MINE = {"context": {"name": "images", "pool": "mine", "points": 2}}
USED = {**MINE, "contexts": {"mine": table(3)}, "epochs": 1}


@pytest.mark.parametrize(
    ("error", "options", "message"),
    [
        (UnknownMethod, {"method": "FSVVI"}, "did you mean 'FSVI'"),
        (UnknownPart, {"context": {"pionts": 3}}, "did you mean 'points'"),
        (TypeError, {"contxt": {"points": 3}}, "did you mean 'context'"),
        (TypeError, {"epoch": 3}, "did you mean 'epochs'"),
        (ValueError, {"epochs": 1.5}, "epochs: expected int, found 1.5"),
        (ValueError, {"epochs": True}, "epochs: expected int, found True"),
        (ValueError, {"context": {"low": 3.0, "high": -3.0}}, "expected low below high, found 3.0 and -3.0"),
        (ValueError, {"batch_size": 0}, "batch_size: expected 1 or more, found 0"),
        (UnknownPart, {"likelihood": "categorical"}, "likelihood: expected {'name': .*}, found 'categorical'"),
        (UnknownPart, {"optimiser": torch.optim.SGD([torch.ones(1, requires_grad=True)])}, "found an object SGD"),
        (UnknownPart, {"optimiser": "adam"}, "optimiser: expected {'name': .*}, found 'adam'"),
        (TypeError, {"prior": "dirichlet"}, "as {'name': ...}, found str 'dirichlet'"),
        (TypeError, {"class_weights": [1, 2, 3]}, "'class_weights': 'batch'"),
        (TypeError, {"class_weight": "balanced"}, "'class_weights': 'batch'"),
        (TypeError, {"resume": "mine.fvi"}, "cannot be continued"),
        (TypeError, {"weight": torch.ones(3)}, "'class_weights': 'batch'"),
        (TypeError, {"ignore_index": -1}, "leave points without a label out"),
        (TypeError, {"method": "HMC", "optimiser": {"name": "adam"}}, "training 'hmc' has no optimiser"),
        (ValueError, {"context": {"name": "images", "points": 3, "pool": "kmnist"}}, "draws from .'kmnist'."),
        (NotSupported, {"method": "MC Dropout"}, "put nn.Dropout modules into"),
        (TypeError, {"method": labels(12)}, "method: expected a name, found Tensor; data are one pair"),
        (TypeError, {"device": "cuda"}, "module.to.device."),
        (TypeError, {"schedule": {"name": "cosine"}}, "say training={'schedule': {'name': 'cosine'}}"),
        (TypeError, {"kernel": {"name": "rbf"}}, "say prior={'kernel': {'name': ...}}, of a process family={'kernel'"),
        (TypeError, {"hessian_structure": "kron"}, "say fit={'structure': 'kronecker'}"),
        (TypeError, {"noise_std": 0.1}, "'init_std': ..., 'learned': False}, in standard deviations of the targets"),
        (
            NotSupported,
            {"method": "GFSVI", "prior": {"kernel": {"name": "helmholtz", "field": "curl_free"}}},
            "kernel 'helmholtz' gives vector fields .gradients., found 3 outputs and 4 features",
        ),
        (TypeError, {"validation": 0.1}, "validation: expected a pair .x, y., a Dataset or a DataLoader, found float$"),
        (TypeError, {"early_stopping": 5}, "'early_stopping': {'patience': 10}"),
        (TypeError, {"method": "laplace", "epochs": 3}, "'laplace' trains nothing: leave out epochs"),
        (UnknownPart, {"method": "MFVI", "context": {"points": 3}}, "context: the method has none, so .'points'."),
        (UnknownPart, {"context": {"name": "grid"}}, "context 'grid': expected the hyper-parameter '"),
        (UnknownPart, {"weight": {"scale": 2.0}}, "weight has no hyper-parameter 'scale'; did you mean 'scaling'"),
        (UnknownPart, {"training": {"early_stopping": 5}}, "early_stopping: expected a dict of .*'patience'., found 5"),
        (UnknownPart, {"training": {"early_stopping": {"patiance": 5}}}, "did you mean 'patience'"),
        (UnknownPart, {"training": {"early_stopping": {}}}, "expected the hyper-parameter 'patience', found none"),
        (ValueError, {"training": {"early_stopping": {"patience": 5}}}, "found none: give fit.. validation data"),
        (ValueError, {"training": {"early_stopping": {"patience": 0}}}, "patience: expected 1 or more, found 0"),
        (
            ValueError,
            {"training": {"early_stopping": {"patience": 3, "every": 0}}},
            "every: expected 1 or more, found 0",
        ),
        (
            ValueError,
            {"method": "laplace", "fit": {"precision": "validation"}},
            "fit 'laplace': expected validation data",
        ),
        (ValueError, {"weight": {"factor": -1.0}}, "factor: expected 0 or more, found -1.0"),
        (ValueError, {"weight": {"factor": "0.1"}}, "factor: expected float, found '0.1'"),
        (ValueError, {"contexts": {"mine": table(3)}}, "draws from .., found .'mine'.: say context="),
        (ValueError, {**MINE, "contexts": {"mine": table(3)[:, :2]}}, "'mine': expected inputs .N, 4., found .3, 2."),
        (ValueError, {**MINE, "contexts": {"mine": table(3)[:0]}}, "contexts: 'mine': expected inputs, found none"),
        (ValueError, {"validation": (table(3)[:, :2], labels(3))}, "validation: expected inputs .N, 4., found .3, 2."),
        (
            NotSupported,
            {"method": "MFVI", "divergence": {"name": "gaussian_kl"}},
            "needs a context, and the method has",
        ),
        (NotSupported, {"method": "MFVI", **USED}, "context 'images' would not be used, as divergence 'weight_kl'"),
        (NotSupported, {"method": "Ensemble", **USED}, "would not be used, as the method has no divergence"),
        (NotSupported, {"method": "FBNN", "epochs": 1, "samples": 1}, "set the training's samples, for example to 10"),
        (ValueError, {"method": "MAP (temperature)", "epochs": 10**9}, "found none: give fit.. validation data"),
        (ValueError, {"method": "Laplace", "epochs": 10**9, "fit": {"precision": "validation"}}, "give fit.. valid"),
        (TypeError, {"sample_weight": torch.ones(3)}, "repeat points in the data"),
    ],
)
def test_what_does_not_fit_is_named(error, options, message):
    with pytest.raises(error, match=message):
        fvi.fit(Perceptron(), (table(12), labels(12)), **{"method": "FSVI", "progress": False, **options})


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_training_without_gradients_is_refused(mode):
    with mode(), pytest.raises(RuntimeError, match="outside torch.no_grad.. and torch.inference_mode"):
        fvi.fit(Perceptron(), (table(12), labels(12)), "MAP", **QUICK)


@pytest.mark.parametrize(
    ("error", "module", "points", "message"),
    [
        (TypeError, "resnet18", 12, "module: expected an nn.Module, or a function that makes one, found str"),
        (ValueError, Perceptron, 0, "data: expected points, found none"),
        (ValueError, Perceptron, 1, "data: expected two points or more, found 1"),
    ],
)
def test_a_module_that_is_none_and_data_without_points_are_named(error, module, points, message):
    with pytest.raises(error, match=message):
        fvi.fit(module, (table(12)[:points], labels(12)[:points]), "MAP", **QUICK)


@pytest.mark.parametrize(
    ("error", "validation", "message"),
    [
        (ValueError, (table(0), labels(0)), "validation: expected points, found none"),
        (ValueError, (table(3) * torch.nan, labels(3)), "validation: expected finite inputs, found NaN"),
        (ValueError, (table(3), labels(2)), "validation: expected a target for each of 3 inputs, found 2"),
        (ValueError, (table(3), labels(3) + 1), "validation: labels: expected 0 to 2 for 3 outputs, found 1 to 3"),
        (ValueError, (table(3)[:, :2], labels(3)), "validation: expected inputs .N, 4., found .3, 2."),
        (TypeError, table(3), "validation: expected a pair"),
    ],
)
def test_faults_of_validation_data_are_not_attributed_to_the_training_data(error, validation, message):
    options = {"training": {"early_stopping": {"patience": 2}}, "validation": validation}
    with pytest.raises(error, match=f"^{message}"):
        fvi.fit(Perceptron(), (table(12), labels(12)), "MAP", **QUICK, **options)


def test_a_module_whose_head_is_frozen_is_named():
    frozen = Perceptron().requires_grad_(False)
    with pytest.raises(fvi.UnfitModule, match="is frozen, and no method can change it: set its requires_grad_"):
        fvi.fit(frozen, (table(12), labels(12)), "laplace")


def test_inputs_and_targets_without_a_number_are_refused_as_in_training():
    x, y = table(12), labels(12)
    posterior = fvi.fit(Perceptron, (x, y), "MAP", **QUICK)
    wrong = x.clone()
    wrong[[5, 7], [2, 1]] = torch.tensor([torch.nan, torch.inf])
    pattern = r"x: expected finite inputs, found NaN or infinity in 2 of 12, the first in row 5, column {}; leave these"
    for call in (posterior.predict, lambda x: posterior.score(x, y), lambda x: posterior.auroc(table(12), x)):
        with pytest.raises(ValueError, match=pattern.format(2)):
            call(wrong)
    with pytest.raises(ValueError, match=pattern.format("'c'")):
        posterior.predict(pd.DataFrame(wrong.numpy(), columns=list("abcd")))
    with pytest.raises(ValueError, match="contexts: 'mine': expected finite inputs, found NaN or infinity in 2 of 12"):
        fvi.fit(Perceptron(), (x, y), "FSVI", **{**USED, "contexts": {"mine": wrong}})
    x, y = line()
    with pytest.raises(ValueError, match="targets: expected finite numbers, found NaN or infinity"):
        fvi.fit(regressor, (x, y), "MAP", **QUICK).score(x, y * torch.nan)
    y[3] = torch.nan
    with pytest.raises(ValueError, match=f"targets: .* NaN or infinity in 1 of {len(y)}, the first in row 3; leave"):
        fvi.fit(regressor, (x, y), "MAP", **QUICK)
    with pytest.raises(ValueError, match=f"targets: expected some that differ, found {len(y)} equal ones"):
        fvi.fit(regressor, (x, torch.ones(len(y))), "MAP", **QUICK)


@pytest.mark.parametrize("seed", ["a", 1.5, True, None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(TypeError, match=f"seed: expected a whole number, found {seed!r}"):
        fvi.fit(Perceptron, (table(12), labels(12)), "MAP", seed=seed, **QUICK)


def test_equal_seeds_of_several_types_are_one():
    module = Perceptron()
    first, other = (fvi.fit(module, (table(12), labels(12)), "MFVI", seed=seed, **QUICK) for seed in (3, np.int64(3)))
    assert all(torch.equal(value, other.parameters[name]) for name, value in first.parameters.items())


def test_predict_takes_inputs_of_the_training_datas_shape_and_no_loader():
    x, y = table(12), labels(12)
    posterior = fvi.fit(Perceptron, (x, y), "MAP", **QUICK)
    with pytest.raises(TypeError, match="found DataLoader; predict each batch of a loader by itself"):
        posterior.predict(DataLoader(TensorDataset(x, y), 4))
    for wrong, found in ((x[:0], r"\[0, 4\]$"), (x[:, :2], r"\[12, 2\]$"), (x[0], r"\[4\]; give x\[None\] for one")):
        with pytest.raises(ValueError, match=rf"x: expected one input or more, \[N, 4\], found {found}"):
            posterior.predict(wrong)


@pytest.mark.parametrize(
    ("kind", "name", "method"), [("likelihood", "gaussian", "data_term"), ("divergence", "weight_kl", "__call__")]
)
def test_a_part_that_returns_too_many_numbers_is_named(kind, name, method, monkeypatch):
    many = torch.zeros(1, 3, requires_grad=True)
    monkeypatch.setattr(REGISTRIES[kind].classes[name], method, lambda *args: many)
    with pytest.raises(ValueError, match=f"{kind} '{name}': expected a term of the objective .R., one number for each"):
        fvi.fit(regressor, line(), "MFVI", **QUICK)


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        (lambda mean: (mean, torch.ones_like(mean)), r"full covariance .R, Q or 1, 5, 5., found .1, 1, 5."),
        (lambda mean: (mean[..., :1], torch.eye(5).expand(1, 1, 5, 5)), r"mean .R, Q or 1, 5., found .1, 1, 1."),
    ],
)
def test_moments_of_a_prior_that_would_be_broadcast_are_refused(moments, expected, monkeypatch):
    own = staticmethod(lambda network, held, x, covariance: moments(x.new_zeros(1, 1, 5)))
    monkeypatch.setattr(GaussianFunctions, "moments", own)
    context = {"name": "uniform_box", "points": 5}
    with pytest.raises(ValueError, match=f"prior 'gaussian_functions': moments: expected a {expected}"):
        fvi.fit(regressor, line(), "FSVI", prior={"name": "gaussian_functions"}, context=context, **QUICK)


@pytest.mark.parametrize(
    ("points", "error", "message"),
    [
        (lambda x: x[0], ValueError, r"expected K >= 1 inputs .1, K, 4., found shape .12, 4."),
        (lambda x: x[..., :1], ValueError, r"expected K >= 1 inputs .1, K, 4., found shape .1, 12, 1."),
        (lambda x: x[:, :0], ValueError, r"expected K >= 1 inputs .1, K, 4., found shape .1, 0, 4."),
        (lambda x: x.numpy(), TypeError, "expected a tensor of inputs, found ndarray"),
    ],
)
def test_a_context_that_draws_no_inputs_is_named(points, error, message, monkeypatch):
    monkeypatch.setattr(TrainingBatch, "__call__", lambda self, source, streams: points(source.x))
    context = {"name": "training_batch", "points": 5}
    with pytest.raises(error, match=f"context 'training_batch': {message}"):
        fvi.fit(Perceptron(), (table(12), labels(12)), "FSVI", context=context, **QUICK)


def test_a_divergence_that_returns_no_tensor_is_named(monkeypatch):
    monkeypatch.setattr(WeightKL, "__call__", lambda self, step: None)
    with pytest.raises(TypeError, match="divergence 'weight_kl': expected a tensor, .* found NoneType"):
        fvi.fit(regressor, line(), "MFVI", **QUICK)
