"""fit, predict, score, save and load on modules of one's own."""

import errno
import io
import json
import os
import pickle
import signal
import time
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import fvi_core as fvi
from fvi_core import blocks, telling
from fvi_core.families.base import NotSupported
from fvi_core.likelihoods import Gaussian
from fvi_core.registry import LIKELIHOODS
from fvi_core.telling import counted
from tests.fvi_core.networks.modules import KINDS, Perceptron, table
from tests.fvi_core.posteriors import HERE, QUICK, labels, line, regressor

pytestmark = pytest.mark.filterwarnings("ignore:forward.. draws random numbers")


@pytest.mark.parametrize("kind", KINDS)
def test_a_posterior_of_each_kind_of_module_is_saved_and_loaded(kind, tmp_path):
    make, inputs, _ = KINDS[kind]
    module, x = make(), inputs(12)
    posterior = fvi.fit(module, (x, labels(12)), "FSVI", **QUICK, **HERE)
    posterior.save(tmp_path / "a.fvi")
    again = fvi.load(tmp_path / "a.fvi", make)
    found = posterior.predict(x, samples=3)
    assert torch.equal(found.values, again.predict(x, samples=3).values) and found.values.shape == (3, 12, 3)
    assert again.loss == posterior.loss and len(posterior.loss) == 2
    assert again.score(x, labels(12)) == posterior.score(x, labels(12))
    for value, drawn in zip(found.values, posterior.modules(3), strict=True):
        torch.testing.assert_close(drawn(x), value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["MFVI", "MFVI Ensemble"])
def test_networks_with_running_statistics_are_drawn_and_predict_many_points(method, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 400)
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    x = table(40)
    posterior = fvi.fit(net, (x, labels(40)), method, **QUICK, **({"family": {"size": 2}} if "Ens" in method else {}))
    values = posterior.predict(x, samples=6).values
    torch.testing.assert_close(values[:, :5], posterior.predict(x[:5], samples=6).values)
    for drawn, value in zip(posterior.modules(6), values, strict=True):
        torch.testing.assert_close(drawn(x), value, rtol=1e-4, atol=1e-5)


