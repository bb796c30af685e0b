"""The experiments about FSVI on photographs of the retina: what their rows differ in."""

from __future__ import annotations

import pytest

from benchmarks import tables
from benchmarks.records.config import training_key

SMALL, LARGE = tables.get("retina-mnist-fsvi"), tables.get("retinopathy-fsvi")


def runs(table, row, protocol) -> list:
    return table.cell_runs(row, table.columns[0], protocol)


def changes(table, row, first, protocol) -> set[str]:
    """Hyper-parameters, and names of parts, in which a row's runs are not those of the first."""
    found = set()
    for run, other in zip(runs(table, row, protocol), runs(table, first, protocol), strict=True):
        own, parts = run["parts"], other["parts"]
        for kind in own.keys() | parts.keys():
            if own[kind] != parts[kind]:
                found |= {
                    kind if key == "name" else f"{kind}.{key}"
                    for key in {**(own[kind] or {}), **(parts[kind] or {})}
                    if (own[kind] or {}).get(key) != (parts[kind] or {}).get(key)
                }
    return found


@pytest.mark.parametrize(
    ("table", "base", "protocol"), [(SMALL, "retina-mnist", "own"), (LARGE, "retinopathy", "short")]
)
def test_the_rows_without_a_reading_are_those_of_the_table(table, base, protocol) -> None:
    base = tables.get(base)
    for row in (row for row in table.rows if not row.variant):
        column = next(c for c in base.columns if c.cell == table.columns[0].cell)
        same = next(r for r in base.rows if r.label == row.label)
        theirs = [training_key(run) for run in base.cell_runs(same, column, protocol)]
        assert [training_key(run) for run in runs(table, row, protocol)] == theirs


def test_the_row_of_retina_mnist_is_retinas_whole() -> None:
    parts, theirs = (
        runs(table, next(row for row in table.rows if row.label == "FSVI"), protocol)[0]["parts"]
        for table, protocol in ((SMALL, "own"), (LARGE, "short"))
    )
    for kind in ("family", "divergence", "prior", "context", "weight"):
        assert parts[kind] == theirs[kind], kind


def test_rows_differ_in_what_they_say() -> None:
    main, full, jitter, diagonal, features, kl, narrow, _ = SMALL.rows
    differences = [changes(SMALL, row, full, "own") for row in (jitter, diagonal, features)]
    assert differences == [{"divergence.jitter"}, {"divergence.covariance"}, {"prior.features"}]
    assert {"divergence.covariance", "prior", "weight.scaling"} <= changes(SMALL, kl, full, "own")
    assert changes(SMALL, narrow, kl, "own") == {"family.log_var_init"}
    assert changes(SMALL, main, narrow, "own") == {"family.layers"}
    fsvi, all_layers, wide = (row for row in LARGE.rows if row.made_by == "FSVI")
    assert changes(LARGE, fsvi, all_layers, "short") == {"family.layers"}
    assert changes(LARGE, wide, all_layers, "short") == {"family.log_var_init"}
    mfvi, plain, wide = (row for row in LARGE.rows if row.made_by == "MFVI")
    assert {"divergence", "family.layers", "weight.rise"} <= changes(LARGE, mfvi, plain, "short")
    assert changes(LARGE, wide, plain, "short") == {"family.log_var_init"}


def test_members_of_ensembles_begin_as_the_network_does() -> None:
    for method in ("FSVI", "MFVI"):
        singles = {row.variant: row for row in LARGE.rows if row.made_by == method}
        for row in (row for row in LARGE.rows if row.made_by == f"{method} Ensemble"):
            own, alone = (runs(LARGE, each, "short")[0]["parts"] for each in (row, singles[row.variant]))
            assert (own["family"]["base"], own["family"]["size"]) == (alone["family"], 3)
            assert {k: v for k, v in own.items() if k != "family"} == {k: v for k, v in alone.items() if k != "family"}


def test_records_keep_the_name_that_their_protocol_had() -> None:
    """Table retina-mnist reproduces no paper, but its protocol was called paper when its records were made."""
    for table in (SMALL, tables.get("retina-mnist")):
        assert table.protocols == ("own", "smoke") and table.default_protocol == "own"
        assert {run["protocol"] for run in table.runs()} == {"paper"}
        assert {run["protocol"] for run in table.runs("smoke")} == {"smoke"}
