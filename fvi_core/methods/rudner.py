"""rudner2021 and rudner2022: function-space variational inference by linearisation."""

from fvi_core.methods import Method, Parts, add

FSVI_2021 = add(
    Method(
        "FSVI (rudner2021)",
        "diagonal Gaussian KL over all layers against independent Gaussian function values (alg. 1)",
        "rudner2021",
        family={"name": "mean_field"},
        divergence={"name": "gaussian_kl", "jacobian": "full", "covariance": "diagonal", "stop_gradient": True},
        prior={"name": "gaussian_functions", "variance": 10.0},
        context={"name": "uniform_box", "points": 32},
    )
)
_FSVI: Parts = {
    "family": {"name": "mean_field", "log_var_init": [-10.0, -8.0]},
    "divergence": {"name": "gaussian_kl", "jacobian": "last_layer", "covariance": "full", "sets": 1},
    "prior": {"name": "gaussian_weights", "variance": 1.0, "features": "initial", "jacobian": "last_layer"},
    "context": {"name": "uniform_box", "points": 32},
}
FSVI = add(
    Method(
        "FSVI",
        "full-covariance Gaussian KL of the last layer against the pushforward of a weight prior (eq. 14-17)",
        "rudner2022",
        **_FSVI,
        aliases=("TFSVI", "FSVI (rudner2022)"),
    )
)
MFVI_RADIAL = add(
    Method(
        "MFVI (radial)",
        "radial weights, weight-space KL (Farquhar et al. 2020)",
        "rudner2022",
        family={"name": "radial", "rho_init": -4.0},
        divergence={"name": "weight_kl"},
        prior={"name": "gaussian_weights", "variance": 1.0},
    )
)
SWAG = add(
    Method(
        "SWAG",
        "Gaussian over the iterates of stochastic gradient descent (Maddox et al. 2019)",
        "rudner2022",
        family={"name": "swag", "rank": 20, "start": 0.8},
    )
)
FSVI_ENSEMBLE = add(
    Method(
        "FSVI Ensemble",
        "independently trained FSVI members",
        "rudner2022",
        family={"name": "ensemble", "base": _FSVI["family"], "size": 5},
        divergence=_FSVI["divergence"],
        prior=_FSVI["prior"],
        context=_FSVI["context"],
    )
)
