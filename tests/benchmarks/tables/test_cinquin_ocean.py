"""Settings of cinquin2024's table 3: the paper's, and those of the ocean script of the first author's next paper."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import datasets
from benchmarks import tables
from benchmarks.tables import cinquin_ocean
from fvi_core.contexts import ContextSource
from fvi_core.random import Streams
from fvi_core.registry import CONTEXTS

TABLE, RAW = tables.get("cinquin2024-3"), tables.get("cinquin2024-3-degrees")


def run(label: str, table=TABLE) -> dict:
    row = next(row for row in table.rows if row.label == label)
    return table.cell_runs(row, table.columns[0], "paper")[0]


@pytest.mark.parametrize(("label", "scheme"), [("GFSVI", "scaled"), ("TFSVI", "scaled"), ("VIP", "scaled"), ("GP", "")])
def test_networks_see_scaled_data_and_the_exact_process_raw_ones(label: str, scheme: str) -> None:
    assert run(label)["dataset"]["scheme"] == scheme and run(label, RAW)["dataset"]["scheme"] == ""


@pytest.mark.parametrize("label", ["GFSVI", "TFSVI"])
def test_fixed_points_are_10_by_8_places_of_a_box(label: str) -> None:
    context = run(label)["parts"]["context"]
    x = torch.zeros(1, 20, 2)
    points = CONTEXTS.build(context)(ContextSource(x, x[:, 0], x[:, 0], {}), Streams([0]))[0].numpy()
    assert points.shape == (80, 2)  # and 2 components
    for axis, count, low, high in ((0, 10, -1.70981871, 2.01992571), (1, 8, -1.70385883, 2.40336468)):
        np.testing.assert_allclose(np.unique(points[:, axis]), np.linspace(low, high, count), rtol=1e-6)


def test_the_kernel_of_gfsvi_is_given_in_numbers() -> None:
    prior = run("GFSVI")["parts"]["prior"]
    assert prior["fit_steps"] == 0 and prior["kernel"]["ard"] is True
    for name, degrees, variance in (("potential", 7.91214829, 0.25026575), ("stream", 1.13632106, 0.02812761)):
        lengths = np.exp(prior["parameters"][f"{name}.log_lengthscale"]) * (1.87364991, 0.84454863)
        np.testing.assert_allclose(lengths, degrees, rtol=1e-12)
        assert np.exp(prior["parameters"][f"{name}.log_variance"]) * 0.17750018**2 == pytest.approx(variance)


def test_scales_in_numbers_are_those_of_the_data() -> None:
    try:
        scaled, raw = (datasets.load("gulf_drifters", scheme=scheme) for scheme in ("scaled", ""))
    except datasets.DataNotFound as error:
        pytest.skip(str(error).splitlines()[0])
    np.testing.assert_allclose(raw.train.x.std(0), cinquin_ocean.X_STD, rtol=1e-6)
    assert scaled.y_std == pytest.approx(cinquin_ocean.Y_STD, rel=1e-6)


def test_the_exact_process_is_fitted_by_adam_at_a_tenth_from_a_noise_variance_of_a_thousandth() -> None:
    parts = run("GP")["parts"]
    assert parts["likelihood"]["init_std"] ** 2 == pytest.approx(1e-3)
    assert parts["training"]["epochs"] == 1000 and parts["training"]["optimiser"]["lr"] == 0.1


def test_tfsvi_has_the_papers_prior_and_all_layers() -> None:
    parts = run("TFSVI")["parts"]
    assert parts["prior"]["variance"] == 0.5**2 and parts["divergence"]["outputs"] == "joint"
    assert parts["divergence"]["jacobian"] == parts["prior"]["jacobian"] == "full"
    assert parts["prior"]["features"] == "current"


def test_readings_in_degrees_are_the_tables_beside_it() -> None:
    starts = {row.label: row for row in tables.get("cinquin2024-3-noise").rows}
    plain = run("GFSVI", RAW)["parts"]
    assert plain["likelihood"]["init_std"] == 0.1 and plain["context"] == cinquin_ocean.GRID
    other = tables.get("cinquin2024-3-noise").cell_runs(starts["GFSVI, noise from .01"], TABLE.columns[0], "paper")[0]
    assert {**other["parts"], "likelihood": None} == {**plain, "likelihood": None}
