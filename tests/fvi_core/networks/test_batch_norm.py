"""Batch normalisation in training: running statistics, what context points are normalised with, stacks, ensembles,
checkpoints."""

import io
from dataclasses import dataclass

import pytest
import torch
from torch import nn

import fvi_core as fvi
from fvi_core.contexts import ContextSource
from fvi_core.families.base import Family, NotSupported
from fvi_core.gaussian import gaussian_kl_full
from fvi_core.held import BUFFER
from fvi_core.likelihoods import LIKELIHOODS
from fvi_core.linearisation import head_moments
from fvi_core.networks import Network
from fvi_core.objective import Model, Weight
from fvi_core.registry import CONTEXTS, DIVERGENCES, FAMILIES, PRIORS
from fvi_core.training import Trainer, Training
from tests.fvi_core import small
from tests.fvi_core.networks.test_residual import SHAPE, Modules, tiny

R, N = 2, 10
MEAN_FIELD = {"name": "mean_field", "log_var_init": [-4.0, -3.0]}
WEIGHTS = {"name": "gaussian_weights", "variance": 0.7}
LAST, BOX = {"name": "gaussian_kl"}, {"name": "random_monochrome", "points": 3}
DIRICHLET = {"divergence": {"name": "dirichlet_kl"}, "prior": {"name": "dirichlet"}}
MEMBERS = {"name": "ensemble", "base": {"name": "point"}, "size": 2}
KINDS = {
    "MAP": {"family": {"name": "point"}, "divergence": {"name": "weight_penalty"}, "prior": WEIGHTS},
    "MC Dropout fVI": {"family": {"name": "dropout", "rate": 0.2}, **DIRICHLET, "context": {"name": "training_batch"}},
    "MC Dropout fVI, other context": {"family": {"name": "dropout", "rate": 0.2}, **DIRICHLET, "context": BOX},
    "Ensemble": {"family": MEMBERS},
    "Ensemble fVI": {"family": {**MEMBERS, "joint": True}, **DIRICHLET, "context": {"name": "training_batch"}},
    "MFVI": {"family": MEAN_FIELD, "divergence": {"name": "weight_kl"}, "prior": WEIGHTS},
    "FSVI": {"family": MEAN_FIELD, "divergence": LAST, "prior": WEIGHTS, "context": BOX},
    "FSVI, full Jacobian": {
        "family": MEAN_FIELD,
        "divergence": {**LAST, "jacobian": "full", "covariance": "diagonal"},
        "prior": {**WEIGHTS, "jacobian": "full"},
        "context": BOX,
    },
    "Radial": {"family": {"name": "radial", "layers": "hidden"}, "divergence": {"name": "weight_kl"}, "prior": WEIGHTS},
    "Rank1": {
        "family": {"name": "rank1", "size": 2},
        "divergence": {"name": "weight_kl"},
        "prior": {"name": "gaussian_factors"},
    },
    "SWAG": {"family": {"name": "swag", "rank": 2, "start": 0.4}},
}


def model(kind, shared=False):
    parts = {"divergence": None, "prior": None, "context": None} | KINDS[kind]
    optional = [
        None if parts[k] is None else registry.build(parts[k])
        for k, registry in (("divergence", DIVERGENCES), ("prior", PRIORS), ("context", CONTEXTS))
    ]
    family, likelihood = FAMILIES.build(parts["family"]), LIKELIHOODS.build({"name": "categorical"})
    return Model(tiny(shared=shared), family, *optional, likelihood, Weight())


def trainer(kind, replicas=range(R), shared=False, dtype=torch.float32, state=None, **options):
    data = small.training_data(R, N, 3, SHAPE, dtype)
    data = small.one(data, replicas[0]) if len(replicas) < R else data
    options = {"epochs": 3, "batch_size": 4, "optimiser": {"name": "sgd", "lr": 0.01}, "samples": 2} | options
    return Trainer(
        model(kind, shared),
        Training(**options, dtype=str(dtype).removeprefix("torch.")),
        data,
        small.streams(R, dtype).subset(replicas),
        state,
    )


