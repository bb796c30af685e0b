import pytest
import torch

from fvi_core.data import milios_targets


def test_targets_are_the_numbers_worked_out_by_hand():
    # a = 1.01 for the label, 0.01 otherwise: log(1 + 1/1.01) = 0.688184, log(1 + 1/0.01) = 4.615121;
    # log 1.01 - 0.688184 / 2 = -0.334142, log 0.01 - 4.615121 / 2 = -6.912731.
    targets, variances = milios_targets(torch.tensor([[0, 2]]), 3, alpha_eps=0.01)
    on, off = -0.334142, -6.912731
    expected = torch.tensor([[[on, off, off], [off, off, on]]], dtype=torch.float64)
    torch.testing.assert_close(targets, expected, rtol=0, atol=1e-6)
    on, off = 0.688184, 4.615121
    expected = torch.tensor([[[on, off, off], [off, off, on]]], dtype=torch.float64)
    torch.testing.assert_close(variances, expected, rtol=0, atol=1e-6)


def test_log_normal_has_the_moments_of_the_gamma_distribution():
    targets, variances = milios_targets(torch.tensor([[1], [0]]), 2, alpha_eps=0.2)
    alpha = torch.tensor([[[0.2, 1.2]], [[1.2, 0.2]]]).double()
    log_normal = torch.distributions.LogNormal(targets, variances.sqrt())
    torch.testing.assert_close(log_normal.mean, alpha)
    torch.testing.assert_close(log_normal.variance, alpha)


def test_labels_and_alpha_are_checked():
    with pytest.raises(ValueError, match=r"expected integers in \[0, 3\), found 0 to 3"):
        milios_targets(torch.tensor([[0, 3]]), 3)
    with pytest.raises(ValueError, match="alpha_eps: expected a number above 0, found 0"):
        milios_targets(torch.tensor([[0]]), 3, alpha_eps=0)
