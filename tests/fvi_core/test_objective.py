"""The objective from its terms, and what it leads to where the answer is known: linear models and a Gaussian
process."""

import math
from dataclasses import dataclass

import pytest
import torch

import fvi_core as fvi
from fvi_core import methods
from fvi_core.contexts import ContextSource
from fvi_core.data import TrainingData, TrainingSet, take
from fvi_core.divergences.base import Divergence, Step
from fvi_core.families.base import NotSupported
from fvi_core.gaussian_process import log_marginal_likelihood, posterior
from fvi_core.held import Held
from fvi_core.kernels import Kernel
from fvi_core.networks import Network
from fvi_core.objective import Model, Weight
from fvi_core.registry import DIVERGENCES, KERNELS
from fvi_core.training import Trainer, Training
from tests.fvi_core import small
from tests.fvi_core.posteriors import labels

R, N = 2, 6


@pytest.mark.parametrize(
    ("scaling", "expected"), [("elbo", 1 / 400), ("batch", 1 / 50), ("context", 1 / 350), ("none", 1)]
)
def test_the_weight_of_the_divergence(scaling, expected):
    assert Weight(scaling)(400, 50, 7) == pytest.approx(expected, rel=1e-15)
    assert Weight(scaling, 0.1)(400, 50, 7) == pytest.approx(0.1 * expected, rel=1e-15)


def test_the_weight_rises_over_the_first_steps():
    """Band et al. (2021): (step + 1) / (200 epochs), of which 90 are made: .45 of all steps at the last."""
    weight = Weight("elbo", 0.45, rise=1.0)
    assert [weight(10, 5, 1, progress=p) for p in (0.01, 0.5, 1.0)] == pytest.approx([0.00045, 0.0225, 0.045])
    half = Weight("elbo", 2.0, rise=0.5)
    assert [half(1, 1, 1, progress=p) for p in (0.25, 0.5, 0.75)] == [1.0, 2.0, 2.0]
    assert Weight("elbo", 0.45)(10, 5, 1, progress=0.01) == weight(10, 5, 1) == pytest.approx(0.045)
    with pytest.raises(ValueError, match="rise must lie in .* found 2"):
        Weight(rise=2.0)


def test_an_unknown_scaling_names_the_nearest():
    with pytest.raises(ValueError, match="weight scaling 'elbow' is not known; did you mean 'elbo'"):
        Weight("elbow")


MEAN_FIELD = {"name": "mean_field", "log_var_init": [-3.0, -1.0]}
PRIOR = {"name": "gaussian_weights", "variance": 0.7}
BOX = {"name": "uniform_box", "points": 7}


def loss_of(model, n_train=40, samples=3, outputs=1):
    """Return the loss of one batch with its parameters, data and fresh copies of its random streams."""
    data, streams = small.training_data(R, N, outputs), small.streams(R)
    family = model.family.init(model.network, streams.child("init"))
    noise = model.likelihood.init(R, torch.float64)
    parameters = {k: v.requires_grad_() for k, v in family.items()}
    names = ("functions", "context", "divergence", "prior")
    source = ContextSource(data.x, data.low, data.high, data.pools)
    initial = model.family.initial_network(model.network, {k: v.detach() for k, v in family.items()})
    train = TrainingSet(data.x, data.y, outputs, outputs > 1)
    state = model.prior.init(model.network, initial, train, streams.child("fit")) if model.prior else {}
    made = {name: streams.child(name) for name in names}
    loss = model.loss(parameters, noise, state, data.x, data.y, n_train, samples, source, made)
    return loss, parameters, noise, state, data, source, {name: streams.child(name) for name in names}


