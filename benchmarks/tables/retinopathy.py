"""Diabetic retinopathy (rudner2022 sec. 5.3, RETINA of Band et al. 2021): country shift, also named after its finding,
and severity shift. Protocol ``paper`` is made for a GPU and needs a user's copy of the images."""

from __future__ import annotations

from benchmarks.tables import retina
from benchmarks.tables.retina import COUNTRY, SEVERITY
from benchmarks.tables.retina_mnist import MASK_ONLY, NOTES_ON_SCREENING, ROWS
from benchmarks.tables.spec import Cell, Column, Parts, Recipe, Row, Table, merge

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
    parts = merge({"likelihood": {"name": "categorical"}}, own)
    if protocol == "smoke":
        narrow = {} if row.variant == MASK_ONLY else {"network": {"width": 2}}
        parts = merge(parts, narrow | {"training": {"epochs": 1}})
    outline = "outline" if name == "moderate" else f"outline-{name}"
    samples = _SAMPLES[protocol] * (3 if row.made_by != _member(row) else 1)
    sets = [f"shift-{other}" for other in SHIFTS[dataset]] if task != SEVERITY else ["shift-severity"]
    return Recipe(
        parts,
        tuple((0, seed) for seed in range(_SEEDS[protocol])),
        outline if row.variant == MASK_ONLY else f"{name}-{side}",
        samples=max(samples, 4) if "Rank1" in row.made_by else samples,
        sets=("test", *sets),
    )


_SETTINGS = {
    COUNTRY: "those for country shift",
    "mild": "those for country shift and the finding moderate, since RETINA has none for this task",
    SEVERITY: "those for severity shift",
}
PAPER_NOTES = (
    "APTOS as training set has the same settings, which RETINA chose on EyePACS.",
    "MAP and MC Dropout have no penalty: RETINA's code multiplies its l2 by the regularisers of a network that has "
    "none. MAP is thus maximum likelihood. The l2 that its other rows have on normalisation and biases (Rank1: on all "
    "weights) is left out.",
    "MFVI and radial MFVI: convolutions and last layer are random, with the prior N(m, 2 / fan-in) about their own "
    "means m; its KL, and that of Rank1, rises in proportion to the steps to 0.45 of itself, as 90 of the 200 epochs "
    "that RETINA's code counts on. There draws are by Flipout, a radial direction is normalised along output channels, "
    "and the entropy of radial weights is the logarithm of their summed scales. Here one draw serves a batch, the "
    "direction is that of a layer, and the entropy is exact.",
    "Rank1: one member, factors that start at 1 with probability 0.75 and else at -1, prior N(1, 0.05^2). They are "
    "drawn once a batch, there for each image, and have the learning rate of all.",
    "FSVI: the last layer is random, log-variances -20 to -18. Diagonal KL of both outputs at images of the training "
    "batch, divided by their number and by 64. RETINA draws a quarter of these images on each of 4 cores, here all are "
    "drawn from the whole batch.",
    "Other than there: images are cut to the eye's box and stretched before Graham's preprocessing, without a JPEG "
    "between, and keep the grey rim outside 90 % of the radius, which there is cut off; two outputs in place of one "
    "logit (FSVI has two there too); normalisation and class weights by the whole batch, there by each core's 16 to 64 "
    "images; ensembles are trained anew instead of being drawn from the seeds; no warm-up epoch.",
    "Classes are weighted as there: in each batch by the inverse of their shares, in the log-likelihood of every row "
    "but FSVI and mask only; the KL of MFVI, radial MFVI and Rank1 is not.",
    "Not run: a training on EyePACS is, by count, 4e17 floating-point operations (35,126 images, 90 epochs), which is "
    "for a GPU, and the images are a user's to fetch.",
    "RETINA's evaluation on APTOS with its classes rebalanced to those of EyePACS is no column.",
)
SHORT_NOTES = (
    "Trained on 70 % of APTOS: ResNet-50 of a quarter of the channels, 64 px, 15 epochs of Adam at 0.002 with one rise "
    "and fall of the rate, batches of 32, crops of 4 pixels and mirror images; one draw in training, 5 in prediction "
    "(5 of each member of an ensemble), classes not weighted. Fixed beforehand, the same for all.",
    "FSVI and MFVI have the random layers, the log-variances, the prior and the KL of RETINA's code. FSVI's prior "
    "variance of 15.4 was tuned there at 512 px, and its KL is divided by 10 images and a batch of 32. From wide "
    "weights (log-variances -10 to -8) both fare badly (table retinopathy-fsvi).",
    "MAP, MC Dropout, radial MFVI and Rank1 do not have RETINA's settings: MAP has the prior N(0, 1), MC Dropout the "
    "rate 0.1 (there 0.178) after every ReLU; radial MFVI has scales of 0.018 (0.00015), the prior N(0, 1) and the "
    "whole KL; Rank1 has 4 members, means of 1, the prior N(1, 0.1^2) and the whole KL.",
    "In APTOS the camera goes with the grade: of grade 0 78 % of the photographs are full circles, of the others 1 to "
    "5 %.",
    "Core-hours on an AMD Zen 5 core: about 0.1 a network, so some 0.6 for a seed of the rows of single networks and "
    "1.6 for one of all rows.",
)


def _settings(task: str, finding: str) -> str:
    return (
        f"Settings: {_SETTINGS['mild' if finding == 'mild' else task]} of RETINA's code (Band et al. 2021), tuned in "
        "domain: ResNet-50, 512 px, 90 epochs of SGD with Nesterov momentum, learning rates to a fifth after a third "
        "and two thirds (MAP: linear to a hundredth), 5 draws in prediction, 6 seeds."
    )


REDUCTIONS = {
    "short": "trained on APTOS at 64 px, shifted to 960 images of EyePACS and to IDRiD, 15 epochs, 5 seeds",
    "smoke": "64 px, ResNet-50 of 2 channels, 1 epoch, 1 seed, 2 samples: a test of the way, not of the methods",
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
    settings = _settings(task, finding)
    notes = {"paper": (settings, *PAPER_NOTES, *NOTES_ON_SCREENING), "short": (*SHORT_NOTES, *NOTES_ON_SCREENING)}
    return Table(
        name,
        f"Diabetic retinopathy, {title}",
        ROWS,
        _columns(datasets, task),
        lambda row, dataset, protocol: _recipe(task, finding, row, dataset, protocol),
        protocols=protocols,
        notes={protocol: said for protocol, said in notes.items() if protocol in protocols},
        reductions={protocol: said for protocol, said in REDUCTIONS.items() if protocol in protocols},
        gpu=("paper",),
    )


TABLES = (
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
