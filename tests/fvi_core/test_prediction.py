"""Predictions of a posterior against moments of its draws and torch's distributions."""

import pytest
import torch

import fvi_core as fvi
from tests.fvi_core.posteriors import QUICK, line, regressor


@pytest.mark.parametrize("method", ["GP", "VIP", "Laplace"])
def test_moments_in_closed_form_are_in_the_units_of_the_targets(method):
    x, y = line()
    posterior = fvi.fit(regressor(), (x, y), method, **QUICK)
    found = posterior.predict(x, samples=2000)
    mean, variance = found.values.mean(0), found.values.var(0)
    assert ((mean - found.mean).abs() < 5 * (variance / 2000).sqrt() + 1e-3).all()
    assert ((variance.sqrt() / found.std).log().abs() < 5 * (1 / 4000) ** 0.5 + 0.01).all()
    normal = torch.distributions.Normal(found.mean[:, 0], (found.std[:, 0].square() + found.noise_std**2).sqrt())
    assert posterior.score(x, y)["nll"] == pytest.approx(-float(normal.log_prob(y).mean()), rel=1e-4)


@pytest.mark.parametrize("method", ["Rank1", "Rank1 Ensemble"])
def test_with_fewer_samples_than_members_every_member_gives_a_function_at_all_inputs(method):
    x, y = line()
    posterior = fvi.fit(regressor(), (x, y), method, **QUICK)
    whole = posterior.predict(x, samples=2).values
    batches = torch.cat([posterior.predict(batch, samples=2).values for batch in x.split(7)], 1)
    torch.testing.assert_close(batches, whole)
    drawn = torch.stack([module(x).detach() for module in posterior.modules(2)])
    torch.testing.assert_close(drawn, whole)
