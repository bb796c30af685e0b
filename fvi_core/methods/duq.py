"""van Amersfoort et al. (2020): deterministic uncertainty quantification."""

from fvi_core.methods import Method, add

DUQ = add(
    Method(
        "DUQ",
        "one network, kernel scores of features against centroids of the classes, penalty on gradients in the inputs",
        "rudner2022",
        family={"name": "centroids"},
        divergence={"name": "input_gradient"},
        weight={"scaling": "none", "factor": 0.05},
        likelihood={"name": "kernel_scores"},
    )
)
