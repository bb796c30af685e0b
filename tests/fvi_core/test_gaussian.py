import itertools

import pytest
import torch
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence

from fvi_core.gaussian import (
    gaussian_kl_diagonal,
    gaussian_kl_full,
    gaussian_kl_weights,
    regularised_gaussian_kl,
    sum_of_squares,
)


def gaussians(*shape, size=6, seed=0):
    """Means [*shape, size] and well-conditioned covariances [*shape, size, size], in float64."""
    generator = torch.Generator().manual_seed(seed)
    root = torch.randn(*shape, size, size, generator=generator, dtype=torch.float64)
    mean = torch.randn(*shape, size, generator=generator, dtype=torch.float64)
    return mean, root @ root.mT + 0.5 * torch.eye(size, dtype=torch.float64)


@pytest.mark.parametrize("prior_shape", [(3, 4), (3, 1), (1, 1), ()])
def test_full_kl_is_that_of_torch_distributions(prior_shape):
    mean_q, cov_q = gaussians(3, 4)
    mean_p, cov_p = gaussians(*prior_shape, seed=1)
    p = MultivariateNormal(mean_p.expand(3, 4, 6), cov_p.expand(3, 4, 6, 6))
    expected = kl_divergence(MultivariateNormal(mean_q, cov_q), p)
    actual = gaussian_kl_full(mean_q, cov_q, mean_p, cov_p)
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


def test_full_kl_of_a_posterior_covariance_shared_by_outputs():
    mean_q, cov_q = gaussians(2, 3)
    mean_p, cov_p = gaussians(2, 3, seed=1)
    shared = gaussian_kl_full(mean_q, cov_q[:, :1], mean_p, cov_p)
    torch.testing.assert_close(shared, gaussian_kl_full(mean_q, cov_q[:, :1].expand_as(cov_q), mean_p, cov_p))


def test_diagonal_kl_is_that_of_torch_distributions():
    generator = torch.Generator().manual_seed(0)
    mean_q, mean_p, log_q, log_p = torch.randn(4, 3, 5, 7, dtype=torch.float64, generator=generator)
    q, p = (Independent(Normal(m, (0.5 * v).exp()), 1) for m, v in ((mean_q, log_q), (mean_p, log_p)))
    actual = gaussian_kl_diagonal(mean_q, log_q.exp(), mean_p, log_p.exp())
    torch.testing.assert_close(actual, kl_divergence(q, p), rtol=1e-10, atol=1e-10)


def test_diagonal_kl_is_the_full_one_of_diagonal_covariances():
    mean_q, cov_q = gaussians(2)
    mean_p, cov_p = gaussians(2, seed=1)
    var_q, var_p = cov_q.diagonal(dim1=-2, dim2=-1), cov_p.diagonal(dim1=-2, dim2=-1)
    full = gaussian_kl_full(mean_q, torch.diag_embed(var_q), mean_p, torch.diag_embed(var_p))
    actual = gaussian_kl_diagonal(mean_q, var_q, mean_p, var_p)
    torch.testing.assert_close(actual, full, rtol=1e-10, atol=1e-10)


def test_a_distribution_has_no_divergence_from_itself():
    mean, cov = gaussians(3)
    assert gaussian_kl_full(mean, cov, mean, cov).abs().max() < 1e-12
    assert regularised_gaussian_kl(mean, cov, mean, cov, 1e-3).abs().max() < 1e-12
    var = cov.diagonal(dim1=-2, dim2=-1)
    assert gaussian_kl_diagonal(mean, var, mean, var).abs().max() == 0


def test_full_kl_gradients_are_right():
    mean_q, cov_q = gaussians(2, 2, size=3)
    mean_p, cov_p = gaussians(2, 1, size=3, seed=1)

    def kl(mean_q, root_q, mean_p, root_p):
        return gaussian_kl_full(mean_q, root_q @ root_q.mT, mean_p, root_p @ root_p.mT, jitter=1.0)

    inputs = [t.clone().requires_grad_() for t in (mean_q, cov_q, mean_p, cov_p)]
    assert torch.autograd.gradcheck(kl, inputs)


