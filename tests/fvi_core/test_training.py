"""Training together is training alone, stopping and going on again changes nothing, and each replica has its own
end."""

import copy
import io
import math
from dataclasses import replace

import pytest
import torch

from fvi_core.data import TrainingData
from fvi_core.families.base import NotSupported
from fvi_core.held import Held
from fvi_core.networks import Network
from fvi_core.objective import Weight
from fvi_core.registry import UnknownPart
from fvi_core.training import Trainer, Training
from tests.fvi_core import small

R, N = 3, 10
ADAM = {"name": "adam", "lr": 0.01}
MEAN_FIELD = {"name": "mean_field"}
LINEARISED = {"name": "linearised_mean_field"}
WEIGHTS = {"name": "gaussian_weights", "variance": 0.7}
BOX = {"name": "uniform_box", "points": 4}
NEAREST = {"name": "nearest_neighbour_kl", "samples": 12}
HYPER = {"name": "hypernetwork", "latent": 3, "hidden": [4]}
PROCESS = {"name": "gaussian_process", "kernel": {"name": "rbf", "ard": False}, "fit_steps": 3}
DIRICHLET = {
    "divergence": {"name": "dirichlet_kl"},
    "prior": {"name": "dirichlet"},
    "context": {"name": "training_batch"},
}
MEMBERS = {"name": "ensemble", "base": {"name": "point"}, "size": 2}
KINDS = {
    "MAP": {"family": {"name": "point"}, "divergence": {"name": "weight_penalty"}, "prior": WEIGHTS},
    "MFVI": {"family": MEAN_FIELD, "divergence": {"name": "weight_kl"}, "prior": WEIGHTS},
    "MC Dropout": {"family": {"name": "dropout", "rate": 0.2}},
    "Ensemble": {"family": MEMBERS, "likelihood": {"name": "residual_gaussian"}},
    "FSVI": {"family": MEAN_FIELD, "divergence": {"name": "gaussian_kl", "sets": 2}, "prior": WEIGHTS, "context": BOX},
    "FSVI (rudner2021)": {
        "family": MEAN_FIELD,
        "prior": {"name": "gaussian_functions"},
        "context": BOX,
        "divergence": {"name": "gaussian_kl", "jacobian": "full", "covariance": "diagonal", "stop_gradient": True},
    },
    "FSVI Ensemble": {
        "family": {**MEMBERS, "base": MEAN_FIELD},
        "divergence": {"name": "gaussian_kl"},
        "prior": WEIGHTS,
        "context": BOX,
    },
    "GFSVI": {"family": LINEARISED, "divergence": {"name": "regularised_kl"}, "prior": PROCESS, "context": BOX},
    "MAP fVI": {"family": {"name": "point"}, **DIRICHLET},
    "MC Dropout fVI": {"family": {"name": "dropout", "rate": 0.2, "masks": "function"}, **DIRICHLET},
    "Ensemble fVI": {"family": {**MEMBERS, "joint": True}, **DIRICHLET},
    "Radial": {"family": {"name": "radial", "rho_init": -2.0}, "divergence": {"name": "weight_kl"}, "prior": WEIGHTS},
    "Rank1": {
        "family": {"name": "rank1", "size": 2},
        "divergence": {"name": "weight_kl"},
        "prior": {"name": "gaussian_factors"},
    },
    "SWAG": {"family": {"name": "swag", "rank": 2, "start": 0.0}},
    "FuNN-MFVI": {"family": MEAN_FIELD, "divergence": NEAREST, "prior": WEIGHTS, "context": BOX},
    "NN-HyVI": {"family": HYPER, "divergence": {**NEAREST, "space": "parameter"}, "prior": WEIGHTS},
    "FuNN-HyVI": {"family": HYPER, "divergence": NEAREST, "prior": WEIGHTS, "context": BOX, "network": small.RELU},
    "GP": {"family": {"name": "exact_gp", "kernel": {"name": "rbf"}}},
}


def train(parts, replicas=range(R), *, outputs=1, data=None, dtype="float32", hook=None, **training):
    """Train some of the replicas of one set of training data together."""
    data = data or small.training_data(R, N, outputs, dtype=getattr(torch, dtype), validation=4)
    if len(replicas) < R and len(data.x) == R:
        data = small.one(data, replicas[0])
    options = {"epochs": 3, "batch_size": 4, "optimiser": ADAM, "samples": 10, "dtype": dtype} | training
    streams = small.streams(R, getattr(torch, dtype)).subset(replicas)
    return Trainer(small.model(parts, outputs), Training(**options), data, streams).run(checkpoint=hook)


