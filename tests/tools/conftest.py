"""Set-up that tests of the cost benchmarks share."""

import pytest

import datasets


@pytest.fixture
def no_data(monkeypatch):
    """Fail a test that loads a data set."""

    def refuse(*_, **__):
        raise AssertionError("a cost benchmark reads no data set")

    monkeypatch.setattr(datasets, "load", refuse)
