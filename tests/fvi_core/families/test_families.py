"""Every family keeps the contract, and is what its definition says."""

from dataclasses import replace

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from fvi_core.families.base import FitData, NotSupported
from fvi_core.held import Held
from fvi_core.linearisation import joint_of_independent
from fvi_core.registry import FAMILIES, LIKELIHOODS, UnknownPart
from fvi_core.training import Training
from tests.fvi_core import small
from tests.fvi_core.contracts import FamilyContract, N, R, S
from tests.fvi_core.networks.test_residual import tiny

WIDE = {"name": "mean_field", "log_var_init": [-3.0, -1.0]}


class TestPoint(FamilyContract):
    spec = {"name": "point"}

    def test_is_one_function_for_any_number_of_samples(self):
        assert self.draw(self.parameters(), samples=7)(small.inputs(R, N)).shape[1] == 1


class TestMeanField(FamilyContract):
    spec = WIDE

    def test_weights_have_the_moments_of_the_parameters(self):
        family, parameters = self.family(), self.parameters()
        mean, log_var = family.gaussian_weights(parameters)
        drawn = family.weights(self.network(), parameters, 4000, small.streams(R))
        for name, values in drawn.items():
            std = (0.5 * log_var[name]).exp()
            assert ((values.mean(1) - mean[name]).abs() < 5 * std / 4000**0.5).all()
            torch.testing.assert_close(values.std(1), std, rtol=0.06, atol=0)

    @pytest.mark.parametrize("mean_init", [0.0, 2.0, "default"])
    def test_starts_with_the_given_spread_of_means(self, mean_init):
        family = FAMILIES.build({"name": "mean_field", "mean_init": mean_init, "log_var_init": [-4.0, -4.0]})
        means, log_vars = family.gaussian_weights(family.init(self.network(), small.streams(300)))
        assert all((v == -4).all() for v in log_vars.values())
        expected = self.network().init(small.streams(300)) if mean_init == "default" else None
        for name, value in means.items():
            if expected:
                assert torch.equal(value, expected[name])
            else:
                torch.testing.assert_close(value.std().item(), mean_init, rtol=0.1, atol=0)

    def test_single_tensors_start_within_bounds_of_their_own(self):
        own = {"head.weight": [-50.0, -49.9], "head.bias": [-8.0, -7.9]}
        family = FAMILIES.build({**WIDE, "log_var_init_of": own})
        _, log_vars = family.gaussian_weights(family.init(self.network(), small.streams(R)))
        for name, value in log_vars.items():
            low, high = own.get(name, (-3.0, -1.0))
            assert ((value >= low) & (value <= high)).all() and value.std() > 0
        with pytest.raises(ValueError, match=r"log_var_init_of names \['haed.bias'\], the network has"):
            FAMILIES.build({**WIDE, "log_var_init_of": {"haed.bias": [-8.0, -8.0]}}).init(
                self.network(), small.streams(R)
            )


