"""Rotated MNIST: dirichlet2022, tables 2 to 10, all from the same runs; and the index sets of its figure 4.

Table ``rotated-mnist`` is the nine tables side by side; ``rotated-mnist-draws`` shows the effect of more draws in
prediction on MC Dropout, ``rotated-mnist-nearest`` that of rotation without interpolation on all rows.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.records.published import recorded
from benchmarks.tables.spec import Cell, Column, Parts, Recipe, Row, Table, merge

PAPER, DATASET = "dirichlet2022", "mnist"
ANGLES = tuple(range(0, 181, 10))
METHODS = {
    "MAP": "MAP",
    "MAP fVI": "MAP fVI",
    "MC Dropout": "MC Dropout",
    "MC Dropout fVI": "MC Dropout fVI",
    "Ensemble": "Deep Ensemble",
    "Ensemble fVI": "Ensemble fVI",
}
ROWS = tuple(Row(label, label, method) for label, method in METHODS.items())
INDEX_SETS = {"": "", "90": " +90°", "90,180": " +90°, +180°"}
INDEX_ROWS = tuple(
    Row(label + added, None, method, variant)
    for label, method in METHODS.items()
    for variant, added in INDEX_SETS.items()
    if "fVI" in label or not variant
)
DRAWS = "50 draws"
NEAREST = "nearest"
TOGETHER = "the same batches"
TOGETHER_ROWS = tuple(
    Row(", ".join(filter(None, ("Ensemble", variant))), "Ensemble", "Deep Ensemble", variant)
    for variant in ("", TOGETHER)
)
DRAWS_ROWS = tuple(
    Row(", ".join(filter(None, (label, variant))), label, METHODS[label], variant)
    for label in ("MC Dropout", "MC Dropout fVI")
    for variant in ("", DRAWS)
)
_BESIDE = {"MC Dropout": DRAWS, "MC Dropout fVI": DRAWS, "Ensemble": TOGETHER}
NEAREST_ROWS = tuple(
    replace(row, label=", ".join(filter(None, (row.label, beside))), variant=", ".join(filter(None, (NEAREST, beside))))
    for row in ROWS
    for beside in dict.fromkeys(("", _BESIDE.get(row.label, "")))
)
_TURNED = {
    turned: {"name": "mixture", "parts": [{"name": "training_batch"}, {"name": "rotated_batch", "angles": angles}]}
    for turned, angles in (("90", [90]), ("90,180", [90, 180]))
}
_MEMBERS = {"paper": 10, "short": 10, "smoke": 2}
_SEEDS = {"paper": 10, "short": 3, "smoke": 2}
_EPOCHS = {"paper": 30, "short": 10, "smoke": 1}


def _parts(row: Row) -> Parts:
    """App. F: MLP 2x50, Adam, learning rate 0.001, batches of 256, dropout 0.2."""
    common = {
        "network": {"name": "mlp", "hidden": [50, 50], "activation": "relu"},
        "likelihood": {"name": "categorical"},
        "training": {"batch_size": 256, "optimiser": {"name": "adam", "lr": 1e-3, "weight_decay": 0.0}},
    }
    dropout = {"family": {"rate": 0.2}}
    own: dict[str, Parts] = {
        "MC Dropout": dropout,
        "MC Dropout fVI": dropout,
        "MAP": {"divergence": None, "prior": None},
    }
    return merge(common, own.get(row.made_by, {}))


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Train on all 60,000 images in [-1, 1]; one run gives every angle. Prediction: 10 draws, or the members."""
    parts = merge(_parts(row), {"training": {"epochs": _EPOCHS[protocol]}})
    if "Ensemble" in row.made_by:
        parts = merge(parts, {"family": {"size": _MEMBERS[protocol]}})
    if row.variant in _TURNED:
        parts = merge(parts, {"context": _TURNED[row.variant]})
    variants = (row.variant or "").split(", ")
    if TOGETHER in variants:
        parts = merge(parts, {"family": {"joint": True}})
    rotation = "nearest-rotation" if NEAREST in variants else "rotation"
    sets = ("test", *(f"{rotation}-{angle}" for angle in ANGLES))
    seeds = tuple((0, seed) for seed in range(_SEEDS[protocol]))
    samples = 50 if DRAWS in variants else _MEMBERS[protocol]
    return Recipe(parts, seeds, PAPER, samples=samples, sets=sets)