@pytest.mark.parametrize("kind", KINDS)
def test_replicas_trained_together_are_bitwise_those_trained_alone(kind):
    options = {"batch_size": N} if kind == "GP" else {}
    options |= {"outputs": 3} if "fVI" in kind else {}
    options |= {"dtype": "float64"} if kind in ("GFSVI", "GP") else {}
    together = train(KINDS[kind], **options)
    assert all(t.reason is None and t.epochs == 3 and len(t.loss) == 3 for t in together)
    for r in range(R):
        small.assert_same(together[r], train(KINDS[kind], range(r, r + 1), **options)[0])
    assert together[0].loss != together[1].loss


def test_convolutional_networks_are_trained_together_too():
    parts = {**KINDS["FSVI"], "network": small.CNN, "context": {"name": "random_monochrome", "points": 4}}
    data = small.training_data(R, N, 2, (2, 4, 4), torch.float32)
    together = train(parts, outputs=2, data=data)
    small.assert_same(together[1], train(parts, range(1, 2), outputs=2, data=data)[0])


OBJECTIVE = {"epochs": 8, "early_stopping": {"patience": 1, "every": 1, "objective": True}}
EARLY = {"epochs": 40, "early_stopping": {"patience": 3, "every": 1}, "optimiser": {"name": "adam", "lr": 0.1}}
PLATEAU = {
    "epochs": 40,
    "batch_size": N,
    "optimiser": {"name": "adam", "lr": 0.1},
    "schedule": {"name": "plateau", "factor": 0.3, "patience": 0, "min_lr": 0.02},
}


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("MFVI", EARLY),
        ("MC Dropout", EARLY),
        ("MFVI", PLATEAU),
        ("MC Dropout", PLATEAU),
        ("FSVI", PLATEAU),
        ("FSVI", EARLY | OBJECTIVE),
    ],
    ids=lambda v: v if isinstance(v, str) else next(k for k in v if k in ("early_stopping", "schedule")),
)
def test_replicas_that_end_early_leave_the_others_alone(kind, rule):
    together = train(KINDS[kind], **rule)
    assert len({t.epochs for t in together}) > 1, "the test needs replicas with different ends"
    assert max(t.epochs for t in together) <= rule["epochs"]
    for r in range(R):
        small.assert_same(together[r], train(KINDS[kind], range(r, r + 1), **rule)[0])


FIXED = {"name": "gaussian", "learned": False}


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_fixed_noise_stays_where_it_is_under_weight_decay(name, learned):
    likelihood = {"name": "gaussian", "init_std": 2.5, "learned": learned}
    optimiser = {"name": name, "lr": 0.01, "weight_decay": 0.1}
    for trained in train({**KINDS["MAP"], "likelihood": likelihood}, optimiser=optimiser):
        (noise,) = (value for part, value in trained.parameters.items() if part.startswith("likelihood/"))
        assert (noise.item() == pytest.approx(math.log(math.expm1(2.5)))) != learned


def exploding():
    """Training data whose second replica overflows float32 after some epochs of gradient descent."""
    data = small.training_data(R, N, dtype=torch.float32)
    data.y[1] *= 1e5
    return data


def test_a_replica_that_stops_being_finite_fails_alone():
    options = {"data": exploding(), "optimiser": {"name": "sgd", "lr": 0.01}, "epochs": 12, "batch_size": N}
    parts = {**KINDS["MAP"], "network": small.RELU, "likelihood": FIXED}
    together = train(parts, **options)
    assert together[1].parameters is None and 1 < together[1].epochs < 12
    assert (
        together[1].reason
        == f"the loss or a parameter stopped being finite in step 1 of 1 of epoch {together[1].epochs} of 12"
    )
    for r in (0, 2):
        assert together[r].reason is None and all(map(math.isfinite, together[r].loss))
        small.assert_same(together[r], train(parts, range(r, r + 1), **options)[0])


