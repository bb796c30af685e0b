"""Ensembles of independently trained members of one family, as Band et al. (2021) compare them."""

from fvi_core.methods import Method, add
from fvi_core.methods.baselines import MAP, MC_DROPOUT, MFVI
from fvi_core.methods.dirichlet import RANK1
from fvi_core.methods.rudner import MFVI_RADIAL

SIZE = 3


def _ensemble(member: Method) -> Method:
    return add(
        Method(
            f"{member.name} Ensemble",
            f"independently trained networks of {member.name}",
            "",
            family={"name": "ensemble", "base": member.family, "size": SIZE},
            divergence=member.divergence,
            prior=member.prior,
            weight=member.weight,
        )
    )


MAP_ENSEMBLE = _ensemble(MAP)
MFVI_ENSEMBLE = _ensemble(MFVI)
MC_DROPOUT_ENSEMBLE = _ensemble(MC_DROPOUT)
RADIAL_ENSEMBLE = _ensemble(MFVI_RADIAL)
RANK1_ENSEMBLE = _ensemble(RANK1)