class TestMeanFieldLast(FamilyContract):
    """The last layer alone is random, as in the ResNet-50 of Band et al. (2021)."""

    spec = {**WIDE, "layers": "last"}

    def test_the_layers_before_are_points_and_computed_once(self):
        network, parameters = self.network(), self.parameters()
        assert {k for k in parameters if k.startswith("log_var/")} == {"log_var/head.weight", "log_var/head.bias"}
        drawn = self.draw(parameters).parameters
        assert {k: v.shape[1] for k, v in drawn.items()} == {k: S if "head" in k else 1 for k in network.shapes}

    def test_the_divergence_is_of_the_layers_that_are_drawn(self):
        family, network, parameters = self.family(), self.network(), self.parameters()
        means, log_vars = family.gaussian_weights(parameters)
        prior = Normal(torch.tensor(0.3, dtype=torch.float64), 0.5**0.5)
        pairs = [(Normal(means[k], (v / 2).exp()), prior) for k, v in log_vars.items()]
        expected = sum(kl_divergence(q, p).flatten(1).sum(1) for q, p in pairs)
        found = family.weight_kl(network, parameters, 0.3, 0.5, None)
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=0)

    def test_one_draw_is_the_mean_but_for_the_last_layer(self):
        network, parameters, x = self.network(), self.parameters(), small.inputs(R, N)
        narrow = parameters | {k: torch.full_like(v, -80.0) for k, v in parameters.items() if k.startswith("log_var/")}
        means, _ = self.family().gaussian_weights(narrow)
        expected = network({k: v.unsqueeze(1) for k, v in means.items()}, x).expand(-1, S, -1, -1)
        torch.testing.assert_close(self.draw(narrow)(x), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("layers", ["weighted", "hidden"])
def test_mean_field_layers_are_those_of_their_name(layers):
    network = tiny()
    family = FAMILIES.build({**WIDE, "layers": layers})
    parameters = family.init(network, small.streams(1))
    drawn = {k.removeprefix("log_var/") for k in parameters if k.startswith("log_var/")}
    kept = (".scale", ".shift") + (("head.weight", "head.bias") if layers == "hidden" else ())
    assert drawn == {k for k in network.shapes if not k.endswith(kept)}
    weights = family.weights(network, parameters, 3, small.streams(1))
    varies = {k for k in network.shapes if not torch.equal(weights[k][:, 0], weights[k][:, 1])}
    assert varies == drawn and all(v.shape[1] == 3 for k, v in weights.items() if k in network.shapes)


def test_layers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="layers 'first' is not known; known: all, hidden, last, weighted"):
        FAMILIES.build({"name": "mean_field", "layers": "first"})
    with pytest.raises(NotSupported, match="is linearised in all layers, found layers 'last'"):
        FAMILIES.build({"name": "linearised_mean_field", "layers": "last"}).init(small.network(), small.streams(1))
    divergence = {"name": "gaussian_kl", "jacobian": "full"}
    parts = {"family": {**WIDE, "layers": "last"}, "divergence": divergence, "prior": {"name": "gaussian_functions"}}
    model = small.model({**parts, "context": {"name": "training_batch"}})
    step = small.step(
        model, model.family.init(model.network, small.streams(R)), small.training_data(R), small.streams(R)
    )
    with pytest.raises(NotSupported, match="jacobian 'full' needs Gaussian weights in every layer"):
        model.divergence(step)


class TestLinearisedMeanField(FamilyContract):
    spec = {**WIDE, "name": "linearised_mean_field"}
    weights_make_functions = False

    def test_is_the_network_where_the_weights_are_their_means(self):
        family, network = self.family(), self.network()
        parameters = self.parameters()
        parameters |= {k: torch.full_like(v, -80.0) for k, v in parameters.items() if k.startswith("log_var/")}
        means = {k: v.unsqueeze(1) for k, v in family.gaussian_weights(parameters)[0].items()}
        x = small.inputs(R, N)
        torch.testing.assert_close(
            self.draw(parameters)(x), network(means, x).expand(-1, 4, -1, -1), rtol=1e-9, atol=1e-9
        )

    def test_of_a_linear_network_is_mean_field_itself(self):
        network = small.network({**small.TANH, "hidden": []})
        plain, x = FAMILIES.build(WIDE), small.inputs(R, N)
        parameters = plain.init(network, small.streams(R))
        f, g = (
            family.functions(network, parameters, 4, small.streams(R, name="draw"))(x)
            for family in (self.family(), plain)
        )
        torch.testing.assert_close(f, g, rtol=1e-12, atol=1e-12)


class TestDropoutOfFunctions(FamilyContract):
    spec = {"name": "dropout", "rate": 0.4, "masks": "function"}
    weights_make_functions = False


