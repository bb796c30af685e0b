"""Products have the same bits whatever stands beside them in the batch."""

import itertools

import pytest
import torch

from fvi_core.products import product


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [1, 2, 7, 60])
def test_a_product_is_the_same_alone_and_in_a_batch(rows, dtype):
    generator = torch.Generator().manual_seed(rows)
    for batch, inner, columns, turned in itertools.product((2, 3, 10), (1, 6, 50), (1, 19, 100), (False, True)):
        a = torch.randn(batch, rows, inner, generator=generator, dtype=dtype)
        b = torch.randn(batch, *((columns, inner) if turned else (inner, columns)), generator=generator, dtype=dtype)
        bias = torch.randn(batch, 1, columns, generator=generator, dtype=dtype)
        side = b.mT if turned else b
        together, with_bias = product(a, side), product(a, side, bias)
        torch.testing.assert_close(together, torch.einsum("bnk,bkm->bnm", a, side))
        torch.testing.assert_close(with_bias, together + bias)
        for i in range(batch):
            one = slice(i, i + 1)
            alone = b[one].clone().mT if turned else b[one].clone()
            assert torch.equal(product(a[one].clone(), alone)[0], together[i])
            assert torch.equal(product(a[one].clone(), alone, bias[one].clone())[0], with_bias[i])


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 60])
def test_gradients_are_the_same_alone_and_in_a_batch(rows, turned):
    def gradients(*operands):
        operands = [x.clone().requires_grad_() for x in operands]
        z = product(*operands)
        z = z.mT.contiguous().mT if turned else z  # what reaches the gradients lies by columns, then
        return torch.autograd.grad(z.square().sum(), operands)

    generator = torch.Generator().manual_seed(rows)
    for inner, columns in itertools.product((1, 6, 50), (1, 19, 100)):
        shapes = (rows, inner), (inner, columns), (rows, 1)
        operands = [torch.randn(3, *shape, generator=generator) for shape in shapes]
        together = gradients(*operands)
        for i in range(3):
            alone = gradients(*(x[i : i + 1] for x in operands))
            assert all(torch.equal(one[0], all_[i]) for one, all_ in zip(alone, together, strict=True))


@pytest.mark.parametrize("batch", [1, 3])
def test_gradients_are_those_of_the_plain_product(batch):
    a, b = (torch.randn(batch, *shape, dtype=torch.float64, requires_grad=True) for shape in ((1, 4), (4, 5)))
    bias = torch.randn(batch, 1, 1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(product, (a, b, bias), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(product, (a, b, bias))
    assert torch.autograd.gradcheck(product, (a, b), check_forward_ad=True)
    weights = torch.arange(5.0, dtype=torch.float64)
    ours = torch.autograd.grad((product(a, b, bias) * weights).sum(), (a, b, bias))
    plain = torch.autograd.grad(((a @ b + bias) * weights).sum(), (a, b, bias))
    for one, other in zip(ours, plain, strict=True):
        torch.testing.assert_close(one, other)
