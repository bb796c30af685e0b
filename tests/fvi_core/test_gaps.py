"""The median gap of samples against all pairs in order, by both ways."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fvi_core.divergences import spectral


@pytest.fixture(params=["numba", "tensors"])
def way(request, monkeypatch):
    if request.param == "tensors":
        monkeypatch.setattr(spectral, "numba", None)
    elif spectral.numba is None:
        pytest.skip("numba is not installed")


def of_all_pairs(x: torch.Tensor) -> np.ndarray:
    """The lower median, from a list of all S^2 distances."""
    values = x.numpy()
    distances = np.abs(values[:, :, None] - values[:, None]).reshape(len(x), -1, x.shape[2])
    return np.sort(distances, axis=1)[:, (x.shape[1] ** 2 - 1) // 2]


CHANGES = {
    "normal": lambda x: x,
    "few values": lambda x: x.round(),
    "all equal": lambda x: 0 * x + 3,
    "one apart": lambda x: torch.cat([0 * x[:, 1:], x[:, :1]], 1),
    "two heaps": lambda x: x * 1e-12 + (torch.arange(x.shape[1]) % 2)[:, None],
    "close and far off": lambda x: x * 1e-9 + 1e6,
    "far apart": lambda x: x * 1e300,
}


@pytest.mark.parametrize("samples", [1, 2, 3, 4, 5, 20, 101])
@pytest.mark.parametrize("change", CHANGES)
def test_it_is_that_of_all_pairs_to_the_last_bit(way, change, samples):
    x = torch.randn(2, samples, 7, generator=torch.Generator().manual_seed(samples), dtype=torch.float64)
    x = CHANGES[change](x)
    np.testing.assert_array_equal(spectral.median_gaps(x).numpy(), of_all_pairs(x))
    if change == "normal":
        np.testing.assert_array_equal(spectral.median_gaps(x.float()).numpy(), of_all_pairs(x.float()))


@pytest.mark.parametrize("spoilt", [torch.nan, torch.inf, -torch.inf])
def test_samples_that_are_no_numbers_spoil_their_own_dimension_alone(way, spoilt):
    x = torch.randn(2, 20, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    whole = spectral.median_gaps(x)
    x[1, 4, 2] = spoilt
    found = spectral.median_gaps(x)
    assert found[1, 2].isnan()
    found[1, 2] = whole[1, 2]
    assert torch.equal(found, whole)
