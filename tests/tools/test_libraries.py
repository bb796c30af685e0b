"""The comparison with other libraries says what is missing; what it compares is timed only by hand."""

from tools import libraries


def test_a_missing_library_is_named(monkeypatch, capsys):
    monkeypatch.setattr(libraries, "LIBRARIES", {"gpytorch": "gpytorch", "a-library": "no_such_module"})
    assert libraries.main([]) == 2
    errors = capsys.readouterr().err
    assert "not installed: a-library;" in errors and "gpytorch" not in errors


def test_the_exact_process_agrees_with_gpytorch():
    step, prediction = libraries.gaussian_process(1)
    assert float(step[-1].split()[2]) < 1e-10 and float(prediction[-1].split()[-1]) < 1e-6
