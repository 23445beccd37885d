"""The fast trainer against autograd in float64. Without a GPU its own source runs on the CPU
runtime, host code and kernels; there "tf32" keeps all bits of a float, so that only a wrong formula
can be far off. bfloat16 is held against a model that rounds where the kernels round: pooling and
ReLU make of a rounding error a large one, a choice of
another pixel."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional

from course.kernels.mnist_cnn import SHAPES, fast, pytorch
from course.kernels.mnist_cnn.pytorch_modes import SIXTEEN_BITS
from tests.needs import without_gpu
from utils.engine import gpu, has_gpu
from utils.tools import yours

# on the CPU runtime "tf32" does not round
ROUNDED = [*dict.fromkeys([*fast.precisions(), "fp16"])]
if not has_gpu():
    OTHER = pytest.mark.nightly("by day the same gradients in bfloat16")
    ROUNDED = ["bf16", pytest.param("fp16", marks=OTHER)]
EXACT = fast.precisions()[-1]  # the most exact: tf32, bf16 where that does not fit, or fp16


def problem(batch, seed=0):
    """Weights, images and labels. Gammas of both signs, no image like another, all 256 values of a
    pixel.
    """
    rng = np.random.default_rng(seed)
    weights = pytorch.initial_weights(seed)
    for name in ("bn1", "bn2"):
        weights[f"{name}.weight"] = rng.choice(
            [-1.5, -0.5, 0.5, 1.0], SHAPES[f"{name}.weight"]
        ).astype(np.float32)
        weights[f"{name}.bias"] = rng.normal(0, 0.3, SHAPES[f"{name}.bias"]).astype(np.float32)
    images = np.minimum(255, rng.gamma(0.3, 100, (batch, 28, 28))).astype(np.uint8)
    return weights, images, rng.integers(0, 10, batch).astype(np.uint8)


def distance(actual, expected):
    assert actual.shape == expected.shape and np.isfinite(actual).all()
    return np.linalg.norm(actual.astype(np.float64) - expected) / np.linalg.norm(expected)


def rounded(values, precision):
    """float64 values with as many bits as the tensor cores take."""
    values = values.to(torch.float32)
    if precision != "tf32":
        return values.to(SIXTEEN_BITS[precision]).double()
    return (
        ((values.contiguous().view(torch.int32) + (1 << 12)) & ~0x1FFF).view(torch.float32).double()
    )


def scale_of(precision, batch):
    """What the kernels multiply gradients by before they round them."""
    return 64 * batch if precision == "fp16" else 1


def rounding_reference(weights, images, labels, precision):
    """Loss, logits and gradients in float64 of the network with its values and gradients rounded as
    in the kernels.
    """

    scale = scale_of(precision, len(images))

    class Value(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return rounded(x, precision)

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    class Gradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return rounded(gradient * scale, precision) / scale

    w = {
        name: torch.tensor(value, dtype=torch.float64, requires_grad=True)
        for name, value in weights.items()
    }
    value, gradient = Value.apply, Gradient.apply

    def norm(y, seen, name):
        scale, shift = (w[f"{name}.{part}"][None, :, None, None] for part in ("weight", "bias"))
        mean, variance = (
            y.mean((0, 2, 3), keepdim=True),
            y.var((0, 2, 3), unbiased=False, keepdim=True),
        )
        return gradient((seen - mean) / torch.sqrt(variance + 1e-5) * scale + shift)

    x = pytorch.scaled(torch.from_numpy(images), torch.float64)[:, None]
    y = functional.conv2d(x, value(w["conv1.weight"]), padding=1)
    x = value(functional.max_pool2d(functional.relu(norm(y, y, "bn1")), 2))
    y = gradient(functional.conv2d(x, value(w["conv2.weight"]), padding=1))
    x = value(functional.max_pool2d(functional.relu(norm(y, value(y), "bn2")), 2)).flatten(1)
    h = functional.relu(gradient(x @ value(w["fc1.weight"]).T) + w["fc1.bias"])
    logits = h @ w["fc2.weight"].T + w["fc2.bias"]
    loss = functional.cross_entropy(logits, torch.from_numpy(labels).long())
    loss.backward()
    return (
        loss.item(),
        logits.detach().numpy(),
        {name: value.grad.numpy() for name, value in w.items()},
    )


def one_step(weights, images, labels, precision, **switches):
    """Loss, logits, gradients and new weights of a single step."""
    with fast.Trainer(weights, len(images), 0.1, precision, gradients=True, **switches) as trainer:
        trainer.step(images, labels)
        return trainer.losses()[0], trainer.step_logits(), trainer.gradients(), trainer.weights()


SMALLER = pytest.mark.nightly("by day more images than a tile of 64 has, and than there are blocks")


@without_gpu("a GPU's tensor cores round")
@pytest.mark.parametrize(
    "batch", [pytest.param(1, marks=SMALLER), pytest.param(3, marks=SMALLER), 70]
)
def test_every_gradient_is_that_of_autograd(batch):
    weights, images, labels = problem(batch, seed=batch)
    loss, logits, gradients = pytorch.loss_and_gradients(weights, images, labels)
    actual_loss, actual_logits, actual, updated = one_step(weights, images, labels, "tf32")
    assert abs(actual_loss - loss) < 1e-5 * loss
    assert distance(actual_logits, logits) < 1e-5
    for name in SHAPES:
        assert distance(actual[name], gradients[name]) < 2e-5, name
        np.testing.assert_allclose(
            updated[name], weights[name] - np.float32(0.1) * actual[name], rtol=1e-5, atol=1e-7
        )


@pytest.mark.parametrize("precision", ROUNDED)
@pytest.mark.parametrize("batch", [1, 7, 64, 100, 257] if has_gpu() else [5])
def test_rounded_gradients_are_those_of_a_model_that_rounds(batch, precision):
    weights, images, labels = problem(batch, seed=batch)
    loss, logits, gradients = rounding_reference(weights, images, labels, precision)
    actual_loss, actual_logits, actual, _ = one_step(weights, images, labels, precision)
    assert abs(actual_loss - loss) < 1e-3 * loss
    assert distance(actual_logits, logits) < 2e-3
    for name in SHAPES:
        assert distance(actual[name], gradients[name]) < 6e-2, name


def test_steps_follow_sgd():
    weights, _, _ = problem(4)
    batches = [problem(4, seed=k)[1:] for k in range(3)]
    model = pytorch.model_from(weights, dtype=torch.float64)
    optimizer, expected = torch.optim.SGD(model.parameters(), lr=0.05), []
    for images, labels in batches:
        optimizer.zero_grad()
        loss = functional.cross_entropy(
            model(torch.from_numpy(images)), torch.from_numpy(labels).long()
        )
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    with fast.Trainer(weights, 4, 0.05, EXACT) as trainer:
        for images, labels in batches:
            trainer.step(images, labels)
        losses = trainer.losses()
    np.testing.assert_allclose(losses, expected, rtol=2e-2 if has_gpu() else 1e-4)


@pytest.mark.nightly("by day without an optimization the results are the same, in test_race.py")
def test_switches_change_nothing_but_the_time():
    weights, images, labels = problem(6)
    loss, _, gradients, _ = one_step(weights, images, labels, EXACT)
    tolerance = (
        6e-2 if has_gpu() else 1e-5
    )  # a statistic's last bit may decide which pixel is pooled
    for switch in ("graph", "overlap", "branches", "moments", "splits", "one_update", "early"):
        other_loss, _, others, _ = one_step(weights, images, labels, EXACT, **{switch: False})
        assert abs(other_loss - loss) < (1e-3 if EXACT == "bf16" else 1e-5)
        for name in SHAPES:
            assert distance(others[name], gradients[name]) < tolerance, (switch, name)


BOTH = {"one_pass": True, "middle": True}
ALONE = pytest.mark.nightly("by day together with `middle`")
MANY = pytest.mark.nightly("by day fewer images than `middle` takes at a time")
clusters = pytest.mark.skipif(
    has_gpu() and gpu().compute_capability < (9, 0), reason="`middle` needs clusters"
)


@clusters
@pytest.mark.parametrize(
    "batch, together",
    [
        (3, BOTH),
        pytest.param(3, {"one_pass": True}, marks=ALONE),
        pytest.param(19, BOTH, marks=MANY),  # several times for a cluster, and a part of a group
        pytest.param(70, BOTH, marks=MANY),  # more than a tile of fc1's gradient
    ],
)
def test_a_kernel_in_the_place_of_several_gives_the_same(batch, together):
    weights, images, labels = problem(batch, seed=batch)
    loss, logits, gradients, _ = one_step(weights, images, labels, "bf16", **fast.EIGHT)
    actual_loss, actual_logits, actual, after = one_step(
        weights, images, labels, "bf16", **{**fast.EIGHT, **together}
    )
    tolerance = 6e-2 if has_gpu() else 1e-4
    assert abs(actual_loss - loss) < 1e-3
    assert distance(actual_logits, logits) < 1e-3
    for name in SHAPES:
        assert distance(actual[name], gradients[name]) < tolerance, name
        np.testing.assert_allclose(
            after[name], weights[name] - np.float32(0.1) * actual[name], rtol=1e-5, atol=1e-7
        )


@clusters
@pytest.mark.parametrize(
    "together, launches", [({}, 8), pytest.param({"one_pass": True}, 7, marks=ALONE), (BOTH, 5)]
)
def test_fewer_kernels_give_the_same_bits_each_time(together, launches):
    weights, images, labels = problem(2)
    weights_after = []
    for _ in range(2):
        with fast.Trainer(weights, 2, 0.1, "bf16", **{**fast.EIGHT, **together}) as trainer:
            assert trainer.launches() == launches
            for _ in range(2):
                trainer.step(images, labels)
            weights_after.append(trainer.weights())
    for name in SHAPES:
        np.testing.assert_array_equal(*(after[name] for after in weights_after), err_msg=name)


@pytest.mark.nightly("a training beside another one takes nine seconds")
def test_logits_leave_the_training_alone():
    weights, images, labels = problem(4)
    tolerance = 1e-5
    if has_gpu():
        tolerance = 5e-2 if EXACT == "bf16" else 1e-2
    with (
        fast.Trainer(weights, 4, 0.05, EXACT) as alone,
        fast.Trainer(weights, 4, 0.05, EXACT) as asked,
    ):
        for trainer in (alone, asked):
            trainer.step(images, labels)
            model = pytorch.model_from(trainer.weights(), dtype=torch.float64)
            for n in (1, 3, 4, 9) if trainer is asked else ():
                some = problem(n, seed=n)[1]
                assert (
                    distance(trainer.logits(some), model(torch.from_numpy(some)).detach().numpy())
                    < tolerance
                )
            trainer.step(images, labels)
        np.testing.assert_allclose(asked.losses(), alone.losses(), rtol=1e-6)


def test_a_training_that_diverges_shows_it():
    weights, images, labels = problem(3)
    with fast.Trainer(weights, 3, 1e30) as trainer:
        for _ in range(4):
            trainer.step(images, labels)
        losses = trainer.losses()
    assert np.isfinite(losses[0]) and not np.isfinite(losses[-1])


def test_weights_survive_the_kernels_order():
    weights = problem(1)[0]
    for name, value in fast.unpack(fast.pack(weights)).items():
        np.testing.assert_array_equal(value, weights[name])


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"batch": 0}, "at least 1"),
        ({"precision": "fp8"}, "bf16 or tf32 or fp16"),
        ({"lr": float("nan")}, "learning rate"),
        ({"weights": {}}, "weights are"),
    ],
)
def test_what_makes_no_trainer(arguments, message):
    with pytest.raises(ValueError, match=message):
        fast.Trainer(**{"weights": problem(1)[0], "batch": 2, "lr": 0.1, **arguments})


def test_a_batch_must_be_one():
    weights, images, labels = problem(3)
    with fast.Trainer(weights, 3, 0.1) as trainer:
        with pytest.raises(ValueError, match="uint8"):
            trainer.step(images.astype(np.float32), labels)
        with pytest.raises(ValueError, match="2,352 contiguous"):
            trainer.step(images[:2], labels)
        with pytest.raises(ValueError, match="keeps no gradients"):
            trainer.gradients()
        with pytest.raises(ValueError, match="no images"):
            trainer.logits(images[:0])
        trainer.step(torch.from_numpy(images), torch.from_numpy(labels))
        assert len(trainer.losses()) == 1
    with pytest.raises(fast.TrainerError, match="closed"):
        trainer.weights()
    with pytest.raises(fast.TrainerError, match="closed"):
        trainer.step(images, labels)


@pytest.mark.parametrize(
    "capability, types, fitting",
    [
        ((7, 5), ("fp16",), ("fp16",)),
        ((8, 0), ("bf16", "tf32"), ("bf16",)),
        ((8, 9), ("bf16", "tf32"), ("bf16",)),
        ((9, 0), ("bf16", "tf32"), ("bf16", "tf32")),
        ((10, 7), ("bf16", "tf32"), ("bf16", "tf32")),  # in no table yet
        ((12, 0), ("bf16", "tf32"), ("bf16",)),
    ],
)
def test_our_precisions_fit_into_shared_memory(capability, types, fitting, monkeypatch):
    monkeypatch.setattr(fast, "has_gpu", lambda: True)
    monkeypatch.setattr(fast, "gpu", lambda: SimpleNamespace(compute_capability=capability))
    assert fast.tensor_types() == types
    assert fast.precisions() == fitting


def test_a_kernel_that_does_not_compile_is_shown(tmp_path, monkeypatch):
    from utils.tools.nvcc import NvccError

    broken = tmp_path / "trainer.cu"
    broken.write_text("__global__ void k(float* x) { x[0] = y; }\n")
    monkeypatch.setattr(fast, "SOURCE", broken)
    monkeypatch.setattr(fast, "KERNELS", tmp_path)
    with pytest.raises(NvccError, match=r"x\[0\] = y"):
        fast.build()


def test_a_cell_of_the_learners_is_built_in(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(yours, "_edits", {})
    monkeypatch.setattr(yours, "_begun", {})
    ours = fast.build()
    region = yours.region_of("mnist_cnn/kernels/update.cuh descend_from")
    text = yours.cell_text(region).partition("\n")[2]  # without %%cuda
    yours.put(region, text.replace("now - net.rate", "now + net.rate"))
    assert fast.build() != ours
    assert "yours: 1 line of update.cuh" in capsys.readouterr().out
    yours.put(region, text)
    assert fast.build() == ours
