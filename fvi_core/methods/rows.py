"""Methods of this project: the baselines of all five papers, then the papers' own methods and their variants."""

from __future__ import annotations

from dataclasses import replace

from fvi_core.methods.method import Method, Parts, fitted_name

_WEIGHTS = {"name": "gaussian_weights", "variance": 1.0}
_KL: Parts = {"divergence": {"name": "weight_kl"}, "prior": _WEIGHTS}
_MAP: Parts = {"family": {"name": "point"}, "divergence": {"name": "weight_penalty"}, "prior": _WEIGHTS}
_MFVI: Parts = {"family": {"name": "mean_field"}, **_KL}
_RBF = {"name": "rbf", "ard": False}

MAP = Method("MAP", "one network, Gaussian prior on its weights", "all", **_MAP)
MFVI = Method("MFVI", "mean-field Gaussian weights, weight-space KL (Blundell et al. 2015)", "all", **_MFVI)
MC_DROPOUT = Method(
    "MC Dropout",
    "dropout in training and prediction (Gal and Ghahramani 2016)",
    "all",
    family={"name": "dropout", "rate": 0.1},
)
DEEP_ENSEMBLE = Method(
    "Deep Ensemble",
    "independently trained networks (Lakshminarayanan et al. 2017)",
    "all",
    family={"name": "ensemble", "base": {"name": "point"}, "size": 5},
    aliases=("Ensemble",),
)
BASELINES = (
    MAP,
    MFVI,
    Method(
        "MFVI (tempered)",
        "MFVI with a down-weighted KL",
        "rudner2022",
        **_MFVI,
        weight={"scaling": "elbo", "factor": 0.1},
    ),
    MC_DROPOUT,
    DEEP_ENSEMBLE,
    Method(
        "FBNN",
        "mean-field Gaussian weights, spectral Stein estimate of the KL to a Gaussian process (Sun et al. 2019)",
        "cinquin2024",
        family={"name": "mean_field", "log_var_init": [-4.0, -4.0]},
        divergence={"name": "spectral_kl", "noise": 0.01, "share": 0.99},
        prior={"name": "gaussian_process", "kernel": _RBF},
        context={"name": "mixture", "parts": [{"name": "training_batch"}, {"name": "uniform_box", "points": 5}]},
        weight={"scaling": "batch", "factor": 1.0},
        aliases=("FVI", "FVI (Sun et al. 2019)"),
    ),
    Method(
        "VIP",
        "regression on features that are prior functions of a network, alpha-energy (Ma et al. 2019)",
        "cinquin2024",
        family={"name": "implicit_process", "draws": 20},
        **_KL,
        weight={"scaling": "elbo", "factor": 1.0, "alpha": 0.5},
    ),
    Method(
        "GP",
        "exact Gaussian process regression, hyper-parameters by marginal likelihood; a reference",
        "cinquin2024",
        family={"name": "exact_gp", "kernel": _RBF},
    ),
    Method(
        "Sparse GP",
        "Gaussian process of variational values at trained inducing points (Hensman et al. 2013); a reference",
        "cinquin2024",
        family={"name": "sparse_gp", "kernel": _RBF, "points": 100},
        divergence={"name": "inducing_kl"},
        aliases=("SVGP",),
    ),
    Method(
        "GWI",
        "Gaussian Wasserstein inference: a network as mean, a sparse process's covariance (Wild et al. 2022)",
        "cinquin2024",
        family={"name": "gwi", "kernel": {"name": "rbf"}, "points": 100},
        divergence={"name": "gaussian_wasserstein"},
        context={"name": "training_batch", "points": 100},
    ),
)

GFSVI = Method(
    "GFSVI",
    "linearised network, regularised KL to a Gaussian process (eq. 3.1)",
    "cinquin2024",
    family={"name": "linearised_mean_field"},
    divergence={"name": "regularised_kl", "jacobian": "full", "gamma": 1e-10},
    prior={"name": "gaussian_process", "kernel": _RBF},
    context={"name": "uniform_box", "points": 500},
)

# dirichlet2022: eq. 4 is an expectation over the index set, and App. B.1 divides both the batch's summed log-likelihood
# and the divergence by the batch size: scaling "batch". The sum over the index set instead would weigh each point's KL
# as much as its likelihood and hold the true class near probability 2/(K + 1), far from the confidence that the paper's
# tables imply.
_FVI: Parts = {
    "divergence": {"name": "dirichlet_kl", "smoothing": 1e-4, "index_set": "mean"},
    "prior": {"name": "dirichlet", "concentrations": 1.0},
    "context": {"name": "training_batch"},
    "weight": {"scaling": "batch", "factor": 1.0},
}
_RADIAL = {"name": "radial", "rho_init": -5.0, "layers": "hidden"}
_RANK1 = {"name": "rank1", "size": 4, "rho_init": -3.0, "layers": "hidden"}