def test_a_prior_without_a_cholesky_factor_fails_its_replica_alone_and_is_named():
    prior = {**PROCESS, "parameters": {"log_variance": 0.0, "log_lengthscale": -2.0}}
    parts = {**KINDS["GFSVI"], "prior": prior, "divergence": {"name": "regularised_kl", "gamma": 1e-30}}
    data = small.training_data(R, N, dtype=torch.float64)
    data.high[1] = data.low[1]  # all context points of replica 1 are one
    together = train(parts, data=data, dtype="float64")
    assert together[1].parameters is None and together[1].reason == (
        "the loss or a parameter stopped being finite in step 1 of 3 of epoch 1 of 3: "
        "the prior's covariance at the context points, "
        "4 x 4 with variances up to 1, is not positive definite with 4e-30 added to its diagonal, while rounding its "
        "entries makes errors of up to 9e-16; more on the diagonals (jitter or gamma), fewer context points or a "
        "rougher prior may help"
    )
    for r in (0, 2):
        small.assert_same(together[r], train(parts, range(r, r + 1), data=data, dtype="float64")[0])


def test_a_failed_member_fails_its_ensemble_and_no_other():
    options = {"data": exploding(), "optimiser": {"name": "sgd", "lr": 0.01}, "epochs": 12, "batch_size": N}
    parts = {"family": MEMBERS, "network": small.RELU, "likelihood": FIXED}
    together = train(parts, **options)
    assert together[1].parameters is None and together[1].reason.startswith(
        "ensemble member 0: the loss or a parameter"
    )
    small.assert_same(together[2], train(parts, range(2, 3), **options)[0])


def test_members_of_an_independent_ensemble_are_networks_trained_by_themselves():
    result = train(KINDS["Ensemble"], dtype="float64")[1]
    model = small.model({**KINDS["Ensemble"], "family": {"name": "point"}})
    members = small.model(KINDS["Ensemble"]).family.member_streams(small.streams(R).subset([1]))
    data = small.one(small.training_data(R, N, validation=4), 1)
    options = Training(3, 4, ADAM, samples=10, dtype="float64")
    together, noise, _ = Held.of(result.parameters)
    alone = [Trainer(model, options, data, members.subset([m])).run()[0].parameters for m in range(2)]
    for m in range(2):
        for name, value in together.items():
            assert torch.equal(value[:, m], alone[m][name])
    mean = (alone[0]["likelihood/rho"] + alone[1]["likelihood/rho"]) / 2
    torch.testing.assert_close(noise["rho"], mean)


def test_members_of_a_joint_ensemble_share_their_batches(monkeypatch):
    seen, run = [], Network._run
    monkeypatch.setattr(
        Network, "_run", lambda self, layers, p, a, *rest: seen.append(a) or run(self, layers, p, a, *rest)
    )
    train({**KINDS["Ensemble fVI"], "context": BOX}, outputs=3, epochs=1)
    batches = seen[::2]  # the others are contexts
    assert len(batches) == 3 and all(torch.equal(b[0::2], b[1::2]) for b in batches)


@pytest.mark.parametrize("kind", ["MFVI", "FSVI", "MC Dropout", "FuNN-HyVI", "GFSVI", "FSVI Ensemble"])
@pytest.mark.parametrize("rule", [EARLY, OBJECTIVE, PLATEAU], ids=["early stopping", "objective", "plateau"])
def test_training_goes_on_from_a_saved_state_bitwise(kind, rule):
    """Saved through a file at an epoch when some replicas have left already."""
    dtype = "float64" if kind == "GFSVI" else "float32"
    rule = rule | {"epochs": 8} | ({"early_stopping": {"patience": 1, "every": 1}} if "early_stopping" in rule else {})
    saved = {}

    def hook(trainer):
        file = io.BytesIO()
        torch.save(trainer.state(), file)
        saved[trainer.epoch] = (file, len(trainer.active), len(trainer.now.results))

    whole = train(KINDS[kind], dtype=dtype, hook=hook, **rule)
    data = small.training_data(R, N, dtype=getattr(torch, dtype), validation=4)
    options = Training(**{"epochs": 3, "batch_size": 4, "optimiser": ADAM, "samples": 10, "dtype": dtype} | rule)
    for file, *_ in list(saved.values())[::3]:
        trainer = Trainer(small.model(KINDS[kind]), options, data, small.streams(R, getattr(torch, dtype)))
        file.seek(0)
        trainer.restore(torch.load(file, weights_only=True))
        for together, again in zip(whole, trainer.run(), strict=True):
            small.assert_same(together, again)