@pytest.mark.parametrize("prior_shape", [(2, 2), (2, 1), (1, 1), ()])
@pytest.mark.parametrize("shared", [False, True])
def test_the_regularised_kl_has_value_and_gradients_of_the_ordinary_one(prior_shape, shared):
    (mean_q, cov_q), (mean_p, cov_p) = gaussians(2, 2, size=4), gaussians(*prior_shape, size=4, seed=1)
    inputs = [t.clone().requires_grad_() for t in (mean_q, cov_q[:, :1] if shared else cov_q, mean_p, cov_p)]
    values = [gaussian_kl_full(*inputs, jitter=0.25 * 4), regularised_gaussian_kl(*inputs, gamma=0.25)]
    assert torch.equal(*values)
    weights = torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=torch.float64)
    expected, actual = (torch.autograd.grad((weights * value).sum(), inputs) for value in values)
    for one, other in zip(actual, expected, strict=True):
        symmetric = (other + other.mT) / 2 if one.shape[-2:] == (4, 4) else other  # factors read one half
        torch.testing.assert_close(one, symmetric, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("divergence", [gaussian_kl_full, lambda *moments: regularised_gaussian_kl(*moments, 1e-9)])
def test_a_singular_element_is_nan_in_value_and_gradient_and_leaves_the_others_alone(divergence):
    mean, cov = gaussians(3)
    cov_p = cov.clone()
    cov_p[1] = -cov_p[1]
    cov_q = cov.clone().requires_grad_()
    kl = divergence(mean, cov_q, mean + 1, cov_p)
    kl.sum().backward()
    assert kl.isnan().tolist() == [False, True, False]
    assert cov_q.grad.isfinite().all((-2, -1)).tolist() == [True, False, True]


def test_float32_input_is_worked_in_float64_and_comes_back_as_float32():
    mean, cov = gaussians(2)
    mean_p, cov_p = gaussians(2, seed=1)
    single = gaussian_kl_full(mean.float(), cov.float(), mean_p.float(), cov_p.float())
    assert single.dtype == torch.float32
    exact = gaussian_kl_full(mean, cov, mean_p, cov_p)
    torch.testing.assert_close(single.double(), exact, rtol=1e-5, atol=1e-5)


def rbf(x, lengthscale):
    return (-0.5 * (x[:, None] - x[None]).square() / lengthscale**2).exp()


def test_regularised_kl_is_finite_for_rank_deficient_covariances():
    feature = torch.linspace(-1, 1, 40, dtype=torch.float64)[:, None]
    zero = torch.zeros(40, dtype=torch.float64)
    assert gaussian_kl_full(zero, feature @ feature.T, zero, 2 * feature @ feature.T).isnan()
    assert regularised_gaussian_kl(zero, feature @ feature.T, zero, 2 * feature @ feature.T, 1e-8).isfinite()


def test_regularised_kl_of_float32_covariances_is_worked_out_in_float64():
    x = torch.linspace(-1, 1, 100)
    kl = regularised_gaussian_kl(x, rbf(x, 0.5), torch.zeros(100), rbf(x, 0.4), 1e-7)
    cov_q, cov_p = rbf(x, 0.5).double(), rbf(x, 0.4).double()
    exact = regularised_gaussian_kl(x.double(), cov_q, torch.zeros(100), cov_p, 1e-7)
    torch.testing.assert_close(kl.double(), exact, rtol=1e-6, atol=0)


def test_regularised_kl_of_two_processes_converges_in_the_number_of_points():
    def estimate(n):
        x = (torch.arange(n, dtype=torch.float64) + 0.5) / n
        return regularised_gaussian_kl(x.sin(), rbf(x, 0.5), torch.zeros_like(x), rbf(x, 0.3), 1e-3)

    values = [estimate(n) for n in (50, 100, 200, 400)]
    steps = [abs(b - a) for a, b in itertools.pairwise(values)]
    assert steps[2] < steps[1] < steps[0]
    assert steps[2] < 1e-4 * values[-1]


def test_regularised_kl_of_gamma_zero_is_the_ordinary_one():
    q, p = gaussians(2), gaussians(2, seed=1)
    ordinary = gaussian_kl_full(*q, *p)
    errors = [(regularised_gaussian_kl(*q, *p, gamma) - ordinary).abs().max() for gamma in (1e-3, 1e-6, 1e-9)]
    assert errors[0] > 1e-4 and errors[1] < 1e-2 * errors[0] and errors[2] < 1e-2 * errors[1]


def test_regularised_kl_adds_gamma_times_the_number_of_points():
    (mean_q, cov_q), (mean_p, cov_p) = gaussians(2), gaussians(2, seed=1)
    extra = 0.1 * 6 * torch.eye(6, dtype=torch.float64)
    q, p = MultivariateNormal(mean_q, cov_q + extra), MultivariateNormal(mean_p, cov_p + extra)
    expected = kl_divergence(q, p)
    torch.testing.assert_close(regularised_gaussian_kl(mean_q, cov_q, mean_p, cov_p, 0.1), expected)


@pytest.mark.parametrize("per_name", [False, True])
def test_weights_kl_sums_over_all_tensors_of_a_replica(per_name):
    generator = torch.Generator().manual_seed(0)
    shapes = {"weight": (3, 4, 2), "scale": (3,)}
    mean = {k: torch.randn(s, generator=generator, dtype=torch.float64) for k, s in shapes.items()}
    log_var = {k: torch.randn(s, generator=generator, dtype=torch.float64) for k, s in shapes.items()}
    prior_mean = {"weight": 0.3, "scale": -1.0} if per_name else 0.3
    prior_var = {"weight": 0.5, "scale": 2.0} if per_name else 0.5
    expected = torch.zeros(3, dtype=torch.float64)
    for name in shapes:
        centre, var = (prior_mean[name], prior_var[name]) if per_name else (prior_mean, prior_var)
        prior = Normal(torch.full_like(mean[name], centre), var**0.5)
        posterior = Normal(mean[name], (0.5 * log_var[name]).exp())
        expected += kl_divergence(posterior, prior).reshape(3, -1).sum(1)
    actual = gaussian_kl_weights(mean, log_var, prior_mean, prior_var)
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


def test_kl_of_points_is_zero_for_every_replica():
    assert torch.equal(gaussian_kl_weights({"w": torch.ones(3, 2)}, {}), torch.zeros(3))


@pytest.mark.parametrize("outputs", [(), (3,)])
@pytest.mark.parametrize("shared", [False, True])
def test_replicas_together_are_bitwise_the_same_as_alone(outputs, shared):
    mean_q, cov_q = gaussians(4, *outputs, size=50)
    mean_p, cov_p = gaussians(1 if shared else 4, *[1 for _ in outputs], size=50, seed=1)
    together = gaussian_kl_full(mean_q, cov_q, mean_p, cov_p)
    for r in range(4):
        one, prior = slice(r, r + 1), slice(0, 1) if shared else slice(r, r + 1)
        alone = gaussian_kl_full(mean_q[one], cov_q[one], mean_p[prior], cov_p[prior])
        assert torch.equal(together[one], alone)


def gradients_of(function, *tensors):
    """Values of the function, one for each replica, and its gradients, weighted differently for each replica."""
    tensors = [tensor.clone().requires_grad_() for tensor in tensors]
    values = function(*tensors)
    weights = torch.arange(1, 1 + len(values)) / 3
    return values, torch.autograd.grad((weights * values).sum(), tensors)


@pytest.mark.parametrize("replicas", [1, 3])
def test_sums_of_weights_have_the_bits_of_autograd(replicas):
    generator = torch.Generator().manual_seed(replicas)
    tensors = [torch.randn(replicas, *shape, generator=generator) for shape in ((13, 5), (5,), (1,)) * 2]

    def squares(*tensors):
        return sum(tensor.square().flatten(1).sum(1) for tensor in tensors)

    def kl(prior_var, *tensors):
        named = [dict(enumerate(each)) for each in (tensors[:3], tensors[3:])]
        return gaussian_kl_weights(*named, 0.4, prior_var)

    def each(*tensors):  # one prior for every tensor: the path that autograd differentiates
        return kl(dict.fromkeys(range(3), 0.7), *tensors)

    for ours, plain in (
        (lambda *tensors: sum_of_squares(tensors), squares),
        (lambda *tensors: kl(0.7, *tensors), each),
    ):
        (value, found), (expected, slopes) = gradients_of(ours, *tensors), gradients_of(plain, *tensors)
        assert torch.equal(value, expected)
        assert all(torch.equal(a, b) for a, b in zip(found, slopes, strict=True))