RANK1 = Method(
    "Rank1",
    "members that share weights up to Gaussian rank-1 factors, KL of the factors (Dusenberry et al. 2020)",
    "dirichlet2022",
    family=_RANK1,
    divergence={"name": "weight_kl"},
    prior={"name": "gaussian_factors", "mean": 1.0, "variance": 0.01},
)
DIRICHLET = (
    Method("MAP fVI", "one network, Dirichlet KL with precision N", "dirichlet2022", family={"name": "point"}, **_FVI),
    Method("MC Dropout fVI", "dropout, Dirichlet KL", "dirichlet2022", family=MC_DROPOUT.family, **_FVI),
    Method(
        "Ensemble fVI",
        "ensemble trained jointly, Dirichlet KL with Minka's precision over its members",
        "dirichlet2022",
        family={**DEEP_ENSEMBLE.family, "joint": True},
        **_FVI,
    ),
    Method(
        "Radial",
        "radial hidden weights, Gaussian weight-space KL in closed form (Farquhar et al. 2020; App. F)",
        "dirichlet2022",
        family={**_RADIAL, "kl": "gaussian"},
        divergence={"name": "weight_kl"},
        prior={"name": "gaussian_weights", "variance": 0.01},
    ),
    Method(
        "Radial fVI",
        "radial hidden weights, Dirichlet KL with precision N",
        "dirichlet2022",
        family=_RADIAL,
        **_FVI,
    ),
    RANK1,
    Method(
        "Rank1 fVI",
        "members that share weights up to Gaussian rank-1 factors, Dirichlet KL with precision N",
        "dirichlet2022",
        family=_RANK1,
        **_FVI,
    ),
)

# van Amersfoort et al. (2020): deterministic uncertainty quantification
DUQ = Method(
    "DUQ",
    "one network, kernel scores of features against centroids of the classes, penalty on gradients in the inputs",
    "rudner2022",
    family={"name": "centroids"},
    divergence={"name": "input_gradient"},
    weight={"scaling": "none", "factor": 0.05},
    likelihood={"name": "kernel_scores"},
)

# rudner2021 and rudner2022: function-space variational inference by linearisation
_FSVI: Parts = {
    "divergence": {"name": "gaussian_kl", "jacobian": "last_layer", "covariance": "full", "sets": 1},
    "prior": {**_WEIGHTS, "features": "initial", "jacobian": "last_layer"},
    "context": {"name": "uniform_box", "points": 32},
}
FSVI = Method(
    "FSVI",
    "full-covariance Gaussian KL of the last layer against the pushforward of a weight prior (eq. 14-17)",
    "rudner2022",
    family={"name": "mean_field", "log_var_init": [-10.0, -8.0]},
    **_FSVI,
    aliases=("TFSVI", "FSVI (rudner2022)"),
)
MFVI_RADIAL = Method(
    "MFVI (radial)",
    "radial weights, weight-space KL (Farquhar et al. 2020)",
    "rudner2022",
    family={"name": "radial", "rho_init": -4.0},
    **_KL,
)
RUDNER = (
    Method(
        "FSVI (rudner2021)",
        "diagonal Gaussian KL over all layers against independent Gaussian function values (alg. 1)",
        "rudner2021",
        family={"name": "mean_field"},
        divergence={"name": "gaussian_kl", "jacobian": "full", "covariance": "diagonal", "stop_gradient": True},
        prior={"name": "gaussian_functions", "variance": 10.0},
        context={"name": "uniform_box", "points": 32},
    ),
    FSVI,
    MFVI_RADIAL,
    Method(
        "SWAG",
        "Gaussian over the iterates of stochastic gradient descent (Maddox et al. 2019)",
        "rudner2022",
        family={"name": "swag", "rank": 20, "start": 0.8},
    ),
    Method(
        "FSVI Ensemble",
        "independently trained FSVI members",
        "rudner2022",
        family={"name": "ensemble", "base": FSVI.family, "size": 5},
        **_FSVI,
    ),
)

# ensembles of independently trained members of one family, as Band et al. (2021) compare them
ENSEMBLES = tuple(
    Method(
        f"{member.name} Ensemble",
        f"independently trained networks of {member.name}",
        "",
        family={"name": "ensemble", "base": member.family, "size": 3},
        divergence=member.divergence,
        prior=member.prior,
        weight=member.weight,
    )
    for member in (MAP, MFVI, MC_DROPOUT, MFVI_RADIAL, RANK1)
)

