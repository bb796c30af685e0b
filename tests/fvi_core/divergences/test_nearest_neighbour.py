"""Nearest-neighbour estimators against brute force and against Gaussians whose divergence and entropy are known."""

import math

import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence
from torch.special import digamma

import fvi_core as fvi
from fvi_core.divergences.nearest_neighbour import (
    image_kl,
    nearest_distance,
    nearest_neighbour_entropy,
    nearest_neighbour_kl,
    predictor_entropy,
)
from fvi_core.families.base import AffineImage, NotSupported
from tests.fvi_core import small
from tests.fvi_core.posteriors import QUICK, line, regressor


def points(n, d, replicas=2, name="q"):
    return small.streams(replicas, name=name).normal(n, d)


def kth(distances, k):
    """The k-th smallest of each row."""
    return distances.sort(-1).values[..., k - 1]


@pytest.mark.parametrize("k", [1, 2])
def test_distances_are_those_of_brute_force(k):
    q, p = points(9, 3), points(7, 3, name="p")
    own = torch.cdist(q, q) + torch.diag_embed(torch.full((2, 9), math.inf, dtype=torch.float64))
    torch.testing.assert_close(nearest_distance(q, None, k), kth(own, k))
    torch.testing.assert_close(nearest_distance(q, p, k), kth(torch.cdist(q, p), k))


@pytest.mark.parametrize("offset", [1e2, 1e3, 1e6])
def test_neighbours_far_from_zero_are_found_in_single_precision(offset):
    q, p = ((each + offset).float() for each in (points(200, 5), points(300, 5, name="p")))
    for others in (None, p):
        wide = None if others is None else others.double()
        torch.testing.assert_close(nearest_distance(q, others).double(), nearest_distance(q.double(), wide))


@pytest.mark.parametrize("k", [1, 2])
def test_kl_is_equation_4_and_entropy_equation_5(k):
    n, m, d = 9, 7, 3
    q, p = points(n, d), points(m, d, name="p")
    for r in range(2):
        logs, total = 0.0, 0.0
        for i in range(n):
            own = sorted(math.dist(q[r, i], q[r, j]) for j in range(n) if j != i)[k - 1]
            other = sorted(math.dist(q[r, i], p[r, j]) for j in range(m))[k - 1]
            total += math.log(other / own)
            logs += math.log(own)
        kl = math.log(m / (n - 1)) + d / n * total
        ball = math.pi ** (d / 2) / math.gamma(d / 2 + 1)
        entropy = math.log(n) - digamma(torch.tensor(k, dtype=torch.float64)).item() + math.log(ball) + d / n * logs
        torch.testing.assert_close(nearest_neighbour_kl(q, p, k)[r].item(), kl, rtol=1e-10, atol=0)
        torch.testing.assert_close(nearest_neighbour_entropy(q, k)[r].item(), entropy, rtol=1e-6, atol=1e-6)
        scaled = nearest_neighbour_entropy(q / d**0.5, k)
        torch.testing.assert_close(predictor_entropy(q, k)[r], scaled[r], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_estimates_of_gaussians_are_near_the_truth(d, k):
    """The mean of 20 estimates from 400 points each; one estimate has a standard deviation of about 0.1."""
    root = torch.eye(d, dtype=torch.float64) * 0.5 + 0.1
    shift = torch.full((d,), 0.3, dtype=torch.float64)
    q = points(400, d, 20) @ root.T + shift
    p = points(500, d, 20, "p")
    exact_q = MultivariateNormal(shift, root @ root.T)
    exact_p = MultivariateNormal(torch.zeros(d, dtype=torch.float64), torch.eye(d, dtype=torch.float64))
    assert abs(nearest_neighbour_entropy(q, k).mean() - exact_q.entropy()) < 0.05
    assert abs(nearest_neighbour_kl(q, p, k).mean() - kl_divergence(exact_q, exact_p)) < 0.05
    assert abs(nearest_neighbour_kl(points(400, d, 20, "same"), p, k).mean()) < 0.05


def test_entropy_of_a_scaled_sample_grows_by_d_times_the_log_of_the_scale():
    q = points(50, 3)
    torch.testing.assert_close(nearest_neighbour_entropy(5 * q), nearest_neighbour_entropy(q) + 3 * math.log(5))
    torch.testing.assert_close(nearest_neighbour_kl(5 * q + 1, 5 * q.flip(0) + 1), nearest_neighbour_kl(q, q.flip(0)))


@pytest.mark.parametrize("k", [1, 2])
def test_neighbours_in_the_coordinates_are_neighbours_in_the_image(k):
    make = small.streams(2, name="image")
    leaves = [make.normal(8, 3).requires_grad_(), make.normal(3, 6).requires_grad_(), make.normal(6).requires_grad_()]
    image, p = AffineImage(*leaves), points(7, 6, name="p")
    actual, expected = image_kl(image, p, k), nearest_neighbour_kl(image.points(), p, k)
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)
    gradients = [torch.autograd.grad(kl.sum(), leaves) for kl in (actual, expected)]
    for a, e in zip(*gradients, strict=True):
        torch.testing.assert_close(a, e, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("space", ["parameter", "predictor"])
@pytest.mark.parametrize("draws", [1, 2])
def test_as_few_draws_as_neighbours_are_refused(space, draws):
    kl = {"name": "nearest_neighbour_kl", "space": space, "samples": draws, "k": draws}
    context = {"context": {"name": "training_batch"}} if space == "predictor" else {}
    with pytest.raises(NotSupported, match=f"needs more than {draws} draws, family 'hypernetwork' gives {draws}"):
        fvi.fit(regressor(), line(), "NN-HyVI", divergence=kl, **context, **QUICK)


@pytest.mark.parametrize("k", [1, 2])
def test_gradients_are_right(k):
    q, p = points(5, 2).requires_grad_(), points(4, 2, name="p").requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: nearest_neighbour_kl(a, b, k), (q, p))
    assert torch.autograd.gradcheck(lambda a: predictor_entropy(a, k), (q,))


def test_equal_points_give_finite_numbers():
    q = points(6, 2)
    q[:, 1] = q[:, 0]
    q.requires_grad_()
    kl = nearest_neighbour_kl(q, points(5, 2, name="p"))
    assert torch.isfinite(kl).all() and torch.isfinite(torch.autograd.grad(kl.sum(), q)[0]).all()
    assert torch.isfinite(nearest_neighbour_kl(q, q.detach())).all()


def test_replicas_together_are_bitwise_the_same_as_alone():
    q, p = points(9, 3, 3), points(7, 3, 3, "p")
    for r in range(3):
        assert torch.equal(nearest_neighbour_kl(q, p)[r], nearest_neighbour_kl(q[r], p[r]))
        assert torch.equal(nearest_neighbour_entropy(q, 2)[r], nearest_neighbour_entropy(q[r], 2))
