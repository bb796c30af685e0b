"""pequignot2020: implicit variational inference in parameter and predictor space."""

from fvi_core.methods import Method, add

_HYPERNETWORK = {"name": "hypernetwork", "latent": 5, "hidden": [20, 40]}
_PRIOR = {"name": "gaussian_weights", "variance": 0.5}
_PREDICTOR = {"name": "nearest_neighbour_kl", "space": "predictor", "samples": 500}
_BOX = {"name": "uniform_box", "points": 200}

HMC = add(
    Method(
        "HMC",
        "Hamiltonian Monte Carlo over all weights, 100 chains (Neal 2011)",
        "pequignot2020",
        family={"name": "ensemble", "base": {"name": "samples"}, "size": 100},
        divergence={"name": "weight_penalty"},
        prior=_PRIOR,
        training={"name": "hmc", "samples": 10, "thinning": 15, "warmup": 4, "leapfrogs": 100},
    )
)
NN_HYVI = add(
    Method(
        "NN-HyVI",
        "hypernetwork, nearest-neighbour KL between network parameters (eq. 8)",
        "pequignot2020",
        family=_HYPERNETWORK,
        divergence={"name": "nearest_neighbour_kl", "space": "parameter", "samples": 500},
        prior=_PRIOR,
    )
)
FUNN_HYVI = add(
    Method(
        "FuNN-HyVI",
        "hypernetwork, nearest-neighbour KL between function values (eq. 9)",
        "pequignot2020",
        family=_HYPERNETWORK,
        divergence=_PREDICTOR,
        prior=_PRIOR,
        context=_BOX,
    )
)
FUNN_MFVI = add(
    Method(
        "FuNN-MFVI",
        "mean-field Gaussian weights, nearest-neighbour KL between function values",
        "pequignot2020",
        family={"name": "mean_field"},
        divergence=_PREDICTOR,
        prior=_PRIOR,
        context=_BOX,
    )
)