@pytest.mark.parametrize("objective", [False, True], ids=["log-likelihood", "objective"])
def test_early_stopping_keeps_the_parameters_of_the_lowest_validation_loss(objective):
    """The objective's penalty is divided by the number of validation points, 4; under a narrow prior it decides."""
    data, patience, unstopped = small.training_data(R, N, validation=4), 3, []
    parts = KINDS["MAP"] | {"prior": WEIGHTS | {"variance": 0.05}}
    options = {"data": data, "dtype": "float64", "epochs": 40, "optimiser": {"name": "adam", "lr": 0.1}}
    rule = {"patience": patience, "every": 1} | ({"objective": True} if objective else {})
    kept = train(parts, **options, early_stopping=rule)
    hook = lambda trainer: unstopped.append({k: v.detach().clone() for k, v in trainer.parameters.items()})
    train(parts, **options, hook=hook)
    model = small.model(parts)
    for r in range(R):
        losses = []
        for parameters in unstopped:
            family, noise, _ = Held.of(small.one(parameters, r))
            x, y = (part.unsqueeze(0) for part in data.validation[r])
            f = model.network({k: v.unsqueeze(1) for k, v in family.items()}, x)
            penalty = sum(w.square().sum().item() for w in family.values()) / (2 * 0.05)
            losses.append(-model.likelihood.log_prob(noise, f, y).mean().item() + objective * penalty / 4)
        best = 0
        for epoch, loss in enumerate(losses):
            best = epoch if loss < losses[best] else best
            if epoch - best >= patience:
                break
        assert kept[r].epochs == epoch + 1
        for name, value in kept[r].parameters.items():
            assert torch.equal(value, unstopped[best][name][r : r + 1])


def test_early_stopping_looks_at_the_last_epoch_when_it_looks_seldom():
    first = train(KINDS["MAP"], epochs=3, early_stopping={"patience": 50, "every": 10})[0]
    small.assert_same(first, train(KINDS["MAP"], epochs=3)[0])


def test_an_exact_process_stops_early_by_its_objective_alone():
    options = {"data": small.training_data(R, N, validation=4), "dtype": "float64", "batch_size": N}
    rule = {"patience": 1, "every": 1}
    with pytest.raises(
        NotSupported, match='exact_gp.* has no predictions before the end of training.*"objective": true'
    ):
        train(KINDS["GP"], **options, early_stopping=rule)
    for each in train(KINDS["GP"], **options, early_stopping=rule | {"objective": True}):
        assert each.reason is None


def test_early_stopping_that_sees_no_number_has_failed():
    data = small.training_data(R, N, dtype=torch.float32, validation=4)
    (x, y), own = data.validation[0], small.one(data, 0)
    data = replace(data, validation=[(x, y * math.nan), *data.validation[1:]])
    first, *others = train(KINDS["MAP"], data=data, epochs=9, early_stopping={"patience": 3})
    assert first.parameters is None and first.epochs == 3
    assert first.reason == "no validation loss of early stopping was a finite number"
    assert all(each.reason is None for each in others)
    rule = {"patience": 3, "every": 3}
    options = Training(epochs=9, batch_size=4, optimiser=ADAM, dtype="float32", early_stopping=rule)
    stopped = Trainer(small.model(KINDS["MAP"]), options, own, small.streams(R, torch.float32).subset([0]))
    stopped.advance()
    (result,) = stopped.end()  # before the first look
    assert result.reason is None
    assert all(torch.equal(value, stopped.parameters[name]) for name, value in result.parameters.items())


def test_the_loss_of_an_ensemble_is_the_mean_of_its_members():
    data, streams = small.training_data(R, N, dtype=torch.float32), small.streams(R, torch.float32)
    trainer = Training(3, 4, ADAM).start(small.model(KINDS["Ensemble"]), data, streams)
    for r, joined in enumerate(trainer.run()):
        first, second = (trainer.now.results[2 * r + m].loss for m in range(2))
        assert joined.loss == pytest.approx([(a + b) / 2 for a, b in zip(first, second, strict=True)])


