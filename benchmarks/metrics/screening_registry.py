"""Registry entries of screening metrics: label 1 is a finding, and uncertain cases are referred to an expert."""

from __future__ import annotations

from .metric import Metric

MEAN_P = "p = mean over samples of softmax(logits)"
_REFER = (
    "most uncertain referred first by predictive entropy, mean over the orders of ties and over no case referred to "
    "all of them"
)
_ORACLE = ", an expert who never errs deciding on the others"

SCREENING = (
    Metric(
        "balanced_accuracy",
        "higher",
        "fraction",
        f"mean over the labels that occur of the share of their cases that argmax p gets right, {MEAN_P}",
    ),
    Metric("auroc", "higher", "fraction", f"area under the ROC curve of p(finding), ties count one half, {MEAN_P}"),
    Metric("auprc", "higher", "fraction", f"area under precision against recall of p(finding) by trapezoids, {MEAN_P}"),
    Metric(
        "sensitivity_at_80_specificity",
        "higher",
        "fraction",
        f"largest true positive rate of a threshold on p(finding) with specificity >= 0.8, {MEAN_P}; the NHS asks 0.85",
    ),
    *(
        Metric(
            f"referral_{measure}_area{suffix}",
            "lower" if measure == "nll" else "higher",
            "nats" if measure == "nll" else "fraction",
            f"{measure} on the kept cases{_ORACLE if suffix else ''}; {_REFER}, {steps} (Band et al. 2021)",
        )
        for measure, steps in (
            ("accuracy", "one by one"),
            ("auroc", "by hundredths; kept cases with one label count 1 while no error is among them, else 0"),
            ("auprc", "by hundredths; kept cases without a finding count 1 while no error is among them, else 0"),
            ("nll", "one by one"),
        )
        for suffix in ("", "_oracle")
    ),
)
