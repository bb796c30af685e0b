"""The prior precision of Laplace approximations, against laplace-torch and numeric derivatives; and what cannot be
fitted.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from fvi_core.families.base import NotSupported
from fvi_core.fits import posterior
from fvi_core.fits.dense import Dense
from fvi_core.fits.laplace import HIGH, LOW, best, evidence, slope
from fvi_core.fits.posterior import CURVATURE
from fvi_core.fitting import FitFailed
from fvi_core.networks import Network
from fvi_core.registry import FITS
from tests.fvi_core import small
from tests.fvi_core.fits.cases import DELTA, KINDS, STD, curvature_of, fitted, ggn, model, parameters, training_data

# By laplace-torch 0.2.3 in double precision (backend AsdlGGN of asdfghjkl 0.1a4; CurvlinopsGGN of curvlinops 2.0.0
# agrees), of the networks, weights and data of cases.py in batches of 5: Laplace(net, likelihood, subset, structure,
# sigma_noise=.3), the maximum of log_marginal_likelihood by LBFGS; that value, and the diagonal of
# _glm_predictive_distribution at the first input, with prior_precision .7. BackPackGGN differs for Kronecker factors of
# convolutions alone: .729 instead of .528 (see Factored).
LAPLACE_TORCH = {
    ("mlp", "full"): (0.6397282023, -89.1948226922, [0.024852290217, 0.024518449787]),
    ("mlp", "diagonal"): (2.2154591119, -122.6705872341, [0.161145240666, 0.159719920211]),
    ("mlp", "kronecker"): (1.4321186740, -105.6892222837, [0.056500752858, 0.067932734581]),
    ("mlp", "last_layer"): (1.7873462603, -81.9949785236, [0.013717023205, 0.013717023205]),
    ("cnn", "full"): (0.1791475560, -46.9814960614, [3.937589394993, 5.159486095532, 4.096731850957]),
    ("cnn", "diagonal"): (0.8476204095, -78.8961564523, [4.175011122701, 10.887117119775, 4.912967963291]),
    ("cnn", "kronecker"): (0.5275488675, -62.2167500933, [5.366995527866, 10.266555180083, 5.82993776898]),
    ("cnn", "last_layer"): (0.4454622864, -23.8391601095, [3.297499965082, 3.153631561251, 3.443781008281]),
}
# Softmax of probit logits at the first input, for the networks above: with the full matrix, with the last layer.
PROBIT = {
    "full": [0.22742250378874798, 0.6125847853104711, 0.15999271090078088],
    "last_layer": [0.2054624635782025, 0.6526687983748846, 0.14186873804691286],
}


def spec(**options):
    return {"name": "laplace", **options}


@pytest.mark.parametrize(("kind", "structure"), LAPLACE_TORCH)
def test_it_agrees_with_laplace_torch(kind, structure):
    optimum, log_evidence, variances = LAPLACE_TORCH[kind, structure]
    _, _, own = fitted(kind, spec(structure=structure, precision="evidence"))
    assert math.isclose(own["prior_precision"], optimum, rel_tol=1e-7)
    made, family, own = fitted(kind, spec(structure=structure, precision=DELTA))
    data = training_data(kind)
    _, variance = made.fit.marginals(made.network, made.family, family, own, data.x[:, :1])
    np.testing.assert_allclose(variance[0, 0], variances, rtol=1e-9)
    f = made.network({k: v[:, None] for k, v in family.items()}, data.x)
    likelihood = made.likelihood.log_prob(made.likelihood.init(1, torch.float64), f, data.y).sum()
    eigenvalues, distance = spectrum(kind, structure)
    assert math.isclose(float(likelihood) + evidence(eigenvalues, distance, DELTA), log_evidence, rel_tol=1e-9)


@pytest.mark.parametrize("structure", PROBIT)
def test_probit_predictions_agree_with_laplace_torch(structure):
    made, family, own = fitted("cnn", spec(structure=structure, precision=DELTA, predictive="probit"))
    f = made.fit.functions(made.network, made.family, family, own, 1, small.streams(1))(training_data("cnn").x[:, :1])
    np.testing.assert_allclose(f[0, 0, 0].softmax(-1), PROBIT[structure], rtol=1e-9)


def spectrum(kind, structure):
    """Eigenvalues of a curvature, and the squared norm of its weights."""
    made, found = curvature_of(kind, spec(structure=structure))
    flat = made.fit.posterior.chosen(made.network.flatten(parameters(made))[0], found)
    return made.fit.posterior.eigenvalues(found), float(flat.square().sum())


@pytest.mark.parametrize("kind", KINDS)
def test_the_evidence_is_that_of_the_dense_matrix_and_its_slope_a_numeric_derivative(kind):
    whole, weights = ggn(kind, model(kind, None))
    eigenvalues, distance = spectrum(kind, "full")
    assert math.isclose(distance, float(weights @ weights))

    def expected(log_precision):
        precision = math.exp(log_precision)
        matrix = whole + precision * torch.eye(len(whole), dtype=torch.float64)
        prior = len(whole) * log_precision - precision * float(weights @ weights)
        return 0.5 * (prior - float(torch.linalg.slogdet(matrix).logabsdet))

    for at in (-2.0, 0.3, 4.0):
        assert math.isclose(evidence(eigenvalues, distance, math.exp(at)), expected(at), rel_tol=1e-9)
        numeric = (expected(at + 1e-4) - expected(at - 1e-4)) / 2e-4
        assert math.isclose(slope(eigenvalues, distance, math.exp(at)), numeric, rel_tol=1e-5)
    found = minimize_scalar(lambda at: -expected(at), bounds=(-8, 8), method="bounded", options={"xatol": 1e-10})
    assert math.isclose(math.log(best(eigenvalues, distance)), found.x, abs_tol=1e-5)
    assert abs(slope(eigenvalues, distance, best(eigenvalues, distance))) < 1e-9


def test_the_mean_of_the_prior_counts_in_the_evidence():
    made = model("mlp", spec(precision="evidence"))
    fitting_of = {"divergence": {"name": "weight_penalty"}, "prior": {"name": "gaussian_factors", "mean": 0.2}}
    moved = model("mlp", spec(precision="evidence"), **fitting_of)
    assert moved.weight_prior == (0.2, 100.0)
    own = moved.after_training(parameters(moved), training_data("mlp"), small.streams(1))
    flat = moved.network.flatten(parameters(moved))[0]
    eigenvalues, _ = spectrum("mlp", "diagonal")
    assert math.isclose(
        own["fit/prior_precision"], best(eigenvalues, float((flat - 0.2).square().sum())), rel_tol=1e-12
    )
    assert (
        own["fit/prior_precision"]
        != made.after_training(parameters(made), training_data("mlp"), small.streams(1))["fit/prior_precision"]
    )


def test_an_evidence_without_a_maximum_fails():
    for eigenvalues, distance in ((torch.zeros(3), 1.0), (torch.ones(3), 0.0), (torch.full((3,), 1e13), 1e-11)):
        with pytest.raises(
            FitFailed, match=f"no maximum at a prior precision between {LOW:g} and {HIGH:g}".replace("+", r"\+")
        ):
            best(eigenvalues.double(), distance)


def test_the_precision_is_the_requested_one():
    for precision, expected in ((3, 3.0), ("prior", DELTA)):
        _, _, own = fitted("mlp", spec(precision=precision))
        assert math.isclose(own["prior_precision"], expected)
    tempered = model("mlp", spec(), weight={"factor": 0.1})
    fit = tempered.after_training(parameters(tempered), training_data("mlp"), small.streams(1))
    assert math.isclose(fit["fit/prior_precision"], 0.1 * DELTA), "what counts against the summed log-likelihood"
    assert tempered.fit_numbers(fit) == {"prior_precision": pytest.approx(0.1 * DELTA)}, "it goes into the record"


@pytest.mark.parametrize("changed", [{"weight": {"scaling": "batch"}}, {"divergence": None, "prior": None}])
def test_the_trained_precision_is_not_guessed(changed):
    made = model("mlp", spec(), **changed)
    with pytest.raises(NotSupported, match="precision 'prior' needs an objective with a Gaussian prior on the weights"):
        made.after_training(parameters(made), training_data("mlp"), small.streams(1))
    fit = model("mlp", spec(precision="evidence"), **changed)
    assert fit.after_training(parameters(fit), training_data("mlp"), small.streams(1))["fit/prior_precision"] > 0


@pytest.mark.parametrize("criterion", ["predictive", "expected"])
@pytest.mark.parametrize("predictive", ["glm", "probit", "weights"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("structure", ["kronecker", "last_layer"])
def test_validation_takes_the_lowest_loss_of_the_grid(structure, kind, predictive, criterion):
    if (kind, predictive) == ("mlp", "probit"):
        pytest.skip("for classes")
    grid = {"low": 0.01, "high": 1000.0, "steps": 6, "samples": 15, "criterion": criterion}
    x, y = (each[None] for each in training_data(kind, validation=True).validation[0])
    losses = {}
    for precision in (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0):
        made, family, own = fitted(kind, spec(structure=structure, predictive=predictive, precision=precision))
        if kind == "mlp" and predictive == "glm":
            mean, variance = made.fit.marginals(made.network, made.family, family, own, x)
            if criterion == "expected":
                log = (torch.distributions.Normal(mean, STD).log_prob(y) - variance / (2 * STD**2)).sum(-1)
            else:
                log = torch.distributions.Normal(mean, (variance + STD**2).sqrt()).log_prob(y).sum(-1)
        else:
            f = made.fit.functions(made.network, made.family, family, own, 15, small.streams(1).child("laplace"))(x)
            log = made.likelihood.log_prob(made.likelihood.init(1, torch.float64), f, y)
            log = log.mean(1) if criterion == "expected" else log.logsumexp(1) - math.log(f.shape[1])
        losses[precision] = -float(log.mean())
    _, _, own = fitted(kind, spec(structure=structure, predictive=predictive, precision="validation", **grid))
    assert math.isclose(own["prior_precision"], min(losses, key=losses.get), rel_tol=1e-9), losses


@pytest.mark.parametrize("kind", KINDS)
def test_features_of_the_validation_subset_are_computed_once(kind, monkeypatch):
    """The layers before the last run once, since no prior precision changes them."""
    start, passes = Network._start, []

    def counted(self, whole, at, x, ride):
        passes.append((len(self.layers), x.shape[1]))
        return start(self, whole, at, x, ride)

    monkeypatch.setattr(Network, "_start", counted)
    made = model(kind, spec(structure="last_layer", precision="validation", steps=5))
    train = training_data(kind, validation=True)
    made.after_training(parameters(made), train, small.streams(1))
    size = len(train.validation[0][0])
    assert size != train.x.shape[1], "else a pass at the training data is counted too"
    assert passes.count((len(made.network.layers), size)) == 1


def test_validation_counts_the_noise():
    """Residuals larger than the noise, which the variance of the function then makes up for in part."""
    train, grid = training_data("mlp", validation=True), np.geomspace(0.1, 1000, 25)
    made = model("mlp", spec(precision="validation", low=0.1, high=1000.0, steps=25))
    at, x = parameters(made), train.validation[0][0]
    y = made.network({name: at[name][:, None] for name in made.network.shapes}, x[None])[0, 0] + 0.4
    train = replace(train, validation=[(x, y)])
    losses = []
    for precision in grid:
        other = model("mlp", spec(precision=float(precision)))
        mean, variance = other.marginals(other.after_training(at, train, small.streams(1)), x[None])
        losses.append(-float(torch.distributions.Normal(mean, (variance + STD**2).sqrt()).log_prob(y).sum()))
    assert 0 < np.argmin(losses) < 24
    chosen = made.after_training(at, train, small.streams(1))["fit/prior_precision"]
    assert float(chosen) == pytest.approx(grid[np.argmin(losses)])


def test_validation_passes_over_precisions_whose_draws_overflow():
    train = training_data("cnn", validation=True)
    for high in (1.0, 1e-299):
        wide = spec(predictive="weights", precision="validation", low=1e-300, high=high, steps=2)
        made = model("cnn", wide)
        dead = {name: value * 0 for name, value in parameters(made).items()}  # no curvature but the last layer's
        if high < 1:
            with pytest.raises(FitFailed, match="no prior precision from 1e-300 to 1e-299 has a validation loss"):
                made.after_training(dead, train, small.streams(1))
        else:
            assert float(made.after_training(dead, train, small.streams(1))["fit/prior_precision"]) == 1


def test_validation_passes_over_precisions_without_a_posterior():
    made = model("cnn", spec(structure="full", precision="validation", low=1e-18, high=1.0, steps=2))
    fit = made.after_training(parameters(made), training_data("cnn", validation=True), small.streams(1))
    assert float(fit["fit/prior_precision"]) == 1


def test_validation_needs_a_validation_subset():
    made = model("mlp", spec(precision="validation"))
    with pytest.raises(ValueError, match="fit: expected validation data, found none"):
        made.after_training(parameters(made), training_data("mlp"), small.streams(1))


def test_matrices_that_do_not_fit_are_refused_before_training(monkeypatch):
    monkeypatch.setattr(posterior, "MOST", 30)
    with pytest.raises(ValueError, match="structure 'full': the matrix has 35 rows and columns .* more than 30"):
        model("mlp", spec(structure="full"))
    with pytest.raises(ValueError, match="a subnetwork of 31 weights: the matrix has 31 rows .* a smaller subnetwork"):
        model("cnn", {"name": "subnetwork_laplace", "size": 31})
    model("mlp", spec(structure="last_layer")), model("mlp", spec(structure="kronecker"))
    monkeypatch.setattr(posterior, "MOST", 11)
    with pytest.raises(ValueError, match="a factor of layer 'conv0' has 18 rows and columns .* choose 'diagonal'"):
        model("cnn", spec(structure="kronecker"))
    with pytest.raises(ValueError, match="structure 'last_layer': the matrix has 15 rows"):
        model("cnn", spec(structure="last_layer"))
    model("cnn", spec(structure="diagonal"))


def test_a_precision_that_is_not_positive_definite_fails_and_is_not_mended():
    made = model("cnn", spec(structure="full", precision=1e-18))
    with pytest.raises(
        FitFailed, match="162 weights with prior precision 1e-18 is not positive definite in double precision"
    ):
        made.after_training(parameters(made), training_data("cnn"), small.streams(1))
    with pytest.raises(FitFailed, match="2 weights with prior precision 1e-17 is not positive definite in double"):
        Dense().fitted({CURVATURE: torch.tensor([[1.0, 0.0], [0.0, 0.0]]).double()}, 1e-17)  # a factor exists
    made = model("cnn", spec(structure="full", precision=1e-5))
    fit = made.after_training(parameters(made), training_data("cnn"), small.streams(1))
    whole, _ = ggn("cnn", made)
    rebuilt = fit["fit/factor"][0] @ fit["fit/factor"][0].T - whole
    torch.testing.assert_close(rebuilt, 1e-5 * torch.eye(162, dtype=torch.float64), rtol=0, atol=1e-9)


@pytest.mark.parametrize("structure", ["full", "diagonal", "kronecker", "last_layer"])
def test_a_curvature_that_is_not_finite_fails(structure):
    made = model("mlp", spec(structure=structure))
    own = parameters(made)
    own["head.weight"] = own["head.weight"] * math.nan
    own["likelihood/rho"] = own["likelihood/rho"] * math.nan
    with pytest.raises(FitFailed, match="fit 'laplace': the curvature is not finite"):
        made.after_training(own, training_data("mlp"), small.streams(1))


def test_it_is_about_one_network():
    with pytest.raises(
        NotSupported, match="fit 'laplace' is about one network: expected family 'point', found 'mean_field'"
    ):
        model("mlp", spec(), family={"name": "mean_field"})
    with pytest.raises(ValueError, match="at most the 26 weights of the network's linear and conv.* found size 27"):
        model("mlp", {"name": "subnetwork_laplace", "size": 27})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"structure": "diag"}, "structure 'diag' is not known; did you mean 'diagonal'"),
        ({"precision": "prio"}, "precision 'prio' is not known; did you mean 'prior'"),
        ({"predictive": "gml"}, "predictive 'gml' is not known; did you mean 'glm'"),
        ({"precision": 0.0}, "expected a precision above 0, found 0.0"),
        ({"low": 2.0, "high": 1.0}, "expected low < high, found 2.0 and 1.0"),
        ({"low": 0.0}, "low: expected above 0, found 0.0"),
        ({"name": "subnetwork_laplace", "variances": "swa"}, "variances 'swa' is not known; did you mean 'swag'"),
        ({"name": "subnetwork_laplace", "size": 0}, "size: expected 1 or more, found 0"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        FITS.build(spec() | options)
