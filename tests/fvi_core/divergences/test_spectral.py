"""The spectral Stein gradient estimator: its definition, the scores of Gaussians, the gradient of a KL divergence."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from fvi_core.divergences.spectral import bandwidths, spectral_scores
from fvi_core.families.base import NotSupported
from fvi_core.priors.function import GaussianProcess
from fvi_core.training import Training
from tests.fvi_core import small
from tests.fvi_core.contracts import DivergenceContract, R

GP = {"name": "gaussian_process", "parameters": {"log_lengthscale": -0.5}}
BOX = {"name": "uniform_box", "points": 4}
BROAD = {"name": "mean_field", "log_var_init": [-2.0, -1.0]}


class TestSpectralKL(DivergenceContract):
    spec = {"name": "spectral_kl"}
    parts = {"family": BROAD, "prior": GP, "context": BOX}
    unfit = {"family": {"name": "point"}}
    descends = False  # the score is held constant


class TestSpectralKLOfClasses(TestSpectralKL):
    outputs = 3


class TestSpectralKLAtTheBatchToo(TestSpectralKL):
    parts = {
        "family": {"name": "dropout", "rate": 0.3},
        "prior": {"name": "gaussian_functions"},
        "context": {"name": "mixture", "parts": [{"name": "training_batch"}, BOX]},
    }


def test_a_family_in_closed_form_and_a_prior_without_moments_are_named():
    linearised = {"family": {"name": "linearised_mean_field"}, "prior": GP, "context": BOX}
    model = small.model({**linearised, "divergence": {"name": "spectral_kl"}})
    step = small.step(
        model, model.family.init(model.network, small.streams(R)), small.training_data(R, 6), small.streams(R)
    )
    step.functions = None
    with pytest.raises(NotSupported, match="needs draws of functions, family 'linearised_mean_field'"):
        model.divergence(step)
    dirichlet = small.model(
        {"family": BROAD, "prior": {"name": "dirichlet"}, "context": BOX, "divergence": {"name": "spectral_kl"}}
    )
    parameters, labelled = dirichlet.family.init(dirichlet.network, small.streams(R)), small.training_data(R, 6, 2)
    with pytest.raises(NotSupported, match="prior 'dirichlet' has no Gaussian moments"):
        dirichlet.divergence(small.step(dirichlet, parameters, labelled, small.streams(R)))


@pytest.mark.parametrize(
    ("divergence", "family", "samples", "message"),
    [
        (
            {"name": "spectral_kl"},
            BROAD,
            1,
            "two or more draws .* found one of family 'mean_field': set the training's",
        ),
        (
            {"name": "spectral_kl"},
            {"name": "linearised_mean_field"},
            9,
            "draws .* 'linearised_mean_field' is trained in",
        ),
        (
            {"name": "nearest_neighbour_kl", "samples": 4, "k": 4},
            BROAD,
            1,
            "more than 4 draws, .* 'mean_field' gives 4",
        ),
    ],
)
def test_too_few_draws_are_refused_before_a_kernel_is_fitted(divergence, family, samples, message, monkeypatch):
    monkeypatch.setattr(GaussianProcess, "init", lambda *arguments: pytest.fail("the prior was fitted"))
    prior = {"name": "gaussian_process", "kernel": {"name": "rbf"}}
    model = small.model({"family": family, "prior": prior, "context": BOX, "divergence": divergence})
    training = Training(epochs=1, batch_size=6, optimiser={"name": "adam", "lr": 0.01}, samples=samples)
    with pytest.raises(NotSupported, match=message):
        training.start(model, small.training_data(1, 6), small.streams(1), None)


def test_members_of_a_joint_ensemble_are_draws_and_so_are_those_of_the_divergence():
    ensemble = {"name": "ensemble", "base": {"name": "point"}, "size": 3, "joint": True}
    for family, draws in ((ensemble, None), (BROAD, 2)):
        divergence = {"name": "spectral_kl", "draws": draws}
        model = small.model({"family": family, "prior": GP, "context": BOX, "divergence": divergence})
        training = Training(epochs=1, batch_size=6, optimiser={"name": "adam", "lr": 0.01}, dtype="float64")
        (trained,) = training.start(model, small.training_data(1, 6), small.streams(1), None).run()
        assert trained.reason is None


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_prior_of_the_values_has_the_variance_of_the_noise_besides(outputs):
    """The cross entropy ``-mean_s log N(f_s; m, K + noise^2 I)``, outputs independent."""
    model = small.model(
        {"family": BROAD, "prior": GP, "context": BOX, "divergence": {"name": "spectral_kl", "noise": 0.5}}, outputs
    )
    start = {name: value.double() for name, value in model.family.init(model.network, small.streams(R)).items()}
    step = small.step(model, start, small.training_data(R, 6, outputs), small.streams(R))
    x, f = small.inputs(R, 4), small.streams(R, name="values").normal(5, 4, outputs)
    mean, covariance = model.prior.moments(step.network, step.prior_parameters, x, "full")
    for r in range(R):
        expected = 0.0
        for q in range(outputs):
            noisy = covariance[r, q % covariance.shape[1]] + 0.25 * torch.eye(4)
            expected -= MultivariateNormal(mean[r, q % mean.shape[1]], noisy).log_prob(f[r, :, :, q]).mean()
        found = model.divergence._cross_entropy(step, x, f)[r]
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def by_definition(x, share):
    """Shi et al. (2018), term by term: eigenvectors of the Gram matrix, eigenfunctions, derivatives by autograd."""
    s = len(x)
    lengths = bandwidths(x[None])[0, 0]

    def kernel(a, b):
        return torch.exp(-0.5 * ((a - b) / lengths).square().sum(-1))

    values, vectors = torch.linalg.eigh(kernel(x[:, None], x[None]))
    shares = values.flip(0).cumsum(0) / values.sum()
    score = torch.zeros_like(x)
    for i in range(max(1, int((shares < share).sum()))):
        value, vector = values[-1 - i], vectors[:, -1 - i]

        def psi(y, value=value, vector=vector):
            return math.sqrt(s) / value * (vector * kernel(y, x)).sum()

        slopes = [torch.autograd.functional.jacobian(psi, x[n]) for n in range(s)]
        beta = -torch.stack(slopes).mean(0)
        score += torch.stack([beta * psi(x[n]) for n in range(s)])
    return score


@pytest.mark.parametrize("share", [0.3, 0.9, 0.99])
def test_the_estimate_is_the_definition(share):
    x = small.streams(1).normal(12, 3)
    torch.testing.assert_close(spectral_scores(x, share)[0], by_definition(x[0], share), rtol=1e-8, atol=1e-10)


def test_two_points_by_hand():
    """At 0 and a the median of {0, a, a, 0} counts as 0, so l = 1; k = exp(-a^2 / 2), eigenvalues 1 + k and 1 - k.

    The push from the other point is (k a, -k a), along the smaller one's eigenvector: score (k a, -k a) / (1 - k) with
    both, nothing with the larger alone, whose share (1 + k) / 2 is 80 %.
    """
    a = math.sqrt(-2 * math.log(0.6))
    x = torch.tensor([[[0.0], [a]]])
    both = torch.tensor([[[0.6 * a / 0.4], [-0.6 * a / 0.4]]]).double()
    torch.testing.assert_close(spectral_scores(x, 1.0), both, rtol=1e-6, atol=0)
    torch.testing.assert_close(spectral_scores(x, 0.99), torch.zeros(1, 2, 1).double(), rtol=0, atol=1e-9)


def test_bandwidths_by_hand():
    x = torch.tensor([[[0.0, 5.0], [1.0, 5.0], [4.0, 5.0]]])
    # Nine distances, three of them 0: 0, 0, 0, 1, 1, 3, 3, 4, 4; and a dimension without any.
    torch.testing.assert_close(bandwidths(x), math.sqrt(2) * torch.tensor([[[1.0, 1.0]]]))


def error_and_cosine(dimension, samples):
    """Relative error of the scores, and their cosine with the true ones, over four correlated Gaussians."""
    streams = small.streams(4)
    root = torch.eye(dimension).double() + 0.3 * streams.normal(dimension, dimension) / dimension**0.5
    x = streams.normal(samples, dimension) @ root.mT
    true = -(x @ torch.linalg.inv(root @ root.mT))
    found = spectral_scores(x)
    error = ((found - true).square().sum((1, 2)) / true.square().sum((1, 2))).sqrt().mean()
    cosine = (found * true).sum((1, 2)) / found.flatten(1).norm(dim=1) / true.flatten(1).norm(dim=1)
    return error.item(), cosine.mean().item()


@pytest.mark.parametrize("dimension", [1, 2, 5, 10])
def test_errors_fall_with_the_number_of_samples(dimension):
    """From 40 to 640 draws errors fall by a tenth at least, to less than 2/3 of the score's length."""
    few, many = error_and_cosine(dimension, 40)[0], error_and_cosine(dimension, 640)[0]
    assert many < 0.9 * few and many < 0.67