class TestDropoutOfInputs(FamilyContract):
    spec = {"name": "dropout", "rate": 0.4, "masks": "input"}
    weights_make_functions = False
    one_function = False

    @pytest.mark.parametrize("masks", ["input", "function"])
    def test_activations_are_kept_at_the_rate_and_scaled(self, masks):
        network = small.network({**small.TANH, "hidden": [50]})
        family = FAMILIES.build({"name": "dropout", "rate": 0.3, "masks": masks})
        seen = {}

        def spy(weights, x, dropout):
            seen["a"] = dropout("site", torch.ones(R, 1, N, 50, dtype=torch.float64))
            return seen["a"][..., :1]

        family.functions(spy, family.init(network, small.streams(R)), 40, small.streams(R))(small.inputs(R, N))
        kept = seen["a"] > 0
        torch.testing.assert_close(seen["a"][kept], torch.full_like(seen["a"][kept], 1 / 0.7))
        assert abs(kept.double().mean() - 0.7) < 0.02
        assert (kept == kept[:, :, :1]).all() == (masks == "function")

    def test_rate_zero_is_the_point(self):
        network, x = self.network(), small.inputs(R, N)
        none, point = FAMILIES.build({"name": "dropout", "rate": 0.0}), FAMILIES.build({"name": "point"})
        f, g = (family.functions(network, self.parameters(), 3, small.streams(R))(x) for family in (none, point))
        torch.testing.assert_close(f, g.expand_as(f), rtol=1e-12, atol=1e-12)

    def test_options_are_checked(self):
        with pytest.raises(ValueError, match="rate: expected 0 or more and below 1, found 1.0"):
            FAMILIES.build({"name": "dropout", "rate": 1.0})
        with pytest.raises(ValueError, match="masks 'batch' is not known; known: function, input"):
            FAMILIES.build({"name": "dropout", "masks": "batch"})


class TestEnsembleOfPoints(FamilyContract):
    spec = {"name": "ensemble", "base": {"name": "point"}, "size": 3}

    def test_functions_are_those_of_the_members(self):
        parameters, x, network = self.parameters(), small.inputs(R, N), self.network()
        f = self.draw(parameters)(x)
        assert f.shape[1] == 3
        for m in range(3):
            member = {k: v[:, m : m + 1] for k, v in parameters.items()}
            torch.testing.assert_close(f[:, m : m + 1], network(member, x), rtol=1e-12, atol=1e-12)

    def test_members_start_apart(self):
        assert all(len(v.flatten(2).unique(dim=1)[0]) == 3 for v in self.parameters().values())


class TestEnsembleOfMeanField(FamilyContract):
    spec = {"name": "ensemble", "base": WIDE, "size": 2, "joint": True}

    def test_samples_are_shared_among_members(self):
        parameters, x, network = self.parameters(), small.inputs(R, N), self.network()
        f = self.draw(parameters, samples=4000)(x)
        assert f.shape[1] == 4000
        member = {k: v[:, 0] for k, v in parameters.items()}
        alone = FAMILIES.build(WIDE).functions(network, member, 2000, small.streams(R))(x)
        spread = (alone.var(1) / 2000).sqrt()
        assert ((f[:, :2000].mean(1) - alone.mean(1)).abs() < 7 * spread).all()


class TestHypernetwork(FamilyContract):
    spec = {"name": "hypernetwork", "latent": 3, "hidden": [6, 5]}

    def test_weights_are_a_relu_network_of_noise(self):
        family, network, parameters = self.family(), self.network(), self.parameters()
        drawn = network.flatten(family.weights(network, parameters, 4, small.streams(R)))
        h = small.streams(R).normal(4, 3)
        for r in range(R):
            a = h[r]
            for i in range(3):
                a = a @ parameters[f"generator{i}.weight"][r] + parameters[f"generator{i}.bias"][r]
                a = a.relu() if i < 2 else a
            torch.testing.assert_close(drawn[r], a, rtol=1e-12, atol=1e-12)
        image = family.affine_image(network, parameters, 4, small.streams(R))
        torch.testing.assert_close(image.points(), drawn, rtol=1e-12, atol=1e-12)
        assert image.coordinates.shape == (R, 4, 5)

    def test_generators_start_as_linear_layers_of_torch(self):
        parameters = FAMILIES.build({**self.spec, "latent": 4, "hidden": [100]}).init(self.network(), small.streams(R))
        for i, inputs in enumerate((4, 100)):
            for part in ("weight", "bias"):
                assert 0.8 < float(parameters[f"generator{i}.{part}"].abs().max()) * inputs**0.5 <= 1


