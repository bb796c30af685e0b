"""Catalogue of figures: names, runs, and functions that draw them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """Figure: the runs of a table on one data set (default: all), and "module:function" that draws them.

    paper and number: the published figure that it follows; rows: labels of the rows (empty: all). A figure without a
    table is computed. note: settings that the paper leaves open, for the caption.
    """

    name: str
    title: str
    table: str
    dataset: str
    draw: str
    paper: str | None = None
    number: str | None = None
    rows: tuple[str, ...] = ()
    note: str = ""

    def remarks(self, protocol: str) -> tuple[str, ...]:
        """Return sentences for the caption: settings that the paper leaves open, and contradictions to the paper."""
        return tuple(filter(None, (self.note, AGAINST.get((self.name, protocol), ""))))


DIGITS = [
    ("reliability", "Reliability on digits"),
    ("roc", "Photographs against digits, by predictive entropy"),
    ("entropy", "Predictive entropy: digits and photographs"),
    ("retention", "Accuracy on the most certain digits"),
    ("rotation", "Rotated digits"),
]
# Paper and number, title, table, data set, what draws it; the name follows.
_SINE = "y = sin(2πx)"
PUBLISHED = [
    (
        "pequignot2020",
        "1",
        "y = cos(4(x + 0.2)): HyVI and baselines",
        "toys",
        "pequignot_1d",
        "toys:shades",
    ),
    ("rudner2021", "1", "Snelson: FSVI and baselines", "toys", "snelson", "toys:samples"),
    ("rudner2021", "4", "Two moons: FSVI and baselines", "toys", "two_moons_rudner", "toys:moons"),
    ("dirichlet2022", "3", "Two moons: fVI and baselines", "toys", "two_moons_dirichlet", "toys:moons"),
    *(
        (
            "cinquin2024",
            number,
            f"{_SINE}: {what}",
            f"cinquin2024-figure-{number}",
            "cinquin_1d",
            "toys:samples",
        )
        for number, what in (
            ("1", "GFSVI by kernel"),
            ("6", "GFSVI by length-scale"),
            ("7", "GFSVI by points of the divergence"),
            ("8", "GFSVI and FVI by points of the divergence"),
            ("11", "GFSVI by network and prior"),
            ("14", "periodic priors, GFSVI and GWI"),
            ("18", "GFSVI by γ"),
        )
    ),
    ("cinquin2024", "3", "Ocean currents", "cinquin2024-3", "gulf_drifters", "ocean:currents"),
    (
        "cinquin2024",
        "19",
        "Eigenvalues of the functions' covariance",
        "cinquin2024-figure-19",
        "cinquin_1d",
        "uncertainty:eigenvalues",
    ),
    ("cinquin2024", "15", "Convergence on Boston", "cinquin2024-figure-15", "boston", "settings:lengths"),
    ("cinquin2024", "16", "Convergence on MNIST", "cinquin2024-figure-16", "mnist", "settings:lengths"),
    (
        "rudner2021",
        "8",
        "FashionMNIST by inducing points",
        "rudner2021-figure-8",
        "fashion_mnist",
        "settings:inducing_points",
    ),
    (
        "pequignot2020",
        "2",
        "Epistemic uncertainty, Concrete, experiment 1",
        "pequignot2020-figure-4",
        "concrete",
        "uncertainty:distributions",
    ),
    (
        "pequignot2020",
        "3",
        "Epistemic uncertainty, Concrete, experiment 2",
        "pequignot2020-figure-5",
        "concrete",
        "uncertainty:distributions",
    ),
    ("rudner2022", "4", "Diabetic retinopathy", "retinopathy", "eyepacs", "screening:screening"),
    ("rudner2022", "2", "Rotated MNIST", "rudner2022-figure-2", "mnist", "shifts:brier_and_entropy"),
    ("dirichlet2022", "1", "Digits as they turn", "rotated-mnist", "mnist", "shifts:examples"),
    ("dirichlet2022", "4", "Rotated MNIST by index set", "rotated-mnist-index-sets", "mnist", "shifts:index_sets"),
    ("dirichlet2022", "8", "Rotated MNIST", "rotated-mnist", "mnist", "shifts:rotation"),
    (
        "dirichlet2022",
        "9",
        "Corrupted CIFAR-10, MC Dropout of one and five draws",
        "dirichlet2022-figure-9",
        "cifar10",
        "shifts:corruption",
    ),
]
# For several data sets, whose names end the figures' names.
_RUDNER, _CINQUIN = ("fashion_mnist", "cifar10"), ("mnist", "fashion_mnist")
_NOISE, _SMALL = ("cinquin_1d", "cinquin_1d_noisy"), ("boston", "concrete", "energy", "wine", "yacht")
_UNCERTAIN = "uncertainty:distributions"
BY_SET = [
    ("cinquin2024", "4", "GFSVI and exact process", "cinquin2024-figure-4", "toys:samples", _NOISE),
    ("pequignot2020", "4", "Epistemic uncertainty, experiment 1", "pequignot2020-figure-4", _UNCERTAIN, _SMALL),
    ("pequignot2020", "5", "Epistemic uncertainty, experiment 2", "pequignot2020-figure-5", _UNCERTAIN, _SMALL),
    ("rudner2021", "2", "Calibration and out-of-distribution inputs", "rudner2021-1", "ood:summary", _RUDNER),
    ("rudner2021", "5", "Reliability", "rudner2021-1", "ood:reliability", _RUDNER),
    ("rudner2021", "6", "ROC by predictive entropy", "rudner2021-1", "ood:roc", _RUDNER),
    ("rudner2021", "7", "Confidence out of distribution", "rudner2021-1", "ood:confidence", _RUDNER),
    ("cinquin2024", "12", "Predictive entropy", "cinquin2024-2", "ood:histograms", _CINQUIN),
    ("cinquin2024", "13", "Rotated images", "cinquin2024-figure-13", "shifts:entropy", _CINQUIN),
    ("dirichlet2022", "5", "Corrupted images", "dirichlet2022-11", "shifts:corruption", ("cifar10",)),
    ("dirichlet2022", "6", "Attacked images", "dirichlet2022-14", "shifts:attack", ("cifar10",)),
    ("dirichlet2022", "7", "Gain by function-space priors", "dirichlet2022-11", "shifts:gains", ("cifar10",)),
    ("dirichlet2022", "5", "Corrupted images", "dirichlet2022-17", "shifts:corruption", ("cifar100",)),
    ("dirichlet2022", "6", "Attacked images", "dirichlet2022-20", "shifts:attack", ("cifar100",)),
    ("dirichlet2022", "7", "Gain by function-space priors", "dirichlet2022-17", "shifts:gains", ("cifar100",)),
]
NAMES = {
    "mnist": "MNIST", "fashion_mnist": "FashionMNIST", "notmnist": "NotMNIST", "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100", "svhn": "SVHN", "eyepacs": "EyePACS", "aptos": "APTOS", "idrid": "IDRiD",
    "retina_mnist": "RetinaMNIST", "cinquin_1d": "y = sin(2πx), noise 0.1", "boston": "Boston",
    "cinquin_1d_noisy": "y = sin(2πx), noise 1", "concrete": "Concrete", "energy": "Energy", "wine": "Wine",
    "yacht": "Yacht", "snelson": "Snelson", "two_moons_rudner": "two moons (rudner2021)", "photos": "photographs",
    "two_moons_dirichlet": "two moons (dirichlet2022)", "two_moons_cinquin": "two moons (cinquin2024)",
    "pequignot_1d": "y = cos(4(x + 0.2))", "gulf_drifters": "Gulf drifters",
}  # fmt: skip
# Some rows of table toys: paper and number, title, data set, function, rows, suffix of the name.
_WEIGHTS = ("FSVI", "MFVI", "Laplace")
_RBF, _MATERN = ("GFSVI (RBF)", "FVI (RBF)"), ("GFSVI (Matern 1/2)", "FVI (Matern 1/2)")
_LAPLACE = (
    "Baselines are shown beside; the paper's panel of a Laplace approximation to the Gaussian process of the labels is "
    "not here."
)
_FSVI = ("FSVI (rudner2021)", "FSVI")
_COMMAND = (
    "FSVI (rudner2021): N(0, 10) on function values, all layers, diagonal, as the authors' command has it; FSVI: eq. "
    "14, of the last layer."
)
SOME = [
    (
        "cinquin2024",
        "2",
        f"{_SINE}: Matérn 1/2 prior and baselines",
        "cinquin_1d",
        "toys:samples",
        (*_MATERN, *_WEIGHTS, "GP (Matern 1/2)"),
        "",
        "",
    ),
    (
        "cinquin2024",
        "5",
        f"{_SINE}: RBF and Matérn 1/2 priors and baselines",
        "cinquin_1d",
        "toys:samples",
        (*_RBF, "GP (RBF)", *_MATERN, "GP (Matern 1/2)", *_WEIGHTS),
        "",
        "",
    ),
    (
        "cinquin2024",
        "9",
        "Two moons: RBF prior and baselines",
        "two_moons_cinquin",
        "toys:moons",
        (*_RBF, *_WEIGHTS, "HMC"),
        "",
        _LAPLACE,
    ),
    (
        "cinquin2024",
        "10",
        "Two moons: Matérn 1/2 prior and baselines",
        "two_moons_cinquin",
        "toys:moons",
        (*_MATERN, *_WEIGHTS, "HMC"),
        "",
        _LAPLACE,
    ),
    (
        "rudner2021",
        "3",
        "Snelson: FSVI and MFVI",
        "snelson",
        "toys:samples",
        ("FSVI (rudner2021)", "MFVI"),
        "",
        "Colours are those of the other figures: the paper has data red, means black and functions blue.",
    ),
    ("rudner2022", "1", "Snelson: FSVI", "snelson", "toys:samples", _FSVI, "-snelson", _COMMAND),
    ("rudner2022", "1", "Two moons: FSVI", "two_moons_rudner", "toys:moons", _FSVI, "-two_moons_rudner", _COMMAND),
]
# Computed, without records.
COMPUTED = [
    (
        "cinquin2024",
        "17",
        "Eigenvalues of Gram matrices at uniform points of [-2, 2]^D",
        "kernels:eigenvalues",
        "The paper says 10 draws and D = 100; the number of points (100), the other dimensions and the length-scales "
        "are ours. Eigenvalues below 1e-16 are drawn there.",
    ),
    (
        "cinquin2024",
        "20",
        "Estimated regularised KL by points and γ",
        "kernels:divergences",
        "The paper's is from a network, which it does not describe; here from the exact posterior of y = sin(2πx) with "
        "noise 0.1 to its own prior, variance 1 and length-scale 0.5, at uniform points of [-2, 2].",
    ),
]
_STEPS = "Each length is a training of its own; the paper draws the curve of every step."
NOTES = {
    ("cinquin2024", "15"): _STEPS,
    ("cinquin2024", "16"): _STEPS,
    ("cinquin2024", "19"): "Activations and the measure of rank (eigenvalues at 200 uniform inputs) are ours.",
    ("rudner2021", "8"): "The numbers of points are ours; the text of the paper names none.",
}
# Contradictions between a figure and its paper's text, with the experiment that explains them; by name and protocol.
AGAINST = {
    ("cinquin2024-figure-15", "paper"): (
        "Against the paper: GFSVI does not converge shortly after TFSVI but is best at 100 steps and then loses its "
        "likelihood, since the learned noise shrinks without early stopping (table cinquin2024-4-epochs)."
    ),
    ("cinquin2024-figure-5", "paper"): (
        "Against the paper: Laplace does not underestimate the uncertainty of the exact RBF process but exceeds it, at "
        "the data and far away. It does not fit the sine; no experiment shows why."
    ),
    ("rudner2021-figure-8", "short"): (
        "Against the paper: with more inducing points the calibration error falls, and neither out-of-distribution "
        "entropy nor AUROC grows. These are up to 8 points, and no experiment shows why."
    ),
    ("dirichlet2022-figure-7-cifar10", "short"): (
        "Against the paper: MC Dropout gains least under attack, not ensembles. No experiment shows whether the "
        "reduced protocol is why."
    ),
    **dict.fromkeys(
        (("pequignot2020-figure-4-energy", "paper"), ("pequignot2020-figure-4-yacht", "paper")),
        "Against the paper: the prior is no more certain on data than at uniform inputs, as it is on Boston and Wine. "
        "It takes no training; no experiment shows why.",
    ),
}
SCREENING = [
    (
        "retinopathy-aptos",
        "Diabetic retinopathy, trained on APTOS: AUROC",
        "retinopathy",
        "aptos",
        "screening:screening",
    ),
    (
        "retinopathy-aptos-accuracy",
        "Diabetic retinopathy, trained on APTOS: accuracy",
        "retinopathy",
        "aptos",
        "screening:accuracy",
    ),
    (
        "retina-mnist",
        "Sight-threatening retinopathy, RetinaMNIST: AUROC",
        "retina-mnist",
        "retina_mnist",
        "screening:screening",
    ),
    (
        "retina-mnist-accuracy",
        "Sight-threatening retinopathy, RetinaMNIST: accuracy",
        "retina-mnist",
        "retina_mnist",
        "screening:accuracy",
    ),
]
_EVERY = [
    *(Figure(*each) for each in SCREENING),
    Figure(
        "cinquin2024-tfsvi-points-and-jitter",
        "TFSVI on Boston by points and jitter of its divergence",
        "cinquin2024-1-tfsvi",
        "boston",
        "choices:points_and_jitter",
    ),
    Figure(
        "toys-tfsvi-features",
        f"{_SINE}: TFSVI by its prior",
        "toys-tfsvi",
        "cinquin_1d",
        "toys:samples",
    ),
    Figure("uci-pit-boston", "PIT values, Boston", "uci", "boston", "pit:histograms"),
    *(Figure(f"digits-{name}", title, "digits", "digits", f"digits:{name}") for name, title in DIGITS),
    *(
        Figure(
            f"{paper}-figure-{number}", title, table, dataset, draw, paper, number, (), NOTES.get((paper, number), "")
        )
        for paper, number, title, table, dataset, draw in PUBLISHED
    ),
    *(
        Figure(f"{paper}-figure-{number}{end}", title, "toys", dataset, draw, paper, number, rows, note)
        for paper, number, title, dataset, draw, rows, end, note in SOME
    ),
    *(
        Figure(f"{paper}-figure-{number}", title, "", "", draw, paper, number, note=note)
        for paper, number, title, draw, note in COMPUTED
    ),
    *(
        Figure(f"{paper}-figure-{number}-{dataset}", f"{title}, {NAMES[dataset]}", table, dataset, draw, paper, number)
        for paper, number, title, table, draw, sets in BY_SET
        for dataset in sets
    ),
]
FIGURES: dict[str, Figure] = {figure.name: figure for figure in _EVERY}
