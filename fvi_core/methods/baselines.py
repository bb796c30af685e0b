"""Baselines of all five papers."""

from fvi_core.methods import Method, add

MAP = add(
    Method(
        "MAP",
        "one network, Gaussian prior on its weights",
        "all",
        family={"name": "point"},
        divergence={"name": "weight_penalty"},
        prior={"name": "gaussian_weights", "variance": 1.0},
    )
)
MFVI = add(
    Method(
        "MFVI",
        "mean-field Gaussian weights, weight-space KL (Blundell et al. 2015)",
        "all",
        family={"name": "mean_field"},
        divergence={"name": "weight_kl"},
        prior={"name": "gaussian_weights", "variance": 1.0},
    )
)
MFVI_TEMPERED = add(
    Method(
        "MFVI (tempered)",
        "MFVI with a down-weighted KL",
        "rudner2022",
        family={"name": "mean_field"},
        divergence={"name": "weight_kl"},
        prior={"name": "gaussian_weights", "variance": 1.0},
        weight={"scaling": "elbo", "factor": 0.1},
    )
)
MC_DROPOUT = add(
    Method(
        "MC Dropout",
        "dropout in training and prediction (Gal and Ghahramani 2016)",
        "all",
        family={"name": "dropout", "rate": 0.1},
    )
)
DEEP_ENSEMBLE = add(
    Method(
        "Deep Ensemble",
        "independently trained networks (Lakshminarayanan et al. 2017)",
        "all",
        family={"name": "ensemble", "base": {"name": "point"}, "size": 5},
        aliases=("Ensemble",),
    )
)
FBNN = add(
    Method(
        "FBNN",
        "mean-field Gaussian weights, spectral Stein estimate of the KL to a Gaussian process (Sun et al. 2019)",
        "cinquin2024",
        family={"name": "mean_field", "log_var_init": [-4.0, -4.0]},
        divergence={"name": "spectral_kl", "noise": 0.01, "share": 0.99},
        prior={"name": "gaussian_process", "kernel": {"name": "rbf", "ard": False}},
        context={
            "name": "mixture",
            "parts": [{"name": "training_batch"}, {"name": "uniform_box", "points": 5}],
        },
        weight={"scaling": "batch", "factor": 1.0},
        aliases=("FVI", "FVI (Sun et al. 2019)"),
    )
)
VIP = add(
    Method(
        "VIP",
        "regression on features that are prior functions of a network, alpha-energy (Ma et al. 2019)",
        "cinquin2024",
        family={"name": "implicit_process", "draws": 20},
        divergence={"name": "weight_kl"},
        prior={"name": "gaussian_weights", "variance": 1.0},
        weight={"scaling": "elbo", "factor": 1.0, "alpha": 0.5},
    )
)
GP = add(
    Method(
        "GP",
        "exact Gaussian process regression, hyper-parameters by marginal likelihood; a reference",
        "cinquin2024",
        family={"name": "exact_gp", "kernel": {"name": "rbf", "ard": False}},
    )
)
SPARSE_GP = add(
    Method(
        "Sparse GP",
        "Gaussian process of variational values at trained inducing points (Hensman et al. 2013); a reference",
        "cinquin2024",
        family={"name": "sparse_gp", "kernel": {"name": "rbf", "ard": False}, "points": 100},
        divergence={"name": "inducing_kl"},
        aliases=("SVGP",),
    )
)
GWI = add(
    Method(
        "GWI",
        "Gaussian Wasserstein inference: a network as mean, a sparse process's covariance (Wild et al. 2022)",
        "cinquin2024",
        family={"name": "gwi", "kernel": {"name": "rbf"}, "points": 100},
        divergence={"name": "gaussian_wasserstein"},
        context={"name": "training_batch", "points": 100},
    )
)