def test_training_is_that_of_modules_with_their_running_statistics():
    made = trainer("MAP", range(1), dtype=torch.float64)
    start = {k: v.detach().clone()[0] for k, v in made.parameters.items()}
    module = Modules(made.model.network, {k: v for k, v in start.items() if not k.startswith(BUFFER)})
    batches = small.streams(R).subset([0]).child("batch")
    for _ in range(3):
        order = batches.permutation(N)[0]
        for index in order.split(4):
            penalty = sum(p.square().sum() for p in module.parameters()) / (2 * 0.7 * N)
            loss = (
                nn.functional.cross_entropy(module(made.training_data.x[0, index]), made.training_data.y[0, index])
                + penalty
            )
            module.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p in module.parameters():
                    p -= 0.01 * p.grad
    trained = made.run()[0].parameters
    weights = {k: v[0] for k, v in trained.items() if not k.startswith(BUFFER)}
    expected = Modules(made.model.network, weights).state_dict()
    for name, value in module.state_dict().items():
        if "running_" in name:
            layer, kind = name.removeprefix("layers.").rsplit(".running_", 1)
            (own,) = [
                v for k, v in trained.items() if k.replace(".", "_") == f"buffer/{layer}.{kind}".replace(".", "_")
            ]
            torch.testing.assert_close(own[0], value, rtol=1e-9, atol=1e-12)
        elif "num_batches" not in name:
            torch.testing.assert_close(expected[name], value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "shared"), [*((kind, False) for kind in KINDS), ("FSVI", True), ("MC Dropout fVI, other context", True)]
)
def test_replicas_together_are_bitwise_those_alone_and_their_statistics_move(kind, shared):
    together = trainer(kind, shared=shared).run()
    for r in range(R):
        assert together[r].reason is None
        small.assert_same(together[r], trainer(kind, range(r, r + 1), shared).run()[0])
    buffers = {
        k: v for k, v in together[0].parameters.items() if k.startswith(BUFFER) and "norm" in k and "swag" not in k
    }
    assert buffers.keys() == tiny().buffers.keys()
    members = (1, 2) if kind.startswith("Ensemble") else (1,)
    for name, value in buffers.items():
        assert value.shape[:-1] == members and not (value == float(name.endswith("var"))).any()
    if len(members) > 1:
        assert all(not torch.equal(v[:, 0], v[:, 1]) for v in buffers.values())


@pytest.mark.parametrize("kind", ["MAP", "FSVI", "SWAG", "Ensemble"])
def test_training_goes_on_from_a_saved_state_bitwise(kind):
    saved = {}

    def hook(trainer):
        saved[trainer.epoch] = file = io.BytesIO()
        torch.save(trainer.state(), file)

    whole = trainer(kind).run(checkpoint=hook)
    for epoch in (1, 2):
        saved[epoch].seek(0)
        again = trainer(kind, state=torch.load(saved[epoch], weights_only=True)).run()
        for one, other in zip(whole, again, strict=True):
            small.assert_same(one, other)


def test_prediction_uses_the_running_statistics():
    made = trainer("MFVI", dtype=torch.float64)
    trained, x = made.run()[0], small.inputs(1, 6, SHAPE)
    functions = made.model.family.functions(made.model.network, trained.parameters, 3, small.streams(1))
    values = functions(x)
    torch.testing.assert_close(functions(x[:, 2:4]), values[:, :, 2:4], rtol=1e-10, atol=1e-10)
    buffers = {k: v.unsqueeze(1) for k, v in trained.parameters.items() if k.startswith(BUFFER)}
    drawn = {k: v for k, v in functions.parameters.items() if not k.startswith(BUFFER)}
    assert torch.equal(values, made.model.network(drawn | buffers, x))


def loss_and_passes(monkeypatch, kind, shared):
    """The first step of training, with the points of every pass with gradient that takes a batch's statistics."""
    made, passes, run = trainer(kind, shared=shared, dtype=torch.float64, batch_size=N), [], Network._run
    top = made.model.network.layers[0]

    def spy(self, layers, parameters, a, *rest):
        held = any(name.startswith(BUFFER) for name in parameters)
        if torch.is_grad_enabled() and layers and layers[0] is top and not held:
            passes.append(a.shape[2])
        return run(self, layers, parameters, a, *rest)

    monkeypatch.setattr(Network, "_run", spy)
    passes.clear()
    made.training = Training(1, N, {"name": "sgd", "lr": 0.0}, samples=2, dtype="float64")
    start = {k: v.detach().clone() for k, v in made.parameters.items()}
    return made, start, torch.tensor([t.loss[0] for t in made.run()], dtype=torch.float64), passes


@pytest.mark.parametrize("kind", ["FSVI", "MC Dropout fVI, other context"])
def test_shared_statistics_take_one_pass_over_batch_and_context_and_separate_ones_one_over_each(monkeypatch, kind):
    assert loss_and_passes(monkeypatch, kind, shared=True)[3] == [N + 3]
    assert loss_and_passes(monkeypatch, kind, shared=False)[3] == [N, 3]


