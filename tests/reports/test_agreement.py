"""Ours against published numbers: tests by hand and by scipy, rounding, missing errors, and widths that say nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benchmarks import tables
from benchmarks.records import published
from benchmarks.records.provenance import ROOT
from benchmarks.records.published import Published
from reports import captions, scatters
from reports.aggregate import CellResult, TableResult
from reports.agreement import (
    SCATTERS,
    Comparison,
    Verdict,
    level,
    level_of_few,
    range_of,
    rank_agreement,
    sign_agreement,
)
from reports.choice import Choice
from reports.labels import name
from tests.reports.fakes import Cell

OURS = (3.1, 3.9, 3.5)
THEIRS = Published("p", "1", "boston", "", "GP", "rmse", 3.0, 0.2, 5, "", ("", ""))


def comparison(**changes: object) -> Comparison:
    return Comparison(OURS, replace(THEIRS, **changes), 10.0)


def test_the_test_is_that_of_welch() -> None:
    """Published numbers with five runs' moments, against scipy's test from summaries."""
    expected = stats.ttest_ind_from_stats(np.mean(OURS), np.std(OURS, ddof=1), 3, 3.0, 0.2 * math.sqrt(5), 5, False)
    found = comparison()
    assert (found.t, found.p) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)
    assert found.agrees and found.informative


def test_few_runs_need_larger_differences_than_two_errors() -> None:
    """A difference of 2.5 errors of two runs each: a normal distribution would call it a difference."""
    pair = (3.0, 3.2)  # standard error .1
    found = Comparison(pair, replace(THEIRS, mean=3.1 - 2.5 * math.hypot(0.1, 0.1), stderr=0.1, n_runs=2), 10.0)
    assert found.t == pytest.approx(2.5) and found.freedom == pytest.approx(2) and found.agrees
    assert not replace(found, values=(3.0, 3.2) * 40, published=replace(found.published, n_runs=80)).agrees


def test_published_errors_of_unknown_many_runs_are_exact() -> None:
    own, other = np.var(OURS, ddof=1) / 3, 0.2**2
    assert comparison(n_runs=None).freedom == pytest.approx((own + other) ** 2 / (own**2 / 2))


def test_errors_from_shared_splits_make_fewer_differences_than_the_level() -> None:
    """4,000 pairs of equal methods over ten splits: with one difficulty for both, as where a paper's splits are ours,
    far fewer than five in a hundred differ; with other splits for each, about five.
    """
    draws = np.random.default_rng(0).normal(size=(4000, 4, 10))
    difficulty, ours, theirs, other = 3 * draws[:, 0], draws[:, 1], draws[:, 2], 3 * draws[:, 3]

    def share_of_differences(first: np.ndarray, second: np.ndarray) -> float:
        moments = zip(second.mean(1), second.std(1, ddof=1) / math.sqrt(10), strict=True)
        pairs = [replace(THEIRS, mean=mean, stderr=error, n_runs=10) for mean, error in moments]
        return float(np.mean([not Comparison(tuple(own), pair).agrees for own, pair in zip(first, pairs, strict=True)]))

    assert share_of_differences(difficulty + ours, difficulty + theirs) < 0.001
    assert 0.04 < share_of_differences(difficulty + ours, other + theirs) < 0.06


def test_the_level_holds_for_random_splits_of_the_same_points() -> None:
    """Ten test errors of the mean of nine tenths of 60 points, on either side by splits of their own."""
    rng, out, trials = np.random.default_rng(0), 0, 400

    def errors(points: np.ndarray) -> np.ndarray:
        splits = (rng.permutation(points) for _ in range(10))
        return np.array([math.sqrt(np.mean((split[:6] - split[6:].mean()) ** 2)) for split in splits])

    for _ in range(trials):
        points = rng.normal(size=60)
        ours, theirs = errors(points), errors(points)
        number = replace(THEIRS, mean=theirs.mean(), stderr=stats.sem(theirs), n_runs=10)
        out += not Comparison(tuple(ours), number, 1.0).agrees
    assert stats.binom.ppf(0.001, trials, 0.05) <= out <= stats.binom.ppf(0.999, trials, 0.05)


def test_rounding_is_taken_off_the_distance_and_added_to_the_error() -> None:
    found = comparison(half_unit=0.05, half_unit_of_error=0.005)
    assert found.gap == pytest.approx(0.5 - 0.05)
    assert found.error == pytest.approx(math.hypot(np.std(OURS, ddof=1) / math.sqrt(3), 0.205))
    assert comparison(half_unit=0.7).gap == 0 and comparison(half_unit=0.7).agrees


def test_an_error_printed_as_zero_is_half_a_unit_at_most() -> None:
    same = (0.904, 0.904, 0.904)
    cell = replace(THEIRS, mean=0.9, stderr=0.0, half_unit=0.0, half_unit_of_error=0.005)
    assert Comparison(same, cell, 1.0).t == pytest.approx(0.8)
    assert Comparison(same, replace(cell, half_unit_of_error=0.0), 1.0).t == math.inf


def test_half_units_are_those_of_the_digits_that_are_printed() -> None:
    cells = {" ± ".join(cell.printed): cell for cell in published.load("pequignot2020")}
    found = cells["3.4 ± 0.33"]
    assert (found.half_unit, found.half_unit_of_error) == pytest.approx((0.05, 0.005))
    assert cells["0.0788 ± 1e-3"].half_unit_of_error == pytest.approx(5e-4)


def test_a_missing_error_is_taken_as_ours_over_as_many_runs() -> None:
    own = np.std(OURS, ddof=1) / math.sqrt(3)
    assert comparison(stderr=None, n_runs=None).error == pytest.approx(math.sqrt(2) * own)
    found = comparison(stderr=None, n_runs=12)
    assert found.error == pytest.approx(math.hypot(own, own / 2)) and found.assumed


@pytest.mark.parametrize("theirs", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("taken", [1.0, 4.0])
def test_the_level_with_another_scatter_than_is_taken_is_that_of_simulation(theirs: float, taken: float) -> None:
    draws, out = np.random.default_rng(5).normal(size=(2, 3000, 5)), 0
    for ours, other in zip(draws[0], theirs * draws[1].mean(1), strict=True):
        cell = replace(THEIRS, mean=float(other), stderr=None, n_runs=5)
        out += not Comparison(tuple(ours), cell, 1.0, scatter=taken).agrees
    assert abs(out / 3000 - level(theirs, taken, 5)) < 4 * math.sqrt(0.25 / 3000)
    assert level(theirs, theirs, 5) == pytest.approx(0.05)


@pytest.mark.parametrize("ours, theirs, scatter", [(2, 10, 0.5), (3, 10, 4.0), (3, 5, 1.0)])
def test_the_level_with_fewer_runs_of_ours_is_that_of_simulation(ours: int, theirs: int, scatter: float) -> None:
    rng, trials = np.random.default_rng(ours), 200_000
    draws = rng.normal(size=(trials, ours)), scatter * rng.normal(size=(trials, theirs))
    p_values = stats.ttest_ind(*draws, axis=1, equal_var=False).pvalue
    for nominal in (0.05, 0.005):
        expected = level_of_few(scatter, ours, theirs, nominal)
        assert abs(np.mean(p_values < nominal) - expected) < 4 * math.sqrt(expected / trials)


def test_without_a_published_error_both_ends_of_the_scatter_decide() -> None:
    own = np.std(OURS, ddof=1) / math.sqrt(3)
    widths = [4.302653 * own * math.sqrt(1 + scatter**2) for scatter in SCATTERS]  # three runs on either side

    def outcome(gap: float, limit: float, stderr: float | None = None) -> str:
        number = replace(THEIRS, mean=3.5 - gap, stderr=stderr, n_runs=3)
        return Comparison(OURS, number, 2 * limit).outcome

    small, large = widths
    assert outcome(0.99 * small, 1.01 * large) == "reproduced"
    assert outcome(1.01 * small, 1.01 * large) == outcome(0.99 * large, 1.01 * large) == Verdict.UNDECIDED
    assert outcome(1.01 * large, 1.01 * large) == outcome(1.01 * large, 0.5 * small) == "differs"
    assert outcome(0.99 * small, 0.99 * large) == Verdict.UNDECIDED
    assert outcome(0.99 * small, 0.99 * small) == "uninformative"
    assert Comparison(OURS, replace(THEIRS, stderr=None, n_runs=3)).widest.scatter == 4
    assert outcome(1.01 * small, 1.01 * large, stderr=0.2) == "differs", "a published error is believed"


def test_a_cell_without_a_published_error_may_have_no_verdict_and_the_caption_counts_it() -> None:
    table = tables.get("dirichlet2022-2")
    row, column = table.rows[0], table.columns[0]
    for mean, status, said in ((3.48, "reproduced", False), (2.0, "undecided", True), (-9.0, "differs", False)):
        number = replace(THEIRS, mean=mean, stderr=None, n_runs=3)
        cell = CellResult(row, column, 3, dict(zip([(0, 0), (0, 1), (0, 2)], OURS)), number, range_of_column=30.0)
        result = TableResult(replace(table, rows=(row,), columns=(column,)), "paper", [[cell]])
        assert cell.status == status and ("no verdict" in cell.verdict) == said
        assert ("One cell has no verdict, as no error" in " ".join(captions.caption(result))) == said


def test_the_document_prints_these_levels() -> None:
    document = (ROOT / "docs" / "verdicts.md").read_text(encoding="utf-8")
    assert scatters.levels() in document and scatters.levels_of_few() in document
    assert f"differ in up to {max(level_of_few(s, 2, 10, 0.0005) for s in scatters.THEIRS):.3f} |" in document
    many = f"{len([c for p in published.papers() for c in published.load(p) if c.stderr is None])} have no error"
    assert many in document


def test_scatters_are_of_single_runs_of_both() -> None:
    table = tables.get("dirichlet2022-2")
    row, column = table.rows[0], table.columns[0]
    number = replace(THEIRS, stderr=0.2, n_runs=4, half_unit_of_error=0.05)  # a deviation of .4
    cell = CellResult(row, column, 3, dict(zip([(0, 0), (0, 1), (0, 2)], OURS)), number)
    rounded, unknown = replace(number, half_unit_of_error=0.1), replace(number, n_runs=None)
    cells = [cell, replace(cell, published=rounded), replace(cell, published=unknown)]
    assert scatters.scatters(cells) == {"p": [pytest.approx(0.4 / 0.4)]}
    assert "| all | 1 | 1.00 |" in scatters.quantiles(scatters.scatters(cells)) and "100%" in scatters.quantiles(
        {"p": [1.0]}
    )


def test_errors_that_are_deviations_of_runs() -> None:
    assert replace(comparison(), deviation=True).error == pytest.approx(
        math.hypot(np.std(OURS, ddof=1) / math.sqrt(3), 0.2 / math.sqrt(5))
    )


def test_what_would_agree_with_every_row_is_uninformative() -> None:
    found = comparison()
    assert replace(found, range_of_column=2 * found.width + 1e-9).informative
    assert not replace(found, range_of_column=2 * found.width - 1e-9).informative
    assert replace(found, range_of_column=None).informative == (found.width <= 1.5)
    rounded = replace(found, published=replace(found.published, half_unit=0.25))
    assert rounded.width == found.width + 0.25
    assert not replace(rounded, range_of_column=2 * found.width + 0.4).informative
    assert range_of([1.0, 4.0, 2.0]) == 3.0 and range_of([1.0, 4.0]) is None


def test_half_of_a_negative_published_value_is_a_range_too() -> None:
    """Log-likelihoods of a column with too few rows for a range."""
    values, number = tuple(-each for each in OURS), replace(THEIRS, mean=-3.0)
    assert Comparison(values, number).limit == Comparison(OURS, THEIRS).limit == 1.5
    assert Comparison(values, number).outcome == Comparison(OURS, THEIRS).outcome


@pytest.mark.parametrize("printed, known", [(True, True), (False, True), (False, False)])
@pytest.mark.parametrize("runs", [2, 3, 10])
def test_the_level_holds_for_few_runs(runs: int, printed: bool, known: bool) -> None:
    """At most 0.05 of the pairs from one distribution (plus chance) differ, with or without a published error and with
    a known or unknown number of runs.
    """
    rng, out, trials = np.random.default_rng(runs), 0, 600
    for _ in range(trials):
        ours, theirs = rng.normal(size=(2, runs))
        error = theirs.std(ddof=1) / math.sqrt(runs) if printed else None
        cell = replace(THEIRS, mean=theirs.mean(), stderr=error, n_runs=runs if known else None)
        out += not Comparison(tuple(ours), cell, 1.0).agrees
    assert out <= stats.binom.ppf(0.999, trials, 0.05)


def test_a_number_at_the_width_is_the_last_that_agrees() -> None:
    """The interval "width" ends where the test begins to reject."""
    for changes in ({"half_unit": 0.05}, {"stderr": None}, {"stderr": None, "n_runs": None, "half_unit": 0.05}):
        found = comparison(**changes)
        for sign in (-1, 1):
            inside, outside = (
                replace(found, published=replace(found.published, mean=3.5 + sign * (found.width + step)))
                for step in (-1e-9, 1e-9)
            )
            assert inside.agrees and not outside.agrees


@pytest.mark.parametrize("half_unit", [0.0, 0.05])
@pytest.mark.parametrize("stderr, n_runs", [(0.2, 5), (0.2, None), (None, 10), (None, None)])
def test_so_many_runs_would_tell(stderr: float | None, n_runs: int | None, half_unit: float) -> None:
    def scattered(n: int) -> tuple[float, ...]:
        values = np.linspace(-1, 1, n)
        return tuple(3.5 + 0.4 * values / values.std(ddof=1))

    few = Comparison(scattered(3), replace(THEIRS, stderr=stderr, n_runs=n_runs, half_unit=half_unit), 1.3)
    assert few.needed is not None and few.needed > 3 and not few.informative
    assert replace(few, values=scattered(few.needed)).informative
    assert not replace(few, values=scattered(few.needed - 1)).informative


def test_no_number_of_runs_helps_against_a_wide_published_error() -> None:
    assert comparison(stderr=3.0).needed is None or comparison(stderr=3.0).informative
    assert Comparison(OURS, replace(THEIRS, stderr=3.0), 1.0).needed is None


def test_the_caption_says_that_differences_without_an_error_tell_of_the_error() -> None:
    table = tables.get("dirichlet2022-2")
    row, column = table.rows[0], table.columns[0]
    exact, near, rounded = (3.5, 3.5, 3.5), (3.5, 3.5001, 3.5), OURS
    for values, stderr, said in ((exact, None, True), (near, None, True), (rounded, None, False), (near, 1e-4, False)):
        number = replace(THEIRS, stderr=stderr)
        cell = CellResult(row, column, 3, {(0, seed): value for seed, value in enumerate(values)}, number)
        result = TableResult(replace(table, rows=(row,), columns=(column,)), "paper", [[cell]])
        assert (captions.SMALL_ERRORS in captions.caption(result)) == said
        assert captions.SMALL_ERRORS not in captions.caption(result, Choice(difference=False))


@pytest.mark.parametrize(
    ("fewest", "said"),
    [
        ([30, 30], "Not even 1,000 runs would make 2 uninformative cells informative."),
        ([30], "Not even 1,000 runs would make 1 uninformative cell informative."),
        (
            [30, 0.2],
            "{} runs would make 1 of the uninformative cells informative; not even 1,000 runs would make 1 other "
            "informative.",
        ),
    ],
)
def test_the_caption_says_how_many_runs_would_tell(fewest: list[float], said: str) -> None:
    table = tables.get("dirichlet2022-2")
    rows, column = table.rows[: len(fewest)], table.columns[0]
    values = {(0, seed): value for seed, value in enumerate(OURS)}
    cells = [
        [CellResult(row, column, 3, values, replace(THEIRS, stderr=stderr), range_of_column=1.2)]
        for row, stderr in zip(rows, fewest)
    ]
    result = TableResult(replace(table, rows=rows, columns=(column,)), "paper", cells)
    needed = cells[-1][0].comparison
    sentence = said.format(needed and needed.needed)
    assert sentence in captions.caption(result)


def test_rank_agreement_is_spearmans() -> None:
    ours, theirs = [1.0, 2.0, 2.0, 5.0, 4.0], [10.0, 30.0, 20.0, 20.0, 50.0]
    assert rank_agreement(ours, theirs) == pytest.approx(stats.spearmanr(ours, theirs).statistic)
    assert rank_agreement(ours[:2], theirs[:2]) is None and rank_agreement([1.0] * 5, theirs) is None


@pytest.mark.parametrize("count", [1, 2, 8, 9])
@pytest.mark.parametrize("alike", [False, True])
def test_the_caption_has_the_rank_agreement_of_few_columns_one_by_one(count: int, alike: bool) -> None:
    table = tables.get("dirichlet2022-2")
    rows, metrics = table.rows[:5], ["accuracy", "nll", "ece", "brier", "auroc", "aurc", "crps", "rmse", "mse"][:count]
    columns = tuple(
        replace(table.columns[0], cell=Cell("rotated_mnist", "", metric), label="15°" if alike else f"{k}°")
        for k, metric in enumerate(metrics)
    )
    ours, theirs = np.random.default_rng(count).normal(size=(2, len(rows), count))
    cells = [
        [
            CellResult(row, column, 1, {(0, 0): float(ours[i, j])}, replace(THEIRS, mean=float(theirs[i, j])))
            for j, column in enumerate(columns)
        ]
        for i, row in enumerate(rows)
    ]
    result = TableResult(replace(table, rows=rows, columns=columns), "paper", cells)
    found = [stats.spearmanr(ours[:, j], theirs[:, j]).statistic for j in range(count)]
    names = [f"15°, {name(metric)}" for metric in metrics] if alike and count > 1 else [c.label for c in columns]
    each = ", ".join(f"{value:.2f} ({column})" for value, column in zip(found, names))
    mean = f"{np.mean(found):.2f}"
    correlations = {1: each, 9: f"{mean} in 9 columns, on average"}.get(count, f"{each}; on average {mean}")
    said = f"Order of the rows, ours and published: Spearman's correlation {correlations}."
    assert said.replace(" -", " −") in captions.caption(result)


def test_signs_agree_where_the_published_difference_has_one() -> None:
    assert sign_agreement([1.0, -2.0, 3.0, 0.0, -1.0], [0.5, 1.0, 0.0, 2.0, -4.0]) == (2, 4)
    assert sign_agreement([1.0], [0.0]) is None and sign_agreement([], []) is None


def test_the_caption_counts_the_signs_of_what_fvi_changes() -> None:
    table = tables.get("dirichlet2022-2")
    rows, columns = table.rows[:4], table.columns[:2]  # MAP, MAP fVI, MC Dropout, MC Dropout fVI
    numbers = published.table(table.paper, table.number)
    means = [[numbers[column.published_key(row)].mean for column in columns] for row in rows]
    means[1][0] = means[0][0] + means[0][0] - means[1][0]  # the other sign
    cells = [
        [
            CellResult(row, column, 2, {(0, 0): mean, (1, 1): mean}, numbers[column.published_key(row)])
            for column, mean in zip(columns, line, strict=True)
        ]
        for row, line in zip(rows, means, strict=True)
    ]
    cells[3][1] = replace(cells[3][1], values={})
    result = TableResult(replace(table, rows=rows, columns=columns), "paper", cells)
    assert "Sign of what fVI changes, ours and published: the same in 2 of 3." in captions.caption(result)
    alone = TableResult(replace(table, rows=rows[:1], columns=columns), "paper", cells[:1])
    assert not any("fVI changes" in sentence for sentence in captions.caption(alone))