@pytest.mark.parametrize("scaling", ["elbo", "batch", "context"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_the_loss_is_the_mean_log_likelihood_and_the_weighted_divergence(outputs, scaling):
    model = small.model(
        {
            "family": MEAN_FIELD,
            "divergence": {"name": "gaussian_kl"},
            "prior": PRIOR,
            "context": BOX,
            "weight": {"scaling": scaling, "factor": 0.5},
        },
        outputs,
    )
    loss, parameters, noise, state, data, source, streams = loss_of(model, outputs=outputs)
    functions = model.family.functions(model.network, parameters, 3, streams["functions"])
    fit = model.likelihood.log_prob(noise, functions(data.x), data.y).mean((1, 2))
    step = Step(
        model.network,
        model.family,
        parameters,
        model.prior,
        state,
        data.x,
        40,
        functions,
        None,
        lambda: model.context(source, streams["context"]),
        streams["divergence"],
        streams["prior"],
    )
    weight = 0.5 / {"elbo": 40, "batch": N, "context": N * 7}[scaling]
    torch.testing.assert_close(loss, -fit + weight * model.divergence(step), rtol=1e-12, atol=1e-12)


LAST_LAYER = {"divergence": {"name": "gaussian_kl"}, "prior": PRIOR}


@pytest.mark.parametrize("family", [{"name": "gaussian_head", "rate": 0.0}, {"name": "linearised_mean_field"}])
def test_a_last_layer_is_compared_at_a_context_that_extends_the_batch_too(family):
    losses = []
    for parts in ([{"name": "training_batch"}, BOX], [BOX, {"name": "training_batch"}]):
        model = small.model({"family": family, "context": {"name": "mixture", "parts": parts}, **LAST_LAYER}, 3)
        losses.append(loss_of(model, outputs=3)[0])
    torch.testing.assert_close(*losses, rtol=1e-6, atol=1e-8)


DIRICHLET = {"divergence": {"name": "dirichlet_kl"}, "prior": {"name": "dirichlet"}}


@pytest.mark.parametrize(("parts", "sets"), [(DIRICHLET, 1), (LAST_LAYER, 1), (LAST_LAYER, 3)])
def test_a_context_that_extends_the_batch_shares_its_pass_and_changes_no_value(monkeypatch, parts, sets):
    if sets > 1:
        parts = {**parts, "divergence": {**parts["divergence"], "sets": sets}}
    extended = {"name": "mixture", "parts": [{"name": "training_batch"}, BOX]}
    model = small.model({"family": MEAN_FIELD, "context": extended, **parts}, 3)
    passes, run = [], Network._run

    def spy(self, layers, parameters, a, *rest):
        if torch.is_grad_enabled():
            passes.append(a.shape[2])
        return run(self, layers, parameters, a, *rest)

    monkeypatch.setattr(Network, "_run", spy)
    shared, *_ = loss_of(model, outputs=3)
    assert passes == [N + 7] * sets
    monkeypatch.setattr(Model, "_context_in_same_pass", lambda self, network: None)
    passes.clear()
    apart, *_ = loss_of(model, outputs=3)
    assert passes == [N] + [N + 7] * sets
    torch.testing.assert_close(shared, apart, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["point", "dropout", "ensemble", "rank1", "radial"])
def test_dirichlet_divergence_on_the_training_batch_needs_no_second_pass(monkeypatch, kind):
    """One forward pass in a step, with and without the divergence (dirichlet2022 App. F: the index set is the training
    data)."""
    family = {"name": kind} | ({"base": {"name": "point"}, "size": 3, "joint": True} if kind == "ensemble" else {})
    passes, run = [], Network._run

    def spy(self, layers, parameters, a, *rest):
        passes.append(a.shape[2])
        return run(self, layers, parameters, a, *rest)

    monkeypatch.setattr(Network, "_run", spy)
    for parts in ({}, {**DIRICHLET, "context": {"name": "training_batch"}}):
        passes.clear()
        model, data = small.model({"family": family, **parts}, 3), small.training_data(R, 12, 3)
        Trainer(model, Training(2, 4, {"name": "adam"}, dtype="float64"), data, small.streams(R)).run()
        assert passes == [4] * 6


def test_without_a_divergence_the_loss_is_the_fit_alone():
    model = small.model({"family": {"name": "point"}})
    loss, parameters, noise, _, data, *_ = loss_of(model)
    f = model.network({k: v.unsqueeze(1) for k, v in parameters.items()}, data.x)
    torch.testing.assert_close(loss, -model.likelihood.log_prob(noise, f, data.y).mean((1, 2)), rtol=1e-12, atol=1e-12)


def test_a_closed_form_expectation_is_used_where_there_is_one_and_is_the_mean_over_draws():
    model = small.model({"family": {**MEAN_FIELD, "name": "linearised_mean_field"}})
    loss, parameters, noise, _, data, *_ = loss_of(model)
    mean, variance = model.family.marginals(model.network, parameters, data.x)
    expected = model.likelihood.expected_log_prob_gaussian(noise, mean, variance, data.y).mean(-1)
    torch.testing.assert_close(loss, -expected, rtol=1e-12, atol=1e-12)
    with torch.no_grad():
        f = model.family.functions(model.network, parameters, 5000, small.streams(R))(data.x)
    drawn = model.likelihood.log_prob(noise, f, data.y).mean(2)
    assert ((drawn.mean(1) + loss).abs() < 5 * drawn.std(1) / 5000**0.5).all()


def test_a_likelihood_with_an_error_of_its_own_trains_on_it_in_families_with_moments_too():
    family = {**MEAN_FIELD, "name": "linearised_mean_field"}
    model = small.model({"family": family, "likelihood": {"name": "residual_gaussian"}})
    loss, parameters, _, _, data, _, streams = loss_of(model)
    f = model.family.functions(model.network, parameters, 3, streams["functions"])(data.x).squeeze(-1)
    error = (f - data.y.unsqueeze(1)).square().mean((1, 2)).sqrt()
    torch.testing.assert_close(loss, error, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("likelihood", "outputs"),
    [
        ({"name": "categorical", "class_weights": "batch"}, 3),
        ({"name": "residual_gaussian"}, 1),
        ({"name": "kernel_scores"}, 3),
    ],
)
def test_powers_of_a_likelihood_that_is_no_mean_over_points_are_refused(likelihood, outputs):
    """Such powers would leave out class weights, or the error that a likelihood has in place of its logarithm."""
    parts = {"family": MEAN_FIELD, "likelihood": likelihood}
    assert small.model(parts, outputs)
    with pytest.raises(NotSupported, match="alpha 0.5 is for the mean log-likelihood of points, found likelihood"):
        small.model({**parts, "weight": {"alpha": 0.5}}, outputs)


def test_an_exact_process_maximises_its_evidence():
    model = small.model({"family": {"name": "exact_gp", "kernel": {"name": "rbf"}}})
    loss, parameters, noise, _, data, *_ = loss_of(model, n_train=N)
    variance = model.likelihood.noise_std(noise).square()
    evidence = log_marginal_likelihood(KERNELS.build({"name": "rbf"}), parameters, variance, data.x, data.y)
    torch.testing.assert_close(loss, -evidence / N, rtol=1e-12, atol=1e-12)


def test_the_evidence_of_a_part_of_the_data_is_refused():
    model = small.model({"family": {"name": "exact_gp", "kernel": {"name": "rbf"}}})
    words = f"'exact_gp' is trained by the evidence of all {4 * N} training points at once, found a batch of {N}; set"
    with pytest.raises(NotSupported, match=words):
        loss_of(model, n_train=4 * N)


def test_parameters_of_the_likelihood_are_distinguished_from_those_of_the_family():
    family, noise, _ = Held.of({"mean/a": 1, "likelihood/rho": 2})
    assert (family, noise) == ({"mean/a": 1}, {"rho": 2})


def test_rows_of_shared_and_own_data_sets():
    own, shared = torch.arange(12).view(3, 4), torch.arange(4).view(1, 4)
    index = torch.tensor([[0, 1], [3, 2]])
    owner = torch.tensor([2, 0])
    assert take(own, owner).tolist() == own[[2, 0]].tolist() and take(own, torch.arange(3)) is own
    assert take(own, owner, index).tolist() == [[8, 9], [3, 2]]
    first = torch.zeros(2, dtype=torch.long)
    assert take(shared, first).shape == (2, 4) and take(shared, first, index).tolist() == [[0, 1], [3, 2]]


# Two orthogonal features with zero mean: the exact posterior of a linear model factorises, so that mean field can hold
# it.
DESIGN = torch.tensor([[-1.0, -1], [-1, 1], [1, -1], [1, 1]], dtype=torch.float64).repeat(2, 1)
TARGETS = DESIGN @ torch.tensor([0.5, -1.0], dtype=torch.float64) + 0.3 + 0.4 * small.streams(1).normal(8)[0]
NOISE, VARIANCE = 0.5, 0.8
GRID = {"name": "grid", "low": [-1.0, -1.0], "high": [1.0, 1.0], "step": 1.0}
LINEAR = {
    "name": "gaussian_process",
    "kernel": {"name": "affine"},
    "parameters": {"log_variance": math.log(VARIANCE)},
}


@dataclass(frozen=True)
class Affine(Kernel):
    """sigma^2 (1 + x . x'): the process of a linear model with a constant."""

    def __call__(self, params, x1, x2):
        return params["log_variance"].exp()[:, None, None] * (1 + x1 @ x2.mT)

    def diagonal(self, params, x):
        return params["log_variance"].exp()[:, None] * (1 + x.square().sum(-1))


@pytest.mark.parametrize(
    ("name", "prior", "context", "samples", "tolerance"),
    [
        ("GFSVI", LINEAR, GRID, 1, 1e-3),
        ("FSVI, closed form", {}, GRID, 1, 1e-3),
        ("TFSVI", {}, GRID, 100, 0.05),
        ("MFVI", {}, None, 100, 0.05),
    ],
)
def test_a_linear_model_ends_at_its_exact_posterior(name, prior, context, samples, tolerance, monkeypatch):
    """Means to ``tolerance`` posterior standard deviations, log-variances to 2 x ``tolerance``."""
    monkeypatch.setitem(KERNELS.classes, "affine", Affine)
    row = methods.get(name.split(",")[0])
    family = {**row.family, "log_var_init": [-4.0, -3.0]} | (
        {"name": "linearised_mean_field"} if "closed" in name else {}
    )
    model = small.model(
        {
            "network": {**small.TANH, "hidden": []},
            "family": family,
            "divergence": row.divergence,
            "prior": prior or {**row.prior, "variance": VARIANCE},
            "context": context,
            "likelihood": {"name": "gaussian", "init_std": NOISE, "learned": False},
        }
    )
    ends = torch.ones(1, 2, dtype=torch.float64)
    data = TrainingData(DESIGN[None], TARGETS[None], -ends, ends)
    training = Training(300, 8, {"name": "adam", "lr": 0.1}, {"name": "cosine"}, samples, dtype="float64")
    trained = Trainer(model, training, data, small.streams(1)).run()[0]
    means, log_vars = model.family.gaussian_weights(Held.of(trained.parameters).family)
    features = torch.cat([DESIGN, torch.ones(8, 1, dtype=torch.float64)], 1)
    precision = features.T @ features / NOISE**2 + torch.eye(3, dtype=torch.float64) / VARIANCE
    covariance = torch.linalg.inv(precision)
    exact = covariance @ features.T @ TARGETS / NOISE**2
    assert torch.equal(covariance, torch.diag(covariance.diagonal()))
    error = (
        torch.cat([means["head.weight"].flatten(), means["head.bias"].flatten()]) - exact
    ) / covariance.diagonal().sqrt()
    assert error.abs().max() < tolerance
    log_var = torch.cat([log_vars["head.weight"].flatten(), log_vars["head.bias"].flatten()])
    assert (log_var - covariance.diagonal().log()).abs().max() < 2 * tolerance


def test_a_divergence_without_a_gradient_is_refused(monkeypatch):
    monkeypatch.setattr(DIVERGENCES, "classes", dict(DIVERGENCES.classes))

    @DIVERGENCES.register("held")
    @dataclass(frozen=True)
    class Held(Divergence):
        """Mean square of the functions, without a gradient."""

        def __call__(self, step):
            return step.functions(step.sample_context()).detach().square().mean((1, 2, 3))

    x, context = torch.randn(8, 2), {"name": "uniform_box", "points": 4}
    with pytest.raises(NotSupported, match="'held': expected a value with a gradient in the trained parameters"):
        own = {"divergence": {"name": "held"}, "context": context, "epochs": 1, "progress": False}
        fvi.fit(
            lambda: torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 3)), (x, labels(8)), "MFVI", **own
        )