@pytest.mark.parametrize("shared", [True, False])
def test_shared_and_separate_statistics_are_what_they_say(monkeypatch, shared):
    """Values and features of the step against a network whose statistics are computed and held by hand."""
    made, start, loss, _ = loss_and_passes(monkeypatch, "FSVI", shared)
    model, x = made.model, made.training_data.x
    streams = {name: small.streams(R).child(label) for name, label in Trainer.streams.items()}
    trained = {k: v for k, v in start.items() if not k.startswith(BUFFER)}
    drawn = model.family.weights(model.network, trained, 2, streams["functions"])
    source = ContextSource(x, made.training_data.low, made.training_data.high, made.training_data.pools)
    context = model.context(source, streams["context"])

    def held(points, count):
        seen = model.network.statistics(drawn, points)
        for name in list(seen):
            if name.endswith("var"):
                sites = seen_sites(model.network, name)
                seen[name] = seen[name] * (count * sites - 1) / (count * sites)
        return drawn | seen

    both = torch.cat([x, context], 1)
    at_x, at_context = (held(both, N + 3),) * 2 if shared else (held(x, N), held(context, 3))
    values = model.network(at_x, x)
    phi = model.network.features({k: v[:, :1] for k, v in at_context.items()}, context).squeeze(1)
    fit = model.likelihood.data_term({}, values, made.training_data.y)
    mean, log_var = model.family.gaussian_weights(trained)
    mean_p, cov_p = model.prior.moments(model.network, made.now.prior, context, "full")
    kl = gaussian_kl_full(*head_moments(phi, mean, log_var), mean_p, cov_p, 1e-6).sum(-1)
    torch.testing.assert_close(loss, -fit + kl / N, rtol=1e-8, atol=1e-8)
    seen = model.network.statistics(drawn, both if shared else x)
    for name, value in model.network.track(start, seen).items():
        running = torch.cat([made.now.results[r].parameters[name] for r in range(R)])
        torch.testing.assert_close(running, value, rtol=1e-10, atol=1e-12)


def seen_sites(network, name):
    """Pixels at a normalised layer of the tiny network: 6x5, then 3x3 after the stride."""
    return 9 if "group1" in name else 30


def test_the_prior_is_normalised_by_training_points_once_where_statistics_are_shared():
    assert trainer("FSVI").now.prior.keys() == tiny().shapes.keys()  # separate: by each context's own statistics
    made = trainer("FSVI", shared=True, dtype=torch.float64)
    weights = {k: v for k, v in made.now.prior.items() if not k.startswith(BUFFER)}
    expected = made.model.network.statistics({k: v.unsqueeze(1) for k, v in weights.items()}, made.training_data.x)
    assert made.now.prior.keys() - weights.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(made.now.prior[name], value.squeeze(1), rtol=1e-12, atol=1e-12)
    before = {k: v.clone() for k, v in made.now.prior.items()}
    made.run()
    assert all(torch.equal(made.now.prior[k], v) for k, v in before.items())


def test_two_context_sets_cannot_share_statistics(monkeypatch):
    monkeypatch.setitem(KINDS, "two", {**KINDS["FSVI"], "divergence": {**LAST, "sets": 2}})
    assert trainer("two").run()[0].reason is None
    with pytest.raises(NotSupported, match="need one context set per step, found more"):
        trainer("two", shared=True).run()


def test_functions_that_need_single_inputs_are_refused():
    with pytest.raises(NotSupported, match="'linearised_mean_field' needs functions of single inputs"):
        FAMILIES.build({"name": "linearised_mean_field"}).init(tiny(), small.streams(1))


@pytest.mark.parametrize("members", [1, 2])
def test_a_family_whose_weights_lack_running_statistics_predicts_with_them(monkeypatch, members):
    """An own family need not return them: else each prediction would be normalised by its own inputs."""
    monkeypatch.setattr(FAMILIES, "classes", dict(FAMILIES.classes))

    @FAMILIES.register("weights_alone")
    @dataclass(frozen=True)
    class WeightsAlone(Family):
        """A point."""

        def init(self, network, streams):
            return network.init(streams) | network.init_buffers(streams)

        def weights(self, network, parameters, samples, streams):
            return {
                name: parameters[name][:, None].expand(-1, samples, *network.shapes[name]) for name in network.shapes
            }

    def make():
        return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))

    x, y = torch.randn(9, 2, generator=torch.Generator().manual_seed(0)), torch.arange(9) % 2
    own = {"name": "weights_alone"}
    family = own if members == 1 else {"name": "ensemble", "base": own, "size": members}
    posterior = fvi.fit(make, (x, y), "MAP", family=family, divergence=None, prior=None, epochs=2, progress=False)
    found = posterior.predict(x, samples=4).values
    torch.testing.assert_close(posterior.predict(x[:1], samples=4).values, found[:, :1])
    torch.testing.assert_close(torch.stack([each(x) for each in posterior.modules(4)]), found)


def test_statistics_that_a_family_does_not_start_are_named():
    net = tiny()
    draws = {name: torch.ones(1, 1, *shape) for name, shape in net.shapes.items()}
    seen = net.statistics(draws, torch.randn(1, 4, *SHAPE))
    with pytest.raises(ValueError, match=r"buffer/.*: init\(\) of the family lacks .*network.init_buffers\(streams\)"):
        net.track({}, seen)


def test_a_last_batch_of_one_point_is_named():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    x, y = torch.randn(9, 2, generator=torch.Generator().manual_seed(0)), torch.arange(9) % 2
    with pytest.raises(ValueError, match="layer '1': batch normalisation needs .* leaves no last batch of one"):
        fvi.fit(net, (x, y), "MAP", batch_size=4, epochs=1, progress=False)
    fvi.fit(net, (x, y), "MAP", batch_size=3, epochs=1, progress=False)
