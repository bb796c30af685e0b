"""cinquin2024: generalised function-space variational inference with Gaussian process priors."""

from fvi_core.methods import Method, add

GFSVI = add(
    Method(
        "GFSVI",
        "linearised network, regularised KL to a Gaussian process (eq. 3.1)",
        "cinquin2024",
        family={"name": "linearised_mean_field"},
        divergence={"name": "regularised_kl", "jacobian": "full", "gamma": 1e-10},
        prior={"name": "gaussian_process", "kernel": {"name": "rbf", "ard": False}},
        context={"name": "uniform_box", "points": 500},
    )
)
