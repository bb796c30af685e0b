"""Batch normalisation whose gradients are differentiated again: against torch's own, and finite differences."""

import pytest
import torch
import torch.nn.functional as F

from fvi_core.networks.normalisation import batch_norm
from tests.fvi_core import small

SHAPE = (3, 4, 2, 3)


def operands(dtype=torch.float64):
    streams = small.streams(1, torch.float64)
    x, scale, shift = (streams.normal(*shape)[0] for shape in (SHAPE, SHAPE[1:2], SHAPE[1:2]))
    return [each.to(dtype).requires_grad_() for each in (2 * x + 1, scale, shift)]


def normalised(function, x, scale, shift):
    mean, var = (torch.zeros(SHAPE[1], dtype=scale.dtype) for _ in range(2))
    return function(x, mean, var, scale, shift, True, 1.0, 1e-2), mean, var


def penalised(function, of):
    """Derivatives of a function of the first derivatives in the operands numbered, and of the values."""
    given = operands()
    z, *_ = normalised(function, *given)
    slopes = torch.autograd.grad(z.pow(3).sum(), [given[i] for i in of], create_graph=True)
    value = sum((slope.norm() - 1).square() for slope in slopes) + z.square().sum()
    return torch.autograd.grad(value, given)


def test_values_statistics_and_first_derivatives_are_those_of_torch():
    for dtype in (torch.float64, torch.float32):
        found = [normalised(function, *operands(dtype)) for function in (batch_norm, F.batch_norm)]
        for one, other in zip(*found, strict=True):
            assert torch.equal(one, other)
        slopes = [
            torch.autograd.grad(normalised(function, *given)[0].pow(3).sum(), given)
            for function in (batch_norm, F.batch_norm)
            for given in [operands(dtype)]
        ]
        assert all(torch.equal(one, other) for one, other in zip(*slopes, strict=True))


@pytest.mark.parametrize("of", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
def test_derivatives_of_derivatives_are_those_of_torch(of):
    for one, other in zip(penalised(batch_norm, of), penalised(F.batch_norm, of), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_derivatives_of_derivatives_are_those_of_finite_differences():
    assert torch.autograd.gradgradcheck(lambda *given: normalised(batch_norm, *given)[0], operands())


def test_in_bfloat16_they_are_close():
    x, scale, shift = operands(torch.float32)
    found = []
    for function in (batch_norm, F.batch_norm):
        images = x.detach().bfloat16().requires_grad_()
        z, *_ = normalised(function, images, scale, shift)
        (slope,) = torch.autograd.grad(z.float().pow(3).sum(), images, create_graph=True)
        found.append(torch.autograd.grad(slope.float().square().sum(), (images, scale)))
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one.float(), other.float(), rtol=0.05, atol=0.05 * float(other.abs().max()))