@pytest.mark.parametrize("dimension", [20, 50])
def test_in_many_dimensions_the_direction_is_right_and_the_length_is_not(dimension):
    """The estimator's bias; a cosine of .6 among 50 dimensions is far from chance."""
    error, cosine = error_and_cosine(dimension, 100)
    assert error < 0.85 and cosine > 0.6


def test_the_gradient_is_that_of_the_kl_divergence():
    """Lines ``w . x + b`` at two inputs: both distributions are Gaussian, and the divergence has a closed form."""
    parts = {"network": {**small.TANH, "hidden": []}, "family": BROAD, "prior": GP, "context": BOX}
    model = small.model({**parts, "divergence": {"name": "spectral_kl", "noise": 0.3}})
    parameters = model.family.init(model.network, small.streams(1))
    parameters = {k: (v + 0.4 * ("mean" in k)).requires_grad_() for k, v in parameters.items()}
    data, x = small.training_data(1, 6), small.inputs(1, 2)
    step = small.step(model, parameters, data, small.streams(1), samples=1500)
    step.sample_context = lambda: x
    features = torch.cat([x[0], torch.ones(2, 1).double()], 1)
    means, log_vars = (model.network.flatten(each)[0] for each in model.family.gaussian_weights(parameters))
    ridge = 0.09 * torch.eye(2).double()
    q = MultivariateNormal(features @ means, features @ log_vars.exp().diag() @ features.T + ridge)
    mean, covariance = model.prior.moments(model.network, step.prior_parameters, x, "full")
    exact = kl_divergence(q, MultivariateNormal(mean[0, 0], covariance[0, 0] + ridge))
    wanted = torch.autograd.grad(exact, list(parameters.values()))
    found = torch.autograd.grad(model.divergence(step).sum(), list(parameters.values()))
    for name, one, other in zip(parameters, found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0.15, atol=0.1, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 30])
