"""What decides how FSVI, and MFVI, fare on photographs of the retina: the prior's covariance, and how far weights vary
at the start."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import retina_mnist, retinopathy
from benchmarks.tables.spec import Column, Parts, Recipe, Row, Table, merge

_RETINA_KL: Parts = {
    "divergence": {"covariance": "diagonal"},
    "prior": {"name": "gaussian_functions", "variance": 15.3595},
    "weight": {"scaling": "context"},
}
_NARROW: dict[str, Parts] = {
    "FSVI": {"family": {"log_var_init": [-20.0, -18.0]}},
    "MFVI": {"family": {"log_var_init": [-14.0, -13.7]}},
}
_DIVERGENCES: dict[str, Parts] = {
    "": {},
    "jitter .01": {"divergence": {"jitter": 0.01}},
    "diagonal": {"divergence": {"covariance": "diagonal"}},
    "features of the current network": {"prior": {"features": "current"}},
    "KL of RETINA": _RETINA_KL,
    "KL and variances of RETINA": merge(_RETINA_KL, _NARROW["FSVI"]),
}
VARIANCES = "variances of RETINA"
_SHORT_ROWS = tuple(
    Row(f"{method}, {variant}" if variant else method, None, method, variant)
    for method in ("FSVI", "MFVI")
    for variant in ("", VARIANCES)
)


def _small(row: Row, dataset: str, protocol: str) -> Recipe:
    """FSVI of table retina-mnist, with another divergence."""
    first = retina_mnist.recipe(replace(row, variant=""), dataset, protocol)
    return replace(first, parts=merge(first.parts, _DIVERGENCES[row.variant]))


def _large(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """A row of table retinopathy, with other variances of weights at the start."""
    table = retinopathy.TABLES[0]
    first = table.recipe(replace(row, variant=""), dataset, protocol)
    if first is None or not row.variant:
        return first
    return replace(first, parts=merge(first.parts, _NARROW[row.made_by]))


def _columns(table: Table, dataset: str, *metrics: str) -> tuple[Column, ...]:
    return tuple(
        c for c in table.columns if (c.cell.dataset, c.cell.condition) == (dataset, "") and c.cell.metric in metrics
    )


_MEASURED = ("auroc", "balanced_accuracy", "nll", "ece", "sensitivity_at_80_specificity")
TABLES = (
    Table(
        "retina-mnist-fsvi",
        "RetinaMNIST: FSVI by its divergence",
        (
            *(Row(f"FSVI, {variant}" if variant else "FSVI", None, "FSVI", variant) for variant in _DIVERGENCES),
            Row("MAP", None, "MAP"),
        ),
        _columns(retina_mnist.TABLE, "retina_mnist", *_MEASURED),
        _small,
        protocols=("paper", "smoke"),
        notes={
            "paper": (
                "No paper: the settings of table retina-mnist, and nothing is chosen by these numbers. The row FSVI is "
                "that table's: KL of the last layer with full covariance at 10 images of the training batch, prior "
                "N(0, 1) of the last layer's weights under the features of the initial network, jitter 1e-6.",
                "KL of RETINA: diagonal, a variance of 15.4 of every function value, divided by the numbers of context "
                "points and of images in the batch; its variances: exp(-20) to exp(-18) at the start.",
            )
        },
        reductions=retina_mnist.TABLE.reductions,
    ),
    Table(
        "retinopathy-fsvi",
        "Diabetic retinopathy: FSVI and MFVI by the variances of weights at the start",
        _SHORT_ROWS,
        _columns(retinopathy.TABLES[0], "aptos", *_MEASURED),
        _large,
        protocols=("short", "smoke"),
        default_protocol="short",
        notes={
            "short": (
                "The settings of table retinopathy, and nothing is chosen by these numbers. There log-variances begin "
                f"at -10 to -8; {VARIANCES}: at -20 to -18 for FSVI, at -14 to -13.7 for MFVI, as that paper's code "
                "has them for its ResNet-50.",
            )
        },
        reductions={protocol: retinopathy.REDUCTIONS[protocol] for protocol in ("short", "smoke")},
    ),
)
