"""Every method of the catalogue on a module of attention and tokens, which no layer of this package is."""

import pytest
import torch

import fvi_core as fvi
from fvi_core.families.base import NotSupported
from fvi_core.methods import catalogue
from tests.fvi_core.networks.modules import KINDS

REFUSED = {
    "GP": "needs Gaussian noise, which likelihood 'categorical' has not",
    "DUQ": "inputs are whole numbers",
    **dict.fromkeys(("Rank1", "Rank1 Ensemble", "Rank1 fVI"), "no linear or convolutional layer has factors"),
    "VOGN": "needs linear and convolutional layers, found Opaque",
}
OPTIONS = {
    "FBNN": {"samples": 4},
    "HMC": {
        "epochs": None,
        "family": {"size": 2},
        "training": {"samples": 4, "thinning": 1, "leapfrogs": 2, "map_steps": 2},
    },
    "Subnetwork Laplace": {"fit": {"size": 10}},
}
IMAGES = ("rotated_batch", "images", "random_monochrome")


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("method", catalogue())
def test_a_method_trains_and_predicts_or_says_why_not(method):
    make, inputs, _ = KINDS["transformer"]
    x, y = inputs(12), torch.arange(12) % 3
    options = {"epochs": 1, "validation": (x, y), "progress": False, **OPTIONS.get(method, {})}
    context = catalogue()[method].context
    if context and context["name"] in IMAGES:
        options["context"] = {"name": "training_batch"}
    if method in REFUSED:
        with pytest.raises((NotSupported, ValueError), match=REFUSED[method]):
            fvi.fit(make, (x, y), method, **options)
        return
    found = fvi.fit(make, (x, y), method, **options).predict(x, samples=4)
    assert found.values.shape[1:] == (12, 3) and torch.isfinite(found.values).all()
    torch.testing.assert_close(found.probabilities.sum(-1), torch.ones(12))
