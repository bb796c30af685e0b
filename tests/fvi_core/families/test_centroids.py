"""Centroids of the classes (DUQ) against values computed by hand and by finite differences."""

import math

import pytest
import torch

from fvi_core.divergences.input_gradient import InputGradient
from fvi_core.families.base import NotSupported
from fvi_core.families.centroids import COUNT, SUM, WEIGHT
from fvi_core.held import trained_names
from fvi_core.registry import FAMILIES, LIKELIHOODS
from fvi_core.training import Trainer, Training
from tests.fvi_core import small
from tests.fvi_core.contracts import DivergenceContract, FamilyContract, N, R

SPEC = {"name": "centroids", "size": 2, "length": 0.5, "decay": 0.75, "count": 4.0, "weight_std": 0.5}
LINEAR = {"name": "mlp", "hidden": [], "activation": "tanh"}
NORMED = {"name": "cnn", "channels": [2], "dense": [], "pool": [0], "norm": "batch"}


def one_network(size=2):
    """Two features, which are the inputs, two classes; W and e by hand."""
    family, network = FAMILIES.build({**SPEC, "size": size}), small.network(LINEAR, 2)
    start = family.init(network, small.streams(1))
    weight = torch.tensor([[[1.0, 0.0], [0.0, 2.0]], [[0.0, 1.0], [1.0, 0.0]]]).double()[None]
    parameters = {WEIGHT: weight, COUNT: torch.tensor([[4.0, 2.0]]).double()}
    parameters[SUM] = torch.tensor([[[4.0, 0.0], [0.0, 2.0]]]).double()  # e: (1, 0) and (0, 1)
    assert parameters.keys() == start.keys() and all(start[k].shape == v.shape for k, v in parameters.items())
    return family, network, parameters


class TestCentroids(FamilyContract):
    spec = SPEC

    def test_a_kernel_score_computed_by_hand(self):
        family, network, parameters = one_network()
        x = torch.tensor([[[2.0, 3.0]]]).double()
        # z_0 = (2, 3), 1 from e_0 = (1, 0) in the first number and 3 in the second; z_1 = (3, 4), (3, 3) from e_1.
        expected = [-((1 + 9) / 2) / (2 * 0.25), -((9 + 9) / 2) / (2 * 0.25)]
        f = family.functions(network, parameters, 5, small.streams(1))(x)
        torch.testing.assert_close(f, torch.tensor(expected).double().view(1, 1, 1, 2))

    def test_centroids_follow_as_computed_by_hand(self):
        family, network, parameters = one_network()
        x = torch.tensor([[[2.0, 3.0], [0.0, 1.0], [1.0, 1.0]]]).double()
        moved = family.after_step(network, parameters, x, torch.tensor([[0, 0, 1]]))
        # Class 0: z = (2, 3) and (0, 1); class 1: z of (1, 1) is (1, 2).
        count = torch.tensor([[0.75 * 4 + 0.25 * 2, 0.75 * 2 + 0.25 * 1]]).double()
        total = [[0.75 * 4 + 0.25 * 2, 0.25 * 4], [0.25 * 1, 0.75 * 2 + 0.25 * 2]]
        torch.testing.assert_close(moved, {COUNT: count, SUM: torch.tensor([total]).double()})

    def test_centroids_follow_the_network_as_it_predicts(self):
        family, network = self.family(), small.network(NORMED, 3)
        parameters = family.init(network, small.streams(R))
        for name in ("mean", "var"):  # statistics that are neither those at the start nor the batch's
            parameters[f"buffer/conv0.norm.{name}"] = small.streams(R, name=name).uniform(2) + 0.5
        data = small.training_data(R, 5, 3, (2, 4, 4))
        moved = family.after_step(network, parameters, data.x, data.y)
        for r in range(R):
            own = {name: value[r] for name, value in parameters.items()}
            a = torch.nn.functional.conv2d(data.x[r], own["conv0.weight"], own["conv0.bias"], padding=1)
            mean, var = (own[f"buffer/conv0.norm.{name}"] for name in ("mean", "var"))
            a = torch.nn.functional.batch_norm(a, mean, var, own["conv0.norm.scale"], own["conv0.norm.shift"])
            z = torch.einsum("ni,icj->ncj", a.relu().flatten(1), own[WEIGHT])
            sums = torch.stack([z[data.y[r] == c, c].sum(0) for c in range(3)])
            torch.testing.assert_close(moved[SUM][r], 0.75 * own[SUM] + 0.25 * sums)

    def test_the_start_has_the_requested_deviations_and_counts(self):
        spec = {"name": "centroids", "size": 2000, "weight_std": 0.3, "centroid_std": 0.7, "count": 5.0}
        start = FAMILIES.build(spec).init(small.network(LINEAR, 2), small.streams(R))
        assert (start[COUNT] == 5).all()
        centroids = start[SUM] / start[COUNT].unsqueeze(-1)
        for values, std in ((start[WEIGHT], 0.3), (centroids, 0.7)):  # 12000 or more numbers: 1 / 155 around it
            assert values.std().item() == pytest.approx(std, rel=0.03) and abs(values.mean().item()) < 0.03 * std

    def test_a_network_without_a_linear_head_is_named(self):
        with pytest.raises(NotSupported, match="family 'centroids' replaces a linear head"):
            self.family().init(small.network({"name": "vector_field", "hidden": [3]}, 2), small.streams(R))

    def test_targets_that_are_no_classes_are_named(self):
        model = small.model({"family": SPEC}, 1)
        options = Training(1, 4, {"name": "adam"}, dtype="float64")
        with pytest.raises(NotSupported, match="family 'centroids' has a centroid of each class"):
            Trainer(model, options, small.training_data(R, 8), small.streams(R))

    def test_values_out_of_range_are_named(self):
        with pytest.raises(ValueError, match="family 'centroids': decay: expected 0 or more and below 1, found 1.0"):
            FAMILIES.build({**SPEC, "decay": 1.0})