# Laplace approximations about the network of MAP: w ~ N(w*, (H + delta I)^-1) (Immer et al. 2021, Daxberger et al.
# 2021). H is the generalised Gauss-Newton matrix, or a part or an approximation of it; delta is the precision of MAP's
# prior unless a table chooses another; functions are the network's linearisation about w*.
LAPLACE = (
    # cinquin2024 names "linearized Laplace [Immer et al., 2021]" and has no code. "All BNNs have ... fully-factorized
    # Gaussian approximate posterior": so the diagonal. That delta is the trained prior's follows from its single prior
    # scale.
    Method(
        "Laplace",
        "MAP, then the linearised network with the diagonal of the Gauss-Newton matrix",
        "cinquin2024",
        **_MAP,
        fit={"name": "laplace", "structure": "diagonal"},
    ),
    Method(
        "Laplace (full)",
        "MAP, then the linearised network with the whole Gauss-Newton matrix",
        "",
        **_MAP,
        fit={"name": "laplace", "structure": "full"},
    ),
    # rudner2022's row BNN-LAPLACE has the digits of Immer et al. (2021) for a network of theirs, whose code predicts
    # images with Kronecker factors and the linearised network.
    Method(
        "Laplace (Kronecker)",
        "MAP, then the linearised network with Kronecker factors of the Gauss-Newton matrix",
        "rudner2022",
        **_MAP,
        fit={"name": "laplace", "structure": "kronecker"},
        aliases=("BNN-Laplace",),
    ),
    Method(
        "Laplace (last layer)",
        "MAP, then a Gaussian last layer with all of its Gauss-Newton matrix",
        "",
        **_MAP,
        fit={"name": "laplace", "structure": "last_layer"},
    ),
    # dirichlet2022 takes its numbers of this method from Daxberger et al. (2021), whose code chooses weights by SWAG's
    # variances and divides logits (predictive "probit"); here the variances are those of the diagonal approximation,
    # without further training.
    Method(
        "Subnetwork Laplace",
        "MAP, then the linearised network with all of the Gauss-Newton matrix over its 1,000 most uncertain weights",
        "dirichlet2022",
        **_MAP,
        fit={"name": "subnetwork_laplace", "size": 1000},
    ),
)

# pequignot2020: implicit variational inference in parameter and predictor space
_HYPERNETWORK = {"name": "hypernetwork", "latent": 5, "hidden": [20, 40]}
_HALF = {"name": "gaussian_weights", "variance": 0.5}
_PREDICTOR: Parts = {
    "divergence": {"name": "nearest_neighbour_kl", "space": "predictor", "samples": 500},
    "prior": _HALF,
    "context": {"name": "uniform_box", "points": 200},
}
PEQUIGNOT = (
    Method(
        "HMC",
        "Hamiltonian Monte Carlo over all weights, 100 chains (Neal 2011)",
        "pequignot2020",
        family={"name": "ensemble", "base": {"name": "samples"}, "size": 100},
        divergence={"name": "weight_penalty"},
        prior=_HALF,
        training={"name": "hmc", "samples": 10, "thinning": 15, "warmup": 4, "leapfrogs": 100},
    ),
    Method(
        "NN-HyVI",
        "hypernetwork, nearest-neighbour KL between network parameters (eq. 8)",
        "pequignot2020",
        family=_HYPERNETWORK,
        divergence={"name": "nearest_neighbour_kl", "space": "parameter", "samples": 500},
        prior=_HALF,
    ),
    Method(
        "FuNN-HyVI",
        "hypernetwork, nearest-neighbour KL between function values (eq. 9)",
        "pequignot2020",
        family=_HYPERNETWORK,
        **_PREDICTOR,
    ),
    Method(
        "FuNN-MFVI",
        "mean-field Gaussian weights, nearest-neighbour KL between function values",
        "pequignot2020",
        family={"name": "mean_field"},
        **_PREDICTOR,
    ),
)

# Logits divided by one temperature, fitted on validation data after training (Guo et al. 2017). These methods share the
# trainings of the methods that they are named for. Of an ensemble: one temperature for all members, under the mean of
# their probabilities (Rahaman and Thiery 2021).
_SCALED = {"name": "temperature", "held_out": True}
TEMPERATURE = tuple(
    replace(
        base,
        name=fitted_name(base.name, _SCALED),
        description=f"{base.name}, then its logits divided by a temperature fitted on validation data",
        paper="",
        fit=_SCALED,
        aliases=(),
        trained_as=base.name,
    )
    for base in (MAP, MFVI, MC_DROPOUT, DEEP_ENSEMBLE)
)

# Khan et al. (2018), Osawa et al. (2019)
VOGN = Method(
    "VOGN",
    "mean-field Gaussian weights by natural gradients, precision from single examples' squared gradients",
    "rudner2022",
    **_MFVI,
    training={"name": "vogn", "epochs": 100, "batch_size": 128},
)

ROWS = (*BASELINES, GFSVI, *DIRICHLET, DUQ, *RUDNER, *ENSEMBLES, *LAPLACE, *PEQUIGNOT, *TEMPERATURE, VOGN)