METHODS = {
    "Deep Ensemble": {},
    "MC Dropout": {},
    "SWAG": {},
    "MAP": {},
    "GFSVI": HERE,
    "Laplace (Kronecker)": {},
    "VOGN": {},
    "DUQ": {},
    "Rank1 fVI": {},
}


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_the_catalogue_are_saved_loaded_and_pickled(method, tmp_path):
    module, x = Perceptron(drop=0.2), table(12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = fvi.fit(module, (x, labels(12)), method, **QUICK, **METHODS[method])
    posterior.save(tmp_path / "a.fvi")
    for again in (fvi.load(tmp_path / "a.fvi", module), pickle.loads(pickle.dumps(posterior))):
        assert torch.equal(posterior.predict(x).values, again.predict(x).values)
    assert torch.isfinite(posterior.predict(x).values).all()


def test_a_training_is_the_same_for_the_same_seed():
    x, y = line()
    made = [fvi.fit(regressor(), (x, y), "MFVI", seed=seed, **QUICK).predict(x).values for seed in (0, 0, 1)]
    assert torch.equal(made[0], made[1]) and not torch.equal(made[0], made[2])


def test_a_regression_is_predicted_in_the_units_of_its_targets():
    x, y = line()
    posterior = fvi.fit(
        regressor(), (x, y[:, None]), "MFVI", epochs=150, optimiser={"name": "adam", "lr": 0.02}, progress=False
    )
    found = posterior.predict(x, samples=200)
    assert (found.mean[:, 0] - y).square().mean().sqrt() < 12 and found.values.shape == (200, 40, 1)
    assert 1 < float(found.noise_std) < 30 and found.std.shape == (40, 1)
    scores = posterior.score(x, y, samples=200)
    assert scores["rmse"] == pytest.approx(float((found.mean[:, 0] - y).square().mean().sqrt()))
    normal = torch.distributions.Normal(found.values[..., 0].double(), found.noise_std.double())
    assert scores["nll"] == pytest.approx(-float((normal.log_prob(y).logsumexp(0) - np.log(200)).mean()), rel=1e-5)
    for drawn, value in zip(posterior.modules(2), posterior.predict(x, samples=2).values, strict=True):
        torch.testing.assert_close(drawn(x), value, rtol=1e-4, atol=1e-3)
    with pytest.raises(TypeError, match="no class probabilities"):
        _ = found.probabilities


def test_scores_do_not_depend_on_where_the_targets_are():
    """Times in seconds since 1970: float32 has every 128th of them, more than the error of a fit."""
    x, y = line()[0], line()[1].double()
    near, far = (fvi.fit(regressor(), (x, y + shift), "MAP", **QUICK).score(x, y + shift) for shift in (0, 1.7e9))
    assert far == pytest.approx(near, rel=1e-4)


def test_a_likelihood_with_noise_is_of_a_regression_whatever_its_name(monkeypatch):
    class Laplacian(Gaussian):
        name = "heavy"

        def log_prob(self, params, f, y):
            return torch.distributions.Laplace(f[..., 0], self.noise_std(params) / 2**0.5).log_prob(y[:, None])

    monkeypatch.setitem(LIKELIHOODS.classes, "heavy", Laplacian)
    (x, y), own = line(), {"name": "heavy", "learned": False}
    assert fvi.fit(regressor, (x, y), "MAP", **QUICK, likelihood=own).score(x, y)["rmse"] > 0


def test_vectors_of_targets_have_units_of_their_own():
    x, y = line()
    posterior = fvi.fit(regressor(2), (x, torch.stack([y, 1e-3 * y], 1)), "MAP", epochs=300, progress=False)
    found = posterior.predict(x)
    assert found.noise_std.shape == (2,) and found.noise_std[0] / found.noise_std[1] == pytest.approx(1e3, rel=1e-3)
    assert float(found.mean[:, 0].mean()) == pytest.approx(300, rel=0.05)


def test_a_fit_part_leaves_the_weights_of_a_trained_module():
    x, y = line()
    module = regressor()
    descent = torch.optim.Adam(module.parameters(), 0.05)
    for _ in range(500):
        descent.zero_grad()
        nn.functional.mse_loss(module(x)[:, 0] * 100, y).backward()
        descent.step()
    scaled = nn.Sequential(module[0], module[1], nn.Linear(8, 1))
    with torch.no_grad():
        scaled[2].weight.copy_(100 * module[2].weight)
        scaled[2].bias.copy_(100 * module[2].bias)
    before = {name: value.clone() for name, value in scaled.state_dict().items()}
    posterior = fvi.fit(scaled, (x, y), "laplace", fit={"structure": "full", "precision": "evidence"})
    torch.testing.assert_close(posterior.predict(x, samples=4000).mean, scaled(x), rtol=0, atol=1.5)
    residual = (scaled(x)[:, 0] - y).square().mean().sqrt()
    assert float(posterior.predict(x).noise_std) == pytest.approx(residual.item(), rel=1e-3)
    assert all(torch.equal(value, scaled.state_dict()[name]) for name, value in before.items())
    with pytest.raises(TypeError, match="expected an nn.Module, found a function"):
        fvi.fit(regressor, (x, y), "laplace")
    narrow = fvi.fit(scaled, (x, y), "laplace", fit={"structure": "full", "precision": 1e8})
    torch.testing.assert_close(narrow.modules(1)[0](x), scaled(x), rtol=0, atol=1.0)  # in the units of the targets


def test_a_fit_part_after_training_is_that_of_the_method_with_it():
    x, y = table(12), labels(12)
    after = fvi.fit(Perceptron, (x, y), "MAP", **QUICK).after("laplace", (x, y), structure="diagonal")
    method = fvi.fit(Perceptron, (x, y), "Laplace", **QUICK)
    torch.testing.assert_close(after.predict(x).std, method.predict(x).std, rtol=0.3, atol=0.05)
    assert after.parameters.keys() == method.parameters.keys()
    for name, value in method.parameters.items():
        torch.testing.assert_close(after.parameters[name], value)


def test_a_posterior_and_its_predictions_are_shown_in_a_line():
    x, y = table(12), labels(12)
    posterior = fvi.fit(Perceptron, (x, y), "Laplace", **QUICK)
    trained = f"{len(posterior.loss)} epochs, last loss {posterior.loss[-1]:.4g}"
    assert repr(posterior) == f"Posterior('Laplace'; inputs [4], 3 classes, fit 'laplace', {trained}; cpu)"
    assert repr(posterior.predict(x, samples=7)) == "Prediction(values [7, 12, 3], noise_std None)"
    found = fvi.fit(regressor, line(12), "MFVI", **QUICK).predict(line(12)[0], samples=7)
    assert repr(found) == f"Prediction(values [7, 12, 1], noise_std {found.noise_std})"


def test_numbers_of_functions_and_targets_that_cannot_be_are_named():
    x, y = table(12), labels(12)
    posterior = fvi.fit(Perceptron, (x, y), "MFVI", **QUICK)
    with pytest.raises(ValueError, match="samples: expected 1 or more, found 0"):
        posterior.predict(x, samples=0)
    with pytest.raises(ValueError, match="count: expected 1 or more, found 0"):
        posterior.modules(0)
    with pytest.raises(ValueError, match="targets: expected one for each of 12 inputs, found 5"):
        posterior.score(x, y[:5])


@pytest.mark.parametrize("parts", [{}, {"family": {"name": "collapsed_gp", "kernel": {"name": "rbf"}, "points": 5}}])
def test_a_process_is_trained_on_all_data_at_once(parts):
    posterior = fvi.fit(regressor(), line(200), "GP", **parts, **QUICK)
    assert posterior.config["training"]["batch_size"] == 200
    with pytest.raises(NotSupported, match="the evidence of all 200 training points at once, found a batch of 50"):
        fvi.fit(regressor(), line(200), "GP", batch_size=50, **parts, **QUICK)


def test_class_weights_are_honoured():
    x, y = table(12), (torch.arange(12) == 0).long()
    plain, weighed = (
        fvi.fit(lambda: Perceptron(outputs=2), (x, y), "MAP", likelihood=likelihood, epochs=60, progress=False)
        for likelihood in (None, {"name": "categorical", "class_weights": "batch"})
    )
    assert weighed.predict(x).probabilities[:, 1].mean() > plain.predict(x).probabilities[:, 1].mean() + 0.1


def test_dropout_modules_give_their_rate_and_are_not_left_out_silently():
    x, y = table(12), labels(12)
    posterior = fvi.fit(Perceptron(drop=0.3), (x, y), "MC Dropout", **QUICK)
    assert posterior.config["parts"]["family"]["rate"] == 0.3
    with pytest.warns(UserWarning, match="'FSVI' leaves the module's nn.Dropout out"):
        fvi.fit(Perceptron(drop=0.3), (x, y), "FSVI", **QUICK)
    module = Perceptron(drop=0.3)
    module.fc = nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 3))
    with pytest.raises(ValueError, match=r"has \[0.3, 0.5\]: give family.rate"):
        fvi.fit(module, (x, y), "MC Dropout", **QUICK)