class TestExactGP(FamilyContract):
    spec = {"name": "exact_gp", "kernel": {"name": "rbf", "ard": False}}
    outputs = 1
    one_function = False  # values at two sets of inputs are drawn apart

    def parameters(self, replicas: range = range(R)):
        family, data = self.family(), small.training_data(R)
        free = family.init(self.network(), small.streams(len(replicas)))
        likelihood = LIKELIHOODS.build({"name": "gaussian", "init_std": 0.3})
        x, y = data.x[list(replicas)], data.y[list(replicas)]
        fitting = FitData(self.network(), family, likelihood, x, y, small.streams(len(replicas)))
        return Held.of(
            family.condition(Held(free, likelihood.init(len(replicas), torch.float64)).flat(), fitting)
        ).family

    def test_values_at_the_inputs_of_one_call_vary_together(self):
        parameters, x = self.parameters(), small.inputs(R, 3)
        with torch.no_grad():
            _, covariance = self.family()._posterior(parameters, x, full=True)
            f = self.draw(parameters, samples=20000)(x)[..., 0]
        centred = f - f.mean(1, keepdim=True)
        torch.testing.assert_close(centred.mT @ centred / 20000, covariance, rtol=0.05, atol=0.002)


class TestExactGPOfVectors(TestExactGP):
    spec = {"name": "exact_gp", "kernel": {"name": "helmholtz"}}
    outputs = 2

    def parameters(self, replicas: range = range(R)):
        family, data = self.family(), small.training_data(R)
        free = family.init(self.network(), small.streams(len(replicas)))
        likelihood = LIKELIHOODS.build({"name": "gaussian", "init_std": 0.3})
        x, y = data.x[list(replicas)], torch.stack([data.y, data.y.cos()], -1)[list(replicas)]
        fitting = FitData(self.network(), family, likelihood, x, y, small.streams(len(replicas)))
        start = Held(free, likelihood.init(len(replicas), torch.float64)).flat()
        return Held.of(family.condition(start, fitting)).family

    def test_values_at_the_inputs_of_one_call_vary_together(self):
        parameters, x = self.parameters(), small.inputs(R, 3)
        with torch.no_grad():
            _, covariance = self.family()._posterior(parameters, x, full=True)
            f = self.draw(parameters, samples=20000)(x)
        centred = (f - f.mean(1, keepdim=True)).flatten(2)
        if covariance.dim() == 4:  # of each number by itself
            covariance = joint_of_independent(covariance)[:, 0]
        torch.testing.assert_close(centred.mT @ centred / 20000, covariance, rtol=0.05, atol=0.02)


class TestExactGPsOfTheirOwn(TestExactGPOfVectors):
    spec = {"name": "exact_gp", "kernel": {"name": "rbf"}}


def test_a_process_of_gradients_names_targets_that_are_none():
    model, data = small.model({"family": {"name": "exact_gp", "kernel": {"name": "helmholtz"}}}), small.training_data(R)
    with pytest.raises(
        NotSupported, match=r"'exact_gp': kernel 'helmholtz' gives vector fields .gradients., found targets \[\] and"
    ):
        start = model.family.init(model.network, small.streams(R))
        model.loss(start, model.likelihood.init(R), {}, data.x, data.y, N, 1, None, {})


def test_an_unknown_family_names_the_nearest():
    with pytest.raises(UnknownPart, match="family 'meanfield' is not known; did you mean 'mean_field'"):
        FAMILIES.build({"name": "meanfield"})


def test_repeated_rows_with_equal_targets_take_the_noise_to_0_and_are_named():
    data = small.training_data(2, 6)
    x, y = (torch.cat([each[:1], each[1:, :3].repeat_interleave(2, 1)]) for each in (data.x, data.y))
    training = Training(400, optimiser={"name": "adam", "lr": 0.3}, dtype="float64", batch_size=6)
    trainer = training.start(small.model({"family": {"name": "exact_gp"}}), replace(data, x=x, y=y), small.streams(2))
    good, bad = trainer.run()
    assert good.reason is None and bad.reason is not None
    assert "the covariance of the targets, 6 x 6 with variances up to" in bad.reason
    assert "; where rows are repeated with equal targets" in bad.reason
