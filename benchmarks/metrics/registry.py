"""Registry of metrics: direction, unit, formula, bin rule and version."""

from __future__ import annotations

from typing import Literal

from fvi_core import plugins
from fvi_core.spelling import nearest

from .metric import Metric, UnknownMetric, ranged
from .screening_registry import MEAN_P as _P
from .screening_registry import SCREENING

KINDS = ("id", "shift", "ood", "grid", "spectrum")  # kinds of evaluation sets
LABELLED = ("id", "shift")
"""Kinds whose sets have labels or targets of their points."""

_RETAIN = "points retained in order of predictive entropy, lowest first, mean over the orders of ties"
_OOD = "OOD positive, ID test set negative, high score means OOD"
_AVERAGED: tuple[tuple[str, Literal["higher", "lower"]], ...] = (
    ("ood_auroc", "higher"),
    ("ood_aupr", "higher"),
    ("ood_fpr95", "lower"),
)
_CRPS = (
    "mean over points of E|X - y| - E|X - X'| / 2 (Gneiting and Raftery 2007), in closed form for the Gaussian or the "
    "mixture of S Gaussians that X is (Grimit et al. 2006)"
)
_STANDARD = " (targets standardised by the training split)"

METRICS: dict[str, Metric] = plugins.track(
    {
        metric.name: ranged(metric)
        for metric in [
            Metric("accuracy", "higher", "fraction", f"mean 1[argmax p = y], {_P}"),
            Metric("nll", "lower", "nats", f"-mean log p(y), {_P}"),
            Metric("log_likelihood", "higher", "nats", f"mean log p(y), {_P}"),
            Metric("zero_probability", "lower", "points", f"points with p(y) = 0 where there are any, {_P}"),
            Metric(
                "smoothed_log_likelihood",
                "higher",
                "nats",
                f"mean log((1 - 1e-4) p(y) + 1e-4 / K) for K classes (dirichlet2022 app. F), {_P}",
            ),
            Metric("brier", "lower", "", f"mean over points of sum over classes of (p_c - 1[y = c])^2, {_P}"),
            Metric(
                "ece",
                "lower",
                "fraction",
                f"sum over bins of n_b / n |accuracy_b - confidence_b|, {_P}",
                "15 bins of equal width (lo, hi] of max p; 0 in the first, 1 in the last",
            ),
            Metric(
                "ece_10",
                "lower",
                "fraction",
                f"sum over bins of n_b / n |accuracy_b - confidence_b|, {_P}",
                "10 bins of equal width (lo, hi] of max p; 0 in the first, 1 in the last",
            ),
            Metric(
                "ace_15",
                "lower",
                "fraction",
                f"sum over bins of n_b / n |accuracy_b - confidence_b|, {_P}",
                "15 bins of equal mass of max p (sizes differ by one at most), ties with the mean of their labels",
            ),
            Metric(
                "classwise_ece",
                "lower",
                "fraction",
                "mean over classes c of the sum over bins of n_b / n |share of label c - mean of p_c| (Kull et al. "
                f"2019; the static calibration error of Nixon et al. 2019), {_P}",
                "15 bins of equal width (lo, hi] of each p_c; 0 in the first, 1 in the last",
            ),
            Metric(
                "classwise_ace",
                "lower",
                "fraction",
                "mean over classes c of the sum over bins of n_b / n |share of label c - mean of p_c| (the adaptive "
                f"calibration error of Nixon et al. 2019), {_P}",
                "15 bins of equal mass of each p_c (sizes differ by one at most), ties with the mean of their labels",
            ),
            Metric(
                "top_label_ece",
                "lower",
                "fraction",
                "sum over predicted classes and bins of n_cb / n |accuracy_cb - confidence_cb| (top-label calibration "
                f"error, Gupta and Ramdas 2022), {_P}",
                "15 bins of equal width (lo, hi] of max p for each predicted class; 0 in the first, 1 in the last",
            ),
            Metric("predictive_entropy", "none", "nats", f"mean H[p], {_P}"),
            Metric("expected_entropy", "none", "nats", "mean over points and samples of H[softmax(logits)]"),
            Metric(
                "mutual_information",
                "none",
                "nats",
                "predictive_entropy - expected_entropy by point, below 1e-12 set to 0; mean over points",
            ),
            Metric(
                "msp",
                "none",
                "fraction",
                "mean of 1 - max p; as a score it ranks points as the maximum softmax probability does, reversed "
                f"(Hendrycks and Gimpel 2017), {_P}",
            ),
            Metric(
                "energy",
                "none",
                "nats",
                "mean over points and samples of -log sum_c exp(l_c) (Liu et al. 2020, T = 1); not defined for "
                "log-probabilities in the place of logits",
            ),
            Metric(
                "dirichlet_mutual_information",
                "none",
                "nats",
                "H[m] + sum_k m_k (psi(z m_k + 1) - psi(z + 1)), mean over points (dirichlet2022 app. E, F); "
                "m: mean over samples of the probabilities smoothed by 1e-4; z: maximum-likelihood precision "
                "given m, in [1e-3, 1e6]; not defined for one sample",
            ),
            Metric("ood_auroc", "higher", "fraction", f"area under the ROC curve, ties count one half; {_OOD}"),
            Metric(
                "ood_aupr",
                "higher",
                "fraction",
                f"average precision: sum over thresholds of (R_i - R_{{i-1}}) P_i; {_OOD}",
            ),
            Metric(
                "ood_fpr95",
                "lower",
                "fraction",
                f"false positive rate at the highest threshold with TPR >= 0.95; {_OOD}",
            ),
            Metric(
                "ood_accuracy",
                "higher",
                "fraction",
                "accuracy of a decision tree of depth 1 (Gini) fitted to the score, on the first n points of the "
                "ID test set and of the OOD set, n the size of the smaller (cinquin2024 app. C.5)",
            ),
            Metric(
                "ood_accuracy_log_loss",
                "higher",
                "fraction",
                "ood_accuracy of a tree whose threshold minimises the log-loss of its two leaves",
            ),
            *(
                Metric(
                    f"{group}_{name}",
                    direction,
                    "fraction",
                    f"mean of {name} over the {group} sets of the data set that were evaluated (groups of OpenOOD, "
                    "Yang et al. 2022: benchmarks/metrics/groups.py)",
                )
                for group in ("near", "far")
                for name, direction in _AVERAGED
            ),
            Metric(
                "selective_accuracy_area",
                "higher",
                "fraction",
                f"mean over k = 1..n of the accuracy on the first k points; {_RETAIN}",
            ),
            Metric("aurc", "lower", "fraction", f"mean over k = 1..n of (errors among the first k) / k; {_RETAIN}"),
            Metric(
                "augrc",
                "lower",
                "fraction",
                f"mean over k = 1..n of (errors among the first k) / n (Traub et al. 2024); {_RETAIN}",
            ),
            *SCREENING,
            Metric(
                "expected_log_likelihood",
                "higher",
                "nats",
                "mean over points and samples of log p(y | f_s), in closed form where f is Gaussian; regression: "
                "original units, the standardised value - log y_std",
            ),
            Metric("rmse", "lower", "target units", "square root of the mean of (y - E f)^2, original units"),
            Metric("mse", "lower", "squared target units", "mean of (y - E f)^2, original units"),
            Metric(
                "log_posterior_predictive",
                "higher",
                "nats",
                "mean over points of log mean_s N(y; f_s, sigma^2), in closed form where f is Gaussian; original "
                "units, the standardised value - log y_std",
            ),
            Metric(
                "gaussian_log_predictive",
                "higher",
                "nats",
                "mean over points of log N(y; E f, Var f + sigma^2), moments over samples (divided by S), in original "
                "units: a Gaussian in the place of the mixture (MC dropout in the code of pequignot2020)",
            ),
            Metric(
                "gaussian_log_predictive_without_noise",
                "higher",
                "nats",
                "mean over points of log N(y; E f, Var f), variance over samples divided by S - 1, in original "
                "units; not defined for S = 1 (ensembles in the code of pequignot2020)",
            ),
            Metric("crps", "lower", "target units", f"{_CRPS}, original units"),
            Metric("crps_standardised", "lower", "target standard deviations", _CRPS + _STANDARD),
            *(
                Metric(
                    f"coverage_{level}",
                    "none",
                    "fraction",
                    f"share of targets in the central {level} % interval of the predictive distribution, "
                    f"|F(y) - .5| <= {level / 200:g}; right at {level / 100:g} (Gneiting et al. 2007)",
                )
                for level in (50, 90, 95)
            ),
            *(
                Metric(
                    f"interval_width_{level}",
                    "none",
                    "target units",
                    f"mean width of the central {level} % interval of the predictive distribution, original units: "
                    "narrower is better where coverage is right (Gneiting et al. 2007)",
                )
                for level in (50, 90, 95)
            ),
            Metric(
                "quantile_calibration_error",
                "lower",
                "fraction",
                "mean over p = .01, .02, ..., .99 of |share of F(y) <= p - p|, F the predictive distribution function "
                "(Kuleshov et al. 2018; absolute as in Chung et al. 2021)",
            ),
            Metric(
                "pit_ks",
                "lower",
                "fraction",
                "Kolmogorov-Smirnov distance sup_u |share of F(y) <= u - u| of the PIT values F(y) from uniform ones "
                "(Dawid 1984)",
            ),
            Metric(
                "rmse_standardised",
                "lower",
                "target standard deviations",
                "square root of the mean of (y - E f)^2" + _STANDARD,
            ),
            Metric("mse_standardised", "lower", "target variances", "mean of (y - E f)^2" + _STANDARD),
            Metric(
                "log_posterior_predictive_standardised",
                "higher",
                "nats",
                "mean over points of log mean_s N(y; f_s, sigma^2), in closed form where f is Gaussian" + _STANDARD,
            ),
            Metric(
                "expected_log_likelihood_standardised",
                "higher",
                "nats",
                "mean over points and samples of log N(y; f_s, sigma^2), in closed form where f is Gaussian"
                + _STANDARD,
            ),
            Metric(
                "epistemic_entropy",
                "none",
                "nats",
                "log S - psi(1) + log 2 + mean_s log r_s, mean over points (pequignot2020 eq. 5, d = k = 1); "
                "r_s: distance of f_s(x) to the nearest other sample, at least float32 eps; not defined for S = 1"
                + _STANDARD,
            ),
            Metric(
                "entropy",
                "none",
                "nats",
                "of the posterior, from the distances r_s of S different draws to their nearest others: log S - "
                "psi(1) + log volume of the unit ball + d mean_s log r_s (pequignot2020 eq. 5); space=parameter: d "
                "network parameters; space=predictor: values at d = T uniform inputs, divided by sqrt(T), mean over "
                "sets of inputs",
                entry="posterior",
            ),
            Metric(
                "knn_kl",
                "lower",
                "nats",
                "KL of two posteriors from nearest neighbours among draws of each (pequignot2020 eq. 4 and 6, k = "
                "1), spaces as for entropy; pair=q->p is KL(q || p), q the run itself, p the mean over the others of "
                "that name",
                entry="posterior",
            ),
            *(
                Metric(
                    name,
                    "none",
                    unit,
                    f"{what}, in closed form where f is Gaussian"
                    + (_STANDARD if unit else "")
                    + "; of classifiers of p_c = softmax(logits)_c; mean over outputs or classes",
                )
                for name, unit, what in (
                    (
                        "std_at_data",
                        "target standard deviations",
                        "mean over training inputs of sd f, without noise, at the nearest input of the grid",
                    ),
                    (
                        "std_far",
                        "target standard deviations",
                        "mean of sd f, without noise, over the fifth of the grid's inputs that lies farthest from "
                        "every training input",
                    ),
                    ("std_far_ratio", "", "std_far / std_at_data; not defined where that is 0"),
                )
            ),
            Metric(
                "mean_distance",
                "lower",
                "target standard deviations",
                "square root of the mean over points of (E f - E g)^2, g the reference"
                + _STANDARD
                + "; of classifiers "
                "the same of the probabilities of all classes",
                entry="reference",
            ),
            Metric(
                "std_distance",
                "lower",
                "target standard deviations",
                "square root of the mean over points of (sd f - sd g)^2, without noise, g the reference"
                + _STANDARD
                + "; for classifiers, of the probabilities of all classes",
                entry="reference",
            ),
            Metric(
                "wasserstein2",
                "lower",
                "target standard deviations",
                "mean over points of the Wasserstein-2 distance on the line between S draws of f(x) and S draws of the "
                "reference (cinquin2024 app. C.6)" + _STANDARD,
                entry="reference",
            ),
            Metric(
                "wasserstein2_squared",
                "lower",
                "target variances",
                "mean over points of its square, as functions of Python Optimal Transport give it" + _STANDARD,
                entry="reference",
            ),
            Metric(
                "temperature",
                "none",
                "",
                "divisor of the logits, by maximum likelihood on the validation subset (Guo et al. 2017)",
                entry="fit",
            ),
            Metric(
                "log_marginal_likelihood",
                "higher",
                "nats per point",
                "log N(y; m, K + sigma^2 I) / N of the N targets of a set, m and K the run's own prior at its inputs, "
                "sigma its noise: trained, but not conditioned on the training data",
                entry="evidence",
            ),
            Metric(
                "collapsed_bound",
                "higher",
                "nats per point",
                "(log N(y; 0, Q + sigma^2 I) - tr(K - Q) / (2 sigma^2)) / N of the N targets of a set, "
                "Q = K_xz (K_zz + jitter I)^-1 K_zx at the trained inducing points z (Titsias 2009)",
                entry="bound",
            ),
            Metric("training_seconds", "lower", "seconds", "wall time of training, without evaluation"),
        ]
    }
)


def metric(name: str) -> Metric:
    """Return the metric of this name. Raises UnknownMetric with the nearest names."""
    plugins.load()
    if name not in METRICS:
        raise UnknownMetric(f"unknown metric {name!r}; {nearest(name, METRICS)}")
    return METRICS[name]