def test_files_that_are_not_of_the_module_say_what_differs(tmp_path):
    path = tmp_path / "a.fvi"
    module = Perceptron()
    module.a.requires_grad_(False)
    posterior = fvi.fit(module, (table(12), labels(12)), "FSVI", **QUICK)
    posterior.save(path)
    assert fvi.load(path, module).config == posterior.config
    with pytest.raises(ValueError, match="frozen parameters or buffers"):
        other = Perceptron()
        other.a.requires_grad_(False)
        fvi.load(path, other)
    with pytest.raises(
        ValueError, match=r"parameter b.bias: expected \[7\], as the module has, found \[8\] in the file"
    ):
        other = Perceptron(width=7)
        other.a.requires_grad_(False)
        fvi.load(path, other)
    whole = path.read_bytes()
    values = posterior.parameters["mean/b.weight"].numpy().tobytes()
    assert whole.count(values) == 1
    for damage in (whole[:-100], whole[: len(whole) // 2], b"", b"text", whole.replace(values, values[::-1])):
        path.write_bytes(damage)
        with pytest.raises(
            ValueError, match="expected a whole file of Posterior.save: it is damaged, or ano"
        ) as caught:
            fvi.load(path, module)
        assert "weights_only" not in str(caught.value), "torch advises to run the code of the file"
    torch.save({"weights": torch.ones(2)}, path)
    with pytest.raises(ValueError, match="it holds something else"):
        fvi.load(path, module)
    with pytest.raises(FileNotFoundError):
        fvi.load(tmp_path / "none", module)


def test_a_file_is_replaced_by_a_whole_one_or_stays(tmp_path, monkeypatch):
    path, save = tmp_path / "a.fvi", torch.save
    first, second = (fvi.fit(Perceptron, (table(12), labels(12)), "MAP", **QUICK, seed=seed) for seed in (0, 1))
    first.save(path)
    before = path.read_bytes()

    def full(held, file):
        save(held, file)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(OSError, match="No space"):
        second.save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.fvi"]
    monkeypatch.undo()
    second.save(str(path))
    assert path.read_bytes() != before and os.listdir(tmp_path) == ["a.fvi"]
    with pytest.raises(FileNotFoundError, match="none/a.fvi'$"):
        second.save(tmp_path / "none" / "a.fvi")


class Malicious:
    def __reduce__(self):
        return (exec, ("raise SystemExit('code of the file was run')",))


def test_no_code_of_a_file_is_run(tmp_path):
    posterior = fvi.fit(Perceptron, (table(12), labels(12)), "MAP", **QUICK)
    posterior.save(tmp_path / "a.fvi")
    held = torch.load(tmp_path / "a.fvi", weights_only=True)
    assert set(map(type, held.values())) == {int, str, dict} and json.loads(held["config"])["method"] == "MAP"
    for spoilt in ({**held, "config": Malicious()}, Malicious()):
        torch.save(spoilt, tmp_path / "b.fvi")
        with pytest.raises(ValueError, match="expected a whole file"):
            fvi.load(tmp_path / "b.fvi", Perceptron)
    (tmp_path / "c.fvi").write_bytes(pickle.dumps(Malicious()))
    with pytest.raises(ValueError, match="expected a whole file"):
        fvi.load(tmp_path / "c.fvi", Perceptron)


def test_a_loss_that_is_no_number_is_named_with_its_step():
    x, y = line()
    with pytest.raises(
        fvi.TrainingFailed, match=r"method 'MAP': .* in step \d of 4 of epoch \d of 5; a smaller learning"
    ):
        options = {"optimiser": {"name": "sgd", "lr": 1e12}, "epochs": 5, "batch_size": 10, "progress": False}
        fvi.fit(regressor(), (x, y), "MAP", **options)


class Interrupted(Dataset):
    """A line whose point is read so many times before Ctrl-C is pressed."""

    def __init__(self, reads: int) -> None:
        self.x, self.y = line(10)
        self.left = reads

    def __len__(self) -> int:
        return 10

    def __getitem__(self, i: int):
        self.left -= 1
        if not self.left:
            signal.raise_signal(signal.SIGINT)
        return self.x[i], self.y[i]


def test_ctrl_c_leaves_what_was_trained():
    loader = DataLoader(Interrupted(75), batch_size=5)
    options = {"stream": True, "epochs": 1000, "progress": False, "optimiser": {"name": "adam", "lr": 0.05}}
    with pytest.warns(UserWarning, match=r"stopped in epoch \d of 1000: the posterior has these parameters"):
        posterior = fvi.fit(regressor(), loader, "MFVI", **options)
    assert 4 <= len(posterior.loss) <= 6 and torch.isfinite(posterior.predict(line(10)[0]).values).all()
    with pytest.raises(KeyboardInterrupt):  # nothing is trained yet
        fvi.fit(regressor(), DataLoader(Interrupted(5), batch_size=5), "MFVI", **options)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("file", [io.StringIO(), Terminal()], ids=["plain", "live"])
def test_progress_shows_epochs_loss_and_time_left(file, monkeypatch):
    monkeypatch.setattr(telling, "FIRST", 0.05)
    monkeypatch.setattr(telling, "LIVE", 0.05)
    monkeypatch.setattr("sys.stderr", file)
    fvi.fit(regressor(), line(), "MFVI", epochs=300)
    text = file.getvalue()
    assert "MFVI: epoch " in text and "/300, loss " in text and " left" in text and ("\r" in text) == file.isatty()


@pytest.mark.parametrize("file", [io.StringIO(), Terminal()], ids=["plain", "live"])
def test_messages_of_a_fit_are_shown(file, monkeypatch):
    monkeypatch.setattr(telling, "FIRST", 0.02)
    monkeypatch.setattr("sys.stderr", file)
    with telling.messages("laplace"):
        list(counted("layer", "abc", [1.0] * 3))
        time.sleep(0.1)
    with telling.messages("quiet"):
        pass
    assert "laplace: layer 3 of 3, 0 s" in file.getvalue() and "quiet" not in file.getvalue()


def test_an_answer_is_what_score_takes(tmp_path):
    x, y = line()
    posterior = fvi.fit(regressor(), (x, y), "MFVI", **QUICK)
    request, out = tmp_path / "request.npz", tmp_path / "mine.npz"
    np.savez(request, **{"dataset": "d", "split": 3, "seeds": [5], "test/x": x.numpy(), "test/fingerprint": "f"})
    posterior.answer(request, out, samples=7)
    made = np.load(out)
    assert made["test/samples"].shape == (7, 40) and made["test/fingerprint"] == "f" and made["seed"] == 5
    np.testing.assert_allclose(made["test/samples"], posterior.predict(x, 7).values[..., 0], rtol=1e-6)
    assert float(made["noise_std"]) == pytest.approx(float(posterior.predict(x).noise_std))


def test_an_answer_with_several_noises_is_refused(tmp_path):
    x, y = line()
    posterior = fvi.fit(regressor(2), (x, torch.stack([y, 100 * y], 1)), "MFVI", **QUICK)
    request = tmp_path / "request.npz"
    np.savez(request, **{"dataset": "d", "split": 3, "seeds": [5], "test/x": x, "test/fingerprint": "f"})
    with pytest.raises(ValueError, match="expected one size for all outputs"):
        posterior.answer(request, tmp_path / "mine.npz")


def test_scores_are_those_of_the_mean_probabilities():
    x, y = table(30), labels(30)
    posterior = fvi.fit(Perceptron, (x, y), "MFVI", **QUICK)
    p = posterior.predict(x).values.double().softmax(-1).mean(0)
    found, own = posterior.score(x, y), p.gather(1, y[:, None])[:, 0]
    assert found["accuracy"] == pytest.approx(float((p.argmax(-1) == y).double().mean()))
    assert found["nll"] == pytest.approx(-float(own.log().mean()))
    assert found["brier"] == pytest.approx(float(((p**2).sum(-1) - 2 * own + 1).mean()))
    assert posterior.score(DataLoader(TensorDataset(x, y), batch_size=7)) == pytest.approx(found)


def test_auroc_refuses_inputs_that_are_no_numbers():
    posterior = fvi.fit(Perceptron, (table(12), labels(12)), "MFVI", **QUICK)
    with pytest.raises(ValueError, match="^x: expected finite inputs, found NaN"):
        posterior.auroc(table(9, 1), table(8, 2) * float("nan"))


def test_auroc_is_the_share_of_pairs_in_order():
    posterior = fvi.fit(Perceptron, (table(12), labels(12)), "MFVI", **QUICK)
    near, far = table(9, 1), 5 * table(8, 2)
    a, b = (posterior.predict(each).entropy for each in (near, far))
    want = sum(float(v > u) + 0.5 * float(v == u) for v in b for u in a) / 72
    assert posterior.auroc(near, far) == pytest.approx(want)
    with pytest.raises(TypeError, match="a regression has no predictive entropy"):
        fvi.fit(regressor(), line(), "MAP", **QUICK).auroc(line()[0], line()[0])
