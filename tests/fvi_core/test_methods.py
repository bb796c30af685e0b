"""The catalogue: every row is made of parts that exist and fit together, and a file of one's own adds a row."""

import json
from dataclasses import replace

import pytest
import torch

from fvi_core import __main__, methods
from fvi_core.methods import Method, UnknownMethod
from fvi_core.registry import REGISTRIES
from fvi_core.training import Trainer, Training
from tests.fvi_core import small

PAPERS = {"", "all", "rudner2021", "rudner2022", "dirichlet2022", "cinquin2024", "pequignot2020"}
NAMES = {
    "MAP",
    "MFVI",
    "MFVI (tempered)",
    "MC Dropout",
    "Deep Ensemble",
    "FSVI (rudner2021)",
    "FSVI",
    "FSVI Ensemble",
    "GFSVI",
    "MAP fVI",
    "MC Dropout fVI",
    "Ensemble fVI",
    "FuNN-MFVI",
    "NN-HyVI",
    "FuNN-HyVI",
    "HMC",
    "FBNN",
    "VIP",
    "GP",
    "GWI",
    "Sparse GP",
    "MFVI (radial)",
    "Radial",
    "Radial fVI",
    "Rank1",
    "Rank1 fVI",
    "SWAG",
    "Laplace",
    "Laplace (full)",
    "Laplace (Kronecker)",
    "Laplace (last layer)",
    "Subnetwork Laplace",
    "MAP (temperature)",
    "Deep Ensemble (temperature)",
    "DUQ",
    "VOGN",
}


def test_the_rows_that_are_promised_are_there():
    catalogue = methods.catalogue()
    assert set(catalogue) >= NAMES
    assert all(row.name == name and row.description and row.paper in PAPERS for name, row in catalogue.items())


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_row_is_plain_data_whose_parts_fit(name):
    row = methods.get(name)
    assert json.loads(json.dumps(row.parts())).keys() == {"family", "divergence", "prior", "context", "weight", "fit"}
    parts = json.loads(json.dumps(row.parts() | ({"likelihood": row.likelihood} if row.likelihood else {})))
    smaller = (("context", "points", 4), ("divergence", "samples", 6), ("prior", "fit_steps", 2), ("fit", "size", 5))
    for kind, option, fewer in smaller:
        if parts[kind] and (option in parts[kind] or parts[kind]["name"] == "gaussian_process"):
            parts[kind][option] = fewer
    outputs = 3 if "fVI" in name or row.likelihood else 1
    data = small.training_data(2, 6, outputs)
    options = Training(1, 6, {"name": "adam"}, samples=3, dtype="float64")
    trained = Trainer(small.model(parts, outputs), options, data, small.streams(2)).run()
    assert [t.reason for t in trained] == [None, None] and all(
        torch.isfinite(torch.tensor(t.loss)).all() for t in trained
    )


def test_parts_are_fresh_copies():
    methods.get("FSVI").parts()["prior"]["variance"] = 99
    methods.get("FSVI").parts()["weight"]["factor"] = 99
    assert methods.get("FSVI").parts()["prior"]["variance"] == 1 and methods.get("MAP").parts()["weight"]["factor"] == 1


def test_other_names_of_a_row():
    assert methods.get("TFSVI") is methods.get("FSVI (rudner2022)") is methods.get("FSVI")
    assert methods.get("Ensemble") is methods.get("Deep Ensemble")
    assert methods.get("BNN-Laplace") is methods.get("Laplace (Kronecker)")
    taken = [name for row in methods.catalogue().values() for name in (row.name, *row.aliases)]
    assert len(taken) == len(set(taken))


def test_an_unknown_method_names_the_nearest():
    with pytest.raises(UnknownMethod, match="^no method 'FSVY'; did you mean 'FSVI'"):
        methods.get("FSVY")


def test_a_name_is_given_once():
    for taken in (("MAP",), ("TFSVI",), ("new", "MAP"), ("new", "TFSVI")):
        with pytest.raises(ValueError, match=f"two methods are named '{taken[-1]}'"):
            methods.add(Method(taken[0], "again", "all", {"name": "point"}, aliases=taken[1:]))


def test_a_row_that_shares_trainings_is_its_base_with_a_fit_part():
    base, fit = methods.get("MAP"), {"name": "temperature"}
    for changes, found in (
        ({"fit": None}, "expected a fit part"),
        ({"trained_as": "Laplace"}, "expected a fit part"),
        ({"trained_as": "no such row"}, "expected a fit part"),
        ({"family": {"name": "mean_field"}}, "expected the same parts but for fit"),
        ({}, r"expected the name 'MAP \(temperature\)'"),
    ):
        with pytest.raises(ValueError, match=f"method 'new', trained as .*: {found}"):
            methods.add(replace(base, name="new", aliases=(), **{"fit": fit, "trained_as": "MAP"} | changes))
    assert "new" not in methods.catalogue()


def test_the_command_lists_every_method_and_part(capsys):
    __main__.main([])
    output = " ".join(capsys.readouterr().out.split())
    parts = [name for registry in REGISTRIES.values() for name in registry.classes]
    assert not [name for name in (*methods.catalogue(), *REGISTRIES, *parts) if name not in output]