def test_early_stopping_without_a_validation_subset_is_refused_before_training():
    options = Training(3, 4, ADAM, early_stopping={"patience": 1, "every": 2})
    data = small.training_data(R, N, dtype=torch.float32)
    with pytest.raises(ValueError, match="early stopping: expected validation data, found none"):
        options.start(small.model(KINDS["MAP"]), data, small.streams(R, torch.float32))


def test_validation_losses_of_equal_parameters_are_equal():
    rule = {"patience": 4, "every": 1}
    for each in train(KINDS["MFVI"], epochs=20, optimiser={**ADAM, "lr": 0.0}, early_stopping=rule):
        assert each.epochs == 5


def test_the_loss_of_an_epoch_is_the_mean_over_points_in_batches_of_unequal_size():
    still = {"epochs": 1, "optimiser": {**ADAM, "lr": 0.0}, "dtype": "float64"}
    for whole, apart in zip(*(train(KINDS["MAP"], batch_size=size, **still) for size in (N, 4)), strict=True):
        assert apart.loss == pytest.approx(whole.loss, rel=1e-12)


def test_a_shared_data_set_is_that_data_set_for_each_replica():
    own = small.one(small.training_data(R, N, dtype=torch.float32), 0)
    copies = TrainingData(*(t.expand(R, *t.shape[1:]).clone() for t in (own.x, own.y, own.low, own.high)))
    for shared, copied in zip(train(KINDS["FSVI"], data=own), train(KINDS["FSVI"], data=copies), strict=True):
        small.assert_same(shared, copied)


def test_every_point_is_seen_once_in_an_epoch(monkeypatch):
    model, seen = small.model({"family": {"name": "point"}}), []
    run = Network._run
    monkeypatch.setattr(
        Network, "_run", lambda self, layers, p, a, *rest: seen.append(a[:, 0]) or run(self, layers, p, a, *rest)
    )
    data = small.training_data(R, N)
    Trainer(model, Training(1, 4, ADAM, dtype="float64"), data, small.streams(R)).run()
    assert [batch.shape[1] for batch in seen] == [4, 4, 2]
    for r in range(R):
        order = torch.cat(seen, 1)[r]
        assert not torch.equal(order, data.x[r]) and torch.equal(order.sort(0).values, data.x[r].sort(0).values)


def test_the_weight_of_the_divergence_gets_the_share_of_all_steps(monkeypatch):
    """The share counts the steps of all epochs, also after a restart from a saved state."""
    shares = []
    monkeypatch.setattr(Weight, "__call__", lambda self, n, batch, context, progress: shares.append(progress) or 0.0)
    model, data = small.model(KINDS["MFVI"] | {"weight": {"rise": 1.0}}), small.training_data(R, N)
    options, saved = Training(2, 4, ADAM, dtype="float64"), {}
    first = Trainer(model, options, data, small.streams(R))
    first.run(checkpoint=lambda stack: saved.setdefault(stack.epoch, copy.deepcopy(stack.state())))
    assert shares == pytest.approx([k / 6 for k in range(1, 7)])
    shares.clear()
    Trainer(model, options, data, small.streams(R), saved[1]).run()
    assert shares == pytest.approx([4 / 6, 5 / 6, 1.0])


def test_gradients_are_clipped_by_element():
    start = train(KINDS["MAP"], epochs=0)
    moved = train(KINDS["MAP"], epochs=1, batch_size=N, clip=1e-3, optimiser={"name": "sgd", "lr": 1.0})
    steps = torch.cat(
        [(moved[r].parameters[k] - v).flatten() for r in range(R) for k, v in start[r].parameters.items()]
    )
    torch.testing.assert_close(steps.abs().max(), torch.tensor(1e-3), rtol=1e-3, atol=0)


def test_progress_is_reported_after_each_epoch():
    heard, options = [], Training(4, N, ADAM)
    data = small.training_data(R, N, dtype=torch.float32)
    trainer = Trainer(small.model(KINDS["MAP"]), options, data, small.streams(R, torch.float32))
    trainer.run(lambda fraction, text: heard.append((fraction, text)))
    assert [f for f, _ in heard] == [0.25, 0.5, 0.75, 1.0] and heard[0][1].startswith("epoch 1/4, loss ")


def test_an_unknown_optimiser_is_named():
    with pytest.raises(UnknownPart, match="optimiser 'adamm' is not known; did you mean 'adam'"):
        train(KINDS["MAP"], optimiser={"name": "adamm"})
