"""rudner2022, table 2: CIFAR-10 with a ResNet-18, also named ``cifar10``. Made for a GPU."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import cifar_short
from benchmarks.tables.fashion_mnist import SPG_NOTE
from benchmarks.tables.spec import Cell, Column, Parts, Recipe, Row, Table, merge

PAPER, DATASET = "rudner2022", "cifar10"
ROWS = (
    Row("MAP", "MAP", "MAP"),
    Row("MFVI", "MFVI [Blundell et al., 2015]", "MFVI"),
    Row("MFVI (tempered)", "MFVI (tempered)", "MFVI (tempered)"),
    Row("MC Dropout", "MC DROPOUT [Gal and Ghahramani, 2016]", "MC Dropout"),
    Row("SWAG", "SWAG [Maddox et al., 2019]", "SWAG"),
    Row("VOGN", "VOGN [Osawa et al., 2019]", "VOGN"),
    Row("DUQ", "DUQ [van Amersfoort et al., 2020]", "DUQ"),
    Row("DUQ, its own settings", "DUQ [van Amersfoort et al., 2020]", "DUQ", "own"),
    Row("SPG", "SPG [Ma and Hernández-Lobato, 2021]"),
    Row("FSVI (monochrome)", "FSVI (pXC = random monochrome)", "FSVI", "monochrome"),
    Row("FSVI (CIFAR-100)", "FSVI (pXC = CIFAR-100)", "FSVI", "cifar100"),
    Row("Deep Ensemble", "Deep Ensemble", "Deep Ensemble"),
    Row("Deep Ensemble of MAP", "Deep Ensemble", "MAP Ensemble"),
    Row("FSVI Ensemble (monochrome)", "FSVI Ensemble (pXC = random monochrome)", "FSVI Ensemble", "monochrome"),
)
_FURTHER: dict[str, Parts] = {
    "monochrome": {"name": "random_monochrome"},
    "cifar100": {"name": "images", "pool": "cifar100"},
}


def context(variant: str, share: int = 1) -> Parts:
    """Return the training batch and 32 further images, or a part of both."""
    batch: Parts = {"name": "training_batch"} | ({"points": 128 // share} if share > 1 else {})
    return {"name": "mixture", "parts": [batch, {**_FURTHER[variant], "points": 32 // share}]}


DUQ_FAMILY = {"size": 512, "count": 13.0, "weight_std": (2 / (10 * 512)) ** 0.5, "centroid_std": 0.05}
DUQ_OWN: Parts = {
    "epochs": 100,
    "clip": None,
    "optimiser": {"lr": 0.05, "weight_decay": 5e-4},
    "schedule": {"name": "multistep", "at": [0.25, 0.5, 0.75], "factor": 0.2},
}
VOGN: Parts = {
    "name": "vogn",
    "epochs": 161,
    "batch_size": 256,
    "lr": 1e-4,
    "momentum": 0.9,
    "damping": 1e-3,
    "newest": 0.999,
    "data_factor": 10.0,
    "samples": 5,
    "schedule": {"name": "multistep", "at": [80 / 161, 120 / 161], "factor": 0.1},
    "augment": {"crop": 4, "flip": True},
}
_NARROW = {"log_var_init": [-20.0, -18.0]}
_SEEDS = {"paper": 10, "short": cifar_short.SEEDS, "smoke": 1}
_MEMBERS = {"paper": 5, "short": cifar_short.MEMBERS, "smoke": 2}


def _parts(row: Row, protocol: str) -> Parts:
    """Return the ResNet-18 configuration of the authors' code of 2023; see the notes."""
    common = {
        "network": {"name": "resnet18", "norm": "batch", "context_statistics": "shared"},
        "likelihood": {"name": "categorical"},
        "training": {
            "epochs": 200,
            "batch_size": 128,
            "clip": 1.0,
            "augment": {"crop": 4, "flip": True},
            "optimiser": {"name": "sgd", "lr": 0.005, "momentum": 0.9},
            "schedule": {"name": "cosine", "final": 0.05},
        },
    }
    share = cifar_short.NARROWED if protocol == "short" else 1
    function_space = {
        "prior": {"variance": 0.1},
        "context": context(row.variant, share) if row.variant in _FURTHER else None,
    }
    own: dict[str, Parts] = {
        "MFVI": {"family": _NARROW},
        "MFVI (tempered)": {"family": _NARROW},
        "MC Dropout": {"family": {"rate": 0.1}},
        "SWAG": {
            "family": {"rank": 20, "start": 0.8, "scale": 0.0},
            "training": {
                "clip": None,
                "optimiser": {"lr": 0.01, "weight_decay": 1e-4},
                "schedule": {"name": "linear", "final": 2.0},
            },
        },
        "VOGN": {"training": VOGN, "prior": {"variance": 0.02}},
        "DUQ": {"family": DUQ_FAMILY, "weight": {"factor": 0.5}}
        | ({"training": DUQ_OWN} if row.variant == "own" else {}),
        "FSVI": {"family": _NARROW} | function_space,
        "FSVI Ensemble": {"family": {"base": _NARROW}} | function_space,
    }
    parts = merge(common, own.get(row.made_by, {}))
    if protocol == "short":
        parts = _shortened(row, parts)
    if protocol == "smoke":
        epochs = 2 if row.made_by == "SWAG" else 1
        parts = merge(parts, {"network": {"width": 2}, "training": {"epochs": epochs, "samples": 1}})
        if row.made_by == "SWAG":
            parts = merge(parts, {"family": {"start": 0.0}})
    return merge(parts, {"family": {"size": _MEMBERS[protocol]}}) if "Ensemble" in row.made_by else parts


