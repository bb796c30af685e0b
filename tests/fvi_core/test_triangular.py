import pytest
import torch

from fvi_core.triangular import cholesky, first_cause, log_determinant, lower_triangle, solve_lower, watched
from tests.fvi_core.test_gaussian import gaussians

DOUBLE = {"dtype": torch.float64}


@pytest.mark.parametrize("factor_shape", [(2, 3), (2, 1), (1, 1), ()])
def test_solve_lower_of_shared_factors(factor_shape):
    factor = cholesky(gaussians(*factor_shape)[1])
    right = torch.randn(2, 3, 6, 4, **DOUBLE, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(factor @ solve_lower(factor, right), right)


def test_the_determinant_is_that_of_the_matrix():
    covariance = gaussians(2, 3)[1]
    torch.testing.assert_close(log_determinant(cholesky(covariance)), torch.linalg.slogdet(covariance)[1])


def test_a_triangle_of_free_numbers_has_a_positive_diagonal():
    raw = torch.tensor([[0.0, 7.0], [3.0, 1.0]], **DOUBLE)
    torch.testing.assert_close(lower_triangle(raw), torch.tensor([[1.0, 0.0], [3.0, torch.e]], **DOUBLE))


@pytest.mark.parametrize("jitter", [0.25, torch.diag_embed(torch.tensor([[0.25, 0.5], [1.0, 2.0]], **DOUBLE))])
def test_jitter_is_added_to_the_diagonal_and_its_gradient_is_right(jitter):
    covariance = torch.tensor([[2.0, 1.0], [1.0, 3.0]], **DOUBLE).expand(2, 2, 2)
    added = jitter if isinstance(jitter, torch.Tensor) else jitter * torch.eye(2, **DOUBLE)
    factor = cholesky(covariance, jitter)
    torch.testing.assert_close(factor @ factor.mT, covariance + added)
    if isinstance(jitter, torch.Tensor):
        variances = jitter.diagonal(dim1=-2, dim2=-1).clone().requires_grad_()
        assert torch.autograd.gradcheck(lambda v: cholesky(covariance, torch.diag_embed(v)), variances)


def causes(tried, replicas):
    return [first_cause(tried, r) for r in range(replicas)]


def test_each_replica_has_the_reason_why_its_matrix_has_no_factor():
    good, singular, spoilt = (
        torch.eye(2, **DOUBLE),
        torch.full((2, 2), 4e6, **DOUBLE),
        torch.eye(2, **DOUBLE) * torch.nan,
    )
    negative = torch.tensor([[1.0, 2.0], [2.0, 1.0]], **DOUBLE)
    singular[1, 1] -= 1e-9  # as rounding leaves it
    with watched() as tried:
        cholesky(torch.stack([good, singular, spoilt, negative]), 1e-12, "the matrix", "try another")
    assert causes(tried, 4) == [
        "",
        "the matrix, 2 x 2 with variances up to 4e+06, is not positive definite with 1e-12 added to its diagonal, "
        "while rounding its entries makes errors of up to 2e-09; try another",
        "the matrix, 2 x 2, is not finite",
        "the matrix, 2 x 2 with variances up to 1, is not positive definite with 1e-12 added to its diagonal; "
        "try another",
    ]


def test_jitter_of_each_point_is_named_by_the_least():
    flat, noise = torch.ones(2, 2, 2, **DOUBLE), torch.tensor([[0.5, 0.25], [0.0, 1e-30]], **DOUBLE)
    with watched() as tried:
        cholesky(flat, torch.diag_embed(noise))
    first, second = causes(tried, 2)
    assert not first and "with 0 added to its diagonal" in second


def test_the_first_of_several_failures_is_the_cause():
    bad = -torch.eye(3, **DOUBLE).expand(2, 1, 3, 3)
    with watched() as tried:
        cholesky(-bad, of="a good one")
        cholesky(torch.cat([bad[:1], -bad[1:]]), of="the first replica's")
        cholesky(bad[:1], of="one for all")
        cholesky(torch.stack([-bad[0], bad[0]]), of="too late")
    assert [each.split(",")[0] for each in causes(tried, 2)] == ["the first replica's", "one for all"]


def test_only_what_is_factored_while_watching_is_seen():
    cholesky(-torch.eye(2))
    with watched() as outer:
        with watched() as inner:
            cholesky(torch.eye(2)[None])
        cholesky(torch.eye(3)[None])
    cholesky(torch.eye(4)[None])
    assert [len(each.matrix[0]) for each in (*inner, *outer)] == [2, 3]
