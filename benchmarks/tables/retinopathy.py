"""Diabetic retinopathy (rudner2022 sec. 5.3, RETINA of Band et al. 2021): country shift, also named after its finding,
and severity shift. Protocol ``paper`` is made for a GPU and needs a user's copy of the images.

Tables ``-fsvi`` vary settings that decide the numbers of FSVI and MFVI on photographs of the retina: covariance of the
prior, variance of the initial weights.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import retina
from benchmarks.tables.recipes import Parts, Recipe, layered, seeds
from benchmarks.tables.retina import COUNTRY, MASK_ONLY, ROWS, SEVERITY
from benchmarks.tables.spec import Cell, Column, Row, Table

SHIFTS = {"eyepacs": ("aptos", "idrid"), "aptos": ("eyepacs", "idrid")}
NAMES = {"eyepacs": "EyePACS", "aptos": "APTOS", "idrid": "IDRiD"}
_SEEDS = {"paper": 6, "short": 5, "smoke": 1}
_SAMPLES = {"paper": 5, "short": 5, "smoke": 2}
_MASK: Parts = {
    "network": {"name": "mlp", "hidden": []},
    "prior": {"variance": 1.0},
    "training": {
        "epochs": 30,
        "batch_size": 64,
        "optimiser": {"name": "adam", "lr": 0.002},
        "augment": {"crop": 0, "flip": False},
    },
}


def _member(row: Row) -> str:
    return row.made_by.removesuffix(" Ensemble")


def _of_members(row: Row, own: Parts) -> Parts:
    """Return a member's parts as a row's, grouped in an ensemble of three if the row is one."""
    return own if row.made_by == _member(row) else own | {"family": {"size": 3, "base": own.get("family", {})}}


def _paper(row: Row, task: str) -> Parts:
    member = _member(row)
    parts: Parts = {"network": retina.network(member), "training": retina.training(member, task)}
    if member != "FSVI":
        parts["likelihood"] = {"class_weights": "batch"}
    return parts | _of_members(row, retina.own(member, task, retina.CORES))


def _short(row: Row, task: str) -> Parts:
    member = _member(row)
    training = {
        "epochs": 15,
        "batch_size": 32,
        "optimiser": {"name": "adam", "lr": 0.002},
        "schedule": {"name": "one_cycle"},
        "augment": {"crop": 4, "flip": True},
    }
    own = retina.own(member, task) if member in ("FSVI", "MFVI") else {}
    return {"network": {"name": "resnet50", "width": 16}, "training": training} | _of_members(row, own)


def _recipe(task: str, finding: str, row: Row, dataset: str, protocol: str) -> Recipe | None:
    """RETINA's parts under ``paper``, small ones on APTOS under ``short``."""
    if protocol == "short" and dataset != "aptos":
        return None
    side = 512 if protocol == "paper" else 64
    name = finding if task != SEVERITY else SEVERITY
    if row.variant == MASK_ONLY:
        own = _MASK
    else:
        own = _paper(row, task) if protocol == "paper" else _short(row, task)
    parts = layered({"likelihood": {"name": "categorical"}}, own)
    if protocol == "smoke":
        narrow = {} if row.variant == MASK_ONLY else {"network": {"width": 2}}
        parts = layered(parts, narrow | {"training": {"epochs": 1}})
    outline = "outline" if name == "moderate" else f"outline-{name}"
    samples = _SAMPLES[protocol] * (3 if row.made_by != _member(row) else 1)
    sets = [f"shift-{other}" for other in SHIFTS[dataset]] if task != SEVERITY else ["shift-severity"]
    return Recipe(
        parts,
        seeds(_SEEDS[protocol]),
        outline if row.variant == MASK_ONLY else f"{name}-{side}",
        samples=max(samples, 4) if "Rank1" in row.made_by else samples,
        sets=("test", *sets),
    )


REDUCTIONS = {
    "short": "trained on APTOS at 64 px, shifted to 960 images of EyePACS and to IDRiD, 15 epochs, 5 seeds",
    "smoke": "64 px, ResNet-50 of 2 channels, 1 epoch, 1 seed, 2 samples: the numbers mean nothing",
}
_MEASURES = (
    ("auroc", "AUROC %", 100, 1),
    ("balanced_accuracy", "balanced accuracy %", 100, 1),
    ("nll", "NLL", 1, 3),
    ("ece", "ECE", 1, 3),
    ("sensitivity_at_80_specificity", "sensitivity %", 100, 1),
    ("referral_auroc_area", "referral AUROC %", 100, 1),
    ("referral_accuracy_area", "referral accuracy %", 100, 1),
)


def _columns(datasets: tuple[str, ...], task: str) -> tuple[Column, ...]:
    columns = []
    for dataset in datasets:
        places = {"": NAMES[dataset]}
        if task != SEVERITY:
            for other in SHIFTS[dataset]:
                places[f"shift=country;to={other}"] = f"{NAMES[dataset]} to {NAMES[other]}"
        for condition, where in places.items():
            columns += [
                Column(Cell(dataset, condition, metric), f"{where} {label}", None, scale, digits)
                for metric, label, scale, digits in _MEASURES
            ]
        joint = "severity" if task == SEVERITY else f"country;to={SHIFTS[dataset][0]}"
        where = NAMES[dataset] + ("" if task == SEVERITY else f" and {NAMES[SHIFTS[dataset][0]]}")
        for metric, label in (("referral_accuracy_area", "accuracy"), ("referral_auroc_area", "AUROC")):
            cell = Cell(dataset, f"joint;shift={joint};balanced", metric)
            columns.append(Column(cell, f"{where} joint referral {label} %", None, 100, 1))
    return tuple(columns)


