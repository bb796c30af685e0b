"""Scales and their unconstrained parameters, against torch's softplus."""

import pytest
import torch

from fvi_core.scales import inverse_softplus, inverse_softplus_of, softplus


def test_softplus_is_torchs():
    rho = torch.linspace(-30, 30, 61, dtype=torch.float64)
    torch.testing.assert_close(softplus(rho), torch.nn.functional.softplus(rho, threshold=100), rtol=1e-12, atol=0)


@pytest.mark.parametrize("std", [1e-8, 1e-3, 0.5, 1.0, 30.0, 1e4])
def test_the_inverse_gives_the_standard_deviation_back(std):
    exact = torch.nn.functional.softplus(torch.tensor(inverse_softplus(std), dtype=torch.float64), threshold=100)
    assert float(exact) == pytest.approx(std, rel=1e-7)
    of = inverse_softplus_of(torch.tensor([std], dtype=torch.float64))
    assert float(of) == pytest.approx(inverse_softplus(std), rel=1e-12)