def test_gfsvi_comes_nearer_to_its_process_than_mean_field_does():
    """25 points of a sine on two intervals (cinquin2024 eq. C.1), compared between and beside the intervals too."""
    streams = small.streams(1, name="sine")
    x = (0.5 + 0.5 * streams.uniform(25, 1)) * (2 * streams.integers(2, 25, 1) - 1)
    y = (2 * math.pi * x[..., 0]).sin() + 0.1 * streams.normal(25)
    ends, grid = (
        torch.full((1, 1), 2.0, dtype=torch.float64),
        torch.linspace(-1.5, 1.5, 31, dtype=torch.float64)[None, :, None],
    )
    kernel, hyper = {"name": "rbf", "ard": False}, {"log_lengthscale": math.log(0.5)}
    process = {"name": "gaussian_process", "kernel": kernel, "parameters": hyper}
    state = {"log_lengthscale": torch.full((1, 1), math.log(0.5)).double(), "log_variance": torch.zeros(1).double()}
    mean, variance = posterior(KERNELS.build(kernel), state, torch.tensor([0.04]), x, y, grid)
    errors = {}
    for name, prior, context, samples in (
        ("GFSVI", process, {"name": "uniform_box", "points": 25}, 1),
        ("MFVI", None, None, 5),
    ):
        row = methods.get(name)
        model = small.model(
            {
                "network": {"name": "mlp", "hidden": [20, 20], "activation": "tanh"},
                "family": row.family,
                "divergence": row.divergence,
                "prior": prior or row.prior,
                "context": context,
                "likelihood": {"name": "gaussian", "init_std": 0.2, "learned": False},
            },
            shape=(1,),
        )
        training = Training(400, 25, {"name": "adam", "lr": 0.05}, {"name": "cosine"}, samples, dtype="float64")
        trained = Trainer(model, training, TrainingData(x, y, -ends, ends), small.streams(1)).run()[0]
        with torch.no_grad():
            f = model.family.functions(model.network, Held.of(trained.parameters).family, 1000, small.streams(1))(grid)[
                ..., 0
            ]
        errors[name] = ((f.mean(1) - mean).square().mean().sqrt(), (f.std(1) - variance.sqrt()).square().mean().sqrt())
    assert errors["GFSVI"][0] < 0.8 * errors["MFVI"][0], errors
    assert errors["GFSVI"][1] < 0.6 * errors["MFVI"][1], errors
