"""Methods whose logits are divided by one temperature, fitted on validation data after training (Guo et al. 2017).

They share the trainings of the methods that they are named for.
"""

from dataclasses import replace

from fvi_core.methods import Method, add, fitted_name
from fvi_core.methods.baselines import DEEP_ENSEMBLE, MAP, MC_DROPOUT, MFVI

FIT = {"name": "temperature", "held_out": True}


def _scaled(base: Method) -> Method:
    return add(
        replace(
            base,
            name=fitted_name(base.name, FIT),
            description=f"{base.name}, then its logits divided by a temperature fitted on validation data",
            paper="",
            fit=FIT,
            aliases=(),
            trained_as=base.name,
        )
    )


MAP_TEMPERATURE = _scaled(MAP)
MFVI_TEMPERATURE = _scaled(MFVI)
MC_DROPOUT_TEMPERATURE = _scaled(MC_DROPOUT)
# One temperature for all members, under the mean of their probabilities (Rahaman and Thiery 2021).
DEEP_ENSEMBLE_TEMPERATURE = _scaled(DEEP_ENSEMBLE)
