"""A sampler in the place of the gradient loop: its moments, its neighbours, its stops."""

import io

import pytest
import torch

from fvi_core.data import TrainingData
from fvi_core.families.base import NotSupported
from fvi_core.hamiltonian import HamiltonianMonteCarlo
from fvi_core.registry import FAMILIES
from fvi_core.samplers import Target
from tests.fvi_core import small
from tests.fvi_core.contracts import FamilyContract, R, S
from tests.fvi_core.own_parts import Metropolis

NOISE, VARIANCE = 0.5, 0.8
PARTS = {
    "network": {**small.TANH, "hidden": []},
    "family": {"name": "samples"},
    "divergence": {"name": "weight_penalty"},
    "prior": {"name": "gaussian_weights", "variance": VARIANCE},
    "likelihood": {"name": "gaussian", "init_std": NOISE, "learned": False},
}
FEW = Metropolis(samples=4, thinning=3, warmup=2, dtype="float64")
SAMPLERS = [FEW, HamiltonianMonteCarlo(samples=4, thinning=3, warmup=2, dtype="float64", leapfrogs=2, map_steps=5)]


class TestSamples(FamilyContract):
    spec = {"name": "samples"}

    def parameters(self, replicas=range(R), held=S):
        draws = [
            self.family().init(self.network(), small.streams(R, name=str(s)).subset(replicas)) for s in range(held)
        ]
        return self.family().sampled(draws)

    @pytest.mark.parametrize(
        ("samples", "kept"), [(1, [0]), (3, [0, 2, 4]), (4, [0, 1, 3, 4]), (6, [*range(6)]), (9, [*range(6)])]
    )
    def test_fewer_are_spaced_along_the_chain(self, samples, kept):
        parameters = self.parameters(held=6)
        drawn = self.family().weights(self.network(), parameters, samples, small.streams(R))
        assert all(torch.equal(drawn[name], value[:, kept]) for name, value in parameters.items())


def test_moments_are_those_of_the_posterior():
    """A linear model, whose posterior is Gaussian; 30 chains see the same data."""
    data, chains = small.one(small.training_data(R, 12), 0), 30
    sampler = Metropolis(samples=300, thinning=4, warmup=100, dtype="float64")
    trained = sampler.start(small.model(PARTS), data, small.streams(chains)).run()
    model = small.model(PARTS)
    drawn = torch.cat([model.network.flatten({k: t.parameters[k] for k in model.network.shapes}) for t in trained])
    features = torch.cat([data.x[0], torch.ones(12, 1, dtype=torch.float64)], 1)
    covariance = torch.linalg.inv(features.T @ features / NOISE**2 + torch.eye(3, dtype=torch.float64) / VARIANCE)
    mean = covariance @ features.T @ data.y[0] / NOISE**2
    # Chains are independent, so the spread of their own means says how far the mean of all may be off.
    own = drawn.mean(1)
    assert ((own.mean(0) - mean).abs() < 5 * own.std(0) / chains**0.5).all()
    assert (own.std(0) < 0.3 * covariance.diagonal().sqrt()).all(), "the chains have mixed"
    centred = (drawn - mean).flatten(0, 1)
    scale = covariance.diagonal().sqrt()
    assert ((centred.T @ centred / len(centred) - covariance).abs() < 0.12 * torch.outer(scale, scale)).all()


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
@pytest.mark.parametrize("family", [{"name": "samples"}, {"name": "ensemble", "base": {"name": "samples"}, "size": 2}])
def test_chains_side_by_side_are_those_alone_and_go_on_where_they_were_stopped(family, sampler):
    model, data, saved = small.model({**PARTS, "family": family}), small.training_data(R, 8), []

    def save(chains):
        file = io.BytesIO()
        torch.save(chains.state(), file)
        saved.append(file)

    heard = []
    together = sampler.start(model, data, small.streams(R)).run(lambda *progress: heard.append(progress), save)
    assert [text.split(",")[0] for _, text in heard] == [f"round {i}/6" for i in range(1, 7)] and heard[-1][0] == 1
    assert all(len(t.loss) == t.epochs == 6 for t in together)
    members = (1, 2)[family["name"] == "ensemble"]
    shape = together[0].parameters["head.weight"].shape
    assert shape == ((1, 4, 2, 1) if members == 1 else (1, 2, 4, 2, 1))
    assert model.functions(together[0].parameters, 8, small.streams(1))(data.x[:1]).shape == (1, 4 * members, 8, 1)
    for r in range(R):
        small.assert_same(sampler.start(model, small.one(data, r), small.streams(R).subset([r])).run()[0], together[r])
    for file in saved[::2]:
        file.seek(0)
        again = sampler.start(model, data, small.streams(R), torch.load(file, weights_only=True))
        for one, other in zip(again.run(), together, strict=True):
            small.assert_same(one, other)