def _shortened(row: Row, parts: Parts) -> Parts:
    """Shorten training; SWAG, DUQ with its own settings and VOGN keep their schedules over fewer epochs, VOGN also its
    training part."""
    if row.made_by == "VOGN":
        fewer = {"epochs": cifar_short.EPOCHS, "samples": 1}
        return merge(parts, {"network": {"width": cifar_short.WIDTH}, "training": fewer})
    return cifar_short.shortened(parts, cycle=row.made_by != "SWAG" and row.variant != "own")


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Train on all training images, cropped and flipped; evaluate on SVHN's test images and CIFAR-10-C at
    severity 2.
    """
    seeds = tuple((0, seed) for seed in range(_SEEDS[protocol]))
    samples = 2 if protocol == "smoke" else 20 if row.made_by == "VOGN" else 10
    corrupted = f"{DATASET}_c-2"
    sets = ("test", "ood-svhn", cifar_short.some(corrupted) if protocol == "short" else corrupted)
    return Recipe(_parts(row, protocol), seeds, PAPER, samples=samples, sets=sets)


NOTES = (
    "Settings: the ResNet-18 configuration of the authors' code of 2023 (SGD with momentum .9, learning rate .005 on a "
    "cosine to a twentieth, 200 epochs, batches of 128, gradients clipped elementwise at 1, one draw in training, "
    "crops and flips; no weight decay, in the rows of other methods either); the code of 2022 has no CIFAR "
    "configuration, and the paper's appendix D was not at hand. Prediction: 10 draws. ECE: 10 bins. AUROC: by "
    "predictive entropy, on all test images (the code of 2022 scores the first 5,000 with a ResNet).",
    "FSVI: KL of the last layer with full covariance at the training batch and 32 context points, which that code "
    "normalises together; prior variance .1; the ELBO's weight. FSVI Ensemble: 2 draws of each of 5 members in "
    "prediction (protocol short: 3 of each of 3). Monochrome: images of the colour of one training pixel (that code "
    "has no such context). CIFAR-100: all its training images as they are; there 10,000 of them, cropped, mirrored, "
    "blurred, solarised and jittered.",
    "MFVI, plain and tempered, is all but MAP here. Log-variances start at -20 to -18, as both codes have them for a "
    "ResNet, and under this SGD the KL moves them by .02 in 200 epochs (.03 under protocol short): standard deviations "
    "stay at 1e-4, and what is left of the KL is a prior on the means. The paper's optimiser for MFVI is not known; "
    "the code of 2022 has Adam as its default and an option for an optimiser of the variances, and no command for "
    "CIFAR. So the rows cannot be held against the paper's.",
    "Other than in the code of 2023: the prior mean of function values is 0 (there the initial network's function); "
    "initial log-variances are -20 to -18 in all layers (there -20, -50 for the last layer's weights and -8 for its "
    "biases); 10 draws in prediction (there 5); channels are scaled by deviations .2023, .1994, .2010, as the code of "
    "2022 has them (there .247, .243, .261); shortcuts are normalised and have no bias (there the other way round); "
    "convolutions start uniform within 1 / sqrt(fan-in) (there with a twentieth of 1 / fan-in as variance); the cosine "
    "falls once an epoch. That code counts the covariance of the last layer's features twice, by a slip, so that its "
    "prior variance is .2 in effect; here once.",
    "SWAG: batch normalisation takes its statistics from 1,280 random training images, neither cropped nor flipped "
    "(its paper: a pass over the training set).",
    "CIFAR-10-C: the mean over 19 corruptions at severity 2, as the paper's 'second-mildest level' reads; from the "
    "upstream arrays where they are at hand, else made by this project's generator.",
    "DUQ: the paper's numbers are those of van Amersfoort et al. (2020). The row DUQ has the table's training, the "
    "row with its own settings that of its code: SGD at .05, a fifth of that after 25, 50 and 75 of 100 epochs, "
    "weight decay 5e-4, gradients not clipped. Both: centroids of 512 numbers, length .1, averages with .999, "
    "gradient penalty .5 (its code has .75 as the default and .5 in its examples); its code has one more linear layer "
    "before the centroids. AUROC: by the largest kernel score. Kernel scores are no distribution over classes; ECE, "
    "which that paper lacks, is of the scores divided by their sum.",
    "VOGN: the paper's numbers are those of Osawa et al. (2019). Here the settings of that paper's code for this "
    "network: 161 epochs, batches of 256, rate 1e-4 and a tenth of it after 80 and after 120 epochs, damping .001, "
    "prior variance .02, ten times the number of images for their crops and flips, 20 draws in prediction; 5 draws in "
    "training, which there were drawn for each of 8 parts of a batch anew. It is an optimiser, so it has no row with "
    "the training of the others. Protocol short: 15 epochs at its own rate, lowered at the same parts of them (after 8 "
    "and 12), one draw in training, in float32.",
    SPG_NOTE,
    "What neither paper nor code tells: the temperature of MFVI (here a tenth of the KL), MAP's prior (here N(0, 1)), "
    "the dropout rate (here .1, after every ReLU), the size of ensembles (here 5) and whether their networks have "
    "MAP's prior (here a row without and one with). SWAG: its script's 200 epochs, learning rate .01 that rises to "
    ".02, averaging from epoch 161, weight decay 1e-4, prediction with the averaged weights alone.",
)
REDUCTIONS = {
    "short": (
        f"{cifar_short.REDUCTION}; SWAG with its own learning rate, averaged over the last 3 epochs; DUQ with its own "
        "settings, and VOGN, with their own learning rates, lowered at the same parts of the training; VOGN in float32"
    ),
    "smoke": (
        "a ResNet-18 of 2 to 16 channels, 1 epoch (SWAG 2), 1 seed, ensembles of 2, 2 samples: a test of the way, not "
        "of the methods"
    ),
}


def _column(metric: str, label: str, condition: str = "", scale: float = 1.0, published: str = "") -> Column:
    target = Cell(DATASET, condition, published or metric)
    return Column(Cell(DATASET, condition, metric), label, target, scale, 3 if scale == 1.0 else 2)


_COLUMNS = (
    _column("accuracy", "accuracy %", scale=100),
    _column("ece_10", "ECE", published="ece"),
    _column("ood_auroc", "AUROC % SVHN", "ood=svhn", 100),
    _column("accuracy", "accuracy % CIFAR-10-C", f"shift={DATASET}_c;severity=2", 100),
)
POINTS = {"40": 4, "160": 1}
"""Numbers of context points, and the divisor of the paper's."""


