"""Tests of the distributions of priors over functions, against Jacobians, kernels and samples."""

import pytest
import torch

import fvi_core.kernels  # noqa: F401  (registers its parts)
from fvi_core.data import TrainingSet, milios_targets
from fvi_core.families.base import NotSupported
from fvi_core.gaussian_process import fit_kernel
from fvi_core.registry import KERNELS, PRIORS
from tests.fvi_core import small
from tests.fvi_core.networks.test_residual import tiny
from tests.fvi_core.test_linearisation import jacobian

R, K = 3, 5
NETWORK = small.network(small.TANH, 2)
X = small.inputs(R, K)
TRAIN = TrainingSet(X, torch.zeros(R, K, dtype=torch.float64), 1, False)


def weights_prior(**options):
    prior = PRIORS.build({"name": "gaussian_weights", "variance": 0.7, **options})
    return prior, prior.init(NETWORK, NETWORK.init(small.streams(R)), TRAIN, small.streams(R, name="fit"))


def test_statistics_of_the_prior_are_of_points_from_all_of_the_training_part(monkeypatch):
    """The first rows may be those of one class."""
    monkeypatch.setattr("fvi_core.priors.weight.CALIBRATION", 3)
    network = tiny()
    x = small.inputs(R, 9, network.input_shape)
    train = TrainingSet(x, torch.zeros(R, 9, dtype=torch.float64), 1, False)
    start = network.init(small.streams(R))
    prior = PRIORS.build({"name": "gaussian_weights", "jacobian": "full"})
    state = prior.init(network, start, train, small.streams(R, name="fit"))
    drawn = {name: value.unsqueeze(1) for name, value in start.items() if name in network.shapes}
    seen = network.statistics(drawn, x[:, [0, 4, 8]])
    assert seen.keys() == network.buffers.keys()
    for name, value in seen.items():
        assert torch.equal(state[name], value[:, 0])


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("jacobian_of", ["last_layer", "full"])
@pytest.mark.parametrize("features", ["initial", "draw"])
def test_the_pushforward_of_a_weight_prior_is_that_of_its_jacobian(features, jacobian_of, centred):
    prior, state = weights_prior(features=features, jacobian=jacobian_of, centred=centred)
    mean, covariance = prior.moments(NETWORK, state, X, "full")
    _, variance = prior.moments(NETWORK, state, X, "diagonal")
    names = list(NETWORK.shapes) if jacobian_of == "full" else ["head.weight", "head.bias"]
    for r in range(R):
        f, j = jacobian(NETWORK, {k: v[r] for k, v in state.items()}, X[r], names)
        torch.testing.assert_close(covariance[r], 0.7 * j @ j.mT, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(mean[r], torch.zeros_like(f) if centred else f, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(variance, covariance.diagonal(dim1=-2, dim2=-1))
    assert not covariance.requires_grad


def test_the_last_layer_pushforward_has_the_moments_of_functions_with_a_random_head():
    prior, state = weights_prior()
    _, covariance = prior.moments(NETWORK, state, X, "full")
    samples = 20000
    drawn = {k: v.unsqueeze(1).expand(-1, samples, *v.shape[1:]) for k, v in state.items()}
    heads = prior.weights(NETWORK, samples, small.streams(R))
    f = NETWORK(drawn | {k: heads[k] for k in ("head.weight", "head.bias")}, X).movedim(-1, 1)
    torch.testing.assert_close(f.mT @ f / samples, covariance, rtol=0.05, atol=0.05)


def test_features_are_those_of_the_initial_network_or_one_draw():
    _, initial = weights_prior(features="initial")
    assert all(torch.equal(v, initial[k]) for k, v in NETWORK.init(small.streams(R)).items())
    prior, drawn = weights_prior(features="draw")
    expected = prior.weights(NETWORK, 1, small.streams(R, name="fit"))
    assert all(torch.equal(v[:, 0], drawn[k]) for k, v in expected.items())


def test_features_may_follow_the_mean_of_the_family_as_constants():
    prior, state = weights_prior(features="current")
    assert state == {}
    mean = {name: value.requires_grad_() for name, value in NETWORK.init(small.streams(R, name="now")).items()}
    followed = prior.following(state, lambda: mean)
    fixed, _ = weights_prior(features="initial")
    for covariance in ("full", "diagonal"):
        both = prior.moments(NETWORK, followed, X, covariance), fixed.moments(NETWORK, mean, X, covariance)
        for found, expected in zip(*both, strict=True):
            assert torch.equal(found, expected) and not found.requires_grad
    given = {"any": X}
    assert fixed.following(given, lambda: mean) is given
    with pytest.raises(NotSupported, match="features 'current' need a training step"):
        prior.moments(NETWORK, {}, X, "full")
    with pytest.raises(NotSupported, match="features 'initial' need weights from the family's initial_network"):
        fixed.moments(NETWORK, {}, X, "full")


def test_samples_of_a_weight_prior():
    prior, state = weights_prior()
    drawn = prior.weights(NETWORK, 2000, small.streams(R))
    flat = NETWORK.flatten(drawn)
    assert abs(flat.mean()) < 0.01 and abs(flat.var() - 0.7) < 0.01
    assert prior.gaussian_weights() == (0.0, 0.7)
    f = prior.functions(NETWORK, state, 2000, small.streams(R))(X)
    torch.testing.assert_close(f, NETWORK(drawn, X), rtol=1e-12, atol=1e-12)


def test_weight_prior_options_are_checked():
    with pytest.raises(ValueError, match="features 'random' is not known; known: current, draw, initial"):
        weights_prior(features="random")


def test_independent_function_values():
    prior = PRIORS.build({"name": "gaussian_functions", "variance": 10.0, "mean": 2.0})
    mean, covariance = prior.moments(NETWORK, {}, X, "full")
    assert torch.equal(mean, torch.full((R, 1, K), 2.0, dtype=X.dtype))
    assert torch.equal(covariance, 10 * torch.eye(K, dtype=X.dtype).expand(R, 1, K, K))
    assert torch.equal(prior.moments(NETWORK, {}, X, "diagonal")[1], torch.full((R, 1, K), 10.0, dtype=X.dtype))


KERNEL = {"name": "matern52", "ard": False}


def process(**options):
    return PRIORS.build({"name": "gaussian_process", "kernel": KERNEL, **options})


def test_a_process_has_the_covariance_of_its_kernel():
    prior = process(parameters={"log_lengthscale": -0.3, "log_variance": 0.5})
    state = prior.init(NETWORK, {}, TRAIN, small.streams(R))
    assert all((state[k] == v).all() and len(state[k]) == R for k, v in prior.parameters.items())
    mean, covariance = prior.moments(NETWORK, state, X, "full")
    assert mean.shape == (R, 1, K) and not mean.any()
    assert torch.equal(covariance[:, 0], KERNELS.build(KERNEL)(state, X, X))
    torch.testing.assert_close(prior.moments(NETWORK, state, X, "diagonal")[1], covariance.diagonal(dim1=-2, dim2=-1))


def test_draws_of_a_process_vary_as_its_kernel_says_and_outputs_are_independent():
    prior = process(parameters={"log_lengthscale": 0.0})
    state = prior.init(NETWORK, {}, TRAIN, small.streams(R))
    f = prior.functions(NETWORK, state, 20000, small.streams(R))(X)
    assert f.shape == (R, 20000, K, 2)
    a, b = f.unbind(-1)
    covariance = prior.moments(NETWORK, state, X, "full")[1][:, 0]
    for values in (a, b):
        torch.testing.assert_close(values.mT @ values / 20000, covariance, rtol=0, atol=0.04)
    assert (a.mT @ b / 20000).abs().max() < 0.04


def test_a_process_is_fitted_to_the_training_set():
    data = small.training_data(R, 12)
    prior = process(fit_steps=20, fit_batch=8, fit_lr=0.1)
    state = prior.init(NETWORK, {}, TrainingSet(data.x, data.y, 1, False), small.streams(R))
    expected, _ = fit_kernel(KERNELS.build(KERNEL), data.x, data.y, small.streams(R), steps=20, lr=0.1, batch_size=8)
    assert all(torch.equal(v, state[k]) for k, v in expected.items())
    other = process(fit_steps=20, fit_batch=8, fit_lr=0.1, fit_transform="softplus", fit_start="one")
    moved = other.init(NETWORK, {}, TrainingSet(data.x, data.y, 1, False), small.streams(R))
    options = {"steps": 20, "lr": 0.1, "batch_size": 8, "transform": "softplus", "start": "one"}
    expected, _ = fit_kernel(KERNELS.build(KERNEL), data.x, data.y, small.streams(R), **options)
    assert all(torch.equal(v, moved[k]) and not torch.equal(v, state[k]) for k, v in expected.items())


def test_a_process_is_fitted_to_classes_by_centred_log_normal_targets():
    data = small.training_data(R, 12, outputs=3)
    prior = process(fit_steps=5, alpha_eps=0.1)
    state = prior.init(NETWORK, {}, TrainingSet(data.x, data.y, 3, True), small.streams(R))
    y, noise = milios_targets(data.y, 3, 0.1)
    centred = torch.stack([values - values.mean() for values in y])
    options = {"steps": 5, "lr": 0.05, "batch_size": 256, "fixed_noise": noise}
    expected, _ = fit_kernel(KERNELS.build(KERNEL), data.x, centred, small.streams(R), **options)
    for name, value in expected.items():
        torch.testing.assert_close(state[name], value, rtol=1e-9, atol=1e-9)


def test_unknown_kernel_parameters_are_named():
    with pytest.raises(
        ValueError, match=r"'matern52' has \['log_lengthscale', 'log_variance'\], found \['lengthscale'\]"
    ):
        process(parameters={"lengthscale": 1.0}).init(NETWORK, {}, TRAIN, small.streams(R))


def test_concentrations_of_a_dirichlet_are_one_number_or_one_per_class():
    assert PRIORS.build({"name": "dirichlet", "concentrations": 2}).concentration(3).tolist() == [2, 2, 2]
    biased = PRIORS.build({"name": "dirichlet", "concentrations": [1.0, 4.0]})
    assert biased.concentration(2).tolist() == [1, 4]
    with pytest.raises(ValueError, match="2 concentrations given for 3 classes"):
        biased.concentration(3)


def test_views_that_a_prior_does_not_have_are_named():
    dirichlet, functions = PRIORS.build({"name": "dirichlet"}), PRIORS.build({"name": "gaussian_functions"})
    for ask in (
        dirichlet.gaussian_weights,
        lambda: dirichlet.moments(NETWORK, {}, X, "full"),
        lambda: dirichlet.functions(NETWORK, {}, 3, small.streams(R)),
        lambda: dirichlet.weights(NETWORK, 3, small.streams(R)),
    ):
        with pytest.raises(NotSupported, match="prior 'dirichlet'"):
            ask()
    with pytest.raises(NotSupported, match="prior 'gaussian_functions' is not a Dirichlet"):
        functions.concentration(3)


def test_a_kernel_of_gradients_wants_as_many_outputs_as_features():
    prior = PRIORS.build({"name": "gaussian_process", "kernel": {"name": "helmholtz"}, "parameters": {}})
    with pytest.raises(
        NotSupported, match="kernel 'helmholtz' gives vector fields .gradients., found 1 outputs and 2 features"
    ):
        prior.moments(small.network(small.TANH, 1), prior.init(NETWORK, {}, TRAIN, small.streams(R)), X, "full")


def test_functions_of_a_kernel_of_gradients_have_its_joint_covariance():
    prior = PRIORS.build({"name": "gaussian_process", "kernel": {"name": "helmholtz"}, "parameters": {}})
    state = prior.init(NETWORK, {}, TRAIN, small.streams(R))
    _, covariance = prior.moments(NETWORK, state, X, "joint")
    f = prior.functions(NETWORK, state, 20000, small.streams(R))(X).flatten(2)
    torch.testing.assert_close(f.mT @ f / 20000, covariance[:, 0], rtol=0.05, atol=0.05)


def test_a_dirichlet_is_over_classes():
    with pytest.raises(NotSupported, match="over class probabilities; the data set has no classes"):
        PRIORS.build({"name": "dirichlet"}).init(NETWORK, {}, TRAIN, small.streams(R))