def test_a_chain_that_is_not_finite_leaves_alone():
    data = small.training_data(R, 8)
    data.y[1, 2] = torch.nan
    model = small.model(PARTS)
    found = FEW.start(model, data, small.streams(R)).run()
    assert (
        found[1].parameters is None
        and found[1].reason == "the loss or a parameter stopped being finite in round 1 of 6"
    )
    for r in (0, 2):
        small.assert_same(FEW.start(model, small.one(data, r), small.streams(R).subset([r])).run()[0], found[r])


def test_the_energy_is_minus_the_log_posterior_in_one_piece_or_many_and_has_its_gradient():
    model, data = small.model(PARTS), small.training_data(R, 8)
    now = FEW.start(model, data, small.streams(R)).now
    position = model.family.init(model.network, small.streams(R, name="elsewhere"))
    whole, pieces = (Target(model, data, now, size) for size in (None, 3))
    f = model.network(position, data.x)[..., 0]
    likelihood = torch.distributions.Normal(f[:, 0], NOISE).log_prob(data.y).sum(1)
    prior = -sum(v.square().flatten(1).sum(1) for v in position.values()) / (2 * VARIANCE)
    torch.testing.assert_close(whole.energy(position), -likelihood - prior)
    torch.testing.assert_close(pieces.energy(position), whole.energy(position))
    energy, gradient = pieces.gradient(position)
    torch.testing.assert_close(energy, whole.energy(position))
    for name, value in position.items():
        step = torch.zeros_like(value)
        step.view(R, -1)[:, 0] = 1e-5
        moved = [whole.energy(position | {name: value + sign * step}) for sign in (1, -1)]
        torch.testing.assert_close(
            gradient[name].reshape(R, -1)[:, 0], (moved[0] - moved[1]) / 2e-5, rtol=1e-5, atol=1e-5
        )


WRONG = {
    "a family of points": (
        {"family": {"name": "point"}},
        {},
        NotSupported,
        "family 'point' does not hold the positions",
    ),
    "learned noise": (
        {"likelihood": {"name": "gaussian"}},
        {},
        ValueError,
        "moves weights alone; give likelihood 'gaussian' learned",
    ),
    "a divergence weighed by a batch in several pieces": (
        {"weight": {"scaling": "batch"}},
        {"batch_size": 3},
        ValueError,
        "batch_size would change the posterior under weight scaling 'batch'",
    ),
    "classes weighed by their shares of a batch, in several pieces": (
        {"likelihood": {"name": "categorical", "class_weights": "batch"}},
        {"batch_size": 3},
        ValueError,
        "batch_size would change the posterior under likelihood 'categorical', whose terms depend on the other points",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_sampled_is_named_at_the_start(what):
    parts, options, error, message = WRONG[what]
    with pytest.raises(error, match=message):
        Metropolis(**options, dtype="float64").start(
            small.model(PARTS | parts), small.training_data(R, 8), small.streams(R)
        )


def test_batch_normalisation_is_refused():
    parts = {**PARTS, "network": {"name": "resnet18", "width": 2}, "likelihood": {"name": "categorical"}}
    data = small.training_data(R, 4, 3, (1, 8, 8))
    with pytest.raises(NotSupported, match="no batch normalisation"):
        FEW.start(small.model(parts, 3, (1, 8, 8)), data, small.streams(R))


def test_one_network_in_training_is_a_point():
    from tests.fvi_core.test_training import KINDS, train

    parts = {**KINDS["MAP"], "family": {"name": "samples"}}
    for one, point in zip(train(parts), train(KINDS["MAP"]), strict=True):
        assert one.loss == point.loss
    assert FAMILIES.build({"name": "samples"}).independent()[1] == 1
    assert isinstance(small.training_data(R).of(1), TrainingData)