def _table(name: str, title: str, task: str, finding: str, datasets: tuple[str, ...], short: bool = False) -> Table:
    protocols = ("paper", "short", "smoke") if short else ("paper", "smoke")
    return Table(
        name,
        f"Diabetic retinopathy, {title}",
        ROWS,
        _columns(datasets, task),
        lambda row, dataset, protocol: _recipe(task, finding, row, dataset, protocol),
        protocols=protocols,
        reductions={protocol: text for protocol, text in REDUCTIONS.items() if protocol in protocols},
        gpu=("paper",),
    )


_SHIFTED = (
    _table(
        "retinopathy",
        "sight-threatening: trained on EyePACS or APTOS, tested there and in other countries",
        COUNTRY,
        "moderate",
        ("eyepacs", "aptos"),
        True,
    ),
    _table(
        "retinopathy-mild",
        "any grade: trained on EyePACS, tested there and in other countries",
        COUNTRY,
        "mild",
        ("eyepacs",),
    ),
    _table(
        "retinopathy-severity",
        "sight-threatening: trained on EyePACS up to grade 2, tested there and on grades 3 and 4",
        SEVERITY,
        "moderate",
        ("eyepacs",),
    ),
)


_RETINA_KL = retina.function_space(retina.COUNTRY)
_NARROW: Parts = {"layers": "all", "log_var_init": retina.FSVI_LOG_VARIANCES}
_WIDE: Parts = {"layers": "all", "log_var_init": [-10.0, -8.0]}
_CONTEXT: Parts = {"context": {"name": "training_batch", "points": 10}}
FULL = "full covariance"
DIVERGENCES: dict[str, Parts] = {
    FULL: {},
    f"{FULL}, jitter 0.01": {"divergence": {"jitter": 0.01}},
    "diagonal": {"divergence": {"covariance": "diagonal"}},
    f"{FULL}, features of the current network": {"prior": {"features": "current"}},
    "KL of RETINA": _RETINA_KL,
    "KL and variances of RETINA, all layers drawn": layered(_RETINA_KL, {"family": _NARROW}),
}
_PLAIN: Parts = {
    "divergence": {"name": "weight_kl"},
    "prior": {"name": "gaussian_weights", "variance": 1.0},
    "weight": {"factor": 1.0, "rise": 0.0},
}
STARTS: dict[str, dict[str, Parts]] = {
    "FSVI": {
        "all layers drawn": {"family": _NARROW},
        "all layers drawn, log-variances -10 to -8": {"family": _WIDE},
    },
    "MFVI": {
        "prior N(0, 1), whole KL": _PLAIN | {"family": {"layers": "all", "log_var_init": [-14.0, -13.7]}},
        "prior N(0, 1), whole KL, log-variances -10 to -8": _PLAIN | {"family": _WIDE},
    },
}
_MEASURED = ("auroc", "balanced_accuracy", "nll", "ece", "sensitivity_at_80_specificity")
_LARGE = _SHIFTED[0]


def _rows() -> tuple[Row, ...]:
    """Return the rows: each method as in table retinopathy, and its readings; ensembles only with the widest."""
    rows = [row for method, readings in STARTS.items() for row in Row(method, None, method).varied("", *readings)]
    for method, readings in STARTS.items():
        rows += Row(f"{method} Ensemble", None, f"{method} Ensemble").varied("", list(readings)[-1])
    return tuple(rows)


def _small(row: Row, dataset: str, protocol: str) -> Recipe:
    """FSVI of table retina-mnist, or with another divergence in its place."""
    if not row.variant:
        return retina.recipe(row, dataset, protocol)
    return retina.common(row, protocol).with_parts(layered(_CONTEXT, DIVERGENCES[row.variant]))


def _large(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the recipe of a row of table retinopathy, unchanged or with other initial variances."""
    first = _LARGE.recipe(replace(row, variant=""), dataset, protocol)
    if first is None or not row.variant:
        return first
    return first.with_parts(_of_members(row, STARTS[_member(row)][row.variant]))


def _columns_of(table: Table, dataset: str) -> tuple[Column, ...]:
    cells = {Cell(dataset, "", metric) for metric in _MEASURED}
    return tuple(column for column in table.columns if column.cell in cells)


TABLES = (
    *_SHIFTED,
    retina.TABLE.beside(
        "fsvi",
        "RetinaMNIST: FSVI by its divergence",
        rows=(*Row("FSVI", None, "FSVI").varied("", *DIVERGENCES), Row("MAP", None, "MAP")),
        columns=_columns_of(retina.TABLE, "retina_mnist"),
        recipe=_small,
    ),
    _LARGE.beside(
        "fsvi",
        "Diabetic retinopathy: FSVI and MFVI by the variances of weights at the start",
        rows=_rows(),
        columns=_columns_of(_LARGE, "aptos"),
        recipe=_large,
        protocols=("short", "smoke"),
        gpu=(),
    ),
)
