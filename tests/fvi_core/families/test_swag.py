"""SWAG against moments that NumPy takes of the recorded iterates."""

import numpy as np
import pytest
import torch

from fvi_core.families.base import FitData
from fvi_core.families.swag import COUNT, POINTS
from fvi_core.registry import FAMILIES
from fvi_core.training import Trainer, Training
from tests.fvi_core import small
from tests.fvi_core.contracts import FamilyContract, R
from tests.fvi_core.networks.test_residual import SHAPE, tiny

SGD = {"name": "sgd", "lr": 0.05, "momentum": 0.9}
EPOCHS = 12


class TestSWAGBeforeAnythingIsCollected(FamilyContract):
    spec = {"name": "swag", "rank": 3}

    def test_is_the_point(self):
        x, parameters = small.inputs(R, 5), self.parameters()
        point = FAMILIES.build({"name": "point"}).functions(self.network(), parameters, 1, small.streams(R))(x)
        assert torch.equal(self.draw(parameters)(x), point)


def train(spec, hook=None, network=None, epochs=EPOCHS, shape=(2,)):
    parts = {"family": {"name": "swag", **spec}}
    model = small.model({**parts, "network": network or small.TANH}, 3, shape)
    data = small.training_data(R, 11, 3, shape)
    return model, Trainer(model, Training(epochs, 4, SGD, dtype="float64"), data, small.streams(R)).run(checkpoint=hook)


@pytest.fixture(
    scope="module",
    params=[{"rank": 3, "start": 0.5, "every": 1}, {"rank": 20, "start": 0.25, "every": 2}],
    ids=["more iterates than columns", "every second epoch"],
)
def collected(request):
    """A family, its trained parameters, and the iterates that it should have seen, [K, R, P]."""
    iterates = {}

    def hook(trainer):
        iterates[trainer.epoch] = {k: trainer.parameters[k].detach().clone() for k in trainer.model.network.shapes}

    model, trained = train(request.param, hook)
    first = int(request.param["start"] * EPOCHS) + 1
    rows = [model.network.flatten(iterates[e]).numpy() for e in range(first, EPOCHS + 1, request.param["every"])]
    parameters = {k: torch.cat([t.parameters[k] for t in trained]) for k in trained[0].parameters}
    return model, parameters, np.stack(rows)


def test_moments_are_those_of_the_iterates(collected):
    model, parameters, rows = collected
    network, rank = model.network, model.family.rank
    kept = {
        part: network.flatten({k: parameters[f"buffer/swag_{part}/{k}"] for k in network.shapes}).numpy()
        for part in ("mean", "square", "deviation")
    }
    assert (parameters[COUNT] == len(rows)).all()
    np.testing.assert_allclose(kept["mean"], rows.mean(0), rtol=1e-10)
    np.testing.assert_allclose(kept["square"] / len(rows), rows.var(0), rtol=1e-8)
    deviations = [row - rows[: i + 1].mean(0) for i, row in enumerate(rows)][-rank:]
    empty = rank - len(deviations)
    np.testing.assert_allclose(kept["deviation"][:, empty:], np.stack(deviations, axis=1), rtol=1e-8, atol=1e-14)
    assert not kept["deviation"][:, :empty].any()


def test_draws_have_the_moments_of_the_paper(collected):
    """Covariance ``(diag + D D^T / (K - 1)) / 2`` (Maddox et al. 2019 sec. 3.3)."""
    model, parameters, rows = collected
    network, family, samples = model.network, model.family, 20000
    drawn = network.flatten(family.weights(network, parameters, samples, small.streams(R)))
    deviations = np.stack([row - rows[: i + 1].mean(0) for i, row in enumerate(rows)][-family.rank :])
    columns = len(deviations)
    for r in range(R):
        expected = (np.diag(rows[:, r].var(0)) + deviations[:, r].T @ deviations[:, r] / (columns - 1)) / 2
        scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        actual = np.cov(drawn[r].numpy().T)
        assert np.abs((actual - expected) / scale).max() < 0.05
        assert (np.abs(drawn[r].mean(0).numpy() - rows[:, r].mean(0)) < 5 * np.sqrt(np.diag(expected) / samples)).all()


def test_without_scale_it_is_the_average(collected):
    model, parameters, rows = collected
    family = FAMILIES.build({"name": "swag", "rank": model.family.rank, "scale": 0.0})
    drawn = model.network.flatten(family.weights(model.network, parameters, 2, small.streams(R)))
    np.testing.assert_allclose(drawn.numpy(), rows.mean(0)[:, None], rtol=1e-10)  # one function for all


