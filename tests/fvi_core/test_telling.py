"""Messages about long work."""

import io
import pickle
from types import SimpleNamespace

import pytest

from fvi_core import telling, training
from fvi_core.telling import Parts, counted, listening
from tests.fvi_core import small
from tests.fvi_core.fits.cases import model, parameters, training_data
from tests.fvi_core.small import streams


def heard(items, costs):
    found: list[str] = []
    with listening(found.append):
        assert list(counted("layer", items, costs)) == list(items)
    return found


def test_the_time_left_is_that_of_the_costs_left(monkeypatch):
    clock = iter([0.0, 10.0, 40.0])  # at the start, and before the second and the third item
    monkeypatch.setattr(telling, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    assert heard("abc", [1.0, 3.0, 16.0]) == [
        "layer 1 of 3",
        "layer 2 of 3, about 3 min left",
        "layer 3 of 3, about 3 min left",
    ]


def test_the_time_left_in_a_part_is_that_of_the_whole(monkeypatch):
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(telling, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    found: list[str] = []
    with listening(found.append):
        sets = Parts(2)
        for i in range(2):
            with sets.part(i):
                inner = Parts(1)
                with inner.part(0):
                    list(counted("piece", "ab", [1.0, 1.0]))
        list(counted("alone", "a", [1.0]))
    assert found == [
        "piece 1 of 2",
        "piece 2 of 2, about 30 s left",  # a quarter of the work took 10 s
        "piece 1 of 2, about 20 s left",
        "piece 2 of 2, about 10 s left",
        "alone 1 of 1",
    ]


def test_a_message_holds_the_seconds_left_also_in_another_process(monkeypatch):
    clock = iter([0.0, 10.0])
    monkeypatch.setattr(telling, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    first, second = (pickle.loads(pickle.dumps(message)) for message in heard("ab", [1.0, 3.0]))
    assert (first.left, second.left) == (None, 30.0) and second == "layer 2 of 2, about 30 s left"


def test_a_message_keeps_its_kind_within_a_larger_work_and_in_another_process():
    lost = telling.Message("a checkpoint is not used", "loss", about="c0ffee")
    inner = pickle.loads(pickle.dumps(lost.within("MAP")))
    assert (inner, inner.kind, inner.about) == ("MAP: a checkpoint is not used", "loss", "c0ffee") and inner.lasting
    step = telling.Message.of("epoch 1/2")
    assert (step.kind, step.left) == ("step", None) and not step.lasting and telling.Message.of(lost) is lost


def test_many_items_have_a_hundred_messages_at_most():
    found = heard(range(250), [1.0] * 250)
    assert len(found) == 84 and found[-1].startswith("layer 250 of 250")


def test_a_kronecker_fit_tells_of_batches_layers_and_precisions():
    made = model("mlp", {"name": "laplace", "structure": "kronecker", "precision": "validation", "steps": 2})
    found: list[str] = []
    with listening(found.append):
        made.after_training(parameters(made), training_data("mlp", validation=True), streams(1))
    layers = [f"decomposing factors of layer {k} of 3" for k in (1, 2, 3)]
    precisions = [f"validation of precision {k} of 2" for k in (1, 2)]
    assert found == ["curvature, batch 1 of 1", *layers, *precisions]


def test_a_long_epoch_reports_its_steps(monkeypatch):
    monkeypatch.setattr(training, "LONG", 0.0)
    options, found = training.Training(2, 4, {"name": "adam", "lr": 1e-3}, dtype="float64"), list[tuple[float, str]]()
    stack = options.start(small.model({"family": {"name": "point"}}), small.training_data(1, 6), small.streams(1))
    stack.run(lambda fraction, text: found.append((fraction, text.partition(", loss")[0])))
    steps = [(0.0, "epoch 1/2, step 1 of 2"), (0.25, "epoch 1/2, step 2 of 2"), (0.5, "epoch 1/2")]
    assert found == [*steps, *((0.5 + share, text.replace("1/2", "2/2")) for share, text in steps)]


@pytest.mark.parametrize("term, shown", [("xterm", "\r" + "word " * 7 + "wo"), ("dumb", "word " * 20 + "\n")])
def test_a_live_line_fits_its_terminal(monkeypatch, term, shown):
    monkeypatch.setenv("COLUMNS", "38")
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(file := io.StringIO(), "isatty", lambda: True)
    watch = telling.Watch(lambda spent: "word " * 20, file)
    watch._show("" if watch.live else "\n")
    assert file.getvalue() == shown
