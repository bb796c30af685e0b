"""A Gaussian last layer above dropout: the contract, closed-form moments, and the divergence of one draw of masks."""

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from fvi_core.families.base import NotSupported
from fvi_core.registry import FAMILIES
from tests.fvi_core import small
from tests.fvi_core.contracts import FamilyContract, N, R

WIDE = {"name": "gaussian_head", "rate": 0.4, "log_var_init": [-3.0, -1.0]}
STILL = {**WIDE, "rate": 0.0}
KL = {"name": "gaussian_kl", "covariance": "diagonal", "jitter": 0.0}
PRIOR = {"name": "gaussian_functions", "variance": 10.0}


class TestGaussianHead(FamilyContract):
    spec = WIDE
    one_function = False

    def test_the_last_layer_alone_has_variances_and_they_start_within_their_bounds(self):
        means, log_vars = self.family().gaussian_weights(self.parameters())
        assert means.keys() == self.network().shapes.keys() and log_vars.keys() == {"head.weight", "head.bias"}
        assert all(((v >= -3) & (v <= -1)).all() for v in log_vars.values())

    def test_the_weight_kl_is_that_of_the_last_layer(self):
        parameters = self.parameters()
        means, log_vars = self.family().gaussian_weights(parameters)
        found = self.family().weight_kl(self.network(), parameters, 0.2, 0.7, None)
        expected = sum(
            kl_divergence(Normal(means[k], (0.5 * v).exp()), Normal(*torch.tensor([0.2, 0.7**0.5], dtype=v.dtype)))
            .flatten(1)
            .sum(1)
            for k, v in log_vars.items()
        )
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)

    def test_activations_of_every_inner_layer_are_kept_at_the_rate_and_scaled(self):
        network = small.network({**small.TANH, "hidden": [60, 50]})
        parameters = self.family().init(network, small.streams(R))
        x, draws = small.inputs(R, N), self.family().functions(network, parameters, 3, small.streams(R))
        found = torch.stack([draws.features(x) for _ in range(40)])
        assert found.shape == (40, R, N, 50) and abs((found != 0).double().mean() - 0.6) < 0.02
        assert not torch.equal(found[0] != 0, found[1] != 0) and not torch.equal(found[0, :, 0], found[0, :, 1])
        # one mask of the layer before and one of this: values that are kept vary by the former
        kept = found[:, 0, 0, 0][found[:, 0, 0, 0] != 0]
        assert len(kept.unique()) > 1

    def test_the_rate_is_checked(self):
        with pytest.raises(ValueError, match="rate: expected 0 or more and below 1, found 1.0"):
            FAMILIES.build({**WIDE, "rate": 1.0})


class TestGaussianHeadWithoutDropout(FamilyContract):
    spec = STILL

    def test_functions_have_the_moments_of_a_gaussian_last_layer(self):
        parameters, x, samples = self.parameters(), small.inputs(R, N), 4000
        mean, variance = _head(self.network(), self.family(), parameters, x)
        f = self.draw(parameters, samples=samples)(x)
        assert ((f.mean(1) - mean).abs() < 5 * (variance / samples).sqrt()).all()
        assert ((f.var(1) / variance).log().abs() < 5 * (2 / samples) ** 0.5).all()


def _head(network, family, parameters, x):
    means, log_vars = family.gaussian_weights(parameters)
    phi = network.features({k: v.unsqueeze(1) for k, v in means.items()}, x).squeeze(1)
    mean = phi @ means["head.weight"] + means["head.bias"].unsqueeze(1)
    return mean, phi.square() @ log_vars["head.weight"].exp() + log_vars["head.bias"].exp().unsqueeze(1)


def _divergence(spec, **changes):
    model = small.model(
        {"family": spec, "divergence": KL | changes, "prior": PRIOR, "context": {"name": "training_batch"}}, 3
    )
    parameters = model.family.init(model.network, small.streams(R))
    data = small.training_data(R, N, 3)
    return model, parameters, data, model.divergence(small.step(model, parameters, data, small.streams(R)))


def test_the_divergence_is_that_of_a_gaussian_last_layer_at_the_context():
    model, parameters, data, found = _divergence(STILL)
    mean, variance = _head(model.network, model.family, parameters, data.x)
    expected = kl_divergence(
        Normal(mean, variance.sqrt()), Normal(*torch.tensor([0.0, 10.0**0.5], dtype=mean.dtype))
    ).sum((1, 2))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=0)


def test_the_divergence_has_one_mask_for_mean_and_variance_and_its_gradient_reaches_all_weights():
    """rudner2022's first code: mean and Jacobian by one random key; runs 3.3 and 3.4 let gradients through both."""
    model, parameters, data, _ = _divergence(WIDE)
    trained = {k: v.requires_grad_() for k, v in parameters.items()}
    step = small.step(model, trained, data, small.streams(R))
    seen = []
    features = step.functions.features
    object.__setattr__(step.functions, "features", lambda x: seen.append(features(x)) or seen[-1])
    model.divergence(step).sum().backward()
    assert len(seen) == 1 and (seen[0] == 0).any()
    assert all(v.grad is not None and v.grad.reshape(R, -1).any(1).all() for v in trained.values())


def test_a_full_jacobian_is_refused():
    with pytest.raises(NotSupported, match="jacobian 'full' .* 'gaussian_head' .* use jacobian 'last_layer'"):
        _divergence(WIDE, jacobian="full")
