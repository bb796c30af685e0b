"""Laplace approximations about the network of MAP: ``w ~ N(w*, (H + delta I)^-1)`` (Immer et al. 2021, Daxberger et al.
2021).

H is the generalised Gauss-Newton matrix, or a part or an approximation of it; delta is the precision of MAP's prior
unless a table chooses another; functions are the network's linearisation about w*.
"""

from fvi_core.methods import Method, Parts, add

_MAP: Parts = {
    "family": {"name": "point"},
    "divergence": {"name": "weight_penalty"},
    "prior": {"name": "gaussian_weights", "variance": 1.0},
}
# cinquin2024 names "linearized Laplace [Immer et al., 2021]" and has no code. "All BNNs have ... fully-factorized
# Gaussian approximate posterior": so the diagonal. That delta is the trained prior's follows from its single prior
# scale.
LAPLACE = add(
    Method(
        "Laplace",
        "MAP, then the linearised network with the diagonal of the Gauss-Newton matrix",
        "cinquin2024",
        **_MAP,
        fit={"name": "laplace", "structure": "diagonal"},
    )
)
LAPLACE_FULL = add(
    Method(
        "Laplace (full)",
        "MAP, then the linearised network with the whole Gauss-Newton matrix",
        "",
        **_MAP,
        fit={"name": "laplace", "structure": "full"},
    )
)
# rudner2022's row BNN-LAPLACE has the digits of Immer et al. (2021) for a network of theirs, whose code predicts images
# with Kronecker factors and the linearised network.
LAPLACE_KRONECKER = add(
    Method(
        "Laplace (Kronecker)",
        "MAP, then the linearised network with Kronecker factors of the Gauss-Newton matrix",
        "rudner2022",
        **_MAP,
        fit={"name": "laplace", "structure": "kronecker"},
        aliases=("BNN-Laplace",),
    )
)
LAPLACE_LAST_LAYER = add(
    Method(
        "Laplace (last layer)",
        "MAP, then a Gaussian last layer with all of its Gauss-Newton matrix",
        "",
        **_MAP,
        fit={"name": "laplace", "structure": "last_layer"},
    )
)
# dirichlet2022 takes its numbers of this method from Daxberger et al. (2021), whose code chooses weights by SWAG's
# variances and divides logits (predictive "probit"); here the variances are those of the diagonal approximation,
# without further training.
SUBNETWORK_LAPLACE = add(
    Method(
        "Subnetwork Laplace",
        "MAP, then the linearised network with all of the Gauss-Newton matrix over its 1,000 most uncertain weights",
        "dirichlet2022",
        **_MAP,
        fit={"name": "subnetwork_laplace", "size": 1000},
    )
)
