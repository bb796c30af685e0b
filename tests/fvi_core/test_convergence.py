"""R-hat and effective sample sizes: arviz's numbers, and cases that can be computed by hand."""

import math

import numpy as np
import pytest
import torch

from fvi_core.convergence import _ess, _r_hat, bulk_ess, r_hat, tail_ess


def chains(count, draws, memory, seed, shift=0.0, digits=None):
    """Autoregressive chains; the first is shifted."""
    noise = np.random.RandomState(seed).randn(count, draws)
    x = noise.copy()
    for t in range(1, draws):
        x[:, t] = memory * x[:, t - 1] + noise[:, t]
    x[0] += shift
    return torch.tensor(x if digits is None else np.round(x, digits))


# Values of arviz 0.19: rhat, ess of method "bulk", ess of method "tail".
ARVIZ = {
    (4, 100, 0.5, 0): [1.03395357299, 103.648209601, 225.816929648],
    (4, 101, 0.9, 1, 1.0): [1.20606666683, 16.661387492, 65.0149273887],
    (3, 8, 0.0, 2): [0.99874879877, 33.1250698011, 33.1250698011],
    (2, 5, 0.0, 3): [1.33819455631, 7.22471989594, 7.22471989594],
    (2, 4, 0.2, 4): [0.952444752959, 7.22471989594, 7.22471989594],
    (10, 30, -0.5, 5): [1.04013201162, 743.136376416, 368.508268269],
    (4, 200, -0.8, 6): [1.00474252052, 2322.47198959, 507.239076195],
    (50, 20, 0.6, 7, 0.0, 1): [1.14000484633, 316.147681768, 738.424402019],
    (3, 6, 0.9, 8): [2.01509977782, 22.5949050919, 22.5949050919],
    (4, 9, -0.7, 9): [1.15498420709, 48.1647993062, 48.1647993062],
}


@pytest.mark.parametrize("case", ARVIZ)
def test_numbers_are_those_of_arviz(case):
    draws = chains(*case)
    found = [r_hat(draws), bulk_ess(draws), tail_ess(draws)]
    assert found == pytest.approx(ARVIZ[case], rel=1e-9)


def test_r_hat_by_hand():
    """Two chains of two draws: means 1 and 4, variances 2 and 2, so W = 2 and B / S = 4.5."""
    assert _r_hat(torch.tensor([[0.0, 2.0], [3.0, 5.0]]).double()) == pytest.approx(math.sqrt(1 / 2 + 4.5 / 2))


def test_effective_sample_size_by_hand():
    """One chain 1, -1, 1, -1, ...: neighbouring autocorrelations cancel, and the bound C S log10(C S) holds."""
    draws = torch.tensor([[1.0, -1.0] * 8]).double()
    assert _ess(draws) == pytest.approx(16 * math.log10(16))
    assert _ess(torch.ones(3, 5).double()) == 15


def test_r_hat_is_large_where_chains_disagree_or_stand_still():
    assert r_hat(chains(4, 50, 0.0, 1)) < 1.03
    assert r_hat(chains(4, 50, 0.0, 1, 3.0)) > 1.2
    still = torch.arange(3.0).unsqueeze(1).expand(3, 8)
    assert r_hat(still) == math.inf and r_hat(torch.ones(3, 8)) == 1