class TestInputGradient(DivergenceContract):
    spec = {"name": "input_gradient"}
    parts = {"family": {**SPEC, "centroid_std": 0.5}}
    unfit = None
    outputs = 3

    @pytest.mark.parametrize("target", [1.0, 0.2])
    def test_is_that_of_finite_differences(self, target):
        model, data, small_step = self.model(), small.training_data(R, N, 3), 1e-6
        parameters = self.parameters(model)
        scores = model.family.functions(model.network, parameters, 1, small.streams(R))
        slopes = []
        with torch.no_grad():
            for d in range(2):
                shift = small_step * torch.eye(2, dtype=torch.float64)[d]
                up, down = (scores(data.x + sign * shift).exp().sum(-1)[:, 0] for sign in (1, -1))
                slopes.append((up - down) / (2 * small_step))
        expected = (torch.stack(slopes, -1).norm(dim=-1) - target).square().mean(1)
        value = InputGradient(target)(small.step(model, parameters, data, small.streams(R)))
        torch.testing.assert_close(value, expected, rtol=1e-6, atol=1e-9)

    def test_of_a_joint_ensemble_is_the_mean_over_members(self):
        joint = self.model(family={"name": "ensemble", "base": self.parts["family"], "size": 3, "joint": True})
        parameters, data, one = self.start(joint), small.training_data(R, N, 3), self.model()
        value = joint.divergence(small.step(joint, parameters, data, small.streams(R)))
        members = [{name: v[:, i] for name, v in parameters.items()} for i in range(3)]
        each = [one.divergence(small.step(one, member, data, small.streams(R))) for member in members]
        torch.testing.assert_close(value, torch.stack(each).mean(0))

    @pytest.mark.parametrize(
        "network", [{"name": "cnn", "channels": [2, 3], "dense": [4], "pool": [1, 0], "norm": "batch"}, small.CNN]
    )
    def test_its_gradient_goes_through_convolutions(self, network):
        model = small.model({"network": network, **self.parts, "divergence": self.spec}, 3, (2, 4, 4))
        data = small.training_data(1, N, 3, (2, 4, 4))
        start = model.family.init(model.network, small.streams(1))
        start = {k: v for k, v in start.items() if not k.startswith("buffer/")}

        def value(weight):
            step = small.step(model, start | {"conv0.weight": weight}, data, small.streams(1))
            return model.divergence(step).sum()

        assert torch.autograd.gradcheck(value, start["conv0.weight"].requires_grad_())


OF_NETWORKS = [
    {"name": "mean_field"},
    {"name": "rank1"},
    {"name": "implicit_process"},
    {"name": "linearised_mean_field"},
    {"name": "ensemble", "base": {"name": "radial"}, "size": 2, "joint": True},
]
OF_KERNELS = [
    {"name": "sparse_gp", "points": 3, "draws": "marginal"},
    {"name": "gwi", "points": 3, "draws": "marginal"},
    {"name": "ensemble", "base": {"name": "sparse_gp", "points": 3, "draws": "marginal"}, "size": 2, "joint": True},
]


