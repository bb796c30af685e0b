"""Data of users: pairs, data sets, loaders that are read once or anew at each epoch; labels and other targets."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import fvi_core as fvi
from fvi_core.families.base import NotSupported
from fvi_core.reading import Survey, array, changes
from fvi_core.targets import numbers_of
from tests.fvi_core.networks.modules import Perceptron, table
from tests.fvi_core.posteriors import HERE, QUICK, labels, line, regressor


def test_targets_are_what_a_user_expects_or_refused():
    x = table(12)
    names = np.array(["cat", "dog", "bird"])[labels(12)]
    posterior = fvi.fit(Perceptron, (x, names), "MAP", **QUICK)
    assert posterior.classes == ["bird", "cat", "dog"]
    columns = torch.tensor([1, 2, 0])[labels(12)]
    plain = fvi.fit(Perceptron, (x, columns[:, None].int()), "MAP", **QUICK)
    assert posterior.score(x, list(names)) == plain.score(x, columns)
    with pytest.raises(ValueError, match="expected bird, cat, dog, found cow"):
        posterior.score(x, ["cow"] * 12)
    two = lambda: Perceptron(outputs=2)
    assert fvi.fit(two, (x, labels(12) > 1), "MAP", **QUICK).predict(x).probabilities.shape == (12, 2)
    one = lambda: Perceptron(outputs=1)
    hot = nn.functional.one_hot(labels(12), 3).float()
    refused = {
        "whole numbers, so labels, and the module has one output": (one, labels(12)),
        "targets are 0 and 1 in floating point": (one, (labels(12) > 1).float()[:, None]),
        "for one-hot rows y.argmax": (Perceptron, hot),
        "expected 0 to 2 for 3 outputs, found -100 to 2; points without a label .ignore_index": (
            Perceptron,
            labels(12).index_fill(0, torch.tensor([3]), -100),
        ),
        "expected 0 to 2 for 3 outputs, found 1 to 3; subtract 1": (Perceptron, labels(12) + 1),
        "expected 0 to 2 for 3 outputs, found -1 to 1; give .y . 1. // 2": (Perceptron, 2 * (labels(12) % 2) - 1),
        "expected 0 to 2 for 3 outputs, found 0 to 3": (Perceptron, torch.arange(12) % 4),
        r"floating-point numbers \[N\], the module has 3 outputs": (Perceptron, labels(12) + 0.5),
        r"found torch.int64 \[12, 2\]": (Perceptron, torch.zeros(12, 2, dtype=torch.long)),
        "found 4 classes": (Perceptron, [*"abcd"] * 3),
        "expected finite numbers": (one, torch.full((12,), torch.nan)),
    }
    for message, (make, y) in refused.items():
        with pytest.raises(ValueError, match=message):
            fvi.fit(make, (x, y), "MAP", **QUICK)
    zero_one = fvi.fit(one, (x, (labels(12) > 1).float()), "MAP", likelihood={"name": "gaussian"}, **QUICK)
    assert zero_one.predict(x).noise_std is not None


def test_a_loader_is_read_in_the_order_of_its_data_set():
    x, y = table(13), labels(13)
    data = TensorDataset(x, y)
    made = [
        fvi.fit(Perceptron, given, "MFVI", batch_size=4, **QUICK).predict(x).values
        for given in (
            (x, y),
            data,
            DataLoader(data, batch_size=4, shuffle=True),
            DataLoader(data, batch_size=5, drop_last=True, shuffle=True),
            DataLoader(data, batch_size=4, sampler=SubsetRandomSampler(range(13))),
            [(x[:7], y[:7]), (x[7:], y[7:])],
        )
    ]
    assert all(torch.equal(made[0], each) for each in made[1:])
    sampler = BatchSampler(SubsetRandomSampler(range(13)), 4, drop_last=True)
    for loader in (DataLoader(data, batch_size=4), DataLoader(data, batch_sampler=sampler)):
        own = fvi.fit(Perceptron, loader, "MAP", **QUICK)
        assert own.config["training"]["batch_size"] == 4


class Augmented(Dataset):
    """Inputs that differ at every reading, and how often each was read."""

    def __init__(self, n: int = 12) -> None:
        self.x, self.y, self.read = table(n), labels(n), []

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int):
        x = self.x[i] + 0.1 * torch.randn(4)
        self.read.append(x)
        return x, int(self.y[i])


def test_a_loader_with_augmentation_is_read_anew_at_each_epoch():
    made = []
    for _ in range(2):
        data = Augmented()
        posterior = fvi.fit(Perceptron, DataLoader(data, batch_size=5, shuffle=True), "FSVI", **{**QUICK, "epochs": 3})
        last = torch.stack(data.read[-36:])
        assert len(torch.unique(last, dim=0)) == 36
        made.append(posterior.predict(table(5)).values)
    assert torch.equal(*made)


def test_an_augmentation_that_leaves_half_of_the_points_alone_is_seen_in_small_batches():
    class Flipped(Augmented):
        def __getitem__(self, i: int):
            return self.x[i].flip(0) if torch.rand(()) < 0.5 else self.x[i], int(self.y[i])

    for seed in range(20):
        torch.manual_seed(seed)
        assert changes(DataLoader(Flipped(), batch_size=1, shuffle=True))
    assert not changes(DataLoader(TensorDataset(table(4), labels(4)), shuffle=True))


def test_loaders_of_validation_and_of_a_fit_after_training_draw_by_the_seed():
    loader = DataLoader(Augmented(), batch_size=5)
    made = [fvi.fit(Perceptron, (table(12), labels(12)), "MAP (temperature)", validation=loader, **QUICK) for _ in "ab"]
    assert torch.equal(*(each.predict(table(5)).values for each in made))
    plain = fvi.fit(Perceptron, (table(12), labels(12)), "MAP", **QUICK)
    state = torch.get_rng_state()
    assert torch.equal(*(plain.after("laplace", loader).predict(table(5)).values for _ in "ab"))
    assert torch.equal(torch.get_rng_state(), state)


def test_a_stream_trains_as_data_in_memory_do():
    x, y = line()
    loader = DataLoader(TensorDataset(x, y), batch_size=40)
    held, streamed = (
        fvi.fit(regressor(), loader, "MFVI", stream=stream, **QUICK).predict(x).values for stream in (False, True)
    )
    torch.testing.assert_close(streamed, held)


class Read(IterableDataset):
    """A data set that can be read so many times."""

    def __init__(self, times: int) -> None:
        self.left, self.data = times, TensorDataset(*line(12))

    def __iter__(self):
        self.left -= 1
        return iter(self.data if self.left >= 0 else ())


def test_a_data_set_without_a_length_is_a_stream_as_long_as_it_can_be_read_again():
    posterior = fvi.fit(regressor(), DataLoader(Read(9), batch_size=5), "MAP", stream=True, **QUICK)
    known = fvi.fit(regressor(), DataLoader(TensorDataset(*line(12)), batch_size=5), "MAP", stream=True, **QUICK)
    assert posterior.loss == known.loss
    for times, message in ((0, "data: expected points, found none"), (2, "found none in epoch 2; .* read again")):
        with pytest.raises(ValueError, match=message):
            fvi.fit(regressor(), DataLoader(Read(times), batch_size=5), "MAP", stream=True, **QUICK)


def test_bounds_of_a_stream_are_those_of_all_its_batches():
    x = table(12).roll(5, 0)
    survey = Survey.of(DataLoader(TensorDataset(x, labels(12)), batch_size=5))
    assert torch.equal(survey.low, x.amin(0)) and torch.equal(survey.high, x.amax(0)) and survey.steps == 3


def test_drawn_points_are_drawn_anew():
    data = TensorDataset(table(12), labels(12))
    loader = DataLoader(data, batch_size=4, sampler=WeightedRandomSampler([1.0] * 6 + [0.0] * 6, 12))
    assert len(fvi.fit(Perceptron, loader, "Deep Ensemble", **QUICK).loss) == 2


def test_the_score_of_drawn_points_says_so(recwarn):
    data = TensorDataset(table(12), labels(12))
    posterior = fvi.fit(Perceptron, DataLoader(data, batch_size=4), "MAP", **QUICK)
    whole = posterior.score(*data.tensors)
    assert posterior.score(DataLoader(data, batch_size=4, shuffle=True)) == whole and not recwarn.list
    with pytest.warns(UserWarning, match="score: the loader draws its points at random"):
        posterior.score(DataLoader(data, batch_size=4, sampler=WeightedRandomSampler([1.0] * 6 + [0.0] * 6, 12)))


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("GFSVI", HERE, "needs all training data at once"),
        ("HMC", {"epochs": None}, "needs all training data at once"),
        ("Laplace", {}, "fit 'laplace' needs data in memory: train without it"),
        ("MAP", {"likelihood": {"name": "residual_gaussian"}}, "'residual_gaussian' is fitted to all training data"),
    ],
)
def test_a_method_that_needs_all_data_refuses_a_stream(method, options, message):
    regression = "likelihood" in options
    data = line(12) if regression else (table(12), labels(12))
    with pytest.raises(NotSupported, match=message):
        loader = DataLoader(TensorDataset(*data), batch_size=4)
        fvi.fit(regressor() if regression else Perceptron(), loader, method, stream=True, **{**QUICK, **options})


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([(table(4), labels(4), torch.ones(4))], TypeError, "found 3 of them; weights of points are not supported"),
        (([[0.1, 0.2], [0.3, 0.4]], [0, 1]), TypeError, "x as a tensor or an array, found a list: give torch.tensor"),
        (DataLoader(TensorDataset(table(4))), TypeError, "found 1 of them$"),
        ([([table(4), table(4)], labels(4))], TypeError, "found list; give one tensor for each input"),
        (0.1, TypeError, "data: expected a pair .x, y., a Dataset or a DataLoader, found float$"),
        ([{"x": table(4)}], TypeError, "batches .x, y., found dict; give the DataLoader a collate_fn"),
        (
            (pd.DataFrame({"a": [1, 2], "b": ["u", "v"]}), [0, 1]),
            TypeError,
            "found DataFrame; encode text, as pandas.get_dummies does, and dates .could not",
        ),
        (
            (pd.DataFrame({"a": [1, 2], "site": ["u", "v"]}), [0, 1]),
            TypeError,
            "could not convert string to float: 'u', column 'site'.$",
        ),
        (
            [(table(4), labels(4)), (table(4)[:, :3], labels(4))],
            ValueError,
            r"found \[N, 4\] and \[N, 3\]; pad them to",
        ),
        (
            DataLoader([(torch.zeros(n), 0) for n in (4, 3)], batch_size=1),
            ValueError,
            r"one shape in all batches, found \[N, 4\] and \[N, 3\]",
        ),
        (
            (pd.DataFrame({"a": [1.0, 2.0], "b": [None, 1.0]}, dtype="Float64"), [0, 1]),
            ValueError,
            "finite inputs, found NaN or infinity in 1 of 2, the first in row 0, column 'b'",
        ),
        ((table(4).to_sparse(), labels(4)), TypeError, "found a sparse Tensor; give x.toarray.., of a tensor x.to_d"),
        ((scipy.sparse.csr_matrix(table(4)), labels(4)), TypeError, "found a sparse csr_matrix; give x.toarray"),
        ((table(4), pd.Series([0, 1, None, 2])), ValueError, "in 1 of 4, the first in row 2; leave"),
        ((table(4), labels(3)), ValueError, "a target for each of 4 inputs, found 3$"),
        ((table(4) * torch.nan, labels(4)), ValueError, "in 4 of 4, the first in row 0, column 0; leave"),
        (DataLoader(TensorDataset(table(4), labels(4)), batch_size=8, drop_last=True), ValueError, "leave drop_last"),
    ],
)
def test_data_that_are_no_pairs_are_refused(data, error, message):
    with pytest.raises(error, match=message):
        fvi.fit(Perceptron, data, "MAP", stream=isinstance(data, DataLoader), **QUICK)


def test_frames_whose_rows_have_the_same_labels_in_another_order_are_not_paired():
    frame, y = pd.DataFrame(table(6).numpy(), index=list("abcdef")), pd.Series(labels(6).numpy(), index=list("abcdef"))
    other, net = y[::-1], Perceptron()
    with pytest.raises(ValueError, match=r"labels in another order; give y.loc\[x.index\] .* y.to_numpy\(\)"):
        fvi.fit(net, (frame, other), "MAP", **QUICK)
    plain = fvi.fit(net, (frame, other.loc[frame.index]), "MAP", **QUICK)
    assert plain.loss == fvi.fit(net, (frame, y.reset_index(drop=True)), "MAP", **QUICK).loss
    with pytest.raises(ValueError, match="labels in another order"):
        plain.score(frame, other)
    assert plain.score(frame, other.to_numpy()) == plain.score(table(6), other.to_numpy())


def test_frames_and_their_columns_are_arrays():
    index, net, line_net = [7, 5, 3, 1], Perceptron(), regressor()
    frame = pd.DataFrame({"a": [0.5, 1.0, -2.0, 3.0], "b": [True, False, True, False], "c": 1, "d": 0.5}, index=index)
    x, words = frame.to_numpy(float), pd.Series(["no", "yes", "no", "maybe"], index=index)
    plain = fvi.fit(net, (x, list(words)), "MAP", **QUICK)
    for y in (words, words.values, words.to_frame()):
        found = fvi.fit(net, (frame, y), "MAP", **QUICK)
        assert found.loss == plain.loss and found.score(frame, y) == plain.score(x, list(words))
        assert torch.equal(found.predict(frame).values, plain.predict(x).values)
    x, y = line(4)
    series = pd.Series(y.flatten().numpy(), index=index)
    found = fvi.fit(line_net, (pd.DataFrame(x.numpy()), series), "MAP", **QUICK)
    assert found.score(x, series) == fvi.fit(line_net, (x, y), "MAP", **QUICK).score(x, y)


def test_a_frame_with_columns_in_another_order_is_refused(tmp_path):
    x, y = table(4), labels(4)
    frame = pd.DataFrame(x.numpy(), columns=[f"c{i}" for i in range(x.shape[1])])
    turned, wrong = frame[frame.columns[::-1]], "expected the columns 'c0', 'c1'.*, found 'c3', 'c2'"
    posterior = fvi.fit(Perceptron(), (frame, y), "MAP", **QUICK)
    posterior.save(tmp_path / "mine.fvi")
    for each in (posterior, fvi.load(tmp_path / "mine.fvi", Perceptron())):
        for use in (
            lambda own: each.predict(own),
            lambda own: each.score(own, y),
            lambda own: each.score((own, y)),
            lambda own: each.auroc(x, own),
            lambda own: each.after("temperature", (own, y)),
            lambda own: each.after("temperature", (x, y), (own, y)),
        ):
            use(frame)
            with pytest.raises(ValueError, match=wrong):
                use(turned)
        assert torch.equal(each.predict(frame).values, each.predict(x).values)
        assert torch.equal(each.predict(frame).values, each.predict(pd.DataFrame(x.numpy())).values)
    with pytest.raises(ValueError, match=f"validation: {wrong}"):
        fvi.fit(Perceptron(), (frame, y), "MAP", validation=(turned, y), **QUICK)
    pool = {"name": "images", "pool": "mine", "points": 2}
    with pytest.raises(ValueError, match=f"contexts: 'mine': {wrong}"):
        fvi.fit(Perceptron(), (frame, y), "FSVI", context=pool, contexts={"mine": turned}, **QUICK)


def test_targets_with_columns_in_another_order_are_refused(tmp_path):
    x, y = table(4), pd.DataFrame({"length": [1.0, 2.0, 4.0, 8.0], "mass": [5e3, 1e3, 2e3, 9e3]})
    turned, wrong = y[["mass", "length"]], "expected the target columns 'length', 'mass', .*, found 'mass', 'length'"
    net = torch.nn.Sequential(torch.nn.Linear(x.shape[1], 2))
    posterior = fvi.fit(net, (x, y), "MAP", **QUICK)
    posterior.save(tmp_path / "mine.fvi")
    for each in (posterior, fvi.load(tmp_path / "mine.fvi", net)):
        for use in (lambda own: each.score(x, own), lambda own: each.score((x, own))):
            assert use(y) == use(y.to_numpy())
            with pytest.raises(ValueError, match=wrong):
                use(turned)
    with pytest.raises(ValueError, match=f"validation: {wrong}"):
        fvi.fit(net, (x, y), "MAP", validation=(x, turned), **QUICK)


def test_arrays_that_torch_does_not_take_are_copied():
    x, y = table(12).numpy(), labels(12).numpy()
    plain = fvi.fit(Perceptron, (x, y), "MAP", **QUICK)
    for change in (lambda a: a[::-1].copy()[::-1], lambda a: a.astype(a.dtype.newbyteorder(">"))):
        found = fvi.fit(Perceptron, (change(x), change(y)), "MAP", **QUICK)
        assert found.loss == plain.loss and found.score(change(x), change(y)) == plain.score(x, y)


def test_arrays_that_may_not_be_written_to_give_no_warning(tmp_path, recwarn):
    """pandas gives such ones; a file in memory is left where it is."""
    x, y = table(12).numpy(), labels(12).numpy()
    np.save(tmp_path / "x.npy", x)
    for each in (x, y):
        each.flags.writeable = False
    fvi.fit(Perceptron, (x, y), "MAP", **QUICK).score(x, y)
    assert not recwarn.list
    held = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert array(held) is held


def test_targets_with_a_gradient_or_on_a_device_are_read_as_others():
    x, y = line(12)
    plain = fvi.fit(regressor(), (x, y), "MAP", **QUICK)
    assert plain.score(x, y.clone().requires_grad_()) == plain.score(x, y)
    with FakeTensorMode():
        assert numbers_of(torch.zeros(4, device="cuda")).device == torch.device("cpu")