def _columns(metric: str, angles: tuple[int, ...]) -> tuple[Column, ...]:
    return tuple(shifted(DATASET, f"shift=rotation;angle={angle}", metric, f"{angle}°") for angle in angles)


def shifted(dataset: str, condition: str, metric: str, label: str, published: str = "") -> Column:
    """Return a column of dirichlet2022. Its log-likelihoods are assumed to be of smoothed probabilities; see the notes.

    ``published``: the condition of its published numbers, if different.
    """
    scale = 100.0 if metric == "accuracy" else 1.0
    theirs = Cell(dataset, published or condition, metric)
    return Column(Cell(dataset, condition, recorded(PAPER, metric)), label, theirs, scale, 2)


def _nearest_columns(metric: str) -> tuple[Column, ...]:
    conditions = {angle: f"rotation;angle={angle}" for angle in ANGLES}
    return tuple(
        shifted(DATASET, f"shift=nearest {ours}", metric, f"{angle}°", f"shift={ours}")
        for angle, ours in conditions.items()
    )


NOTES = (
    "Where the paper is silent. Optimiser: Adam, which it names for its two moons. Weight decay: none; it prints 5e-4 "
    "for CIFAR only. Initial weights: uniform within 1 / sqrt(fan-in), PyTorch's default. Dropout: after both hidden "
    "ReLUs. Rotation: bilinear, about the centre, black where nothing was (table rotated-mnist-nearest takes "
    "the nearest pixel, which more of the published numbers agree with). ECE: 15 bins.",
    "Log-likelihood: of the mean over samples, since only so can an ensemble's be higher than its members', as in "
    "table 5; and of probabilities smoothed by 1e-4, (1 - 1e-4) p + 1e-5. The paper smooths so in its KL (App. F) and "
    "does not say that its tables do, but their values tell: the plain log-likelihood of MAP is -9.1 at 180° "
    "(published -6.00), the smoothed one turns after 100° as published. The root mean square difference over the 19 "
    "angles is 1.57 plain and .17 smoothed over ten seeds (with 1e-3 and 1e-5 it was .84 and .33, of three earlier "
    "runs without records). This was found with the published numbers in view; the constant is the paper's own. "
    "Records hold both, as log_likelihood and smoothed_log_likelihood.",
    "KL: the mean over the index set, divided by the batch size (eq. 4, App. B.1). Ten seeds, each with its own "
    "initialisation and batches; ensembles without fVI are trained member by member, with fVI on shared batches.",
)
TEN_DRAWS = (
    "MC Dropout: 10 draws in prediction, as App. F says. Its published log-likelihoods are those of some 50 draws: see "
    "table rotated-mnist-draws."
)
INDEX_NOTES = (
    "Index sets: the training batch, and copies of the whole batch turned by 90°, or by 90° and by 180°, "
    "counter-clockwise as the test images are. The KL stays a mean over the index set, so each copy takes its share of "
    "the weight (the paper does not say).",
    "The rows without a turned copy are the runs of table rotated-mnist; the paper prints no numbers of figure 4.",
)
DRAWS_NOTES = (
    "App. F has M = 10 draws at evaluation, and so has table rotated-mnist; the published numbers are rather those of "
    "50. Over the 19 angles and ten seeds the log-likelihood's root mean square difference is .27 with 10 draws (5 "
    "angles within 2 standard errors) and .04 with 50 (17); with fVI .05 (15) and .02 (19); accuracy and ECE agree "
    "with either. Number 50 was found with the published numbers in view, from 10, 20, 50, 100 and 200 on three seeds. "
    "Neither those trials have records, nor those of the other cause that was tried, masks on the pixels as well: "
    "they bring the log-likelihood near (.11), but not ECE (.05; .01 without).",
)
NEAREST_NOTES = (
    "The paper does not say how images are turned. Here each pixel is the nearest one of the image (Pillow's and "
    "torchvision's default), in table rotated-mnist bilinear; nothing else differs: the trainings are the same.",
    "This is the likelier reading of tables 2 to 10. Of the 342 cells of the rows that both tables have, 279 are "
    "reproduced here and 264 in table rotated-mnist; with 50 draws of MC "
    "Dropout 297 are. That was found with the published numbers in view; besides it is the default of the usual "
    "libraries. Tables dirichlet2022-2 to -10, and what is counted, stay bilinear: a reading that was chosen "
    "by how much it reproduces would make that count say less.",
    "Neither turning explains the ensemble's log-likelihood at 80° to 140°, which is .15 to .26 higher here than "
    "published; networks that see the same batches do, at the cost of other cells (table rotated-mnist-together).",
)
TOGETHER_NOTES = (
    "In table rotated-mnist the ten networks of an ensemble have batches of their own, with fVI they share them: here "
    "they share them without fVI too, and nothing else differs but the mean over networks in the loss, to which Adam "
    "is all but blind. The paper does not say.",
    "With it no t-test tells the log-likelihood of any angle from the published one, where batches of their own give "
    "some .2 more at 80° to 140°, nor the accuracy at 10°. But then accuracy at 0° and at 60° to 80° is below the "
    "published one and the calibration error above it at nine angles: 41 of 57 cells are reproduced, 45 with batches "
    "of their own. So the networks of the paper's ensembles are most likely less different than ours, and not by this "
    "alone; it counts nowhere as a cause.",
)
REDUCTIONS = {
    "short": "10 epochs instead of 30, 3 seeds",
    "smoke": "1 epoch, 2 seeds, ensembles of 2: a test of the way, not of the methods",
}
TITLES = {"accuracy": "Accuracy (%)", "log_likelihood": "Log-likelihood", "ece": "Expected calibration error"}
_RANGES = (ANGLES[:7], ANGLES[7:13], ANGLES[13:])
_EVERY = tuple(column for metric in TITLES for column in _columns(metric, ANGLES))