def test_bandwidths_are_by_the_median_over_all_pairs_to_the_last_bit(count):
    x = torch.randn(2, count, 6, dtype=torch.float64)
    x[:, : count // 3] = x[:, :1]
    pairs = (x[:, :, None] - x[:, None]).abs().flatten(1, 2).median(1).values
    expected = 6**0.5 * torch.where(pairs < 1e-6, pairs + 1, pairs)
    assert torch.equal(bandwidths(x), expected.unsqueeze(1))


class TestSpectralKLOfEachClass(TestSpectralKL):
    spec = {"name": "spectral_kl", "outputs": "independent", "draws": 7}
    outputs = 3


def classes(**spec):
    """A step with three outputs, its four context points, and the divergence of this spec."""
    parts = {"family": BROAD, "prior": GP, "context": BOX, "divergence": {"name": "spectral_kl", **spec}}
    model = small.model(parts, 3)
    parameters = model.family.init(model.network, small.streams(1))
    step = small.step(model, parameters, small.training_data(1, 6, 3), small.streams(1), samples=9)
    x = step.sample_context()
    step.sample_context = lambda: x
    return model, step, x


def test_scores_of_each_output_are_the_definition_at_its_own_values():
    model, step, x = classes(outputs="independent")
    f = step.functions(x).double().detach()
    found = model.divergence._scores(f)
    for output in range(3):
        torch.testing.assert_close(found[0, :, :, output], by_definition(f[0, :, :, output], 0.99))
    joint = classes()[0].divergence._scores(f)
    torch.testing.assert_close(joint[0].flatten(1), by_definition(f[0].flatten(1), 0.99))
    assert not torch.allclose(joint, found)


@pytest.mark.parametrize("draws", [None, 7])
def test_draws_are_those_of_the_likelihood_or_its_own(draws):
    model, step, _ = classes(draws=draws)
    counts, requested = [], []
    step.functions = counted(step.functions, counts)
    family = step.family

    class Watched(type(family)):
        def functions(self, network, parameters, samples, streams):
            requested.append(samples)
            return super().functions(network, parameters, samples, streams)

    step.family = Watched(**vars(family))
    assert torch.isfinite(model.divergence(step)).all()
    assert (requested, counts) == (([], [9]) if draws is None else ([7], []))


def counted(functions, counts):
    def call(x):
        f = functions(x)
        counts.append(f.shape[1])
        return f

    return call


def test_other_outputs_are_refused():
    with pytest.raises(ValueError, match="outputs 'each' is not known; known: independent, joint"):
        classes(outputs="each")


@pytest.mark.parametrize("jacobian", ["last_layer", "full"])
def test_features_of_the_prior_may_follow_the_family(jacobian):
    prior = {"name": "gaussian_weights", "jacobian": jacobian}
    parts = {"family": BROAD, "context": BOX, "divergence": {"name": "spectral_kl"}}
    values = []
    for features in ("current", "initial"):  # at the start both are the same
        model = small.model({**parts, "prior": {**prior, "features": features}}, 2)
        start = {k: v.double() for k, v in model.family.init(model.network, small.streams(R)).items()}
        values.append(model.divergence(small.step(model, start, small.training_data(R, 6, 2), small.streams(R))))
    assert torch.equal(*values)


@pytest.mark.parametrize(
    ("family", "network"),
    [
        ({"name": "ensemble", "base": {"name": "point"}, "size": 4, "joint": True}, small.TANH),
        ({"name": "hypernetwork"}, {**small.CNN, "norm": "batch"}),
    ],
)
def test_families_without_one_initial_network_are_refused_with_what_their_prior_needs(family, network):
    parts = {"family": family, "network": network, "context": BOX, "divergence": {"name": "spectral_kl"}}
    shape = small.SHAPES[network["name"]]
    model = small.model({**parts, "prior": {"name": "gaussian_weights", "jacobian": "full"}}, 2, shape)
    start = model.family.init(model.network, small.streams(R))
    with pytest.raises(NotSupported, match="features 'initial' need weights .* found none"):
        model.divergence(small.step(model, start, small.training_data(R, 6, 2, shape), small.streams(R)))
