"""Khan et al. (2018), Osawa et al. (2019): natural gradients for mean-field weights."""

from fvi_core.methods import Method, add

VOGN = add(
    Method(
        "VOGN",
        "mean-field Gaussian weights by natural gradients, precision from single examples' squared gradients",
        "rudner2022",
        family={"name": "mean_field"},
        divergence={"name": "weight_kl"},
        prior={"name": "gaussian_weights", "variance": 1.0},
        training={"name": "vogn", "epochs": 100, "batch_size": 128},
    )
)