def _table(
    name: str,
    title: str,
    columns: tuple[Column, ...] = _EVERY,
    number: str | None = None,
    rows: tuple[Row, ...] = ROWS,
    notes: tuple[str, ...] = (TEN_DRAWS,),
    paper: str | None = PAPER,
) -> Table:
    return Table(
        name,
        title,
        rows,
        columns,
        recipe,
        paper=paper,
        number=number,
        notes=dict.fromkeys(("paper", "short"), (*NOTES, *notes)),
        reductions=REDUCTIONS,
    )


TABLES = (
    _table("rotated-mnist", "Rotated MNIST by angle (dirichlet2022, tables 2 to 10)"),
    *(
        _table(f"{PAPER}-{2 + 3 * i + j}", f"{title} on rotated MNIST", _columns(metric, angles), str(2 + 3 * i + j))
        for i, (metric, title) in enumerate(TITLES.items())
        for j, angles in enumerate(_RANGES)
    ),
    _table(
        "rotated-mnist-index-sets",
        "Rotated MNIST: index sets of function-space inference (dirichlet2022, figure 4)",
        rows=INDEX_ROWS,
        notes=(TEN_DRAWS, *INDEX_NOTES),
        paper=None,
    ),
    _table(
        "rotated-mnist-draws",
        "Rotated MNIST: MC Dropout by the number of draws in prediction (dirichlet2022)",
        rows=DRAWS_ROWS,
        notes=DRAWS_NOTES,
    ),
    _table(
        "rotated-mnist-together",
        "Rotated MNIST: ensembles whose networks see the same batches (dirichlet2022)",
        rows=TOGETHER_ROWS,
        notes=TOGETHER_NOTES,
    ),
    _table(
        "rotated-mnist-nearest",
        "Rotated MNIST by angle, turned without interpolation (dirichlet2022, tables 2 to 10)",
        tuple(column for metric in TITLES for column in _nearest_columns(metric)),
        rows=NEAREST_ROWS,
        notes=NEAREST_NOTES,
    ),
)