@pytest.mark.parametrize("spec", OF_NETWORKS + OF_KERNELS, ids=lambda spec: str([*spec.values()][:2]))
def test_the_penalty_on_input_gradients_is_differentiated_right_or_refused(spec):
    """With kernels its gradient was wrong without an error: by the factor 13 in a parameter of a sparse process."""
    model = small.model({"family": spec, "divergence": {"name": "input_gradient"}}, 2)
    data, start = small.training_data(1, N, 2), model.family.init(model.network, small.streams(1))
    names = trained_names(start)

    def value(*values):
        step = small.step(model, start | dict(zip(names, values, strict=True)), data, small.streams(1))
        return model.divergence(step).sum()

    values = [start[name].detach().requires_grad_() for name in names]
    if spec in OF_NETWORKS:
        assert torch.autograd.gradcheck(value, values, atol=1e-6)
    else:
        with pytest.raises(NotSupported, match="differentiates functions twice, and the kernel of family"):
            value(*values)


def test_binary_cross_entropy_is_that_of_torch():
    likelihood, y = LIKELIHOODS.build({"name": "kernel_scores"}), torch.tensor([[0, 2, 1, 1]])
    scores = small.streams(1).uniform(1, 4, 3)
    expected = torch.nn.functional.binary_cross_entropy(scores[:, 0], torch.nn.functional.one_hot(y).double())
    torch.testing.assert_close(likelihood.data_term({}, scores.log(), y), -expected[None])
    ends = torch.tensor([[[[0.0, -900.0, -5.0]]]]).requires_grad_()
    term = likelihood.data_term({}, ends, torch.tensor([[1]]))
    (gradient,) = torch.autograd.grad(term.sum(), ends)
    assert torch.isfinite(term).all() and gradient[..., 1] == 1 / 3 and torch.isfinite(gradient).all()


def test_binary_cross_entropy_is_exact_until_a_score_is_a_millionth_below_one():
    likelihood, own = LIKELIHOODS.build({"name": "kernel_scores"}), -5.0
    for f in (-0.05, -1e-3, -1e-5):
        found = likelihood.data_term({}, torch.tensor([[[[f, own]]]], dtype=torch.float64), torch.tensor([[1]]))
        assert found.item() == pytest.approx((math.log(1 - math.exp(f)) + own) / 2, rel=1e-9)
    for f in (-1e-7, 0.0):
        found = likelihood.data_term({}, torch.tensor([[[[f, own]]]], dtype=torch.float64), torch.tensor([[1]]))
        assert found.item() == pytest.approx((math.log(1e-6) + own) / 2, rel=1e-6)


def test_the_score_is_the_largest_kernel_score():
    values = small.streams(1).uniform(1, 4, 3)[0].log().numpy()
    scores = LIKELIHOODS.build({"name": "kernel_scores"}).scores(values)
    assert list(scores) == ["largest_kernel_score"]
    assert scores["largest_kernel_score"] == pytest.approx([-max(row) for row in values[0]])


@pytest.mark.parametrize("members", [1, 2])
def test_training_moves_centroids_after_each_step_and_never_by_gradients(members):
    parts = {"family": SPEC, "divergence": {"name": "input_gradient"}, "weight": {"scaling": "none", "factor": 0.05}}
    if members > 1:
        parts["family"] = {"name": "ensemble", "base": SPEC, "size": members, "joint": True}
    model = small.model({**parts, "likelihood": {"name": "kernel_scores"}}, 3)
    data, steps = small.training_data(R, 12, 3), 6
    options = Training(steps // 3, 4, {"name": "adam", "lr": 0.01}, dtype="float64")
    before = model.family.init(model.network, small.streams(R))
    trained = Trainer(model, options, data, small.streams(R)).run()
    assert all(t.reason is None for t in trained)
    for t in trained:
        # Every batch has 4 inputs, whatever their classes: the counts' sum is known.
        expected = 12.0 * 0.75**steps + 4 * (1 - 0.75**steps)
        assert t.parameters[COUNT].sum(-1).flatten().tolist() == pytest.approx([expected] * members)
        assert not torch.equal(t.parameters[SUM], before[SUM][:1]) and math.isfinite(t.loss[-1])
