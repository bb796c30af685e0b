import dataclasses
import json
import math
from dataclasses import replace

import pytest
import torch

from fvi_core.likelihoods import LIKELIHOODS, Categorical, Gaussian
from fvi_core.registry import UnknownPart
from fvi_core.training import Training
from tests.fvi_core import small


def rand(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def different(likelihood, replicas=2):
    """Parameters that differ between replicas."""
    params = likelihood.init(replicas, torch.float64)
    return {k: v + torch.linspace(-0.5, 0.5, replicas).double() for k, v in params.items()}


@pytest.mark.parametrize("init_std, min_std", [(0.3, 0.0), (1e-6, 0.0), (80.0, 0.0), (0.3, 0.05)])
def test_noise_starts_at_its_initial_value(init_std, min_std):
    likelihood = Gaussian(init_std, min_std)
    actual = likelihood.noise_std(likelihood.init(3, torch.float64))
    torch.testing.assert_close(actual, torch.full((3,), init_std).double(), rtol=1e-7, atol=0)


def test_noise_stays_above_its_floor():
    likelihood = Gaussian(init_std=0.3, min_std=0.05)
    assert likelihood.noise_std({"rho": torch.tensor([-50.0])}) == torch.tensor(0.05)
    with pytest.raises(ValueError, match="init_std > min_std"):
        Gaussian(init_std=0.05, min_std=0.05)


def test_an_exponential_scale_starts_at_the_given_value_and_moves_by_the_logarithm():
    likelihood = Gaussian(init_std=0.3, min_std=0.1, scale="exp")
    params = likelihood.init(2, torch.float64)
    torch.testing.assert_close(likelihood.noise_std(params), torch.full((2,), 0.3, dtype=torch.float64))
    moved = {"rho": params["rho"] + 1}
    torch.testing.assert_close(
        likelihood.noise_std(moved) - 0.1, 0.2 * torch.full((2,), 1.0, dtype=torch.float64).exp()
    )
    with pytest.raises(ValueError, match="scale 'log' is not known; known: exp, softplus"):
        LIKELIHOODS.build({"name": "gaussian", "scale": "log"})


@pytest.mark.parametrize("scale", ["softplus", "exp"])
def test_residual_noise_may_be_trained_on_the_mean_square(scale):
    likelihood = LIKELIHOODS.build({"name": "residual_gaussian", "error": "mean_square", "scale": scale})
    f = torch.tensor([[1.0, 2.0], [3.0, 2.0]])[None, :, :, None]
    y = torch.tensor([[1.0, 4.0]])
    params = likelihood.init(1)
    assert likelihood.data_term(params, f, y) == -torch.tensor([(0 + 4 + 4 + 4) / 4.0])
    assert likelihood.noise_std(fitted(likelihood, params, f, y)).item() == pytest.approx(math.sqrt((1 + 4) / 2))
    with pytest.raises(ValueError, match="error 'absolute' is not known; known: mean_square, root_mean_square"):
        LIKELIHOODS.build({"name": "residual_gaussian", "error": "absolute"})


@pytest.mark.parametrize("learned", [True, False])
def test_only_learned_noise_has_a_gradient(learned):
    likelihood = Gaussian(learned=learned)
    params = {k: v.requires_grad_() for k, v in likelihood.init(2).items()}
    f = torch.zeros(2, 1, 3, 1, requires_grad=True)
    likelihood.log_prob(params, f, torch.ones(2, 3)).sum().backward()
    assert (params["rho"].grad is not None) == learned


def test_gaussian_density_is_that_of_torch_distributions():
    likelihood = Gaussian(init_std=0.7)
    params, f, y = different(likelihood), rand(2, 4, 5, 1), rand(2, 5, seed=1)
    std = likelihood.noise_std(params)
    expected = torch.distributions.Normal(f[..., 0], std[:, None, None]).log_prob(y[:, None])
    torch.testing.assert_close(likelihood.log_prob(params, f, y), expected, rtol=1e-12, atol=1e-12)


def test_gaussian_expectation_is_the_mean_over_function_samples():
    likelihood = Gaussian(init_std=0.7)
    params, mean, var = different(likelihood), rand(2, 5, 1), rand(2, 5, 1, seed=1).exp()
    y = rand(2, 5, seed=2)
    samples = mean[:, None] + var[:, None].sqrt() * rand(2, 200_000, 5, 1, seed=3)
    expected = likelihood.log_prob(params, samples, y).mean(1)
    actual = likelihood.expected_log_prob_gaussian(params, mean, var, y)
    torch.testing.assert_close(actual, expected, rtol=0.02, atol=0)


def test_gaussian_rejects_several_outputs():
    likelihood = Gaussian()
    with pytest.raises(ValueError, match="expected one output"):
        likelihood.log_prob(likelihood.init(1), torch.zeros(1, 2, 3, 2), torch.zeros(1, 3))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_categorical_density_is_that_of_torch_distributions(dtype):
    f, y = rand(2, 4, 5, 3).to(dtype), torch.tensor([[0, 1, 2, 2, 1], [2, 2, 0, 1, 0]])
    working = f.float() if dtype == torch.bfloat16 else f
    expected = torch.distributions.Categorical(logits=working).log_prob(y[:, None].expand(2, 4, 5))
    torch.testing.assert_close(Categorical().log_prob({}, f, y), expected)


def test_categorical_has_no_closed_form_and_says_so():
    assert Gaussian.has_closed_form and not Categorical.has_closed_form
    assert Categorical().init(3) == {}
    with pytest.raises(NotImplementedError, match="average log_prob over function samples"):
        Categorical().expected_log_prob_gaussian({}, rand(1, 2, 3), rand(1, 2, 3), torch.zeros(1, 2))


SPECS = [{"name": "gaussian", "init_std": 0.1, "min_std": 0.01, "learned": False}, {"name": "categorical"}]


@pytest.mark.parametrize("spec", SPECS)
def test_likelihoods_are_built_from_plain_descriptions(spec):
    likelihood = LIKELIHOODS.build(json.loads(json.dumps(spec)))
    assert spec.items() <= {"name": likelihood.name, **dataclasses.asdict(likelihood)}.items()


def test_unknown_likelihoods_name_the_nearest():
    with pytest.raises(UnknownPart, match="did you mean 'gaussian'"):
        LIKELIHOODS.build({"name": "gausian"})


def test_data_term_is_the_mean_log_density_of_each_replica():
    likelihood = Gaussian(init_std=0.7)
    params, f, y = different(likelihood), rand(2, 4, 5, 1), rand(2, 5, seed=1)
    expected = likelihood.log_prob(params, f, y).reshape(2, -1).mean(1)
    torch.testing.assert_close(likelihood.data_term(params, f, y), expected)


def fitted(likelihood, params, f, y):
    """The likelihood's parameters after a fit to functions of these values."""
    return likelihood.estimate_noise(params, iter(f.split(2, 2)), y)


def test_residual_noise_is_trained_on_the_error_and_calibrated_to_the_residuals():
    likelihood = LIKELIHOODS.build({"name": "residual_gaussian"})
    f = torch.tensor([[1.0, 2.0], [3.0, 2.0]])[None, :, :, None]
    y = torch.tensor([[1.0, 4.0]])
    params = likelihood.init(1)
    error = torch.tensor([(0 + 4 + 4 + 4) / 4]).sqrt()
    torch.testing.assert_close(likelihood.data_term(params, f, y), -error)
    residuals = torch.tensor([((2 - 1) ** 2 + (2 - 4) ** 2) / 2]).sqrt()
    torch.testing.assert_close(likelihood.noise_std(fitted(likelihood, params, f, y)), residuals)


def test_calibrated_noise_is_that_of_the_residuals_also_above_a_floor_and_never_below_it():
    f, y = rand(3, 4, 50, 1), rand(3, 50, seed=1)
    y[2] = f[2, :, :, 0].mean(0)  # nothing is left
    residuals = (y - f[..., 0].mean(1)).square().mean(1).sqrt()
    likelihood = LIKELIHOODS.build({"name": "residual_gaussian", "init_std": 0.9, "min_std": 0.3})
    found = likelihood.noise_std(fitted(likelihood, likelihood.init(3, torch.float64), f, y))
    torch.testing.assert_close(found[:2], residuals[:2])
    assert 0.3 <= found[2] < 0.3001 and residuals[:2].min() > 0.3


def test_residual_noise_of_vectors_is_that_of_all_their_numbers():
    likelihood = LIKELIHOODS.build({"name": "residual_gaussian"})
    params, f, y = likelihood.init(2, torch.float64), rand(2, 4, 5, 3), rand(2, 5, 3, seed=1)
    error = torch.stack([torch.nn.functional.mse_loss(f[r], y[r].expand(4, 5, 3)) for r in range(2)]).sqrt()
    torch.testing.assert_close(likelihood.data_term(params, f, y), -error)
    residuals = (y - f.mean(1)).flatten(1).std(1, correction=0)
    residuals = (residuals.square() + (y - f.mean(1)).flatten(1).mean(1).square()).sqrt()
    torch.testing.assert_close(likelihood.noise_std(fitted(likelihood, params, f, y)), residuals)
    with pytest.raises(ValueError, match="expected 3 outputs, one for each number of a target, found 2"):
        likelihood.data_term(params, f[..., :2], y)


def test_robust_max_gives_each_class_a_share_and_all_classes_together_one():
    f = rand(2, 4, 5, 3)
    p = LIKELIHOODS.build({"name": "robust_max", "epsilon": 0.3}).values(f).exp()
    torch.testing.assert_close(p.sum(-1), torch.ones_like(p[..., 0]))
    assert torch.equal(p.argmax(-1), f.argmax(-1)) and p.amax() == pytest.approx(0.7)


def test_vectors_have_independent_noise_in_each_of_their_numbers():
    likelihood = Gaussian(init_std=0.7)
    params, f, y = different(likelihood), rand(2, 4, 5, 3), rand(2, 5, 3, seed=1)
    std = likelihood.noise_std(params)
    expected = torch.distributions.Normal(f, std[:, None, None, None]).log_prob(y[:, None]).sum(-1)
    torch.testing.assert_close(likelihood.log_prob(params, f, y), expected, rtol=1e-12, atol=1e-12)
    mean, var = rand(2, 5, 3, seed=2), rand(2, 5, 3, seed=3).exp()
    each = [
        likelihood.expected_log_prob_gaussian(params, mean[..., d : d + 1], var[..., d : d + 1], y[..., d])
        for d in range(3)
    ]
    torch.testing.assert_close(likelihood.expected_log_prob_gaussian(params, mean, var, y), sum(each))
    with pytest.raises(ValueError, match="expected 3 outputs, one for each number of a target, found 2"):
        likelihood.log_prob(params, f[..., :2], y)


def test_noise_of_independent_members_is_joined_to_the_mean_of_their_parameters():
    assert Gaussian().joined({"rho": torch.tensor([[1.0, 3.0], [0.0, -4.0]])})["rho"].tolist() == [2.0, -2.0]


def test_vectors_are_trained_on_and_predicted():
    data = small.training_data(3, 10, dtype=torch.float64)
    both = replace(data, y=torch.stack([data.y, -2 * data.y], -1))
    model = small.model({"family": {"name": "mean_field"}, "likelihood": {"name": "gaussian"}}, 2)
    options = Training(40, 10, {"name": "adam", "lr": 0.05}, dtype="float64")
    trained = options.start(model, both, small.streams(3)).run()
    assert all(t.loss[-1] < t.loss[0] for t in trained)
    alone = options.start(model, small.one(both, 1), small.streams(3).subset([1])).run()[0]
    assert alone.loss == trained[1].loss
    f = model.functions(model.after_training(alone.parameters, both.of(1), small.streams(1)), 5, small.streams(1))(
        data.x[1:2]
    )
    assert f.shape == (1, 5, 10, 2)


def test_weighted_classes_count_alike():
    """Against torch's weighted cross-entropy, with the weights computed by hand."""
    f, y = rand(2, 3, 4, 2), torch.tensor([[0, 0, 0, 1], [1, 1, 1, 1]])
    term = Categorical(class_weights="batch").data_term({}, f, y)
    for r, weight in enumerate(([4 / (2 * 3), 4 / 2], [0.0, 1 / 2])):  # of the classes in each batch
        each = [
            torch.nn.functional.cross_entropy(f[r, s], y[r], torch.tensor(weight).double(), reduction="none").mean()
            for s in range(3)
        ]
        torch.testing.assert_close(term[r], -torch.stack(each).mean())
    assert torch.equal(Categorical().data_term({}, f, y), Categorical().log_prob({}, f, y).mean((1, 2)))
    with pytest.raises(ValueError, match="likelihood 'categorical': class_weights 'batches' is not known.*'batch'"):
        LIKELIHOODS.build({"name": "categorical", "class_weights": "batches"})