def test_the_first_epoch_is_that_after_the_share():
    model = small.model({"family": {"name": "swag", "start": 0.29}}, 3)  # 0.29 * 100 < 29
    start = model.family.init(model.network, small.streams(R))
    assert [bool(model.family.after_epoch(model.network, start, epoch, 100)) for epoch in (28, 29, 30)] == [0, 0, 1]


def test_collecting_does_not_change_training():
    losses = [[t.loss for t in train(spec)[1]] for spec in ({"rank": 3, "start": 0.2}, {"rank": 5, "start": 0.9})]
    point = small.model({"family": {"name": "point"}}, 3)
    plain = Trainer(
        point, Training(EPOCHS, 4, SGD, dtype="float64"), small.training_data(R, 11, 3), small.streams(R)
    ).run()
    assert losses[0] == losses[1] == [t.loss for t in plain]


@pytest.mark.parametrize(
    ("options", "epochs", "warning"),
    [
        (
            {"start": 0.8},
            5,
            "1 iterate collected (start 0.8, every 1): its covariance is zero, all draws are one network",
        ),
        ({"start": 0.5, "every": 4}, 6, "1 iterate collected (start 0.5, every 4): its covariance is zero"),
        ({"start": 0.8, "scale": 0.0}, 5, ""),  # the average of one iterate is all that is wanted
        ({"start": 0.8, "scale": 0.0}, 0, "no iterates collected (start 0.8, every 1): the last weights are used"),
        ({"start": 0.6}, 5, ""),
    ],
)
@pytest.mark.parametrize("size", [0, 2], ids=["alone", "in an ensemble"])
def test_too_few_iterates_for_a_covariance_are_a_warning(options, epochs, warning, size):
    family = {"name": "swag", "rank": 3, **options}
    model = small.model({"family": {"name": "ensemble", "base": family, "size": size} if size else family}, 3)
    training, data = Training(epochs, 4, SGD, dtype="float64"), small.training_data(R, 11, 3)
    for trained in Trainer(model, training, data, small.streams(R)).run():
        assert len(trained.warnings) == bool(warning)
        assert not warning or trained.warnings[0].startswith(f"family 'swag': {warning}")
        assert not warning or trained.warnings[0].endswith(
            "; train for more epochs, start earlier or collect more often"
        )


def test_drawn_networks_are_normalised_by_kept_training_points():
    network, family = tiny(), FAMILIES.build({"name": "swag", "rank": 3, "start": 0.0, "points": 4})
    parameters = family.init(network, small.streams(R))
    for epoch in range(1, 6):
        for name, shape in network.shapes.items():
            parameters[name] = parameters[name] + 0.1 * small.streams(R, name=f"{name}{epoch}").normal(*shape)
        parameters = parameters | family.after_epoch(network, parameters, epoch, 5)
    data = small.training_data(R, 20, 3, SHAPE)
    model = small.model({"family": {"name": "swag"}}, 3)
    streams = small.streams(R)
    parameters = family.condition(parameters, FitData(network, family, model.likelihood, data.x, data.y, streams))
    expected = parameters[POINTS]
    assert expected.shape[:2] == (R, 12)
    for r in range(R):
        same = (expected[r][:, None] == data.x[r]).flatten(2).all(-1)
        assert (same.sum(1) == 1).all() and (same.sum(0) <= 1).all(), "training inputs, each at most once"
    drawn = family.weights(network, parameters, 2, small.streams(R))
    held = network.statistics(drawn, expected)
    for name in network.buffers:
        torch.testing.assert_close(drawn[name], held[name], rtol=1e-10, atol=1e-12)
    f = family.functions(network, parameters, 2, small.streams(R))(data.x)
    assert torch.equal(f, network(drawn, data.x))


def test_all_training_points_are_kept_where_they_are_fewer():
    network, family = tiny(), FAMILIES.build({"name": "swag", "rank": 2, "points": 5})
    model, data = small.model({"family": {"name": "swag"}}, 3), small.training_data(R, 3, 3, SHAPE)
    fitting = FitData(network, family, model.likelihood, data.x, data.y, small.streams(R))
    kept = family.condition(family.init(network, small.streams(R)), fitting)[POINTS]
    assert torch.equal(kept.flatten(2).sort(1).values, data.x.flatten(2).sort(1).values)


def test_options_are_checked():
    with pytest.raises(ValueError, match="rank: expected 2 or more, found 1"):
        FAMILIES.build({"name": "swag", "rank": 1})
