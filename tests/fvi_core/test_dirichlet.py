from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from torch.distributions import Dirichlet, kl_divergence

from fvi_core.divergences.dirichlet import (
    DirichletKL,
    dirichlet_kl_monte_carlo,
    dirichlet_log_density,
    fit_dirichlet,
    minka_precision,
)
from fvi_core.families.base import NotSupported
from fvi_core.metrics.probabilities import smooth


def draws(concentrations, n_samples, seed=0):
    """Samples [S, N, K] of Dirichlets with concentrations [N, K]."""
    generator = np.random.default_rng(seed)
    return torch.tensor(np.stack([generator.dirichlet(row, n_samples) for row in concentrations], axis=1))


CONCENTRATIONS = np.array([[0.3, 0.4, 0.2], [1, 1, 1], [5, 0.5, 2], [40, 60, 20], [900, 50, 50]])


def likelihood_optimum(samples):
    """The precision of highest Dirichlet likelihood at the sample mean, by a bounded search in log z."""
    mean, mean_log = samples.mean(0), np.log(samples).mean(0)

    def negative(log_z):
        z = np.exp(log_z)
        return -(gammaln(z) - gammaln(z * mean).sum() + (z * mean - 1) @ mean_log)

    return np.exp(minimize_scalar(negative, bounds=(-8, 16), method="bounded", options={"xatol": 1e-9}).x)


@pytest.mark.parametrize("n_samples", [2, 10, 200])
def test_precision_is_the_likelihood_optimum(n_samples):
    samples = smooth(draws(CONCENTRATIONS, n_samples))
    expected = [likelihood_optimum(samples[:, n].numpy()) for n in range(len(CONCENTRATIONS))]
    actual = minka_precision(samples, 1e-3, 1e6)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4)


def test_precision_converges_in_few_iterations():
    samples = smooth(draws(CONCENTRATIONS, 10))
    early, late = (minka_precision(samples, 1e-3, 1e6, max_iterations=i) for i in (8, 100))
    torch.testing.assert_close(early, late, rtol=1e-5, atol=0)


def test_the_start_is_the_stirling_approximation_itself():
    # At high precision Stirling's formula is nearly exact, so the start alone must be near the optimum.
    samples = draws(CONCENTRATIONS[3:], 200)
    start, optimum = (minka_precision(samples, 1e-3, 1e6, max_iterations=i) for i in (0, 50))
    torch.testing.assert_close(start, optimum, rtol=0.03, atol=0)


def test_precision_stays_within_its_bounds():
    samples = smooth(draws(CONCENTRATIONS, 50))
    z = minka_precision(samples, 3, 100)
    assert z[0] == 3 and z[-1] == 100 and 3 < z[2] < 100


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_of_hard_samples_is_finite(dtype):
    identical = torch.tensor([[0.2, 0.3, 0.5]]).repeat(5, 1)
    one_hot = torch.eye(3)[[0, 1, 2, 0, 1]]
    certain = torch.eye(3)[[1] * 5]
    samples = torch.stack([identical, one_hot, certain, smooth(one_hot), smooth(certain)], dim=1).to(dtype)
    z = minka_precision(samples, 3, 60000)
    assert z.dtype == dtype
    assert z[[0, 2, 4]].tolist() == [60000] * 3 and z[[1, 3]].tolist() == [3] * 2


def test_one_sample_gets_the_largest_precision():
    samples = smooth(draws(CONCENTRATIONS, 1)).expand(2, 1, 5, 3)
    assert torch.equal(minka_precision(samples, 3, 100), torch.full((2, 5), 100.0).double())


def test_points_and_replicas_do_not_depend_on_their_neighbours():
    samples = torch.stack([smooth(draws(CONCENTRATIONS, 7, seed)) for seed in range(3)])
    together = fit_dirichlet(samples, 1e-3, 1e6)
    for r in range(3):
        assert torch.equal(together[r], fit_dirichlet(samples[r], 1e-3, 1e6))
        assert torch.equal(together[r, 2:3], fit_dirichlet(samples[r, :, 2:3], 1e-3, 1e6))


def test_fit_recovers_the_distribution_of_its_samples_and_carries_no_gradient():
    samples = draws(CONCENTRATIONS, 20000).requires_grad_()
    alpha = fit_dirichlet(samples, 1e-3, 1e6)
    assert not alpha.requires_grad
    torch.testing.assert_close(alpha, torch.tensor(CONCENTRATIONS), rtol=0.03, atol=0)


def test_smoothing_mixes_with_the_uniform_distribution():
    smoothed = smooth(torch.tensor([0.0, 1.0, 0.0, 0.0]), 0.1)
    torch.testing.assert_close(smoothed, torch.tensor([0.025, 0.925, 0.025, 0.025]))


ALPHA_Q = torch.tensor([[2.0, 3.0, 4.0], [0.7, 1.0, 30.0]], dtype=torch.float64)
ALPHA_P = torch.tensor([[1.0, 1.0, 1.0], [2.0, 0.5, 9.0]], dtype=torch.float64)


def test_log_density_is_that_of_torch_distributions():
    samples = draws(ALPHA_Q.numpy(), 4)
    expected = Dirichlet(ALPHA_Q).log_prob(samples)
    torch.testing.assert_close(dirichlet_log_density(samples, ALPHA_Q), expected, rtol=1e-10, atol=1e-10)


def test_monte_carlo_kl_tends_to_the_closed_form():
    samples = draws(ALPHA_Q.numpy(), 200_000)
    actual = dirichlet_kl_monte_carlo(samples, ALPHA_Q, ALPHA_P)
    expected = kl_divergence(Dirichlet(ALPHA_Q), Dirichlet(ALPHA_P))
    torch.testing.assert_close(actual, expected, rtol=0.01, atol=0)


def test_monte_carlo_kl_is_the_mean_of_log_ratios_with_a_broadcast_prior():
    samples = torch.stack([draws(ALPHA_Q.numpy(), 4, seed) for seed in range(3)])
    prior = torch.ones(3, dtype=torch.float64)
    expected = (Dirichlet(ALPHA_Q).log_prob(samples) - Dirichlet(prior).log_prob(samples)).mean(1)
    torch.testing.assert_close(dirichlet_kl_monte_carlo(samples, ALPHA_Q, prior), expected)


def test_monte_carlo_kl_has_gradients_for_the_samples_alone():
    samples = draws(ALPHA_Q.numpy(), 5).requires_grad_()
    alpha = ALPHA_Q.clone().requires_grad_()
    dirichlet_kl_monte_carlo(samples, alpha, ALPHA_P).sum().backward()
    assert alpha.grad is None
    torch.testing.assert_close(samples.grad, (ALPHA_Q - ALPHA_P) / samples.detach() / 5)


def test_monte_carlo_kl_of_float32_samples_keeps_its_digits_at_high_precision():
    alpha = torch.tensor([[20000.0, 20000.0, 10000.0]])
    samples = draws(alpha.numpy(), 10).float()
    exact = dirichlet_kl_monte_carlo(samples.double(), alpha.double(), torch.ones(3).double())
    single = dirichlet_kl_monte_carlo(samples, alpha, torch.ones(3))
    torch.testing.assert_close(single.double(), exact, rtol=1e-6, atol=0)


def test_a_family_that_is_trained_in_closed_form_does_not_fit():
    step = SimpleNamespace(x=None, sample_context=lambda: torch.zeros(1, 2, 1), functions=None, values=None)
    with pytest.raises(NotSupported, match="needs a draw of functions"):
        DirichletKL()(step)