def points_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """FSVI of the table, with other numbers of context points."""
    first = recipe(replace(row, variant="monochrome"), dataset, protocol)
    return replace(first, parts=first.parts | {"context": context("monochrome", POINTS[row.variant])})


_FEWER = (
    "FSVI under protocol short: 32 points of the batch and 8 others, a quarter of the paper's, since the last layer "
    "has 128 features in place of 512. At 160 points the prior's covariance, of rank 128 at most, is singular but for "
    "its jitter; the KL is 13,000 to 18,000 after a hundred steps (seen in a trial without record), and nothing is "
    "learned: 16 % of the test images are right, at 40 points 88 % (one seed, table cifar10-fsvi)."
)
TABLES = (
    Table(
        f"{PAPER}-2",
        "CIFAR-10: accuracy, calibration, SVHN as out-of-distribution inputs, corrupted images",
        ROWS,
        _COLUMNS,
        recipe,
        protocols=("paper", "short", "smoke"),
        paper=PAPER,
        number="2",
        aliases=("cifar10",),
        notes={"paper": (*NOTES, cifar_short.PAPER_COST), "short": (*NOTES, _FEWER, *cifar_short.NOTES)},
        reductions=REDUCTIONS,
        gpu=("paper",),
    ),
    Table(
        "cifar10-fsvi",
        "CIFAR-10: FSVI by the number of its context points",
        tuple(Row(f"FSVI (monochrome), {points} points", None, "FSVI", points) for points in POINTS),
        _COLUMNS,
        points_recipe,
        protocols=("short", "smoke"),
        default_protocol="short",
        notes={"short": (_FEWER,)},
        reductions=REDUCTIONS,
    ),
)
