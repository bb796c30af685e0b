"""Tests of bfloat16: which computations use it, and what happens without support for it."""

import warnings
from dataclasses import replace

import pytest
import torch

from fvi_core import precision
from fvi_core.likelihoods import Categorical
from fvi_core.training import Trainer, Training
from tests.fvi_core import small
from tests.fvi_core.test_training import KINDS, train

CPU = torch.device("cpu")


@pytest.mark.parametrize(("avx512", "amx"), [(True, False), (False, True), (True, True)])
def test_a_processor_with_either_instructions_computes_in_bfloat16(processor, avx512, amx):
    processor(avx512, amx)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert precision.used("bfloat16", CPU) == "bfloat16" and precision.used("float32", CPU) == "float32"


def test_without_them_training_is_in_float32_and_says_so_once(processor):
    processor(False, False)
    assert precision.used("bfloat16", torch.device("cuda")) == "bfloat16"
    options = {"outputs": 3, "epochs": 2, "precision": "bfloat16"}
    with pytest.warns(UserWarning, match="this cpu has neither AMX nor AVX-512 BF16: float32 is used") as caught:
        results = [train(KINDS["MAP"], **options)[0] for _ in range(2)]
    assert len([each for each in caught if "AVX-512" in str(each.message)]) == 1
    expected = train(KINDS["MAP"], outputs=3, epochs=2)[0]
    for found in results:
        assert found.loss == expected.loss and expected.warnings == []
        assert len(found.warnings) == 1 and "float32 is used" in found.warnings[0]
        assert all(torch.equal(found.parameters[name], value) for name, value in expected.parameters.items())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("GFSVI", "GP", "FuNN-HyVI")])
def test_every_kind_trains_and_predicts_with_networks_in_bfloat16(processor, kind):
    processor(True, False)
    outputs = 3 if "fVI" in kind else 1
    plain, reduced = (train(KINDS[kind], outputs=outputs, precision=each)[0] for each in ("float32", "bfloat16"))
    assert reduced.reason is None and reduced.warnings == [] and reduced.loss != plain.loss
    assert all(value.dtype == torch.float32 for value in reduced.parameters.values())
    model, x = small.model(KINDS[kind], outputs), small.inputs(1, 6, dtype=torch.float32)
    exact, near = (
        replace(model, precision=each).functions(reduced.parameters, 4, small.streams(1, torch.float32))(x)
        for each in ("float32", "bfloat16")
    )
    assert near.dtype == torch.float32 and not torch.equal(near, exact)
    torch.testing.assert_close(near, exact, rtol=0.05, atol=0.05 * float(exact.abs().max()))


def test_likelihood_and_divergence_are_outside(monkeypatch, processor):
    processor(True, False)
    seen, log_prob = [], Categorical.log_prob

    def spy(self, parameters, f, y):
        seen.append((f.dtype, torch.is_autocast_enabled("cpu")))
        return log_prob(self, parameters, f, y)

    monkeypatch.setattr(Categorical, "log_prob", spy)
    parts = {**KINDS["FSVI"], "likelihood": {"name": "categorical"}}
    data = small.training_data(1, 8, 3, dtype=torch.float32)
    options = Training(1, 8, {"name": "adam"}, precision="bfloat16")
    Trainer(small.model(parts, 3), options, data, small.streams(1, torch.float32)).run()
    assert seen == [(torch.float32, False)]
